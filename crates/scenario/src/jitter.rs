//! Jitter: random deviation of a packet's delay, from a named distribution or a file.

use crate::files::Files;
use crate::problem::Problem;
use crate::schema::Definitions;
use crate::table::table;
use crate::units::{Loss, Span};
use crate::value::Value;
use crate::varying::Short;
use sawtooth_net::scenario as net;

/// Entries of a table, as in netem's own tables.
const DEVIATIONS: u32 = 4096;
const SCALE: f64 = 8192.0;

table! {
    /// Random deviation of each packet's delay (tc-netem's `delay TIME JITTER`), never below no delay.
    Jitter check agrees {
        deviation: Span, Any, Needed, "standard deviation; for `uniform`, the largest deviation";
        distribution: String, OneOf(&["uniform", "normal", "pareto", "paretonormal", "table"]), Text("uniform"),
            "`pareto` has a long tail; `paretonormal` is a quarter normal and three quarters pareto";
        table: Option<String>, Any, Nothing,
            "for distribution `table`: a file like tc-netem's `.dist`, whole numbers in 1/8192 of `deviation` with equal probability";
        correlation: Loss, Any, Text("0%"), "correlation of each draw with the previous one";
        ordered: bool, Any, Flag(true), "keep the packets in order; false: each has an independent delay, as in netem";
    }
}

impl Short for Jitter {
    fn text(definitions: &mut Definitions) -> Value {
        definitions.quantity::<Span>()
    }
}

fn agrees(jitter: &Jitter, files: &dyn Files) -> Result<(), Problem> {
    let is_table = jitter.distribution == "table";
    let Some(name) = &jitter.table else {
        let lacking = || {
            Problem::new("missing-field", "distribution = \"table\" needs a file", "write table = \"measured.dist\"")
                .of("table")
        };
        return if is_table { Err(lacking()) } else { Ok(()) };
    };
    if !is_table {
        let message = format!("a table replaces the distribution, so it conflicts with \"{}\"", jitter.distribution);
        let fix = "remove table, or write distribution = \"table\"";
        return Err(Problem::new("conflict", message, fix).of("table"));
    }
    files.deviations(name).map(|_| ()).map_err(|problem| problem.of("table"))
}

impl Jitter {
    /// Converts to the core's form.
    pub fn compile(&self, files: &dyn Files) -> Result<net::Jitter, Problem> {
        let table = match &self.table {
            Some(name) => files.deviations(name)?,
            None => deviations(&self.distribution),
        };
        Ok(net::Jitter { ns: self.deviation.ns, table, correlation_ppb: self.correlation.ppb, ordered: self.ordered })
    }
}

/// 4096 equally probable deviations, in 1/8192 of the standard deviation; none for `uniform`.
///
/// Computed from the inverse of each distribution with mean 0 and standard deviation 1, then limited to 16 bits (four
/// standard deviations), as netem's tables are. For `pareto` this reduces the standard deviation by a quarter.
fn deviations(distribution: &str) -> Vec<i16> {
    let chances = || (0..DEVIATIONS).map(|number| (f64::from(number) + 0.5) / f64::from(DEVIATIONS));
    let normal = || standard(chances().map(inverse_normal).collect());
    // With a shape of 3 the standard deviation is finite, the third moment is not.
    let pareto = || standard(chances().map(|chance| libm::pow(1.0 - chance, -1.0 / 3.0)).collect());
    let values = match distribution {
        "normal" => normal(),
        "pareto" => pareto(),
        "paretonormal" => {
            standard(normal().iter().zip(pareto()).map(|(one, other)| (one + 3.0 * other) / 4.0).collect())
        }
        _ => Vec::new(),
    };
    let entry = |value: f64| libm::rint(value * SCALE).clamp(f64::from(i16::MIN), f64::from(i16::MAX)) as i16;
    values.into_iter().map(entry).collect()
}

fn standard(values: Vec<f64>) -> Vec<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let deviation = libm::sqrt(values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count);
    values.iter().map(|value| (value - mean) / deviation).collect()
}

/// The quantile of the normal distribution: Wichura 1988, algorithm AS 241, PPND16.
fn inverse_normal(chance: f64) -> f64 {
    let over = |value: f64, above: [f64; 8], below: [f64; 8]| {
        let polynomial = |factors: [f64; 8]| factors.iter().fold(0.0, |sum, factor| sum * value + factor);
        polynomial(above) / polynomial(below)
    };
    let q = chance - 0.5;
    if q.abs() <= 0.425 {
        return q * over(0.180625 - q * q, CENTRE.0, CENTRE.1);
    }
    let tail = libm::sqrt(-libm::log(if q <= 0.0 { chance } else { 1.0 - chance }));
    let found = if tail <= 5.0 { over(tail - 1.6, SHOULDER.0, SHOULDER.1) } else { over(tail - 5.0, END.0, END.1) };
    if q < 0.0 { -found } else { found }
}

/// Coefficients of numerator and denominator, highest power first.
type Ratio = ([f64; 8], [f64; 8]);

#[allow(clippy::excessive_precision)] // As printed.
const CENTRE: Ratio = (
    [
        2.5090809287301226727e+3,
        3.3430575583588128105e+4,
        6.7265770927008700853e+4,
        4.5921953931549871457e+4,
        1.3731693765509461125e+4,
        1.9715909503065514427e+3,
        1.3314166789178437745e+2,
        3.3871328727963666080e+0,
    ],
    [
        5.2264952788528545610e+3,
        2.8729085735721942674e+4,
        3.9307895800092710610e+4,
        2.1213794301586595867e+4,
        5.3941960214247511077e+3,
        6.8718700749205790830e+2,
        4.2313330701600911252e+1,
        1.0,
    ],
);

#[allow(clippy::excessive_precision)] // As printed.
const SHOULDER: Ratio = (
    [
        7.74545014278341407640e-4,
        2.27238449892691845833e-2,
        2.41780725177450611770e-1,
        1.27045825245236838258e+0,
        3.64784832476320460504e+0,
        5.76949722146069140550e+0,
        4.63033784615654529590e+0,
        1.42343711074968357734e+0,
    ],
    [
        1.05075007164441684324e-9,
        5.47593808499534494600e-4,
        1.51986665636164571966e-2,
        1.48103976427480074590e-1,
        6.89767334985100004550e-1,
        1.67638483018380384940e+0,
        2.05319162663775882187e+0,
        1.0,
    ],
);

#[allow(clippy::excessive_precision)] // As printed.
const END: Ratio = (
    [
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        1.24266094738807843860e-3,
        2.65321895265761230930e-2,
        2.96560571828504891230e-1,
        1.78482653991729133580e+0,
        5.46378491116411436990e+0,
        6.65790464350110377720e+0,
    ],
    [
        2.04426310338993978564e-15,
        1.42151175831644588870e-7,
        1.84631831751005468180e-5,
        7.86869131145613259100e-4,
        1.48753612908506148525e-2,
        1.36929880922735805310e-1,
        5.99832206555887937690e-1,
        1.0,
    ],
);
