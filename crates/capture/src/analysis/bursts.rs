//! Bursts: losses near each other in time. A queue that overflows loses every other packet for a while, a radio outage
//! loses all of them. By sequence number the first is many runs; in time both are one burst.

use crate::analysis::losses::LossRun;
use sawtooth_units::width::{Approx, Whole};

/// Losses are one burst if they are at most a round trip apart, and at most this share of the mean time between losses:
/// random losses are near each other by chance, too.
const NEAR: f64 = 0.25;

/// Losses that are near each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    pub first_ns: u64,
    pub last_ns: u64,
    /// Segments lost, and all segments sent from the first to the last of these.
    pub lost: u64,
    pub span: u64,
}

/// All bursts of a direction's losses, including single losses.
#[derive(Debug, Default)]
pub struct Bursts {
    pub all: Vec<Burst>,
    /// The largest distance in time between losses of one burst.
    pub near_ns: u64,
}

impl Bursts {
    /// Finds the bursts in `runs`, which are in sequence order. The transfer took `duration_ns`, its round trip
    /// `trip_ns`.
    pub fn of(runs: &[LossRun], duration_ns: u64, trip_ns: Option<f64>) -> Self {
        let mean_ns = duration_ns.approx() / runs.len().max(1).approx();
        let near_ns = trip_ns.map_or(mean_ns * NEAR, |trip| trip.min(mean_ns * NEAR)).whole();
        let mut all: Vec<Burst> = Vec::new();
        for run in runs {
            let lost = u64::from(run.run);
            match all.last_mut() {
                Some(burst) if run.time_ns.saturating_sub(burst.last_ns) <= near_ns => {
                    burst.last_ns = burst.last_ns.max(run.time_ns);
                    burst.lost += lost;
                    burst.span += u64::from(run.gap) + lost;
                }
                _ => all.push(Burst { first_ns: run.time_ns, last_ns: run.time_ns, lost, span: lost }),
            }
        }
        Bursts { all, near_ns }
    }

    /// The burst with the most losses.
    pub fn largest(&self) -> Option<Burst> {
        self.all.iter().copied().max_by_key(|burst| burst.lost)
    }

    /// The duration of the longest burst, in nanoseconds.
    pub fn longest_ns(&self) -> u64 {
        self.all.iter().map(|burst| burst.last_ns - burst.first_ns).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn runs(times_ms: &[u64]) -> Vec<LossRun> {
        times_ms.iter().map(|&ms| LossRun { gap: 1, run: 1, time_ns: ms * MS }).collect()
    }

    #[test]
    fn losses_within_an_rtt_are_one_burst() {
        let found = Bursts::of(&runs(&[100, 102, 104, 106, 5000, 5001]), 10_000 * MS, Some(20.0 * MS as f64));
        let bursts: Vec<(u64, u64)> = found.all.iter().map(|burst| (burst.lost, burst.span)).collect();
        assert_eq!(bursts, [(4, 7), (2, 3)]);
        assert_eq!((found.largest().unwrap().lost, found.longest_ns()), (4, 6 * MS));
    }

    #[test]
    fn evenly_spaced_losses_are_no_burst() {
        let times: Vec<u64> = (0..100).map(|at| at * 10).collect();
        assert_eq!(Bursts::of(&runs(&times), 1000 * MS, Some(200.0 * MS as f64)).all.len(), 100);
    }
}
