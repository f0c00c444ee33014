//! BBR's window: how much may be in flight, Linux 6.12 (`bbr_set_cwnd` in `tcp_bbr.c`).

use super::Bbr;
use super::min_rtt::MIN_CWND;
use super::mode::{Mode, UNIT, UNIT_SHIFT};
use super::pacing::{BW_SHIFT, BW_UNIT, tso_segs_goal};
use crate::cc::RateSample;
use crate::clock::Clock;
use crate::window::{CaState, Window};

/// The window before anything is known, in segments (`TCP_INIT_CWND`, RFC 6928).
const INIT_CWND: u32 = 10;

impl Bbr {
    /// Bandwidth-delay product times `gain`, in segments, rounded up (`bbr_bdp`).
    fn bdp(&self, bandwidth: u32, gain: u32) -> u32 {
        if self.min_rtt.us == u32::MAX {
            return INIT_CWND;
        }
        let product = u64::from(bandwidth).wrapping_mul(u64::from(self.min_rtt.us));
        let scaled = product.wrapping_mul(u64::from(gain)) >> UNIT_SHIFT;
        (scaled.wrapping_add(BW_UNIT - 1) / BW_UNIT) as u32
    }

    /// Room for what offload at both ends and delayed ACKs hold back (`bbr_quantization_budget`).
    fn with_quantization(&self, window: &Window, segments: u32) -> u32 {
        let mut segments = segments.wrapping_add(3 * tso_segs_goal(window));
        segments = segments.wrapping_add(1) & !1;
        if self.mode == Mode::ProbeBw && self.cycle.phase == 0 {
            segments = segments.wrapping_add(2);
        }
        segments
    }

    /// What may be in flight at `bandwidth` and `gain`, in segments (`bbr_inflight`).
    pub(super) fn inflight(&self, window: &Window, bandwidth: u32, gain: u32) -> u32 {
        self.with_quantization(window, self.bdp(bandwidth, gain))
    }

    /// Of `in_flight` segments, those that will still be in the network when the pacer lets the next one go
    /// (`bbr_packets_in_net_at_edt`).
    pub(super) fn in_network_at_departure(&self, window: &Window, in_flight: u32, clock: Clock) -> u32 {
        let wait_us = window.wstamp_ns.saturating_sub(clock.now.nanos()) / 1_000;
        let delivered = (u64::from(self.bandwidth()).wrapping_mul(wait_us) >> BW_SHIFT) as u32;
        let departing = if self.pacing_gain > UNIT {
            tso_segs_goal(window)
        } else {
            0
        };
        in_flight.wrapping_add(departing).saturating_sub(delivered)
    }

    /// Remember the window before recovery or PROBE_RTT cuts it (`bbr_save_cwnd`).
    pub(super) fn save_cwnd(&mut self, window: &Window) {
        if self.prev_ca_state < CaState::Recovery && self.mode != Mode::ProbeRtt {
            self.prior_cwnd = window.cwnd;
        } else {
            self.prior_cwnd = self.prior_cwnd.max(window.cwnd);
        }
    }

    /// `bbr_set_cwnd`.
    pub(super) fn set_cwnd(&mut self, window: &mut Window, sample: &RateSample, bandwidth: u32, gain: u32) {
        let mut cwnd = window.cwnd;
        if sample.acked_sacked > 0 {
            cwnd = self.recover_or_restore(window, sample);
            if !self.packet_conservation {
                cwnd = self.toward_target(window, cwnd, sample.acked_sacked, bandwidth, gain);
            }
        }
        window.cwnd = cwnd.min(window.cwnd_clamp);
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(MIN_CWND);
        }
    }

    /// In the first round of recovery one segment goes out for each one delivered; when recovery ends the window is what it
    /// was before (`bbr_set_cwnd_to_recover_or_restore`). Returns the window, to which [`Self::packet_conservation`] tells
    /// whether it is to grow further.
    fn recover_or_restore(&mut self, window: &Window, sample: &RateSample) -> u32 {
        let (before, now) = (self.prev_ca_state, window.ca_state);
        let mut cwnd = window.cwnd;
        if sample.losses > 0 {
            cwnd = (cwnd.wrapping_sub(sample.losses) as i32).max(1) as u32;
        }
        let conserving = window.in_flight().wrapping_add(sample.acked_sacked);
        if now == CaState::Recovery && before != CaState::Recovery {
            self.packet_conservation = true;
            self.rounds.next_delivered = window.delivered;
            cwnd = conserving;
        } else if before >= CaState::Recovery && now < CaState::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prev_ca_state = now;
        if self.packet_conservation {
            cwnd.max(conserving)
        } else {
            cwnd
        }
    }

    /// Grow to the target by what was delivered; come down to it at once, but only when the pipe is known to be full.
    fn toward_target(&self, window: &Window, cwnd: u32, acked: u32, bandwidth: u32, gain: u32) -> u32 {
        let segments = self.bdp(bandwidth, gain).wrapping_add(self.aggregation_allowance());
        let target = self.with_quantization(window, segments);
        let grown = cwnd.wrapping_add(acked);
        let cwnd = if self.full_pipe.reached {
            grown.min(target)
        } else if cwnd < target || window.delivered < u64::from(INIT_CWND) {
            grown
        } else {
            cwnd
        };
        cwnd.max(MIN_CWND)
    }
}
