//! Transfers that start over time: when they start, and their sizes.

use crate::scenario::{CONNECTIONS_MAX, DURATION_MAX_NS, within};
use serde::{Deserialize, Serialize};

/// Largest transfer in bytes: a petabyte.
const TRANSFER_MAX: u64 = 1_000_000_000_000_000;
const PPB: u64 = 1_000_000_000;

/// Transfers, each over its own connection.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    pub times: Times,
    pub sizes: Sizes,
    /// Maximum number of transfers at a time. Others wait until one has ended.
    pub open: usize,
}

/// When transfers start, since the flow's start.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Times {
    /// A Poisson process, with this mean interval in nanoseconds.
    PoissonNs(u64),
    /// At these times, in order.
    AtNs(Vec<u64>),
}

/// Sizes in bytes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Sizes {
    Fixed(u64),
    /// A lognormal distribution; `sigma_ppb` is the standard deviation of the logarithm.
    Lognormal {
        mean_bytes: u64,
        sigma_ppb: u64,
    },
    /// A Pareto distribution limited at both ends.
    Pareto {
        least_bytes: u64,
        most_bytes: u64,
        shape_ppb: u64,
    },
    /// Points of the cumulative distribution: bytes, and the share of sizes up to that. Linear between points.
    Cdf(Vec<[u64; 2]>),
    /// One size for each start time, in the same order.
    Each(Vec<u64>),
}

impl Arrivals {
    pub(super) fn check(&self, at: &str) -> Result<(), String> {
        within(self.open as u64, 1, CONNECTIONS_MAX as u64, &format!("{at}.open"))?;
        match &self.times {
            Times::PoissonNs(mean) => within(*mean, 1_000, DURATION_MAX_NS, &format!("{at}.times"))?,
            Times::AtNs(times) => {
                if !times.is_sorted() || times.last().is_some_and(|&last| last > DURATION_MAX_NS) {
                    return Err(format!("{at}.times are not in order, or later than any run"));
                }
            }
        }
        match (&self.sizes, &self.times) {
            (Sizes::Each(all), Times::AtNs(times)) if times.len() == all.len() => {}
            (Sizes::Each(_), _) => return Err(format!("{at}.sizes.each are not as many as times")),
            _ => {}
        }
        self.sizes.check(&format!("{at}.sizes"))
    }
}

impl Sizes {
    pub(super) fn check(&self, at: &str) -> Result<(), String> {
        let bytes = |value: u64, what: &str| within(value, 1, TRANSFER_MAX, &format!("{at}.{what}"));
        match self {
            Sizes::Fixed(size) => bytes(*size, "fixed"),
            Sizes::Lognormal { mean_bytes, sigma_ppb } => {
                within(*sigma_ppb, 0, 10 * PPB, &format!("{at}.sigma_ppb"))?;
                bytes(*mean_bytes, "mean_bytes")
            }
            Sizes::Pareto { least_bytes, most_bytes, shape_ppb } => {
                within(*shape_ppb, PPB / 100, 100 * PPB, &format!("{at}.shape_ppb"))?;
                bytes(*least_bytes, "least_bytes")?;
                within(*most_bytes, *least_bytes, TRANSFER_MAX, &format!("{at}.most_bytes"))
            }
            Sizes::Cdf(points) => {
                let rises = points.windows(2).all(|two| two[0][0] <= two[1][0] && two[0][1] <= two[1][1]);
                let first = points.first().is_some_and(|&[size, share]| size > 0 || share == 0);
                let last =
                    points.last().is_some_and(|&[size, share]| (1..=TRANSFER_MAX).contains(&size) && share == PPB);
                if rises && first && last { Ok(()) } else { Err(format!("{at}.cdf is no distribution")) }
            }
            Sizes::Each(all) => all.iter().try_for_each(|&size| bytes(size, "each")),
        }
    }
}
