//! Applications that write or read on their own schedule.

use super::{DURATION_MAX_NS, within};
use sawtooth_units::Time;
use serde::{Deserialize, Serialize};

/// Largest number of bytes per write or read.
const BYTES_MAX: u64 = 1_000_000_000;
const NANOS_PER_SEC: u128 = 1_000_000_000;

/// An application that writes or reads `bytes` at a time, at a mean rate. It alternates between on and off times, or is
/// always on if there are none.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Paced {
    pub bytes: u64,
    pub rate_bps: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_off_ns: Option<[u64; 2]>,
    /// A read takes what has arrived, and the reader sleeps after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

impl Paced {
    pub fn new(bytes: u64, rate_bps: u64, on_off_ns: Option<[u64; 2]>) -> Self {
        Paced { bytes, rate_bps, on_off_ns, partial: false }
    }

    pub(super) fn check(&self, at: &str) -> Result<(), String> {
        within(self.bytes, 1, BYTES_MAX, &format!("{at}.bytes"))?;
        // At most one write or read per microsecond.
        within(self.rate_bps, 1, self.bytes.saturating_mul(8_000_000), &format!("{at}.rate_bps"))?;
        for ns in self.on_off_ns.into_iter().flatten() {
            within(ns, 1_000, DURATION_MAX_NS, &format!("{at}.on_off_ns"))?;
        }
        Ok(())
    }

    /// The time of the next write or read after `now`, for an application that started at `began`. Times are computed
    /// from the rate, so that rounding errors do not add up.
    pub fn next(&self, began: Time, now: Time) -> Time {
        let Paced { bytes, rate_bps, on_off_ns, .. } = *self;
        let since = now.since(began).nanos();
        let (cycle, within) =
            on_off_ns.map_or((0, since), |[on, off]| (since - since % (on + off), since % (on + off)));
        let (bits, rate) = (u128::from(bytes) * 8 * NANOS_PER_SEC, u128::from(rate_bps));
        // Times are rounded up to a nanosecond.
        let number = u128::from(within) * rate / bits + 1;
        let next = u64::try_from((number * bits).div_ceil(rate)).unwrap_or(u64::MAX);
        let next = match on_off_ns {
            Some([on, off]) if next >= on => on + off,
            _ => next,
        };
        Time::from_nanos(began.nanos().saturating_add(cycle).saturating_add(next))
    }
}
