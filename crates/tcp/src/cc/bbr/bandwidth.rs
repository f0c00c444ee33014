//! BBR's bandwidth estimate in packet-timed rounds (the draft's BtlBw, section 4.1.1), as in Linux 6.12
//! (`bbr_update_bw`).

use super::Bbr;
use super::mode::{CYCLE_LENGTH, UNIT, UNIT_SHIFT};
use super::pacing::BW_UNIT;
use crate::cc::RateSample;
use crate::flight::Flight;
use sawtooth_units::width::{Fit, Low};

/// The maximum is over this many rounds: a cycle of gains and two more (`bbr_bw_rtts`).
#[expect(clippy::cast_possible_truncation, reason = "8, and a constant")]
const FILTER_ROUNDS: u32 = CYCLE_LENGTH as u32 + 2;
/// Growth by a quarter shows that the pipe is not yet full, in 256ths (`bbr_full_bw_thresh`).
const FULL_PIPE_GROWTH: u64 = (UNIT * 5 / 4) as u64;
/// Rounds without such growth that show that it is (`bbr_full_bw_cnt`).
const FULL_PIPE_ROUNDS: u8 = 3;

/// Rounds of packets: a round ends when a segment is delivered that was sent after it began.
#[derive(Clone, Debug)]
pub(in crate::cc) struct Rounds {
    /// Rounds so far (`rtt_cnt`).
    pub(in crate::cc) count: u32,
    /// The round ends with the delivery of the first segment that was sent after this many had been delivered
    /// (`next_rtt_delivered`).
    pub(in crate::cc) next_delivered: u64,
    /// Whether this ACK started a round (`round_start`).
    pub(in crate::cc) started: bool,
}

/// Whether startup has filled the pipe (`bbr_check_full_bw_reached`).
#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    pub(super) reached: bool,
    /// The bandwidth that the next must exceed by a quarter (`full_bw`).
    pub(super) bandwidth: u32,
    /// Rounds without such growth (`full_bw_cnt`).
    pub(super) rounds: u8,
}

impl Rounds {
    /// Whether the delivery of a segment ends the round, if this many segments had been delivered when it was sent.
    pub(in crate::cc) fn ends_with(&self, delivered_when_sent: u64) -> bool {
        delivered_when_sent >= self.next_delivered
    }

    pub(in crate::cc) fn begin(&mut self, delivered: u64) {
        self.next_delivered = delivered;
        self.count = self.count.wrapping_add(1);
    }
}

impl FullPipe {
    fn on_round(&mut self, bandwidth: u32) {
        let grown = ((u64::from(self.bandwidth) * FULL_PIPE_GROWTH) >> UNIT_SHIFT).low_u32();
        if bandwidth < grown {
            self.rounds += 1;
        } else {
            (self.bandwidth, self.rounds) = (bandwidth, 0);
        }
        self.reached = self.rounds >= FULL_PIPE_ROUNDS;
    }
}

impl Bbr {
    /// The bandwidth to use: the policer's, if there is one, or the recent maximum.
    pub(in crate::cc) fn bandwidth(&self) -> u32 {
        self.policer.rate().unwrap_or_else(|| self.max_bandwidth.get())
    }

    /// BBRUpdateBtlBw.
    pub(super) fn update_bandwidth(&mut self, flight: &Flight, sample: &RateSample) {
        let is_valid = sample.delivered >= 0 && sample.interval_us > 0;
        self.rounds.started = is_valid && self.rounds.ends_with(sample.prior_delivered);
        if !is_valid {
            return;
        }
        if self.rounds.started {
            self.rounds.begin(flight.delivered);
            self.packet_conservation = false;
        }
        self.watch_policer(flight, sample.losses, sample.is_app_limited);
        let rate = sample.delivered.fit_u64().wrapping_mul(BW_UNIT) / sample.interval_us.fit_u64();
        // A sample limited by the application says little, unless it is the highest.
        if sample.is_app_limited && rate < u64::from(self.max_bandwidth.get()) {
            return;
        }
        self.max_bandwidth.update(FILTER_ROUNDS, self.rounds.count, rate.low_u32());
    }

    /// BBRCheckFullPipe.
    pub(super) fn check_full_pipe(&mut self, sample: &RateSample) {
        if !self.full_pipe.reached && self.rounds.started && !sample.is_app_limited {
            self.full_pipe.on_round(self.max_bandwidth.get());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::bbr::tests::{sample, startup};
    use crate::cc::testing::{flight, window};

    #[test]
    fn a_sample_is_segments_per_microsecond_with_24_fraction_bits() {
        let (mut bbr, f, _) = startup(flight(), window());
        bbr.update_bandwidth(&f, &RateSample { delivered: 10, interval_us: 3_000, ..sample() });
        assert_eq!(bbr.bandwidth(), 55_924);
    }

    #[test]
    fn an_invalid_sample_ends_the_round_start_and_nothing_else() {
        for (delivered, interval_us) in [(-1, 1_000), (5, 0), (5, -1)] {
            let (mut bbr, f, _) = startup(flight(), window());
            bbr.rounds.started = true;
            bbr.update_bandwidth(&f, &RateSample { delivered, interval_us, ..sample() });
            assert_eq!((bbr.bandwidth(), bbr.rounds.count, bbr.rounds.started), (0, 0, false));
        }
    }

    #[test]
    fn a_round_ends_with_a_segment_sent_after_it_began() {
        let (mut bbr, mut f, _) = startup(flight(), window());
        let mut ack = |prior_delivered, delivered| {
            f.delivered = delivered;
            bbr.update_bandwidth(&f, &RateSample { prior_delivered, ..sample() });
            bbr.rounds.count
        };
        assert_eq!([ack(0, 1), ack(0, 10), ack(1, 11), ack(10, 20), ack(11, 21)], [1, 1, 2, 2, 3]);
    }

    #[test]
    fn the_maximum_is_over_ten_rounds() {
        let (mut bbr, mut f, _) = startup(flight(), window());
        let mut seen = Vec::new();
        for round in 0..13 {
            f.delivered = round + 1;
            let delivered = if round == 0 { 20 } else { 10 };
            bbr.update_bandwidth(&f, &RateSample { delivered, prior_delivered: round, ..sample() });
            seen.push(bbr.bandwidth() == (BW_UNIT * 20 / 1_000) as u32);
        }
        assert_eq!(seen.iter().filter(|&&high| high).count(), 11, "the round of the sample and ten more");
    }

    #[test]
    fn an_application_limited_sample_counts_only_if_it_is_the_highest() {
        let (mut bbr, f, _) = startup(flight(), window());
        let rate = |delivered| (BW_UNIT * delivered / 1_000) as u32;
        let mut ack = |delivered, is_app_limited| {
            bbr.update_bandwidth(&f, &RateSample { delivered, is_app_limited, ..sample() });
            bbr.bandwidth()
        };
        assert_eq!([ack(10, false), ack(5, true), ack(12, true)], [rate(10), rate(10), rate(12)]);
    }

    #[test]
    fn three_rounds_without_growth_by_a_quarter_fill_the_pipe() {
        let mut pipe = FullPipe::default();
        let full = [100, 125, 157, 158, 159, 160].map(|bandwidth| {
            pipe.on_round(bandwidth);
            pipe.reached
        });
        assert_eq!(full, [false, false, false, false, false, true]);
    }

    #[test]
    fn growth_by_a_quarter_starts_the_count_again() {
        let mut pipe = FullPipe::default();
        for bandwidth in [100, 124, 124, 125, 125, 156] {
            pipe.on_round(bandwidth);
        }
        assert_eq!((pipe.reached, pipe.rounds, pipe.bandwidth), (false, 0, 156), "156.25 is rounded down");
    }
}
