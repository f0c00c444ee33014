//! Window reduction in recovery: proportional rate reduction (RFC 6937), and where it begins and ends.

use super::Sender;
use crate::cc::Event;
use crate::clock::Clock;
use crate::flight::CaState;
use crate::window::{INFINITE_SSTHRESH, Reduction};
use sawtooth_units::width::Fit;

impl Sender {
    /// The states in which the window is reduced gradually.
    pub(super) fn in_cwnd_reduction(&self) -> bool {
        matches!(self.flight.ca_state, CaState::Cwr | CaState::Recovery)
    }

    /// RFC 6937 section 3: RecoverFS is the previous window; the reduction ends when the current flight is
    /// acknowledged. `marked`: for an echoed mark.
    pub(super) fn init_cwnd_reduction(&mut self, marked: bool, clock: Clock) {
        (self.prr_delivered, self.prr_out) = (0, 0);
        self.flight.prior_cwnd = self.window.cwnd;
        self.window.ssthresh = if marked {
            self.congestion.ssthresh_marked(&self.flight, &mut self.window, clock)
        } else {
            self.congestion.ssthresh(&self.flight, &mut self.window, clock)
        };
        self.window.cwnd_cnt = 0;
        self.high_seq = self.flight.snd_nxt;
        self.tlp_high_seq = None;
        self.queue_cwr();
    }

    /// The algorithm reduced the window itself (`tcp_enter_cwr`): the sender's part of that.
    #[cold]
    pub(super) fn take_reduction(&mut self, reduction: Reduction) {
        self.flight.prior_ssthresh = 0;
        if let Reduction::Begun { prior_cwnd } = reduction {
            (self.prr_delivered, self.prr_out) = (0, 0);
            self.flight.prior_cwnd = prior_cwnd;
            self.flight.ca_state = CaState::Cwr;
            self.high_seq = self.flight.snd_nxt;
            self.undo = None;
            self.tlp_high_seq = None;
            self.queue_cwr();
        }
    }

    /// On each ACK; `delivered` is DeliveredData. Above the threshold the flight is reduced in proportion; below it, as
    /// much is sent as was delivered, plus one segment if the ACK advanced without reporting a loss (the slow start
    /// bound).
    pub(super) fn cwnd_reduction(&mut self, delivered: u32, losses: u32, advanced: bool) {
        let recover_fs = u64::from(self.flight.prior_cwnd);
        if delivered == 0 || recover_fs == 0 {
            return;
        }
        self.prr_delivered += delivered;
        let pipe = self.flight.in_flight();
        let ahead = i64::from(self.prr_delivered) - i64::from(self.prr_out);
        let count = match self.window.ssthresh.checked_sub(pipe) {
            Some(room) => {
                let bonus = i64::from(advanced && losses == 0);
                i64::from(room).min(ahead.max(i64::from(delivered)) + bonus)
            }
            None => {
                let share = u64::from(self.window.ssthresh) * u64::from(self.prr_delivered);
                share.div_ceil(recover_fs).cast_signed() - i64::from(self.prr_out)
            }
        };
        // The first retransmission is sent at once.
        let least = i64::from(self.prr_out == 0);
        self.window.cwnd = (i64::from(pipe) + count.max(least)).max(1).fit_u32();
    }

    /// Sets the window to the reduction's target, unless it was undone.
    pub(super) fn end_cwnd_reduction(&mut self, clock: Clock) {
        if self.has_cong_control {
            return;
        }
        let stands = self.flight.ca_state == CaState::Cwr || self.undo.is_some();
        if stands && self.window.ssthresh < INFINITE_SSTHRESH {
            self.window.cwnd = self.window.ssthresh;
        }
        self.congestion.event(&self.flight, &mut self.window, Event::CompleteCwr, clock);
    }

    /// The threshold to restore if a reduction that begins now is undone: at least three quarters of the window.
    pub(super) fn current_ssthresh(&self) -> u32 {
        let three_quarters = (self.window.cwnd >> 1) + (self.window.cwnd >> 2);
        let least = if self.in_cwnd_reduction() { 0 } else { three_quarters };
        self.window.ssthresh.max(least)
    }
}
