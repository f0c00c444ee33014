//! BBR v3's four phases of probing for bandwidth (the draft's "ProbeBW").
//!
//! DOWN drains the queue from probing and leaves room to others, CRUISE keeps that, REFILL fills the pipe for one
//! round, UP goes beyond.

use super::mode::Mode;
use super::short_term::Bounds;
use super::{Bbr3, Edition, NO_BOUND};
use crate::cc::RateSample;
use crate::clock::Clock;
use crate::flight::Flight;
use crate::window::Window;

/// The number of rounds after which a Reno flow of at least as many segments would probe too
/// (`bbr_bw_probe_max_rounds`).
const MOST_ROUNDS: u32 = 63;
/// The count of rounds begins at a random number below this (`bbr_bw_probe_rand_rounds`); it ends at 255.
const RANDOM_ROUNDS: u32 = 2;
const MOST_COUNTED_ROUNDS: u32 = 255;
/// Probing waits at most two to three seconds (`bbr_bw_probe_base_us`, `bbr_bw_probe_rand_us`).
const WAIT_US: u32 = 2_000_000;
const RANDOM_WAIT_US: u32 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Down,
    Cruise,
    Refill,
    Up,
}

/// What the current ACKs acknowledge (`enum bbr_ack_phase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Acks {
    #[default]
    Other,
    OfRefill,
    OfProbeStarting,
    OfProbe,
    OfProbeStopping,
}

#[derive(Clone, Debug)]
pub(super) struct Probe {
    pub(super) acks: Acks,
    /// Data acknowledged or lost now was sent while probing, and has not shown too much loss yet (`bw_probe_samples`).
    pub(super) gives_samples: bool,
    /// The last probing went too high (`prev_probe_too_high`).
    pub(super) was_too_high: bool,
    /// The last probing ended at the bound because the one before had gone too high (`stopped_risky_probe`).
    pub(super) was_cautious: bool,
    /// Rounds of raising the bound; segments acknowledged since the last step, and per step.
    pub(super) up_rounds: u32,
    pub(super) acked: u32,
    pub(super) acked_per_step: u32,
    /// When the wait for probing began, its length in microseconds, and how many rounds it has (`rounds_since_probe`).
    since_us: u64,
    wait_us: u32,
    rounds: u32,
}

impl Default for Probe {
    fn default() -> Self {
        Probe {
            acks: Acks::Other,
            gives_samples: false,
            was_too_high: false,
            was_cautious: false,
            up_rounds: 0,
            acked: 0,
            acked_per_step: NO_BOUND,
            since_us: 0,
            wait_us: 0,
            rounds: 0,
        }
    }
}

impl Probe {
    pub(super) fn count_round(&mut self) {
        self.rounds = (self.rounds + 1).min(MOST_COUNTED_ROUNDS);
    }
}

impl<E: Edition> Bbr3<E> {
    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_cycle(
        &mut self,
        flight: &Flight,
        window: &Window,
        sample: &RateSample,
        bandwidth: u32,
        clock: Clock,
    ) {
        if !self.full_pipe.reached || self.adapt_long_term(flight, window, sample, clock) {
            return;
        }
        let Mode::ProbeBw(phase) = self.mode else { return };
        match phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe_again(flight) => {
                let doublings = self.doublings_to_probe_again();
                self.refill(flight);
                self.probe.up_rounds = doublings;
            }
            Phase::Down | Phase::Cruise if self.is_time_to_probe(flight, window, clock) => self.refill(flight),
            Phase::Down if self.has_drained(flight, window, sample, clock) => self.cruise(),
            Phase::Down | Phase::Cruise => {}
            Phase::Refill if self.rounds.started => {
                self.probe.gives_samples = true;
                self.probe_up(flight, window, bandwidth);
            }
            Phase::Refill => {}
            Phase::Up => self.end_probe(flight, window, sample, bandwidth, clock),
        }
    }

    /// IsTimeToGoDown: at the bound if it was too high last time; or when more brings no more bandwidth.
    fn end_probe(&mut self, flight: &Flight, window: &Window, sample: &RateSample, bandwidth: u32, clock: Clock) {
        let is_cautious =
            self.probe.was_too_high && self.in_network(flight, window, sample.prior_in_flight, clock) >= self.long_term;
        let is_bounded = flight.is_cwnd_limited && window.cwnd >= self.long_term;
        if is_cautious {
            self.probe.was_cautious = true;
        } else if is_bounded {
            // The bound is the limit, not the path.
            self.full_pipe.look_anew(bandwidth);
        }
        if is_cautious || !is_bounded && self.full_pipe.now {
            self.probe.was_too_high = false;
            self.probe_down(flight, clock);
        }
    }

    /// IsTimeToProbeBW.
    fn is_time_to_probe(&self, flight: &Flight, window: &Window, clock: Clock) -> bool {
        let has_waited = clock.micros() > self.probe.since_us + u64::from(self.probe.wait_us);
        has_waited || self.probe.rounds >= self.target_inflight(flight, window).min(MOST_ROUNDS)
    }

    /// IsTimeToCruise: the flight leaves headroom, and no queue.
    fn has_drained(&self, flight: &Flight, window: &Window, sample: &RateSample, clock: Clock) -> bool {
        let inflight = self.in_network(flight, window, sample.prior_in_flight, clock);
        inflight <= self.with_headroom() && inflight <= self.full(flight, window)
    }

    /// StartProbeBW_DOWN: a cycle begins.
    pub(super) fn probe_down(&mut self, flight: &Flight, clock: Clock) {
        self.reset_congestion_signals();
        self.probe.acked_per_step = NO_BOUND;
        self.probe.rounds = self.random.below(RANDOM_ROUNDS);
        self.probe.wait_us = WAIT_US + self.random.below(RANDOM_WAIT_US);
        self.probe.since_us = clock.micros();
        self.probe.acks = Acks::OfProbeStopping;
        self.rounds.next_delivered = flight.delivered;
        self.enter(Phase::Down);
    }

    /// StartProbeBW_CRUISE.
    pub(super) fn cruise(&mut self) {
        if E::CRUISE_WITHIN_LONG_TERM && self.short_term.inflight != NO_BOUND {
            self.short_term.inflight = self.short_term.inflight.min(self.long_term);
        }
        self.enter(Phase::Cruise);
    }

    /// StartProbeBW_REFILL: recent losses no longer bound anything.
    pub(super) fn refill(&mut self, flight: &Flight) {
        self.short_term = Bounds::NONE;
        (self.probe.up_rounds, self.probe.acked, self.probe.was_cautious) = (0, 0, false);
        self.probe.acks = Acks::OfRefill;
        self.rounds.next_delivered = flight.delivered;
        self.enter(Phase::Refill);
    }

    /// StartProbeBW_UP.
    fn probe_up(&mut self, flight: &Flight, window: &Window, bandwidth: u32) {
        self.probe.acks = Acks::OfProbeStarting;
        self.rounds.next_delivered = flight.delivered;
        self.full_pipe.look_anew(bandwidth);
        self.enter(Phase::Up);
        self.raise_slope(window);
    }

    fn enter(&mut self, phase: Phase) {
        self.mode = Mode::ProbeBw(phase);
        self.is_settled = false;
    }
}
