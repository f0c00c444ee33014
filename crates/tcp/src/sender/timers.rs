//! The sender's single timer with its three purposes: reordering (RFC 8985 section 6.3), tail loss probe (section 7),
//! retransmission timeout (RFC 6298 section 5).

use super::Sender;
use super::output::Push;
use super::rtt::{RTO_MIN_US, Rtt};
use super::scoreboard::APP_LIMITED;
use crate::clock::Clock;
use crate::flight::CaState;
use crate::packet::Burst;
use sawtooth_units::Time;
use sawtooth_units::width::Fit;

/// `TCP_TIMEOUT_MIN_US`.
pub const TIMEOUT_MIN_US: u64 = 2_000;

/// The timer was set, and it is not known yet when the wheel fires.
const MOVED: Time = Time::from_nanos(u64::MAX - 1);

/// What the timer was set for (`icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    None,
    Reordering,
    LossProbe,
    Retransmit,
    /// Nothing is in flight, and the data to send does not fit the receiver's window (`ICSK_TIME_PROBE0`).
    Window,
}

impl Sender {
    pub(super) fn set_timer(&mut self, purpose: Pending, ticks: u64, clock: Clock) {
        let timeout = clock.jiffies64() + ticks.min(Rtt::rto_max(clock));
        self.pending = purpose;
        if self.timeout != timeout || self.timer == Time::NEVER {
            (self.timeout, self.timer) = (timeout, MOVED);
        }
    }

    /// Call at the end of whatever may set the timer: when the wheel fires is computed once, however often it was set.
    #[inline]
    pub(super) fn settle_timer(&mut self, clock: Clock) {
        if self.timer == MOVED {
            self.timer = clock.wheel_time(self.timeout);
        }
    }

    /// Sets the timer this many ticks after the pacer releases the last segment.
    fn set_timer_after_pacing(&mut self, purpose: Pending, ticks: u64, clock: Clock) {
        let pacing_ticks = match self.flight.wstamp_ns.saturating_sub(clock.now.nanos()) {
            0 => 0,
            ahead_ns => ahead_ns * u64::from(clock.hz()) / 1_000_000_000,
        };
        self.set_timer(purpose, ticks + pacing_ticks, clock);
    }

    pub(super) fn clear_timer(&mut self) {
        self.pending = Pending::None;
        self.timer = Time::NEVER;
    }

    /// Microseconds until the oldest segment times out, since its last transmission.
    fn until_timeout_us(&self, clock: Clock) -> i64 {
        let sent_us = self.board.front().map_or(0, |oldest| oldest.sent_us);
        let due_us = sent_us + clock.micros_from_jiffies(self.rto);
        due_us.cast_signed() - clock.micros().cast_signed()
    }

    /// In ticks; `u64::MAX` if that time is over.
    fn ticks_until_timeout(&self, clock: Clock) -> u64 {
        let us = self.until_timeout_us(clock);
        if us > 0 { clock.jiffies_from_micros(us.cast_unsigned()) } else { u64::MAX }
    }

    /// The retransmission timeout (RFC 6298 section 5): from now, or from the oldest segment's transmission if the
    /// timer had another purpose since.
    pub(super) fn rearm_rto(&mut self, clock: Clock) {
        if self.flight.packets_out == 0 {
            return self.clear_timer();
        }
        let ticks = match self.pending {
            Pending::Reordering | Pending::LossProbe => {
                clock.jiffies_from_micros(self.until_timeout_us(clock).max(1).fit_u64())
            }
            Pending::None | Pending::Retransmit | Pending::Window => self.rto,
        };
        self.set_timer_after_pacing(Pending::Retransmit, ticks, clock);
    }

    /// Restarts the timeout from now, because the first segment was retransmitted.
    pub(super) fn restart_rto(&mut self, clock: Clock) {
        self.set_timer_after_pacing(Pending::Retransmit, self.rto, clock);
    }

    /// Schedules a tail loss probe after two round trips, or later if the ACK of a lone segment may be delayed; never
    /// after the timeout (RFC 8985 section 7.2). `advancing`: the timeout counts from now. False: no probe is
    /// scheduled.
    pub(super) fn schedule_loss_probe(&mut self, advancing: bool, clock: Clock) -> bool {
        let may_probe = self.sack && matches!(self.flight.ca_state, CaState::Open | CaState::Cwr);
        if !may_probe || self.flight.packets_out == 0 {
            return false;
        }
        let probe = match self.flight.srtt_us {
            0 => u64::from(clock.hz()),
            srtt_us => {
                let delayed_us = if self.flight.packets_out == 1 { u64::from(RTO_MIN_US) } else { TIMEOUT_MIN_US };
                clock.jiffies_from_micros(u64::from(srtt_us >> 2) + delayed_us)
            }
        };
        let timeout = if advancing { self.rto } else { self.ticks_until_timeout(clock) };
        self.set_timer_after_pacing(Pending::LossProbe, probe.min(timeout), clock);
        true
    }

    /// Call when [`Sender::timer`] is reached (`tcp_write_timer_handler`).
    pub fn on_timer(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        self.handle_timer(clock, out);
        self.settle_timer(clock);
    }

    fn handle_timer(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        if self.pending == Pending::None {
            self.timer = Time::NEVER;
            return;
        }
        if self.timeout > clock.jiffies64() {
            self.timer = clock.wheel_time(self.timeout);
            return;
        }
        self.timer = Time::NEVER;
        if self.notes_app_limit_on_ack {
            self.note_app_limit();
        }
        match self.pending {
            Pending::None => {}
            Pending::Reordering => self.on_reordering_timeout(clock, out),
            Pending::LossProbe => self.send_loss_probe(clock, out),
            Pending::Window => self.probe_window(clock, out),
            Pending::Retransmit => {
                self.pending = Pending::None;
                self.on_retransmission_timeout(clock, out);
            }
        }
    }

    /// Suspected losses are now losses: they are retransmitted in a recovery.
    fn on_reordering_timeout(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        let (in_flight, lost) = (self.flight.in_flight(), self.flight.lost);
        self.rack_detect_loss(clock);
        if self.flight.in_flight() != in_flight {
            if self.flight.ca_state != CaState::Recovery {
                let losses = (self.flight.lost - lost).fit_u32();
                self.enter_recovery(false, clock);
                if !self.has_cong_control {
                    self.cwnd_reduction(1, losses, false);
                }
            }
            self.xmit_retransmit_queue(clock, out);
        }
        if self.pending != Pending::Retransmit {
            self.rearm_rto(clock);
        }
    }

    /// A tail loss probe (RFC 8985 section 7.3): new data if available, else the last segment again.
    fn send_loss_probe(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        if self.flight.packets_out > 0 && self.tlp_high_seq.is_none() && self.probe(clock, out) {
            self.tlp_high_seq = Some(self.flight.snd_nxt);
            self.stats.tail_probes += 1;
            // The timeout counts from now, not from the segment's first transmission.
            self.pending = Pending::None;
        }
        self.rearm_rto(clock);
    }

    /// False: nothing could be sent.
    fn probe(&mut self, clock: Clock, out: &mut Vec<Burst>) -> bool {
        let next = self.flight.snd_nxt;
        self.tlp_retrans = self.unsent() == 0 || !self.fits_window(self.head_buffer(0));
        if let Some(mut last) = self.board.last().filter(|_| self.tlp_retrans) {
            let segments = self.board.run(last).segments();
            if segments > 1 {
                last = self.board.split(last, segments - 1);
            }
            self.tlp_orig_data_app_limited = self.board.run(last).is(APP_LIMITED);
            self.transmit_again(last, clock, out);
        } else {
            self.xmit(Push::Probe, clock, out);
        }
        self.tlp_retrans || self.flight.snd_nxt > next
    }

    /// RFC 6298 section 5.4 to 5.6: everything counts as lost, the oldest segment is retransmitted, the timeout
    /// doubles.
    fn on_retransmission_timeout(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        if self.flight.packets_out == 0 {
            return;
        }
        self.enter_loss(clock);
        if let Some(oldest) = self.board.first() {
            self.board.part_segment(oldest);
            self.retransmit(oldest, clock, out);
        }
        self.retransmits += 1;
        self.stats.timeouts += 1;
        self.rto = (2 * self.rto).min(Rtt::rto_max(clock));
        self.set_timer(Pending::Retransmit, self.rto, clock);
    }
}
