//! BBR's bandwidth estimate in packet-timed rounds, Linux 6.12 (`bbr_update_bw` in `tcp_bbr.c`).

use super::Bbr;
use super::mode::{CYCLE_LENGTH, UNIT, UNIT_SHIFT};
use super::pacing::BW_UNIT;
use crate::cc::RateSample;
use crate::window::Window;

/// The maximum is over this many rounds: a cycle of gains and two more (`bbr_bw_rtts`).
const FILTER_ROUNDS: u32 = CYCLE_LENGTH as u32 + 2;
/// Growth by a quarter shows that the pipe is not yet full, in 256ths (`bbr_full_bw_thresh`).
const FULL_PIPE_GROWTH: u64 = (UNIT * 5 / 4) as u64;
/// Rounds without such growth that show that it is (`bbr_full_bw_cnt`).
const FULL_PIPE_ROUNDS: u8 = 3;

/// Rounds of packets: a round ends when a segment is delivered that was sent after it began.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    /// Rounds so far (`rtt_cnt`).
    pub(super) count: u32,
    /// The round ends with the first segment sent when this many had been delivered (`next_rtt_delivered`).
    pub(super) next_delivered: u64,
    /// Whether this ACK started a round (`round_start`).
    pub(super) started: bool,
}

/// Whether startup has filled the pipe (`bbr_check_full_bw_reached`).
#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    pub(super) reached: bool,
    /// The bandwidth that the next must exceed by a quarter (`full_bw`).
    pub(super) bandwidth: u32,
    /// Rounds without that (`full_bw_cnt`).
    pub(super) rounds: u8,
}

impl FullPipe {
    fn on_round(&mut self, bandwidth: u32) {
        let enough = ((u64::from(self.bandwidth) * FULL_PIPE_GROWTH) >> UNIT_SHIFT) as u32;
        if bandwidth >= enough {
            self.bandwidth = bandwidth;
            self.rounds = 0;
            return;
        }
        self.rounds += 1;
        self.reached = self.rounds >= FULL_PIPE_ROUNDS;
    }
}

impl Bbr {
    /// The bandwidth to use: the policer's, if there is one, or the recent maximum (`bbr_bw`).
    pub(super) fn bandwidth(&self) -> u32 {
        self.long_term.bandwidth().unwrap_or_else(|| self.max_bandwidth.get())
    }

    /// `bbr_update_bw`.
    pub(super) fn update_bandwidth(&mut self, window: &Window, sample: &RateSample) {
        self.rounds.started = false;
        if sample.delivered < 0 || sample.interval_us <= 0 {
            return;
        }
        if sample.prior_delivered >= self.rounds.next_delivered {
            self.rounds.next_delivered = window.delivered;
            self.rounds.count = self.rounds.count.wrapping_add(1);
            self.rounds.started = true;
            self.packet_conservation = false;
        }
        self.sample_long_term(window, sample.losses, sample.is_app_limited);

        // A sample that the application limited says little, unless it is the highest.
        let bandwidth = (sample.delivered as u64).wrapping_mul(BW_UNIT) / sample.interval_us as u64;
        if !sample.is_app_limited || bandwidth >= u64::from(self.max_bandwidth.get()) {
            self.max_bandwidth
                .update(FILTER_ROUNDS, self.rounds.count, bandwidth as u32);
        }
    }

    /// `bbr_check_full_bw_reached`.
    pub(super) fn check_full_pipe(&mut self, sample: &RateSample) {
        if !self.full_pipe.reached && self.rounds.started && !sample.is_app_limited {
            self.full_pipe.on_round(self.max_bandwidth.get());
        }
    }
}
