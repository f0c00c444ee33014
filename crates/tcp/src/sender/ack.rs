//! Processes an acknowledgement (RFC 9293 section 3.10.7.4 for its edges and its window): marks what it SACKs, removes
//! what it acknowledges, detects losses, sets the window, sends.

use super::output::Push;
use super::rate::Sampling;
use super::scoreboard::{EVER_RETRANS, LOST, RETRANS, Run, SACKED};
use super::timers::Pending;
use super::{REORDERING, Sender};
use crate::cc::agent::Observation;
use crate::cc::{AckSample, Event};
use crate::clock::Clock;
use crate::flight::CaState;
use crate::packet::{Ack, Burst, PAWS_WINDOW_MS};
use crate::window::UNPACED;
use sawtooth_units::width::{Fit, Low};

/// What to send besides new data once the window is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recover {
    Nothing,
    /// Retransmit what is marked lost.
    Lost,
    /// New data, for F-RTO's step 2.b.
    New,
    /// Nothing, until someone outside has decided about the window.
    Later,
}

/// The effects of one ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acking {
    pub sampling: Sampling,
    /// Send times of the first and last segment newly SACKed that was never retransmitted.
    pub sacked_us: Option<(u64, u64)>,
    /// Segments newly reported by SACK and DSACK blocks.
    pub sack_delivered: u32,
    pub tsecr: u32,
    /// It echoes a mark.
    pub ece: bool,
    /// It moved the unacknowledged edge.
    pub advanced: bool,
    /// It advanced that edge or changed the window, so it is not a duplicate.
    is_window_update: bool,
    /// It newly SACKed something.
    pub sacked: bool,
    /// It reported something as received twice; specifically, the tail loss probe.
    pub dsacked: bool,
    pub dsacked_probe: bool,
    /// It acknowledged retransmitted data.
    acked_retransmission: bool,
    /// It acknowledged or SACKed data that was never retransmitted and was in flight when recovery began.
    pub delivered_original: bool,
    /// A retransmission turned out to be lost.
    pub lost_retransmission: bool,
    /// The timer must be set again.
    pub sets_timer: bool,
}

/// Facts about segments removed by an ACK that were sent only once.
#[derive(Clone, Copy, Debug)]
struct Originals {
    /// Send times of the first and the last.
    sent_us: Option<(u64, u64)>,
    /// The lowest byte that had not been SACKed.
    lowest: u64,
}

/// The beginning of a run, or all of it.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: u64,
    end: u64,
    /// Segments.
    count: u32,
}

/// The pacing rate in percent of the window's rate (`sysctl_tcp_pacing_ss_ratio` and `…_ca_ratio`).
const PACING_SLOW_START_PERCENT: u64 = 200;
const PACING_AVOIDANCE_PERCENT: u64 = 120;

impl Sender {
    /// Takes an acknowledgement; appends to `out` what must be sent.
    #[inline(always)]
    pub fn on_ack(&mut self, ack: &Ack, clock: Clock, out: &mut Vec<Burst>) {
        if ack.next > self.flight.snd_nxt {
            return;
        }
        if self.is_stale(ack, clock) {
            return;
        }
        let recover =
            if self.is_plain(ack) { self.take_ack::<true>(ack, clock) } else { self.take_ack::<false>(ack, clock) };
        if recover != Recover::Later {
            self.answer(recover, clock, out);
        }
        self.settle_timer(clock);
    }

    /// Sends what an ACK allows.
    #[inline(always)]
    fn answer(&mut self, recover: Recover, clock: Clock, out: &mut Vec<Burst>) {
        self.xmit_recovery(recover, clock, out);
        self.xmit(Push::Normal, clock, out);
        self.write(clock, out);
    }

    /// Whether the last ACK waits for a decision.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// What the decision is based on; none if the algorithm is not an agent.
    pub fn observe(&self, clock: Clock) -> Option<Observation> {
        self.congestion.observe(&self.flight, &self.window, clock)
    }

    /// Takes the decision and sends what the last ACK then allows.
    pub fn choose(&mut self, action: f64, clock: Clock, out: &mut Vec<Burst>) {
        self.congestion.choose(action, &self.flight, &mut self.window, clock);
        if let Some(recover) = self.waiting.take() {
            self.answer(recover, clock, out);
        }
        self.settle_timer(clock);
    }

    /// Takes the timestamp; true for an ACK with an older one than has been taken (PAWS, RFC 7323 section 5), unless it
    /// is a recent duplicate.
    #[inline(always)]
    fn is_stale(&mut self, ack: &Ack, clock: Clock) -> bool {
        let older_ms = self.ts_recent.wrapping_sub(ack.tsval).cast_signed();
        if ack.tsval == 0 {
            return false;
        }
        if older_ms > 0 {
            return older_ms > PAWS_WINDOW_MS && !self.is_disordered(ack, older_ms.unsigned_abs(), clock);
        }
        if ack.next >= self.flight.snd_una {
            self.ts_recent = ack.tsval;
        }
        false
    }

    /// Whether an ACK with an old timestamp is a recent duplicate (`tcp_disordered_ack`).
    #[cold]
    fn is_disordered(&self, ack: &Ack, older_ms: u32, clock: Clock) -> bool {
        let replay_ms = self.rto * 1_200 / u64::from(clock.hz());
        let is_duplicate = ack.next == self.flight.snd_una && ack.window <= self.send_window && ack.window > 0;
        is_duplicate && u64::from(older_ms) <= replay_ms
    }

    /// Whether an ACK only acknowledges new data that left as one run and was sent once, while nothing else is known to
    /// have happened. Most ACKs do.
    #[inline(always)]
    fn is_plain(&self, ack: &Ack) -> bool {
        let tells_nothing = ack.sack.count == 0 && !ack.ece && !self.accurate_ecn;
        let is_open = self.flight.ca_state == CaState::Open && self.flight.sacked_out == 0;
        tells_nothing
            && is_open
            && self.sack
            && self.tlp_high_seq.is_none()
            && ack.next > self.flight.snd_una
            && self.board.front().is_some_and(|run| ack.next <= run.end() && !run.is(SACKED | RETRANS | EVER_RETRANS))
    }

    /// Takes an ACK, and sets the window. `PLAIN`: [`Self::is_plain`], for which the compiler leaves out the rest.
    fn take_ack<const PLAIN: bool>(&mut self, ack: &Ack, clock: Clock) -> Recover {
        let prior_una = self.flight.snd_una;
        let mut acking = Acking { tsecr: ack.tsecr, advanced: PLAIN || ack.next > prior_una, ..Acking::default() };
        if !PLAIN && ack.next < prior_una {
            // It is old, but may still carry SACK blocks.
            if ack.sack.count == 0 {
                return Recover::Nothing;
            }
            self.sack_tag(ack, prior_una, &mut acking, clock);
            return self.alert(prior_una, 0, &mut acking, clock);
        }
        acking.ece = !PLAIN && ack.ece && self.flight.ecn && !self.accurate_ecn;
        let (delivered, lost) = (self.flight.delivered, self.flight.lost);
        let delivered_ce = self.flight.delivered_ce;
        if acking.advanced {
            self.retransmits = 0;
        }
        let is_idle = !PLAIN && self.flight.packets_out == 0;
        let highest_sack = if !PLAIN && self.sack { self.highest_sack() } else { prior_una };
        acking.sampling.prior_in_flight = self.flight.in_flight();
        if self.notes_app_limit_on_ack {
            self.note_app_limit();
        }
        if self.hears_of_acks {
            self.congestion.ack_arrives(ack, self.send_window);
        }
        self.update_window(ack, &mut acking);
        self.flight.snd_una = ack.next;
        if !PLAIN && ack.sack.count > 0 {
            self.sack_tag(ack, prior_una, &mut acking, clock);
            self.flight.delivered += u64::from(acking.sack_delivered);
        }
        if is_idle {
            self.count_marked(&acking, [delivered, delivered_ce]);
            self.tell_of_ack(&acking, clock);
            if acking.dsacked {
                self.alert(prior_una, 0, &mut acking, clock);
            }
            self.take_tlp_ack(ack.next, &mut acking, clock);
            self.take_window(acking.is_window_update, clock);
            return Recover::Nothing;
        }
        self.clean_queue::<PLAIN>(highest_sack, &mut acking, clock);
        if PLAIN || self.sack {
            self.rack_adapt(acking.sampling.prior_delivered());
        }
        if !PLAIN && self.accurate_ecn && (acking.advanced || acking.sacked) {
            acking.ece = self.count_ace(ack.ace, self.flight.delivered - delivered);
        }
        self.count_marked(&acking, [delivered, delivered_ce]);
        self.tell_of_ack(&acking, clock);
        if !PLAIN {
            self.take_tlp_ack(ack.next, &mut acking, clock);
        }
        let is_quiet = !acking.sacked && !acking.dsacked && !acking.ece;
        let is_usual = self.flight.ca_state == CaState::Open && acking.is_window_update && is_quiet;
        let recover = if PLAIN || is_usual {
            Recover::Nothing
        } else {
            let duplicates = u32::from(!acking.is_window_update && !acking.dsacked);
            let recover = self.alert(prior_una, duplicates, &mut acking, clock);
            self.count_marked(&acking, [delivered, delivered_ce]);
            recover
        };
        if acking.sets_timer {
            self.set_xmit_timer(clock);
        }
        let (delivered, lost) = (self.flight.delivered - delivered, self.flight.lost - lost);
        if self.control(&acking, delivered.fit_u32(), lost.fit_u32(), clock) {
            self.waiting = Some(recover);
            return Recover::Later;
        }
        recover
    }

    #[inline]
    fn tell_of_ack(&mut self, acking: &Acking, clock: Clock) {
        if self.hears_of_acks {
            self.congestion.in_ack_event(&self.flight, &mut self.window, acking.is_window_update, clock);
        }
    }

    /// Everything delivered by an ACK with an echo counts as marked; `before` has the earlier delivered and marked
    /// counts.
    #[inline]
    fn count_marked(&mut self, acking: &Acking, before: [u64; 2]) {
        if acking.ece && !self.accurate_ecn {
            self.flight.delivered_ce = before[1] + (self.flight.delivered - before[0]);
        }
    }

    /// Lets the algorithm, or an ongoing reduction, set the window. Arguments: newly delivered and newly lost segments.
    /// True: it does so later.
    #[inline(always)]
    fn control(&mut self, acking: &Acking, delivered: u32, losses: u32, clock: Clock) -> bool {
        self.rate_note(delivered, clock);
        self.rate_keep(&acking.sampling, clock);
        if self.has_cong_control {
            let sample = self.rate_generate(&acking.sampling, delivered, losses, acking.ece, clock);
            return self.congestion.cong_control(&self.flight, &mut self.window, &sample, clock);
        }
        if self.in_cwnd_reduction() {
            self.cwnd_reduction(delivered, losses, acking.advanced);
        } else if acking.advanced || acking.sacked && self.reordering > REORDERING {
            // With much reordering a SACK is as good as an ACK.
            self.congestion.cong_avoid(&self.flight, &mut self.window, delivered, clock);
            if let Some(reduction) = self.window.reduces.take() {
                self.take_reduction(reduction);
            }
        }
        self.update_pacing_rate();
        false
    }

    /// The window is updated if the ACK advances, or if the window grows or closes.
    fn update_window(&mut self, ack: &Ack, acking: &mut Acking) {
        acking.is_window_update = acking.advanced || ack.window > self.send_window || ack.window == 0;
        if acking.is_window_update {
            self.send_window = ack.window;
            self.note_window(ack.window);
            self.window_end = ack.next + ack.window;
        }
    }

    /// Removes acknowledged data; samples round-trip time and rate; detects reordering; decides whether to set the
    /// timer.
    #[inline(always)]
    fn clean_queue<const PLAIN: bool>(&mut self, highest_sack: u64, acking: &mut Acking, clock: Clock) {
        let una = self.flight.snd_una;
        let (acked, originals) = self.take_out::<PLAIN>(acking, clock);
        if self.retransmit_hint.is_some_and(|hint| acked > 0 && hint < una) {
            self.retransmit_hint = None;
        }
        self.take_rtt(originals.sent_us, acking, clock);
        acking.sets_timer = acked > 0 || !PLAIN && self.sack_restarts_timer(acking);
        if !PLAIN && acked > 0 {
            if !self.sack {
                self.remove_reno_sacks(acked);
                // It is unknown which of them had arrived before.
                acking.delivered_original &= !acking.acked_retransmission;
            } else if originals.lowest < highest_sack {
                self.check_sack_reordering(originals.lowest);
            }
        }
        let sample = AckSample {
            pkts_acked: acked,
            rtt_us: acking.sampling.rtt_us.map_or(-1, i64::from),
            in_flight: (self.flight.delivered - acking.sampling.prior_delivered()).fit_u32(),
        };
        self.congestion.pkts_acked(&self.flight, &mut self.window, sample, clock);
    }

    /// A SACK restarts the timer if it measured a round trip, but not for data sent after the oldest segment: that
    /// would postpone the timeout again and again.
    fn sack_restarts_timer(&self, acking: &Acking) -> bool {
        let Some((first_us, _)) = acking.sacked_us else { return false };
        acking.sampling.rtt_us.is_some() && self.board.front().is_some_and(|oldest| first_us < oldest.sent_us)
    }

    /// Removes acknowledged data run by run, the last perhaps partly. Returns the number of segments.
    #[inline(always)]
    fn take_out<const PLAIN: bool>(&mut self, acking: &mut Acking, clock: Clock) -> (u32, Originals) {
        let una = self.flight.snd_una;
        let mut originals = Originals { sent_us: None, lowest: self.flight.snd_nxt };
        let mut acked = 0;
        while let Some(at) = self.board.first() {
            let run = self.board.run(at);
            let (start, end) = (run.start, run.end());
            if start >= una {
                break;
            }
            let count = if end <= una { run.segments() } else { self.board.cut_first(una) };
            if count == 0 {
                break;
            }
            acked += count;
            self.acknowledge::<PLAIN>(at, Part { start, end: end.min(una), count }, &mut originals, acking, clock);
            if end > una {
                break;
            }
            self.board.pop_first();
            self.super_packets -= 1;
            // The rest of its super-packet still counts as one.
            if let Some(first) = self.board.first() {
                self.part(first);
            }
            if PLAIN {
                break;
            }
        }
        (acked, originals)
    }

    /// Part of the first run, at `at`, is acknowledged.
    #[inline(always)]
    fn acknowledge<const PLAIN: bool>(
        &mut self,
        at: u32,
        part: Part,
        originals: &mut Originals,
        acking: &mut Acking,
        clock: Clock,
    ) {
        let Part { start, end, count } = part;
        let &Run { sent_us, flags, .. } = self.board.run(at);
        self.flight.packets_out -= count;
        if PLAIN || flags & (SACKED | RETRANS | EVER_RETRANS) == 0 {
            let (first_us, _) = originals.sent_us.unwrap_or((sent_us, 0));
            originals.sent_us = Some((first_us, sent_us));
            originals.lowest = originals.lowest.min(start);
            acking.delivered_original |= start < self.high_seq;
            self.flight.lost_out -= if flags & LOST != 0 { count } else { 0 };
            if PLAIN || self.sack {
                self.flight.delivered += u64::from(count);
                // The later one of two segments sent in order says everything.
                if PLAIN || !self.acknowledges_after(at) {
                    self.rack_advance(flags, end, sent_us, clock);
                    self.rate_delivered(at, end, &mut acking.sampling);
                }
            } else {
                self.rate_delivered(at, end, &mut acking.sampling);
            }
        } else {
            self.acknowledge_known(at, count, end, acking, clock);
        }
    }

    /// Whether the data after the run at `at` is also acknowledged, was sent only once, and was not SACKed.
    fn acknowledges_after(&self, at: u32) -> bool {
        self.board.after(at).is_some_and(|after| {
            let run = self.board.run(after);
            run.start < self.flight.snd_una && !run.is(SACKED | RETRANS | EVER_RETRANS)
        })
    }

    /// [`Self::acknowledge`] for `count` segments that had been retransmitted or SACKed.
    fn acknowledge_known(&mut self, at: u32, count: u32, end: u64, acking: &mut Acking, clock: Clock) {
        let &Run { sent_us, flags, .. } = self.board.run(at);
        let was_sent_again = flags & (RETRANS | EVER_RETRANS) != 0;
        acking.acked_retransmission |= was_sent_again;
        if flags & SACKED != 0 {
            self.flight.sacked_out = self.flight.sacked_out.saturating_sub(count);
        } else if self.sack {
            self.flight.delivered += u64::from(count);
            // The echo is older than the retransmission: the original arrived.
            let resent = (sent_us / 1_000).low_u32() + 1;
            if !(was_sent_again && self.echo_before(acking.tsecr, resent)) {
                self.rack_advance(flags, end, sent_us, clock);
            }
        }
        self.flight.retrans_out -= if flags & RETRANS != 0 { count } else { 0 };
        self.flight.lost_out -= if flags & LOST != 0 { count } else { 0 };
        self.rate_delivered(at, end, &mut acking.sampling);
    }

    /// Samples the round-trip time: from send times of segments sent only once, otherwise from the timestamps' echo
    /// (RFC 6298 section 3). The estimate uses the first of them, the minimum and the algorithm the last.
    #[inline(always)]
    fn take_rtt(&mut self, acked_us: Option<(u64, u64)>, acking: &mut Acking, clock: Clock) {
        let acked_us = acked_us.filter(|_| !acking.acked_retransmission);
        let sent_us = match (acked_us, acking.sacked_us) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (acked, sacked) => acked.or(sacked),
        };
        let since = |then: u64| clock.micros().saturating_sub(then).low_u32();
        let sample = match sent_us {
            Some((first, last)) => Some((since(first), since(last))),
            None if acking.advanced && acking.tsecr != 0 => {
                let micros = clock.echoed_us(acking.tsecr);
                Some((micros, micros))
            }
            None => None,
        };
        acking.sampling.rtt_us = sample.map(|(_, last)| last);
        if let Some((first, last)) = sample {
            self.rtt.update_min(&mut self.flight, last, clock);
            self.rtt.update(&mut self.flight, first);
            self.rto = self.rtt.rto(&self.flight, clock);
        }
    }

    /// Sizes super-packets if the algorithm does not pace.
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

    /// Whether the echo `tsecr`, if present, is of a timestamp before `when`.
    pub(super) fn echo_before(&self, tsecr: u32, when: u32) -> bool {
        tsecr != 0 && (tsecr.wrapping_sub(when).cast_signed()) < 0
    }

    fn xmit_recovery(&mut self, recover: Recover, clock: Clock, out: &mut Vec<Burst>) {
        if recover == Recover::New {
            self.xmit(Push::Normal, clock, out);
            // If no new data could be sent, recovery is conventional.
            self.frto = self.flight.snd_nxt > self.high_seq;
        }
        if recover == Recover::Lost || recover == Recover::New && !self.frto {
            self.xmit_retransmit_queue(clock, out);
        }
    }

    /// Whether a tail loss probe repaired a loss (RFC 8985 section 7.4): the window is then reduced once.
    #[inline]
    fn take_tlp_ack(&mut self, ack: u64, acking: &mut Acking, clock: Clock) {
        if let Some(high) = self.tlp_high_seq.filter(|&high| ack >= high) {
            self.end_probe(high, ack, acking, clock);
        }
    }

    /// The probe sent at `high` is answered.
    #[cold]
    fn end_probe(&mut self, high: u64, ack: u64, acking: &mut Acking, clock: Clock) {
        let both_arrived = acking.dsacked_probe || ack == high && !acking.is_window_update && !acking.sacked;
        if !self.tlp_retrans || both_arrived {
            self.tlp_high_seq = None;
        } else if ack > high {
            let event = Event::TlpRecovery { is_app_limited: self.tlp_orig_data_app_limited };
            self.congestion.event(&self.flight, &mut self.window, event, clock);
            self.init_cwnd_reduction(false, clock);
            self.set_state(CaState::Cwr, clock);
            self.end_cwnd_reduction(clock);
            self.try_keep_open(clock);
        } else {
            acking.sampling.is_acking_tlp_retrans_seq = true;
        }
    }

    /// A tail loss probe, or else the retransmission timeout.
    fn set_xmit_timer(&mut self, clock: Clock) {
        if !self.schedule_loss_probe(true, clock) {
            self.rearm_rto(clock);
        }
    }

    /// Whether the timer has this purpose, which a retransmission must restart.
    pub(super) fn reordering_timer_pending(&self) -> bool {
        self.pending == Pending::Reordering
    }
}
