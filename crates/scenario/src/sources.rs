//! Applications: what a flow's `source` writes and when, and how fast its `reader` reads.

use crate::application::{Pages, Requests, Video};
use crate::arrivals::Arrivals;
use crate::fields::wrong_type;
use crate::files::Files;
use crate::kinds::{Kind, kinds};
use crate::problem::{FieldProblems, Problem};
use crate::schema::Definitions;
use crate::table::{Field, ReadContext, Rule, table};
use crate::units::{Rate, Size, Span};
use crate::value::Value;
use crate::view::View;
use sawtooth_net::scenario as net;

const A_SECOND: u64 = 1_000_000;
const AMOUNT: Rule = Rule::Between("1 byte", "1 GB");
const TIME: Rule = Rule::Between("1 us", "3600 s");

table! {
    /// An application that writes at a mean rate once its connection is established.
    Steady check steady_agrees {
        kind: Kind, Any, Needed, "`rate`";
        rate: Rate, Any, Needed, "mean payload rate";
        write: Size, AMOUNT, Text("16000 bytes"), "size of one write";
    }
}

table! {
    /// An application that alternately writes at a rate and is silent.
    OnOff check on_off_agrees {
        kind: Kind, Any, Needed, "`on-off`";
        rate: Rate, Any, Needed, "payload rate while it writes";
        write: Size, AMOUNT, Text("16000 bytes"), "size of one write";
        on: Span, TIME, Needed, "time that it writes; it starts with a write";
        off: Span, TIME, Needed, "time that it is silent";
    }
}

/// Whether writing in units of this size at this rate needs more than one write per microsecond.
fn is_too_often(rate: Rate, size: Size) -> bool {
    rate.bps > size.bytes * 8 * A_SECOND
}

fn writes(rate: Rate, write: Size) -> Result<(), Problem> {
    if !is_too_often(rate, write) {
        return Ok(());
    }
    let message = format!("\"{rate}\" by \"{write}\" is more than one write per microsecond");
    Err(Problem::new("out-of-range", message, "choose a larger write").of("write"))
}

impl Steady {
    /// Converts to the core's form.
    pub fn compile(&self) -> net::Paced {
        net::Paced::new(self.write.bytes, self.rate.bps, None)
    }
}

impl OnOff {
    /// Converts to the core's form.
    pub fn compile(&self) -> net::Paced {
        let on_off_ns = Some([self.on.ns, self.off.ns]);
        net::Paced::new(self.write.bytes, self.rate.bps, on_off_ns)
    }
}

fn steady_agrees(one: &Steady, _: &dyn Files) -> Result<(), Problem> {
    writes(one.rate, one.write)
}

fn on_off_agrees(one: &OnOff, _: &dyn Files) -> Result<(), Problem> {
    writes(one.rate, one.write)
}

table! {
    /// Datagrams on a schedule, without congestion control. The defaults are one side of a G.711 call.
    Udp check udp_agrees {
        kind: Kind, Any, Needed, "`udp`";
        rate: Rate, Any, Text("68.8 kbit/s"),
            "payload rate while it sends; the default is that of a call, 50 datagrams per second";
        size: Size, Between("16 bytes", "1472 bytes"), Text("172 bytes"),
            "payload of a datagram; the default is 20 ms of speech and the RTP header";
        pattern: String, OneOf(&["constant", "poisson", "on-off"]), Text("constant"),
            "`constant`: at equal distances; `poisson`: independently at random; `on-off`: at equal distances, with pauses";
        on: Option<Span>, TIME, Nothing, "with `on-off`: time that it sends; it starts with a datagram";
        off: Option<Span>, TIME, Nothing, "with `on-off`: time that it is silent";
    }
}

fn udp_agrees(udp: &Udp, _: &dyn Files) -> Result<(), Problem> {
    if is_too_often(udp.rate, udp.size) {
        let message = format!("\"{}\" by \"{}\" is more than one datagram per microsecond", udp.rate, udp.size);
        return Err(Problem::new("out-of-range", message, "lower the rate").of("rate"));
    }
    let is_on_off = udp.pattern == "on-off";
    for (name, time) in [("on", udp.on), ("off", udp.off)] {
        if is_on_off && time.is_none() {
            let message = "pattern = \"on-off\" needs both on and off";
            return Err(Problem::new("missing-field", message, format!("add {name} = \"1 s\"")).of(name));
        }
        if !is_on_off && time.is_some() {
            let message = format!("a source that is \"{}\" does not use this time", udp.pattern);
            return Err(Problem::new("conflict", message, "set pattern = \"on-off\", or remove this field").of(name));
        }
    }
    Ok(())
}

impl Udp {
    /// Converts to the core's form.
    pub fn compile(&self) -> net::Datagrams {
        net::Datagrams {
            bytes: self.size.bytes,
            rate_bps: self.rate.bps,
            on_off_ns: by_turns(self.on, self.off),
            poisson: self.pattern == "poisson",
        }
    }
}

fn by_turns(on: Option<Span>, off: Option<Span>) -> Option<[u64; 2]> {
    Some([on?.ns, off?.ns])
}

table! {
    /// An application that reads at a mean rate once it has accepted the connection, with or without pauses.
    ///
    /// What it has not read fills the receive buffer, and closes the window.
    Reader check reader_agrees {
        rate: Rate, Any, Needed, "mean payload rate; with pauses, the rate while it reads; with `whole = false`, the highest";
        read: Size, AMOUNT, Text("64000 bytes"), "size of one read; the reader sleeps until that much has arrived";
        whole: bool, Any, Flag(true), "false: a read takes what has arrived, and the reader then sleeps for `read` / `rate`";
        on: Option<Span>, TIME, Nothing, "time that it reads; it starts with a read; absent: always";
        off: Option<Span>, TIME, Nothing, "time that it pauses; required with `on`";
    }
}

fn reader_agrees(reader: &Reader, _: &dyn Files) -> Result<(), Problem> {
    if reader.on.is_none() != reader.off.is_none() {
        let (given, lacking) = if reader.off.is_none() { ("on", "off") } else { ("off", "on") };
        let message = format!("a reader that pauses needs both on and off: {lacking} is missing");
        let fix = format!("add {lacking} = \"1 s\", or remove {given}");
        return Err(Problem::new("missing-field", message, fix).of(given));
    }
    if !reader.whole && reader.on.is_some() {
        let message = "a reader that takes what has arrived sleeps after each read, and has no other pauses";
        return Err(Problem::new("conflict", message, "remove `on` and `off`, or write whole = true").of("whole"));
    }
    if is_too_often(reader.rate, reader.read) {
        let message = format!("\"{}\" by \"{}\" is more than one read per microsecond", reader.rate, reader.read);
        return Err(Problem::new("out-of-range", message, "choose a larger read").of("read"));
    }
    Ok(())
}

impl Reader {
    /// Converts to the core's form.
    pub fn compile(&self) -> net::Paced {
        let paced = net::Paced::new(self.read.bytes, self.rate.bps, by_turns(self.on, self.off));
        net::Paced { partial: !self.whole, ..paced }
    }
}

kinds! {
    /// What an application writes, and when.
    Source of "source", like "source = { kind = \"rate\", rate = \"5 Mbit/s\" }" {
        "rate" Steady,
        "on-off" OnOff,
        "arrivals" Arrivals,
        "udp" Udp,
        "requests" Requests,
        "pages" Pages,
        "video" Video,
    }
}

impl Source {
    /// Whether the application requests its data.
    pub fn is_asked(&self) -> bool {
        matches!(self, Source::Requests(_) | Source::Pages(_) | Source::Video(_))
    }

    /// Number of connections of one reader.
    pub fn connections(&self) -> u64 {
        if let Source::Pages(pages) = self { pages.connections } else { 1 }
    }
}

impl Field for Source {
    fn read(given: &Value, _: &Rule, at: ReadContext) -> Result<Source, FieldProblems> {
        match given {
            Value::Table(table) => Source::read(table, at.files),
            _ => wrong_type("a table is needed", "write source = { kind = \"rate\", rate = \"5 Mbit/s\" }"),
        }
    }

    fn write(&self) -> Value {
        Source::write(self)
    }

    fn view(&self) -> View {
        Source::view(self)
    }

    fn schema(_: &Rule, definitions: &mut Definitions) -> Value {
        Source::schema(None, definitions)
    }
}
