//! Flows and probes.

use crate::control::Control;
use crate::fields::wrong_type;
use crate::files::Files;
use crate::parts::{MAX_CONNECTIONS, MAX_SAMPLES, NAME};
use crate::problem::{FieldProblems, Problem, below};
use crate::schema::{self, Definitions};
use crate::sources::{Reader, Source};
use crate::table::{Declare, Field, ReadContext, Rule, table};
use crate::units::{Size, Span};
use crate::value::Value;
use crate::view::View;

const LIFETIME: Rule = Rule::Between("1 ms", "30 d");

/// The shortest and the longest lifetime.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifetime(pub Span, pub Span);

impl Field for Lifetime {
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<Lifetime, FieldProblems> {
        let Value::List(list) = given else { return Lifetime::none() };
        let [shortest, longest] = list.as_slice() else { return Lifetime::none() };
        let read = |place: &str, one| Span::read(one, rule, at).map_err(|problems| below(place, problems));
        match (read("0", shortest), read("1", longest)) {
            (Ok(shortest), Ok(longest)) => Ok(Lifetime(shortest, longest)),
            (one, other) => Err([one.err(), other.err()].into_iter().flatten().flatten().collect()),
        }
    }

    fn write(&self) -> Value {
        Value::List(vec![self.0.write(), self.1.write()])
    }

    fn view(&self) -> View {
        View::List(vec![self.0.view(), self.1.view()])
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        schema::list(Span::schema(rule, definitions), 2, Some(2))
    }
}

impl Lifetime {
    fn none<A>() -> Result<A, FieldProblems> {
        let message = "a lifetime is a list of the shortest and the longest";
        wrong_type(message, "write it like [\"1 s\", \"5 s\"]")
    }
}

table! {
    /// A new connection starts when one ends.
    Replace {
        lifetime: Lifetime, LIFETIME, Needed, "shortest and longest life of a connection; each draws its own, uniformly";
    }
}

table! {
    /// Bulk transfers from one host to another; `from` sends the data.
    Flow check agrees {
        name: Option<String>, NAME, Nothing, "name; absent: the congestion control's name, numbered if taken";
        "from" from_: Option<String>, End, Nothing, "host that sends the data; optional on a ready topology";
        to: Option<String>, End, Nothing, "host that receives the data; optional on a ready topology";
        cc: Control, Any, Text("cubic"),
            "congestion control, by Linux's name; `sawtooth cc list` shows which engine has it. Also a variant of it, `{ name = \"bbr3\", variant = \"draft\" }`, a module in C, `{ source = \"tcp_mine.c\" }`, or a policy, `{ source = \"mine.npz\" }`";
        count: u64, Within(1, MAX_CONNECTIONS), Whole(1), "number of connections";
        start: Span, Any, Text("0 s"), "start time";
        duration: Option<Span>, LIFETIME, Nothing,
            "length of time it sends, including all replaced connections; absent: to the end of the run";
        bytes: Option<Size>, Between("1 byte", "1000 TB"), Nothing,
            "data that each connection sends, instead of a duration";
        replace: Option<Replace>, Any, Nothing, "short connections: a new one starts when one ends";
        source: Option<Source>, Any, Nothing,
            "application that decides what is sent and when; absent: there is always data to send";
        reader: Option<Reader>, Any, Nothing,
            "rate at which the receiving application reads; absent: it reads everything at once";
    }
}

fn agrees(flow: &Flow, _: &dyn Files) -> Result<(), Problem> {
    if flow.is_datagrams() && flow.gives("cc") {
        return Err(Problem::new("conflict", "datagrams have no congestion control", "remove cc").of("cc"));
    }
    Ok(())
}

impl Flow {
    /// Whether it sends datagrams and therefore has no congestion control.
    pub fn is_datagrams(&self) -> bool {
        matches!(self.source, Some(Source::Udp(_)))
    }

    fn is_arrivals(&self) -> bool {
        matches!(self.source, Some(Source::Arrivals(_)))
    }

    fn is_asked(&self) -> bool {
        self.source.as_ref().is_some_and(Source::is_asked)
    }

    /// The name of its congestion control in tables and figures; "udp" if it has none.
    pub fn control(&self) -> String {
        if self.is_datagrams() { "udp".into() } else { self.cc.label() }
    }

    /// Refuses contradictions between a flow's fields.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let conflict = |message: &str, fix: &str, field: &str| Err(Problem::new("conflict", message, fix).of(field));
        if self.bytes.is_some() && self.duration.is_some() {
            return conflict(
                "a flow ends after its bytes or after its duration, not both",
                "remove bytes or duration",
                "bytes",
            );
        }
        if self.bytes.is_some() && self.source.is_some() {
            let message = "a flow with a source ends after its duration, not after its bytes";
            return conflict(message, "remove source or bytes", "source");
        }
        if self.replace.is_some() && (self.is_arrivals() || self.is_datagrams()) {
            let message = "transfers end when they are done, and datagrams have no connection to replace";
            return conflict(message, "remove replace or source", "replace");
        }
        self.check_reader()?;
        let Some(replace) = &self.replace else { return Ok(()) };
        if self.is_asked() {
            return conflict("this source opens and closes its own connections", "remove replace or source", "replace");
        }
        if self.bytes.is_some() {
            return conflict(
                "a replaced flow ends with its lifetime, not after its bytes",
                "remove replace or bytes",
                "replace",
            );
        }
        let Lifetime(low, high) = &replace.lifetime;
        if low > high {
            let message = format!("the shortest, \"{low}\", is longer than the longest, \"{high}\"");
            return Err(Problem::new("out-of-range", message, "swap them").of("replace.lifetime"));
        }
        Ok(())
    }

    fn check_reader(&self) -> Result<(), Problem> {
        if self.reader.is_none() {
            return Ok(());
        }
        let comes = self.is_arrivals() || self.is_datagrams() || self.is_asked();
        let all = [("bytes", self.bytes.is_some()), ("replace", self.replace.is_some()), ("source", comes)];
        match all.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((name, _)) => {
                let message = format!("a reader may leave data unread when {name} ends a connection");
                let fix = format!("remove reader or {name}; a flow with a reader ends with its duration");
                Err(Problem::new("conflict", message, fix).of("reader"))
            }
        }
    }
}

table! {
    /// Small packets and their answers, like ping, through the same queues.
    Probe {
        name: Option<String>, NAME, Nothing, "name; absent: \"probe\", numbered if taken";
        "from" from_: Option<String>, NAME, Nothing, "host that sends the probes; optional on a ready topology";
        to: Option<String>, NAME, Nothing, "host that answers; optional on a ready topology";
        interval: Span, Between("100 us", "3600 s"), Text("1 s"), "time between two probes";
        count: Option<u64>, Within(1, MAX_SAMPLES), Nothing, "number of probes; absent: to the end of the run";
        start: Span, Any, Text("0 s"), "time of the first probe";
    }
}
