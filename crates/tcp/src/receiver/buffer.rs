//! The receive window (RFC 9293 section 3.8.6.2) and its auto-tuning, as in Linux 6.12. Out-of-order data takes memory,
//! and so does data that the application has not read.

use super::reassembly::BUFFER_FRAGMENTS;
use crate::clock::Clock;
use crate::options::{Device, HostOptions, SHARE_BITS};
use crate::steady::Visit;
use sawtooth_units::width::Fit;

/// Kernel memory of a received buffer beyond its payload, for frames that arrive singly (no GRO): `sk_buff` and small
/// head. It follows from the share of a full buffer that Linux 6.12 offers behind a veth pair: 162/256 at 1448 bytes,
/// 234/256 at 8948.
const BUFFER_OVERHEAD: u64 = 832;
/// Kernel memory of a packet of a tun device, beyond its pages: `sk_buff`. And what its first page holds beside
/// payload: room before the headers, the headers, `skb_shared_info`. Measured on Linux 6.18 (`skmem` of `ss -m`):
/// packets of 1,000, 2,000, 4,000, 9,000, 20,000 and 60,000 bytes take 2,304, 4,352, 8,448, 12,544, 20,736 and 61,696.
const TUN_OVERHEAD: u64 = 256;
const TUN_ROOM: u64 = 426;
const PAGE: u64 = 4_096;
/// What Linux before 6.6 counts for a segment beyond its payload when it sizes the buffer: `MAX_TCP_HEADER`, `sk_buff`
/// and `skb_shared_info`. It adds steps of this many bytes until the segment's window is at least its payload.
const OLD_OVERHEAD: u64 = 320 + 256 + 320;
const OLD_STEP: u64 = 128;
/// Segments with fewer bytes do not let the window grow (`tcp_event_data_recv`).
const SHORTEST_TO_GROW: u64 = 128;
/// `TCP_INIT_CWND`.
const INITIAL_WINDOW: u64 = 10;

/// Values that depend only on the sizes while nothing is out of order: computed when they change, not for each segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Plain {
    /// [`Buffer::select`] with everything read, and with one full segment unread.
    windows: [u64; 2],
    /// [`Buffer::grow`] does not offer more with one full segment unread.
    is_grown: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    device: Device,
    mss: u64,
    limit: u64,
    /// `sk_rcvbuf`.
    size: u64,
    /// `scaling_ratio`: the payload share of the memory, in 256ths.
    ratio: u64,
    /// The share is a setting and is not measured (`tcp_adv_win_scale`).
    is_set: bool,
    clamp: u64,
    /// The SYN-ACK's window.
    initial: u64,
    /// `rcv_ssthresh`: the offered window, which grows towards the clamp.
    offered: u64,
    window_scale: u32,
    plain: Plain,
    /// Dynamic right-sizing: bytes read in the last round trip, and when the current one began.
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
    /// See [`crate::steady`]. How the buffer is sized follows rounds and the kernel's clocks.
    pub fn visit(&mut self, visit: &mut Visit) {
        let rounds = [&mut self.space, &mut self.space_seq, &mut self.space_since_us, &mut self.rtt_us];
        rounds.into_iter().chain([&mut self.rtt_seq]).chain(&mut self.rtt_since_us).for_each(|it| visit.round(it));
        visit.round_count(&mut self.last_echo);
    }

    /// The byte, the microsecond and the echo with which a segment changes how the buffer is sized.
    pub fn next_round(&self) -> (u64, u64, u32) {
        let space_us = if self.rtt_us > 0 { self.space_since_us + self.rtt_us / 8 } else { u64::MAX };
        (self.rtt_seq, space_us, self.last_echo + 1)
    }
    /// The sizes that this results in.
    pub fn sizes(&self) -> [u64; 2] {
        [self.size, self.clamp]
    }

    pub fn new(options: &HostOptions, clock: Clock) -> Self {
        let mss = u64::from(options.mss);
        let size = options.receive_buffer_start.min(options.receive_buffer);
        let initial = options.first_window(options.mss);
        let whole = options.first_share(size);
        let is_set = options.adv_win_scale.is_some();
        // `tcp_init_buffer_space`: one segment is held back.
        let most = whole.saturating_sub(mss);
        let clamp = if whole > 2 * mss { most.max(2 * mss) } else { whole };
        let mut buffer = Buffer {
            device: options.device,
            mss,
            limit: options.receive_buffer,
            size,
            ratio: options.window_share(),
            is_set,
            // A measured share soon replaces it.
            clamp: if is_set { clamp } else { whole },
            initial: initial.max(mss),
            offered: initial.min(most).max(mss),
            window_scale: options.window_scale(),
            plain: Plain::default(),
            space: initial.min(INITIAL_WINDOW * mss),
            space_seq: 0,
            space_since_us: clock.micros(),
            rtt_us: 0,
            rtt_seq: 0,
            rtt_since_us: None,
            last_echo: 0,
        };
        buffer.note_sizes();
        buffer
    }

    fn note_sizes(&mut self) {
        let one = self.memory(self.mss, 1);
        let windows = [self.select(0), self.select(one)];
        self.plain = Plain { windows, is_grown: self.most(one) <= self.offered };
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

    /// Kernel memory for this many bytes in this many buffers, which are taken to be equally full.
    pub fn memory(&self, bytes: u64, buffers: u64) -> u64 {
        match self.device {
            Device::Card => bytes + buffers * BUFFER_OVERHEAD,
            Device::Tun => {
                let each = bytes.checked_div(buffers).map_or(0, |each| each + TUN_ROOM);
                let pages = if each < PAGE { each.next_power_of_two() } else { each.next_multiple_of(PAGE) };
                buffers * (pages + TUN_OVERHEAD)
            }
        }
    }

    /// The buffers of this many segments that came as one packet.
    pub fn buffers(&self, segments: u64) -> u64 {
        match self.device {
            Device::Card => segments.div_ceil(BUFFER_FRAGMENTS),
            Device::Tun => 1,
        }
    }

    /// How many fragments of a buffer these segments take, if they came as one packet: all, if nothing shares it.
    pub fn fragments(&self, segments: u64) -> u64 {
        match self.device {
            Device::Card => segments,
            Device::Tun => BUFFER_FRAGMENTS,
        }
    }

    fn window_from(&self, memory: u64) -> u64 {
        (memory * self.ratio) >> SHARE_BITS
    }

    /// Offers two more segments for a segment of `length` bytes, or twice the length if that is more, as far as there
    /// is memory. True if the offer grew, which also causes an acknowledgement at once.
    pub fn grow(&mut self, length: u64, held: u64) -> bool {
        let most = self.most(held);
        let grows = most > self.offered && self.earns(length);
        if grows {
            self.offered = most.min(self.offered + 2 * self.mss.max(length));
            self.note_sizes();
        }
        grows
    }

    /// Short segments take more memory than the window counts for them, and so do single ones where the first were
    /// merged. The larger that excess, the sooner they no longer let the window grow (`tcp_grow_window`).
    fn earns(&self, length: u64) -> bool {
        // Pages that segments share count without their heads (`truesize_adjust`). No share of those exceeds the
        // payload.
        if self.is_set && self.device == Device::Card {
            return length >= SHORTEST_TO_GROW;
        }
        let mut memory = self.window_from(self.memory(length, self.buffers(length.div_ceil(self.mss))));
        if memory <= length {
            return true;
        }
        memory /= 2;
        let mut window = self.window_from(self.limit) / 2;
        while self.offered <= window && memory > length {
            (memory, window) = (memory / 2, window / 2);
        }
        length >= SHORTEST_TO_GROW && self.offered <= window
    }

    /// [`Self::grow`] with one full segment unread and nothing out of order.
    #[inline]
    pub fn grow_plain(&mut self) -> bool {
        !self.plain.is_grown && self.grow(self.mss, self.memory(self.mss, 1))
    }

    fn most(&self, held: u64) -> u64 {
        self.free(held).min(self.clamp)
    }

    /// A segment longer than all before it tells which share of memory is payload: `bytes` in this many buffers.
    pub fn measure(&mut self, bytes: u64, buffers: u64) {
        if self.is_set {
            return;
        }
        self.ratio = (bytes << SHARE_BITS) / self.memory(bytes, buffers);
        self.clamp = self.window_from(self.size);
        self.space = self.space.min(self.clamp);
        self.note_sizes();
    }

    fn free(&self, held: u64) -> u64 {
        self.window_from(self.size.saturating_sub(held))
    }

    /// The window that could be offered, in bytes, while `held` bytes of memory are in use. Above half use, only whole
    /// units of the window's scale, and zero instead of little (RFC 9293 section 3.8.6.2.2).
    pub fn select(&self, held: u64) -> u64 {
        let whole = self.window_from(self.size);
        let free = self.free(held);
        if !self.is_half_taken(held) {
            return self.scaled(free.min(self.offered));
        }
        let units = free >> self.window_scale << self.window_scale;
        let least = self.mss.max(whole >> 4);
        if units < least { 0 } else { self.scaled(units.min(self.offered)) }
    }

    /// The application sets `SO_RCVBUF`, of which Linux takes the double.
    pub fn resize(&mut self, size: u64) {
        (self.size, self.limit) = (size, size);
        self.note_sizes();
    }

    /// Whether this much memory is more than the buffer has.
    pub fn is_exceeded(&self, held: u64) -> bool {
        held > self.size
    }

    /// Whether more than half of what could be offered is in use.
    pub fn is_half_taken(&self, held: u64) -> bool {
        self.free(held) < self.clamp.min(self.window_from(self.size)) / 2
    }

    /// [`Self::select`] with nothing out of order, and zero or one full segment in order.
    #[inline]
    pub fn select_plain(&self, one_unread: bool) -> u64 {
        self.plain.windows[usize::from(one_unread)]
    }

    /// Whether the window is so large that its doubling is not announced.
    pub fn is_wide(&self, window: u64) -> bool {
        2 * window > self.clamp
    }

    pub fn is_scaled(&self) -> bool {
        self.window_scale > 0
    }

    /// Rounded up to what the window field can express.
    pub fn scaled(&self, window: u64) -> u64 {
        window.next_multiple_of(1 << self.window_scale).min(65_535 << self.window_scale)
    }

    /// Round-trip time from the echo of the receiver's timestamp in the data, smoothed by an eighth; a lower one counts
    /// at once.
    pub fn sample_rtt_echo(&mut self, echo: u32, clock: Clock) {
        if echo == 0 || std::mem::replace(&mut self.last_echo, echo) == echo {
            return;
        }
        let millis = clock.timestamp().wrapping_sub(echo);
        if millis > 0 {
            let sample = u64::from(millis) * 1_000;
            let is_lower = self.rtt_us == 0 || 8 * sample < self.rtt_us;
            self.rtt_us = if is_lower { 8 * sample } else { self.rtt_us - self.rtt_us / 8 + sample };
        }
    }

    /// Round-trip time from the duration of a whole window; it only lowers the estimate.
    #[inline]
    pub fn sample_rtt_window(&mut self, next: u64, window: u64, clock: Clock) {
        if next >= self.rtt_seq {
            self.take_rtt_window(next, window, clock);
        }
    }

    #[inline(never)]
    fn take_rtt_window(&mut self, next: u64, window: u64, clock: Clock) {
        let now = clock.micros();
        if let Some(since) = self.rtt_since_us {
            let sample = 8 * now.saturating_sub(since).max(1);
            self.rtt_us = if self.rtt_us == 0 { sample } else { sample.min(self.rtt_us) };
        }
        self.rtt_seq = next + window;
        self.rtt_since_us = Some(now);
    }

    /// Dynamic right-sizing (Fisk and Feng, 2001): once per round trip the buffer is sized for twice what was read in
    /// it, and for more while that grows. Everything before the byte `read` was read; `waiting` bytes after it are
    /// unread.
    #[inline]
    pub fn adjust(&mut self, read: u64, waiting: u64, clock: Clock) {
        if self.rtt_us > 0 && clock.micros() - self.space_since_us >= self.rtt_us / 8 {
            self.end_round(read, waiting, clock);
        }
    }

    #[inline(never)]
    fn end_round(&mut self, read: u64, waiting: u64, clock: Clock) {
        let waiting = if self.is_set { 0 } else { waiting };
        let copied = (read - self.space_seq).saturating_sub(waiting);
        if copied > self.space {
            self.widen(self.window_for(copied));
            self.space = copied;
        }
        (self.space_seq, self.space_since_us) = (read, clock.micros());
    }

    /// The window for a sender of which `copied` bytes were read in this round trip: twice that plus a cushion, since
    /// its own window may double; and in proportion twice as much more as the growth since the last round trip.
    fn window_for(&self, copied: u64) -> u64 {
        let window = 2 * copied + 16 * self.mss;
        let growth = u128::from(window) * u128::from(copied - self.space) / u128::from(self.space.max(1));
        window + 2 * growth.fit_u64()
    }

    /// The buffer for a window, in Linux before 6.6 (`tcp_rcv_space_adjust`).
    fn old_memory(&self, window: u64) -> u64 {
        let mut each = self.mss + OLD_OVERHEAD;
        while self.window_from(each) < self.mss {
            each += OLD_STEP;
        }
        window / self.mss * each
    }

    fn widen(&mut self, window: u64) {
        let memory = if self.is_set { self.old_memory(window) } else { (window << SHARE_BITS) / self.ratio.max(1) };
        let size = memory.min(self.limit);
        if size > self.size {
            self.size = size;
            self.clamp = self.window_from(size);
            self.note_sizes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sawtooth_units::Time;

    fn buffer(adv_win_scale: Option<u32>) -> Buffer {
        let options = HostOptions { adv_win_scale, ..HostOptions::default() };
        Buffer::new(&options, Clock::new(Time::ZERO, 250))
    }

    #[test]
    fn before_linux_6_6_a_segment_counts_with_headers_until_its_window_holds_it() {
        // 1448 and 896 bytes, and five times 128, of which half is at least 1448.
        assert_eq!(buffer(Some(1)).old_memory(10 * 1448 + 100), 10 * 2_984);
        assert_eq!(buffer(Some(0)).old_memory(1448), 2_344);
    }

    #[test]
    fn a_share_that_is_set_is_not_measured() {
        let windows = [None, Some(1)].map(|scale| {
            let mut buffer = buffer(scale);
            buffer.measure(1448, 1);
            buffer.window_from(1 << 20)
        });
        assert_eq!(windows, [162 << 12, 1 << 19]);
    }

    #[test]
    fn one_segment_of_a_buffer_with_a_set_share_is_held_back_until_it_grows() {
        let mut buffer = buffer(Some(1));
        assert_eq!((buffer.clamp, buffer.offered), (65_536 - 1_448, 65_536 - 1_448));
        buffer.widen(100 * 1448);
        assert_eq!(buffer.clamp, 100 * 2_984 / 2);
    }
}
