//! Readers: applications at the receiving host that request their data.

use crate::scenario::{DURATION_MAX_NS, RATE_MAX_BPS, Sizes, within};
use serde::{Deserialize, Serialize};

/// Maximum number of parallel connections of a page, and of its objects.
const PARALLEL_MAX: u64 = 256;
const OBJECTS_MAX: u64 = 100_000;
/// Maximum number of bit rates of a video.
const LADDER_MAX: usize = 100;

/// What a reader requests, and when. The reader opens its connections itself.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Application {
    /// Responses one after the other over one connection.
    Requests { sizes: Sizes, think: Think },
    /// Pages with several objects over parallel connections, repeated.
    Pages {
        objects: u64,
        sizes: Sizes,
        think: Think,
        connections: usize,
        /// Whether the next page uses the same connections again.
        keep: bool,
    },
    /// Segments of a video, loaded into a playback buffer.
    Video { rates_bps: Vec<u64>, segment_ns: u64, buffer_ns: u64, rule: Rule },
}

/// How long a reader waits before its next request.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Think {
    FixedNs(u64),
    /// An exponential distribution with this mean.
    ExponentialNs(u64),
}

/// How the bit rate of the next video segment is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// By the buffer level: BBA-0 (Huang and others 2014).
    Buffer,
    /// The highest bit rate up to 90% of the mean throughput of the last four segments.
    Throughput,
}

impl Application {
    /// Number of connections of one reader.
    pub fn connections(&self) -> usize {
        match self {
            Application::Requests { .. } | Application::Video { .. } => 1,
            Application::Pages { connections, .. } => *connections,
        }
    }

    pub(super) fn check(&self, count: usize, at: &str) -> Result<(), String> {
        let think = |think: &Think| match *think {
            Think::FixedNs(ns) => within(ns, 0, DURATION_MAX_NS, &format!("{at}.think.fixed_ns")),
            Think::ExponentialNs(ns) => within(ns, 1, DURATION_MAX_NS, &format!("{at}.think.exponential_ns")),
        };
        let drawn = |sizes: &Sizes| match sizes {
            Sizes::Each(_) => Err(format!("{at}.sizes.each is a list without times")),
            _ => sizes.check(&format!("{at}.sizes")),
        };
        match self {
            Application::Requests { sizes, think: given } => {
                drawn(sizes)?;
                think(given)
            }
            Application::Pages { objects, sizes, think: given, connections, .. } => {
                within(*objects, 1, OBJECTS_MAX, &format!("{at}.objects"))?;
                within(*connections as u64, 1, PARALLEL_MAX, &format!("{at}.connections"))?;
                if !count.is_multiple_of(*connections) {
                    return Err(format!("{at}: {count} connections are no whole number of readers"));
                }
                drawn(sizes)?;
                think(given)
            }
            Application::Video { rates_bps, segment_ns, buffer_ns, .. } => {
                within(rates_bps.len() as u64, 1, LADDER_MAX as u64, &format!("{at}.rates_bps"))?;
                if !rates_bps.is_sorted_by(|low, high| low < high) {
                    return Err(format!("{at}.rates_bps are not in order"));
                }
                for &bps in rates_bps {
                    within(bps, 1, RATE_MAX_BPS, &format!("{at}.rates_bps"))?;
                }
                within(*segment_ns, 1_000_000, DURATION_MAX_NS, &format!("{at}.segment_ns"))?;
                within(*buffer_ns, *segment_ns, DURATION_MAX_NS, &format!("{at}.buffer_ns"))
            }
        }
    }
}
