//! Why a sender sends a segment: what caused a retransmission, and whether it is one.

use super::{Data, Flow};
use crate::analysis::identification::Order;
use crate::analysis::kind::Cause;
use crate::analysis::outstanding::Sent;
use sawtooth_units::width::Approx;

/// Without a known round trip, a segment this soon after those sent later was overtaken.
pub(super) const OVERTAKEN_NS: u64 = 3_000_000;

impl Flow {
    /// Whether a single new segment is a tail loss probe (RFC 8985 section 7.3 prefers new data): the sender had enough
    /// data, received nothing, and was silent for the probe's time.
    pub(super) fn is_new_data_probe(&self, data: &Data) -> bool {
        self.last_full
            && self.window > 0
            && self.is_probed(data)
            && self.is_due(self.quiet_ns(data, self.last_ns, self.heard_ns), self.probe_ns(data))
    }

    /// Whether a silent sender would now send a probe: data is outstanding, there is no sign of loss, and it has not
    /// probed yet (RFC 8985 section 7.1).
    fn is_probed(&self, data: &Data) -> bool {
        self.una < self.highest && self.probed_until <= self.una && data.sack != Some(false) && !self.has_evidence(data)
    }

    /// Whether acknowledgements show a loss: duplicates if SACK is not used (RFC 5681), otherwise SACK blocks.
    fn has_evidence(&self, data: &Data) -> bool {
        self.una < self.recovery_until
            || self.outstanding.sacked_bytes() > 0
            || (self.duplicate_acks > 0 && data.sack != Some(true))
    }

    /// The sender's probe timeout, given the data in flight.
    fn probe_ns(&self, data: &Data) -> f64 {
        let alone = self.outstanding.len() == 1 && self.highest - self.una <= i64::from(data.mss) + 1;
        self.trips.probe_ns(alone)
    }

    /// How long the sender has waited when it sends `data`: since it sent at `sent_ns`, and since what passed here at
    /// `heard_ns` reached it.
    fn quiet_ns(&self, data: &Data, sent_ns: u64, heard_ns: u64) -> f64 {
        data.segment.time_ns.saturating_sub(sent_ns.max(heard_ns.saturating_add(self.trips.sender_ns()))).approx()
    }

    /// Whether an acknowledgement that shows a loss has just reached the sender: with RACK it waits at most a quarter
    /// of a round trip (RFC 8985 section 6.2).
    fn is_prompted(&self, data: &Data) -> bool {
        self.has_evidence(data)
            && self.trips.smoothed_ns().is_some_and(|trip| self.quiet_ns(data, 0, self.heard_ns) < trip / 4.0)
    }

    /// Whether a timer of this length can have expired: the sender's estimate may be slightly below this one.
    fn is_due(&self, quiet_ns: f64, timer_ns: f64) -> bool {
        quiet_ns >= 0.8 * timer_ns
    }

    /// Whether data that fills a gap was sent before the data after the gap, which passed at `found_ns` with the TSval
    /// `tsval`. Decided by the IP identification if the sender increments it, else by the segment's own TSval, else
    /// because it is too soon for a retransmission.
    pub(super) fn was_overtaken(&self, data: &Data, found_ns: u64, tsval: u32) -> bool {
        match data.order {
            Order::Late => return true,
            Order::After => return false,
            Order::Unknown | Order::Again => (),
        }
        if let Some((own, _)) = data.segment.options.timestamps {
            let later = own.wrapping_sub(tsval).cast_signed();
            if later != 0 {
                return later < 0;
            }
        }
        let waited_ns = data.segment.time_ns.saturating_sub(found_ns);
        waited_ns < self.trips.soonest_ns().unwrap_or(OVERTAKEN_NS)
    }

    /// What caused a retransmission. `sent` is what is retransmitted; None: it was already acknowledged.
    pub(super) fn cause(&mut self, data: &Data, sent: Option<&Sent>) -> Cause {
        let quiet_ns = self.quiet_ns(data, sent.map_or(self.last_ns, |sent| sent.last_ns), self.progress_ns);
        if self.is_tail_probe(data, quiet_ns) {
            self.probed_until = self.highest;
            return Cause::TailProbe;
        }
        let head = self.outstanding.head().is_none_or(|head| data.start <= head.start);
        if head && !self.is_prompted(data) && self.is_due(quiet_ns, self.trips.timeout_ns()) {
            self.timeout_until = self.highest;
            return Cause::Timer;
        }
        if data.start < self.timeout_until {
            return Cause::AfterTimer;
        }
        self.recovery_until = self.highest;
        Cause::Fast
    }

    /// Whether the last segment was retransmitted as a probe (RFC 8985 section 7.3). A lone segment is retransmitted by
    /// either timer; the probe's is never the later one.
    fn is_tail_probe(&self, data: &Data, quiet_ns: f64) -> bool {
        data.end >= self.highest
            && data.start >= self.timeout_until
            && self.is_probed(data)
            && self.is_due(quiet_ns, self.probe_ns(data))
            && (data.start > self.una || self.is_due(self.trips.timeout_ns(), quiet_ns))
    }
}
