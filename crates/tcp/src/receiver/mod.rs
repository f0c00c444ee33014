//! The receiving half of a Linux TCP connection: reassembly, when to acknowledge, which window to offer.
//!
//! Mirrors Linux 6.12 (net/ipv4/tcp_input.c: `tcp_data_queue`, `__tcp_ack_snd_check`, SACK compression; tcp_output.c:
//! `tcp_send_delayed_ack`, `tcp_select_window`; tcp.c: `tcp_recvmsg`) for an application that sends nothing, and reads at once unless
//! it is told to wait, or sleeps while more comes.

mod acknowledging;
mod buffer;
mod closing;
mod echo;
mod merged;
mod queue;
mod reading;
mod reassembly;

use crate::clock::Clock;
use crate::options::HostOptions;
use crate::packet::{Ack, Block, CWR, Ecn, PUSH};
use buffer::Buffer;
pub use echo::Echo;
use echo::Marks;
use queue::ReceiveQueue;
use reassembly::{BUFFER_FRAGMENTS, Kept, Reassembly};
use sawtooth_units::Time;

/// `TCP_RTO_MIN` in microseconds.
const RTO_MIN_US: u64 = 200_000;
/// `TCP_MAX_QUICKACKS`.
const MAX_QUICK_ACKS: u64 = 16;
/// The shortest and the longest delay of an acknowledgement, in ticks: 40 and 200 ms (`TCP_DELACK_MIN`, `TCP_DELACK_MAX`).
fn shortest_delay(clock: Clock) -> u64 {
    u64::from(clock.hz / 25)
}
fn longest_delay(clock: Clock) -> u64 {
    u64::from(clock.hz / 5)
}

/// `TCP_MSS_DEFAULT`: a full segment is taken to be as long until a longer one has come; two alike of at least as many bytes, the
/// 12 of timestamps counted, are taken to be full, and of `TCP_MIN_MSS` where they carry no PSH.
const LEAST_FULL: u64 = 536;
const TIMESTAMP_OPTION: u64 = 12;
const LEAST_MSS: u64 = 88;

/// A data segment as it arrives.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// Its first byte, and how many it has: at least one.
    pub seq: u64,
    pub length: u32,
    /// Its packet's, of which [`PUSH`], [`CWR`] (the sender's window came down) and the ECN field are looked at.
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
    /// Segments that came in order, read or not.
    pub segments: u64,
}

/// What has come in order and is not read yet.
#[derive(Clone, Copy, Debug, Default)]
struct Unread {
    bytes: u64,
    /// Buffers that it fills.
    buffers: u64,
}

const READ: Unread = Unread { bytes: 0, buffers: 0 };
/// An application that has asked for all that will ever come.
const ALL: u64 = u64::MAX;

/// One connection's receiver, what every segment needs first (as [`crate::sender::Sender`]).
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Receiver {
    /// The next expected byte.
    next: u64,
    /// Up to where the application has asked for data; [`ALL`]: it reads at once.
    asked: u64,
    /// `next` and the right edge when the last acknowledgement was sent (`rcv_wup`, `rcv_wup + rcv_wnd`).
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
    wakes_at: Time,
    /// When the FIN is sent again, and how often it has been sent.
    closes_at: Time,
    closings: u32,
    handshake_us: u64,
    compressed_next: u64,
    compressed: u32,
    duplicates: u32,
    ts_recent: u32,
    /// Data since the last acknowledgement carried PSH; more than one short segment has come since then.
    pushed: bool,
    pushed_again: bool,
    /// The application answers what it receives: acknowledgements wait for its answers (`inet_csk_in_pingpong_mode`).
    answers: bool,
    sack: bool,
    marks: Marks,
    /// Segments that have come in order.
    segments: u64,
    /// What it takes a full segment to be (`rcv_mss`), and the last one if it was shorter, and not too short (`last_seg_size`).
    full: u64,
    last_short: u64,

    buffer: Buffer,
    options: HostOptions,
    reassembly: Reassembly,
    /// Empty where the application reads at once.
    queue: ReceiveQueue,
    /// While the application sleeps: what becomes of `asked` when it wakes.
    asks: u64,
    /// When a packet beside the window was answered last, in ticks.
    answered: Option<u64>,
    is_closed: bool,
}

impl Receiver {
    /// A receiver as it is when it answers the SYN. `sack`: both ends agreed on it; `echo`: as they agreed on ECN.
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

    /// The first packet after the SYN-ACK came `rtt_us` microseconds after it; later calls change nothing. True: it is the first.
    pub fn note_handshake(&mut self, rtt_us: u64, clock: Clock) -> bool {
        let is_first = self.handshake_us == 0;
        if is_first {
            self.handshake_us = rtt_us.max(1);
            self.buffer.begin(clock);
        }
        is_first
    }

    /// Whether anything came after the SYN.
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
    /// Segments that came in order.
    pub fn delivered_segments(&self) -> u64 {
        self.segments
    }
    /// When [`Self::on_timer`] wants to be called next.
    pub fn timer(&self) -> Time {
        self.timer.min(self.compress_until).min(self.reads_at).min(self.wakes_at).min(self.closes_at)
    }

    fn mss(&self) -> u64 {
        u64::from(self.options.mss)
    }

    /// Memory that is taken by what came out of order, and by what is unread.
    fn held(&self, unread: Unread) -> u64 {
        let buffers = self.reassembly.buffers() + unread.buffers;
        Buffer::memory(self.reassembly.bytes() + unread.bytes, buffers)
    }

    /// The window that could be offered with so much unread. Where that takes half the memory, acknowledgements take their time.
    fn window(&mut self, unread: Unread) -> u64 {
        if self.reassembly.is_empty() && (unread.bytes == 0 || unread.bytes == self.mss()) {
            return self.buffer.select_plain(unread.bytes > 0);
        }
        let held = self.held(unread);
        if self.asked != ALL && self.buffer.is_half_taken(held) {
            self.quick = 0;
        }
        self.buffer.select(held)
    }

    /// Takes a data segment; `emit` gets the acknowledgements that leave at once.
    #[inline(always)]
    pub fn on_data(&mut self, data: Data, clock: Clock, emit: &mut impl FnMut(&Ack)) -> Read {
        // RFC 7323 section 4.3: the echo belongs to the oldest segment not yet acknowledged.
        if data.seq <= self.acked {
            self.ts_recent = data.tsval;
        }
        self.pushed |= data.has(PUSH);
        if data.seq != self.next {
            // A copy of its own is in memory only here.
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
        if length != self.full || self.last_short > 0 {
            self.measure_segment(length, data.has(PUSH));
        }
        let come = Unread { bytes: length, buffers: 1 };
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

    /// The application has read. Two segments, or pushed data and nothing else held, are acknowledged, and a window that reading has
    /// doubled is told.
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

    /// What came last, so many segments and bytes, came before others that are here already.
    #[inline(never)]
    fn fill(&mut self, length: u64, count: u64, clock: Clock, emit: &mut impl FnMut(&Ack)) -> Read {
        let first = self.reassembly.first_buffer(self.next);
        let (next, others) = self.reassembly.advance(self.next);
        let (bytes, segments) = (length + next - self.next, count + others);
        self.next = next;
        // A filled gap is told at once (RFC 5681 section 4.2).
        let filled = self.reassembly.is_empty();
        self.decide(Unread { bytes, buffers: segments.div_ceil(BUFFER_FRAGMENTS) }, filled, clock, emit);
        // What lay beyond the gap is read buffer by buffer.
        self.buffer.adjust(first, next - first, clock);
        Read { bytes, segments }
    }

    /// Takes a segment that was not expected next: it came before, or others are missing before it.
    #[inline(never)]
    fn take_other(&mut self, data: Data, clock: Clock, emit: &mut impl FnMut(&Ack)) -> Read {
        let (seq, length) = (data.seq, u64::from(data.length));
        let block = Block { start: seq, end: seq + length };
        let unread = self.queue.unread();
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
        // The window grows before a buffer of its own counts, and after one that is shared has.
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

    /// Whether at least twice `window`, now offered, could be, with so much unread.
    fn doubles(&mut self, window: u64, unread: Unread) -> bool {
        !self.buffer.is_wide(window) && self.window(unread) >= (2 * window).max(1)
    }

    /// How long full segments are (`tcp_measure_rcv_mss`): as long as the longest, unless two shorter ones are alike. A short one ends
    /// what was written at once, and nothing may follow it soon.
    #[cold]
    fn measure_segment(&mut self, length: u64, push: bool) {
        let before = std::mem::take(&mut self.last_short);
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

    /// A segment came in order, and is among the `unread`: what follows for the buffer, and for how long acknowledgements may be
    /// delayed.
    #[inline(always)]
    fn receive_event(&mut self, data: Data, unread: Unread, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let length = u64::from(data.length);
        let offered = self.right_edge.saturating_sub(self.acked);
        self.buffer.sample_rtt_window(self.next, offered, clock);
        self.buffer.sample_rtt_echo(data.tsecr, clock);
        let now = clock.jiffies64();
        if self.ato == 0 {
            self.buffer.measure();
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

    /// The delay follows the time between segments, as far as that is shorter; after a long silence the sender may be in slow start
    /// again and is answered at once.
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

    /// The receiving end's own timeout: it only ever measured the handshake.
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
