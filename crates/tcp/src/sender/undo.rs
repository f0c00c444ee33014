//! Undoes recoveries that turn out to be needless: by the timestamps' echo (Eifel, RFC 3522), by DSACKs (RFC 3708), or
//! by F-RTO (RFC 5682).

use super::Sender;
use super::scoreboard::LOST;
use crate::clock::Clock;
use crate::flight::CaState;

/// A recovery that may turn out to be needless.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// Retransmissions of data from here on count (`undo_marker`).
    pub from: u64,
    /// Those that were not reported as needless (`undo_retrans`); none: nothing was retransmitted yet.
    outstanding: Option<u32>,
}

impl Undo {
    pub fn retransmitted(&mut self, count: u32) {
        self.outstanding = Some(self.outstanding.unwrap_or(0) + count);
    }

    /// The receiver reported `count` retransmissions as needless.
    pub fn needless(&mut self, count: u32) {
        self.outstanding = self.outstanding.map(|outstanding| outstanding.saturating_sub(count));
    }
}

impl Sender {
    /// A recovery begins: records from where retransmissions count, and how many are outstanding.
    pub(super) fn init_undo(&mut self) {
        let probes = u32::from(self.tlp_retrans && self.tlp_high_seq.is_some());
        let out = self.flight.retrans_out + probes;
        self.undo = Some(Undo { from: self.flight.snd_una, outstanding: (out > 0).then_some(out) });
    }

    /// Whether the acknowledged data is an original, sent before its retransmission. Without an echo (and without
    /// retransmissions) it is.
    fn packet_delayed(&self, tsecr: u32) -> bool {
        match self.retrans_stamp {
            0 => self.sack || self.flight.snd_una < self.high_seq,
            stamp => self.echo_before(tsecr, stamp),
        }
    }

    /// Every retransmission was needless.
    fn all_were_duplicates(&self) -> bool {
        self.undo.is_some_and(|undo| undo.outstanding == Some(0))
    }

    fn may_undo(&self, tsecr: u32) -> bool {
        self.all_were_duplicates() || self.undo.is_some() && self.packet_delayed(tsecr)
    }

    /// Restores window and threshold.
    fn undo_cwnd_reduction(&mut self, clock: Clock) {
        self.undo = None;
        self.rack.look_again();
        if self.flight.prior_ssthresh == 0 {
            return;
        }
        self.window.cwnd = self.congestion.undo_cwnd(&self.flight, &mut self.window, clock);
        if self.flight.prior_ssthresh > self.window.ssthresh {
            self.window.ssthresh = self.flight.prior_ssthresh;
            self.queues_cwr = false;
        }
    }

    /// Nothing counts as lost now.
    fn unmark_lost(&mut self) {
        self.retransmit_hint = None;
        self.flight.lost_out = 0;
        let mut at = self.board.first();
        while let Some(place) = at {
            self.board.run_mut(place).flags &= !LOST;
            at = self.board.after(place);
        }
    }

    /// Without SACK the acknowledgement must pass the end of the flight, otherwise old duplicates would begin a
    /// recovery (RFC 6582 section 4.1).
    fn holds_until_above_high(&mut self) -> bool {
        let holds = !self.sack && self.flight.snd_una == self.high_seq;
        if holds {
            self.forget_retransmissions();
        }
        holds
    }

    /// Everything in flight is acknowledged. True: the state stays nevertheless.
    pub(super) fn try_undo_recovery(&mut self, tsecr: u32, clock: Clock) -> bool {
        if self.may_undo(tsecr) {
            self.undo_cwnd_reduction(clock);
        } else {
            self.rack.count_recovery();
        }
        let holds = self.holds_until_above_high();
        if !holds {
            self.set_state(CaState::Open, clock);
        }
        holds
    }

    pub(super) fn try_undo_dsack(&mut self, clock: Clock) -> bool {
        let undone = self.all_were_duplicates();
        if undone {
            self.rack.discount_recovery();
            self.undo_cwnd_reduction(clock);
        }
        undone
    }

    /// After a timeout; `frto`: F-RTO has shown that it was spurious.
    pub(super) fn try_undo_loss(&mut self, frto: bool, tsecr: u32, clock: Clock) -> bool {
        if !(frto || self.may_undo(tsecr)) {
            return false;
        }
        self.unmark_lost();
        self.undo_cwnd_reduction(clock);
        self.retransmits = 0;
        let holds = self.holds_until_above_high();
        if !holds && (self.sack || frto) {
            self.set_state(CaState::Open, clock);
        }
        true
    }

    /// The ACK filled a gap below the flight. True: by a delayed original, while retransmissions are outstanding.
    pub(super) fn try_undo_partial(&mut self, prior_una: u64, tsecr: u32, clock: Clock) -> bool {
        let was_delayed = self.undo.is_some() && self.packet_delayed(tsecr);
        if was_delayed {
            self.check_sack_reordering(prior_una);
            if self.flight.retrans_out > 0 {
                return true;
            }
            self.forget_retransmissions();
            self.unmark_lost();
            self.undo_cwnd_reduction(clock);
            self.try_keep_open(clock);
        }
        false
    }
}
