//! The receiving half of a Linux TCP connection: reassembly, when to acknowledge, which window to offer.
//!
//! Mirrors Linux 6.12 (net/ipv4/tcp_input.c: `tcp_data_queue`, `__tcp_ack_snd_check`, SACK compression; tcp_output.c:
//! `tcp_send_delayed_ack`, `tcp_select_window`; tcp.c: `tcp_recvmsg`) for an application that sends nothing. It reads
//! at once, unless it is set to wait or sleeps while more arrives. Data that ends after the window is treated as in
//! Linux 6.19.

mod acknowledging;
mod buffer;
mod closing;
mod echo;
mod merged;
mod queue;
mod reading;
mod reassembly;
mod steady;

use crate::clock::Clock;
use crate::options::HostOptions;
use crate::packet::{Ack, Block, CWR, Ecn, PAWS_WINDOW_MS, PUSH};
pub use buffer::Buffer;
pub use echo::Echo;
use echo::Marks;
use queue::ReceiveQueue;
use reassembly::{BUFFER_FRAGMENTS, Kept, Reassembly};
use sawtooth_units::{Span, Time};

/// `TCP_RTO_MIN` in microseconds.
const RTO_MIN_US: u64 = 200_000;
/// `TCP_MAX_QUICKACKS`.
const MAX_QUICK_ACKS: u64 = 16;
/// The shortest and the longest delay of an acknowledgement, in ticks: 40 and 200 ms (`TCP_DELACK_MIN`,
/// `TCP_DELACK_MAX`).
fn shortest_delay(clock: Clock) -> u64 {
    u64::from(clock.hz() / 25)
}
fn longest_delay(clock: Clock) -> u64 {
    u64::from(clock.hz() / 5)
}

/// `TCP_MSS_DEFAULT`: the assumed length of a full segment until a longer one arrives. Two equal segments of at least
/// this many bytes, including 12 of timestamps, count as full; without PSH at least `TCP_MIN_MSS`.
const LEAST_FULL: u64 = 536;
const TIMESTAMP_OPTION: u64 = 12;
const LEAST_MSS: u64 = 88;

/// A data segment as it arrives.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// Its first byte and its length, at least one.
    pub seq: u64,
    pub length: u32,
    /// Its packet's flags, of which [`PUSH`], [`CWR`] (the sender reduced its window) and the ECN field are used.
    pub flags: u8,
    /// Timestamp value and echo; 0 without the option.
    pub tsval: u32,
    pub tsecr: u32,
}

impl Data {
    #[inline]
    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.flags)
    }
}

/// What the application has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    pub bytes: u64,
    /// Segments that arrived in order, read or not.
    pub segments: u64,
}

/// Data that arrived in order and is unread.
#[derive(Clone, Copy, Debug, Default)]
struct Unread {
    bytes: u64,
    /// Buffers that it fills.
    buffers: u64,
}

const READ: Unread = Unread { bytes: 0, buffers: 0 };
/// An application that has asked for everything that will ever arrive.
const ALL: u64 = u64::MAX;

/// One connection's receiver; the fields that every segment needs come first (as in [`crate::sender::Sender`]).
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Receiver {
    /// The next expected byte.
    next: u64,
    /// How far the application has asked for data; [`ALL`]: it reads at once.
    asked: u64,
    /// `next` and the right edge at the last acknowledgement (`rcv_wup`, `rcv_wup + rcv_wnd`).
    acked: u64,
    right_edge: u64,

    /// Acknowledgements still to be sent at once (`icsk_ack.quick`).
    quick: u64,
    /// Delayed acknowledgement, in ticks: 0 before the first data (`icsk_ack.ato`).
    ato: u64,
    last_received: u64,
    delayed_until: Option<u64>,
    timer: Time,
    compress_until: Time,
    reads_at: Time,
    /// How long the application sleeps after a read that takes what there is.
    pause_after_read: Option<Span>,
    wakes_at: Time,
    /// When the FIN is repeated, and how often it was sent.
    closes_at: Time,
    closings: u32,
    handshake_us: u64,
    compressed_next: u64,
    compressed: u32,
    duplicates: u32,
    ts_recent: u32,
    /// Data since the last acknowledgement had PSH; and whether more than one short segment has arrived since then.
    pushed: bool,
    pushed_again: bool,
    /// The application answers what it receives, so acknowledgements wait for its answers
    /// (`inet_csk_in_pingpong_mode`).
    answers: bool,
    sack: bool,
    marks: Marks,
    /// Segments that have come in order.
    segments: u64,
    /// The assumed size of a full segment (`rcv_mss`), and of the last one if it was shorter but not too short
    /// (`last_seg_size`).
    full: u64,
    last_short: u64,

    buffer: Buffer,
    options: HostOptions,
    reassembly: Reassembly,
    /// Empty if the application reads at once.
    queue: ReceiveQueue,
    /// The value of `asked` after the sleeping application wakes.
    asks: u64,
    /// The tick of the last answer to a packet outside the window.
    answered: Option<u64>,
    is_closed: bool,
}

impl Receiver {
    /// A receiver in its state when answering the SYN. `sack`: both ends agreed on it; `echo`: how they agreed on ECN.
    pub fn new(options: HostOptions, sack: bool, echo: Echo, clock: Clock) -> Self {
        let buffer = Buffer::new(&options, clock);
        Receiver {
            options,
            sack,
            next: 0,
            asked: ALL,
            segments: 0,
            queue: ReceiveQueue::default(),
            answered: None,
            is_closed: false,
            reads_at: Time::NEVER,
            pause_after_read: None,
            wakes_at: Time::NEVER,
            closes_at: Time::NEVER,
            closings: 0,
            asks: ALL,
            full: u64::from(options.mss).min(LEAST_FULL),
            last_short: 0,
            reassembly: Reassembly::default(),
            ts_recent: 0,
            acked: 0,
            right_edge: buffer.initial_window(),
            buffer,
            handshake_us: 0,
            quick: 0,
            ato: 0,
            last_received: 0,
            delayed_until: None,
            timer: Time::NEVER,
            pushed: false,
            marks: Marks::new(echo),
            pushed_again: false,
            answers: false,
            compressed: 0,
            compressed_next: 0,
            duplicates: 0,
            compress_until: Time::NEVER,
        }
    }

    /// The first packet after the SYN-ACK came `rtt_us` microseconds after it; later calls change nothing. True: it is
    /// the first.
    pub fn note_handshake(&mut self, rtt_us: u64, clock: Clock) -> bool {
        let is_first = self.handshake_us == 0;
        if is_first {
            self.handshake_us = rtt_us.max(1);
            self.buffer.begin(clock);
        }
        is_first
    }

    /// The application sets the size of its receive buffer, in bytes of memory, which no longer changes.
    pub fn fix_buffer(&mut self, size: u64) {
        self.buffer.resize(size);
    }

    /// Whether anything arrived after the SYN.
    pub fn is_open(&self) -> bool {
        self.handshake_us > 0
    }

    /// The window that the SYN-ACK offers, in bytes.
    pub fn initial_window(&self) -> u64 {
        self.buffer.initial_window()
    }
    /// Bytes delivered to the application.
    pub fn delivered(&self) -> u64 {
        self.next.min(self.asked)
    }
    /// The next byte that it expects.
    pub fn expects(&self) -> u64 {
        self.next
    }
    /// The assumed size of a full segment in bytes (`tcpi_rcv_mss`).
    pub fn full_segment(&self) -> u64 {
        self.full
    }
    /// Segments that came in order.
    pub fn delivered_segments(&self) -> u64 {
        self.segments
    }
    /// When [`Self::on_timer`] must be called next.
    pub fn timer(&self) -> Time {
        self.timer.min(self.compress_until).min(self.reads_at).min(self.wakes_at).min(self.closes_at)
    }

    /// When the delayed acknowledgement is due, which Linux has on its timer wheel.
    pub fn tick(&self) -> Time {
        self.timer
    }

    fn mss(&self) -> u64 {
        u64::from(self.options.mss)
    }

    /// Memory used by out-of-order data and by `unread` data.
    fn held(&self, unread: Unread) -> u64 {
        let buffers = self.reassembly.buffers() + unread.buffers;
        self.buffer.memory(self.reassembly.bytes() + unread.bytes, buffers)
    }

    /// The window that could be offered with this much unread data. If that takes half the memory, acknowledgements are
    /// no longer sent quickly.
    fn window(&mut self, unread: Unread) -> u64 {
        if self.reassembly.is_empty() && (unread.bytes == 0 || unread.bytes == self.mss()) {
            let free = self.buffer.select_plain(unread.bytes > 0);
            return if self.buffer.is_scaled() { free } else { self.whole_segments(free) };
        }
        let held = self.held(unread);
        if self.asked != ALL && self.buffer.is_half_taken(held) {
            self.quick = 0;
        }
        let free = self.buffer.select(held);
        if self.buffer.is_scaled() { free } else { self.whole_segments(free) }
    }

    /// A window that is not scaled: the last one while less than a segment more is free, or whole segments
    /// (`__tcp_select_window`).
    #[cold]
    fn whole_segments(&self, free: u64) -> u64 {
        let last = self.right_edge.saturating_sub(self.acked);
        let keeps = last <= free && free < last + self.full;
        if keeps { last } else { free / self.full * self.full }
    }

    /// Takes a data segment; `emit` gets the acknowledgements to send at once.
    #[inline(always)]
    pub fn on_data(&mut self, data: Data, clock: Clock, emit: &mut impl FnMut(&Ack)) -> Read {
        if self.refuses(data.seq, data.length, data.tsval) {
            return self.discard(Data { ..data }, clock, emit);
        }
        self.pushed |= data.has(PUSH);
        if data.seq != self.next {
            // The copy is made only on this path.
            return self.take_other(Data { ..data }, clock, emit);
        }
        if data.has(CWR) {
            self.take_cwr();
        }
        if self.asked != ALL {
            return self.enqueue(Data { ..data }, u64::from(data.length), 1, clock, emit);
        }
        let length = u64::from(data.length);
        self.next = data.seq + length;
        let come = Unread { bytes: length, buffers: 1 };
        if length != self.full || self.last_short > 0 {
            self.measure_segment(length, come, data.has(PUSH));
        }
        self.receive_event(data, come, clock, emit);
        let read = if self.reassembly.is_empty() {
            self.decide(come, false, clock, emit);
            self.buffer.adjust(self.next, 0, clock);
            Read { bytes: length, segments: 1 }
        } else {
            self.fill(length, 1, clock, emit)
        };
        self.segments += read.segments;
        self.has_read(clock, emit);
        read
    }

    /// Takes the timestamp of data at `seq`, unless the data is not taken at all (`tcp_validate_incoming`): true if the
    /// timestamp is older than one that has been taken (PAWS, RFC 7323 section 5), or all of it was acknowledged. PAWS
    /// also refuses an original that arrives after a retransmission which had filled a gap.
    #[inline(always)]
    fn refuses(&mut self, seq: u64, length: u32, tsval: u32) -> bool {
        let older_ms = self.ts_recent.wrapping_sub(tsval).cast_signed();
        if older_ms > PAWS_WINDOW_MS {
            return true;
        }
        // Section 4.3: the echo belongs to the oldest segment not yet acknowledged.
        if seq <= self.acked {
            if seq + u64::from(length) < self.acked {
                return true;
            }
            if older_ms <= 0 {
                self.ts_recent = tsval;
            }
        }
        false
    }

    /// Answers data that is not taken at once (`tcp_send_dupack`).
    #[cold]
    fn discard(&mut self, data: Data, clock: Clock, emit: &mut impl FnMut(&Ack)) -> Read {
        if data.seq < self.next {
            let end = (data.seq + u64::from(data.length)).min(self.next);
            self.reassembly.note_duplicate(Block { start: data.seq, end });
            self.enter_quick_mode(MAX_QUICK_ACKS, clock);
        }
        if self.delayed_until.is_some() || self.compressed > 0 {
            self.send(self.queue.unread(), clock, emit);
        } else {
            self.send_uncounted(self.queue.unread(), clock, emit);
        }
        Read::default()
    }

    /// The application has read. Two segments, or pushed data with nothing else pending, are acknowledged; a doubled
    /// window is announced.
    #[inline(always)]
    fn has_read(&mut self, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let unacked = self.next - self.acked;
        let window = self.right_edge.saturating_sub(self.next);
        let is_pushed = unacked > 0 && self.tells_push() && self.reassembly.is_empty();
        if unacked > self.full || is_pushed || self.doubles(window, READ) {
            self.send(READ, clock, emit);
        }
    }

    /// Pushed data is acknowledged when it is read, unless an answer will do it.
    #[inline(always)]
    fn tells_push(&self) -> bool {
        self.pushed && (!self.answers || self.pushed_again)
    }

    /// The last data, with this many segments and bytes, fills a gap before data that is already here.
    #[inline(never)]
    fn fill(&mut self, length: u64, count: u64, clock: Clock, emit: &mut impl FnMut(&Ack)) -> Read {
        let first = self.reassembly.first_buffer(self.next);
        let (next, others) = self.reassembly.advance(self.next);
        let (bytes, segments) = (length + next - self.next, count + others);
        self.next = next;
        // A filled gap is acknowledged at once (RFC 5681 section 4.2).
        let filled = self.reassembly.is_empty();
        self.decide(Unread { bytes, buffers: segments.div_ceil(BUFFER_FRAGMENTS) }, filled, clock, emit);
        // Data beyond the gap is read buffer by buffer.
        self.buffer.adjust(first, next - first, clock);
        Read { bytes, segments }
    }

    /// Takes a segment other than the expected one: a duplicate, or one after a gap.
    #[inline(never)]
    fn take_other(&mut self, data: Data, clock: Clock, emit: &mut impl FnMut(&Ack)) -> Read {
        let (seq, length) = (data.seq, u64::from(data.length));
        let block = Block { start: seq, end: seq + length };
        let unread = self.queue.unread();
        if self.exceeds_window(block.end) {
            return self.discard(data, clock, emit);
        }
        if seq < self.next {
            self.reassembly.note_duplicate(block);
            self.enter_quick_mode(MAX_QUICK_ACKS, clock);
            self.decide(unread, false, clock, emit);
            return Read::default();
        }
        if data.has(CWR) {
            self.take_cwr();
        }
        self.see_mark(data.ecn(), clock, emit);
        if self.sack && self.reassembly.crowds(block) && self.compressed > 0 {
            self.send(unread, clock, emit);
        }
        // Data after a gap is measured too (since Linux 6.12.36).
        if length != self.full || self.last_short > 0 {
            self.measure_segment(length, Unread { bytes: length, buffers: 1 }, data.has(PUSH));
        }
        // The window grows before a separate buffer counts, and after a shared one does.
        let before = self.held(unread);
        let held = match self.reassembly.insert(block) {
            Kept::Duplicate => None,
            Kept::Joined => Some(self.held(unread)),
            Kept::Alone => Some(before),
        };
        if let Some(held) = held.filter(|_| self.sack)
            && self.buffer.grow(length, held)
        {
            self.quick |= 1;
        }
        self.decide(unread, false, clock, emit);
        Read::default()
    }

    /// Whether at least twice `window`, the current offer, could be offered with this much unread data.
    fn doubles(&mut self, window: u64, unread: Unread) -> bool {
        !self.buffer.is_wide(window) && self.window(unread) >= (2 * window).max(1)
    }

    /// The length of full segments (`tcp_measure_rcv_mss`): the longest, unless two equal shorter ones arrive. A short
    /// one ends a write, and nothing may follow it soon. `length`: of the segments of which `come` consists.
    #[cold]
    fn measure_segment(&mut self, length: u64, come: Unread, push: bool) {
        let before = std::mem::take(&mut self.last_short);
        if length > self.full {
            self.buffer.measure(come.bytes, come.buffers);
        }
        if length >= self.full {
            self.full = length.min(self.mss());
            return;
        }
        let counted = length + if self.options.timestamps { TIMESTAMP_OPTION } else { 0 };
        if counted >= LEAST_FULL || counted >= LEAST_MSS && !push {
            self.last_short = length;
            if length == before {
                self.full = length;
                return;
            }
        }
        self.pushed_again = self.pushed;
        self.pushed = true;
    }

    /// A segment arrived in order and is part of `unread`: updates the buffer and the acknowledgement delay.
    #[inline(always)]
    fn receive_event(&mut self, data: Data, unread: Unread, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let length = u64::from(data.length);
        let offered = self.right_edge.saturating_sub(self.acked);
        self.buffer.sample_rtt_window(self.next, offered, clock);
        self.buffer.sample_rtt_echo(data.tsecr, clock);
        let now = clock.jiffies64();
        if self.ato == 0 {
            self.enter_quick_mode(MAX_QUICK_ACKS, clock);
        } else {
            self.follow_pace(now - self.last_received, clock);
        }
        self.last_received = now;
        self.see_mark(data.ecn(), clock, emit);
        let grows = if self.reassembly.is_empty() && unread.bytes == self.mss() {
            self.buffer.grow_plain()
        } else {
            self.buffer.grow(length, self.held(unread))
        };
        if grows {
            self.quick |= 1;
        }
    }

    /// The delay follows the time between segments, if that is shorter. After a long silence the sender may be in slow
    /// start again and is answered at once.
    fn follow_pace(&mut self, gap: u64, clock: Clock) {
        let least = shortest_delay(clock);
        if gap <= least / 2 {
            self.ato = self.ato / 2 + least / 2;
        } else if gap < self.ato {
            self.ato = self.bounded(self.ato / 2 + gap, clock);
        } else if gap > self.rto_ticks(clock) {
            self.increase_quick(MAX_QUICK_ACKS);
        }
    }

    fn bounded(&self, ticks: u64, clock: Clock) -> u64 {
        ticks.min(self.rto_ticks(clock)).min(longest_delay(clock))
    }

    /// The receiving end's own timeout: it has only measured the handshake.
    fn rto_us(&self) -> u64 {
        self.handshake_us + (2 * self.handshake_us).max(RTO_MIN_US)
    }

    fn rto_ticks(&self, clock: Clock) -> u64 {
        clock.jiffies_from_micros(self.rto_us())
    }

    fn increase_quick(&mut self, most: u64) {
        let window = self.right_edge.saturating_sub(self.acked);
        let acks = (window / (2 * self.full)).clamp(2, most);
        self.quick = self.quick.max(acks);
    }

    fn enter_quick_mode(&mut self, most: u64, clock: Clock) {
        self.increase_quick(most);
        self.answers = false;
        self.ato = shortest_delay(clock);
    }
}
