//! BBR's window: how much may be in flight (the draft's section 4.2.3), as in Linux 6.12 (`bbr_set_cwnd`).

use super::Bbr;
use super::min_rtt::MIN_CWND;
use super::mode::{Mode, UNIT, UNIT_SHIFT};
use super::pacing::{BW_SHIFT, BW_UNIT, tso_segs_goal};
use crate::cc::RateSample;
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::window::Window;
use sawtooth_units::width::Low;

/// InitialCwnd: the window before anything is known, in segments (RFC 6928).
const INIT_CWND: u32 = 10;
/// Super-packets held back by offload and delayed ACKs: in the sender's queue, in its card, at the receiver.
const HELD_BACK: u32 = 3;
/// Additional room while probing, in segments.
const PROBING_ROOM: u32 = 2;

/// The effect of an ACK on loss recovery, as BBR sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    None,
    Entered,
    Left,
}

/// Bandwidth-delay product times `gain`, in segments, rounded up; `None` without a sample of the delay.
pub(in crate::cc) fn product(bandwidth: u32, min_rtt_us: u32, gain: u32) -> Option<u32> {
    if min_rtt_us == u32::MAX {
        return None;
    }
    let product = u64::from(bandwidth).wrapping_mul(u64::from(min_rtt_us)).wrapping_mul(u64::from(gain));
    Some(((product >> UNIT_SHIFT).wrapping_add(BW_UNIT - 1) >> BW_SHIFT).low_u32())
}

/// Of `in_flight` segments plus `next` that the pacer releases with them, those still in the network at that time
/// (`bbr_packets_in_net_at_edt`).
pub(in crate::cc) fn left_at_departure(
    flight: &Flight,
    in_flight: u32,
    next: u32,
    bandwidth: u32,
    clock: Clock,
) -> u32 {
    let until_then_us = flight.wstamp_ns.saturating_sub(clock.now.nanos()) / 1_000;
    let delivered_by_then = u64::from(bandwidth).wrapping_mul(until_then_us) >> BW_SHIFT;
    in_flight.wrapping_add(next).saturating_sub(delivered_by_then.low_u32())
}

impl Bbr {
    /// BBRInflight without quanta.
    fn bdp(&self, bandwidth: u32, gain: u32) -> u32 {
        product(bandwidth, self.min_rtt.us, gain).unwrap_or(INIT_CWND)
    }

    /// `segments` plus the quanta of both ends, made even so that delayed ACKs come in time.
    fn with_quanta(&self, flight: &Flight, window: &Window, segments: u32) -> u32 {
        let is_probing = self.mode == Mode::ProbeBw && self.cycle.phase == 0;
        let whole = segments.wrapping_add(HELD_BACK * tso_segs_goal(flight, window));
        let even = whole.wrapping_add(whole & 1);
        even.wrapping_add(if is_probing { PROBING_ROOM } else { 0 })
    }

    /// BBRInflight: the allowed flight at `bandwidth` and `gain`, in segments.
    pub(super) fn inflight(&self, flight: &Flight, window: &Window, bandwidth: u32, gain: u32) -> u32 {
        self.with_quanta(flight, window, self.bdp(bandwidth, gain))
    }

    /// Of `in_flight` segments, those still in the network when the pacer releases the next super-packet; that one is
    /// included if the rate is above the bandwidth.
    pub(super) fn in_network_at_departure(
        &self,
        flight: &Flight,
        window: &Window,
        in_flight: u32,
        clock: Clock,
    ) -> u32 {
        let next = if self.pacing_gain > UNIT { tso_segs_goal(flight, window) } else { 0 };
        left_at_departure(flight, in_flight, next, self.bandwidth(), clock)
    }

    /// BBRSaveCwnd: the window to return to after recovery or PROBE_RTT, either of which may have cut it already.
    pub(super) fn save_cwnd(&mut self, window: &Window) {
        let is_cut = self.mode == Mode::ProbeRtt || self.prev_ca_state >= CaState::Recovery;
        let kept = if is_cut { self.prior_cwnd } else { 0 };
        self.prior_cwnd = window.cwnd.max(kept);
    }

    /// BBRSetCwnd.
    pub(super) fn set_cwnd(
        &mut self,
        flight: &Flight,
        window: &mut Window,
        sample: &RateSample,
        bandwidth: u32,
        gain: u32,
    ) {
        let most = if self.mode == Mode::ProbeRtt { MIN_CWND } else { u32::MAX };
        let cwnd = match sample.acked_sacked {
            0 => window.cwnd,
            _ => self.next_cwnd(flight, window, sample, bandwidth, gain),
        };
        window.cwnd = cwnd.min(window.clamp).min(most);
    }

    /// Each lost segment reduces it by one. In the first round of recovery one segment is sent per delivered one
    /// (packet conservation), later at most two; after recovery the previous window is restored.
    fn next_cwnd(&mut self, flight: &Flight, window: &Window, sample: &RateSample, bandwidth: u32, gain: u32) -> u32 {
        let conserved = flight.in_flight().wrapping_add(sample.acked_sacked);
        let reduced = if sample.losses > 0 { window.cwnd.saturating_sub(sample.losses).max(1) } else { window.cwnd };
        let cwnd = match self.turn(flight) {
            Turn::Entered => conserved,
            Turn::Left => reduced.max(self.prior_cwnd),
            Turn::None => reduced,
        };
        if self.packet_conservation {
            return cwnd.max(conserved);
        }
        let wanted = self.bdp(bandwidth, gain).wrapping_add(self.aggregation_allowance());
        let target = self.with_quanta(flight, window, wanted);
        self.toward(target, cwnd, sample.acked_sacked, flight).max(MIN_CWND)
    }

    /// Compares the recovery state with that at the last ACK; the beginning of recovery begins a round.
    fn turn(&mut self, flight: &Flight) -> Turn {
        let before = std::mem::replace(&mut self.prev_ca_state, flight.ca_state);
        match flight.ca_state {
            CaState::Recovery if before != CaState::Recovery => {
                self.rounds.next_delivered = flight.delivered;
                self.packet_conservation = true;
                Turn::Entered
            }
            CaState::Open | CaState::Disorder | CaState::Cwr if before >= CaState::Recovery => {
                self.packet_conservation = false;
                Turn::Left
            }
            _ => Turn::None,
        }
    }

    /// Grows by what was delivered. Only a pipe known to be full keeps the window at the target, or reduces it.
    fn toward(&self, target: u32, cwnd: u32, acked: u32, flight: &Flight) -> u32 {
        let grown = cwnd.wrapping_add(acked);
        let is_beginning = flight.delivered < u64::from(INIT_CWND);
        match self.full_pipe.reached {
            true => target.min(grown),
            false if is_beginning || cwnd < target => grown,
            false => cwnd,
        }
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
        assert_eq!(bbr.with_quanta(&f, &w, 100), 128);
        assert_eq!(bbr.with_quanta(&f, &w, 101), 128);
        bbr.cycle.phase = 0;
        assert_eq!(bbr.with_quanta(&f, &w, 100), 130, "and two more while probing");
    }

    #[test]
    fn packets_scheduled_by_pacer_count_as_delivered() {
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
        w.clamp = 500;
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
