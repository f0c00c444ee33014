//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Each run keeps the state at its transmission: the draft's P.delivered, P.delivered_time and P.first_sent_time. An
//! ACK's sample comes from the delivered segment that was sent last.

use super::Sender;
use super::scoreboard::{APP_LIMITED, CONSUMED, EVER_RETRANS, Run};
use crate::cc::RateSample;
use crate::clock::Clock;
use sawtooth_units::width::{Approx, Fit, Low};

/// The sample while an ACK is being processed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampling {
    last: Option<Last>,
    pub prior_in_flight: u32,
    pub rtt_us: Option<u32>,
    /// It may answer a tail loss probe that retransmitted data.
    pub is_acking_tlp_retrans_seq: bool,
}

/// Among the segments that the ACK delivers, the one sent last.
#[derive(Clone, Copy, Debug)]
struct Last {
    end: u64,
    /// P.delivered and P.delivered_time. The handshake counts as the first delivery, so there always is one.
    delivered: u64,
    delivered_us: u64,
    /// From P.first_sent_time to its own transmission.
    send_elapsed_us: u64,
    /// Segments lost by then, and in flight with its buffer.
    lost: u64,
    in_flight: u32,
    delivered_ce: u16,
    is_app_limited: bool,
    is_retrans: bool,
}

impl Sampling {
    /// Deliveries when the sampled segment was sent; 0 without a sample.
    pub fn prior_delivered(&self) -> u64 {
        self.last.map_or(0, |last| last.delivered)
    }
}

/// RFC 8985 section 6.2's RACK_sent_after: of two segments sent at the same time, the higher one is later.
pub fn sent_after(sent_us: u64, end: u64, other_us: u64, other_end: u64) -> bool {
    sent_us > other_us || sent_us == other_us && end > other_end
}

impl Sender {
    /// The state to keep for one buffer that leaves at `sent_us`, with these bytes and segments from `start`. With
    /// nothing in flight, the sample interval begins here.
    pub(super) fn rate_snapshot(&mut self, start: u64, bytes: u32, segments: u16, sent_us: u64, flags: u8) -> Run {
        if self.flight.packets_out == 0 {
            (self.first_tx_us, self.flight.delivered_us) = (sent_us, sent_us);
        }
        let since = |then: u64| u32::try_from(sent_us.saturating_sub(then)).unwrap_or(CONSUMED - 1);
        let limited = if self.window.app_limited > 0 { APP_LIMITED } else { 0 };
        Run {
            start,
            bytes,
            segments,
            sent_us,
            first_tx_ago_us: since(self.first_tx_us),
            delivered_ago_us: since(self.flight.delivered_us),
            delivered: self.flight.delivered.low_u32(),
            lost: self.flight.lost.low_u32(),
            in_flight: self.flight.in_flight() + u32::from(segments),
            flags: flags & !APP_LIMITED | limited,
            after: 0,
            delivered_ce: self.flight.delivered_ce.low_u16(),
        }
    }

    /// The run at `at` was delivered up to byte `end`: first acknowledged or SACKed now.
    pub(super) fn rate_delivered(&mut self, at: u32, end: u64, sampling: &mut Sampling) {
        let run = self.board.run(at);
        if run.delivered_ago_us == CONSUMED {
            return;
        }
        if sampling.last.is_none_or(|last| sent_after(run.sent_us, end, self.first_tx_us, last.end)) {
            sampling.last = Some(self.take_snapshot(run, end));
            self.first_tx_us = run.sent_us;
        }
    }

    fn take_snapshot(&self, run: &Run, end: u64) -> Last {
        let since = self.flight.delivered.low_u32().wrapping_sub(run.delivered);
        Last {
            end,
            delivered: self.flight.delivered - u64::from(since),
            delivered_us: run.sent_us - u64::from(run.delivered_ago_us),
            send_elapsed_us: u64::from(run.first_tx_ago_us),
            lost: self.flight.lost - self.lost_since(run),
            in_flight: run.in_flight,
            delivered_ce: run.delivered_ce,
            is_app_limited: run.is(APP_LIMITED),
            is_retrans: run.is(EVER_RETRANS),
        }
    }

    /// Segments lost since a run was sent.
    pub(super) fn lost_since(&self, run: &Run) -> u64 {
        u64::from(self.flight.lost.low_u32().wrapping_sub(run.lost))
    }

    /// An ACK has newly delivered `acked_sacked` segments.
    #[inline]
    pub(super) fn rate_note(&mut self, acked_sacked: u32, clock: Clock) {
        if acked_sacked > 0 {
            self.flight.delivered_us = clock.micros();
        }
        // The data of the application-limited period has been delivered.
        if self.flight.delivered > self.window.app_limited {
            self.window.app_limited = 0;
        }
    }

    /// Keeps an ACK's delivery rate as `ss` shows it (the end of `tcp_rate_gen`): the last one, unless the application
    /// limited it and it is lower.
    #[inline]
    pub(super) fn rate_keep(&mut self, sampling: &Sampling, clock: Clock) {
        let Some(last) = sampling.last else { return };
        let (delivered, interval_us) = self.delivered_since(&last, clock);
        let [Ok(delivered), Ok(interval_us)] = [delivered, interval_us].map(u64::try_from) else { return };
        let [kept, kept_us] = self.rate;
        if !last.is_app_limited || delivered * kept_us >= kept * interval_us {
            self.rate = [delivered, interval_us];
        }
    }

    /// `tcpi_delivery_rate` in bytes per second; `None` before the first sample.
    pub fn delivery_rate(&self) -> Option<f64> {
        let [delivered, interval_us] = self.rate;
        let bytes = delivered * u64::from(self.flight.mss);
        (bytes > 0 && interval_us > 0).then(|| bytes.approx() * 1e6 / interval_us.approx())
    }

    /// The sample of an ACK that newly delivered `acked_sacked` segments and marked `losses` lost.
    #[inline]
    pub(super) fn rate_generate(
        &self,
        sampling: &Sampling,
        acked_sacked: u32,
        losses: u32,
        is_ece: bool,
        clock: Clock,
    ) -> RateSample {
        let (delivered, interval_us) = sampling.last.map_or((-1, -1), |last| self.delivered_since(&last, clock));
        RateSample {
            delivered,
            interval_us,
            prior_delivered: sampling.prior_delivered(),
            rtt_us: sampling.rtt_us.map_or(-1, i64::from),
            losses,
            lost: sampling.last.map_or(0, |last| (self.flight.lost - last.lost).fit_u32()),
            tx_in_flight: sampling.last.map_or(0, |last| last.in_flight),
            acked_sacked,
            prior_in_flight: sampling.prior_in_flight,
            is_app_limited: sampling.last.is_some_and(|last| last.is_app_limited),
            is_retrans: sampling.last.is_some_and(|last| last.is_retrans),
            // Linux suspects a delayed ACK only for a segment shorter than the MSS.
            is_ack_delayed: false,
            is_acking_tlp_retrans_seq: sampling.is_acking_tlp_retrans_seq,
            delivered_ce: sampling.last.map_or(0, |last| self.marked_since(&last)),
            is_ece,
            has_unsent: self.unsent() > 0,
        }
    }

    /// Marked segments delivered since the sampled one was sent.
    fn marked_since(&self, last: &Last) -> u32 {
        u32::from(self.flight.delivered_ce.low_u16().wrapping_sub(last.delivered_ce))
    }

    /// Segments delivered, and the microseconds: the longer of the times to send them and to acknowledge them; -1 if
    /// that is shorter than a round trip, because then an earlier transmission was acknowledged.
    fn delivered_since(&self, last: &Last, clock: Clock) -> (i64, i64) {
        let ack_elapsed_us = clock.micros().saturating_sub(last.delivered_us);
        let interval_us = last.send_elapsed_us.max(ack_elapsed_us);
        let is_plausible = interval_us >= u64::from(self.flight.min_rtt_us);
        let delivered = self.flight.delivered - last.delivered;
        (delivered.cast_signed(), if is_plausible { interval_us.cast_signed() } else { -1 })
    }
}
