//! BBR's policer detector, as in Linux 6.12 ("long-term" bandwidth); the draft has none.
//!
//! A token bucket passes a burst and then drops what exceeds its rate. Two consecutive intervals with high loss and the
//! same rate are taken for a policer (Flach et al., "An Internet-Wide Analysis of Traffic Policing", 2016). For 48
//! rounds the mean of their rates replaces the maximum, which is what a full bucket passed.

use super::Bbr;
use super::mode::{Mode, UNIT};
use super::pacing::{BW_UNIT, bytes_per_second};
use crate::flight::Flight;
use sawtooth_units::width::Low;

/// Fewest rounds of an interval (`bbr_lt_intvl_min_rtts`; at most four times as many).
const FEWEST_ROUNDS: u8 = 4;
const MOST_ROUNDS: u8 = 4 * FEWEST_ROUNDS;
/// Ratio of lost to delivered segments above which an interval is lossy, in 256ths (`bbr_lt_loss_thresh`): 20%.
const LOSSY: u32 = 50;
/// Two rates are equal if they differ by at most an eighth (`bbr_lt_bw_ratio`), in 256ths,
const SAME_RATIO: u32 = 256 / 8;
/// or by 4 kbit/s, in bytes per second (`bbr_lt_bw_diff`).
const SAME_BYTES_PER_SECOND: u64 = 4_000 / 8;
/// How long a policer's rate is used, in rounds (`bbr_lt_bw_max_rtts`).
const USED_ROUNDS: u8 = 48;
/// From this many milliseconds on, an interval's microseconds do not fit into 32 bits.
const TOO_LONG_MS: u32 = u32::MAX / 1_000;

/// What is known about a policer. Rates are in 2^-24 segments per microsecond.
#[derive(Clone, Debug, Default)]
pub(super) enum Policer {
    /// Nothing was lost: the bucket may be full.
    #[default]
    Unsuspected,
    /// A loss showed that the bucket was empty; the rate since then is being measured. `before`: the previous
    /// interval's rate.
    Suspected { interval: Interval, before: Option<u32> },
    /// Its rate, and for how many rounds it has been used.
    Found { rate: u32, rounds: u8 },
}

/// An interval between losses: the connection's counters at its start (32 bits, wrapping), and how many rounds began in
/// it.
#[derive(Clone, Debug)]
pub(super) struct Interval {
    rounds: u8,
    delivered: u32,
    lost: u32,
    ms: u32,
}

/// The state of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It continues.
    Open,
    /// It can no longer give a result.
    Void,
    /// It began and ended with a loss, at this rate.
    Ended(u32),
}

/// What changes for the rest of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    Policed,
    /// The rate has been used for long enough: the path is probed again.
    Unpoliced,
}

/// The facts from an ACK: newly lost segments, whether the application was the limit, and whether a round began.
#[derive(Clone, Copy, Debug)]
struct Observation {
    losses: u32,
    is_app_limited: bool,
    round_began: bool,
}

impl Interval {
    fn starting(flight: &Flight) -> Self {
        Interval {
            rounds: 0,
            delivered: flight.delivered.low_u32(),
            lost: flight.lost.low_u32(),
            ms: milliseconds(flight),
        }
    }

    fn standing(&self, flight: &Flight, losses: u32) -> Standing {
        match self.rounds {
            ..FEWEST_ROUNDS => Standing::Open,
            FEWEST_ROUNDS..=MOST_ROUNDS if losses == 0 => Standing::Open,
            FEWEST_ROUNDS..=MOST_ROUNDS => self.at_loss(flight),
            _ => Standing::Void,
        }
    }

    /// A loss ends the interval if it lost enough in total and has a length.
    fn at_loss(&self, flight: &Flight) -> Standing {
        let delivered = flight.delivered.low_u32().wrapping_sub(self.delivered);
        let lost = flight.lost.low_u32().wrapping_sub(self.lost);
        let ms = milliseconds(flight).wrapping_sub(self.ms);
        let is_lossy = delivered > 0 && lost << 8 >= delivered.wrapping_mul(LOSSY);
        if !is_lossy || ms.cast_signed() < 1 {
            Standing::Open
        } else if ms >= TOO_LONG_MS {
            Standing::Void
        } else {
            Standing::Ended((u64::from(delivered) * BW_UNIT / u64::from(ms * 1_000)).low_u32())
        }
    }
}

fn milliseconds(flight: &Flight) -> u32 {
    (flight.delivered_us / 1_000).low_u32()
}

/// Products of 32 bits wrap, as in the kernel.
fn is_same_rate(mss: u32, rate: u32, other: u32) -> bool {
    let difference = rate.abs_diff(other);
    difference.wrapping_mul(UNIT) <= other.wrapping_mul(SAME_RATIO)
        || bytes_per_second(mss, difference, UNIT) <= SAME_BYTES_PER_SECOND
}

impl Policer {
    /// Its rate, if one was found.
    pub(super) fn rate(&self) -> Option<u32> {
        match *self {
            Policer::Found { rate, .. } => Some(rate),
            Policer::Unsuspected | Policer::Suspected { .. } => None,
        }
    }

    /// `probing`: BBR cycles around the bandwidth; only then do rounds with a policer's rate count.
    fn observe(&mut self, flight: &Flight, seen: Observation, probing: bool) -> Option<Finding> {
        match self {
            Policer::Found { rounds, .. } => {
                *rounds += u8::from(probing && seen.round_began);
                if *rounds < USED_ROUNDS {
                    return None;
                }
                *self = Policer::Unsuspected;
                return Some(Finding::Unpoliced);
            }
            Policer::Unsuspected if seen.losses == 0 => return None,
            Policer::Unsuspected => {
                *self = Policer::Suspected { interval: Interval::starting(flight), before: None };
            }
            Policer::Suspected { .. } => {}
        }
        self.measure(flight, seen)
    }

    fn measure(&mut self, flight: &Flight, seen: Observation) -> Option<Finding> {
        let Policer::Suspected { interval, before } = self else { return None };
        let before = *before;
        interval.rounds += u8::from(seen.round_began);
        let standing = if seen.is_app_limited { Standing::Void } else { interval.standing(flight, seen.losses) };
        match standing {
            Standing::Open => {}
            Standing::Void => *self = Policer::Unsuspected,
            Standing::Ended(rate) => return self.compare(flight, rate, before),
        }
        None
    }

    /// An interval ended at `rate`, the previous one at `before`.
    fn compare(&mut self, flight: &Flight, rate: u32, before: Option<u32>) -> Option<Finding> {
        if let Some(before) = before
            && is_same_rate(flight.mss, rate, before)
        {
            *self = Policer::Found { rate: rate.wrapping_add(before) / 2, rounds: 0 };
            return Some(Finding::Policed);
        }
        // A rate below its unit counts as none.
        let before = (rate > 0).then_some(rate);
        *self = Policer::Suspected { interval: Interval::starting(flight), before };
        None
    }
}

impl Bbr {
    /// Call for every valid sample, and for a timeout (`bbr_lt_bw_sampling`).
    pub(super) fn watch_policer(&mut self, flight: &Flight, losses: u32, is_app_limited: bool) {
        let seen = Observation { losses, is_app_limited, round_began: self.rounds.started };
        match self.policer.observe(flight, seen, self.mode == Mode::ProbeBw) {
            None => {}
            // No more than the bucket's rate from now on.
            Some(Finding::Policed) => self.pacing_gain = UNIT,
            Some(Finding::Unpoliced) => self.enter_probe_bw(flight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::flight;

    /// A path that delivers 10 segments a round of 10 ms and loses `lost` of them.
    struct Path {
        f: Flight,
        policer: Policer,
        lost: u32,
        delivered: u32,
    }

    fn observation(losses: u32) -> Observation {
        Observation { losses, is_app_limited: false, round_began: true }
    }

    impl Path {
        fn new(lost: u32) -> Self {
            let f = flight();
            Path { policer: Policer::Unsuspected, f, lost, delivered: 10 }
        }

        fn round(&mut self) -> Option<Finding> {
            self.f.delivered += u64::from(self.delivered);
            self.f.lost += u64::from(self.lost);
            self.f.delivered_us += 10_000;
            self.policer.observe(&self.f, observation(self.lost), true)
        }

        fn is_suspected(&self) -> bool {
            matches!(self.policer, Policer::Suspected { .. })
        }

        fn rounds_until_policed(&mut self) -> Option<u32> {
            (1..100).find(|_| self.round() == Some(Finding::Policed))
        }
    }

    #[test]
    fn two_lossy_intervals_of_one_rate_show_a_policer() {
        let mut path = Path::new(2);
        assert_eq!(path.rounds_until_policed(), Some(8));
        // 10 segments in 10 ms.
        assert_eq!(path.policer.rate(), Some((BW_UNIT / 1_000) as u32));
    }

    #[test]
    fn a_fifth_must_be_lost() {
        let mut path = Path::new(2);
        path.delivered = 11;
        assert_eq!(path.rounds_until_policed(), None);
    }

    #[test]
    fn without_a_loss_no_sampling_begins() {
        let mut path = Path::new(0);
        for _ in 0..30 {
            path.round();
        }
        assert!(!path.is_suspected());
    }

    #[test]
    fn rates_that_differ_by_more_than_an_eighth_are_no_policer() {
        let mut path = Path::new(4);
        for _ in 0..4 {
            path.round();
        }
        assert!(matches!(path.policer, Policer::Suspected { before: Some(1..), .. }));
        path.delivered = 12;
        for _ in 0..4 {
            assert_eq!(path.round(), None);
        }
        assert_eq!(path.policer.rate(), None);
        assert_eq!(path.rounds_until_policed(), Some(4), "but two of the new rate are");
    }

    #[test]
    fn slow_rates_are_the_same_within_four_kilobits() {
        // One segment of 1448 bytes in 5 s, then one in 4 s: 72 bytes/s more. One in 1 s: 1158 bytes/s more.
        for (seconds, expected) in [(4, true), (1, false)] {
            let [before, rate] = [5, seconds].map(|seconds| (BW_UNIT / (seconds * 1_000_000)) as u32);
            assert_eq!(is_same_rate(1_448, rate, before), expected);
        }
    }

    #[test]
    fn a_policed_rate_is_used_for_forty_eight_rounds() {
        let mut path = Path::new(2);
        path.rounds_until_policed();
        let rounds = (1..100).find(|_| path.round() == Some(Finding::Unpoliced));
        assert_eq!(rounds, Some(48));
        assert_eq!(path.policer.rate(), None);
    }

    #[test]
    fn an_application_limited_sample_starts_over() {
        let mut path = Path::new(2);
        path.round();
        assert!(path.is_suspected());
        let seen = Observation { is_app_limited: true, round_began: false, ..observation(1) };
        path.policer.observe(&path.f, seen, true);
        assert!(!path.is_suspected());
    }

    #[test]
    fn an_interval_of_more_than_sixteen_rounds_starts_over() {
        let mut path = Path::new(2);
        path.round();
        path.lost = 0;
        for _ in 0..15 {
            path.round();
        }
        assert!(path.is_suspected());
        path.round();
        assert!(!path.is_suspected());
    }
}
