//! BBR version 1, Linux 6.12 (`tcp_bbr.c`): paces at the bandwidth that it measures.
//!
//! One file per part, like the draft's sections: [`bandwidth`], [`min_rtt`], [`mode`], [`pacing`], [`window`]; and
//! parts that the draft lacks: [`policer`], [`aggregation`].
//!
//! # Where Linux differs
//!
//! From draft-cardwell-iccrg-bbr-congestion-control-00; this folder follows Linux, with its integers.
//!
//! - It paces 1% below the estimate.
//! - It detects a policer and adopts its rate ([`policer`]).
//! - The window has room for aggregated ACKs ([`aggregation`]), is even, and is two segments larger while probing.
//! - Data already scheduled by the pacer counts as delivered by its departure; the draft uses the flight.
//! - The smallest round-trip time expires by the tick, so the 10 s and 200 ms are rounded to ticks.
//! - Fractions are 256ths; a bandwidth has 24 fraction bits.

pub(super) mod aggregation;
pub(super) mod bandwidth;
pub(super) mod min_rtt;
pub(super) mod mode;
pub(super) mod pacing;
mod policer;
pub(crate) mod random;
pub(super) mod window;

use super::{Control, Event, Phase, RateSample};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::window::{INFINITE_SSTHRESH, Window};
use crate::windowed::WindowedMax;
use aggregation::Aggregation;
use bandwidth::{FullPipe, Rounds};
use min_rtt::MinRtt;
use mode::{Cycle, Mode};
use policer::Policer;
use random::Random;
use std::cmp::Ordering;

/// One connection's BBR (`struct bbr`).
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Bbr {
    mode: Mode,
    /// In 256ths.
    pacing_gain: u32,
    cwnd_gain: u32,
    rounds: Rounds,
    /// In 2^-24 segments per microsecond.
    max_bandwidth: WindowedMax,
    full_pipe: FullPipe,
    policer: Policer,
    min_rtt: MinRtt,
    cycle: Cycle,
    aggregation: Aggregation,
    /// Window before recovery or PROBE_RTT, in segments.
    prior_cwnd: u32,
    prev_ca_state: CaState,
    packet_conservation: bool,
    idle_restart: bool,
    has_seen_rtt: bool,
    random: Random,
}

impl Control for Bbr {
    const NAME: &'static str = "bbr";
    const HAS_CONG_CONTROL: bool = true;

    /// `bbr_init`: from here on the sender paces.
    fn new(flight: &Flight, window: &mut Window, clock: Clock, seed: u64) -> Self {
        let mut bbr = Bbr {
            mode: Mode::Startup,
            // As in the kernel, gains are set with the first ACK.
            pacing_gain: 0,
            cwnd_gain: 0,
            rounds: Rounds { count: 0, next_delivered: flight.delivered, started: false },
            max_bandwidth: WindowedMax::new(0, 0),
            full_pipe: FullPipe::default(),
            policer: Policer::Unsuspected,
            min_rtt: MinRtt::new(flight.min_rtt_us, clock.jiffies()),
            cycle: Cycle::default(),
            aggregation: Aggregation::new(clock.micros()),
            prior_cwnd: 0,
            prev_ca_state: CaState::Open,
            packet_conservation: false,
            idle_restart: false,
            has_seen_rtt: false,
            random: Random::new(seed),
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
            Mode::ProbeRtt => Phase::ProbeRtt,
            Mode::ProbeBw => match self.pacing_gain.cmp(&mode::UNIT) {
                Ordering::Greater => Phase::Up,
                Ordering::Less => Phase::Down,
                Ordering::Equal => Phase::Cruise,
            },
        }
    }

    /// On each ACK (the draft's section 3.5.2, whose order this is): update the model of the path, then rate and
    /// window.
    fn cong_control(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample, clock: Clock) {
        self.update_bandwidth(flight, sample);
        self.update_aggregation(flight, window, sample);
        self.update_cycle(flight, window, sample, clock);
        self.check_full_pipe(sample);
        self.check_drain(flight, window, clock);
        self.update_min_rtt(flight, window, sample, clock);
        self.update_gains();

        let bandwidth = self.bandwidth();
        self.set_pacing_rate(flight, window, bandwidth, self.pacing_gain);
        self.set_cwnd(flight, window, sample, bandwidth, self.cwnd_gain);
    }

    /// Loss changes no threshold; the window before it is kept (`bbr_ssthresh`).
    fn ssthresh(&mut self, _: &Flight, window: &Window) -> u32 {
        self.save_cwnd(window);
        window.ssthresh
    }

    /// A timeout ends a round and is a loss to the policer's detector (`bbr_set_state`).
    fn set_state(&mut self, flight: &Flight, _: &mut Window, new: CaState, _: Clock) {
        if new == CaState::Loss {
            self.prev_ca_state = CaState::Loss;
            self.full_pipe.bandwidth = 0;
            self.rounds.started = true;
            self.watch_policer(flight, 1, false);
        }
    }

    /// Restart after the application was idle (`bbr_cwnd_event`).
    fn event(&mut self, flight: &Flight, window: &mut Window, event: Event, clock: Clock) {
        if !matches!(event, Event::TxStart { .. }) || window.app_limited == 0 {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart_epoch(clock.micros());
        match self.mode {
            Mode::ProbeBw => self.pace_at_bandwidth(flight, window),
            Mode::ProbeRtt => self.check_probe_rtt_done(flight, window, clock.jiffies()),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// The recovery was spurious: whether the pipe is full is determined again; the window stays (`bbr_undo_cwnd`).
    fn undo_cwnd(&mut self, _: &Flight, window: &Window) -> u32 {
        self.full_pipe.bandwidth = 0;
        self.full_pipe.rounds = 0;
        self.policer = Policer::Unsuspected;
        window.cwnd
    }

    fn min_tso_segs(&self, _: &Flight, window: &Window) -> u32 {
        pacing::min_tso_segs(window.pacing_rate)
    }

    /// `bbr_sndbuf_expand`.
    fn sndbuf_expand(&self) -> u32 {
        3
    }
}

#[cfg(test)]
impl Bbr {
    pub(super) fn mode(&self) -> Mode {
        self.mode
    }
    pub(super) fn phase(&self) -> usize {
        self.cycle.phase
    }
    pub(super) fn gain(&self) -> u32 {
        self.pacing_gain
    }
}

#[cfg(test)]
pub(super) mod tests;
