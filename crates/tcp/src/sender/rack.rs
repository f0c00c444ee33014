//! RACK loss detection (RFC 8985; `tcp_recovery.c`) and, without SACK, NewReno's (RFC 6582).

use super::rate::sent_after;
use super::scoreboard::{EVER_RETRANS, LOST, RETRANS, SACKED};
use super::timers::{Pending, TIMEOUT_MIN_US};
use super::{REORDERING, Sender};
use crate::clock::Clock;
use crate::flight::CaState;
use sawtooth_units::width::{Fit, Low};

/// For how many recoveries a widened reordering window stays (`TCP_RACK_RECOVERY_THRESH`).
pub const RECOVERY_PERSIST: u32 = 16;

impl Sender {
    /// `tcp_mark_skb_lost`.
    pub(super) fn mark_lost(&mut self, seq: u64) {
        let flags = self.board.get(seq).flags;
        if flags & SACKED != 0 {
            return;
        }
        match self.retransmit_hint {
            None if self.flight.retrans_out >= self.flight.lost_out => self.retransmit_hint = Some(seq),
            Some(hint) if seq < hint => self.retransmit_hint = Some(seq),
            _ => {}
        }
        if flags & LOST == 0 {
            self.board.get_mut(seq).flags |= LOST;
            self.flight.lost_out += 1;
            self.flight.lost += 1;
        } else if flags & RETRANS != 0 {
            // The retransmission was lost, too.
            self.board.get_mut(seq).flags &= !RETRANS;
            self.flight.retrans_out -= 1;
            self.flight.lost += 1;
        }
    }

    /// `tcp_rack_reo_wnd` in microseconds.
    fn reordering_window_us(&self) -> u32 {
        if !self.reordering_seen
            && (self.flight.ca_state >= CaState::Recovery || self.flight.sacked_out >= self.reordering)
        {
            return 0;
        }
        ((self.flight.min_rtt_us >> 2).saturating_mul(self.rack.reorder_steps)).min(self.flight.srtt_us >> 3)
    }

    /// `tcp_rack_skb_timeout`: microseconds until segment `seq` counts as lost.
    pub(super) fn rack_remaining_us(&self, seq: u64, reordering_window_us: u32, clock: Clock) -> i64 {
        let elapsed = clock.micros().saturating_sub(self.board.get(seq).sent_us);
        i64::from(self.rack.rtt_us) + i64::from(reordering_window_us) - elapsed.cast_signed()
    }

    /// `tcp_rack_detect_loss`: marks what is lost; returns after how many microseconds to look again, 0 for never.
    pub(super) fn rack_detect_loss(&mut self, clock: Clock) -> u64 {
        let reordering_window = self.reordering_window_us();
        let mut wait = 0;
        let mut at = self.board.oldest_sent();
        while let Some(seq) = at {
            at = self.board.sent_after(seq);
            let segment = *self.board.get(seq);
            if segment.flags & (LOST | RETRANS) == LOST {
                continue;
            }
            if !sent_after(self.rack.sent_us, self.rack.end, segment.sent_us, seq + 1) {
                break;
            }
            let remaining = self.rack_remaining_us(seq, reordering_window, clock);
            if remaining <= 0 {
                self.mark_lost(seq);
                self.board.unlink(seq);
            } else {
                wait = wait.max(remaining.fit_u64());
            }
        }
        wait
    }

    /// `tcp_rack_mark_lost`: true when the reordering timer was set.
    pub(super) fn rack_mark_lost(&mut self, clock: Clock) -> bool {
        if !self.rack.advanced {
            return false;
        }
        self.rack.advanced = false;
        let wait = self.rack_detect_loss(clock);
        if wait > 0 {
            let ticks = clock.jiffies_from_micros(wait + TIMEOUT_MIN_US).min(self.rto);
            self.set_timer(Pending::Reordering, ticks, clock);
        }
        wait > 0
    }

    /// `tcp_rack_advance`: a segment sent at `sent_us` with `flags` was delivered.
    pub(super) fn rack_advance(&mut self, flags: u8, end: u64, sent_us: u64, clock: Clock) {
        let rtt_us = clock.micros().saturating_sub(sent_us).low_u32();
        if rtt_us < self.flight.min_rtt_us && flags & (RETRANS | EVER_RETRANS) != 0 {
            return;
        }
        self.rack.advanced = true;
        self.rack.rtt_us = rtt_us;
        if sent_after(sent_us, end, self.rack.sent_us, self.rack.end) {
            self.rack.sent_us = sent_us;
            self.rack.end = end;
        }
    }

    /// `tcp_rack_update_reo_wnd`.
    pub(super) fn rack_update_reordering_window(&mut self, prior_delivered: u64) {
        if prior_delivered == 0 {
            return;
        }
        let rack = &mut self.rack;
        if prior_delivered < rack.last_delivered {
            rack.dsack_seen = false;
        }
        if rack.dsack_seen {
            rack.reorder_steps = (rack.reorder_steps + 1).min(255);
            rack.dsack_seen = false;
            rack.last_delivered = self.flight.delivered;
            rack.reorder_persist = RECOVERY_PERSIST;
        } else if rack.reorder_persist == 0 {
            rack.reorder_steps = 1;
        }
    }

    /// `tcp_newreno_mark_lost`.
    pub(super) fn newreno_mark_lost(&mut self, una_advanced: bool) {
        let state = self.flight.ca_state;
        if (state < CaState::Recovery && self.flight.sacked_out >= self.reordering)
            || (state == CaState::Recovery && una_advanced)
        {
            let head = self.flight.snd_una;
            if self.board.get(head).flags & LOST == 0 {
                self.mark_lost(head);
            }
        }
    }

    /// `tcp_check_sack_reordering`: segment `low`, never retransmitted, arrived after a higher one.
    pub(super) fn check_sack_reordering(&mut self, low: u64) {
        let high = self.highest_sack();
        if low >= high {
            return;
        }
        let distance = high - low;
        if distance > u64::from(self.reordering) {
            self.reordering = distance.min(u64::from(super::MAX_REORDERING)).fit_u32();
        }
        self.reordering_seen = true;
    }

    /// `tcp_highest_sack_seq`: the end of the highest SACKed segment, the unacknowledged edge without one.
    pub(super) fn highest_sack(&self) -> u64 {
        if self.flight.sacked_out == 0 { self.flight.snd_una } else { self.highest_sack.max(self.flight.snd_una) }
    }

    /// Reordering falls back to its default when a timeout proves it overestimated (`tcp_enter_loss`).
    pub(super) fn limit_reordering_after_timeout(&mut self) {
        if self.flight.ca_state <= CaState::Disorder && self.flight.sacked_out >= REORDERING {
            self.reordering = self.reordering.min(REORDERING);
        }
    }
}
