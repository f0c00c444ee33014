//! Loss recovery: its states (RFC 5681, RFC 6582, RFC 6675), the transitions, and F-RTO (RFC 5682).
//!
//! Open: normal. Disorder: something was SACKed or may be lost. Cwr: the window is being reduced after a mark, or after
//! a tail loss probe that repaired a loss. Recovery: losses are being repaired. Loss: a timeout fired. The last three
//! end when everything in flight at their beginning is acknowledged (`high_seq`).

use super::Sender;
use super::ack::{Acking, Recover};
use super::scoreboard::EVER_RETRANS;
use crate::cc::Event;
use crate::clock::Clock;
use crate::flight::CaState;

impl Sender {
    /// The effect of an ACK on recovery, if it is a duplicate, carries SACKs, or the state is not Open. `duplicates`:
    /// how many duplicate ACKs it represents. Returns what to send besides new data; the time is decided later.
    pub(super) fn alert(&mut self, prior_una: u64, duplicates: u32, acking: &mut Acking, clock: Clock) -> Recover {
        if self.flight.packets_out == 0 {
            self.flight.sacked_out = 0;
        }
        if acking.ece {
            self.flight.prior_ssthresh = 0;
        }
        if self.holds_at_high_seq(acking.tsecr, clock) {
            return Recover::Nothing;
        }
        match self.flight.ca_state {
            CaState::Open | CaState::Disorder | CaState::Cwr => {
                if self.finds_loss(duplicates, acking, clock) {
                    Recover::Lost
                } else {
                    Recover::Nothing
                }
            }
            CaState::Recovery => self.go_on_recovering(prior_una, duplicates, acking, clock),
            CaState::Loss => self.go_on_after_timeout(duplicates, acking, clock),
        }
    }

    /// Leaves Cwr and Recovery once everything in flight at their beginning is acknowledged; Loss ends elsewhere. True:
    /// it stays (without SACK), and nothing else is done.
    fn holds_at_high_seq(&mut self, tsecr: u32, clock: Clock) -> bool {
        let is_passed = self.flight.snd_una > self.high_seq;
        let is_reached = self.flight.snd_una >= self.high_seq;
        match self.flight.ca_state {
            CaState::Open => self.retrans_stamp = 0,
            CaState::Cwr if is_passed => {
                self.end_cwnd_reduction(clock);
                self.set_state(CaState::Open, clock);
            }
            CaState::Recovery if is_reached => {
                if !self.sack {
                    self.flight.sacked_out = 0;
                }
                if self.try_undo_recovery(tsecr, clock) {
                    return true;
                }
                self.end_cwnd_reduction(clock);
            }
            CaState::Disorder | CaState::Cwr | CaState::Recovery | CaState::Loss => {}
        }
        false
    }

    fn go_on_recovering(&mut self, prior_una: u64, duplicates: u32, acking: &mut Acking, clock: Clock) -> Recover {
        if acking.advanced {
            if self.try_undo_partial(prior_una, acking.tsecr, clock) {
                return Recover::Nothing;
            }
        } else if !self.sack {
            self.add_reno_sack(duplicates);
        }
        if self.try_undo_dsack(clock) {
            self.try_to_open(acking.ece, clock);
        }
        self.identify_loss(acking, clock);
        if self.flight.ca_state != CaState::Recovery {
            // It was undone, but something else may be lost.
            if self.flight.lost_out == 0 {
                return Recover::Nothing;
            }
            self.enter_recovery(acking.ece, clock);
        }
        Recover::Lost
    }

    fn go_on_after_timeout(&mut self, duplicates: u32, acking: &mut Acking, clock: Clock) -> Recover {
        let wanted = self.repair_after_timeout(acking, duplicates, clock);
        self.identify_loss(acking, clock);
        // An undone timeout, or a lost retransmission, may begin a recovery.
        let is_open = self.flight.ca_state == CaState::Open || acking.lost_retransmission;
        if is_open && self.finds_loss(duplicates, acking, clock) { Recover::Lost } else { wanted }
    }

    /// Begins a recovery if something is lost.
    fn finds_loss(&mut self, duplicates: u32, acking: &mut Acking, clock: Clock) -> bool {
        if !self.sack {
            if acking.advanced {
                self.flight.sacked_out = 0;
            }
            self.add_reno_sack(duplicates);
        }
        if self.flight.ca_state <= CaState::Disorder {
            self.try_undo_dsack(clock);
        }
        self.identify_loss(acking, clock);
        let is_lost = self.flight.lost_out > 0;
        if is_lost {
            self.enter_recovery(acking.ece, clock);
        } else {
            self.try_to_open(acking.ece, clock);
        }
        is_lost
    }

    /// Marks losses: by transmission time with SACK, by duplicate ACKs without.
    fn identify_loss(&mut self, acking: &mut Acking, clock: Clock) {
        if self.board.is_empty() {
            return;
        }
        if !self.sack {
            return self.newreno_mark_lost(acking.advanced, clock);
        }
        let before = self.flight.retrans_out;
        if self.rack_mark_lost(clock) {
            acking.sets_timer = false;
        }
        if self.flight.retrans_out < before {
            acking.lost_retransmission = true;
        }
    }

    /// What to send after a timeout.
    fn repair_after_timeout(&mut self, acking: &Acking, duplicates: u32, clock: Clock) -> Recover {
        let advanced = acking.advanced;
        if advanced && self.try_undo_loss(false, acking.tsecr, clock) {
            return Recover::Nothing;
        }
        let is_over = self.flight.snd_una >= self.high_seq;
        if self.frto
            && let Some(wanted) = self.forward_rto(acking, duplicates, advanced && !is_over, clock)
        {
            return wanted;
        }
        if is_over {
            self.try_undo_recovery(acking.tsecr, clock);
            return Recover::Nothing;
        }
        if !self.sack {
            // A duplicate caused by F-RTO's new data, which has arrived.
            if duplicates > 0 && self.flight.snd_nxt > self.high_seq {
                self.add_reno_sack(duplicates);
            } else if advanced {
                self.flight.sacked_out = 0;
            }
        }
        Recover::Lost
    }

    /// F-RTO (RFC 5682 section 3.1), which detects spurious timeouts. `is_partial`: the ACK covers part of the flight.
    /// `None`: as far as this ACK shows, the timeout was right, and losses are repaired.
    fn forward_rto(&mut self, acking: &Acking, duplicates: u32, is_partial: bool, clock: Clock) -> Option<Recover> {
        // Step 3.b: data that was never retransmitted arrived.
        if acking.delivered_original && self.try_undo_loss(true, acking.tsecr, clock) {
            return Some(Recover::Nothing);
        }
        let has_sent_new = self.flight.snd_nxt > self.high_seq;
        if has_sent_new {
            // Step 3.a: a duplicate after new data.
            self.frto &= duplicates == 0 && !acking.sacked;
        } else if is_partial {
            // Step 2.b: up to two segments of new data, if available.
            self.high_seq = self.flight.snd_nxt;
            if self.unsent() > 0 && self.flight.snd_nxt < self.window_end {
                return Some(Recover::New);
            }
            self.frto = false;
        }
        None
    }

    /// Fast recovery begins; `ece`: with a mark, so it is never undone.
    pub(super) fn enter_recovery(&mut self, ece: bool, clock: Clock) {
        self.forget_retransmissions();
        self.init_undo();
        self.flight.prior_ssthresh = 0;
        if !self.in_cwnd_reduction() {
            if !ece {
                self.flight.prior_ssthresh = self.current_ssthresh();
            }
            self.init_cwnd_reduction(false, clock);
        }
        self.set_state(CaState::Recovery, clock);
    }

    /// The retransmission timeout fired: everything not sent just now is lost (RFC 5681 section 3.1, RFC 8985 section
    /// 6.3).
    pub(super) fn enter_loss(&mut self, clock: Clock) {
        let state = self.flight.ca_state;
        self.timeout_mark_lost(clock);
        let is_first = match state {
            CaState::Open | CaState::Disorder => true,
            CaState::Loss if self.retransmits == 0 => true,
            CaState::Cwr | CaState::Recovery | CaState::Loss => self.flight.snd_una >= self.high_seq,
        };
        if is_first {
            self.flight.prior_ssthresh = self.current_ssthresh();
            self.flight.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.congestion.ssthresh(&self.flight, &mut self.window, clock);
            self.congestion.event(&self.flight, &mut self.window, Event::Loss, clock);
            self.init_undo();
        }
        (self.window.cwnd, self.window.cwnd_cnt) = (self.flight.in_flight() + 1, 0);
        self.limit_reordering_after_timeout();
        self.set_state(CaState::Loss, clock);
        self.high_seq = self.flight.snd_nxt;
        self.tlp_high_seq = None;
        self.queue_cwr();
        // RFC 5682 section 3.1, step 1: not during an earlier recovery, unless that one has already timed out.
        self.frto = state < CaState::Recovery || self.retransmits > 0;
    }

    fn timeout_mark_lost(&mut self, clock: Clock) {
        if !self.sack {
            self.flight.sacked_out = 0;
        }
        let oldest = self.board.first();
        let mut at = oldest;
        while let Some(place) = at {
            if at == oldest || self.rack_remaining_us(self.board.run(place), 0, clock) <= 0 {
                self.mark_lost(place, clock);
            }
            at = self.board.after(place);
        }
        self.retransmit_hint = None;
    }

    fn any_retransmitted(&self) -> bool {
        self.flight.retrans_out > 0 || self.board.front().is_some_and(|oldest| oldest.is(EVER_RETRANS))
    }

    /// If no retransmitted data is left, the next retransmission is the first one.
    pub(super) fn forget_retransmissions(&mut self) {
        if !self.any_retransmitted() {
            self.retrans_stamp = 0;
        }
    }

    fn try_to_open(&mut self, ece: bool, clock: Clock) {
        self.forget_retransmissions();
        if ece {
            self.enter_cwr(clock);
        }
        if self.flight.ca_state != CaState::Cwr {
            self.try_keep_open(clock);
        }
    }

    /// Open, or Disorder while something is SACKed, lost or retransmitted.
    pub(super) fn try_keep_open(&mut self, clock: Clock) {
        let is_clean = self.left_out() == 0 && !self.any_retransmitted();
        let state = if is_clean { CaState::Open } else { CaState::Disorder };
        if state != self.flight.ca_state {
            self.set_state(state, clock);
            self.high_seq = self.flight.snd_nxt;
        }
    }
}
