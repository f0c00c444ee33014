//! Datagrams that are sent at their times, whatever becomes of them.

use crate::scenario::{DURATION_MAX_NS, Paced, is_usual, within};
use serde::{Deserialize, Serialize};

/// Of a frame's 65,535 bytes: what Ethernet, IPv4 and UDP leave.
const PAYLOAD_MAX: u64 = 65_400;
/// No more than one in a microsecond.
const EVERY_MIN_NS: u64 = 1_000;

/// So many bytes of payload at a rate: evenly, on and off by turns, or by chance.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Datagrams {
    pub bytes: u64,
    pub rate_bps: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_off_ns: Option<[u64; 2]>,
    /// Each independent of the others (Poisson).
    #[serde(default, skip_serializing_if = "is_usual")]
    pub poisson: bool,
}

impl Datagrams {
    /// The same as an application that writes.
    pub fn writes(&self) -> Paced {
        Paced { bytes: self.bytes, rate_bps: self.rate_bps, on_off_ns: self.on_off_ns }
    }

    /// From one to the next, on average while it sends.
    pub fn every_ns(&self) -> u64 {
        let ns = (u128::from(self.bytes) * 8_000_000_000 + u128::from(self.rate_bps) / 2) / u128::from(self.rate_bps);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    pub(super) fn check(&self, at: &str) -> Result<(), String> {
        within(self.bytes, 1, PAYLOAD_MAX, &format!("{at}.bytes"))?;
        self.writes().check(at)?;
        within(self.every_ns(), EVERY_MIN_NS, DURATION_MAX_NS, &format!("{at}: ns from one to the next"))?;
        if self.poisson && self.on_off_ns.is_some() {
            return Err(format!("{at} come by chance, and on and off by turns"));
        }
        Ok(())
    }
}
