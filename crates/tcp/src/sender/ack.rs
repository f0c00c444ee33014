//! An acknowledgement arrives (`tcp_ack`): tag, clean the retransmission queue, judge, set the window, send.

use super::output::Push;
use super::rate::Sampling;
use super::scoreboard::{EVER_RETRANS, JOINED, LOST, RETRANS, SACKED};
use super::timers::Pending;
use super::{REORDERING, Sender};
use crate::cc::AckSample;
use crate::clock::Clock;
use crate::flight::CaState;
use crate::packet::{Ack, Burst};
use crate::window::UNPACED;
use sawtooth_units::width::{Fit, Low};

// What an ACK turned out to do (`FLAG_…` in tcp_input.c).
pub const WIN_UPDATE: u16 = 1;
pub const DATA_ACKED: u16 = 1 << 1;
pub const RETRANS_DATA_ACKED: u16 = 1 << 2;
pub const DATA_SACKED: u16 = 1 << 3;
pub const LOST_RETRANS: u16 = 1 << 4;
pub const ORIG_SACK_ACKED: u16 = 1 << 5;
pub const SND_UNA_ADVANCED: u16 = 1 << 6;
pub const DSACKING_ACK: u16 = 1 << 7;
pub const SET_XMIT_TIMER: u16 = 1 << 8;
pub const DSACK_TLP: u16 = 1 << 9;
const NOT_DUP: u16 = WIN_UPDATE | DATA_ACKED;
const CA_ALERT: u16 = DATA_SACKED | DSACKING_ACK;
const FORWARD_PROGRESS: u16 = DATA_ACKED | DATA_SACKED;

/// What to send beyond new data once the window is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recover {
    Nothing,
    /// Retransmit what is marked lost.
    Lost,
    /// New data, for F-RTO's step 2.b.
    New,
}

/// The state of one ACK's processing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acking {
    pub flags: u16,
    pub sampling: Sampling,
    /// Send times of the first and last segment newly SACKed that was never retransmitted.
    pub first_sacked_us: Option<u64>,
    pub last_sacked_us: u64,
    pub sack_delivered: u32,
    pub tsecr: u32,
}

/// `sysctl_tcp_pacing_ss_ratio` and `…_ca_ratio`, in percent.
const PACING_SLOW_START_PERCENT: u64 = 200;
const PACING_AVOIDANCE_PERCENT: u64 = 120;

impl Sender {
    /// Takes an acknowledgement; appends to `out` what is to be sent.
    pub fn on_ack(&mut self, ack: &Ack, clock: Clock, out: &mut Vec<Burst>) {
        if ack.next > self.flight.snd_nxt {
            return;
        }
        if ack.tsval != 0 {
            self.ts_recent = ack.tsval;
        }
        self.take_ack(ack, clock, out);
        self.xmit(Push::Normal, clock, out);
        self.write(clock, out);
    }

    fn take_ack(&mut self, ack: &Ack, clock: Clock, out: &mut Vec<Burst>) {
        let prior_una = self.flight.snd_una;
        let mut acking = Acking { tsecr: ack.tsecr, ..Acking::default() };
        if ack.next < prior_una {
            return self.take_old_ack(ack, &mut acking, clock, out);
        }
        let delivered_before = self.flight.delivered;
        let lost_before = self.flight.lost;
        let prior_packets = self.flight.packets_out;
        if ack.next > prior_una {
            acking.flags |= SND_UNA_ADVANCED;
            self.retransmits = 0;
        }
        let prior_fack = if self.sack { self.highest_sack() } else { prior_una };
        acking.sampling.prior_in_flight = self.flight.in_flight();
        self.update_window(ack, &mut acking);
        self.flight.snd_una = ack.next;
        if ack.sack.count > 0 {
            self.sack_tag(ack, prior_una, &mut acking, clock);
            self.flight.delivered += u64::from(acking.sack_delivered);
        }
        let mut recover = Recover::Nothing;
        if prior_packets == 0 {
            if acking.flags & DSACKING_ACK != 0 {
                self.alert(prior_una, 0, &mut acking, &mut recover, clock);
            }
            if self.tlp_high_seq.is_some() {
                self.take_tlp_ack(ack.next, acking.flags, clock);
            }
            return;
        }
        self.clean_queue(prior_una, prior_fack, &mut acking, clock);
        if self.sack {
            self.rack_update_reordering_window(acking.sampling.prior_delivered);
        }
        if self.tlp_high_seq.is_some() {
            self.take_tlp_ack(ack.next, acking.flags, clock);
        }
        let dubious =
            acking.flags & NOT_DUP == 0 || acking.flags & CA_ALERT != 0 || self.flight.ca_state != CaState::Open;
        if dubious {
            let duplicates = u32::from(acking.flags & (SND_UNA_ADVANCED | NOT_DUP | DSACKING_ACK) == 0);
            self.alert(prior_una, duplicates, &mut acking, &mut recover, clock);
        }
        if acking.flags & SET_XMIT_TIMER != 0 {
            self.set_xmit_timer(clock);
        }
        let delivered = (self.flight.delivered - delivered_before).fit_u32();
        let losses = (self.flight.lost - lost_before).fit_u32();
        let sample = self.rate_generate(&acking.sampling, delivered, losses, clock);
        if self.congestion.has_cong_control() {
            self.congestion.cong_control(&self.flight, &mut self.window, &sample, clock);
        } else {
            if self.in_cwnd_reduction() {
                self.cwnd_reduction(delivered, losses, acking.flags & SND_UNA_ADVANCED != 0);
            } else if self.may_raise_cwnd(acking.flags) {
                self.congestion.cong_avoid(&self.flight, &mut self.window, delivered, clock);
            }
            self.update_pacing_rate();
        }
        self.xmit_recovery(recover, clock, out);
    }

    /// An ACK below the unacknowledged edge can still carry SACK blocks.
    fn take_old_ack(&mut self, ack: &Ack, acking: &mut Acking, clock: Clock, out: &mut Vec<Burst>) {
        if ack.sack.count == 0 {
            return;
        }
        let mut recover = Recover::Nothing;
        self.sack_tag(ack, self.flight.snd_una, acking, clock);
        self.alert(self.flight.snd_una, 0, acking, &mut recover, clock);
        self.xmit_recovery(recover, clock, out);
    }

    /// `tcp_ack_update_window`.
    fn update_window(&mut self, ack: &Ack, acking: &mut Acking) {
        if ack.next > self.flight.snd_una || ack.window > self.send_window || ack.window == 0 {
            acking.flags |= WIN_UPDATE;
            self.send_window = ack.window;
            self.note_window(ack.window);
            self.window_end = ack.next + self.whole_segments(ack.window);
        }
    }

    /// `tcp_clean_rtx_queue`: drops what was acknowledged, samples round-trip time and rate.
    fn clean_queue(&mut self, prior_una: u64, prior_fack: u64, acking: &mut Acking, clock: Clock) {
        let una = self.flight.snd_una;
        let mut reordered = self.flight.snd_nxt;
        let (mut first_us, mut last_us) = (None, 0);
        let mut from = prior_una;
        if let Some((first, last)) = self.clean_untouched(acking, clock) {
            (first_us, last_us) = (Some(first), last);
            (from, reordered) = (una, prior_una);
        }
        for seq in from..una {
            let segment = *self.board.get(seq);
            let flags = segment.flags;
            if flags & (RETRANS | EVER_RETRANS) != 0 {
                if flags & RETRANS != 0 {
                    self.flight.retrans_out -= 1;
                }
                acking.flags |= RETRANS_DATA_ACKED;
            } else if flags & SACKED == 0 {
                last_us = segment.sent_us;
                first_us.get_or_insert(last_us);
                reordered = reordered.min(seq);
                if seq < self.high_seq {
                    acking.flags |= ORIG_SACK_ACKED;
                }
            }
            if flags & SACKED != 0 {
                self.flight.sacked_out = self.flight.sacked_out.saturating_sub(1);
            } else if self.sack {
                self.flight.delivered += 1;
                let spurious = flags & (RETRANS | EVER_RETRANS) != 0
                    && self.echo_before(acking.tsecr, (segment.sent_us / 1_000).low_u32() + 1);
                if !spurious {
                    self.rack_advance(flags, seq + 1, segment.sent_us, clock);
                }
            }
            if flags & LOST != 0 {
                self.flight.lost_out -= 1;
            }
            self.flight.packets_out -= 1;
            self.rate_delivered(seq, &mut acking.sampling);
            self.board.pop_to(seq + 1);
            // What is left of a super-packet is one still (`tcp_trim_head`).
            if seq + 1 < self.flight.snd_nxt && self.board.get(seq + 1).flags & JOINED != 0 {
                self.board.get_mut(seq + 1).flags &= !JOINED;
            } else {
                self.super_packets -= 1;
            }
        }
        let acked = (una - prior_una).fit_u32();
        if acked > 0 {
            acking.flags |= DATA_ACKED;
            if self.retransmit_hint.is_some_and(|hint| hint < una) {
                self.retransmit_hint = None;
            }
        }
        self.take_rtt(first_us.map(|first| (first, last_us)), acking, clock);
        if acked > 0 {
            acking.flags |= SET_XMIT_TIMER;
            if self.sack {
                if reordered < prior_fack {
                    self.check_sack_reordering(reordered);
                }
            } else {
                self.remove_reno_sacks(acked);
                if acking.flags & RETRANS_DATA_ACKED != 0 {
                    acking.flags &= !ORIG_SACK_ACKED;
                }
            }
        } else if let (Some(sacked_us), false) = (acking.first_sacked_us, self.board.is_empty()) {
            // A SACK of data sent before the head's last transmission must not extend the timeout.
            if acking.sampling.rtt_us.is_some() && sacked_us < self.board.get(una).sent_us {
                acking.flags |= SET_XMIT_TIMER;
            }
        }
        let sample = AckSample {
            pkts_acked: acked,
            rtt_us: acking.sampling.rtt_us.map_or(-1, i64::from),
            in_flight: (self.flight.delivered - acking.sampling.prior_delivered).fit_u32(),
        };
        self.congestion.pkts_acked(&self.flight, &mut self.window, sample, clock);
    }

    /// The usual case of [`Self::clean_queue`] at once: nothing of what was acknowledged was ever SACKed, lost or sent again.
    /// Then the last segment alone says what all do. The first and last send times, or `None` in any other case.
    fn clean_untouched(&mut self, acking: &mut Acking, clock: Clock) -> Option<(u64, u64)> {
        let (start, una) = (self.board.una(), self.flight.snd_una);
        if !self.sack || start == una {
            return None;
        }
        let (mut flags, mut super_packets) = (0, 0);
        for seq in start..una {
            let of_one = self.board.get(seq).flags;
            flags |= of_one;
            super_packets += u32::from(of_one & JOINED == 0);
        }
        if flags & (SACKED | LOST | RETRANS | EVER_RETRANS) != 0 {
            return None;
        }
        let (first_us, last_us) = (self.board.get(start).sent_us, self.board.get(una - 1).sent_us);
        if start < self.high_seq {
            acking.flags |= ORIG_SACK_ACKED;
        }
        self.flight.delivered += una - start;
        self.flight.packets_out -= (una - start).fit_u32();
        self.rack_advance(0, una, last_us, clock);
        self.rate_delivered(una - 1, &mut acking.sampling);
        self.board.pop_to(una);
        self.super_packets -= super_packets;
        if una < self.flight.snd_nxt {
            // What is left of a super-packet is one still (`tcp_trim_head`).
            self.part(una);
        }
        Some((first_us, last_us))
    }

    /// `tcp_ack_update_rtt`: prefers the segments' own send times; falls back on the timestamp echo.
    fn take_rtt(&mut self, acked_us: Option<(u64, u64)>, acking: &mut Acking, clock: Clock) {
        let since = |then: u64| clock.micros().saturating_sub(then).low_u32();
        let mut sequence = None;
        let mut newest = None;
        if let Some((first, last)) = acked_us
            && acking.flags & RETRANS_DATA_ACKED == 0
        {
            sequence = Some(since(first));
            newest = Some(since(last));
        }
        if let Some(first) = acking.first_sacked_us {
            sequence = sequence.or(Some(since(first)));
            newest = Some(since(acking.last_sacked_us));
        }
        if sequence.is_none() && acking.tsecr != 0 && acking.flags & DATA_ACKED != 0 {
            let millis = clock.timestamp().wrapping_sub(acking.tsecr).max(1);
            sequence = Some(millis.saturating_mul(1_000));
            newest = sequence;
        }
        acking.sampling.rtt_us = newest;
        if let (Some(sequence), Some(newest)) = (sequence, newest) {
            self.rtt.update_min(&mut self.flight, newest, clock);
            self.rtt.update(&mut self.flight, sequence);
            self.rto = self.rtt.rto(&self.flight, clock);
            self.backoff = 0;
        }
    }

    /// `tcp_may_raise_cwnd`.
    fn may_raise_cwnd(&self, flags: u16) -> bool {
        if self.reordering > REORDERING { flags & FORWARD_PROGRESS != 0 } else { flags & DATA_ACKED != 0 }
    }

    /// `tcp_update_pacing_rate`: sizes super-packets where the algorithm does not pace.
    pub(super) fn update_pacing_rate(&mut self) {
        let (flight, window) = (&self.flight, &mut self.window);
        if flight.srtt_us == 0 {
            window.pacing_rate = UNPACED;
            return;
        }
        let percent =
            if window.cwnd < window.ssthresh / 2 { PACING_SLOW_START_PERCENT } else { PACING_AVOIDANCE_PERCENT };
        let per_hundred = u64::from(flight.mss) * (1_000_000 / 100 * 8) * percent;
        let segments = u64::from(window.cwnd.max(flight.packets_out));
        window.pacing_rate = per_hundred.saturating_mul(segments) / u64::from(flight.srtt_us);
    }

    /// `tcp_tsopt_ecr_before`.
    pub(super) fn echo_before(&self, tsecr: u32, when: u32) -> bool {
        tsecr != 0 && (tsecr.wrapping_sub(when).cast_signed()) < 0
    }

    /// `tcp_xmit_recovery`.
    fn xmit_recovery(&mut self, recover: Recover, clock: Clock, out: &mut Vec<Burst>) {
        match recover {
            Recover::Nothing => return,
            Recover::New => {
                self.xmit(Push::Normal, clock, out);
                if self.flight.snd_nxt > self.high_seq {
                    return;
                }
                self.frto = false;
            }
            Recover::Lost => {}
        }
        self.xmit_retransmit_queue(clock, out);
    }

    /// `tcp_process_tlp_ack`.
    fn take_tlp_ack(&mut self, ack: u64, flags: u16, clock: Clock) {
        let Some(high) = self.tlp_high_seq else { return };
        if ack < high {
            return;
        }
        if !self.tlp_retrans || flags & DSACK_TLP != 0 {
            self.tlp_high_seq = None;
        } else if ack > high {
            // The probe repaired a loss: reduce the window once.
            self.init_cwnd_reduction();
            self.set_state(CaState::Cwr, clock);
            self.end_cwnd_reduction(clock);
            self.try_keep_open(clock);
        } else if flags & (SND_UNA_ADVANCED | NOT_DUP | DATA_SACKED) == 0 {
            self.tlp_high_seq = None;
        }
    }

    /// `tcp_set_xmit_timer`: a tail loss probe, or else the retransmission timeout.
    fn set_xmit_timer(&mut self, clock: Clock) {
        if !self.schedule_loss_probe(true, clock) {
            self.rearm_rto(clock);
        }
    }

    /// The timer's purpose is needed where a retransmission restarts it.
    pub(super) fn reordering_timer_pending(&self) -> bool {
        self.pending == Pending::Reordering
    }
}
