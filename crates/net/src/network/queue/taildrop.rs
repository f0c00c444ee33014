//! Tail drop: first in, first out, and packets that arrive at a full queue are dropped. So departures are known on
//! arrival, and only waiting packets are counted.

use crate::network::slice_queue::SliceQueue;
use crate::scenario;
use sawtooth_tcp::steady::Visit;
use sawtooth_units::Time;
use sawtooth_units::width::Fit;

const LOOK_AT_LEAST: u64 = 64;
const PICOS_PER_NANO: u64 = 1_000;

#[derive(Clone, Debug)]
pub struct TailDrop {
    limit_packets: u64,
    limit_bytes: u64,
    /// For each packet that had to wait: when it begins to leave (picoseconds), and `put` after it. Packets that have
    /// begun to leave are removed rarely and many at once: when `look_at` of them have accumulated, or `look_at_put`
    /// bytes have been put.
    waiting: SliceQueue<(u64, u64)>,
    look_at: usize,
    look_at_put: u64,
    /// Bytes that had to wait so far, and those of them that were removed.
    put: u64,
    removed: u64,
}

impl TailDrop {
    pub fn new(config: &scenario::Transmitter) -> Self {
        let limit_packets = config.queue_packets.unwrap_or(u64::MAX);
        let limit_bytes = config.queue_bytes.unwrap_or(u64::MAX);
        TailDrop {
            limit_packets,
            limit_bytes,
            waiting: SliceQueue::new(),
            look_at: limit_packets.min(LOOK_AT_LEAST).fit_usize(),
            look_at_put: limit_bytes,
            put: 0,
            removed: 0,
        }
    }

    /// Takes a packet that begins to leave at `start_ps`, later than now; false if there is no room.
    #[inline(always)]
    pub fn takes(&mut self, size: u32, start_ps: u64, now: Time) -> bool {
        let put = self.put + u64::from(size);
        if (self.waiting.len() >= self.look_at || put > self.look_at_put) && !self.makes_room(put, now) {
            return false;
        }
        self.put = put;
        self.waiting.push((start_ps, put));
        true
    }

    /// Packets that begin to leave within this nanosecond make room first. Arrivals are rounded up to whole
    /// nanoseconds, and after an acknowledgement woke an idle transmitter, each next one arrives exactly when the
    /// previous packet has left.
    fn settle(&mut self, now: Time) {
        let later_ps = (now.nanos() + 1) * PICOS_PER_NANO;
        if let Some((_, put)) = self.waiting.pop_while(|&(start, _)| start < later_ps) {
            self.removed = put;
            self.look_at_put = self.limit_bytes.saturating_add(put);
        }
    }

    /// Whether a packet up to byte `put` fits after removing those that have begun to leave.
    #[inline(never)]
    fn makes_room(&mut self, put: u64, now: Time) -> bool {
        self.settle(now);
        self.look_at = self.limit_packets.min(LOOK_AT_LEAST.max(2 * self.waiting.len() as u64)).fit_usize();
        self.waiting.len() < self.look_at && put <= self.look_at_put
    }

    /// Packets and bytes that wait.
    pub fn waiting(&mut self, now: Time) -> (u64, u64) {
        self.settle(now);
        (self.waiting.len() as u64, self.put - self.removed)
    }

    /// See [`sawtooth_tcp::steady`].
    pub fn visit(&mut self, now: Time, visit: &mut Visit) {
        self.settle(now);
        // When to look for packets that have left decides nothing.
        let TailDrop { waiting, put, removed, limit_packets: _, limit_bytes: _, look_at: _, look_at_put: _ } = self;
        [*put - *removed, waiting.len() as u64].into_iter().for_each(|word| visit.same(word));
        waiting.as_mut_slice().iter_mut().for_each(|(start, put)| {
            visit.picos(start);
            visit.same(*put - *removed);
        });
    }

    /// How long the waiting packets will still wait, in nanoseconds in total.
    pub fn will_wait_ns(&self, now: Time) -> u128 {
        let now_ps = now.nanos() * PICOS_PER_NANO;
        let left = self.waiting.as_slice().iter().map(|&(start, _)| u128::from(start.saturating_sub(now_ps)));
        left.sum::<u128>() / u128::from(PICOS_PER_NANO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_to_leave_within_this_nanosecond_makes_room_first() {
        let json = r#"{"name": "t", "rate_bps": 1, "queue_packets": 1, "queue_bytes": null}"#;
        let mut queue = TailDrop::new(&serde_json::from_str(json).unwrap());
        assert!(queue.takes(1_514, 7_999, Time::from_nanos(5)));
        assert!(!queue.takes(1_514, 20_000, Time::from_nanos(6)));
        assert!(queue.takes(1_514, 20_000, Time::from_nanos(7)));
        assert_eq!(queue.waiting(Time::from_nanos(7)), (1, 1_514));
    }
}
