//! Sending: new data in super-packets, retransmissions, pacing. One file, in the order of Linux's
//! tcp_output.c.

use super::scoreboard::{EVER_RETRANS, JOINED, LOST, RETRANS, Run, SACKED};
use super::{Limit, Sender};
use crate::cc::{Event, gso};
use crate::clock::Clock;
use crate::flight::CaState;
use crate::packet::Burst;
use crate::window::UNPACED;
use sawtooth_units::Time;
use sawtooth_units::width::Fit;

/// `sysctl_tcp_tso_rtt_log`: the shorter the round trip, the larger the super-packets.
const TSO_RTT_LOG: u32 = 9;
/// `sysctl_tcp_tso_win_divisor`.
const TSO_WIN_DIVISOR: u64 = 3;
/// `sysctl_tcp_limit_output_bytes`.
const LIMIT_OUTPUT_BYTES: u64 = 4 << 20;
/// Largest payload of a super-packet (`sk_gso_max_size`, `tcp_xmit_size_goal`).
const GSO_MAX_SIZE: u64 = gso::MAX_PAYLOAD as u64;
/// Kernel memory that a super-packet takes beyond its payload (`SKB_TRUESIZE(MAX_TCP_HEADER)`).
pub(super) const SUPER_PACKET_OVERHEAD: u64 = 832;
/// The same for each segment into which it is split before it waits in the host's queue (`tcp_gso_segment`): segments
/// have separate heads.
pub const SEGMENT_OVERHEAD: u64 = SUPER_PACKET_OVERHEAD;
/// The pacer lets this many first segments go unpaced (as sch_fq did).
const UNPACED_SEGMENTS: u64 = 10;
const NANOS_PER_SEC: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    Normal,
    /// Everything written, including a short last segment (`TCP_NAGLE_PUSH`).
    All,
    /// One super-packet, at once.
    One,
    /// One super-packet as a tail loss probe, even if the window is full.
    Probe,
}

impl Push {
    fn is_one(self) -> bool {
        matches!(self, Push::One | Push::Probe)
    }
}

/// Nothing waits for a fuller super-packet for longer than this, in nanoseconds.
const LONGEST_WAIT_NS: u64 = 1_000_000;

/// The contents of one super-packet, in segments that are full except the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub bytes: u32,
    pub segments: u16,
}

/// What stopped a sending pass.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    by_cwnd: bool,
    by_receiver: bool,
}

impl Sender {
    /// Sends new data as far as window, pacing and host queue allow.
    pub(super) fn xmit(&mut self, push: Push, clock: Clock, out: &mut Vec<Burst>) {
        let mut max_segs = None;
        let before = self.flight.packets_out;
        let mut held = Held::default();
        while let Some(piece) = self.next_burst(push, &mut max_segs, &mut held, clock) {
            self.transmit_new(piece, clock, out);
            if push.is_one() {
                break;
            }
        }
        let sent = self.flight.packets_out - before;
        held.by_cwnd |= self.flight.in_flight() >= self.window.cwnd;
        self.note_limit(held, clock);
        if sent > 0 || held.by_cwnd {
            self.validate_cwnd(held.by_cwnd);
        }
        if held.by_receiver && self.flight.packets_out == 0 {
            self.wait_for_window(clock);
        }
        if sent > 0 {
            if self.in_cwnd_reduction() {
                self.prr_out += sent;
            }
            if push != Push::Probe {
                self.schedule_loss_probe(false, clock);
            }
        }
    }

    /// The contents of the next super-packet, if it may leave now. `max_segs`: its size, once it is known.
    #[inline(always)]
    fn next_burst(&mut self, push: Push, max_segs: &mut Option<u32>, held: &mut Held, clock: Clock) -> Option<Piece> {
        let unsent = self.unsent();
        if unsent == 0 || self.pacing_blocks(clock) {
            return None;
        }
        let room = self.window.cwnd.saturating_sub(self.flight.in_flight());
        if room == 0 && push != Push::Probe {
            return None;
        }
        let max_segs = *max_segs.get_or_insert_with(|| self.tso_segs());
        // At most half a window may leave at once.
        let quota = if room == 0 { 1 } else { room.min((self.window.cwnd / 2).max(1)).min(max_segs) };
        let mss = u64::from(self.flight.mss);
        let room = u64::from(room) * mss;
        let most = u64::from(quota) * mss;
        let head = self.head_buffer(most);
        if !self.fits_window(head) {
            held.by_receiver = true;
            return None;
        }
        let window = self.window_end - self.flight.snd_nxt;
        if head > mss && !push.is_one() && self.waits_for_more(head, head < unsent, [room, window], max_segs, clock) {
            held.by_cwnd |= room < window && room <= head;
            held.by_receiver |= window <= room.min(head);
            return None;
        }
        let piece = if most <= window.min(head) {
            Piece { bytes: most.fit_u32(), segments: quota.fit_u16() }
        } else {
            self.last_piece(most, head, window, push)?
        };
        (!self.host_queue_full(piece.bytes, 0)).then_some(piece)
    }

    /// What leaves if buffer or window ends before the quota: the rest, of which a partial segment may wait for more.
    fn last_piece(&self, most: u64, head: u64, window: u64, push: Push) -> Option<Piece> {
        let mss = u64::from(self.flight.mss);
        let may_grow = head == self.unsent() || head > mss && window < most;
        let mut bytes = head.min(window);
        if may_grow && self.delays_short(push) {
            bytes -= bytes % mss;
        }
        let segments = bytes.div_ceil(mss).fit_u16();
        (bytes > 0).then_some(Piece { bytes: bytes.fit_u32(), segments })
    }

    /// Nagle's algorithm (RFC 1122 section 4.2.3.4) with Minshall's change: a short segment waits while another one is
    /// unacknowledged, unless nothing will follow it.
    fn delays_short(&self, push: Push) -> bool {
        let is_closing = self.written == self.total && !self.stays_open;
        push == Push::Normal && !self.no_delay && !is_closing && self.small_end > self.flight.snd_una
    }

    /// Whether the receiver's window has room for the first unsent segment of this many bytes (`tcp_snd_wnd_test`).
    pub(super) fn fits_window(&self, bytes: u64) -> bool {
        self.flight.snd_nxt + bytes.min(u64::from(self.flight.mss)) <= self.window_end
    }

    /// Call at [`Self::next_room`]: the pacer releases data, or the host's queue has room again.
    pub fn on_room(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        if self.pacing_timer <= clock.now {
            self.pacing_timer = Time::NEVER;
        }
        self.throttled = false;
        if self.flight.lost_out > self.flight.retrans_out && self.window.cwnd > self.flight.in_flight() {
            self.xmit_retransmit_queue(clock, out);
        }
        self.xmit(Push::Normal, clock, out);
        self.write(clock, out);
        self.settle_timer(clock);
    }

    /// Most segments of a super-packet: as the algorithm says, otherwise a fraction of a second at the pacing rate, and
    /// more on short paths.
    fn tso_segs(&self) -> u32 {
        let mut bytes = self.window.pacing_rate >> gso::PACING_SHIFT;
        let shift = self.flight.min_rtt_us >> TSO_RTT_LOG;
        if shift < u32::BITS {
            bytes = bytes.saturating_add(GSO_MAX_SIZE >> shift);
        }
        let segs = bytes.min(GSO_MAX_SIZE) / u64::from(self.flight.mss);
        self.congestion.tso_segs(&self.flight, &self.window, segs as u32)
    }

    /// Whether the pacer holds data back; if so, sets its timer.
    fn pacing_blocks(&mut self, clock: Clock) -> bool {
        if !self.window.pacing || self.flight.wstamp_ns <= clock.now.nanos() {
            return false;
        }
        if self.pacing_timer == Time::NEVER {
            self.pacing_timer = Time::from_nanos(self.flight.wstamp_ns);
        }
        true
    }

    /// Whether too much of this connection waits in the host's queue.
    fn host_queue_full(&mut self, bytes: u32, factor: u32) -> bool {
        let limit = self.small_queue(u64::from(bytes), factor);
        let full = self.exceeds(limit);
        if full {
            (self.throttled, self.host_room) = (true, limit);
        }
        full
    }

    /// The queue limit when this many bytes follow (`tcp_small_queue_check`).
    fn small_queue(&self, bytes: u64, factor: u32) -> u64 {
        let size = bytes + SUPER_PACKET_OVERHEAD;
        let mut limit = (2 * size).max(self.window.pacing_rate >> gso::PACING_SHIFT);
        if !self.window.pacing {
            limit = limit.min(LIMIT_OUTPUT_BYTES);
        }
        limit << factor
    }

    /// One super-packet may always be under way, and another follow. Linux counts one byte more than is queued.
    fn exceeds(&self, limit: u64) -> bool {
        self.host_queue >= limit && self.super_packets > 1
    }

    /// The number of packets before the one after whose departure less than `limit` is queued.
    fn packets_before(&self, limit: u64) -> usize {
        let most = u64::from(self.flight.mss) + SEGMENT_OVERHEAD;
        (self.host_queue.saturating_sub(limit) / most).fit_usize()
    }

    /// When [`Self::on_room`] must be called next. `leaves`: when the packet with this many before it leaves the host's
    /// queue, or the last one. If the pacer fires before there is room, nothing could be sent, so that call is skipped.
    pub fn next_room(&self, leaves: impl Fn(usize) -> Time) -> Time {
        if self.throttled {
            return self.pacing_timer.min(leaves(self.packets_before(self.host_room)));
        }
        if self.host_queue > 0 && self.super_packets > 1 && self.pacing_timer < Time::NEVER {
            let retransmits = self.flight.lost_out > self.flight.retrans_out;
            let bytes = u64::from(self.tso_segs()) * u64::from(self.flight.mss);
            let limit = self.small_queue(bytes, u32::from(retransmits));
            if self.exceeds(limit) {
                return leaves(self.packets_before(limit)).max(self.pacing_timer);
            }
        }
        self.pacing_timer
    }

    /// Whether to wait briefly for a fuller super-packet, because the next ACK, which makes room for it, is near.
    /// Arguments: `head` bytes in the first buffer (the last one unless `has_more`); bytes for which the congestion
    /// window and the receiver's have room.
    fn waits_for_more(&self, head: u64, has_more: bool, rooms: [u64; 2], max_segs: u32, clock: Clock) -> bool {
        let room = rooms[0].min(rooms[1]);
        let mss = u64::from(self.flight.mss);
        let largest_window = self.send_window.min(u64::from(self.window.cwnd) * mss);
        let is_enough =
            room >= u64::from(max_segs) * mss || has_more && room >= head || room >= largest_window / TSO_WIN_DIVISOR;
        let since_last_ns = clock.now.nanos().saturating_sub(self.flight.wstamp_ns);
        let may_wait = self.flight.ca_state < CaState::Recovery && since_last_ns <= LONGEST_WAIT_NS;
        may_wait && !is_enough && self.ack_is_near(clock)
    }

    /// Whether the ACK of the oldest segment is due within a millisecond and half a round trip.
    fn ack_is_near(&self, clock: Clock) -> bool {
        let Some(oldest) = self.board.front() else { return false };
        let srtt_ns = u64::from(self.flight.srtt_us) * 1_000 / 8;
        let due_ns = oldest.sent_us * 1_000 + srtt_ns;
        due_ns.saturating_sub(clock.now.nanos()) <= LONGEST_WAIT_NS.min(srtt_ns / 2)
    }

    /// Window validation (purpose of RFC 7661): the fullest flight of a window shows whether the window was the limit.
    /// If not, Linux reduces it after a timeout (`tcp_cwnd_application_limited`). But each ACK that advances restarts
    /// that, so the restart after idle time always comes first.
    fn validate_cwnd(&mut self, cwnd_limited: bool) {
        let flight = &mut self.flight;
        let is_over = flight.snd_una >= self.cwnd_usage_seq;
        let is_fuller = flight.packets_out > flight.max_packets_out && !flight.is_cwnd_limited;
        if is_over || cwnd_limited || is_fuller {
            (flight.is_cwnd_limited, flight.max_packets_out) = (cwnd_limited, flight.packets_out);
            self.cwnd_usage_seq = flight.snd_nxt;
        }
    }

    /// Counts the time in which something other than the window is the limit.
    fn note_limit(&mut self, held: Held, clock: Clock) {
        let is_starved = self.unsent() == 0 && self.flight.snd_nxt < self.total;
        let limit = match held {
            Held { by_receiver: true, .. } => Some(Limit::ReceiveWindow),
            Held { by_cwnd: false, .. } if is_starved => Some(Limit::SendBuffer),
            Held { .. } => None,
        };
        if self.limited_since.map(|(l, _)| l) != limit {
            (self.stats.rwnd_limited_ns, self.stats.sndbuf_limited_ns) = self.limited_ns(clock);
            self.limited_since = limit.map(|l| (l, clock.now));
        }
    }

    /// Sends new data.
    #[inline(never)]
    pub(super) fn transmit_new(&mut self, piece: Piece, clock: Clock, out: &mut Vec<Burst>) {
        let sent_us = self.stamp_departure(piece, clock);
        let start = self.flight.snd_nxt;
        let run = self.rate_snapshot(start, piece.bytes, piece.segments, sent_us, 0);
        self.board.push(run);
        let first = self.flight.packets_out == 0;
        self.emit(start, piece, clock, out);
        self.flight.snd_nxt = start + u64::from(piece.bytes);
        if piece.bytes < u32::from(piece.segments) * self.flight.mss {
            self.small_end = self.flight.snd_nxt;
        }
        self.flight.packets_out += u32::from(piece.segments);
        self.super_packets += 1;
        self.drop_sent_buffers();
        if first || self.loss_probe_pending() {
            self.rearm_rto(clock);
        }
        self.check_space();
    }

    /// Retransmits a run without a recovery's accounting (as for a tail loss probe). It becomes a separate buffer, and
    /// so does the rest of its buffer.
    pub(super) fn transmit_again(&mut self, at: u32, clock: Clock, out: &mut Vec<Burst>) {
        let &Run { start, bytes, segments, flags, .. } = self.board.run(at);
        let piece = Piece { bytes, segments };
        let sent_us = self.stamp_departure(piece, clock);
        let run = self.rate_snapshot(start, bytes, segments, sent_us, flags | EVER_RETRANS);
        self.board.send_again(at, run);
        self.part(at);
        if let Some(after) = self.board.after(at) {
            self.part(after);
        }
        self.stats.retransmits += u64::from(segments);
        self.emit(start, piece, clock, out);
    }

    /// Retransmits a lost run.
    pub(super) fn retransmit(&mut self, at: u32, clock: Clock, out: &mut Vec<Burst>) {
        self.transmit_again(at, clock, out);
        let run = self.board.run_mut(at);
        let count = run.segments();
        // After an undo an earlier retransmission may still count as in flight.
        self.flight.retrans_out += if run.is(RETRANS) { 0 } else { count };
        run.flags |= RETRANS;
        if self.retrans_stamp == 0 {
            self.retrans_stamp = clock.timestamp();
        }
        if let Some(undo) = &mut self.undo {
            undo.retransmitted(count);
        }
    }

    /// Makes the run at `at` the first of its buffer.
    #[inline]
    pub(super) fn part(&mut self, at: u32) {
        let run = self.board.run_mut(at);
        self.super_packets += u32::from(run.is(JOINED));
        run.flags &= !JOINED;
    }

    /// Retransmits data marked lost, oldest first, as far as the window allows. The search resumes where it ended, but
    /// never passes data that may yet be lost (a gap).
    pub(super) fn xmit_retransmit_queue(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        let head = self.flight.snd_una;
        let max_segs = if self.flight.packets_out > 0 { self.tso_segs() } else { 0 };
        let mut at = match self.retransmit_hint.filter(|&hint| hint > head) {
            Some(hint) => Some(self.board.find(hint)),
            None => self.board.first(),
        };
        let (mut has_hole, mut restarts_timer) = (false, false);
        while let Some(place) = at
            && !self.pacing_blocks(clock)
        {
            let &Run { start, bytes, segments, flags, .. } = self.board.run(place);
            if !has_hole {
                self.retransmit_hint = Some(start);
            }
            let room = self.window.cwnd.saturating_sub(self.flight.in_flight());
            if room == 0 || self.flight.retrans_out >= self.flight.lost_out {
                break;
            }
            let state = flags & (LOST | SACKED | RETRANS);
            if state != LOST {
                has_hole |= state == 0;
                at = self.board.after(place);
                continue;
            }
            if start >= self.window_end && start > head {
                break;
            }
            // As much of it as the windows and a super-packet hold, at least one segment.
            let count = room.min(max_segs).min(u32::from(segments)).min(self.window_segments(start)).max(1);
            let piece = if count < u32::from(segments) { count * self.flight.mss } else { bytes };
            if self.host_queue_full(piece, 1) {
                break;
            }
            if count < u32::from(segments) {
                self.board.split(place, count);
            }
            self.retransmit(place, clock, out);
            if self.in_cwnd_reduction() {
                self.prr_out += count;
            }
            restarts_timer |= start == head && !self.reordering_timer_pending();
            at = self.board.after(place);
        }
        if restarts_timer {
            self.restart_rto(clock);
        }
    }

    /// Whole segments from byte `start` that fit the receiver's window.
    fn window_segments(&self, start: u64) -> u32 {
        let window = self.window_end.saturating_sub(start).min(u64::from(u32::MAX));
        window.fit_u32() / self.flight.mss
    }

    /// Stamps a departure and advances the pacer, by up to half less if it is late; in microseconds.
    fn stamp_departure(&mut self, piece: Piece, clock: Clock) -> u64 {
        let before = self.flight.wstamp_ns;
        self.flight.wstamp_ns = before.max(clock.now.nanos());
        let sent_us = self.flight.wstamp_ns / 1_000;
        if self.flight.in_flight() == 0 {
            let event = Event::TxStart { last_send_jiffies: self.last_send_jiffies };
            self.congestion.event(&self.flight, &mut self.window, event, clock);
        }
        self.last_send_jiffies = clock.jiffies();
        self.stats.segments_out += u64::from(piece.segments);
        let rate = self.window.pacing_rate;
        if self.window.pacing && rate != UNPACED && rate > 0 && self.stats.segments_out >= UNPACED_SEGMENTS {
            let length = u64::from(piece.bytes) * NANOS_PER_SEC / rate;
            let credit = self.flight.wstamp_ns - before;
            self.flight.wstamp_ns += length - (length / 2).min(credit);
        }
        sent_us
    }

    fn emit(&mut self, start: u64, piece: Piece, clock: Clock, out: &mut Vec<Burst>) {
        let tsval = if self.options.timestamps { clock.timestamp() } else { 0 };
        if self.host_queued {
            self.host_queue += u64::from(piece.bytes) + u64::from(piece.segments) * SEGMENT_OVERHEAD;
        }
        let Piece { bytes, segments } = piece;
        let count = u32::from(segments);
        debug_assert_eq!(count, bytes.div_ceil(self.flight.mss), "all segments are full except the last");
        // Linux sets PSH on every super-packet of more than one segment, and where a write ended.
        let push = count > 1 || start + u64::from(bytes) == self.total;
        let is_new = start >= self.flight.snd_nxt;
        let ecn = self.ecn[usize::from(!is_new)];
        let cwr = is_new && std::mem::take(&mut self.queues_cwr);
        out.push(Burst { start, bytes, count, push, cwr, ecn, tsval, tsecr: self.ts_recent });
    }
}
