//! BBR v3's bandwidth: rounds, samples, the maximum over two cycles, and whether it still grows (the draft's
//! "BBR.round_count", "BBR.max_bw", "Exiting Acceleration Based on Bandwidth Plateau").

use super::{Bbr3, Edition};
use crate::cc::RateSample;
use crate::cc::bbr::aggregation::{HALF_ROUNDS, MOST_US, segments_in};
use crate::cc::bbr::mode::{UNIT, UNIT_SHIFT};
use crate::cc::bbr::pacing::BW_UNIT;
use crate::flight::Flight;
use crate::window::Window;
use sawtooth_units::width::Low;

/// Growth by a quarter shows that the pipe is not yet full, in 256ths (`bbr_full_bw_thresh`).
const FULL_PIPE_GROWTH: u64 = (UNIT * 5 / 4) as u64;
/// Rounds without such growth that show that it is (`bbr_full_bw_cnt`).
const FULL_PIPE_ROUNDS: u8 = 3;
/// The draft's ExtraAckedFilterLen.
const EXTRA_ACKED_ROUNDS: u32 = 10;

/// The largest sample of this cycle of probing and of the one before.
#[derive(Clone, Debug, Default)]
pub(super) struct MaxBandwidth {
    previous: u32,
    current: u32,
}

impl MaxBandwidth {
    pub(super) fn get(&self) -> u32 {
        self.previous.max(self.current)
    }

    pub(super) fn take(&mut self, bandwidth: u32) {
        self.current = self.current.max(bandwidth);
    }

    /// A cycle is over. `keeps`: a cycle without samples does not count.
    pub(super) fn advance(&mut self, keeps: bool) {
        if self.current > 0 || !keeps {
            (self.previous, self.current) = (self.current, 0);
        }
    }
}

/// Whether sending faster still increases the bandwidth.
#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    /// At some time it did not (`full_bw_reached`).
    pub(super) reached: bool,
    /// At present it does not (`full_bw_now`).
    pub(super) now: bool,
    /// The bandwidth that the next must exceed by a quarter (`full_bw`).
    bandwidth: u32,
    /// Rounds without that (`full_bw_cnt`).
    rounds: u8,
}

impl FullPipe {
    /// Begins the check again, from `bandwidth`.
    pub(super) fn look_anew(&mut self, bandwidth: u32) {
        *self = FullPipe { reached: self.reached, now: false, bandwidth, rounds: 0 };
    }

    fn has_grown_to(&self, bandwidth: u32) -> bool {
        u64::from(bandwidth) >= (u64::from(self.bandwidth) * FULL_PIPE_GROWTH) >> UNIT_SHIFT
    }

    fn count_round(&mut self) {
        self.rounds += 1;
        self.now = self.rounds >= FULL_PIPE_ROUNDS;
        self.reached |= self.now;
    }
}

/// Segments delivered per microsecond, rounded up so that slow paths can grow too; 0 without a sample.
pub(super) fn sampled(sample: &RateSample) -> u32 {
    match (u64::try_from(sample.delivered), u64::try_from(sample.interval_us)) {
        (Ok(delivered), Ok(interval_us)) if interval_us > 0 => {
            delivered.wrapping_mul(BW_UNIT).div_ceil(interval_us).low_u32()
        }
        _ => 0,
    }
}

impl<E: Edition> Bbr3<E> {
    /// The bandwidth to use.
    pub(super) fn bandwidth(&self) -> u32 {
        self.max_bandwidth.get().min(self.short_term.bandwidth)
    }

    /// UpdateRound.
    pub(super) fn begin_round(&mut self, flight: &Flight, sample: &RateSample) {
        self.rounds.started = sample.interval_us > 0 && self.rounds.ends_with(sample.prior_delivered);
        if self.rounds.started {
            self.rounds.begin(flight.delivered);
            self.probe.count_round();
        }
    }

    /// CheckFullBWReached.
    pub(super) fn check_full_pipe(&mut self, sample: &RateSample, bandwidth: u32) {
        if self.full_pipe.now || sample.is_app_limited || !(E::GROWTH_AT_ANY_TIME || self.rounds.started) {
            return;
        }
        if self.full_pipe.has_grown_to(bandwidth) {
            self.full_pipe.look_anew(bandwidth);
        } else if self.rounds.started {
            self.full_pipe.count_round();
        }
    }

    /// UpdateACKAggregation, the window's maximum over fewer rounds before the pipe is full.
    pub(super) fn update_aggregation(&mut self, flight: &Flight, window: &Window, sample: &RateSample) {
        if sample.delivered < 0 || sample.interval_us <= 0 || sample.acked_sacked == 0 {
            return;
        }
        if self.rounds.started {
            self.aggregation.on_round(if self.full_pipe.reached { HALF_ROUNDS } else { 1 });
        }
        let bandwidth = self.bandwidth();
        let excess = self.aggregation.on_acked(sample.acked_sacked, bandwidth, flight.delivered_us, window.cwnd);
        if !E::AGGREGATION_IN_HALVES {
            let rounds = if self.full_pipe.reached { EXTRA_ACKED_ROUNDS } else { 1 };
            self.extra_acked.update(rounds, self.rounds.count, excess);
        }
    }

    /// Extra segments in the window because of aggregation.
    pub(super) fn aggregation_allowance(&self) -> u32 {
        if E::AGGREGATION_IN_HALVES {
            self.aggregation.largest().min(segments_in(self.bandwidth(), MOST_US))
        } else {
            self.extra_acked.get()
        }
    }
}
