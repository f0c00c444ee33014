//! The application: it writes whenever the send buffer has room (`tcp_sendmsg`); its data is kept in buffers
//! (`sk_buff`s) until it is sent.

use super::Sender;
use super::output::{Push, SUPER_PACKET_OVERHEAD};
use crate::cc::gso;
use crate::clock::Clock;
use crate::packet::Burst;

/// The memory that Linux adds per segment when it sizes the send buffer (`tcp_sndbuf_expand`): headers and
/// `skb_shared_info` in one power-of-two allocation, plus the `sk_buff`.
const SEND_MEMORY_HEADERS: u64 = gso::MAX_TCP_HEADER as u64 + 320;
const SEND_MEMORY_BUFFER: u64 = 256;
/// The timestamp option in every segment, which the peer's announced size (`mss_clamp`) does not exclude.
const TIMESTAMP_OPTION: u64 = 12;
/// `TCP_INIT_CWND`: the send buffer never holds less.
const INITIAL_WINDOW: u32 = 10;
/// A peer whose window never exceeded this many bytes receives whole windows (`TCP_MSS_DEFAULT`).
const TINY_WINDOW: u64 = 536;

/// The outcome for the last buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filled {
    Nothing,
    /// The application has written everything that it wants to.
    Part,
    Full,
}

/// The application that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    Awake,
    /// It waits for room in the send buffer.
    Asleep,
    /// There is room; it runs after the stack's work is done.
    Woken,
}

/// Memory of a segment of this many bytes as the send buffer's size counts it.
pub(super) fn segment_memory(mss: u32, timestamps: bool) -> u64 {
    let options = if timestamps { TIMESTAMP_OPTION } else { 0 };
    (u64::from(mss) + options + SEND_MEMORY_HEADERS).next_power_of_two() + SEND_MEMORY_BUFFER
}

impl Sender {
    /// Bytes written by the application but never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.written - self.flight.snd_nxt
    }

    /// Bytes of the first unsent buffer, of which `wanted` are needed: they are taken from the next buffer if it has
    /// fewer (`tcp_grow_skb`).
    pub(super) fn head_buffer(&self, wanted: u64) -> u64 {
        let end = self.buffer_ends.front().copied().unwrap_or(self.written);
        (end - self.flight.snd_nxt).max(wanted.min(self.unsent()))
    }

    /// Fully sent buffers no longer belong to the application.
    pub(super) fn drop_sent_buffers(&mut self) {
        while self.buffer_ends.front().is_some_and(|&end| end <= self.flight.snd_nxt) {
            self.buffer_ends.pop_front();
        }
    }

    /// A window was offered: a buffer holds at most half the largest one (`tcp_xmit_size_goal`).
    #[inline]
    pub(super) fn note_window(&mut self, window: u64) {
        if window > self.widest_window {
            self.widen_window(window);
        }
    }

    #[cold]
    fn widen_window(&mut self, window: u64) {
        self.widest_window = window;
        let half = if window > TINY_WINDOW { window / 2 } else { window };
        let bytes = u64::from(gso::MAX_PAYLOAD).min(half);
        let mss = u64::from(self.flight.mss);
        self.buffer_bytes = (bytes / mss).max(1) * mss;
    }

    /// Memory that is queued, sent or not (`sk_wmem_queued`).
    fn queued(&self) -> u64 {
        let payload = self.written - self.flight.snd_una;
        payload + (u64::from(self.super_packets) + self.buffer_ends.len() as u64) * SUPER_PACKET_OVERHEAD
    }

    /// Whether a sleeping application is woken (`tcp_check_space`), checked at each newly sent buffer and after every
    /// ACK: a third of the send buffer must be free, which grows with the window while the window is not full
    /// (`tcp_new_space`).
    #[inline]
    pub(super) fn check_space(&mut self) {
        if self.writer == Writer::Asleep {
            if self.flight.in_flight() < self.window.cwnd {
                self.expand_send_buffer();
            }
            let queued = self.queued();
            if queued + queued / 2 <= self.send_buffer {
                self.writer = Writer::Woken;
            }
        }
    }

    /// The application writes, if it is awake or woken, after everything possible was sent. While its data leaves at
    /// once, it refills the same buffer, whatever the send buffer's size; then it writes whole buffers while less than
    /// the send buffer is queued.
    pub(super) fn write(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        self.check_space();
        if self.writer != Writer::Asleep && self.written < self.total {
            self.write_awake(clock, out);
        }
    }

    #[inline(never)]
    fn write_awake(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        while self.fill(clock) == Filled::Full {
            // `forced_push`: half a window has been written since the last push.
            if self.written - self.pushed > self.widest_window / 2 {
                self.pushed = self.written;
                self.xmit(Push::All, clock, out);
            } else {
                self.xmit(Push::One, clock, out);
            }
        }
        loop {
            let mut queued = self.queued();
            while queued < self.send_buffer && self.written < self.total {
                let bytes = self.buffer_bytes.min(self.total - self.written);
                self.begin_buffer(bytes, clock);
                queued += bytes + SUPER_PACKET_OVERHEAD;
            }
            self.pushed = self.written;
            if self.written == self.total {
                self.writer = Writer::Awake;
                return self.xmit(Push::Normal, clock, out);
            }
            self.writer = Writer::Asleep;
            self.xmit(Push::All, clock, out);
            // The send buffer may have grown with sent data before it falls asleep.
            if self.queued() >= self.send_buffer {
                return;
            }
        }
    }

    /// Fills the last buffer, or begins one if none is unsent and there is memory for it.
    fn fill(&mut self, clock: Clock) -> Filled {
        let next = self.flight.snd_nxt;
        if self.written == next {
            if self.written == self.total || self.queued() >= self.send_buffer {
                return Filled::Nothing;
            }
            let bytes = self.buffer_bytes.min(self.total - self.written);
            self.begin_buffer(bytes, clock);
            return if bytes == self.buffer_bytes { Filled::Full } else { Filled::Part };
        }
        let before = self.buffer_ends.iter().rev().nth(1).copied().unwrap_or(next);
        let room = (before + self.buffer_bytes).saturating_sub(self.written);
        let bytes = room.min(self.total - self.written);
        self.written += bytes;
        if let Some(end) = self.buffer_ends.back_mut() {
            *end = self.written;
        }
        match bytes {
            0 => Filled::Nothing,
            bytes if bytes == room => Filled::Full,
            _ => Filled::Part,
        }
    }

    fn begin_buffer(&mut self, bytes: u64, clock: Clock) {
        self.restart_after_idle(clock);
        self.written += bytes;
        self.buffer_ends.push_back(self.written);
    }

    /// `tcp_sndbuf_expand`.
    pub(super) fn expand_send_buffer(&mut self) {
        let segments = self.window.cwnd.max(INITIAL_WINDOW).max(self.reordering + 1);
        let windows = u64::from(self.congestion.sndbuf_expand(&self.flight, &self.window));
        let wanted = windows * u64::from(segments) * self.segment_memory;
        if self.send_buffer < wanted {
            self.send_buffer = wanted.min(self.options.send_buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Algorithm;
    use crate::options::HostOptions;
    use crate::sender::Start;
    use sawtooth_units::Time;

    const MSS: u64 = 1448;

    /// A sender over 100 ms that has sent its first window of ten segments.
    fn started(send_window: u64, send_buffer: u64) -> Sender {
        let clock = Clock::new(Time::from_nanos(1_000_000_000), 250);
        let start = Start { handshake_us: 100_000, send_window, ..Start::default() };
        let options = HostOptions { send_buffer, ..HostOptions::default() };
        let mut sender = Sender::new(Algorithm::Reno, options, true, u64::MAX, start, clock);
        sender.start(clock, &mut Vec::new());
        assert_eq!(sender.flight.snd_nxt, 10 * MSS);
        sender
    }

    #[test]
    fn a_buffer_holds_half_the_widest_window_and_no_more_than_offload_takes() {
        let mut sender = started(65_160, 4 << 20);
        assert_eq!(sender.buffer_bytes, 22 * MSS);
        sender.note_window(100_000);
        sender.note_window(70_000);
        assert_eq!(sender.buffer_bytes, 34 * MSS);
        sender.note_window(1 << 20);
        assert_eq!(sender.buffer_bytes, 45 * MSS);
    }

    #[test]
    fn the_buffer_being_sent_is_filled_again_and_then_whole_buffers_fill_the_memory() {
        // Twice ten segments of 2304 bytes.
        let sender = started(65_160, 4 << 20);
        assert_eq!(sender.send_buffer, 46_080);
        assert_eq!(sender.buffer_ends, [32 * MSS]);
        let sender = started(1 << 20, 4 << 20);
        assert_eq!(sender.buffer_ends, [55 * MSS]);
    }

    #[test]
    fn a_remainder_that_is_too_small_takes_from_the_next_buffer() {
        let mut sender = started(65_160, 4 << 20);
        sender.buffer_ends = [12 * MSS, 32 * MSS].into();
        let heads = [1, 2, 5, 30].map(|wanted| sender.head_buffer(wanted * MSS));
        assert_eq!(heads, [2, 2, 5, 22].map(|segments| segments * MSS));
        sender.flight.snd_nxt = 13 * MSS;
        sender.drop_sent_buffers();
        assert_eq!(sender.buffer_ends, [32 * MSS]);
        assert_eq!(sender.head_buffer(5 * MSS), 19 * MSS);
    }

    #[test]
    fn an_application_that_was_woken_while_others_left_writes_though_these_take_memory_too() {
        let clock = Clock::new(Time::from_nanos(1_100_000_000), 250);
        for (woken, writes) in [(false, false), (true, true)] {
            let mut sender = started(65_160, 4 << 20);
            let queued = sender.queued();
            (sender.window.cwnd, sender.send_buffer) = (1, queued + queued / 2);
            if woken {
                sender.check_space();
            }
            sender.super_packets += 1;
            sender.write(clock, &mut Vec::new());
            assert_eq!(sender.written > 32 * MSS, writes);
        }
    }

    #[test]
    fn the_application_wakes_when_a_third_of_the_send_buffer_is_free() {
        let clock = Clock::new(Time::from_nanos(1_100_000_000), 250);
        let queued = started(65_160, 4 << 20).queued();
        for (send_buffer, wakes) in [(queued + queued / 2 - 1, false), (queued + queued / 2, true)] {
            let mut sender = started(65_160, 4 << 20);
            sender.window.cwnd = 1;
            sender.send_buffer = send_buffer;
            sender.write(clock, &mut Vec::new());
            assert_eq!(sender.written > 32 * MSS, wakes);
        }
    }
}
