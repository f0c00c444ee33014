//! BBR's modes, gains and the cycle of PROBE_BW, Linux 6.12 (`tcp_bbr.c`).

use super::Bbr;
use crate::cc::RateSample;
use crate::clock::Clock;
use crate::window::Window;

/// Gains are in 256ths (`BBR_SCALE`).
pub(super) const UNIT_SHIFT: u32 = 8;
/// A gain of one (`BBR_UNIT`).
pub(super) const UNIT: u32 = 1 << UNIT_SHIFT;
/// 2/ln 2, the smallest gain that doubles the rate in a round (`bbr_high_gain`).
pub(super) const HIGH_GAIN: u32 = UNIT * 2885 / 1000 + 1;
/// Its inverse, which drains in a round what startup queued (`bbr_drain_gain`).
const DRAIN_GAIN: u32 = UNIT * 1000 / 2885;
/// Two bandwidth-delay products leave room for late and stretched ACKs (`bbr_cwnd_gain`).
const PROBE_BW_CWND_GAIN: u32 = UNIT * 2;
/// Phases of the cycle (`CYCLE_LEN`).
pub(super) const CYCLE_LENGTH: usize = 8;
/// Pacing gains of the cycle: probe, drain what that queued, cruise (`bbr_pacing_gain`).
const CYCLE: [u32; CYCLE_LENGTH] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// The cycle starts in one of this many phases, any but the draining one (`bbr_cycle_rand`).
const START_PHASES: u32 = 7;

/// `enum bbr_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Double the rate each round until the pipe is full.
    Startup,
    /// Drain the queue that startup made.
    Drain,
    /// Cycle around the bandwidth.
    ProbeBw,
    /// Empty the pipe to see the smallest round-trip time.
    ProbeRtt,
}

/// Where PROBE_BW is in its cycle.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    pub(super) phase: usize,
    /// Microseconds at the phase's start.
    start_us: u64,
}

impl Cycle {
    fn advance(&mut self, delivered_us: u64) {
        self.phase = (self.phase + 1) % CYCLE_LENGTH;
        self.start_us = delivered_us;
    }
}

impl Bbr {
    /// `bbr_update_gains`.
    pub(super) fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.long_term.bandwidth().is_some() => (UNIT, PROBE_BW_CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle.phase], PROBE_BW_CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// Start the cycle in a random phase (`bbr_reset_probe_bw_mode`).
    pub(super) fn enter_probe_bw(&mut self, window: &Window) {
        self.mode = Mode::ProbeBw;
        self.cycle.phase = CYCLE_LENGTH - 1 - self.random.below(START_PHASES) as usize;
        self.cycle.advance(window.delivered_us);
    }

    /// Back to what was before PROBE_RTT (`bbr_reset_mode`).
    pub(super) fn leave_probe_rtt(&mut self, window: &Window) {
        if self.full_pipe.reached {
            self.enter_probe_bw(window);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// `bbr_check_drain`.
    pub(super) fn check_drain(&mut self, window: &mut Window, clock: Clock) {
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.mode = Mode::Drain;
            window.ssthresh = self.inflight(window, self.max_bandwidth.get(), UNIT);
        }
        if self.mode == Mode::Drain
            && self.in_network_at_departure(window, window.in_flight(), clock)
                <= self.inflight(window, self.max_bandwidth.get(), UNIT)
        {
            self.enter_probe_bw(window);
        }
    }

    /// `bbr_update_cycle_phase`.
    pub(super) fn update_cycle(&mut self, window: &Window, sample: &RateSample, clock: Clock) {
        if self.mode == Mode::ProbeBw && self.is_phase_over(window, sample, clock) {
            self.cycle.advance(window.delivered_us);
        }
    }

    /// Each phase lasts a round-trip time; probing also waits until it has filled the pipe or lost something, and draining
    /// stops early once the pipe is no more than full (`bbr_is_next_cycle_phase`).
    fn is_phase_over(&self, window: &Window, sample: &RateSample, clock: Clock) -> bool {
        let full_length = window.delivered_us.saturating_sub(self.cycle.start_us) as u32 > self.min_rtt.us;
        if self.pacing_gain == UNIT {
            return full_length;
        }
        let in_network = self.in_network_at_departure(window, sample.prior_in_flight, clock);
        let bandwidth = self.max_bandwidth.get();
        if self.pacing_gain > UNIT {
            return full_length
                && (sample.losses > 0 || in_network >= self.inflight(window, bandwidth, self.pacing_gain));
        }
        full_length || in_network <= self.inflight(window, bandwidth, UNIT)
    }
}
