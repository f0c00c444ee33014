//! Datagrams that are sent on a schedule, without congestion control.

use crate::scenario::{Arrivals, DURATION_MAX_NS, Paced, Sizes, Times, is_usual, within};
use serde::{Deserialize, Serialize};

/// Largest payload in bytes: what Ethernet, IPv4 and UDP headers leave of a frame of 65,535 bytes.
const PAYLOAD_MAX: u64 = 65_400;
/// At most one datagram per microsecond.
const EVERY_MIN_NS: u64 = 1_000;

/// Datagrams of a fixed payload at a mean rate: at a constant interval, with on and off times, or at random intervals.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Datagrams {
    pub bytes: u64,
    pub rate_bps: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_off_ns: Option<[u64; 2]>,
    /// Whether intervals are random and independent (Poisson process).
    #[serde(default, skip_serializing_if = "is_usual")]
    pub poisson: bool,
}

impl Datagrams {
    /// An application that writes on the same schedule.
    pub fn writes(&self) -> Paced {
        Paced::new(self.bytes, self.rate_bps, self.on_off_ns)
    }

    /// Arrivals with this mean interval and size.
    pub fn arrivals(&self) -> Arrivals {
        Arrivals { times: Times::PoissonNs(self.every_ns()), sizes: Sizes::Fixed(self.bytes), open: 1 }
    }

    /// Mean interval between two datagrams while it sends.
    pub fn every_ns(&self) -> u64 {
        let ns = (u128::from(self.bytes) * 8_000_000_000 + u128::from(self.rate_bps) / 2) / u128::from(self.rate_bps);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    pub(super) fn check(&self, at: &str) -> Result<(), String> {
        within(self.bytes, 1, PAYLOAD_MAX, &format!("{at}.bytes"))?;
        self.writes().check(at)?;
        within(self.every_ns(), EVERY_MIN_NS, DURATION_MAX_NS, &format!("{at}: ns from one to the next"))?;
        if self.poisson && self.on_off_ns.is_some() {
            return Err(format!("{at} come at random, and on and off in turn"));
        }
        Ok(())
    }
}
