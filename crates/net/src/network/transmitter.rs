//! A transmitter with its tail-drop queue. It has no events: departures are computed on arrival (first in, first out).

use crate::network::ring::Ring;
use crate::scenario;
use sawtooth_units::Time;
use sawtooth_units::width::Fit;

const PICOS_PER_NANO: u64 = 1_000;
/// Later than any run lasts.
const NEVER_PS: u64 = u64::MAX - PICOS_PER_NANO;
/// Fraction bits of the time a byte takes.
const FRACTION: u32 = 20;
const LOOK_AT_LEAST: usize = 64;

#[derive(Clone, Debug)]
pub struct Transmitter {
    /// Picoseconds a byte, with [`FRACTION`] bits of fraction.
    per_byte: u64,
    /// When the last accepted packet will have left, in picoseconds, so that rounding never drifts.
    free_ps: u64,
    /// The same, rounded up: none that comes yet leaves before.
    pub free: Time,
    limit_packets: u64,
    limit_bytes: u64,
    /// Of each packet that had to wait: when it begins to leave (picoseconds), and its size. Those that have begun are taken
    /// out seldom and many at once: when the limit seems reached, or `look_at` of them have gathered.
    waiting: Ring<(u64, u32)>,
    waiting_bytes: u64,
    look_at: usize,
    pub counters: Counters,
}

/// Since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub packets: u64,
    pub bytes: u64,
    pub drops: u64,
    /// Sum of all waiting times, in nanoseconds: divided by a length of time it is the mean queue (Little's law). At 1 bit/s a
    /// thousand packets in a long queue wait longer than 64 bits tell.
    pub waited_ns: u128,
}

impl Transmitter {
    pub fn new(config: &scenario::Transmitter) -> Self {
        Transmitter {
            // The slowest rate, 1 bit/s, makes 2^63 of it.
            per_byte: ((8_000_000_000_000u128 << FRACTION) / u128::from(config.rate_bps)).fit_u64(),
            free_ps: 0,
            free: Time::ZERO,
            limit_packets: config.queue_packets.unwrap_or(u64::MAX),
            limit_bytes: config.queue_bytes.unwrap_or(u64::MAX),
            waiting: Ring::new(),
            waiting_bytes: 0,
            look_at: config.queue_packets.map_or(LOOK_AT_LEAST, |limit| LOOK_AT_LEAST.min(limit.fit_usize())),
            counters: Counters::default(),
        }
    }

    #[inline]
    fn full(&self, size: u32) -> bool {
        self.waiting.len() as u64 >= self.limit_packets || self.waiting_bytes + u64::from(size) > self.limit_bytes
    }

    fn settle(&mut self, now_ps: u64) {
        while let Some(&(start, size)) = self.waiting.front()
            && start <= now_ps
        {
            self.waiting.pop();
            self.waiting_bytes -= u64::from(size);
        }
    }

    /// Whether a packet of `size` bytes fits once those that have begun to leave are taken out; counts a drop if not.
    #[inline(never)]
    fn makes_room(&mut self, size: u32, now_ps: u64) -> bool {
        self.settle(now_ps);
        if self.waiting.len() < LOOK_AT_LEAST / 4 {
            self.waiting.rewind();
        }
        self.look_at = self.limit_packets.min((2 * self.waiting.len()).max(LOOK_AT_LEAST) as u64).fit_usize();
        let full = self.full(size);
        self.counters.drops += u64::from(full);
        !full
    }

    /// Takes a packet of `size` bytes at `now`; when it has left entirely, or `None` if the queue was full.
    #[inline(always)]
    #[expect(clippy::manual_div_ceil, reason = "half the instructions, and it cannot overflow")]
    pub fn send(&mut self, size: u32, now: Time) -> Option<Time> {
        let now_ps = now.nanos() * PICOS_PER_NANO;
        let start = self.free_ps.max(now_ps);
        if start > now_ps {
            let look = self.waiting.len() >= self.look_at || self.waiting_bytes + u64::from(size) > self.limit_bytes;
            if look && !self.makes_room(size, now_ps) {
                return None;
            }
            self.waiting.push((start, size));
            self.waiting_bytes += u64::from(size);
            self.counters.waited_ns += u128::from((start - now_ps) / PICOS_PER_NANO);
        }
        let duration = ((u128::from(size) * u128::from(self.per_byte)) >> FRACTION).fit_u64();
        self.free_ps = start.saturating_add(duration).min(NEVER_PS);
        self.counters.packets += 1;
        self.counters.bytes += u64::from(size);
        self.free = Time::from_nanos((self.free_ps + (PICOS_PER_NANO - 1)) / PICOS_PER_NANO);
        Some(self.free)
    }

    /// Packets and bytes waiting at `now`.
    pub fn waiting(&mut self, now: Time) -> (u64, u64) {
        self.settle(now.nanos() * PICOS_PER_NANO);
        (self.waiting.len() as u64, self.waiting_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gigabit(queue_packets: u64) -> Transmitter {
        Transmitter::new(&scenario::Transmitter {
            name: "t".into(),
            rate_bps: 1_000_000_000,
            queue_packets: Some(queue_packets),
            queue_bytes: None,
        })
    }

    #[test]
    fn departures_follow_each_other_at_the_rate() {
        let mut t = gigabit(10);
        assert_eq!(t.send(1514, Time::ZERO), Some(Time::from_nanos(12_112)));
        assert_eq!(t.send(1514, Time::ZERO), Some(Time::from_nanos(24_224)));
        assert_eq!(t.send(66, Time::from_nanos(30_000)), Some(Time::from_nanos(30_528)));
    }

    #[test]
    fn the_limit_counts_waiting_packets_and_not_the_one_on_the_wire() {
        let mut t = gigabit(2);
        assert!(t.send(1514, Time::ZERO).is_some());
        assert!(t.send(1514, Time::ZERO).is_some());
        assert!(t.send(1514, Time::ZERO).is_some());
        assert!(t.send(1514, Time::ZERO).is_none());
        assert_eq!(t.waiting(Time::ZERO), (2, 3028));
        assert_eq!(t.waiting(Time::from_nanos(12_112)), (1, 1514));
        assert!(t.send(1514, Time::from_nanos(12_112)).is_some());
        assert_eq!(t.counters.drops, 1);
    }

    #[test]
    fn rounding_never_drifts() {
        let mut t = Transmitter::new(&scenario::Transmitter {
            name: "t".into(),
            rate_bps: 7_000_000_000,
            queue_packets: None,
            queue_bytes: None,
        });
        let mut last = Time::ZERO;
        for _ in 0..7_000 {
            last = t.send(1250, Time::ZERO).unwrap();
        }
        // 7,000 packets of 10,000 bits at 7 Gbit/s.
        assert!((9_999_990..=10_000_000).contains(&last.nanos()), "{last}");
    }
}
