//! BBR's long-term bandwidth, by which it finds a policer, Linux 6.12 (`bbr_lt_bw_sampling` in `tcp_bbr.c`).
//!
//! Two intervals in a row with much loss and the same rate mean a token bucket. The average of their rates is then used
//! for 48 rounds, instead of the maximum that a full bucket lets through.

use super::Bbr;
use super::mode::{Mode, UNIT};
use super::pacing::{BW_UNIT, bytes_per_second};
use crate::flight::Flight;
use sawtooth_units::width::Low;

/// Fewest rounds of an interval (`bbr_lt_intvl_min_rtts`); four times as many are too long.
const MIN_ROUNDS: u8 = 4;
/// Lost to delivered segments that make an interval lossy, in 256ths (`bbr_lt_loss_thresh`): 20%.
const LOSS_THRESHOLD: u32 = 50;
/// Two rates are the same that differ by an eighth at most (`bbr_lt_bw_ratio`), in 256ths,
const SAME_RATIO: u32 = 256 / 8;
/// or by 4 kbit/s, in bytes per second (`bbr_lt_bw_diff`).
const SAME_BYTES_PER_SECOND: u64 = 4_000 / 8;
/// How long the policed rate is used, in rounds (`bbr_lt_bw_max_rtts`).
const MAX_ROUNDS: u8 = 48;
/// An interval of more milliseconds than this would overflow (`~0U / USEC_PER_MSEC`).
const MAX_INTERVAL_MS: u32 = u32::MAX / 1_000;

/// The running interval and the rate of the one before.
#[derive(Clone, Debug)]
pub(super) struct LongTerm {
    sampling: bool,
    /// Rounds in this interval, or since the policed rate came into use.
    rounds: u8,
    in_use: bool,
    /// Rate of the last interval or of the policer, in 2^-24 segments per microsecond; 0: none.
    rate: u32,
    /// Delivered and lost segments and the time in milliseconds when the interval began; 32 bits, wrapping.
    start_delivered: u32,
    start_lost: u32,
    start_ms: u32,
}

/// What a sample means for the rest of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    None,
    /// A policer has been found: pace at its rate.
    Policed,
    /// The policed rate is given up: probe again.
    Unpoliced,
}

impl LongTerm {
    pub(super) fn new(flight: &Flight) -> Self {
        let mut long_term = LongTerm {
            sampling: false,
            rounds: 0,
            in_use: false,
            rate: 0,
            start_delivered: 0,
            start_lost: 0,
            start_ms: 0,
        };
        long_term.start_interval(flight);
        long_term
    }

    /// The policer's rate, if one was found.
    pub(super) fn bandwidth(&self) -> Option<u32> {
        self.in_use.then_some(self.rate)
    }

    fn start_interval(&mut self, flight: &Flight) {
        self.start_ms = (flight.delivered_us / 1_000).low_u32();
        self.start_delivered = flight.delivered.low_u32();
        self.start_lost = flight.lost.low_u32();
        self.rounds = 0;
    }

    fn sample(
        &mut self,
        flight: &Flight,
        losses: u32,
        is_app_limited: bool,
        round_started: bool,
        probing: bool,
    ) -> Verdict {
        if self.in_use {
            if probing && round_started {
                self.rounds += 1;
                if self.rounds >= MAX_ROUNDS {
                    *self = LongTerm::new(flight);
                    return Verdict::Unpoliced;
                }
            }
            return Verdict::None;
        }
        // The first loss shows that the bucket is empty: what came before would be too fast.
        if !self.sampling {
            if losses == 0 {
                return Verdict::None;
            }
            self.start_interval(flight);
            self.sampling = true;
        }
        if is_app_limited {
            *self = LongTerm::new(flight);
            return Verdict::None;
        }
        if round_started {
            self.rounds += 1;
        }
        if self.rounds < MIN_ROUNDS {
            return Verdict::None;
        }
        if self.rounds > 4 * MIN_ROUNDS {
            *self = LongTerm::new(flight);
            return Verdict::None;
        }
        // An interval ends with a loss, as it began with one.
        if losses == 0 || !self.is_lossy(flight) {
            return Verdict::None;
        }
        let elapsed_ms = ((flight.delivered_us / 1_000).low_u32()).wrapping_sub(self.start_ms);
        if (elapsed_ms.cast_signed()) < 1 {
            return Verdict::None;
        }
        if elapsed_ms >= MAX_INTERVAL_MS {
            *self = LongTerm::new(flight);
            return Verdict::None;
        }
        let rate = u64::from(self.delivered(flight)) * BW_UNIT / u64::from(elapsed_ms * 1_000);
        self.end_interval(flight, rate.low_u32())
    }

    fn delivered(&self, flight: &Flight) -> u32 {
        flight.delivered.low_u32().wrapping_sub(self.start_delivered)
    }

    fn is_lossy(&self, flight: &Flight) -> bool {
        let lost = flight.lost.low_u32().wrapping_sub(self.start_lost);
        let delivered = self.delivered(flight);
        delivered > 0 && lost << 8 >= LOSS_THRESHOLD.wrapping_mul(delivered)
    }

    /// `bbr_lt_bw_interval_done`.
    fn end_interval(&mut self, flight: &Flight, rate: u32) -> Verdict {
        if self.rate > 0 {
            let difference = (rate.wrapping_sub(self.rate).cast_signed()).unsigned_abs();
            if difference.wrapping_mul(UNIT) <= SAME_RATIO.wrapping_mul(self.rate)
                || bytes_per_second(flight.mss, difference, UNIT) <= SAME_BYTES_PER_SECOND
            {
                self.rate = rate.wrapping_add(self.rate) >> 1;
                self.in_use = true;
                self.rounds = 0;
                return Verdict::Policed;
            }
        }
        self.rate = rate;
        self.start_interval(flight);
        Verdict::None
    }
}

impl Bbr {
    /// `bbr_lt_bw_sampling`.
    pub(super) fn sample_long_term(&mut self, flight: &Flight, losses: u32, is_app_limited: bool) {
        let probing = self.mode == Mode::ProbeBw;
        match self.long_term.sample(flight, losses, is_app_limited, self.rounds.started, probing) {
            Verdict::None => {}
            Verdict::Policed => self.pacing_gain = UNIT,
            Verdict::Unpoliced => self.enter_probe_bw(flight),
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
        lt: LongTerm,
        lost: u32,
        delivered: u32,
    }

    impl Path {
        fn new(lost: u32) -> Self {
            let f = flight();
            Path { lt: LongTerm::new(&f), f, lost, delivered: 10 }
        }

        fn round(&mut self) -> Verdict {
            self.f.delivered += u64::from(self.delivered);
            self.f.lost += u64::from(self.lost);
            self.f.delivered_us += 10_000;
            self.lt.sample(&self.f, self.lost, false, true, true)
        }

        fn rounds_until_policed(&mut self) -> Option<u32> {
            (1..100).find(|_| self.round() == Verdict::Policed)
        }
    }

    #[test]
    fn two_lossy_intervals_of_one_rate_show_a_policer() {
        let mut path = Path::new(2);
        assert_eq!(path.rounds_until_policed(), Some(8));
        // 10 segments in 10 ms.
        assert_eq!(path.lt.bandwidth(), Some((BW_UNIT / 1_000) as u32));
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
        assert!(!path.lt.sampling);
    }

    #[test]
    fn rates_that_differ_by_more_than_an_eighth_are_no_policer() {
        let mut path = Path::new(4);
        for _ in 0..4 {
            path.round();
        }
        assert!(path.lt.rate > 0);
        path.delivered = 12;
        for _ in 0..4 {
            assert_eq!(path.round(), Verdict::None);
        }
        assert_eq!(path.lt.bandwidth(), None);
        assert_eq!(path.rounds_until_policed(), Some(4), "but two of the new rate are");
    }

    #[test]
    fn slow_rates_are_the_same_within_four_kilobits() {
        // One segment of 1448 bytes in 5 s, then one in 4 s: 72 bytes/s more. One in 1 s: 1158 bytes/s more.
        for (seconds, expected) in [(4, Verdict::Policed), (1, Verdict::None)] {
            let mut lt = LongTerm::new(&flight());
            lt.rate = (BW_UNIT / 5_000_000) as u32;
            assert_eq!(lt.end_interval(&flight(), (BW_UNIT / (seconds * 1_000_000)) as u32), expected);
        }
    }

    #[test]
    fn a_policed_rate_is_used_for_forty_eight_rounds() {
        let mut path = Path::new(2);
        path.rounds_until_policed();
        let rounds = (1..100).find(|_| path.round() == Verdict::Unpoliced);
        assert_eq!(rounds, Some(48));
        assert_eq!(path.lt.bandwidth(), None);
    }

    #[test]
    fn an_application_limited_sample_starts_over() {
        let mut path = Path::new(2);
        path.round();
        assert!(path.lt.sampling);
        path.lt.sample(&path.f, 1, true, false, true);
        assert!(!path.lt.sampling);
    }

    #[test]
    fn an_interval_of_more_than_sixteen_rounds_starts_over() {
        let mut path = Path::new(2);
        path.round();
        path.lost = 0;
        for _ in 0..15 {
            path.round();
        }
        assert!(path.lt.sampling);
        path.round();
        assert!(!path.lt.sampling);
    }
}
