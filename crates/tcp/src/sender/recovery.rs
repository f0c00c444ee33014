//! The recovery state machine (`tcp_fastretrans_alert`), proportional rate reduction (RFC 6937), F-RTO (RFC 5682) and undo.

use super::Sender;
use super::ack::{Acking, DATA_SACKED, LOST_RETRANS, ORIG_SACK_ACKED, Recover, SET_XMIT_TIMER, SND_UNA_ADVANCED};
use super::rack::RECOVERY_PERSIST;
use super::scoreboard::{EVER_RETRANS, LOST};
use crate::cc::Event;
use crate::clock::Clock;
use crate::flight::CaState;
use crate::window::INFINITE_SSTHRESH;
use sawtooth_units::width::Fit;

impl Sender {
    /// `tcp_fastretrans_alert`: moves between the states; what is sent is decided later.
    pub(super) fn alert(
        &mut self,
        prior_una: u64,
        duplicates: u32,
        acking: &mut Acking,
        recover: &mut Recover,
        clock: Clock,
    ) {
        let advanced = acking.flags & SND_UNA_ADVANCED != 0;
        if self.flight.packets_out == 0 {
            self.flight.sacked_out = 0;
        }
        if self.flight.ca_state == CaState::Open {
            self.retrans_stamp = 0;
        } else if self.flight.snd_una >= self.high_seq {
            match self.flight.ca_state {
                CaState::Cwr if self.flight.snd_una != self.high_seq => {
                    self.end_cwnd_reduction(clock);
                    self.set_state(CaState::Open, clock);
                }
                CaState::Recovery => {
                    if !self.sack {
                        self.flight.sacked_out = 0;
                    }
                    if self.try_undo_recovery(acking.tsecr, clock) {
                        return;
                    }
                    self.end_cwnd_reduction(clock);
                }
                _ => {}
            }
        }
        match self.flight.ca_state {
            CaState::Recovery => {
                if !advanced {
                    if !self.sack {
                        self.add_reno_sack(duplicates);
                    }
                } else if self.try_undo_partial(prior_una, acking.tsecr, clock) {
                    return;
                }
                if self.try_undo_dsack() {
                    self.try_to_open(clock);
                }
                self.identify_loss(acking, clock);
                if self.flight.ca_state != CaState::Recovery {
                    if self.flight.lost_out == 0 {
                        return;
                    }
                    self.enter_recovery(clock);
                }
            }
            CaState::Loss => {
                self.process_loss(acking, duplicates, recover, clock);
                self.identify_loss(acking, clock);
                if self.flight.ca_state != CaState::Open && acking.flags & LOST_RETRANS == 0 {
                    return;
                }
                if self.alert_default(duplicates, acking, clock) {
                    return;
                }
            }
            _ => {
                if self.alert_default(duplicates, acking, clock) {
                    return;
                }
            }
        }
        *recover = Recover::Lost;
    }

    /// Open, Disorder, CWR, and Loss that ended or lost a retransmission. True: nothing is to be recovered.
    fn alert_default(&mut self, duplicates: u32, acking: &mut Acking, clock: Clock) -> bool {
        if !self.sack {
            if acking.flags & SND_UNA_ADVANCED != 0 {
                self.flight.sacked_out = 0;
            }
            self.add_reno_sack(duplicates);
        }
        if self.flight.ca_state <= CaState::Disorder {
            self.try_undo_dsack();
        }
        self.identify_loss(acking, clock);
        if self.flight.lost_out == 0 {
            self.try_to_open(clock);
            return true;
        }
        self.enter_recovery(clock);
        false
    }

    /// `tcp_identify_packet_loss`.
    fn identify_loss(&mut self, acking: &mut Acking, clock: Clock) {
        if self.board.is_empty() {
            return;
        }
        if !self.sack {
            self.newreno_mark_lost(acking.flags & SND_UNA_ADVANCED != 0);
            return;
        }
        let retransmitted = self.flight.retrans_out;
        if self.rack_mark_lost(clock) {
            acking.flags &= !SET_XMIT_TIMER;
        }
        if retransmitted > self.flight.retrans_out {
            acking.flags |= LOST_RETRANS;
        }
    }

    /// `tcp_process_loss`.
    fn process_loss(&mut self, acking: &mut Acking, duplicates: u32, recover: &mut Recover, clock: Clock) {
        let recovered = self.flight.snd_una >= self.high_seq;
        let advanced = acking.flags & SND_UNA_ADVANCED != 0;
        if advanced && self.try_undo_loss(false, acking.tsecr, clock) {
            return;
        }
        if self.frto {
            // Step 3.b: data that was never retransmitted arrived, so the timeout was spurious.
            if acking.flags & ORIG_SACK_ACKED != 0 && self.try_undo_loss(true, acking.tsecr, clock) {
                return;
            }
            if self.flight.snd_nxt > self.high_seq {
                if acking.flags & DATA_SACKED != 0 || duplicates > 0 {
                    self.frto = false;
                }
            } else if advanced && !recovered {
                self.high_seq = self.flight.snd_nxt;
                if self.unsent() > 0 && self.window_end > self.flight.snd_nxt {
                    *recover = Recover::New;
                    return;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(acking.tsecr, clock);
            return;
        }
        if !self.sack {
            if self.flight.snd_nxt > self.high_seq && duplicates > 0 {
                self.add_reno_sack(duplicates);
            } else if advanced {
                self.flight.sacked_out = 0;
            }
        }
        *recover = Recover::Lost;
    }

    /// `tcp_enter_recovery`.
    pub(super) fn enter_recovery(&mut self, clock: Clock) {
        if !self.any_retransmitted() {
            self.retrans_stamp = 0;
        }
        self.flight.prior_ssthresh = 0;
        self.init_undo();
        if !self.in_cwnd_reduction() {
            self.flight.prior_ssthresh = self.current_ssthresh();
            self.init_cwnd_reduction();
        }
        self.set_state(CaState::Recovery, clock);
    }

    /// `tcp_enter_loss`: the retransmission timeout fired.
    pub(super) fn enter_loss(&mut self, clock: Clock) {
        let new_recovery = self.flight.ca_state < CaState::Recovery;
        self.timeout_mark_lost(clock);
        let state = self.flight.ca_state;
        if state <= CaState::Disorder
            || self.high_seq <= self.flight.snd_una
            || (state == CaState::Loss && self.retransmits == 0)
        {
            self.flight.prior_ssthresh = self.current_ssthresh();
            self.flight.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.congestion.ssthresh(&self.flight, &self.window);
            self.congestion.event(&self.flight, &mut self.window, Event::Loss, clock);
            self.init_undo();
        }
        self.window.cwnd = self.flight.in_flight() + 1;
        self.window.cwnd_cnt = 0;
        self.limit_reordering_after_timeout();
        self.set_state(CaState::Loss, clock);
        self.high_seq = self.flight.snd_nxt;
        self.tlp_high_seq = None;
        self.frto = new_recovery || self.retransmits > 0;
    }

    /// `tcp_timeout_mark_lost`.
    fn timeout_mark_lost(&mut self, clock: Clock) {
        if !self.sack {
            self.flight.sacked_out = 0;
        }
        let head = self.flight.snd_una;
        for seq in head..self.flight.snd_nxt {
            // Sent too recently to be judged.
            if seq != head && self.rack_remaining_us(seq, 0, clock) > 0 {
                continue;
            }
            self.mark_lost(seq);
        }
        self.retransmit_hint = None;
    }

    /// `tcp_init_undo`.
    fn init_undo(&mut self) {
        self.undo_marker = Some(self.flight.snd_una);
        self.undo_retrans = i64::from(self.flight.retrans_out);
        if self.tlp_high_seq.is_some() && self.tlp_retrans {
            self.undo_retrans += 1;
        }
        if self.undo_retrans == 0 {
            self.undo_retrans = -1;
        }
    }

    /// `tcp_init_cwnd_reduction`.
    pub(super) fn init_cwnd_reduction(&mut self) {
        self.high_seq = self.flight.snd_nxt;
        self.tlp_high_seq = None;
        self.window.cwnd_cnt = 0;
        self.flight.prior_cwnd = self.window.cwnd;
        self.prr_delivered = 0;
        self.prr_out = 0;
        self.window.ssthresh = self.congestion.ssthresh(&self.flight, &self.window);
    }

    /// `tcp_cwnd_reduction`: proportional rate reduction (RFC 6937), with the reduction bound by slow start when the ACK
    /// advanced without new losses.
    pub(super) fn cwnd_reduction(&mut self, delivered: u32, losses: u32, advanced: bool) {
        if delivered == 0 || self.flight.prior_cwnd == 0 {
            return;
        }
        let in_flight = i64::from(self.flight.in_flight());
        let ssthresh = i64::from(self.window.ssthresh);
        let prior_cwnd = i64::from(self.flight.prior_cwnd);
        self.prr_delivered += delivered;
        let prr_out = i64::from(self.prr_out);
        let prr_delivered = i64::from(self.prr_delivered);
        let room = ssthresh - in_flight;
        let mut send = if room < 0 {
            (ssthresh * prr_delivered + prior_cwnd - 1) / prior_cwnd - prr_out
        } else {
            let banked = (prr_delivered - prr_out).max(i64::from(delivered));
            room.min(banked + i64::from(advanced && losses == 0))
        };
        // A fast retransmission goes out at once.
        send = send.max(i64::from(prr_out == 0));
        self.window.cwnd = (in_flight + send).max(1).fit_u32();
    }

    /// `tcp_end_cwnd_reduction`.
    pub(super) fn end_cwnd_reduction(&mut self, clock: Clock) {
        if self.congestion.has_cong_control() {
            return;
        }
        if self.window.ssthresh < INFINITE_SSTHRESH
            && (self.flight.ca_state == CaState::Cwr || self.undo_marker.is_some())
        {
            self.window.cwnd = self.window.ssthresh;
        }
        self.congestion.event(&self.flight, &mut self.window, Event::CompleteCwr, clock);
    }

    /// `tcp_current_ssthresh`.
    fn current_ssthresh(&self) -> u32 {
        let window = &self.window;
        if self.in_cwnd_reduction() {
            window.ssthresh
        } else {
            window.ssthresh.max((window.cwnd >> 1) + (window.cwnd >> 2))
        }
    }

    /// `tcp_any_retrans_done`.
    fn any_retransmitted(&self) -> bool {
        self.flight.retrans_out > 0
            || (!self.board.is_empty() && self.board.get(self.flight.snd_una).flags & EVER_RETRANS != 0)
    }

    /// `tcp_packet_delayed`: the echo shows that the original arrived.
    fn packet_delayed(&self, tsecr: u32) -> bool {
        if self.retrans_stamp != 0 {
            return self.echo_before(tsecr, self.retrans_stamp);
        }
        self.sack || self.flight.snd_una < self.high_seq
    }

    /// `tcp_may_undo`.
    fn may_undo(&self, tsecr: u32) -> bool {
        self.undo_marker.is_some() && (self.undo_retrans == 0 || self.packet_delayed(tsecr))
    }

    /// `tcp_undo_cwnd_reduction`.
    fn undo_cwnd_reduction(&mut self, unmark: bool) {
        if unmark {
            for seq in self.flight.snd_una..self.flight.snd_nxt {
                self.board.get_mut(seq).flags &= !LOST;
            }
            self.flight.lost_out = 0;
            self.retransmit_hint = None;
        }
        if self.flight.prior_ssthresh != 0 {
            self.window.cwnd = self.congestion.undo_cwnd(&self.flight, &self.window);
            self.window.ssthresh = self.window.ssthresh.max(self.flight.prior_ssthresh);
        }
        self.undo_marker = None;
        self.rack.advanced = true;
    }

    /// `tcp_is_non_sack_preventing_reopen`.
    fn holds_until_above_high(&mut self) -> bool {
        if self.sack || self.flight.snd_una != self.high_seq {
            return false;
        }
        if !self.any_retransmitted() {
            self.retrans_stamp = 0;
        }
        true
    }

    /// `tcp_try_undo_recovery`.
    fn try_undo_recovery(&mut self, tsecr: u32, clock: Clock) -> bool {
        if self.may_undo(tsecr) {
            self.undo_cwnd_reduction(false);
        } else if self.rack.reorder_persist > 0 {
            self.rack.reorder_persist -= 1;
        }
        if self.holds_until_above_high() {
            return true;
        }
        self.set_state(CaState::Open, clock);
        false
    }

    /// `tcp_try_undo_dsack`: every retransmission was reported as a duplicate.
    fn try_undo_dsack(&mut self) -> bool {
        if self.undo_marker.is_none() || self.undo_retrans != 0 {
            return false;
        }
        self.rack.reorder_persist = RECOVERY_PERSIST.min(self.rack.reorder_persist + 1);
        self.undo_cwnd_reduction(false);
        true
    }

    /// `tcp_try_undo_loss`.
    fn try_undo_loss(&mut self, frto: bool, tsecr: u32, clock: Clock) -> bool {
        if !frto && !self.may_undo(tsecr) {
            return false;
        }
        self.undo_cwnd_reduction(true);
        self.retransmits = 0;
        if !self.holds_until_above_high() && (frto || self.sack) {
            self.set_state(CaState::Open, clock);
        }
        true
    }

    /// `tcp_try_undo_partial`: true when the hole was filled by a delayed original and retransmissions are still out.
    fn try_undo_partial(&mut self, prior_una: u64, tsecr: u32, clock: Clock) -> bool {
        if self.undo_marker.is_none() || !self.packet_delayed(tsecr) {
            return false;
        }
        self.check_sack_reordering(prior_una);
        if self.flight.retrans_out > 0 {
            return true;
        }
        if !self.any_retransmitted() {
            self.retrans_stamp = 0;
        }
        self.undo_cwnd_reduction(true);
        self.try_keep_open(clock);
        false
    }

    /// `tcp_try_to_open`.
    fn try_to_open(&mut self, clock: Clock) {
        if !self.any_retransmitted() {
            self.retrans_stamp = 0;
        }
        if self.flight.ca_state != CaState::Cwr {
            self.try_keep_open(clock);
        }
    }

    /// `tcp_try_keep_open`.
    pub(super) fn try_keep_open(&mut self, clock: Clock) {
        let state = if self.left_out() > 0 || self.any_retransmitted() { CaState::Disorder } else { CaState::Open };
        if self.flight.ca_state != state {
            self.set_state(state, clock);
            self.high_seq = self.flight.snd_nxt;
        }
    }
}
