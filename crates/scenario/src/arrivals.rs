//! Transfers that start at random times: a flow's `source` of kind `arrivals`.

use crate::files::Files;
use crate::kinds::Kind;
use crate::problem::{FieldProblems, Problem, one};
use crate::python;
use crate::schema::{self, Definitions};
use crate::sizes::Sizes;
use crate::table::{Field, ReadContext, Rule, table};
use crate::units::{Loss, PPB, Quantity, Rate, Span};
use crate::value::Value;
use crate::view::View;
use sawtooth_net::scenario as net;
use std::fmt;

const SHORTEST_NS: u64 = 1_000;
const LONGEST_NS: u64 = 30 * 86_400 * PPB;

/// The mean load that transfers offer: a rate, or a share of the rate of the slowest transmitter on their path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    Rate(Rate),
    Share(Loss),
}

impl fmt::Display for Load {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Load::Rate(rate) => rate.fmt(to),
            Load::Share(share) => share.fmt(to),
        }
    }
}

impl Field for Load {
    fn read(given: &Value, _: &Rule, _: ReadContext) -> Result<Load, FieldProblems> {
        let is_share = given.as_text().is_some_and(|text| text.trim_end_matches(crate::units::is_space).ends_with('%'));
        if is_share { Loss::parse(given).map(Load::Share) } else { Rate::parse(given).map(Load::Rate) }.map_err(one)
    }

    fn write(&self) -> Value {
        Value::Text(self.to_string())
    }

    fn view(&self) -> View {
        match self {
            Load::Rate(rate) => rate.view(),
            Load::Share(share) => share.view(),
        }
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        schema::any([Rate::schema(rule, definitions), Loss::schema(rule, definitions)])
    }
}

table! {
    /// Transfers that arrive over time, each over a new connection.
    Arrivals check agrees {
        kind: Kind, Any, Needed, "`arrivals`";
        every: Option<Span>, Between("1 us", "1 h"), Nothing,
            "mean time between transfers; arrival times are random (Poisson)";
        load: Option<Load>, Any, Nothing,
            "instead of `every`: mean offered load, as a payload rate, or as a share such as `30%` of the slowest rate on the path; arrival times are random as well";
        times: Option<String>, Any, Nothing,
            "instead of `every`: a CSV file with the column `t_s`, and `bytes` if `sizes` is absent";
        sizes: Option<Sizes>, Any, Nothing, "size of a transfer: `10 kB`, or a table";
        open: u64, Within(1, 100_000), Whole(10_000), "most transfers open at once; later ones wait in order";
    }
}

fn agrees(arrivals: &Arrivals, files: &dyn Files) -> Result<(), Problem> {
    let all =
        [("every", arrivals.every.is_some()), ("load", arrivals.load.is_some()), ("times", arrivals.times.is_some())];
    let given: Vec<&str> = all.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect();
    match given.as_slice() {
        [_] => {}
        [] => {
            let fix = "add one of every = \"20 ms\", load = \"30%\" or times = \"transfers.csv\"";
            return Err(Problem::new("missing-field", "this source does not say when transfers start", fix).of("every"));
        }
        [_, second, ..] => {
            let both = given.join(" and ");
            let (message, fix) = (format!("{both} exclude each other"), format!("remove all but one of {both}"));
            return Err(Problem::new("conflict", message, fix).of(*second));
        }
    }
    if let Some(name) = &arrivals.times {
        let listed = files.transfers(name).map_err(|problem| problem.of("times"))?;
        if !listed.bytes.is_empty() && arrivals.sizes.is_some() {
            let message = "the file in times has the size of each transfer, so sizes would be ignored";
            return Err(Problem::new("conflict", message, "remove sizes").of("sizes"));
        }
        if !listed.bytes.is_empty() {
            return Ok(());
        }
    }
    if arrivals.sizes.is_none() {
        let message = "this source does not say how large transfers are";
        return Err(Problem::new("missing-field", message, "add sizes = \"100 kB\"").of("sizes"));
    }
    if arrivals.load == Some(Load::Share(Loss { ppb: 0 })) {
        return Err(Problem::new(
            "out-of-range",
            "a load of 0% sends nothing",
            "write load = \"30%\", or remove the flow",
        )
        .of("load"));
    }
    Ok(())
}

impl Arrivals {
    /// Converts to the core's form. `bottleneck_bps`: rate of the slowest transmitter on the path.
    pub fn compile(&self, bottleneck_bps: Option<u64>, files: &dyn Files) -> Result<net::Arrivals, Problem> {
        let open = self.open as usize;
        let sizes = self.sizes.as_ref().map_or(Ok(net::Sizes::Fixed(0)), |sizes| sizes.compile(files))?;
        if let Some(name) = &self.times {
            let listed = files.transfers(name)?;
            let sizes = if listed.bytes.is_empty() { sizes } else { net::Sizes::Each(listed.bytes) };
            return Ok(net::Arrivals { times: net::Times::AtNs(listed.times_ns), sizes, open });
        }
        Ok(net::Arrivals { times: net::Times::PoissonNs(self.mean_ns(bottleneck_bps, files)?), sizes, open })
    }

    fn mean_ns(&self, bottleneck_bps: Option<u64>, files: &dyn Files) -> Result<u64, Problem> {
        if let Some(every) = self.every {
            return Ok(every.ns);
        }
        let (Some(load), Some(sizes)) = (self.load, &self.sizes) else {
            unreachable!("what says neither when nor how much was refused")
        };
        // Bits per second, times 10^9.
        let load_ppb = match (load, bottleneck_bps) {
            (Load::Rate(rate), _) => u128::from(rate.bps) * u128::from(PPB),
            (Load::Share(share), Some(bps)) => u128::from(bps) * u128::from(share.ppb),
            (Load::Share(_), None) => {
                let message = format!("\"{load}\" is a share of a link's rate, and no link on this way has a rate");
                return Err(Problem::new("conflict", message, "write it as a rate: load = \"30 Mbit/s\"").of("load"));
            }
        };
        let mean_ns = quotient(sizes.mean_bytes(files)?, load_ppb);
        match mean_ns {
            Some(ns) if (SHORTEST_NS..=LONGEST_NS).contains(&ns) => Ok(ns),
            _ => {
                let seconds = mean_ns.map_or(f64::INFINITY, |ns| ns as f64) / 1e9;
                let every = python::general(seconds, 3);
                let message = format!("\"{load}\" with these sizes starts a transfer every {every} s");
                Err(Problem::new("out-of-range", message, "choose a load that starts a transfer every 1 us … 30 d")
                    .of("load"))
            }
        }
    }
}

/// The nanoseconds in which this load offers `bytes`, exact, with halves rounded to even. None if too large.
fn quotient(bytes: f64, load_ppb: u128) -> Option<u64> {
    // A float is a 53-bit number times a power of two. A mean is at least 1 byte and at most 10^15 bytes, so everything
    // fits in 128 bits.
    let (mantissa, exponent) = libm::frexp(bytes);
    let over = (mantissa * 9_007_199_254_740_992.0) as u128 * 8 * u128::from(PPB) * u128::from(PPB);
    let under = load_ppb << u32::try_from(53 - exponent).ok()?;
    let (whole, rest) = (over / under, over % under);
    let up = rest > under - rest || (rest == under - rest && whole % 2 == 1);
    u64::try_from(whole + u128::from(up)).ok()
}
