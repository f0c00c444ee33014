//! BBR v3's pacing rate, super-packets and window (the draft's "Updating Control Parameters").

use super::mode::Mode;
use super::probing::Phase;
use super::{Bbr3, Edition, NO_BOUND};
use crate::cc::bbr::min_rtt::MIN_CWND;
use crate::cc::bbr::mode::UNIT;
use crate::cc::bbr::pacing::{BW_SHIFT, NOMINAL_RTT_US, bytes_per_second};
use crate::cc::bbr::window::{left_at_departure, product};
use crate::cc::gso::{MAX_PAYLOAD, MAX_TCP_HEADER, PACING_SHIFT};
use crate::cc::{MIN_TSO_SEGS, RateSample};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::window::Window;
use sawtooth_units::width::{Fit, Low};

/// Super-packets held back by offload and delayed ACKs: in the sender's queue, in its card, at the receiver.
const HELD_BACK: u32 = 3;
/// Additional room while probing, in segments.
const PROBING_ROOM: u32 = 2;
/// Largest payload of a super-packet in bytes, for the window and for sending: headers are subtracted twice.
const LARGEST_RECKONED: u32 = MAX_PAYLOAD;
pub(super) const LARGEST_SENT: u32 = MAX_PAYLOAD - 1 - MAX_TCP_HEADER;
/// On the shortest path a super-packet has this many more bytes, halved for each 512 us (`bbr_tso_rtt_shift`).
const SHORT_PATH_BYTES: u64 = 65_536;
const SHORT_PATH_SHIFT: u32 = 9;

impl<E: Edition> Bbr3<E> {
    /// InitPacingRate: the window over the round-trip time, times startup's gain.
    pub(super) fn init_pacing_rate(&mut self, flight: &Flight, window: &mut Window) {
        self.has_seen_rtt = flight.srtt_us > 0;
        let rtt_us = if self.has_seen_rtt { (flight.srtt_us >> 3).max(1) } else { NOMINAL_RTT_US };
        let bandwidth = (u64::from(window.cwnd) << BW_SHIFT) / u64::from(rtt_us);
        window.pacing_rate = Self::rate(flight, bandwidth.low_u32(), super::mode::STARTUP_GAIN);
    }

    fn rate(flight: &Flight, bandwidth: u32, gain: u32) -> u64 {
        bytes_per_second(flight.mss, bandwidth, gain).max(1)
    }

    /// SetPacingRateWithGain. Until the pipe is known to be full the rate only rises, except for the first round-trip
    /// sample, which corrects the assumed value.
    fn set_pacing_rate(&mut self, flight: &Flight, window: &mut Window, gain: u32) {
        if flight.srtt_us > 0 && !self.has_seen_rtt {
            self.init_pacing_rate(flight, window);
        }
        let least = if self.full_pipe.reached { 0 } else { window.pacing_rate };
        window.pacing_rate = Self::rate(flight, self.bandwidth(), gain).max(least);
    }

    /// Pace at the estimated bandwidth, neither probing nor draining.
    pub(super) fn pace_at_bandwidth(&mut self, flight: &Flight, window: &mut Window) {
        self.set_pacing_rate(flight, window, UNIT);
    }

    /// Segments of a super-packet of at most `largest` bytes: a millisecond's worth, and more on short paths
    /// (`bbr_tso_segs_generic`).
    pub(super) fn super_packet(&self, flight: &Flight, window: &Window, largest: u32) -> u32 {
        let paced = window.pacing_rate >> PACING_SHIFT;
        let halvings = self.min_rtt.us >> SHORT_PATH_SHIFT;
        let more = if E::QUANTUM_BY_RTT && halvings < u32::BITS { SHORT_PATH_BYTES >> halvings } else { 0 };
        let bytes = paced.saturating_add(more).min(u64::from(largest)).fit_u32();
        (bytes / flight.mss).max(MIN_TSO_SEGS)
    }

    fn bdp(&self, bandwidth: u32, gain: u32) -> u32 {
        product(bandwidth, self.min_rtt.us, gain).unwrap_or(self.initial_window)
    }

    /// QuantizationBudget.
    fn with_quanta(&self, flight: &Flight, window: &Window, segments: u32) -> u32 {
        let held_back = HELD_BACK * self.super_packet(flight, window, LARGEST_RECKONED);
        let room = if self.mode == Mode::ProbeBw(Phase::Up) { PROBING_ROOM } else { 0 };
        segments.max(held_back).max(MIN_CWND).saturating_add(room)
    }

    /// The segments that fill the path at its largest bandwidth.
    pub(super) fn full(&self, flight: &Flight, window: &Window) -> u32 {
        self.with_quanta(flight, window, self.bdp(self.max_bandwidth.get(), UNIT))
    }

    /// TargetInflight: the segments that fill it at the bandwidth in use, unless the window is smaller.
    pub(super) fn target_inflight(&self, flight: &Flight, window: &Window) -> u32 {
        self.with_quanta(flight, window, self.bdp(self.bandwidth(), UNIT)).min(window.cwnd)
    }

    /// Of `in_flight` segments, those still in the network when the pacer releases the next super-packet.
    pub(super) fn in_network(&self, flight: &Flight, window: &Window, in_flight: u32, clock: Clock) -> u32 {
        if !E::LOOKS_TO_DEPARTURE {
            return in_flight;
        }
        let next = if self.pacing_gain > UNIT { self.super_packet(flight, window, LARGEST_RECKONED) } else { 0 };
        left_at_departure(flight, in_flight, next, self.bandwidth(), clock)
    }

    /// SaveCwnd: the window to return to after recovery or PROBE_RTT, either of which may have cut it already.
    pub(super) fn save_cwnd(&mut self, window: &Window) {
        let is_cut = self.mode == Mode::ProbeRtt || self.prev_ca_state >= CaState::Recovery;
        let kept = if is_cut { self.prior_cwnd } else { 0 };
        self.prior_cwnd = window.cwnd.max(kept);
    }

    /// RestoreCwnd; the model bounds it at the next ACK.
    pub(super) fn restore_cwnd(&mut self, window: &mut Window) {
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        self.is_settled = false;
    }

    /// UpdateControlParameters.
    pub(super) fn set_rate_and_window(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample) {
        self.update_gains();
        self.set_pacing_rate(flight, window, self.pacing_gain);
        if sample.acked_sacked > 0 {
            window.cwnd = self.next_cwnd(flight, window, sample.acked_sacked);
        }
        window.cwnd = window.cwnd.min(window.clamp);
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd());
        }
        window.cwnd = window.cwnd.min(self.bound().max(MIN_CWND));
    }

    /// SetCwnd: grows by what was delivered. Only a pipe known to be full keeps the window at the target, or reduces
    /// it.
    fn next_cwnd(&mut self, flight: &Flight, window: &Window, acked: u32) -> u32 {
        let wanted = self.bdp(self.bandwidth(), self.cwnd_gain).saturating_add(self.aggregation_allowance());
        let target = self.with_quanta(flight, window, wanted);
        let grown = window.cwnd.saturating_add(acked);
        let cwnd = if self.full_pipe.reached {
            self.is_settled = grown >= target;
            grown.min(target)
        } else {
            self.is_settled = window.cwnd >= target && !self.is_beginning(flight, window);
            if self.is_settled { window.cwnd } else { grown }
        };
        cwnd.max(MIN_CWND)
    }

    fn is_beginning(&self, flight: &Flight, window: &Window) -> bool {
        if E::GROWS_TO_TWO_WINDOWS {
            window.cwnd < 2 * self.initial_window
        } else {
            flight.delivered < u64::from(self.initial_window)
        }
    }

    /// BoundCwndForModel.
    fn bound(&self) -> u32 {
        let long_term = match self.mode {
            Mode::ProbeBw(Phase::Cruise) | Mode::ProbeRtt => self.with_headroom(),
            Mode::ProbeBw(Phase::Down | Phase::Refill | Phase::Up) => self.long_term,
            Mode::Startup | Mode::Drain => NO_BOUND,
        };
        long_term.min(self.short_term.inflight)
    }
}
