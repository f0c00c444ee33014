//! BBR v3's states and gains, the end of startup by loss, and draining (the draft's "Startup" and "Drain").

use super::probing::Phase;
use super::{Bbr3, Edition};
use crate::cc::RateSample;
use crate::cc::bbr::mode::UNIT;
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::window::Window;

/// 4 ln 2: the smallest gain that doubles the rate in a round without a queue of its own making
/// (`bbr_startup_pacing_gain`).
pub(super) const STARTUP_GAIN: u32 = UNIT * 277 / 100 + 1;
/// The window in bandwidth-delay products (`bbr_cwnd_gain`, `bbr_startup_cwnd_gain`), and the addition while probing
/// (`bbr_bw_probe_cwnd_gain`).
const CWND_GAIN: u32 = UNIT * 2;
const UP_CWND_GAIN: u32 = CWND_GAIN + UNIT / 4;
/// ProbeBW_UP's pacing gain (`bbr_pacing_gain`).
const UP_GAIN: u32 = UNIT * 5 / 4;
/// ACKs that report losses in a round of startup before losses can end it (`bbr_full_loss_cnt`); counted up to 15.
const STARTUP_LOSSES: u8 = 6;
const MOST_COUNTED_LOSSES: u8 = 15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Startup,
    Drain,
    ProbeBw(Phase),
    ProbeRtt,
}

impl Mode {
    /// IsProbingBW: sending more than is known to fit.
    pub(super) fn is_probing(self) -> bool {
        matches!(self, Mode::Startup | Mode::ProbeBw(Phase::Refill | Phase::Up))
    }

    pub(super) fn is_probe_bw(self) -> bool {
        matches!(self, Mode::ProbeBw(_))
    }
}

impl<E: Edition> Bbr3<E> {
    pub(super) fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (STARTUP_GAIN, CWND_GAIN),
            Mode::Drain => (E::DRAIN_GAIN, CWND_GAIN),
            Mode::ProbeBw(Phase::Down) => (E::DOWN_GAIN, CWND_GAIN),
            Mode::ProbeBw(Phase::Cruise | Phase::Refill) => (UNIT, CWND_GAIN),
            Mode::ProbeBw(Phase::Up) => (UP_GAIN, UP_CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// CheckStartupHighLoss: too much is lost in a round of recovery, in more than one or two places.
    pub(super) fn check_startup_loss(&mut self, flight: &Flight, window: &Window, sample: &RateSample) {
        if self.full_pipe.reached {
            return;
        }
        let events = &mut self.loss_round.events;
        *events += u8::from(sample.losses > 0 && *events < MOST_COUNTED_LOSSES);
        if !self.loss_round.started {
            return;
        }
        let is_in_recovery = flight.ca_state == CaState::Recovery;
        if is_in_recovery && *events >= STARTUP_LOSSES && self.shows_too_much(sample) {
            self.undo.mode = Some(Mode::Startup);
            self.end_startup(flight, window);
        } else {
            self.loss_round.events = 0;
        }
    }

    /// The queue is too long: the flight becomes the long-term bound.
    pub(super) fn end_startup(&mut self, flight: &Flight, window: &Window) {
        self.full_pipe.reached = true;
        self.long_term = self.full(flight, window).max(self.latest.segments);
    }

    /// CheckStartupDone and CheckDrainDone: a full pipe ends startup; an empty queue ends draining, which may be at
    /// once.
    pub(super) fn check_drain(&mut self, flight: &Flight, window: &mut Window, clock: Clock) {
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.mode = Mode::Drain;
            self.drain_start = self.rounds.count;
            window.ssthresh = self.full(flight, window);
            self.reset_congestion_signals();
        }
        if self.mode == Mode::Drain && (self.is_drained(flight, window, clock) || self.drains_for_too_long()) {
            self.probe_down(flight, clock);
        }
    }

    fn is_drained(&self, flight: &Flight, window: &Window, clock: Clock) -> bool {
        self.in_network(flight, window, flight.in_flight(), clock) <= self.full(flight, window)
    }

    fn drains_for_too_long(&self) -> bool {
        E::DRAIN_ROUNDS.is_some_and(|most| self.rounds.count.wrapping_sub(self.drain_start) > most)
    }
}
