//! An application that reads late: data waits, the window closes and opens again (RFC 9293 section 3.8.6.2). And one
//! that reads at once, but only after everything of one instant has arrived.

use super::{ALL, Data, Read, Receiver, Unread};
use crate::clock::Clock;
use crate::packet::{Ack, PUSH};
use sawtooth_units::{Span, Time};

/// Ticks in half a second, during which packets without data outside the window are answered once
/// (`sysctl_tcp_invalid_ratelimit`).
fn answer_interval(clock: Clock) -> u64 {
    u64::from(clock.hz() / 2)
}

impl Receiver {
    /// From now on the application reads only by [`Self::read`]. Call before any data arrives.
    pub fn wait_for_reads(&mut self) {
        self.asked = 0;
    }

    /// When the application reads next; part of [`Self::timer`].
    pub fn reads_at(&self) -> Time {
        self.reads_at
    }

    /// More arrives at this same instant: in Linux the application, woken by one packet, runs after all of them. Until
    /// it [wakes](Self::wake) it has asked for nothing more.
    #[cold]
    pub fn sleep(&mut self, until: Time) {
        if self.wakes_at == Time::NEVER {
            if self.asked == ALL {
                self.queue.begin(self.next);
            }
            (self.asks, self.asked) = (self.asked, self.delivered());
        }
        self.wakes_at = until;
    }

    /// When the application runs again; part of [`Self::timer`].
    pub fn wakes_at(&self) -> Time {
        self.wakes_at
    }

    /// It reads what has arrived.
    pub fn wake(&mut self, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let from = self.delivered();
        (self.asked, self.wakes_at) = (self.asks, Time::NEVER);
        self.read_on(from, clock, emit);
    }

    /// The application asks for `bytes` more, sleeps until they have arrived (`recv` with `MSG_WAITALL`), and reads
    /// again `at` that time.
    pub fn read(&mut self, bytes: u64, at: Time, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        self.reads_at = at;
        if self.wakes_at < Time::NEVER {
            self.wake(clock, emit);
        }
        let from = self.delivered();
        self.asked = self.asked.saturating_add(bytes).min(ALL - 1);
        self.read_on(from, clock, emit);
    }

    /// The application reads up to `bytes` of what has arrived, or waits for the first to arrive (`recv`), and then
    /// sleeps for `pause`, after which it reads again.
    pub fn read_some(&mut self, bytes: u64, pause: Span, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        self.pause_after_read = Some(pause);
        self.read(bytes, Time::NEVER, clock, emit);
    }

    /// The sender reset the connection: the receiver in that state, if the application has something left to read.
    pub fn closed(mut self: Box<Self>) -> Option<Box<Self>> {
        (self.is_closed, self.timer, self.compress_until) = (true, Time::NEVER, Time::NEVER);
        self.closes_at = Time::NEVER;
        self.has_unread().then_some(self)
    }

    fn has_unread(&self) -> bool {
        self.delivered() < self.next
    }

    /// Data that ends after the offered window is taken only while nothing else waits (`tcp_sequence` of Linux 6.19;
    /// earlier ones take all of a packet that begins in the window).
    pub(super) fn exceeds_window(&self, end: u64) -> bool {
        end > self.right_edge && self.has_unread()
    }

    /// Adds expected segments, all of `unit` bytes except the last.
    #[cold]
    pub(super) fn enqueue(
        &mut self,
        data: Data,
        unit: u64,
        count: u64,
        clock: Clock,
        emit: &mut impl FnMut(&Ack),
    ) -> Read {
        let length = u64::from(data.length);
        if self.exceeds_window(data.seq + length) {
            return self.discard(data, clock, emit);
        }
        let (from, before) = (self.delivered(), self.segments);
        let is_beyond = data.seq + length > self.right_edge;
        self.next = data.seq + length;
        let come = Unread { bytes: length, buffers: self.buffer.buffers(count) };
        self.measure_segment(unit, come, data.has(PUSH));
        self.queue.push(self.next, self.buffer.fragments(count));
        let mut at_once = is_beyond && self.buffer.is_exceeded(self.held(self.queue.unread()));
        self.receive_event(data, self.queue.unread(), clock, emit);
        self.segments += count;
        if !self.reassembly.is_empty() {
            let segments;
            (self.next, segments) = self.reassembly.advance(self.next);
            self.queue.push(self.next, segments);
            self.segments += segments;
            at_once |= self.reassembly.is_empty();
        }
        self.decide(self.queue.unread(), at_once, clock, emit);
        self.read_on(from, clock, emit);
        Read { bytes: self.delivered() - from, segments: self.segments - before }
    }

    /// The application continues reading from byte `from`, as far as it has asked (`__tcp_cleanup_rbuf`). Two segments,
    /// or pushed data with nothing left to read, are acknowledged; so is a window that reading has doubled or opened.
    fn read_on(&mut self, from: u64, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let Some(first) = self.queue.read(from, self.delivered()) else { return };
        if let Some(pause) = self.pause_after_read {
            (self.asked, self.reads_at) = (self.delivered(), clock.now + pause);
        }
        if self.is_closed {
            self.reads_at = if self.has_unread() { self.reads_at } else { Time::NEVER };
            return;
        }
        self.buffer.adjust(first, self.next - first, clock);
        let unread = self.queue.unread();
        let unacked = self.next - self.acked;
        let is_empty = unread.buffers == 0 && self.reassembly.is_empty();
        let window = self.right_edge.saturating_sub(self.next);
        if unacked > self.full || (unacked > 0 && self.tells_push() && is_empty) || self.doubles(window, unread) {
            self.send(unread, clock, emit);
        }
    }

    /// A packet without data outside the window, such as a probe of a closed window: it is answered, but at a limited
    /// rate (RFC 9293 section 3.8.6.1).
    #[cold]
    pub fn on_window_probe(&mut self, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let now = clock.jiffies64();
        if self.answered.is_none_or(|then| now - then >= answer_interval(clock)) {
            self.answered = Some(now);
            self.send(self.queue.unread(), clock, emit);
        }
    }
}
