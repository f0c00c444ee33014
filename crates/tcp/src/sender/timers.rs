//! The sender's one timer in its three purposes (`icsk_retransmit_timer`): reordering, tail loss probe, retransmission.

use super::Sender;
use super::output::Push;
use super::rtt::{RTO_MIN_US, Rtt};
use crate::clock::Clock;
use crate::flight::CaState;
use crate::packet::Burst;
use sawtooth_units::Time;
use sawtooth_units::width::Fit;

/// `TCP_TIMEOUT_MIN_US`.
pub const TIMEOUT_MIN_US: u64 = 2_000;

/// What the timer was set for (`icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    None,
    Reordering,
    LossProbe,
    Retransmit,
}

impl Sender {
    pub(super) fn set_timer(&mut self, purpose: Pending, ticks: u64, clock: Clock) {
        let timeout = clock.jiffies64() + ticks.min(Rtt::rto_max(clock));
        self.pending = purpose;
        if self.timeout != timeout || self.timer == Time::NEVER {
            self.timeout = timeout;
            self.timer = clock.wheel_time(timeout);
        }
    }

    /// `tcp_reset_xmit_timer`: counts from when the pacer lets the last segment go.
    fn reset_xmit_timer(&mut self, purpose: Pending, ticks: u64, clock: Clock) {
        let now = clock.now.nanos();
        let ahead = self.flight.wstamp_ns > now;
        let pacing_ticks = if ahead { (self.flight.wstamp_ns - now) * u64::from(clock.hz) / 1_000_000_000 } else { 0 };
        self.set_timer(purpose, ticks + pacing_ticks, clock);
    }

    fn clear_timer(&mut self) {
        self.pending = Pending::None;
        self.timer = Time::NEVER;
    }

    /// `tcp_rto_delta_us`: how far ahead the timeout of the oldest segment is.
    fn rto_delta_us(&self, clock: Clock) -> i64 {
        let head_us = self.board.get(self.flight.snd_una).sent_us;
        (head_us + clock.micros_from_jiffies(self.rto)).cast_signed() - clock.micros().cast_signed()
    }

    /// `tcp_rearm_rto`.
    pub(super) fn rearm_rto(&mut self, clock: Clock) {
        if self.flight.packets_out == 0 {
            return self.clear_timer();
        }
        let mut ticks = self.rto;
        if matches!(self.pending, Pending::Reordering | Pending::LossProbe) {
            ticks = clock.jiffies_from_micros(self.rto_delta_us(clock).max(1).fit_u64());
        }
        self.reset_xmit_timer(Pending::Retransmit, ticks, clock);
    }

    /// Restarts the timeout from now, because the head was retransmitted.
    pub(super) fn restart_rto(&mut self, clock: Clock) {
        self.reset_xmit_timer(Pending::Retransmit, self.rto, clock);
    }

    /// `tcp_schedule_loss_probe` (RFC 8985 section 7.2).
    pub(super) fn schedule_loss_probe(&mut self, advancing: bool, clock: Clock) -> bool {
        if self.flight.packets_out == 0 || !self.sack || !matches!(self.flight.ca_state, CaState::Open | CaState::Cwr) {
            return false;
        }
        let mut ticks = u64::from(clock.hz);
        if self.flight.srtt_us > 0 {
            let floor = if self.flight.packets_out == 1 { u64::from(RTO_MIN_US) } else { TIMEOUT_MIN_US };
            ticks = clock.jiffies_from_micros(u64::from(self.flight.srtt_us >> 2) + floor);
        }
        let rto_us =
            if advancing { clock.micros_from_jiffies(self.rto).cast_signed() } else { self.rto_delta_us(clock) };
        if rto_us > 0 {
            ticks = ticks.min(clock.jiffies_from_micros(rto_us.cast_unsigned()));
        }
        self.reset_xmit_timer(Pending::LossProbe, ticks, clock);
        true
    }

    /// To be called when [`Sender::timer`] is reached (`tcp_write_timer_handler`).
    pub fn on_timer(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        if self.pending == Pending::None {
            self.timer = Time::NEVER;
            return;
        }
        if self.timeout > clock.jiffies64() {
            self.timer = clock.wheel_time(self.timeout);
            return;
        }
        self.timer = Time::NEVER;
        match self.pending {
            Pending::None => {}
            Pending::Reordering => self.on_reordering_timeout(clock, out),
            Pending::LossProbe => self.send_loss_probe(clock, out),
            Pending::Retransmit => {
                self.pending = Pending::None;
                self.on_retransmission_timeout(clock, out);
            }
        }
    }

    /// `tcp_rack_reo_timeout`.
    fn on_reordering_timeout(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        let in_flight = self.flight.in_flight();
        let lost = self.flight.lost;
        self.rack_detect_loss(clock);
        if in_flight != self.flight.in_flight() {
            if self.flight.ca_state != CaState::Recovery {
                self.enter_recovery(clock);
                if !self.congestion.has_cong_control() {
                    self.cwnd_reduction(1, (self.flight.lost - lost).fit_u32(), false);
                }
            }
            self.xmit_retransmit_queue(clock, out);
        }
        if self.pending != Pending::Retransmit {
            self.rearm_rto(clock);
        }
    }

    /// `tcp_send_loss_probe`: new data if there is some, else the last segment again.
    fn send_loss_probe(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        if self.tlp_high_seq.is_some() || self.flight.packets_out == 0 {
            return self.rearm_rto(clock);
        }
        self.tlp_retrans = false;
        if self.unsent() > 0 && self.window_end > self.flight.snd_nxt {
            let packets = self.flight.packets_out;
            self.xmit(Push::Probe, clock, out);
            if self.flight.packets_out == packets {
                return self.rearm_rto(clock);
            }
        } else {
            let last = self.flight.snd_nxt - 1;
            self.transmit_again(last, 1, clock, out);
            self.tlp_retrans = true;
        }
        self.tlp_high_seq = Some(self.flight.snd_nxt);
        self.stats.tail_probes += 1;
        // From now, not from when the segment was first sent.
        self.pending = Pending::None;
        self.rearm_rto(clock);
    }

    /// `tcp_retransmit_timer`.
    fn on_retransmission_timeout(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        if self.flight.packets_out == 0 {
            return;
        }
        self.stats.timeouts += 1;
        self.enter_loss(clock);
        self.retransmits += 1;
        let head = self.flight.snd_una;
        self.retransmit(head, 1, clock, out);
        self.backoff += 1;
        self.rto = (self.rto << 1).min(Rtt::rto_max(clock));
        self.set_timer(Pending::Retransmit, self.rto, clock);
    }
}
