//! Quantities: read from text with a unit, stored as an exact integer, written as canonical text. `Rate` in bit/s,
//! `Span` in nanoseconds, `Size` in bytes, `Loss` in parts per billion, `Queue` in the unit that was given.
//!
//! Text that is not a whole multiple of the smallest unit (`0.1 ns`) is refused, never rounded. The spellings of tc and
//! iperf3 are accepted too (`50Mbit`, `20ms`, `1000p`); output has one spelling. One file: a type for each
//! quantity, with the same methods.

use crate::number::{Amount, Number, decimal};
use crate::problem::Problem;
use crate::python;
use crate::value::Value;
use crate::words::printable;
use std::fmt;

type Units = &'static [(&'static str, u64)];

/// Bits per second, 1 bit/s to 10 Tbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate {
    pub bps: u64,
}

/// A length of time, 0 to 30 days; a field may narrow this range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub ns: u64,
}

/// Bytes, 0 to 1 EB; a field may narrow this range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    pub bytes: u64,
}

/// The probability that a packet is lost, 0 to 100%.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    pub ppb: u64,
}

/// Mean number of consecutive lost packets, in thousandths of a packet; at least one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Burst {
    pub milli: u64,
}

/// The limit of a tail-drop queue. It counts waiting packets, not the one in transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    pub unit: Unit,
    /// For `Unit::Bdp`, in billionths.
    pub amount: u64,
}

/// The unit of a queue's limit. `Ns`: the bytes that the transmitter sends in this time. `Bdp`: bandwidth-delay
/// products, with the path's base RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Packets,
    Bytes,
    Ns,
    Bdp,
}

impl Unit {
    const NAMES: &[(Unit, &str)] =
        &[(Unit::Packets, "packets"), (Unit::Bytes, "bytes"), (Unit::Ns, "ns"), (Unit::Bdp, "bdp")];

    pub fn name(self) -> &'static str {
        Unit::NAMES.iter().find(|(unit, _)| *unit == self).expect("each has a name").1
    }

    /// The unit of this name.
    pub fn named(name: &str) -> Option<Unit> {
        Unit::NAMES.iter().find(|(_, known)| *known == name).map(|(unit, _)| *unit)
    }
}

/// The common interface of all quantities.
pub trait Quantity: Sized + Copy + fmt::Display {
    /// The type's name.
    const NAME: &'static str;
    /// For the reference: what it is, its units, and how it is written.
    const MEANING: &'static str;
    const EXAMPLES: &'static [&'static str];

    /// Reads a quantity. Codes: missing-unit, unknown-unit, bad-quantity, wrong-type, zero-queue, out-of-range.
    fn parse(given: &Value) -> Result<Self, Problem>;

    /// The amount in its smallest unit.
    fn amount(self) -> u64;

    /// Reads a constant in the program's own source.
    fn of(text: &'static str) -> Self {
        Self::parse(&Value::text(text)).unwrap_or_else(|problem| panic!("{text}: {}", problem.message))
    }
}

/// Splits a quantity into number and unit. `usual`: the units that the fix suggests for a number without a unit.
fn split<'a>(given: &'a Value, what: &str, example: &str, usual: &[&str]) -> Result<(Number<'a>, &'a str), Problem> {
    let like = || format!("write it like \"{example}\"");
    let text = match given {
        Value::Text(text) => text,
        Value::Whole(_) | Value::Huge(_) | Value::Real(_) => {
            let bare = match given {
                Value::Whole(number) if number.unsigned_abs() < 10u128.pow(30) => Some(number.to_string()),
                Value::Real(number) => Some(python::float(*number)),
                _ => None,
            };
            let fix = match (&bare, given) {
                (Some(bare), Value::Whole(_)) => written(bare, usual),
                (Some(bare), Value::Real(number)) if number.is_finite() => written(bare, usual),
                _ => like(),
            };
            let bare = bare.as_deref().unwrap_or("this number");
            return Err(Problem::new("missing-unit", format!("{bare} has no unit; {what} needs one"), fix));
        }
        other => {
            let message = format!("{what} is text with a unit, not a {}", other.type_name());
            return Err(Problem::new("wrong-type", message, like()));
        }
    };
    let trimmed = text.trim_matches(is_space);
    let Some((number, rest)) = Number::read(trimmed) else {
        return Err(Problem::new("bad-quantity", format!("\"{}\" is not {what}", printable(text)), like()));
    };
    let unit = rest.trim_start_matches(is_space);
    if unit.is_empty() {
        let message = format!("\"{}\" has no unit; {what} needs one", printable(text));
        return Err(Problem::new("missing-unit", message, written(number.text, usual)));
    }
    Ok((number, unit))
}

/// White space as defined by Python's regular expressions.
pub(crate) fn is_space(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\x1c'..='\x1f')
}

/// Suggestions for a number without a unit.
fn written(number: &str, usual: &[&str]) -> String {
    if usual == ["%"] {
        let share = Number::read(number).and_then(|(number, _)| number.percent());
        let of_all = share.map_or(String::new(), |share| format!("\"{share}%\" for a share of {number}, or "));
        return format!("write {of_all}\"{number}%\"");
    }
    let choices: Vec<_> = usual.iter().map(|unit| format!("\"{number} {unit}\"")).collect();
    format!("write {}", choices.join(" or "))
}

fn unknown(unit: &str, what: &str, fix: String) -> Problem {
    Problem::new("unknown-unit", format!("\"{}\" is not a unit of {what}", printable(unit)), fix)
}

fn units_here(units: &[&str]) -> String {
    format!("units here: {}", units.join(", "))
}

fn whole(number: &Number, scale: u64, what: &str, finest: &str, given: &Value) -> Result<i128, Problem> {
    match number.times(scale) {
        Amount::Whole(amount) => Ok(amount),
        Amount::Finer => {
            let text = printable(&python::text(given));
            let message = format!("\"{text}\" is finer than {finest}, the resolution of {what}");
            Err(Problem::new("bad-quantity", message, "round it"))
        }
    }
}

fn ranged(amount: i128, low: u64, high: u64, given: &Value, limits: &str, example: &str) -> Result<u64, Problem> {
    match u64::try_from(amount) {
        Ok(amount) if (low..=high).contains(&amount) => Ok(amount),
        _ => {
            let message = format!("\"{}\" is outside {limits}", printable(&python::text(given)));
            Err(Problem::new("out-of-range", message, format!("write e.g. \"{example}\"")))
        }
    }
}

/// Writes the amount in the largest of `units` (sorted from small to large) in which it is at least 1.
fn print(to: &mut fmt::Formatter, amount: u64, units: Units) -> fmt::Result {
    let (name, scale) = units.iter().rev().find(|(_, scale)| amount >= *scale).unwrap_or(&units[0]);
    write!(to, "{} {name}", decimal(amount.into(), (*scale).into()))
}

const RATES: Units =
    &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000), ("Tbit/s", 1_000_000_000_000)];

impl Quantity for Rate {
    const NAME: &'static str = "Rate";
    const MEANING: &'static str = "a rate: bit/s, kbit/s, Mbit/s, Gbit/s or Tbit/s";
    const EXAMPLES: &'static [&'static str] = &["50 Mbit/s", "2.5 Gbit/s"];

    fn parse(given: &Value) -> Result<Rate, Problem> {
        let (number, unit) = split(given, "a rate", "50 Mbit/s", &["Mbit/s"])?;
        let lower = unit.to_lowercase();
        let known = RATES.iter().find(|(name, _)| {
            let name = name.to_lowercase();
            lower == name || lower == name.trim_end_matches("/s")
        });
        let Some((_, scale)) = known else {
            let bits = match lower.as_str() {
                "bps" => "bit/s",
                "kbps" => "kbit/s",
                "mbps" => "Mbit/s",
                "gbps" => "Gbit/s",
                "tbps" => "Tbit/s",
                _ => {
                    let names: Vec<&str> = RATES.iter().map(|(name, _)| *name).collect();
                    return Err(unknown(unit, "rate", units_here(&names)));
                }
            };
            // Most people mean bits by this unit, but tc means bytes. The factor is eight, so do not guess.
            let fix = format!("tc reads {unit} as bytes a second, others as bits: write {bits}");
            return Err(unknown(unit, "rate", fix));
        };
        let amount = whole(&number, *scale, "a rate", "1 bit/s", given)?;
        let bps = ranged(amount, 1, 10_000_000_000_000, given, "1 bit/s … 10 Tbit/s", "50 Mbit/s")?;
        Ok(Rate { bps })
    }

    fn amount(self) -> u64 {
        self.bps
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        print(to, self.bps, RATES)
    }
}

const TIMES: Units = &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
const LONGEST_NS: u64 = 30 * 86_400 * 1_000_000_000;

fn nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit.to_lowercase().as_str() {
        "ns" => 1,
        "us" | "µs" | "μs" | "usec" | "usecs" => 1_000,
        "ms" | "msec" | "msecs" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "min" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        "d" | "days" => 86_400 * 1_000_000_000,
        _ => return None,
    })
}

impl Quantity for Span {
    const NAME: &'static str = "Span";
    const MEANING: &'static str = "a length of time: ns, us, ms, s, min, h or d";
    const EXAMPLES: &'static [&'static str] = &["20 ms", "60 s", "3 h"];

    fn parse(given: &Value) -> Result<Span, Problem> {
        let (number, unit) = split(given, "a length of time", "20 ms", &["s", "ms"])?;
        let Some(scale) = nanoseconds(unit) else {
            return Err(unknown(unit, "time", units_here(&["ns", "us", "ms", "s", "min", "h", "d"])));
        };
        let amount = whole(&number, scale, "time", "1 ns", given)?;
        Ok(Span { ns: ranged(amount, 0, LONGEST_NS, given, "0 s … 30 d", "20 ms")? })
    }

    fn amount(self) -> u64 {
        self.ns
    }
}

impl fmt::Display for Span {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        if self.ns == 0 { to.write_str("0 s") } else { print(to, self.ns, TIMES) }
    }
}

const DECIMAL: Units =
    &[("bytes", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000)];
const BINARY: Units = &[("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

fn bytes(unit: &str) -> Option<u64> {
    let lower = unit.to_lowercase();
    let known = DECIMAL.iter().chain(BINARY).find(|(name, _)| name.to_lowercase() == lower);
    known.map(|(_, scale)| *scale).or((lower == "b" || lower == "byte").then_some(1))
}

impl Quantity for Size {
    const NAME: &'static str = "Size";
    const MEANING: &'static str = "a size: bytes, kB, MB, GB, TB (thousands) or KiB, MiB, GiB, TiB (1024s)";
    const EXAMPLES: &'static [&'static str] = &["64 MiB", "10 MB", "1500 bytes"];

    fn parse(given: &Value) -> Result<Size, Problem> {
        let (number, unit) = split(given, "a size", "64 MiB", &["bytes"])?;
        let Some(scale) = bytes(unit) else {
            let known: Vec<&str> = DECIMAL.iter().chain(BINARY).map(|(name, _)| *name).collect();
            return Err(unknown(unit, "size", units_here(&known)));
        };
        let amount = whole(&number, scale, "a size", "1 byte", given)?;
        let bytes = ranged(amount, 0, 1_000_000_000_000_000_000, given, "0 bytes … 1000000 TB", "64 MiB")?;
        Ok(Size { bytes })
    }

    fn amount(self) -> u64 {
        self.bytes
    }
}

impl fmt::Display for Size {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self.bytes {
            0 => to.write_str("0 bytes"),
            1 => to.write_str("1 byte"),
            bytes if bytes % 1024 == 0 => {
                let (name, scale) = BINARY.iter().rev().find(|(_, scale)| bytes % scale == 0).expect("1024 divides it");
                write!(to, "{} {name}", bytes / scale)
            }
            bytes if bytes % 1000 == 0 => print(to, bytes, DECIMAL),
            bytes => write!(to, "{bytes} bytes"),
        }
    }
}

const PERCENT: u64 = 10_000_000;
pub(crate) const PPB: u64 = 1_000_000_000;

impl Quantity for Loss {
    const NAME: &'static str = "Loss";
    const MEANING: &'static str = "a share of packets: percent, 0% to 100%";
    const EXAMPLES: &'static [&'static str] = &["1%", "0.01%"];

    fn parse(given: &Value) -> Result<Loss, Problem> {
        let (number, unit) = split(given, "a loss", "1%", &["%"])?;
        if !["%", "percent"].contains(&unit.to_lowercase().as_str()) {
            return Err(unknown(unit, "loss", "write it in percent, like 1%".into()));
        }
        let amount = whole(&number, PERCENT, "a loss", "1e-7 %", given)?;
        Ok(Loss { ppb: ranged(amount, 0, PPB, given, "0% … 100%", "1%")? })
    }

    fn amount(self) -> u64 {
        self.ppb
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        write!(to, "{}%", decimal(self.ppb.into(), PERCENT.into()))
    }
}

const PACKETS: [&str; 5] = ["p", "packet", "packets", "pkt", "pkts"];

impl Quantity for Burst {
    const NAME: &'static str = "Burst";
    const MEANING: &'static str = "a mean number of packets: packets, 1 packet to 1000000 packets";
    const EXAMPLES: &'static [&'static str] = &["5 packets", "2.5 packets"];

    fn parse(given: &Value) -> Result<Burst, Problem> {
        let (number, unit) = split(given, "a burst", "5 packets", &["packets"])?;
        if !PACKETS.contains(&unit.to_lowercase().as_str()) {
            return Err(unknown(unit, "a burst", units_here(&["packets"])));
        }
        let amount = whole(&number, 1_000, "a burst", "0.001 packets", given)?;
        let limits = "1 packet … 1000000 packets";
        Ok(Burst { milli: ranged(amount, 1_000, PPB, given, limits, "5 packets")? })
    }

    fn amount(self) -> u64 {
        self.milli
    }
}

impl fmt::Display for Burst {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self.milli {
            1_000 => to.write_str("1 packet"),
            milli => write!(to, "{} packets", decimal(milli.into(), 1_000)),
        }
    }
}

impl Quantity for Queue {
    const NAME: &'static str = "Queue";
    const MEANING: &'static str =
        "a tail-drop queue's limit: packets, a size, a length of time at the link's rate, or bdp";
    const EXAMPLES: &'static [&'static str] = &["1000 packets", "64 KiB", "48 ms", "1 bdp"];

    fn parse(given: &Value) -> Result<Queue, Problem> {
        let (number, unit) = split(given, "a queue", "1000 packets", &["packets"])?;
        let lower = unit.to_lowercase();
        let (kind, scale, finest, most) = if PACKETS.contains(&lower.as_str()) {
            (Unit::Packets, 1, "1 packet", 1_000_000_000)
        } else if lower == "bdp" {
            (Unit::Bdp, PPB, "1e-9 bdp", 1_000_000 * PPB)
        } else if let Some(scale) = bytes(unit) {
            (Unit::Bytes, scale, "1 byte", 1 << 40)
        } else if let Some(scale) = nanoseconds(unit) {
            (Unit::Ns, scale, "1 ns", 3_600 * PPB)
        } else {
            let known = units_here(&["packets", "bytes", "KiB", "MiB", "ms", "us", "bdp"]);
            return Err(unknown(unit, "a queue", known));
        };
        let amount = whole(&number, scale, "a queue", finest, given)?;
        if amount == 0 {
            let message = "a queue of zero would drop every packet that meets another";
            let fix = "the packet in transmission does not wait; the smallest queue is \"1 packet\"";
            return Err(Problem::new("zero-queue", message, fix));
        }
        match u64::try_from(amount) {
            Ok(amount) if amount <= most => Ok(Queue { unit: kind, amount }),
            _ => {
                let message = format!("\"{}\" is outside the limits of a queue", printable(&python::text(given)));
                let limits = "\"1 packet\" … \"1000000000 packets\", \"1 TiB\", \"3600 s\" or \"1000000 bdp\"";
                Err(Problem::new("out-of-range", message, format!("choose within {limits}")))
            }
        }
    }

    fn amount(self) -> u64 {
        self.amount
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match (self.unit, self.amount) {
            (Unit::Bytes, bytes) => Size { bytes }.fmt(to),
            (Unit::Ns, ns) => Span { ns }.fmt(to),
            (Unit::Packets, 1) => to.write_str("1 packet"),
            (Unit::Packets, count) => write!(to, "{count} packets"),
            (Unit::Bdp, parts) => write!(to, "{} bdp", decimal(parts.into(), PPB.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<A: Quantity>(text: &str) -> String {
        match A::parse(&Value::text(text)) {
            Ok(read) => read.to_string(),
            Err(problem) => format!("{}: {}; {}", problem.code, problem.message, problem.fix),
        }
    }

    #[test]
    fn printed_quantities_read_back() {
        for text in ["50 Mbit/s", "2.5 Gbit/s", "1 bit/s"] {
            assert_eq!(round_trip::<Rate>(text), text);
        }
        assert_eq!(round_trip::<Rate>("1e3 mbit"), "1 Gbit/s");
        assert_eq!(round_trip::<Span>("0.5min"), "30 s");
        assert_eq!(round_trip::<Size>("65536 B"), "64 KiB");
        assert_eq!(round_trip::<Loss>("0.0000001%"), "0.0000001%");
        assert_eq!(round_trip::<Queue>("0.25 bdp"), "0.25 bdp");
        assert_eq!(round_trip::<Burst>("2.50 pkts"), "2.5 packets");
        assert_eq!(round_trip::<Burst>("1 packets"), "1 packet");
    }

    #[test]
    fn quantities_are_never_rounded() {
        assert_eq!(
            round_trip::<Span>("0.1 ns"),
            "bad-quantity: \"0.1 ns\" is finer than 1 ns, the resolution of time; round it"
        );
        assert_eq!(round_trip::<Rate>("99e99 Tbit/s").split(':').next(), Some("out-of-range"));
    }

    #[test]
    fn bare_number_error_suggests_units() {
        assert_eq!(
            round_trip::<Loss>("0.015"),
            "missing-unit: \"0.015\" has no unit; a loss needs one; write \"1.5%\" for a share of 0.015, or \"0.015%\""
        );
    }
}
