//! RACK loss detection (RFC 8985) and, without SACK, NewReno's (RFC 6582).

use super::rate::sent_after;
use super::scoreboard::{APP_LIMITED, EVER_RETRANS, LOST, RETRANS, Run, SACKED};
use super::timers::{Pending, TIMEOUT_MIN_US};
use super::{REORDERING, Sender};
use crate::cc::Loss;
use crate::clock::Clock;
use crate::flight::CaState;
use crate::steady::Visit;
use sawtooth_units::width::{Fit, Low};

/// Recoveries for which a widened reordering window lasts (RFC 8985 section 6.2, step 4).
const PERSISTENCE: u32 = 16;
/// Most steps of the reordering window.
const MOST_STEPS: u32 = 255;

/// RACK's delivery state (RFC 8985 section 5.2).
#[derive(Clone, Copy, Debug)]
pub struct Rack {
    /// RACK.xmit_ts (microseconds) and RACK.end_seq: of the delivered segment that was sent last.
    sent_us: u64,
    end: u64,
    /// RACK.rtt: of the most recently delivered segment.
    rtt_us: u32,
    /// Something was delivered since losses were last checked.
    advanced: bool,
    /// RACK.reo_wnd_mult, and for how many more recoveries it lasts (RACK.reo_wnd_persist).
    steps: u32,
    persistence: u32,
    /// A DSACK reported a needless retransmission, in the round trip after this many deliveries.
    dsack_seen: bool,
    widened_at: u64,
}

/// The state of a run in flight relative to deliveries.
#[derive(Clone, Copy, Debug)]
enum Standing {
    /// Known to be lost, and not retransmitted.
    Known,
    /// Nothing sent after it has been delivered.
    Unproven,
    Lost,
    /// Lost if it is not acknowledged within this many microseconds.
    Suspect(u64),
}

impl Rack {
    pub fn new() -> Self {
        Rack {
            sent_us: 0,
            end: 0,
            rtt_us: 0,
            advanced: false,
            steps: 1,
            persistence: 0,
            dsack_seen: false,
            widened_at: 0,
        }
    }

    /// See [`crate::steady`].
    pub fn visit(&mut self, visit: &mut Visit) {
        visit.micros(&mut self.sent_us);
        visit.sequence(&mut self.end);
    }

    /// Forces a check for losses at the next ACK, whatever it delivers.
    pub fn look_again(&mut self) {
        self.advanced = true;
    }

    pub fn see_dsack(&mut self) {
        self.dsack_seen = true;
    }

    /// A recovery ended.
    pub fn count_recovery(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
    }

    /// A recovery was undone, and does not count.
    pub fn discount_recovery(&mut self) {
        self.persistence = (self.persistence + 1).min(PERSISTENCE);
    }

    /// Step 4: a DSACK widens the reordering window by a step, once per round trip; it shrinks when that was long ago.
    /// `prior_delivered`: deliveries when the ACK's segment was sent; `delivered`: now.
    fn adapt(&mut self, prior_delivered: u64, delivered: u64) {
        let is_later_round = prior_delivered >= self.widened_at;
        if std::mem::take(&mut self.dsack_seen) && is_later_round {
            self.steps = (self.steps + 1).min(MOST_STEPS);
            (self.persistence, self.widened_at) = (PERSISTENCE, delivered);
        } else if self.persistence == 0 {
            self.steps = 1;
        }
    }
}

impl Sender {
    /// Marks a whole run lost, as Linux does with an `sk_buff`; if it was already marked, its retransmission is lost
    /// too.
    pub(super) fn mark_lost(&mut self, at: u32, clock: Clock) {
        let run = self.board.run_mut(at);
        let (start, count, before) = (run.start, run.segments(), run.flags);
        if before & SACKED != 0 {
            return;
        }
        let is_first_to_repair = match self.retransmit_hint {
            Some(hint) => start < hint,
            None => self.flight.retrans_out >= self.flight.lost_out,
        };
        if is_first_to_repair {
            self.retransmit_hint = Some(start);
        }
        match before & (LOST | RETRANS) {
            LOST => return,
            0 | RETRANS => {
                run.flags |= LOST;
                self.flight.lost_out += count;
            }
            _ => {
                run.flags &= !RETRANS;
                self.flight.retrans_out -= count;
            }
        }
        self.flight.lost += u64::from(count);
        if self.congestion.hears_of_losses() {
            self.tell_lost(at, clock);
        }
    }

    #[cold]
    fn tell_lost(&mut self, at: u32, clock: Clock) {
        let run = self.board.run(at);
        let loss = Loss {
            segments: run.segments(),
            lost: self.lost_since(run).fit_u32(),
            tx_in_flight: run.in_flight_alone(),
            is_app_limited: run.is(APP_LIMITED),
        };
        self.congestion.skb_marked_lost(&self.flight, &self.window, &loss, clock);
    }

    /// RACK.reo_wnd in microseconds: zero before any reordering, if three segments were SACKed or in recovery.
    fn reordering_window_us(&self) -> u32 {
        let is_proven = self.flight.ca_state >= CaState::Recovery || self.flight.sacked_out >= self.reordering;
        if is_proven && !self.reordering_seen {
            return 0;
        }
        let step = self.flight.min_rtt_us >> 2;
        step.saturating_mul(self.rack.steps).min(self.flight.srtt_us >> 3)
    }

    /// Microseconds until a run counts as lost.
    pub(super) fn rack_remaining_us(&self, run: &Run, reordering_window_us: u32, clock: Clock) -> i64 {
        let patience_us = i64::from(self.rack.rtt_us) + i64::from(reordering_window_us);
        let since_us = clock.micros().saturating_sub(run.sent_us);
        patience_us - since_us.cast_signed()
    }

    fn rack_standing(&self, run: &Run, reordering_window_us: u32, clock: Clock) -> Standing {
        if run.flags & (LOST | RETRANS) == LOST {
            return Standing::Known;
        }
        if !sent_after(self.rack.sent_us, self.rack.end, run.sent_us, run.end()) {
            return Standing::Unproven;
        }
        match self.rack_remaining_us(run, reordering_window_us, clock) {
            ..=0 => Standing::Lost,
            left => Standing::Suspect(left.fit_u64()),
        }
    }

    /// Step 5: marks lost runs, in order of transmission; returns the microseconds until the next check, 0 for none.
    pub(super) fn rack_detect_loss(&mut self, clock: Clock) -> u64 {
        let reordering_window_us = self.reordering_window_us();
        let mut look_again_us = 0;
        let mut at = self.board.oldest_sent();
        while let Some(place) = at {
            at = self.board.sent_after(place);
            match self.rack_standing(self.board.run(place), reordering_window_us, clock) {
                Standing::Known => {}
                Standing::Unproven => break,
                Standing::Suspect(left_us) => look_again_us = left_us.max(look_again_us),
                Standing::Lost => {
                    self.mark_lost(place, clock);
                    self.board.unlink(place);
                }
            }
        }
        look_again_us
    }

    /// After an ACK: marks lost runs. True if the reordering timer was set because more may be lost.
    pub(super) fn rack_mark_lost(&mut self, clock: Clock) -> bool {
        let look_again_us = if std::mem::take(&mut self.rack.advanced) { self.rack_detect_loss(clock) } else { 0 };
        if look_again_us == 0 {
            return false;
        }
        let ticks = clock.jiffies_from_micros(look_again_us + TIMEOUT_MIN_US);
        self.set_timer(Pending::Reordering, ticks.min(self.rto), clock);
        true
    }

    /// Steps 1 and 2: a run up to byte `end`, sent at `sent_us`, was delivered. If it was retransmitted too recently
    /// for an answer, the original arrived.
    pub(super) fn rack_advance(&mut self, flags: u8, end: u64, sent_us: u64, clock: Clock) {
        let rtt_us = clock.micros().saturating_sub(sent_us).low_u32();
        let was_sent_again = flags & (RETRANS | EVER_RETRANS) != 0;
        if was_sent_again && rtt_us < self.flight.min_rtt_us {
            return;
        }
        let rack = &mut self.rack;
        (rack.rtt_us, rack.advanced) = (rtt_us, true);
        if sent_after(sent_us, end, rack.sent_us, rack.end) {
            (rack.sent_us, rack.end) = (sent_us, end);
        }
    }

    /// See [`Rack::adapt`]; `prior_delivered` of 0: no segment gave a sample.
    pub(super) fn rack_adapt(&mut self, prior_delivered: u64) {
        if prior_delivered > 0 {
            self.rack.adapt(prior_delivered, self.flight.delivered);
        }
    }

    /// RFC 6582: the oldest segment is lost when three others were received, and in recovery when an ACK is partial.
    pub(super) fn newreno_mark_lost(&mut self, una_advanced: bool, clock: Clock) {
        let is_lost = match self.flight.ca_state {
            CaState::Open | CaState::Disorder | CaState::Cwr => self.flight.sacked_out >= self.reordering,
            CaState::Recovery => una_advanced,
            CaState::Loss => false,
        };
        if let Some(oldest) = self.board.first().filter(|_| is_lost)
            && !self.board.run(oldest).is(LOST)
        {
            self.board.part_segment(oldest);
            self.mark_lost(oldest, clock);
        }
    }

    /// Byte `low`, never retransmitted, arrived: late, if a higher one was already SACKed.
    pub(super) fn check_sack_reordering(&mut self, low: u64) {
        let Some(distance @ 1..) = self.highest_sack().checked_sub(low) else { return };
        let mss = u64::from(self.flight.mss);
        if distance > u64::from(self.reordering) * mss {
            self.reordering = distance.div_ceil(mss).min(u64::from(super::MAX_REORDERING)).fit_u32();
        }
        self.reordering_seen = true;
    }

    /// The byte after the highest SACKed one; the unacknowledged edge if there is none.
    pub(super) fn highest_sack(&self) -> u64 {
        let highest = if self.flight.sacked_out > 0 { self.highest_sack } else { 0 };
        highest.max(self.flight.snd_una)
    }

    /// Three segments had been SACKed without a detected loss until the timeout: reordering was overestimated.
    pub(super) fn limit_reordering_after_timeout(&mut self) {
        if self.flight.ca_state <= CaState::Disorder && self.flight.sacked_out >= REORDERING {
            self.reordering = self.reordering.min(REORDERING);
        }
    }
}
