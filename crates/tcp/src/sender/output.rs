//! What leaves: new data in super-packets (`tcp_write_xmit`), retransmissions (`tcp_xmit_retransmit_queue`), pacing.

use super::scoreboard::{EVER_RETRANS, JOINED, LOST, RETRANS, SACKED};
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
pub const SUPER_PACKET_OVERHEAD: u64 = 832;
/// The pacer lets this many first segments go unpaced (as sch_fq did).
const UNPACED_SEGMENTS: u64 = 10;
const NANOS_PER_SEC: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    Normal,
    /// One super-packet, at once (`tcp_push_one`).
    One,
    /// One super-packet as a tail loss probe, even if the window is full.
    Probe,
}

impl Sender {
    /// `tcp_write_xmit`: new data as far as window, pacing and host queue allow.
    pub(super) fn xmit(&mut self, push: Push, clock: Clock, out: &mut Vec<Burst>) {
        let max_segs = self.tso_segs();
        let mut sent = 0;
        let mut cwnd_limited = false;
        let mut rwnd_limited = false;
        loop {
            let unsent = self.unsent();
            if unsent == 0 || self.pacing_blocks(clock) {
                break;
            }
            let mut quota = self.cwnd_quota();
            if quota == 0 {
                if push != Push::Probe {
                    break;
                }
                quota = 1;
            }
            let quota = quota.min(max_segs);
            let window = self.window_end.saturating_sub(self.flight.snd_nxt);
            if window == 0 {
                rwnd_limited = true;
                break;
            }
            let head = self.head_buffer(quota);
            if head > 1
                && push == Push::Normal
                && self.tso_defers(head, unsent, window, max_segs, clock, &mut cwnd_limited, &mut rwnd_limited)
            {
                break;
            }
            let count = u64::from(quota).min(window).min(head).fit_u32();
            if self.host_queue_full(count, 0) {
                break;
            }
            self.transmit_new(count, clock, out);
            sent += count;
            if push != Push::Normal {
                break;
            }
        }
        cwnd_limited |= self.flight.in_flight() >= self.window.cwnd;
        self.note_limit(rwnd_limited, cwnd_limited, clock);
        if sent > 0 || cwnd_limited {
            self.validate_cwnd(cwnd_limited);
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

    /// To be called at [`Self::next_room`]: the pacer lets go, or the host's queue has room again (`tcp_tsq_write`).
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
    }

    /// `tcp_tso_segs` with `tcp_tso_autosize`.
    fn tso_segs(&self) -> u32 {
        let mut bytes = self.window.pacing_rate >> gso::PACING_SHIFT;
        let shift = self.flight.min_rtt_us >> TSO_RTT_LOG;
        if shift < u32::BITS {
            bytes = bytes.saturating_add(GSO_MAX_SIZE >> shift);
        }
        let segs = bytes.min(GSO_MAX_SIZE) / u64::from(self.flight.mss);
        (segs as u32).max(self.congestion.min_tso_segs(&self.flight, &self.window))
    }

    /// `tcp_cwnd_test`: at most half a window at once.
    fn cwnd_quota(&self) -> u32 {
        let in_flight = self.flight.in_flight();
        let cwnd = self.window.cwnd;
        if in_flight >= cwnd { 0 } else { (cwnd >> 1).max(1).min(cwnd - in_flight) }
    }

    /// `tcp_pacing_check`; sets the pacing timer when it holds back.
    fn pacing_blocks(&mut self, clock: Clock) -> bool {
        if !self.window.pacing || self.flight.wstamp_ns <= clock.now.nanos() {
            return false;
        }
        if self.pacing_timer == Time::NEVER {
            self.pacing_timer = Time::from_nanos(self.flight.wstamp_ns);
        }
        true
    }

    /// `tcp_small_queue_check`: whether too much of this connection waits in the host's own queue.
    fn host_queue_full(&mut self, count: u32, factor: u32) -> bool {
        let full = self.exceeds_small_queue(count, factor);
        self.throttled |= full;
        full
    }

    fn exceeds_small_queue(&self, count: u32, factor: u32) -> bool {
        let size = u64::from(count) * u64::from(self.flight.mss) + SUPER_PACKET_OVERHEAD;
        let mut limit = (2 * size).max(self.window.pacing_rate >> gso::PACING_SHIFT);
        if !self.window.pacing {
            limit = limit.min(LIMIT_OUTPUT_BYTES);
        }
        self.host_queue > limit << factor && self.flight.packets_out > 0
    }

    /// When [`Self::on_room`] wants to be called next, if the first of what waits in the host's queue leaves it at `leaves`.
    /// The pacer may fire earlier than that, but not send then, and is spared the call.
    pub fn next_room(&self, leaves: Time) -> Time {
        if self.throttled {
            return self.pacing_timer.min(leaves);
        }
        if self.host_queue > 0 && self.pacing_timer < leaves {
            let retransmits = self.flight.lost_out > self.flight.retrans_out;
            if self.exceeds_small_queue(self.tso_segs(), u32::from(retransmits)) {
                return leaves;
            }
        }
        self.pacing_timer
    }

    /// `tcp_tso_should_defer`: wait a little for a fuller super-packet. Sizes are in segments.
    #[expect(clippy::too_many_arguments, reason = "the state of one pass of write_xmit")]
    fn tso_defers(
        &self,
        head: u64,
        unsent: u64,
        window: u64,
        max_segs: u32,
        clock: Clock,
        cwnd_limited: &mut bool,
        rwnd_limited: &mut bool,
    ) -> bool {
        if self.flight.ca_state >= CaState::Recovery {
            return false;
        }
        let now = clock.now.nanos();
        if now.cast_signed() - self.flight.wstamp_ns.cast_signed() > 1_000_000 {
            return false;
        }
        let cong = u64::from(self.window.cwnd - self.flight.in_flight());
        let limit = cong.min(window);
        if limit >= u64::from(max_segs) || (head < unsent && limit >= head) {
            return false;
        }
        let mss = u64::from(self.flight.mss);
        let chunk = self.send_window.min(u64::from(self.window.cwnd) * mss) / TSO_WIN_DIVISOR;
        if limit * mss >= chunk || self.board.is_empty() {
            return false;
        }
        let srtt_ns = 125 * u64::from(self.flight.srtt_us);
        let expected = self.board.get(self.flight.snd_una).sent_us * 1_000 + srtt_ns;
        let threshold = (srtt_ns >> 1).min(1_000_000);
        if expected.cast_signed() - now.cast_signed() > threshold.cast_signed() {
            return false;
        }
        if cong < window {
            *cwnd_limited |= cong <= head;
        } else {
            *rwnd_limited |= window <= head;
        }
        true
    }

    /// `tcp_cwnd_validate`; the sender's application never starves, so the window is never reduced for it.
    fn validate_cwnd(&mut self, cwnd_limited: bool) {
        let flight = &mut self.flight;
        if flight.snd_una >= self.cwnd_usage_seq
            || cwnd_limited
            || (!flight.is_cwnd_limited && flight.packets_out > flight.max_packets_out)
        {
            flight.is_cwnd_limited = cwnd_limited;
            flight.max_packets_out = flight.packets_out;
            self.cwnd_usage_seq = flight.snd_nxt;
        }
    }

    /// `tcp_chrono_start` and `…_stop`.
    fn note_limit(&mut self, rwnd_limited: bool, cwnd_limited: bool, clock: Clock) {
        let starved = !cwnd_limited && self.unsent() == 0 && self.flight.snd_nxt < self.total;
        let limit = if rwnd_limited {
            Some(Limit::ReceiveWindow)
        } else if starved {
            Some(Limit::SendBuffer)
        } else {
            None
        };
        if self.limited_since.map(|(l, _)| l) != limit {
            (self.stats.rwnd_limited_ns, self.stats.sndbuf_limited_ns) = self.limited_ns(clock);
            self.limited_since = limit.map(|l| (l, clock.now));
        }
    }

    /// Takes `count` new segments out (`tcp_transmit_skb`, `tcp_event_new_data_sent`).
    fn transmit_new(&mut self, count: u32, clock: Clock, out: &mut Vec<Burst>) {
        let sent_us = self.stamp_departure(count, clock);
        let snapshot = self.rate_snapshot(sent_us, 0);
        for at in 0..count {
            let mut segment = snapshot;
            segment.flags |= if at == 0 { 0 } else { JOINED };
            self.board.push(segment);
        }
        let first = self.flight.packets_out == 0;
        self.emit(self.flight.snd_nxt, count, clock, out);
        self.flight.snd_nxt += u64::from(count);
        self.flight.packets_out += count;
        self.super_packets += 1;
        self.drop_sent_buffers();
        if first || self.loss_probe_pending() {
            self.rearm_rto(clock);
        }
    }

    /// `__tcp_retransmit_skb` of `count` segments, without the accounting of a recovery (as a tail loss probe is sent).
    /// What of their buffer is left over is a buffer of its own from now on.
    pub(super) fn transmit_again(&mut self, seq: u64, count: u32, clock: Clock, out: &mut Vec<Burst>) {
        let sent_us = self.stamp_departure(count, clock);
        let end = seq + u64::from(count);
        for seq in seq..end {
            let flags = self.board.get(seq).flags | EVER_RETRANS;
            let snapshot = self.rate_snapshot(sent_us, flags);
            self.board.replace(seq, snapshot);
            self.board.link_newest(seq);
        }
        self.part(seq);
        if end < self.flight.snd_nxt {
            self.part(end);
        }
        self.stats.retransmits += u64::from(count);
        self.emit(seq, count, clock, out);
    }

    /// `tcp_retransmit_skb`.
    pub(super) fn retransmit(&mut self, seq: u64, count: u32, clock: Clock, out: &mut Vec<Burst>) {
        self.transmit_again(seq, count, clock, out);
        for seq in seq..seq + u64::from(count) {
            // After an undo an earlier retransmission may still count as in flight.
            let flags = &mut self.board.get_mut(seq).flags;
            self.flight.retrans_out += u32::from(*flags & RETRANS == 0);
            *flags |= RETRANS;
        }
        if self.retrans_stamp == 0 {
            self.retrans_stamp = clock.timestamp();
        }
        self.undo_retrans = self.undo_retrans.max(0) + i64::from(count);
    }

    /// Makes `seq` the first of its buffer (`tcp_fragment`).
    pub(super) fn part(&mut self, seq: u64) {
        let flags = &mut self.board.get_mut(seq).flags;
        self.super_packets += u32::from(*flags & JOINED != 0);
        *flags &= !JOINED;
    }

    /// Segments from `seq` on that are lost, of one buffer, and go out as one super-packet; at most `limit`.
    fn lost_together(&self, seq: u64, limit: u32) -> u32 {
        let end = self.flight.snd_nxt.min(self.window_end).min(seq + u64::from(limit));
        let together = |seq: &u64| self.board.get(*seq).flags & (JOINED | LOST | SACKED | RETRANS) == JOINED | LOST;
        1 + (seq + 1..end).take_while(together).count().fit_u32()
    }

    /// `tcp_xmit_retransmit_queue`: what is marked lost, oldest first, as far as the window allows.
    pub(super) fn xmit_retransmit_queue(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        if self.flight.packets_out == 0 {
            return;
        }
        let head = self.flight.snd_una;
        let max_segs = self.tso_segs();
        let mut hole = false;
        let mut restart = false;
        let mut next = self.retransmit_hint.unwrap_or(head).max(head);
        while next < self.flight.snd_nxt {
            let seq = next;
            next += 1;
            if self.pacing_blocks(clock) {
                break;
            }
            if !hole {
                self.retransmit_hint = Some(seq);
            }
            if self.flight.in_flight() >= self.window.cwnd || self.flight.retrans_out >= self.flight.lost_out {
                break;
            }
            let flags = self.board.get(seq).flags;
            if flags & LOST == 0 {
                if flags & (RETRANS | SACKED) == 0 {
                    hole = true;
                }
                continue;
            }
            if flags & (SACKED | RETRANS) != 0 {
                continue;
            }
            if seq >= self.window_end && seq != head {
                break;
            }
            let count = self.lost_together(seq, max_segs.min(self.window.cwnd - self.flight.in_flight()));
            if self.host_queue_full(count, 1) {
                break;
            }
            self.retransmit(seq, count, clock, out);
            next = seq + u64::from(count);
            if self.in_cwnd_reduction() {
                self.prr_out += count;
            }
            restart |= seq == head && !self.reordering_timer_pending();
        }
        if restart {
            self.restart_rto(clock);
        }
    }

    /// Stamps a departure of `count` segments and moves the pacer on (`tcp_update_skb_after_send`); microseconds.
    fn stamp_departure(&mut self, count: u32, clock: Clock) -> u64 {
        let before = self.flight.wstamp_ns;
        self.flight.wstamp_ns = before.max(clock.now.nanos());
        let sent_us = self.flight.wstamp_ns / 1_000;
        if self.flight.in_flight() == 0 {
            let event = Event::TxStart { last_send_jiffies: self.last_send_jiffies };
            self.congestion.event(&self.flight, &mut self.window, event, clock);
        }
        self.last_send_jiffies = clock.jiffies();
        self.stats.segments_out += u64::from(count);
        let rate = self.window.pacing_rate;
        if self.window.pacing && rate != UNPACED && rate > 0 && self.stats.segments_out >= UNPACED_SEGMENTS {
            let bytes = u64::from(count) * u64::from(self.flight.mss);
            let length = bytes * NANOS_PER_SEC / rate;
            let credit = self.flight.wstamp_ns - before;
            self.flight.wstamp_ns += length - (length / 2).min(credit);
        }
        sent_us
    }

    fn emit(&mut self, start: u64, count: u32, clock: Clock, out: &mut Vec<Burst>) {
        let tsval = if self.options.timestamps { clock.timestamp() } else { 0 };
        if self.host_queued {
            self.host_queue += u64::from(count) * u64::from(self.flight.mss) + SUPER_PACKET_OVERHEAD;
        }
        // Linux sets PSH on every super-packet of more than one segment.
        out.push(Burst { start, count, push: count > 1, tsval, tsecr: self.ts_recent });
    }
}
