//! Sizes of transfers: a constant or a distribution.

use crate::files::Files;
use crate::kinds::{Kind, kinds};
use crate::problem::{FieldProblems, Problem, one};
use crate::python;
use crate::schema::Definitions;
use crate::table::{Field, ReadContext, Rule, table};
use crate::units::{PPB, Quantity, Size};
use crate::value::Value;
use crate::view::View;
use sawtooth_net::scenario as net;

const BYTES: Rule = Rule::Between("1 byte", "1000 TB");
const LARGEST: u64 = 1_000_000_000_000_000;

table! {
    /// Log-normal sizes.
    Lognormal {
        kind: Kind, Any, Needed, "`lognormal`";
        mean: Size, BYTES, Needed, "mean size";
        sigma: f64, Decimal(0.0, 5.0), Needed, "standard deviation of the natural logarithm; 0: every size is the mean";
    }
}

table! {
    /// Sizes with a long tail: a Pareto distribution cut at both ends.
    Pareto check pareto_agrees {
        kind: Kind, Any, Needed, "`pareto`";
        least: Size, BYTES, Needed, "smallest size";
        most: Size, BYTES, Needed, "largest size";
        shape: f64, Decimal(0.01, 100.0), Needed, "shape parameter; the smaller, the longer the tail";
    }
}

fn pareto_agrees(pareto: &Pareto, _: &dyn Files) -> Result<(), Problem> {
    if pareto.least <= pareto.most {
        return Ok(());
    }
    let message = format!("\"{}\" is more than the most, \"{}\"", pareto.least, pareto.most);
    Err(Problem::new("out-of-range", message, "swap least and most").of("least"))
}

table! {
    /// Sizes from a file with their cumulative distribution.
    Cdf check cdf_can_be_read {
        kind: Kind, Any, Needed, "`cdf`";
        file: String, Any, Needed, "file with one line per size: bytes, and the share of transfers that are no larger";
    }
}

fn cdf_can_be_read(cdf: &Cdf, files: &dyn Files) -> Result<(), Problem> {
    files.distribution(&cdf.file).map(|_| ()).map_err(|problem| problem.of("file"))
}

kinds! {
    /// A distribution of sizes.
    Distribution of "distribution of sizes",
    like "sizes = \"10 kB\", or sizes = { kind = \"lognormal\", mean = \"100 kB\", sigma = 1 }" {
        "lognormal" Lognormal,
        "pareto" Pareto,
        "cdf" Cdf,
    }
}

/// The values that a scenario file may give as sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    Fixed(Size),
    Of(Distribution),
}

impl Field for Sizes {
    fn read(given: &Value, _: &Rule, at: ReadContext) -> Result<Sizes, FieldProblems> {
        if let Value::Table(table) = given {
            return Distribution::read(table, at.files).map(Sizes::Of);
        }
        let size = Size::parse(given).map_err(one)?;
        if (1..=LARGEST).contains(&size.bytes) {
            return Ok(Sizes::Fixed(size));
        }
        let message = format!("\"{size}\" is outside 1 byte … 1000 TB");
        Err(one(Problem::new("out-of-range", message, "write it like \"10 kB\"")))
    }

    fn write(&self) -> Value {
        match self {
            Sizes::Fixed(size) => size.write(),
            Sizes::Of(distribution) => distribution.write(),
        }
    }

    fn view(&self) -> View {
        match self {
            Sizes::Fixed(size) => size.view(),
            Sizes::Of(distribution) => distribution.view(),
        }
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        let text = Size::schema(rule, definitions);
        Distribution::schema(Some(text), definitions)
    }
}

impl Sizes {
    /// Converts to the core's form.
    pub fn compile(&self, files: &dyn Files) -> Result<net::Sizes, Problem> {
        let ppb = |number: f64| python::round(number * PPB as f64) as u64;
        Ok(match self {
            Sizes::Fixed(size) => net::Sizes::Fixed(size.bytes),
            Sizes::Of(Distribution::Lognormal(one)) => {
                net::Sizes::Lognormal { mean_bytes: one.mean.bytes, sigma_ppb: ppb(one.sigma) }
            }
            Sizes::Of(Distribution::Pareto(one)) => net::Sizes::Pareto {
                least_bytes: one.least.bytes,
                most_bytes: one.most.bytes,
                shape_ppb: ppb(one.shape),
            },
            Sizes::Of(Distribution::Cdf(one)) => net::Sizes::Cdf(files.distribution(&one.file)?),
        })
    }

    /// Mean bytes of a transfer.
    pub fn mean_bytes(&self, files: &dyn Files) -> Result<f64, Problem> {
        Ok(match self {
            Sizes::Fixed(size) => size.bytes as f64,
            Sizes::Of(Distribution::Lognormal(one)) => one.mean.bytes as f64,
            Sizes::Of(Distribution::Pareto(one)) => one.mean_bytes(),
            Sizes::Of(Distribution::Cdf(one)) => {
                let points = files.distribution(&one.file)?;
                let mut total = (u128::from(points[0][0]) * u128::from(points[0][1])) as f64;
                for two in points.windows(2) {
                    let [[low, begins], [high, ends]] = [two[0], two[1]];
                    total += (low + high) as f64 / 2.0 * (ends - begins) as f64;
                }
                (total / PPB as f64).max(1.0)
            }
        })
    }
}

impl Pareto {
    fn mean_bytes(&self) -> f64 {
        let (low, high, shape) = (self.least.bytes as f64, self.most.bytes as f64, self.shape);
        if self.least == self.most {
            return low;
        }
        let share = 1.0 - libm::pow(low / high, shape);
        let is_one = (shape - 1.0).abs() <= (1e-9 * shape.max(1.0)).max(1e-9);
        if is_one {
            return low * libm::log(high / low) / share;
        }
        shape / (shape - 1.0) * (low - high * libm::pow(low / high, shape)) / share
    }
}
