//! BBR's estimate of ACK aggregation, as in Linux 6.12 (`bbr_update_ack_aggregation`); the first draft has none.
//!
//! Data acknowledged beyond the bandwidth came in a burst. The window allows that much more in flight, for the silence
//! after the burst. The excess is the maximum over five to ten rounds.

use super::Bbr;
use super::pacing::BW_UNIT;
use crate::cc::RateSample;
use crate::flight::Flight;
use crate::window::Window;
use sawtooth_units::width::Low;

/// Rounds of each of the two halves of the maximum's window (`bbr_extra_acked_win_rtts`).
pub(in crate::cc) const HALF_ROUNDS: u8 = 5;
/// Segments above which an epoch is too long (`bbr_ack_epoch_acked_reset_thresh`).
const LONGEST_EPOCH: u32 = 1 << 20;
/// The window grows by at most this much time at the bandwidth, in microseconds (`bbr_extra_acked_max_us`).
pub(in crate::cc) const MOST_US: u64 = 100_000;

#[derive(Clone, Debug)]
pub(in crate::cc) struct Aggregation {
    epoch: Epoch,
    /// The largest excess in segments, in the current half of the window and in the previous one.
    current: u16,
    previous: u16,
    /// Rounds in the current half.
    rounds: u8,
}

/// A time in which more was acknowledged than the bandwidth explains.
#[derive(Clone, Debug)]
struct Epoch {
    start_us: u64,
    /// Segments acknowledged in it.
    acked: u32,
}

/// The segments that `bandwidth` delivers in this many microseconds.
pub(in crate::cc) fn segments_in(bandwidth: u32, us: u64) -> u32 {
    (u64::from(bandwidth).wrapping_mul(us) / BW_UNIT).low_u32()
}

impl Epoch {
    fn starting(now_us: u64) -> Self {
        Epoch { start_us: now_us, acked: 0 }
    }

    /// Adds `acked` segments at `now_us`; returns how many are unexplained so far. If everything before them is
    /// explained, a new epoch begins with them.
    fn excess(&mut self, acked: u32, bandwidth: u32, now_us: u64) -> u32 {
        let us = now_us.saturating_sub(self.start_us).low_u32();
        let mut explained = segments_in(bandwidth, u64::from(us));
        let is_too_long = self.acked.wrapping_add(acked) >= LONGEST_EPOCH;
        if is_too_long || explained >= self.acked {
            *self = Epoch::starting(now_us);
            explained = 0;
        }
        self.acked = self.acked.wrapping_add(acked).min(LONGEST_EPOCH - 1);
        self.acked - explained
    }
}

impl Aggregation {
    pub(in crate::cc) fn new(now_us: u64) -> Self {
        Aggregation { epoch: Epoch::starting(now_us), current: 0, previous: 0, rounds: 0 }
    }

    /// After idle time a new epoch begins; the maximum stays.
    pub(in crate::cc) fn restart_epoch(&mut self, now_us: u64) {
        self.epoch = Epoch::starting(now_us);
    }

    /// A round began; half of the window has `half_rounds` rounds.
    pub(in crate::cc) fn on_round(&mut self, half_rounds: u8) {
        self.rounds += 1;
        if self.rounds >= half_rounds {
            (self.previous, self.current, self.rounds) = (self.current, 0, 0);
        }
    }

    /// Returns the excess of these `acked`.
    pub(in crate::cc) fn on_acked(&mut self, acked: u32, bandwidth: u32, now_us: u64, cwnd: u32) -> u32 {
        let excess = self.epoch.excess(acked, bandwidth, now_us).min(cwnd);
        if excess > u32::from(self.current) {
            // The kernel keeps the low 16 bits of a larger value.
            self.current = excess.low_u16();
        }
        excess
    }

    pub(in crate::cc) fn largest(&self) -> u32 {
        u32::from(self.current.max(self.previous))
    }
}

impl Bbr {
    pub(super) fn update_aggregation(&mut self, flight: &Flight, window: &Window, sample: &RateSample) {
        let is_valid = sample.delivered >= 0 && sample.interval_us > 0;
        if !is_valid || sample.acked_sacked == 0 {
            return;
        }
        if self.rounds.started {
            self.aggregation.on_round(HALF_ROUNDS);
        }
        self.aggregation.on_acked(sample.acked_sacked, self.bandwidth(), flight.delivered_us, window.cwnd);
    }

    /// Extra segments in the window because of aggregation, once the bandwidth is known (`bbr_ack_aggregation_cwnd`).
    pub(super) fn aggregation_allowance(&self) -> u32 {
        if self.full_pipe.reached { self.aggregation.largest().min(segments_in(self.bandwidth(), MOST_US)) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One segment per millisecond.
    const RATE: u32 = (BW_UNIT / 1_000) as u32 + 1;

    #[test]
    fn a_steady_stream_has_the_excess_of_one_ack() {
        let mut a = Aggregation::new(0);
        for ms in 1..50 {
            a.on_acked(1, RATE, ms * 1_000, 100);
        }
        assert_eq!(a.largest(), 1);
    }

    #[test]
    fn a_burst_is_an_excess() {
        let mut a = Aggregation::new(0);
        a.on_acked(20, RATE, 20_000, 100);
        a.on_acked(20, RATE, 21_000, 100);
        assert_eq!(a.largest(), 39, "40 in a millisecond that should bring 1");
    }

    #[test]
    fn the_excess_is_at_most_the_window() {
        let mut a = Aggregation::new(0);
        a.on_acked(50, RATE, 1_000, 30);
        assert_eq!(a.largest(), 30);
    }

    #[test]
    fn an_excess_is_forgotten_after_five_to_ten_rounds() {
        let mut a = Aggregation::new(0);
        a.on_acked(50, RATE, 1_000, 100);
        for _ in 0..9 {
            a.on_round(HALF_ROUNDS);
            assert_eq!(a.largest(), 50);
        }
        a.on_round(HALF_ROUNDS);
        assert_eq!(a.largest(), 0);
    }

    #[test]
    fn a_very_long_epoch_starts_over() {
        let mut a = Aggregation::new(0);
        a.epoch.acked = LONGEST_EPOCH - 1;
        a.on_acked(1, 0, 1_000, u32::MAX);
        assert_eq!((a.epoch.acked, a.epoch.start_us), (1, 1_000));
    }

    #[test]
    fn an_epoch_may_start_over_without_losing_the_maximum() {
        let mut a = Aggregation::new(0);
        a.on_acked(50, RATE, 1_000, 100);
        a.restart_epoch(9_000);
        assert_eq!((a.epoch.acked, a.epoch.start_us, a.largest()), (0, 9_000, 50));
    }
}
