//! BBR version 3 as in Linux (the public v3 tree and the patches of distributions for 6.12); [`LowLatency`] adds the
//! tree's low-latency ECN, and [`Draft`] is draft-ietf-ccwg-bbr.
//!
//! One file per part: [`edition`] lists where the two differ; [`bandwidth`] and [`min_rtt`] measure the path;
//! [`short_term`] and [`long_term`] bound rate and flight after losses, [`marks`] after marks; [`mode`] and [`probing`]
//! are the states, [`window`] rate and window. Rounds, gains, products and ACK aggregation are those of version 1
//! ([`super::bbr`]).

mod bandwidth;
mod edition;
mod long_term;
mod marks;
mod min_rtt;
mod mode;
mod probing;
mod short_term;
mod window;

use super::bbr::aggregation::Aggregation;
use super::bbr::bandwidth::Rounds;
use super::bbr::random::Random;
use super::{Control, Event, Loss, Phase, RateSample};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::window::{INFINITE_SSTHRESH, Window};
use crate::windowed::WindowedMax;
use bandwidth::{FullPipe, MaxBandwidth, sampled};
pub use edition::{Draft, Edition, Linux, LowLatency};
use marks::Marks;
use min_rtt::MinRtt;
use mode::Mode;
use probing::Probe;
use short_term::{Bounds, Delivery, LossRound};
use std::marker::PhantomData;

/// Not bounded.
const NO_BOUND: u32 = u32::MAX;
/// The initial window counts as at most this.
const LARGEST_INITIAL_WINDOW: u32 = 0x7f;

/// One connection's BBR v3. Bandwidths are in 2^-24 segments per microsecond, gains in 256ths.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Bbr3<E> {
    mode: Mode,
    pacing_gain: u32,
    cwnd_gain: u32,
    rounds: Rounds,
    max_bandwidth: MaxBandwidth,
    full_pipe: FullPipe,
    loss_round: LossRound,
    /// The most that the last round delivered.
    latest: Delivery,
    /// `bw_lo`, `inflight_lo`.
    short_term: Bounds,
    /// `inflight_hi`, in segments.
    long_term: u32,
    probe: Probe,
    marks: Marks,
    min_rtt: MinRtt,
    aggregation: Aggregation,
    /// The draft's filter of the same value.
    extra_acked: WindowedMax,
    undo: Undo,
    /// Window before recovery or PROBE_RTT, in segments.
    prior_cwnd: u32,
    initial_window: u32,
    prev_ca_state: CaState,
    idle_restart: bool,
    has_seen_rtt: bool,
    /// The window is where the model wants it; while the application is the limit, nothing needs to be done then.
    is_settled: bool,
    /// The round in which draining began.
    drain_start: u32,
    random: Random,
    edition: PhantomData<E>,
}

/// What an undone recovery restores.
#[derive(Clone, Copy, Debug)]
struct Undo {
    short_term: Bounds,
    long_term: u32,
    /// The mode that a loss ended.
    mode: Option<Mode>,
}

impl<E: Edition> Control for Bbr3<E> {
    const NAME: &'static str = "bbr3";
    const VARIANT: Option<&'static str> = E::VARIANT;
    const HAS_CONG_CONTROL: bool = true;
    const HEARS_OF_LOSSES: bool = true;
    const NOTES_APP_LIMIT_ON_ACK: bool = E::NOTES_APP_LIMIT_ON_ACK;
    const HEEDS_EACH_MARK: bool = E::HEEDS_MARKS;

    /// `bbr_init`: from here on the sender paces.
    fn new(flight: &Flight, window: &mut Window, clock: Clock, seed: u64) -> Self {
        let mut bbr = Bbr3 {
            mode: Mode::Startup,
            // As in the kernel, gains are set with the first ACK.
            pacing_gain: 0,
            cwnd_gain: 0,
            rounds: Rounds { count: 0, next_delivered: flight.delivered, started: false },
            max_bandwidth: MaxBandwidth::default(),
            full_pipe: FullPipe::default(),
            loss_round: LossRound::ending_at(flight.delivered + 1),
            latest: Delivery::default(),
            short_term: Bounds::NONE,
            long_term: NO_BOUND,
            probe: Probe::default(),
            marks: Marks::NONE,
            min_rtt: MinRtt::new(flight.min_rtt_us, clock.jiffies()),
            aggregation: Aggregation::new(clock.micros()),
            extra_acked: WindowedMax::new(0, 0),
            undo: Undo { short_term: Bounds::default(), long_term: 0, mode: None },
            prior_cwnd: flight.prior_cwnd,
            initial_window: window.cwnd.min(LARGEST_INITIAL_WINDOW),
            prev_ca_state: CaState::Open,
            idle_restart: false,
            has_seen_rtt: false,
            is_settled: false,
            drain_start: 0,
            random: Random::new(seed),
            edition: PhantomData,
        };
        window.ssthresh = INFINITE_SSTHRESH;
        bbr.init_pacing_rate(flight, window);
        window.pacing = true;
        bbr
    }

    fn current_phase(&self) -> Phase {
        match self.mode {
            Mode::Startup => Phase::Startup,
            Mode::Drain => Phase::Drain,
            Mode::ProbeBw(probing::Phase::Cruise) => Phase::Cruise,
            Mode::ProbeBw(probing::Phase::Refill) => Phase::Refill,
            Mode::ProbeBw(probing::Phase::Up) => Phase::Up,
            Mode::ProbeBw(probing::Phase::Down) => Phase::Down,
            Mode::ProbeRtt => Phase::ProbeRtt,
        }
    }

    /// On each ACK (the draft's "Per-ACK Steps", whose order this is): the model of the path, then rate and window.
    fn cong_control(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample, clock: Clock) {
        if E::RECOVERY_RESTORES_CWND && flight.ca_state < CaState::Recovery && self.prev_ca_state >= CaState::Recovery {
            self.restore_cwnd(window);
        }
        self.begin_round(flight, sample);
        if E::HEEDS_MARKS {
            self.see_marks(flight, window, sample);
        }
        let bandwidth = sampled(sample);
        self.note_delivery(flight, sample, bandwidth);
        if !self.has_nothing_to_learn(sample, bandwidth) {
            self.learn(flight, window, sample, bandwidth, clock);
            self.set_rate_and_window(flight, window, sample);
        } else if self.changed_state(flight, window, sample, bandwidth, clock) {
            self.set_rate_and_window(flight, window, sample);
        }
        self.forget_delivery(sample, bandwidth);
        if E::HEEDS_MARKS {
            self.marks.note(sample);
        }
        self.prev_ca_state = flight.ca_state;
    }

    /// Loss changes no threshold; values that it may change are saved (`bbr_ssthresh`).
    fn ssthresh(&mut self, _: &Flight, window: &Window) -> u32 {
        self.save_for_undo(window);
        window.ssthresh
    }

    /// `bbr_set_state`.
    fn set_state(&mut self, _: &Flight, window: &mut Window, new: CaState, _: Clock) {
        if new == CaState::Loss {
            self.prev_ca_state = CaState::Loss;
            self.full_pipe.look_anew(0);
            if E::TIMEOUT_BOUNDS_FLIGHT && !self.mode.is_probing() && self.short_term.inflight == NO_BOUND {
                self.short_term.inflight = window.cwnd.max(self.prior_cwnd);
            }
        } else if self.prev_ca_state == CaState::Loss {
            self.restore_cwnd(window);
        }
    }

    fn event(&mut self, flight: &Flight, window: &mut Window, event: Event, clock: Clock) {
        match event {
            Event::TxStart { .. } if window.app_limited > 0 => self.restart_from_idle(flight, window, clock),
            Event::TlpRecovery { is_app_limited } => self.see_tail_loss(flight, window, is_app_limited, clock),
            Event::TxStart { .. } | Event::CwndRestart | Event::Loss | Event::CompleteCwr => {}
        }
    }

    /// The draft's NoteLoss and HandleLostPacket.
    fn skb_marked_lost(&mut self, flight: &Flight, window: &Window, loss: &Loss, clock: Clock) {
        self.note_loss(flight, window);
        if self.probe.gives_samples {
            self.judge_lost(flight, window, loss, clock);
        }
    }

    /// The recovery was spurious: bounds and window are restored (`bbr_undo_cwnd`).
    fn undo_cwnd(&mut self, flight: &Flight, window: &Window) -> u32 {
        self.full_pipe.look_anew(0);
        self.loss_round.has_loss = false;
        self.short_term = self.short_term.max(self.undo.short_term);
        self.long_term = self.long_term.max(self.undo.long_term);
        self.is_settled = false;
        if E::UNDO_RESTORES_STATE {
            self.return_to_undone_mode(flight);
            return window.cwnd.max(self.prior_cwnd);
        }
        self.prior_cwnd
    }

    /// [`Control::tso_segs`] replaces it.
    fn min_tso_segs(&self, _: &Flight, _: &Window) -> u32 {
        super::MIN_TSO_SEGS
    }

    fn tso_segs(&self, flight: &Flight, window: &Window) -> Option<u32> {
        Some(self.super_packet(flight, window, window::LARGEST_SENT))
    }

    /// `bbr_sndbuf_expand`.
    fn sndbuf_expand(&self) -> u32 {
        3
    }
}

impl<E: Edition> Bbr3<E> {
    fn learn(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample, bandwidth: u32, clock: Clock) {
        self.note_congestion(window, sample, bandwidth);
        self.update_aggregation(flight, window, sample);
        self.check_startup_loss(flight, window, sample);
        self.check_full_pipe(sample, bandwidth);
        self.check_drain(flight, window, clock);
        self.update_cycle(flight, window, sample, bandwidth, clock);
        self.update_min_rtt(flight, window, sample, clock);
    }

    /// The model does not change while the application is the limit and nothing was lost (`bbr_run_fast_path`).
    fn has_nothing_to_learn(&self, sample: &RateSample, bandwidth: u32) -> bool {
        let is_low = sample.is_app_limited && bandwidth < self.max_bandwidth.get();
        is_low && self.is_settled && !self.loss_round.has_loss && !self.marks.are_in_round()
    }

    /// Whether the state or the smallest round-trip time changes nevertheless.
    fn changed_state(
        &mut self,
        flight: &Flight,
        window: &mut Window,
        sample: &RateSample,
        bandwidth: u32,
        clock: Clock,
    ) -> bool {
        let before = (self.mode, self.min_rtt.us);
        self.check_drain(flight, window, clock);
        self.update_cycle(flight, window, sample, bandwidth, clock);
        self.update_min_rtt(flight, window, sample, clock);
        (self.mode, self.min_rtt.us) != before || !self.is_settled
    }

    /// The first transmission after silence (the draft's "Restarting From Idle").
    fn restart_from_idle(&mut self, flight: &Flight, window: &mut Window, clock: Clock) {
        self.idle_restart = true;
        self.aggregation.restart_epoch(clock.micros());
        match self.mode {
            Mode::ProbeBw(_) => self.pace_at_bandwidth(flight, window),
            Mode::ProbeRtt => self.check_probe_rtt_done(flight, window, clock),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn save_for_undo(&mut self, window: &Window) {
        self.save_cwnd(window);
        self.undo = Undo { short_term: self.short_term, long_term: self.long_term, mode: None };
    }

    /// The draft's last steps after a spurious recovery.
    fn return_to_undone_mode(&mut self, flight: &Flight) {
        let Some(mode) = self.undo.mode.take() else { return };
        match mode {
            Mode::Startup if self.mode != Mode::Startup => {
                self.full_pipe.reached = false;
                if self.mode != Mode::ProbeRtt {
                    self.mode = Mode::Startup;
                }
            }
            Mode::ProbeBw(_) if self.mode != mode && self.mode != Mode::ProbeRtt => self.refill(flight),
            _ => {}
        }
    }
}

#[cfg(test)]
mod appendix;
#[cfg(test)]
mod path;
#[cfg(test)]
mod tests;
