//! The receiving half of a Linux TCP connection: reassembly, when to acknowledge, which window to offer.
//!
//! Mirrors Linux 6.12 (net/ipv4/tcp_input.c: `tcp_data_queue`, `__tcp_ack_snd_check`, SACK compression; tcp_output.c:
//! `tcp_send_delayed_ack`, `tcp_select_window`) for an application that reads at once and sends nothing.

mod buffer;
mod reassembly;

use crate::clock::Clock;
use crate::options::HostOptions;
use crate::packet::Ack;
use buffer::Buffer;
use reassembly::{BUFFER_FRAGMENTS, Reassembly};
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

/// A data segment as it arrives.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    pub seq: u64,
    pub push: bool,
    /// Timestamp value and echo; 0 without the option.
    pub tsval: u32,
    pub tsecr: u32,
}

/// One connection's receiver, what every segment needs first (as [`crate::sender::Sender`]).
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Receiver {
    /// The next expected segment: what came before was delivered to the application.
    next: u64,
    /// `next` and the right edge in bytes when the last acknowledgement was sent (`rcv_wup`, `rcv_wup + rcv_wnd`).
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
    handshake_us: u64,
    compressed_next: u64,
    compressed: u32,
    duplicates: u32,
    ts_recent: u32,
    /// Data since the last acknowledgement carried PSH.
    pushed: bool,
    sack: bool,

    buffer: Buffer,
    options: HostOptions,
    reassembly: Reassembly,
}

impl Receiver {
    /// A receiver as it is when it answers the SYN. `sack`: both ends agreed on it.
    pub fn new(options: HostOptions, sack: bool, clock: Clock) -> Self {
        let buffer = Buffer::new(&options, clock);
        Receiver {
            options,
            sack,
            next: 0,
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
            compressed: 0,
            compressed_next: 0,
            duplicates: 0,
            compress_until: Time::NEVER,
        }
    }

    /// The first packet after the SYN-ACK came `rtt_us` microseconds after it; later calls change nothing.
    pub fn note_handshake(&mut self, rtt_us: u64, clock: Clock) {
        if self.handshake_us == 0 {
            self.handshake_us = rtt_us.max(1);
            self.buffer.begin(clock);
        }
    }

    /// The window that the SYN-ACK offers, in bytes.
    pub fn initial_window(&self) -> u64 {
        self.buffer.initial_window()
    }
    /// Segments delivered to the application.
    pub fn delivered(&self) -> u64 {
        self.next
    }
    /// When [`Self::on_timer`] wants to be called next.
    pub fn timer(&self) -> Time {
        self.timer.min(self.compress_until)
    }

    fn mss(&self) -> u64 {
        u64::from(self.options.mss)
    }

    /// Memory that is taken by what came out of order, and by `unread` segments in order.
    fn held(&self, unread: u64) -> u64 {
        let buffers = self.reassembly.buffers() + unread.div_ceil(BUFFER_FRAGMENTS);
        self.buffer.memory(self.reassembly.segments() + unread, buffers)
    }

    /// Takes a data segment; `emit` gets the acknowledgements that leave at once.
    pub fn on_data(&mut self, data: Data, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let Data { seq, push, tsval, tsecr } = data;
        // `tcp_replace_ts_recent`: the echo belongs to the oldest segment not yet acknowledged.
        if seq <= self.acked {
            self.ts_recent = tsval;
        }
        self.pushed |= push;
        if seq < self.next {
            self.reassembly.note_duplicate(seq);
            self.enter_quick_mode(clock);
            return self.decide(0, false, clock, emit);
        }
        if seq > self.next {
            if self.sack && self.reassembly.crowds(seq) && self.compressed > 0 {
                self.send(0, clock, emit);
            }
            self.reassembly.insert(seq);
            if self.sack && self.buffer.grow(self.held(0)) {
                self.quick |= 1;
            }
            return self.decide(0, false, clock, emit);
        }
        let before = self.next;
        self.next += 1;
        self.receive_event(tsecr, clock);
        let (mut filled, mut first) = (false, 1);
        if !self.reassembly.is_empty() {
            first = self.reassembly.first_buffer(self.next);
            self.next = self.reassembly.advance(self.next);
            // A filled gap is told at once (RFC 5681 section 4.2).
            filled = self.reassembly.is_empty();
        }
        let come = self.next - before;
        self.decide(come, filled, clock, emit);
        // What lay beyond the gap is read buffer by buffer.
        self.buffer.adjust(before + first, come - first, clock);
        // `tcp_cleanup_rbuf`: the application has read. Two segments, or pushed data and nothing else held, are acknowledged,
        // and a window that reading has doubled is told.
        let unacked = self.next - self.acked;
        let window = self.right_edge.saturating_sub(self.next * self.mss());
        if unacked > 1
            || (unacked > 0 && self.pushed && self.reassembly.is_empty())
            || self.buffer.doubles(window, self.held(0))
        {
            self.send(0, clock, emit);
        }
    }

    /// `tcp_event_data_recv`.
    fn receive_event(&mut self, tsecr: u32, clock: Clock) {
        let now = clock.jiffies64();
        let ato_min = u64::from(clock.hz / 25);
        self.buffer.sample_rtt_window(self.next, self.right_edge.saturating_sub(self.acked * self.mss()), clock);
        self.buffer.sample_rtt_echo(tsecr, clock);
        if self.ato == 0 {
            self.buffer.measure();
            self.increase_quick();
            self.ato = ato_min;
        } else {
            let since = now - self.last_received;
            if since <= ato_min / 2 {
                self.ato = self.ato / 2 + ato_min / 2;
            } else if since < self.ato {
                self.ato = (self.ato / 2 + since).min(self.rto_ticks(clock)).min(u64::from(clock.hz / 5));
            } else if since > self.rto_ticks(clock) {
                self.increase_quick();
            }
        }
        self.last_received = now;
        // The segment is not read yet.
        if self.buffer.grow(self.held(1)) {
            self.quick |= 1;
        }
    }

    /// The receiving end's own timeout: it only ever measured the handshake.
    fn rto_ticks(&self, clock: Clock) -> u64 {
        clock.jiffies_from_micros(self.handshake_us + (2 * self.handshake_us).max(200_000))
    }

    fn increase_quick(&mut self) {
        let window = self.right_edge.saturating_sub(self.acked * self.mss());
        let acks = (window / (2 * self.mss())).clamp(2, MAX_QUICK_ACKS);
        self.quick = self.quick.max(acks);
    }

    /// `tcp_enter_quickack_mode`.
    fn enter_quick_mode(&mut self, clock: Clock) {
        self.increase_quick();
        self.ato = u64::from(clock.hz / 25);
    }

    /// `__tcp_ack_snd_check`: now, later, or compressed with others. `unread` segments have just come in order; they still
    /// take memory, which may keep the window from being offered again in full.
    fn decide(&mut self, unread: u64, at_once: bool, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let two = self.next - self.acked > 1
            && self.buffer.select(self.held(unread)) >= self.right_edge - self.acked * self.mss();
        if two || self.quick > 0 || at_once || !self.options.delayed_ack {
            return self.send(unread, clock, emit);
        }
        if self.reassembly.is_empty() {
            return self.delay(unread, clock, emit);
        }
        if !self.sack || self.compressed >= COMPRESSED_MAX {
            return self.send(unread, clock, emit);
        }
        if self.compressed_next != self.next {
            self.compressed_next = self.next;
            self.duplicates = 0;
        }
        if self.duplicates < DUPLICATE_THRESHOLD {
            self.duplicates += 1;
            return self.send(unread, clock, emit);
        }
        self.compressed += 1;
        if self.compress_until == Time::NEVER {
            let mut rtt_us = self.buffer.rtt_us();
            if self.handshake_us > 0 {
                rtt_us = rtt_us.min(self.handshake_us << 3);
            }
            // 5% of a round trip that is kept times eight.
            let delay = (rtt_us * 125 / 20).min(COMPRESS_DELAY_NS);
            self.compress_until = clock.now + Span::from_nanos(delay + COMPRESS_SLACK_NS);
        }
    }

    /// `tcp_send_delayed_ack`.
    fn delay(&mut self, unread: u64, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let now = clock.jiffies64();
        let min = u64::from(clock.hz / 25);
        let max = u64::from(clock.hz / 5);
        let mut ato = self.ato;
        if ato > min {
            let mut limit = u64::from(clock.hz / 2);
            if self.handshake_us > 0 {
                limit = limit.min(clock.jiffies_from_micros(self.handshake_us).max(min));
            }
            ato = ato.min(limit);
        }
        ato = ato.min(max);
        let mut until = now + ato;
        if let Some(earlier) = self.delayed_until {
            if earlier <= now + ato / 4 {
                return self.send(unread, clock, emit);
            }
            until = until.min(earlier);
        }
        if self.delayed_until != Some(until) {
            self.delayed_until = Some(until);
            self.timer = clock.wheel_time(until);
        }
    }

    /// To be called when [`Self::timer`] is reached.
    pub fn on_timer(&mut self, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        if self.compressed > 0 && self.compress_until <= clock.now {
            return self.send(0, clock, emit);
        }
        if self.timer > clock.now {
            return;
        }
        self.timer = Time::NEVER;
        match self.delayed_until {
            Some(until) if until > clock.jiffies64() => self.timer = clock.wheel_time(until),
            Some(_) => {
                // The delay was too short for the sender's pace: stretch it.
                self.ato = (self.ato * 2).min(self.rto_ticks(clock)).min(u64::from(clock.hz / 5));
                self.send(0, clock, emit);
            }
            None => {}
        }
    }

    /// `tcp_send_ack`, with `unread` segments in order that still take memory.
    fn send(&mut self, unread: u64, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let mss = self.mss();
        let left_edge = self.next * mss;
        let offered = self.right_edge.saturating_sub(left_edge);
        let mut window = self.buffer.select(self.held(unread));
        if window == 0 {
            // Reading would open it again at this same instant.
            window = self.buffer.select(self.held(0));
        }
        if window < offered {
            window = self.buffer.scaled(offered);
        }
        self.acked = self.next;
        self.right_edge = left_edge + window;
        self.compressed = 0;
        self.compress_until = Time::NEVER;
        self.pushed = false;
        // `tcp_dec_quickack_mode`: leaving it deflates the delay.
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = u64::from(clock.hz / 25);
            }
        }
        self.delayed_until = None;
        self.timer = Time::NEVER;
        let (tsval, tsecr, room) =
            if self.options.timestamps { (clock.timestamp(), self.ts_recent, 3) } else { (0, 0, 4) };
        let sack = if self.sack { self.reassembly.sack(room) } else { Default::default() };
        emit(&Ack { next: self.next, window, tsval, tsecr, sack });
    }
}
