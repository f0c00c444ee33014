//! When a receiver acknowledges, and the contents of its acknowledgement (RFC 9293 section 3.8.6.3;
//! `__tcp_ack_snd_check`, `tcp_send_delayed_ack`, SACK compression, `tcp_select_window`).

use super::{ALL, READ, Receiver, Unread, longest_delay, shortest_delay};
use crate::clock::Clock;
use crate::packet::{Ack, Sack};
use sawtooth_units::{Span, Time};

/// `TCP_FASTRETRANS_THRESH`: this many duplicate ACKs are never compressed.
const DUPLICATE_THRESHOLD: u32 = 3;
/// `sysctl_tcp_comp_sack_nr`.
const COMPRESSED_MAX: u32 = 44;
/// `sysctl_tcp_comp_sack_delay_ns`.
const COMPRESS_DELAY_NS: u64 = 1_000_000;
/// `sysctl_tcp_comp_sack_slack_ns`: how late the timer may be, and is: hrtimers run in order of their latest time.
const COMPRESS_SLACK_NS: u64 = 100_000;

impl Receiver {
    /// Decides whether to acknowledge now, later, or together with others (RFC 9293 section 3.8.6.3). `unread` data has
    /// just arrived in order and still takes memory, which may keep the window from being offered in full.
    #[inline(always)]
    pub(super) fn decide(&mut self, unread: Unread, at_once: bool, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let is_due = self.is_second_segment(unread)
            || at_once
            || self.marks.at_once
            || self.quick > 0 && !self.answers
            || !self.options.delayed_ack;
        if is_due || !self.reassembly.is_empty() && !self.compresses(clock) {
            self.send(unread, clock, emit);
        } else if self.reassembly.is_empty() {
            self.delay(unread, clock, emit);
        }
    }

    /// Two segments need an acknowledgement, and the whole window could be offered again; otherwise reading will send
    /// it.
    fn is_second_segment(&mut self, unread: Unread) -> bool {
        self.next - self.acked > self.full && self.window(unread) >= self.right_edge - self.acked
    }

    /// Next to a gap every segment is acknowledged; but after three duplicates a timer sends one for several (SACK
    /// compression). True: this one is left to the timer.
    fn compresses(&mut self, clock: Clock) -> bool {
        if !self.sack || self.compressed >= COMPRESSED_MAX {
            return false;
        }
        if self.compressed_next != self.next {
            (self.compressed_next, self.duplicates) = (self.next, 0);
        }
        if self.duplicates < DUPLICATE_THRESHOLD {
            self.duplicates += 1;
            return false;
        }
        self.compressed += 1;
        if self.compress_until == Time::NEVER {
            self.compress_until = clock.now + Span::from_nanos(self.compress_delay_ns() + COMPRESS_SLACK_NS);
        }
        true
    }

    /// 5% of the round trip, which is stored times eight.
    fn compress_delay_ns(&self) -> u64 {
        let handshake_us = if self.handshake_us > 0 { 8 * self.handshake_us } else { u64::MAX };
        let rtt_us = self.buffer.rtt_us().min(handshake_us);
        (rtt_us * 125 / 20).min(COMPRESS_DELAY_NS)
    }

    /// Acknowledges later, unless an already delayed acknowledgement is due soon.
    pub(super) fn delay(&mut self, unread: Unread, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let now = clock.jiffies64();
        let delay = self.delay_ticks(clock);
        let until = match self.delayed_until {
            Some(earlier) if earlier <= now + delay / 4 => return self.send(unread, clock, emit),
            earlier => earlier.map_or(now + delay, |earlier| earlier.min(now + delay)),
        };
        if self.delayed_until != Some(until) {
            self.delayed_until = Some(until);
            self.timer = clock.wheel_time(until);
        }
    }

    /// The delay in ticks: above the shortest delay it is at most half a second and at most one round trip.
    fn delay_ticks(&self, clock: Clock) -> u64 {
        let (delay, least) = (self.ato.min(longest_delay(clock)), shortest_delay(clock));
        if self.ato <= least {
            return delay;
        }
        let round_trip = match self.handshake_us {
            0 => u64::MAX,
            us => clock.jiffies_from_micros(us).max(least),
        };
        delay.min(round_trip).min(u64::from(clock.hz() / 2))
    }

    /// Call when [`Self::timer`] is reached.
    pub fn on_timer(&mut self, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        if self.closes_at <= clock.now {
            return self.close_again(clock, emit);
        }
        if self.compressed > 0 && self.compress_until <= clock.now {
            return self.send(self.queue.unread(), clock, emit);
        }
        if self.timer > clock.now {
            return;
        }
        self.timer = Time::NEVER;
        match self.delayed_until {
            Some(until) if until > clock.jiffies64() => self.timer = clock.wheel_time(until),
            Some(_) => {
                // No answer came in time; or the delay was too short for the sender's rate: stretch it.
                let stretched = if self.answers { shortest_delay(clock) } else { self.bounded(self.ato * 2, clock) };
                self.ato = stretched;
                self.answers = false;
                self.send(self.queue.unread(), clock, emit);
            }
            None => {}
        }
    }

    /// The application sends; `emit` gets its segment's acknowledgement, which covers everything received. If it sends
    /// soon after it received data, acknowledgements wait for it from now on.
    pub fn answer(&mut self, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        self.send(READ, clock, emit);
        self.answers |= clock.jiffies64() - self.last_received < self.ato;
    }

    /// Acknowledges while `unread` data still takes memory.
    #[inline(never)]
    pub(super) fn send(&mut self, unread: Unread, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        // The last of those that are sent at once: the delay starts small.
        if self.quick == 1 {
            self.ato = shortest_delay(clock);
        }
        self.quick = self.quick.saturating_sub(1);
        self.send_uncounted(unread, clock, emit);
    }

    /// As [`Self::send`], but not one of those that are sent at once (`tcp_dec_quickack_mode` with no ACK scheduled).
    #[inline(always)]
    pub(super) fn send_uncounted(&mut self, unread: Unread, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        self.emit_ack(self.next, unread, clock, emit);
        self.pushed = false;
        self.pushed_again = false;
        self.marks.at_once = false;
        self.delayed_until = None;
        self.timer = Time::NEVER;
    }

    /// Acknowledges up to `next`.
    #[inline(always)]
    pub(super) fn emit_ack(&mut self, next: u64, unread: Unread, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let offered = self.right_edge.saturating_sub(self.next);
        let mut window = self.window(unread);
        if window == 0 && self.asked == ALL {
            // Reading would open it again at this same instant.
            window = self.window(READ);
        }
        if window < offered {
            window = self.buffer.scaled(offered);
        }
        self.acked = self.next;
        self.right_edge = self.next + window;
        self.compressed = 0;
        self.compress_until = Time::NEVER;
        let (tsval, tsecr, room) =
            if self.options.timestamps { (clock.timestamp(), self.ts_recent, 3) } else { (0, 0, 4) };
        let (ece, ace, ecn) = self.marks.tells();
        let mut ack = Ack { next, window, tsval, tsecr, sack: Sack::default(), ece, ace, ecn };
        if self.sack && self.reassembly.reports() {
            ack.sack = self.reassembly.sack(room);
        }
        emit(&ack);
    }
}
