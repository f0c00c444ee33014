//! Properties of a link direction that change or act by chance: rate, delay and loss at given times; reordered and
//! duplicated packets.

use crate::draw::Draws;
use crate::files::{Files, Steps};
use crate::problem::{FieldProblems, Problem, one};
use crate::schema::{self, Definitions};
use crate::table::{Declare, Field, ReadContext, Rule, table};
use crate::units::{Loss, Quantity, Rate, Span};
use crate::value::{Table, Value};
use crate::view::View;
use sawtooth_net::scenario as net;
use std::collections::BTreeMap;

/// Maximum number of changes of one direction in one run.
const MOST_STEPS: u64 = 1_000_000;

/// One value, or the lowest and the highest.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn<A> {
    pub low: A,
    pub high: A,
    is_two: bool,
}

/// A `Rate` in a change may be 0 bit/s: then nothing is sent.
fn parse<A: Quantity>(given: &Value) -> Result<A, Problem>
where
    Drawn<A>: Stops<A>,
{
    Drawn::<A>::stopped(given).map_or_else(|| A::parse(given), Ok)
}

/// Values that a quantity accepts in addition to its usual range.
pub trait Stops<A> {
    fn stopped(_: &Value) -> Option<A> {
        None
    }
}

impl Stops<Rate> for Drawn<Rate> {
    fn stopped(given: &Value) -> Option<Rate> {
        let text = given.as_text()?;
        let is_zero = text.split(crate::units::is_space).find(|word| !word.is_empty()) == Some("0");
        (is_zero && text.ends_with("bit/s")).then_some(Rate { bps: 0 })
    }
}

impl Stops<Span> for Drawn<Span> {}
impl Stops<Loss> for Drawn<Loss> {}

impl<A: Quantity + PartialEq> Field for Drawn<A>
where
    Drawn<A>: Stops<A>,
{
    fn read(given: &Value, _: &Rule, _: ReadContext) -> Result<Drawn<A>, FieldProblems> {
        let values: Vec<A> = match given {
            Value::List(list) => list.iter().map(parse).collect::<Result<_, _>>(),
            _ => parse(given).map(|value| vec![value]),
        }
        .map_err(one)?;
        match *values.as_slice() {
            [only] => Ok(Drawn { low: only, high: only, is_two: false }),
            [low, high] if low.amount() > high.amount() => {
                Err(one(Problem::new("out-of-range", format!("\"{low}\" is above \"{high}\""), "swap them")))
            }
            [low, high] => Ok(Drawn { low, high, is_two: true }),
            _ => {
                let message = "one value, or a list of the lowest and the highest, is needed";
                Err(one(Problem::new("wrong-type", message, "write one value, or [LOWEST, HIGHEST]")))
            }
        }
    }

    fn write(&self) -> Value {
        let low = Value::Text(self.low.to_string());
        if self.is_two { Value::List(vec![low, Value::Text(self.high.to_string())]) } else { low }
    }

    fn view(&self) -> View {
        let ends = if self.is_two { &[self.low, self.high][..] } else { &[self.low][..] };
        View::List(ends.iter().map(|end| View::Quantity(A::NAME, end.amount())).collect())
    }

    fn schema(_: &Rule, definitions: &mut Definitions) -> Value {
        let one = definitions.quantity::<A>();
        schema::any([one.clone(), schema::list(one, 1, Some(2))])
    }
}

table! {
    /// A change of rate, delay or loss at a time. Two values are the bounds of a random one, drawn each time.
    Change check says_something {
        at: Span, Any, Text("0 s"), "time of the change";
        every: Option<Span>, Any, Nothing, "repeat the change at this interval until the end";
        rate: Option<Drawn<Rate>>, Any, Nothing, "rate of the transmitter; \"0 bit/s\" stops it";
        delay: Option<Drawn<Span>>, Any, Nothing, "one-way propagation delay; packets keep their order";
        loss: Option<Drawn<Loss>>, Any, Nothing, "loss before the queue";
    }
}

fn says_something(change: &Change, _: &dyn Files) -> Result<(), Problem> {
    if change.rate.is_none() && change.delay.is_none() && change.loss.is_none() {
        let fix = "write e.g. { at = \"10 s\", rate = \"5 Mbit/s\" }";
        return Err(Problem::new("missing-field", "this change sets no field", fix));
    }
    if change.every == Some(Span { ns: 0 }) {
        let message = "a change cannot come every 0 s";
        return Err(Problem::new("out-of-range", message, "write e.g. \"15 s\"").of("every"));
    }
    Ok(())
}

/// Every change of a run. `salt` gives each direction its own random numbers; `place` is the field that contains the
/// changes.
pub fn steps_of(
    changes: &[Change],
    duration_ns: u64,
    seed: u64,
    salt: &str,
    field_path: &str,
) -> Result<Steps, Problem> {
    let mut found: [BTreeMap<u64, u64>; 3] = Default::default();
    for (number, change) in changes.iter().enumerate() {
        let step = change.every.map_or(duration_ns, |every| every.ns);
        let count = duration_ns.saturating_sub(change.at.ns).div_ceil(step);
        if count > MOST_STEPS {
            let message = format!("{count} changes are more than {MOST_STEPS}");
            let field = format!("{field_path}.changes.{number}.every");
            return Err(Problem::new("out-of-range", message, "choose a longer every, or fewer changes").of(field));
        }
        let ends = [
            change.rate.as_ref().map(|one| (one.low.bps, one.high.bps)),
            change.delay.as_ref().map(|one| (one.low.ns, one.high.ns)),
            change.loss.as_ref().map(|one| (one.low.ppb, one.high.ppb)),
        ];
        for ((what, steps), ends) in ["rate", "delay", "loss"].into_iter().zip(&mut found).zip(ends) {
            let Some((low, high)) = ends else { continue };
            let mut draws = Draws::new(&format!("{seed} {salt} {number} {what}"));
            for turn in 0..count {
                // Floats represent integers up to 10^13 exactly.
                let more = (draws.next() * (high - low + 1) as f64) as u64;
                steps.insert(change.at.ns + turn * step, low + more);
            }
        }
    }
    let [rates, delays, losses] = found.map(|steps| steps.into_iter().collect());
    Ok(Steps { rates, delays, losses })
}

/// A table that is written as the text of its first field if no other field is set.
pub(crate) trait Short: Declare + Sized {
    /// The JSON Schema of the first field.
    fn text(definitions: &mut Definitions) -> Value {
        definitions.quantity::<Loss>()
    }

    /// Reads text as a table with only this field.
    fn from_text(given: &Value, at: ReadContext) -> Result<Self, FieldProblems> {
        if let Value::Table(_) = given {
            return Self::read(given, &Rule::Any, at);
        }
        let mut table = Table::new();
        table.push(Self::FIELDS[0].name, given.clone());
        Self::read(&Value::Table(table), &Rule::Any, at)
    }

    /// The text form, or `otherwise`.
    fn shortly(&self, otherwise: Value) -> Value {
        let value = self.write();
        let Value::Table(table) = &value else { unreachable!("a table is written as one") };
        let usual =
            |name: &str| Self::FIELDS.iter().find(|field| field.name == name).map(|field| field.otherwise.value());
        let mut others = table.iter().skip(1);
        let is_short = others.all(|(name, value)| usual(name).as_ref() == Some(value));
        table.iter().next().filter(|_| is_short).map_or(otherwise, |(_, first)| first.clone())
    }
}

table! {
    /// Packets without delay, which overtake all those on the way (tc-netem's `reorder`).
    Reorder {
        share: Loss, Any, Needed, "share of the packets";
        gap: u64, Within(1, 1_000_000_000), Whole(1), "only every n-th packet may overtake others";
        correlation: Loss, Any, Text("0%"), "correlation of each draw with the previous one";
    }
}

table! {
    /// A share of the packets, chosen at random.
    Share {
        share: Loss, Any, Needed, "share of the packets";
        correlation: Loss, Any, Text("0%"), "correlation of each draw with the previous one";
    }
}

impl Short for Reorder {}
impl Short for Share {}

impl Reorder {
    /// Converts to the core's form.
    pub fn compile(&self) -> net::Reorder {
        net::Reorder { ppb: self.share.ppb, gap: self.gap, correlation_ppb: self.correlation.ppb }
    }
}

impl Share {
    /// Converts to the core's form: the share, and the correlation of its random numbers.
    pub fn compile(&self) -> (u64, u64) {
        (self.share.ppb, self.correlation.ppb)
    }
}

/// A field that is a table, or text for a table with only its first field.
#[derive(Clone, Debug, PartialEq)]
pub struct TextOr<A>(pub A);

impl<A: Short> Field for TextOr<A> {
    fn read(given: &Value, _: &Rule, at: ReadContext) -> Result<TextOr<A>, FieldProblems> {
        A::from_text(given, at).map(TextOr)
    }

    fn write(&self) -> Value {
        self.0.shortly(self.0.write())
    }

    fn given(&self) -> Value {
        self.0.shortly(self.0.given())
    }

    fn view(&self) -> View {
        self.0.view()
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        schema::any([A::text(definitions), A::schema(rule, definitions)])
    }
}
