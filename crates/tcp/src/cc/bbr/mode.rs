//! BBR's modes, gains and the cycle of PROBE_BW (the draft's sections 4.3 and 4.3.4), with Linux 6.12's constants.

use super::Bbr;
use crate::cc::RateSample;
use crate::clock::Clock;
use crate::flight::Flight;
use crate::window::Window;
use sawtooth_units::width::Low;
use std::cmp::Ordering;

/// Gains are in 256ths (`BBR_SCALE`).
pub(in crate::cc) const UNIT_SHIFT: u32 = 8;
/// A gain of one (`BBR_UNIT`).
pub(in crate::cc) const UNIT: u32 = 1 << UNIT_SHIFT;
/// 2/ln 2, the smallest gain that doubles the rate in a round (`bbr_high_gain`).
pub(super) const HIGH_GAIN: u32 = UNIT * 2885 / 1000 + 1;
/// Its inverse, which drains startup's queue in one round (`bbr_drain_gain`).
const DRAIN_GAIN: u32 = UNIT * 1000 / 2885;
/// Two bandwidth-delay products leave room for late and stretched ACKs (`bbr_cwnd_gain`).
const PROBE_BW_CWND_GAIN: u32 = UNIT * 2;
/// Phases of the cycle (`CYCLE_LEN`).
pub(super) const CYCLE_LENGTH: usize = 8;
/// Pacing gains of the cycle: probe, drain the queue from probing, cruise (`bbr_pacing_gain`).
const CYCLE: [u32; CYCLE_LENGTH] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// The cycle starts in one of this many phases, any but the draining one (`bbr_cycle_rand`).
const START_PHASES: u32 = 7;

/// `enum bbr_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cc) enum Mode {
    /// Double the rate each round until the pipe is full.
    Startup,
    /// Drain the queue that startup made.
    Drain,
    /// Cycle around the bandwidth.
    ProbeBw,
    /// Empty the pipe to measure the smallest round-trip time.
    ProbeRtt,
}

/// The position of PROBE_BW in its cycle.
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
    /// Sets the gains of the mode; with a policer's rate there is nothing to probe.
    pub(super) fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.rate().is_some() => (UNIT, PROBE_BW_CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle.phase], PROBE_BW_CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// Start the cycle in a random phase (`bbr_reset_probe_bw_mode`).
    pub(super) fn enter_probe_bw(&mut self, flight: &Flight) {
        self.mode = Mode::ProbeBw;
        self.cycle.phase = CYCLE_LENGTH - 1 - self.random.below(START_PHASES) as usize;
        self.cycle.advance(flight.delivered_us);
    }

    /// Returns to the mode before PROBE_RTT (`bbr_reset_mode`).
    pub(super) fn leave_probe_rtt(&mut self, flight: &Flight) {
        if self.full_pipe.reached {
            self.enter_probe_bw(flight);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// BBRCheckDrain: a full pipe ends startup; an empty queue ends draining, which may be at once.
    pub(super) fn check_drain(&mut self, flight: &Flight, window: &mut Window, clock: Clock) {
        if !matches!(self.mode, Mode::Startup | Mode::Drain) {
            return;
        }
        if self.mode == Mode::Startup {
            if !self.full_pipe.reached {
                return;
            }
            self.mode = Mode::Drain;
            window.ssthresh = self.full(flight, window, UNIT);
        }
        if self.in_network_at_departure(flight, window, flight.in_flight(), clock) <= self.full(flight, window, UNIT) {
            self.enter_probe_bw(flight);
        }
    }

    /// The segments that fill the path at its bandwidth times `gain`.
    fn full(&self, flight: &Flight, window: &Window, gain: u32) -> u32 {
        self.inflight(flight, window, self.max_bandwidth.get(), gain)
    }

    /// BBRCheckCyclePhase.
    pub(super) fn update_cycle(&mut self, flight: &Flight, window: &Window, sample: &RateSample, clock: Clock) {
        if self.mode == Mode::ProbeBw && self.is_phase_over(flight, window, sample, clock) {
            self.cycle.advance(flight.delivered_us);
        }
    }

    /// BBRIsNextCyclePhase. A phase lasts one round-trip time. Probing lasts longer, until the flight reaches the
    /// gain's target or a loss shows that it cannot; draining ends as soon as the flight is no larger than it should
    /// be.
    fn is_phase_over(&self, flight: &Flight, window: &Window, sample: &RateSample, clock: Clock) -> bool {
        let is_long = flight.delivered_us.saturating_sub(self.cycle.start_us).low_u32() > self.min_rtt.us;
        let held = || self.in_network_at_departure(flight, window, sample.prior_in_flight, clock);
        match self.pacing_gain.cmp(&UNIT) {
            Ordering::Equal => is_long,
            Ordering::Less => is_long || held() <= self.full(flight, window, UNIT),
            Ordering::Greater => {
                is_long && (sample.losses > 0 || held() >= self.full(flight, window, self.pacing_gain))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::bbr::tests::{full, sample};
    use crate::cc::testing::clock;

    #[test]
    fn the_gains_are_the_kernels() {
        let (mut bbr, ..) = full();
        let gains = [Mode::Startup, Mode::Drain, Mode::ProbeBw, Mode::ProbeRtt].map(|mode| {
            bbr.mode = mode;
            bbr.update_gains();
            (bbr.pacing_gain, bbr.cwnd_gain)
        });
        assert_eq!(gains, [(739, 739), (88, 739), (256, 512), (256, 256)]);
        let cycle = [0, 1, 2, 7].map(|phase| {
            bbr.mode = Mode::ProbeBw;
            bbr.cycle.phase = phase;
            bbr.update_gains();
            bbr.pacing_gain
        });
        assert_eq!(cycle, [320, 192, 256, 256]);
    }

    #[test]
    fn the_cycle_starts_anywhere_but_in_the_draining_phase() {
        let (mut bbr, f, _) = full();
        let mut seen = [0; CYCLE_LENGTH];
        for _ in 0..700 {
            bbr.enter_probe_bw(&f);
            seen[bbr.cycle.phase] += 1;
        }
        assert_eq!(seen[1], 0);
        assert!(seen.iter().enumerate().all(|(phase, &n)| phase == 1 || n > 60), "{seen:?}");
    }

    /// Whether a phase is over after more (`longer`) or less than a round-trip time, with this flight and these losses.
    fn is_over(phase: usize, longer: bool, prior_in_flight: u32, losses: u32) -> bool {
        let (mut bbr, mut f, w) = full();
        bbr.cycle.phase = phase;
        bbr.cycle.start_us = f.delivered_us;
        bbr.update_gains();
        f.delivered_us += u64::from(bbr.min_rtt.us) + u64::from(longer);
        bbr.is_phase_over(&f, &w, &RateSample { prior_in_flight, losses, ..sample() }, clock(f.delivered_us, 250))
    }

    #[test]
    fn a_cruising_phase_lasts_longer_than_the_round_trip_time() {
        assert!(!is_over(3, false, 100, 0));
        assert!(is_over(3, true, 100, 0));
    }

    /// 100 segments in flight are one bandwidth-delay product in `full`.
    #[test]
    fn probing_also_waits_for_a_filled_pipe_or_a_loss() {
        assert!(!is_over(0, true, 100, 0));
        assert!(is_over(0, true, 100, 1));
        assert!(is_over(0, true, 160, 0));
        assert!(!is_over(0, false, 160, 1));
    }

    #[test]
    fn draining_ends_early_when_the_pipe_is_no_more_than_full() {
        assert!(!is_over(1, false, 200, 0));
        assert!(is_over(1, false, 100, 0));
        assert!(is_over(1, true, 200, 0));
    }
}
