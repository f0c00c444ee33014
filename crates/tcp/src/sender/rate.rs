//! Delivery rate samples (`tcp_rate.c`; draft-cheng-iccrg-delivery-rate-estimation).

use super::Sender;
use super::scoreboard::{APP_LIMITED, CONSUMED, EVER_RETRANS, SACKED, Segment};
use crate::cc::RateSample;
use crate::clock::Clock;
use sawtooth_units::width::Low;

/// The sample while an ACK is being processed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sampling {
    /// 0: no segment gave a sample yet (the handshake counts as the first delivery).
    pub prior_delivered: u64,
    prior_delivered_us: u64,
    interval_us: u64,
    last_end: u64,
    is_app_limited: bool,
    is_retrans: bool,
    pub prior_in_flight: u32,
    pub rtt_us: Option<u32>,
}

/// `tcp_skb_sent_after`.
pub fn sent_after(sent_us: u64, end: u64, other_us: u64, other_end: u64) -> bool {
    sent_us > other_us || (sent_us == other_us && end > other_end)
}

impl Sender {
    /// `tcp_rate_skb_sent`: the snapshot that segment gets which leaves at `sent_us`.
    pub(super) fn rate_snapshot(&mut self, sent_us: u64, flags: u8) -> Segment {
        if self.flight.packets_out == 0 {
            self.first_tx_us = sent_us;
            self.flight.delivered_us = sent_us;
        }
        let ago = |then: u64| u32::try_from(sent_us.saturating_sub(then)).unwrap_or(CONSUMED - 1);
        let flags = if self.window.app_limited != 0 { flags | APP_LIMITED } else { flags & !APP_LIMITED };
        let (first_tx_ago, delivered_ago) = (ago(self.first_tx_us), ago(self.flight.delivered_us));
        Segment::new(sent_us, first_tx_ago, delivered_ago, self.flight.delivered.low_u32(), flags)
    }

    /// `tcp_rate_skb_delivered`: segment `seq` was acknowledged or SACKed.
    pub(super) fn rate_delivered(&mut self, seq: u64, sampling: &mut Sampling) {
        let segment = *self.board.get(seq);
        if segment.delivered_ago_us == CONSUMED {
            return;
        }
        if sampling.prior_delivered == 0 || sent_after(segment.sent_us, seq + 1, self.first_tx_us, sampling.last_end) {
            let delivered = self.flight.delivered;
            sampling.prior_delivered = delivered - u64::from(delivered.low_u32().wrapping_sub(segment.delivered));
            sampling.prior_delivered_us = segment.sent_us - u64::from(segment.delivered_ago_us);
            sampling.is_app_limited = segment.flags & APP_LIMITED != 0;
            sampling.is_retrans = segment.flags & EVER_RETRANS != 0;
            sampling.last_end = seq + 1;
            sampling.interval_us = u64::from(segment.first_tx_ago_us);
            self.first_tx_us = segment.sent_us;
        }
        if segment.flags & SACKED != 0 {
            self.board.get_mut(seq).delivered_ago_us = CONSUMED;
        }
    }

    /// `tcp_rate_gen`: closes the sample of an ACK that newly delivered `acked_sacked` segments and marked `losses` lost.
    pub(super) fn rate_generate(
        &mut self,
        sampling: &Sampling,
        acked_sacked: u32,
        losses: u32,
        clock: Clock,
    ) -> RateSample {
        let (flight, window) = (&mut self.flight, &mut self.window);
        if window.app_limited != 0 && flight.delivered > window.app_limited {
            window.app_limited = 0;
        }
        let now_us = clock.micros();
        if acked_sacked > 0 {
            flight.delivered_us = now_us;
        }
        let mut sample = RateSample {
            delivered: -1,
            interval_us: -1,
            prior_delivered: sampling.prior_delivered,
            rtt_us: sampling.rtt_us.map_or(-1, i64::from),
            losses,
            acked_sacked,
            prior_in_flight: sampling.prior_in_flight,
            is_app_limited: sampling.is_app_limited,
            is_retrans: sampling.is_retrans,
            // Linux suspects a delayed ACK only for a segment shorter than the MSS.
            is_ack_delayed: false,
        };
        if sampling.prior_delivered == 0 {
            return sample;
        }
        sample.delivered = (flight.delivered - sampling.prior_delivered).cast_signed();
        let ack_us = now_us.saturating_sub(sampling.prior_delivered_us);
        let interval_us = sampling.interval_us.max(ack_us);
        // Shorter than a round trip: the segment was acknowledged by an earlier transmission.
        if interval_us >= u64::from(flight.min_rtt_us) {
            sample.interval_us = interval_us.cast_signed();
        }
        sample
    }
}
