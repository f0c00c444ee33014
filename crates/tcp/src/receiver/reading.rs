//! An application that does not read at once: what comes waits, the window closes and opens again (RFC 9293 section 3.8.6.2). And one
//! that does, but sleeps until all that comes at one instant is there.

use super::{ALL, Data, Read, Receiver};
use crate::clock::Clock;
use crate::packet::{Ack, PUSH};
use sawtooth_units::Time;

/// In so many ticks, half a second, packets without data that lie beside the window are answered once
/// (`sysctl_tcp_invalid_ratelimit`).
fn answer_interval(clock: Clock) -> u64 {
    u64::from(clock.hz / 2)
}

impl Receiver {
    /// From now on the application reads what [`Self::read`] says. To be called before any data comes.
    pub fn wait_for_reads(&mut self) {
        self.asked = 0;
    }

    /// When the application reads next; part of [`Self::timer`].
    pub fn reads_at(&self) -> Time {
        self.reads_at
    }

    /// More comes at this same instant: in Linux the application, which one packet wakes, runs after all of them. Until it [wakes](Self::wake)
    /// it has asked for nothing beyond what it has.
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

    /// It reads what has come.
    pub fn wake(&mut self, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let from = self.delivered();
        (self.asked, self.wakes_at) = (self.asks, Time::NEVER);
        self.read_on(from, clock, emit);
    }

    /// The application asks for so many `bytes` more, sleeps until they have come (`recv` with `MSG_WAITALL`), and reads again `at` that
    /// time.
    pub fn read(&mut self, bytes: u64, at: Time, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        self.reads_at = at;
        if self.wakes_at < Time::NEVER {
            self.wake(clock, emit);
        }
        let from = self.delivered();
        self.asked = self.asked.saturating_add(bytes).min(ALL - 1);
        self.read_on(from, clock, emit);
    }

    /// The sender has reset the connection: the receiver as it is then, if the application has something left to read.
    pub fn closed(mut self: Box<Self>) -> Option<Box<Self>> {
        (self.is_closed, self.timer, self.compress_until) = (true, Time::NEVER, Time::NEVER);
        self.closes_at = Time::NEVER;
        self.has_unread().then_some(self)
    }

    fn has_unread(&self) -> bool {
        self.delivered() < self.next
    }

    /// So many segments that were expected next, of which all but the last have `unit` bytes.
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
        let (from, before) = (self.delivered(), self.segments);
        self.next = data.seq + length;
        self.measure_segment(unit, data.has(PUSH));
        self.queue.push(self.next, count);
        self.receive_event(data, self.queue.unread(), clock, emit);
        self.segments += count;
        let mut filled = false;
        if !self.reassembly.is_empty() {
            let segments;
            (self.next, segments) = self.reassembly.advance(self.next);
            self.queue.push(self.next, segments);
            self.segments += segments;
            filled = self.reassembly.is_empty();
        }
        self.decide(self.queue.unread(), filled, clock, emit);
        self.read_on(from, clock, emit);
        Read { bytes: self.delivered() - from, segments: self.segments - before }
    }

    /// The application reads on from the byte `from`, as far as it has asked for (`__tcp_cleanup_rbuf`): two segments, or pushed data
    /// with nothing left to read, are acknowledged, and so is a window that reading has doubled, or opened.
    fn read_on(&mut self, from: u64, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let Some(first) = self.queue.read(from, self.delivered()) else { return };
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

    /// A packet without data that lies beside the window, as a sender probes a window that is closed: it is answered, but not often
    /// (RFC 9293 section 3.8.6.1).
    #[cold]
    pub fn on_window_probe(&mut self, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let now = clock.jiffies64();
        if self.answered.is_none_or(|then| now - then >= answer_interval(clock)) {
            self.answered = Some(now);
            self.send(self.queue.unread(), clock, emit);
        }
    }
}
