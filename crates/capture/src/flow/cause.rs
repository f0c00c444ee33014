//! Why a sender sends what it sends: what made it retransmit, and whether it did at all.

use super::{Data, Flow};
use crate::identification::Order;
use crate::kind::Cause;
use crate::outstanding::Sent;

/// A segment that comes so soon after those sent after it was overtaken, where no round trip is known yet.
const OVERTAKEN_NS: u64 = 3_000_000;

impl Flow {
    /// Whether a single new segment is a tail loss probe (RFC 8985 section 7.3 prefers new data): the sender, full of data
    /// and without news, kept silent for two round trips.
    pub(super) fn is_new_data_probe(&self, data: &Data) -> bool {
        let quiet_ns = data.segment.time_ns.saturating_sub(self.last_ns.max(self.heard_ns)) as f64;
        self.una < self.highest
            && self.last_full
            && self.una >= self.recovery_until
            && self.outstanding.sacked_bytes() == 0
            && data.sack != Some(false)
            && self.window > 0
            && self.trips.smoothed_ns().is_some_and(|trip| quiet_ns - self.trips.sender_ns() >= 1.7 * trip)
    }

    /// Whether new numbers are a retransmission, the first copy of which and all that was sent after it were lost before
    /// the capture point: packets are missing, no hole is open, and there was time to find out.
    pub(super) fn replaces_a_lost_tail(&self, data: &Data) -> bool {
        let waited_ns = data.segment.time_ns.saturating_sub(self.last_ns) as f64;
        matches!(data.order, Order::After(1..))
            && data.start == self.highest
            && self.una == self.highest
            && self.trips.smoothed_ns().is_some_and(|trip| waited_ns >= 1.2 * trip)
    }

    /// Whether data that fills a hole was sent before what is seen after the hole: by the identification where it counts
    /// up, else by its TSval, else because it is too soon for a retransmission.
    pub(super) fn was_overtaken(&self, data: &Data, hole: &Sent) -> bool {
        match data.order {
            Order::Late => return true,
            Order::After(_) => return false,
            Order::Unknown | Order::Again => (),
        }
        if let Some((tsval, _)) = data.segment.options.timestamps {
            let later = tsval.wrapping_sub(hole.tsval) as i32;
            if later != 0 {
                return later < 0;
            }
        }
        let waited_ns = data.segment.time_ns.saturating_sub(hole.first_ns);
        // A retransmission takes a round trip: its loss is found by acknowledgements of what came later.
        let enough_ns = self.trips.base_ns().map_or(OVERTAKEN_NS as f64, |base| 0.8 * base);
        (waited_ns as f64) < enough_ns
    }

    /// What made the sender retransmit. `sent` is what it sends again; None: it was acknowledged already.
    pub(super) fn cause(&mut self, data: &Data, sent: Option<&Sent>) -> Cause {
        if data.start < self.timeout_until {
            return Cause::Timeout;
        }
        let now_ns = data.segment.time_ns;
        let recovering = self.una < self.recovery_until;
        let evidence = recovering || self.outstanding.sacked_bytes() > 0 || self.duplicate_acks > 0;
        let last_ns = sent.map_or(self.last_ns, |sent| sent.last_ns);
        let waited_ns = now_ns.saturating_sub(last_ns.max(self.progress_ns)) as f64 - self.trips.sender_ns();
        let timeout_ns = self.trips.timeout_ns();
        if !evidence && self.is_tail_probe(data, waited_ns) {
            self.probed_until = self.highest;
            return Cause::TailProbe;
        }
        let head = self.outstanding.head().is_none_or(|head| data.start <= head.start);
        if head && waited_ns >= 0.8 * timeout_ns {
            self.timeout_until = self.highest;
            return Cause::Timeout;
        }
        self.recovery_until = self.highest;
        Cause::Fast
    }

    /// The last segment, once, two round trips after anything happened (RFC 8985 section 7.2, `tcp_schedule_loss_probe`).
    /// With one packet out, Linux waits 200 ms more with the probe, but not longer than for the timer.
    pub(super) fn is_tail_probe(&self, data: &Data, waited_ns: f64) -> bool {
        let alone = data.start <= self.una;
        data.end >= self.highest
            && self.probed_until <= self.una
            && data.sack != Some(false)
            && waited_ns >= 1.2 * self.trips.smoothed_ns().unwrap_or(0.0)
            && (!alone || waited_ns < 1.4 * self.trips.timeout_ns())
    }

    /// Whether the timer itself has just expired: nothing was acknowledged or sent for as long.
    pub(super) fn is_timer(&self, data: &Data) -> bool {
        let quiet_ns = data.segment.time_ns.saturating_sub(self.progress_ns.max(self.last_ns)) as f64;
        quiet_ns - self.trips.sender_ns() >= 0.5 * self.trips.timeout_ns()
    }
}
