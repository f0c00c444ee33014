//! The receive window and its auto-tuning: `tcp_rcv_space_adjust`, `tcp_grow_window`, `__tcp_select_window`.
//! The application reads at once, so only out-of-order data takes memory.

use crate::clock::Clock;
use crate::options::{HostOptions, RECEIVE_BUFFER_START};
use sawtooth_units::width::Fit;

/// Kernel memory of a received buffer beyond its payload, for frames that arrive alone (no GRO): `sk_buff` and small head.
/// From the share of a full buffer that Linux 6.12 offers behind a veth pair: 162/256 at 1448 bytes, 234/256 at 8948.
const BUFFER_OVERHEAD: u64 = 832;
/// `TCP_MSS_DEFAULT`: what a receiver takes a segment to be until it has seen a larger one (`tcp_initialize_rcv_mss`).
const ASSUMED_MSS: u64 = 536;
/// `TCP_DEFAULT_SCALING_RATIO`.
const ASSUMED_RATIO: u64 = 128;
/// `TCP_RMEM_TO_WIN_SCALE`.
const RATIO_SHIFT: u32 = 8;
/// `TCP_INIT_CWND`.
const INITIAL_WINDOW: u64 = 10;

#[derive(Clone, Debug)]
pub struct Buffer {
    mss: u64,
    limit: u64,
    /// `sk_rcvbuf`.
    size: u64,
    /// `scaling_ratio`: how much of the memory is payload, in 256ths.
    ratio: u64,
    clamp: u64,
    /// What the SYN-ACK offered.
    initial: u64,
    /// `rcv_ssthresh`: the window that is offered, growing towards the clamp.
    offered: u64,
    window_scale: u32,
    /// Dynamic right-sizing: bytes read in the last round trip, and since when the current one is measured.
    space: u64,
    space_seq: u64,
    space_since_us: u64,
    /// `rcv_rtt_est.rtt_us`, times eight.
    rtt_us: u64,
    rtt_seq: u64,
    rtt_since_us: Option<u64>,
    last_echo: u32,
}

impl Buffer {
    pub fn new(options: &HostOptions, clock: Clock) -> Self {
        let mss = u64::from(options.mss);
        let size = RECEIVE_BUFFER_START.min(options.receive_buffer);
        let initial = options.first_window(options.mss);
        Buffer {
            mss,
            limit: options.receive_buffer,
            size,
            ratio: if mss > ASSUMED_MSS { (mss << RATIO_SHIFT) / (mss + BUFFER_OVERHEAD) } else { ASSUMED_RATIO },
            clamp: size / 2,
            initial: initial.max(mss),
            // `tcp_init_buffer_space`: one segment is held back.
            offered: initial.min((size / 2).saturating_sub(mss)).max(mss),
            window_scale: options.window_scale(),
            space: initial.min(INITIAL_WINDOW * mss),
            space_seq: 0,
            space_since_us: clock.micros(),
            rtt_us: 0,
            rtt_seq: 0,
            rtt_since_us: None,
            last_echo: 0,
        }
    }

    /// The window of the SYN-ACK in bytes (never scaled).
    pub fn initial_window(&self) -> u64 {
        self.initial
    }
    /// `rcv_rtt_est.rtt_us`: microseconds times eight, 0 before the first sample.
    pub fn rtt_us(&self) -> u64 {
        self.rtt_us
    }

    /// The handshake is done.
    pub fn begin(&mut self, clock: Clock) {
        self.space_since_us = clock.micros();
    }

    /// Kernel memory of `segments` in so many buffers.
    pub fn memory(&self, segments: u64, buffers: u64) -> u64 {
        segments * self.mss + buffers * BUFFER_OVERHEAD
    }

    fn window_from(&self, memory: u64) -> u64 {
        (memory * self.ratio) >> RATIO_SHIFT
    }

    /// `tcp_grow_window`: true when the offer grew, which also asks for an acknowledgement at once.
    pub fn grow(&mut self, held: u64) -> bool {
        let room = self.clamp.min(self.free(held)).saturating_sub(self.offered);
        if room == 0 {
            return false;
        }
        self.offered += room.min(2 * self.mss);
        true
    }

    /// The first full segment fixes the share of memory that is payload (`tcp_measure_rcv_mss`).
    pub fn measure(&mut self) {
        self.clamp = self.window_from(self.size);
        self.space = self.space.min(self.clamp);
    }

    fn free(&self, held: u64) -> u64 {
        self.window_from(self.size.saturating_sub(held))
    }

    /// `__tcp_select_window`: what could be offered, in bytes, while `held` bytes of memory are taken.
    pub fn select(&self, held: u64) -> u64 {
        let full = self.clamp.min(self.window_from(self.size));
        let mut free = self.free(held);
        if free < full / 2 {
            free = free >> self.window_scale << self.window_scale;
            if free < self.window_from(self.size) >> 4 || free < self.mss {
                return 0;
            }
        }
        self.scaled(free.min(self.offered))
    }

    /// Whether at least twice `window`, now offered, could be.
    pub fn doubles(&self, window: u64, held: u64) -> bool {
        2 * window <= self.clamp && self.select(held) >= (2 * window).max(1)
    }

    /// Rounded up to what the window field can say.
    pub fn scaled(&self, window: u64) -> u64 {
        window.next_multiple_of(1 << self.window_scale).min(65_535 << self.window_scale)
    }

    /// `tcp_rcv_rtt_measure_ts`: from the echo of our own timestamp in the data.
    pub fn sample_rtt_echo(&mut self, echo: u32, clock: Clock) {
        if echo == 0 || echo == self.last_echo {
            return;
        }
        self.last_echo = echo;
        let millis = clock.timestamp().wrapping_sub(echo);
        if millis > 0 {
            let sample = u64::from(millis) * 1_000;
            let old = self.rtt_us;
            self.rtt_us = if old == 0 || sample << 3 < old { sample << 3 } else { old - (old >> 3) + sample };
        }
    }

    /// `tcp_rcv_rtt_measure`: from the time that a whole window takes; only ever lowers the estimate.
    pub fn sample_rtt_window(&mut self, next: u64, window: u64, clock: Clock) {
        let now = clock.micros();
        if let Some(since) = self.rtt_since_us {
            if next < self.rtt_seq {
                return;
            }
            let sample = now.saturating_sub(since).max(1) << 3;
            if self.rtt_us == 0 || sample < self.rtt_us {
                self.rtt_us = sample;
            }
        }
        self.rtt_seq = next + window / self.mss;
        self.rtt_since_us = Some(now);
    }

    /// `tcp_rcv_space_adjust`: once a round trip, twice what was read, and more while it grows. Everything before the segment
    /// `read` was read, `waiting` segments from there on are still to be.
    pub fn adjust(&mut self, read: u64, waiting: u64, clock: Clock) {
        let now = clock.micros();
        if self.rtt_us == 0 || now - self.space_since_us < self.rtt_us >> 3 {
            return;
        }
        let copied = (read - self.space_seq).saturating_sub(waiting) * self.mss;
        if copied > self.space {
            let mut window = 2 * copied + 16 * self.mss;
            let grow = u128::from(window) * u128::from(copied - self.space) / u128::from(self.space.max(1));
            window += (grow.fit_u64()) << 1;
            let size = ((window << RATIO_SHIFT) / self.ratio.max(1)).min(self.limit);
            if size > self.size {
                self.size = size;
                self.clamp = self.window_from(size);
            }
            self.space = copied;
        }
        self.space_seq = read;
        self.space_since_us = now;
    }
}
