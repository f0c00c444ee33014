//! BBR's window: how much may be in flight, Linux 6.12 (`bbr_set_cwnd` in `tcp_bbr.c`).

use super::Bbr;
use super::min_rtt::MIN_CWND;
use super::mode::{Mode, UNIT, UNIT_SHIFT};
use super::pacing::{BW_SHIFT, BW_UNIT, tso_segs_goal};
use crate::cc::RateSample;
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::window::Window;
use sawtooth_units::width::Low;

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
    fn with_quantization(&self, flight: &Flight, window: &Window, segments: u32) -> u32 {
        let mut segments = segments.wrapping_add(3 * tso_segs_goal(flight, window));
        segments = segments.wrapping_add(1) & !1;
        if self.mode == Mode::ProbeBw && self.cycle.phase == 0 {
            segments = segments.wrapping_add(2);
        }
        segments
    }

    /// What may be in flight at `bandwidth` and `gain`, in segments (`bbr_inflight`).
    pub(super) fn inflight(&self, flight: &Flight, window: &Window, bandwidth: u32, gain: u32) -> u32 {
        self.with_quantization(flight, window, self.bdp(bandwidth, gain))
    }

    /// Of `in_flight` segments, those that will still be in the network when the pacer lets the next one go
    /// (`bbr_packets_in_net_at_edt`).
    pub(super) fn in_network_at_departure(
        &self,
        flight: &Flight,
        window: &Window,
        in_flight: u32,
        clock: Clock,
    ) -> u32 {
        let wait_us = flight.wstamp_ns.saturating_sub(clock.now.nanos()) / 1_000;
        let delivered = (u64::from(self.bandwidth()).wrapping_mul(wait_us) >> BW_SHIFT).low_u32();
        let departing = if self.pacing_gain > UNIT { tso_segs_goal(flight, window) } else { 0 };
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
    pub(super) fn set_cwnd(
        &mut self,
        flight: &Flight,
        window: &mut Window,
        sample: &RateSample,
        bandwidth: u32,
        gain: u32,
    ) {
        let mut cwnd = window.cwnd;
        if sample.acked_sacked > 0 {
            cwnd = self.recover_or_restore(flight, window, sample);
            if !self.packet_conservation {
                cwnd = self.toward_target(flight, window, cwnd, sample.acked_sacked, bandwidth, gain);
            }
        }
        window.cwnd = cwnd.min(flight.cwnd_clamp);
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(MIN_CWND);
        }
    }

    /// In the first round of recovery one segment goes out for each one delivered; when recovery ends the window is
    /// what it was before (`bbr_set_cwnd_to_recover_or_restore`). Returns the window, to which
    /// [`Self::packet_conservation`] tells whether it is to grow further.
    fn recover_or_restore(&mut self, flight: &Flight, window: &Window, sample: &RateSample) -> u32 {
        let (before, now) = (self.prev_ca_state, flight.ca_state);
        let mut cwnd = window.cwnd;
        if sample.losses > 0 {
            cwnd = (cwnd.wrapping_sub(sample.losses).cast_signed()).max(1).cast_unsigned();
        }
        let conserving = flight.in_flight().wrapping_add(sample.acked_sacked);
        if now == CaState::Recovery && before != CaState::Recovery {
            self.packet_conservation = true;
            self.rounds.next_delivered = flight.delivered;
            cwnd = conserving;
        } else if before >= CaState::Recovery && now < CaState::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prev_ca_state = now;
        if self.packet_conservation { cwnd.max(conserving) } else { cwnd }
    }

    /// Grow to the target by what was delivered; come down to it at once, but only when the pipe is known to be full.
    fn toward_target(&self, flight: &Flight, window: &Window, cwnd: u32, acked: u32, bandwidth: u32, gain: u32) -> u32 {
        let segments = self.bdp(bandwidth, gain).wrapping_add(self.aggregation_allowance());
        let target = self.with_quantization(flight, window, segments);
        let grown = cwnd.wrapping_add(acked);
        let cwnd = if self.full_pipe.reached {
            grown.min(target)
        } else if cwnd < target || flight.delivered < u64::from(INIT_CWND) {
            grown
        } else {
            cwnd
        };
        cwnd.max(MIN_CWND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::bbr::tests::{full, sample};
    use crate::cc::testing::clock;

    #[test]
    fn the_product_is_rounded_up() {
        let (bbr, ..) = full();
        // 10 segments a millisecond, 10 ms.
        let rate = (10 * BW_UNIT / 1_000) as u32;
        assert_eq!(bbr.bdp(rate, UNIT), 100);
        assert_eq!(bbr.bdp(rate + 100, UNIT), 101);
        assert_eq!(bbr.bdp(rate, UNIT * 5 / 4), 125);
    }

    #[test]
    fn without_a_sample_of_the_delay_ten_segments_are_assumed() {
        let (mut bbr, ..) = full();
        bbr.min_rtt.us = u32::MAX;
        assert_eq!(bbr.bdp(u32::MAX, UNIT), 10);
    }

    #[test]
    fn three_super_packets_are_added_and_the_sum_made_even() {
        let (mut bbr, f, mut w) = full();
        w.pacing_rate = 14_500_000; // 14160 bytes, 9 segments
        assert_eq!(bbr.with_quantization(&f, &w, 100), 128);
        assert_eq!(bbr.with_quantization(&f, &w, 101), 128);
        bbr.cycle.phase = 0;
        assert_eq!(bbr.with_quantization(&f, &w, 100), 130, "and two more while probing");
    }

    #[test]
    fn what_the_pacer_has_scheduled_will_have_left_the_network() {
        let (mut bbr, mut f, w) = full();
        let now = clock(5_000_000, 250);
        assert_eq!(bbr.in_network_at_departure(&f, &w, 50, now), 50);
        f.wstamp_ns = 5_002_000_000;
        assert_eq!(bbr.in_network_at_departure(&f, &w, 50, now), 31, "2 ms at 10 segments a millisecond, rounded down");
        assert_eq!(bbr.in_network_at_departure(&f, &w, 5, now), 0);
        bbr.pacing_gain = UNIT * 5 / 4;
        assert_eq!(bbr.in_network_at_departure(&f, &w, 50, now), 31 + tso_segs_goal(&f, &w), "and the next one joins");
    }

    fn ack(bbr: &mut Bbr, f: &mut Flight, w: &mut Window, acked_sacked: u32, losses: u32) -> u32 {
        f.delivered += u64::from(acked_sacked);
        let (bandwidth, gain) = (bbr.bandwidth(), bbr.cwnd_gain);
        bbr.set_cwnd(f, w, &RateSample { acked_sacked, losses, ..sample() }, bandwidth, gain);
        w.cwnd
    }

    #[test]
    fn the_window_grows_by_what_is_delivered_up_to_twice_the_product() {
        let (mut bbr, mut f, mut w) = full();
        w.cwnd = 150;
        assert_eq!(ack(&mut bbr, &mut f, &mut w, 20, 0), 170);
        assert_eq!(ack(&mut bbr, &mut f, &mut w, 200, 0), bbr.inflight(&f, &w, bbr.bandwidth(), 2 * UNIT));
        w.cwnd = 1_000;
        assert!(ack(&mut bbr, &mut f, &mut w, 1, 0) < 250, "and comes down to it at once");
    }

    #[test]
    fn before_the_pipe_is_full_the_window_never_comes_down() {
        let (mut bbr, mut f, mut w) = full();
        bbr.full_pipe.reached = false;
        w.cwnd = 1_000;
        f.delivered = 100;
        assert_eq!(ack(&mut bbr, &mut f, &mut w, 1, 0), 1_000);
    }

    #[test]
    fn an_ack_of_nothing_changes_nothing_but_the_caps() {
        let (mut bbr, mut f, mut w) = full();
        w.cwnd = 1_000;
        assert_eq!(ack(&mut bbr, &mut f, &mut w, 0, 7), 1_000);
        f.cwnd_clamp = 500;
        assert_eq!(ack(&mut bbr, &mut f, &mut w, 0, 0), 500);
        bbr.mode = Mode::ProbeRtt;
        assert_eq!(ack(&mut bbr, &mut f, &mut w, 0, 0), 4);
    }

    #[test]
    fn the_first_round_of_recovery_conserves_packets_and_its_end_restores_the_window() {
        let (mut bbr, mut f, mut w) = full();
        bbr.save_cwnd(&w);
        assert_eq!(bbr.prior_cwnd, 200);
        f.ca_state = CaState::Recovery;
        (f.packets_out, f.lost_out) = (100, 10);
        assert_eq!(ack(&mut bbr, &mut f, &mut w, 3, 10), 93, "in flight and delivered, not one more");
        assert!(bbr.packet_conservation);
        assert_eq!(bbr.rounds.next_delivered, f.delivered, "a round starts");
        assert_eq!(ack(&mut bbr, &mut f, &mut w, 2, 0), 93);

        bbr.packet_conservation = false; // what the next round does
        assert_eq!(ack(&mut bbr, &mut f, &mut w, 2, 1), 94, "one lost, two delivered");

        f.ca_state = CaState::Open;
        let restored = ack(&mut bbr, &mut f, &mut w, 1, 0);
        assert_eq!(restored, 201);
        assert_eq!(bbr.prev_ca_state, CaState::Open);
    }

    #[test]
    fn a_window_saved_twice_in_one_recovery_is_the_larger() {
        let (mut bbr, _, mut w) = full();
        bbr.save_cwnd(&w);
        bbr.prev_ca_state = CaState::Recovery;
        w.cwnd = 20;
        bbr.save_cwnd(&w);
        assert_eq!(bbr.prior_cwnd, 200);
        bbr.prev_ca_state = CaState::Open;
        bbr.save_cwnd(&w);
        assert_eq!(bbr.prior_cwnd, 20);
    }
}
