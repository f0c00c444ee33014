//! The receiving half of a Linux TCP connection: reassembly, when to acknowledge, which window to offer.
//!
//! Mirrors Linux 6.12 (net/ipv4/tcp_input.c: `tcp_data_queue`, `__tcp_ack_snd_check`, SACK compression; tcp_output.c:
//! `tcp_send_delayed_ack`, `tcp_select_window`; tcp.c: `tcp_recvmsg`) for an application that sends nothing, and reads at once unless
//! it is told to wait.

mod buffer;
mod echo;
mod queue;
mod reading;
mod reassembly;

use crate::clock::Clock;
use crate::options::HostOptions;
use crate::packet::{Ack, Block, Ecn};
use buffer::Buffer;
pub use echo::Echo;
use echo::Marks;
use queue::ReceiveQueue;
use reassembly::{BUFFER_FRAGMENTS, Kept, Reassembly};
use sawtooth_units::{Span, Time};

/// `TCP_MAX_QUICKACKS`.
const MAX_QUICK_ACKS: u64 = 16;
/// `TCP_FASTRETRANS_THRESH`: so many duplicate ACKs are never compressed.
const DUPLICATE_THRESHOLD: u32 = 3;
/// `sysctl_tcp_comp_sack_nr`.
const COMPRESSED_MAX: u32 = 44;
/// `sysctl_tcp_comp_sack_delay_ns`.
const COMPRESS_DELAY_NS: u64 = 1_000_000;
/// `sysctl_tcp_comp_sack_slack_ns`: how late the timer may be, and is: hrtimers run in order of their latest time.
const COMPRESS_SLACK_NS: u64 = 100_000;

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
    pub push: bool,
    /// Its packet's field.
    pub ecn: Ecn,
    /// The sender's window came down (CWR).
    pub cwr: bool,
    /// Timestamp value and echo; 0 without the option.
    pub tsval: u32,
    pub tsecr: u32,
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
        self.timer.min(self.compress_until).min(self.reads_at)
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
    pub fn on_data(&mut self, data: Data, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let Data { seq, length, push, ecn, cwr, tsval, .. } = data;
        let length = u64::from(length);
        let end = seq + length;
        // RFC 7323 section 4.3: the echo belongs to the oldest segment not yet acknowledged.
        if seq <= self.acked {
            self.ts_recent = tsval;
        }
        self.pushed |= push;
        if seq < self.next {
            self.reassembly.note_duplicate(Block { start: seq, end });
            self.enter_quick_mode(MAX_QUICK_ACKS, clock);
            return self.decide(self.queue.unread(), false, clock, emit);
        }
        if cwr {
            self.take_cwr();
        }
        if seq > self.next {
            self.see_mark(ecn, clock, emit);
            let block = Block { start: seq, end };
            let unread = self.queue.unread();
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
            return self.decide(unread, false, clock, emit);
        }
        if self.asked != ALL {
            return self.enqueue(data, clock, emit);
        }
        self.next = end;
        if length != self.full || self.last_short > 0 {
            self.measure_segment(length, push);
        }
        self.receive_event(data, Unread { bytes: length, buffers: 1 }, clock, emit);
        let (mut come, mut segments) = (Unread { bytes: length, buffers: 1 }, 1);
        let (mut filled, mut first) = (false, end);
        if !self.reassembly.is_empty() {
            first = self.reassembly.first_buffer(end);
            let others;
            (self.next, others) = self.reassembly.advance(end);
            segments += others;
            come = Unread { bytes: self.next - seq, buffers: segments.div_ceil(BUFFER_FRAGMENTS) };
            // A filled gap is told at once (RFC 5681 section 4.2).
            filled = self.reassembly.is_empty();
        }
        self.segments += segments;
        self.decide(come, filled, clock, emit);
        // What lay beyond the gap is read buffer by buffer.
        self.buffer.adjust(first, self.next - first, clock);
        // The application has read. Two segments, or pushed data and nothing else held, are acknowledged,
        // and a window that reading has doubled is told.
        let unacked = self.next - self.acked;
        let window = self.right_edge.saturating_sub(self.next);
        let is_pushed = self.pushed && (!self.answers || self.pushed_again);
        if unacked > self.full || (unacked > 0 && is_pushed && self.reassembly.is_empty()) || self.doubles(window, READ)
        {
            self.send(READ, clock, emit);
        }
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
    fn receive_event(&mut self, data: Data, unread: Unread, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let Data { ecn, tsecr, .. } = data;
        let length = u64::from(data.length);
        let offered = self.right_edge.saturating_sub(self.acked);
        self.buffer.sample_rtt_window(self.next, offered, clock);
        self.buffer.sample_rtt_echo(tsecr, clock);
        let now = clock.jiffies64();
        if self.ato == 0 {
            self.buffer.measure();
            self.enter_quick_mode(MAX_QUICK_ACKS, clock);
        } else {
            self.follow_pace(now - self.last_received, clock);
        }
        self.last_received = now;
        self.see_mark(ecn, clock, emit);
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
    fn rto_ticks(&self, clock: Clock) -> u64 {
        clock.jiffies_from_micros(self.handshake_us + (2 * self.handshake_us).max(200_000))
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

    /// Whether to acknowledge now, later, or together with others (RFC 9293 section 3.8.6.3). What is `unread` has just come in
    /// order; it still takes memory, which may keep the window from being offered again in full.
    fn decide(&mut self, unread: Unread, at_once: bool, clock: Clock, emit: &mut impl FnMut(&Ack)) {
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

    /// Two segments are to be acknowledged, and the whole window could be offered again; otherwise reading will do it.
    fn is_second_segment(&mut self, unread: Unread) -> bool {
        self.next - self.acked > self.full && self.window(unread) >= self.right_edge - self.acked
    }

    /// Beside a gap every segment is acknowledged, but after three that repeat the last they are left to one that a timer sends (SACK
    /// compression). True: this one is.
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

    /// 5% of the round trip, which is kept times eight.
    fn compress_delay_ns(&self) -> u64 {
        let handshake_us = if self.handshake_us > 0 { 8 * self.handshake_us } else { u64::MAX };
        let rtt_us = self.buffer.rtt_us().min(handshake_us);
        (rtt_us * 125 / 20).min(COMPRESS_DELAY_NS)
    }

    /// Acknowledges later, unless it would be soon that what was delayed before is due.
    fn delay(&mut self, unread: Unread, clock: Clock, emit: &mut impl FnMut(&Ack)) {
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

    /// A delay that is longer than the shortest is no longer than half a second, and a round trip.
    fn delay_ticks(&self, clock: Clock) -> u64 {
        let (delay, least) = (self.ato.min(longest_delay(clock)), shortest_delay(clock));
        if self.ato <= least {
            return delay;
        }
        let round_trip = match self.handshake_us {
            0 => u64::MAX,
            us => clock.jiffies_from_micros(us).max(least),
        };
        delay.min(round_trip).min(u64::from(clock.hz / 2))
    }

    /// To be called when [`Self::timer`] is reached.
    pub fn on_timer(&mut self, clock: Clock, emit: &mut impl FnMut(&Ack)) {
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
                // No answer came in time; or the delay was too short for the sender's pace: stretch it.
                let stretched = if self.answers { shortest_delay(clock) } else { self.bounded(self.ato * 2, clock) };
                self.ato = stretched;
                self.answers = false;
                self.send(self.queue.unread(), clock, emit);
            }
            None => {}
        }
    }

    /// The application sends, and `emit` gets what its segment says: all that has come is acknowledged. If it does so soon after it
    /// received something, acknowledgements wait for it from now on.
    pub fn answer(&mut self, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        self.send(READ, clock, emit);
        self.answers |= clock.jiffies64() - self.last_received < self.ato;
    }

    /// Acknowledges, where what is `unread` still takes memory.
    fn send(&mut self, unread: Unread, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        self.emit_ack(self.next, unread, clock, emit);
        self.pushed = false;
        self.pushed_again = false;
        self.marks.at_once = false;
        // The last of those that are sent at once: the delay begins small.
        if self.quick == 1 {
            self.ato = shortest_delay(clock);
        }
        self.quick = self.quick.saturating_sub(1);
        self.delayed_until = None;
        self.timer = Time::NEVER;
    }

    /// Acknowledges up to `next`.
    fn emit_ack(&mut self, next: u64, unread: Unread, clock: Clock, emit: &mut impl FnMut(&Ack)) {
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
        let sack = if self.sack { self.reassembly.sack(room) } else { Default::default() };
        let ecn = if self.marks.echo == Echo::Exact { Ecn::Ect0 } else { Ecn::NotEct };
        emit(&Ack { next, window, tsval, tsecr, sack, ece: self.marks.told, ecn });
    }
}
