//! BBR's estimate of ACK aggregation, Linux 6.12 (`bbr_update_ack_aggregation` in `tcp_bbr.c`).
//!
//! What is acknowledged beyond the bandwidth came in a burst; the window keeps as much more in flight for the silence
//! after it. The excess is the maximum over five to ten rounds.

use super::Bbr;
use super::pacing::BW_UNIT;
use crate::cc::RateSample;
use crate::flight::Flight;
use crate::window::Window;
use sawtooth_units::width::Low;

/// Rounds of each of the two halves of the maximum's window (`bbr_extra_acked_win_rtts`).
const WINDOW_ROUNDS: u8 = 5;
/// `extra_acked_win_rtts` has five bits.
const MAX_WINDOW_ROUNDS: u8 = 0x1f;
/// An epoch starts over at so many segments (`bbr_ack_epoch_acked_reset_thresh`), and
const EPOCH_RESET: u32 = 1 << 20;
/// `ack_epoch_acked` has twenty bits.
const MAX_EPOCH: u32 = 0xf_ffff;
/// The window grows by at most this much time at the bandwidth, in microseconds (`bbr_extra_acked_max_us`).
const MAX_US: u64 = 100_000;

#[derive(Clone, Debug)]
pub(super) struct AckAggregation {
    /// Start of the epoch in microseconds, and segments acknowledged since.
    epoch_us: u64,
    epoch_acked: u32,
    /// Largest excess in the older and the current half of the window, in segments.
    extra: [u16; 2],
    current: usize,
    /// Rounds in the current half.
    rounds: u8,
}

impl AckAggregation {
    pub(super) fn new(now_us: u64) -> Self {
        AckAggregation { epoch_us: now_us, epoch_acked: 0, extra: [0; 2], current: 0, rounds: 0 }
    }

    /// After idle time a new epoch begins; the maximum stays.
    pub(super) fn restart_epoch(&mut self, now_us: u64) {
        self.epoch_us = now_us;
        self.epoch_acked = 0;
    }

    fn on_round(&mut self) {
        self.rounds = (self.rounds + 1).min(MAX_WINDOW_ROUNDS);
        if self.rounds >= WINDOW_ROUNDS {
            self.rounds = 0;
            self.current ^= 1;
            self.extra[self.current] = 0;
        }
    }

    fn on_acked(&mut self, acked: u32, bandwidth: u32, delivered_us: u64, cwnd: u32) {
        let epoch_us = delivered_us.saturating_sub(self.epoch_us).low_u32();
        let mut expected = (u64::from(bandwidth).wrapping_mul(u64::from(epoch_us)) / BW_UNIT).low_u32();
        if self.epoch_acked <= expected || self.epoch_acked.wrapping_add(acked) >= EPOCH_RESET {
            self.epoch_acked = 0;
            self.epoch_us = delivered_us;
            expected = 0;
        }
        self.epoch_acked = self.epoch_acked.wrapping_add(acked).min(MAX_EPOCH);
        let extra = self.epoch_acked.wrapping_sub(expected).min(cwnd);
        if extra > u32::from(self.extra[self.current]) {
            self.extra[self.current] = extra.low_u16();
        }
    }

    fn extra(&self) -> u32 {
        u32::from(self.extra[0].max(self.extra[1]))
    }
}

impl Bbr {
    /// `bbr_update_ack_aggregation`.
    pub(super) fn update_ack_aggregation(&mut self, flight: &Flight, window: &Window, sample: &RateSample) {
        if sample.acked_sacked == 0 || sample.delivered < 0 || sample.interval_us <= 0 {
            return;
        }
        if self.rounds.started {
            self.aggregation.on_round();
        }
        self.aggregation.on_acked(sample.acked_sacked, self.bandwidth(), flight.delivered_us, window.cwnd);
    }

    /// Segments that the window has room for on account of aggregation (`bbr_ack_aggregation_cwnd`).
    pub(super) fn aggregation_allowance(&self) -> u32 {
        if !self.full_pipe.reached {
            return 0;
        }
        let most = (u64::from(self.bandwidth()) * MAX_US / BW_UNIT).low_u32();
        self.aggregation.extra().min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One segment a millisecond.
    const RATE: u32 = (BW_UNIT / 1_000) as u32 + 1;

    #[test]
    fn a_steady_stream_has_the_excess_of_one_ack() {
        let mut a = AckAggregation::new(0);
        for ms in 1..50 {
            a.on_acked(1, RATE, ms * 1_000, 100);
        }
        assert_eq!(a.extra(), 1);
    }

    #[test]
    fn a_burst_is_an_excess() {
        let mut a = AckAggregation::new(0);
        a.on_acked(20, RATE, 20_000, 100);
        a.on_acked(20, RATE, 21_000, 100);
        assert_eq!(a.extra(), 39, "40 in a millisecond that should bring 1");
    }

    #[test]
    fn the_excess_is_at_most_the_window() {
        let mut a = AckAggregation::new(0);
        a.on_acked(50, RATE, 1_000, 30);
        assert_eq!(a.extra(), 30);
    }

    #[test]
    fn an_excess_is_forgotten_after_five_to_ten_rounds() {
        let mut a = AckAggregation::new(0);
        a.on_acked(50, RATE, 1_000, 100);
        for _ in 0..9 {
            a.on_round();
            assert_eq!(a.extra(), 50);
        }
        a.on_round();
        assert_eq!(a.extra(), 0);
    }

    #[test]
    fn a_very_long_epoch_starts_over() {
        let mut a = AckAggregation::new(0);
        a.epoch_acked = EPOCH_RESET - 1;
        a.on_acked(1, 0, 1_000, u32::MAX);
        assert_eq!((a.epoch_acked, a.epoch_us), (1, 1_000));
    }

    #[test]
    fn an_epoch_may_start_over_without_losing_the_maximum() {
        let mut a = AckAggregation::new(0);
        a.on_acked(50, RATE, 1_000, 100);
        a.restart_epoch(9_000);
        assert_eq!((a.epoch_acked, a.epoch_us, a.extra()), (0, 9_000, 50));
    }
}
