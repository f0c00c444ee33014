//! When a transmitter whose rate is not constant, or that has a token bucket before it, lets packets leave. All of it is known
//! before, so that departures still are on arrival.

use crate::network::bucket::{Bucket, PerByte};
use crate::scenario;
use sawtooth_units::width::Fit;
use std::sync::Arc;

const PICOS_PER_MILLI: u64 = 1_000_000_000;
const PICOS_PER_NANO: u64 = 1_000;
const PICOS_PER_SECOND: u128 = 1_000_000_000_000;

/// Copied to look ahead, so that what does not fit the queue takes nothing.
#[derive(Clone, Debug)]
pub enum Pace {
    Steps(Steps),
    Slots(Slots),
    Trace(Trace),
    Shaper(Shaper),
}

/// When a packet begins to leave, and when it has left (picoseconds).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    pub start: u64,
    pub end: u64,
}

impl Pace {
    /// `None`: departures follow each other at the transmitter's rate.
    pub fn of(config: &scenario::Transmitter) -> Option<Self> {
        match (&config.pace, config.discipline) {
            (Some(pace), _) => Some(Pace::new(pace, config.rate_bps)),
            (None, scenario::Discipline::Tbf(tbf)) => Some(Pace::Shaper(Shaper::new(tbf, config.rate_bps))),
            (None, _) => None,
        }
    }

    /// `rate_bps`: until the first step, and of slots.
    fn new(config: &scenario::Pace, rate_bps: u64) -> Self {
        match config {
            scenario::Pace::Steps(steps) => Pace::Steps(Steps::new(steps, rate_bps)),
            &scenario::Pace::Slots { every_ns, bytes } => {
                let every = every_ns * PICOS_PER_NANO;
                Pace::Slots(Slots { every, bytes: bytes.fit_u32(), next: 0, left: 0 })
            }
            scenario::Pace::Trace(trace) => Pace::Trace(Trace::new(trace)),
        }
    }

    /// A packet of `size` bytes that may begin at `free`, and is there at `now`; none may leave before it any more.
    pub fn leave(&mut self, size: u32, now: u64, free: u64) -> Leaving {
        match self {
            Pace::Steps(steps) => {
                let start = free.max(now);
                Leaving { start, end: steps.end(size, start) }
            }
            // It is there as a whole until an opportunity has room for its last byte.
            Pace::Slots(slots) => at_once(slots.end(size, now)),
            Pace::Trace(trace) => at_once(trace.end(size, now)),
            Pace::Shaper(shaper) => shaper.leave(size, now, free),
        }
    }
}

fn at_once(end: u64) -> Leaving {
    Leaving { start: end, end }
}

/// A token bucket (tc-tbf) before a line: packets go on when there are tokens for them, each once the one before has begun to leave.
#[derive(Clone, Debug)]
pub struct Shaper {
    rate: Bucket,
    peak: Option<Bucket>,
    line: PerByte,
    /// When the last packet began to leave.
    begun: u64,
}

impl Shaper {
    fn new(config: scenario::Tbf, line_bps: u64) -> Self {
        Shaper {
            rate: Bucket::new(config.rate_bps, config.burst_bytes),
            peak: config.peakrate_bps.map(|peak| Bucket::new(peak, config.minburst_bytes)),
            line: PerByte::new(line_bps),
            begun: 0,
        }
    }

    fn leave(&mut self, size: u32, now: u64, free: u64) -> Leaving {
        let asked = now.max(self.begun);
        let buckets = || std::iter::once(&self.rate).chain(&self.peak);
        let start = buckets().map(|bucket| bucket.ready(size, asked)).fold(asked, u64::max);
        self.rate.take(size, start);
        self.peak.iter_mut().for_each(|peak| peak.take(size, start));
        self.begun = start.max(free);
        Leaving { start, end: self.begun.saturating_add(self.line.of(u64::from(size))) }
    }
}

/// A rate that changes at given times; 0 stops it. What is on its way out goes on at the new rate.
#[derive(Clone, Debug)]
pub struct Steps {
    /// From when (picoseconds, the first 0), and bit/s.
    steps: Arc<[(u64, u64)]>,
    /// The one that was last needed: packets leave in order.
    at: usize,
}

impl Steps {
    fn new(given: &[(u64, u64)], rate_bps: u64) -> Self {
        let first = std::iter::once((0, rate_bps));
        let steps = first.chain(given.iter().map(|&(ns, bps)| (ns.saturating_mul(PICOS_PER_NANO), bps))).collect();
        Steps { steps, at: 0 }
    }

    fn next_change(&self) -> u64 {
        self.steps.get(self.at + 1).map_or(u64::MAX, |&(from, _)| from)
    }

    /// The integral of the rate from `start` to then is the packet.
    fn end(&mut self, size: u32, start: u64) -> u64 {
        while self.next_change() <= start {
            self.at += 1;
        }
        let mut now = start;
        // Bits times picoseconds in a second: what a bit/s does in a picosecond is 1.
        let mut left = u128::from(size) * 8 * PICOS_PER_SECOND;
        loop {
            let (bps, until) = (u128::from(self.steps[self.at].1), self.next_change());
            let possible = u128::from(until - now) * bps;
            if possible >= left {
                return now + (left / bps.max(1)).fit_u64();
            }
            if until == u64::MAX {
                return u64::MAX;
            }
            left -= possible;
            now = until;
            self.at += 1;
        }
    }
}

/// Opportunities at even distances, each of so many bytes and what is left of a packet. After idleness one is a distance away.
#[derive(Clone, Debug)]
pub struct Slots {
    every: u64,
    bytes: u32,
    next: u64,
    left: u32,
}

impl Slots {
    fn end(&mut self, size: u32, now: u64) -> u64 {
        if self.next < now {
            (self.next, self.left) = (now + self.every, self.bytes);
        }
        let end = self.next;
        self.left = self.left.saturating_sub(size);
        if self.left == 0 {
            (self.next, self.left) = (end + self.every, self.bytes);
        }
        end
    }
}

/// Opportunities at recorded times, again and again. One that nobody waits for is lost; a packet that one has no room for goes on
/// in the next.
#[derive(Clone, Debug)]
pub struct Trace {
    times_ms: Arc<[u32]>,
    period_ms: u64,
    bytes: u32,
    /// The opportunity that is next, counted over all rounds, and what is left of it.
    at: u64,
    left: u32,
}

impl Trace {
    fn new(config: &scenario::Trace) -> Self {
        let bytes = config.bytes.fit_u32();
        Trace { times_ms: config.times_ms.clone().into(), period_ms: config.period_ms, bytes, at: 0, left: bytes }
    }

    fn time(&self, at: u64) -> u64 {
        let count = self.times_ms.len() as u64;
        let ms = (at / count).saturating_mul(self.period_ms) + u64::from(self.times_ms[(at % count).fit_usize()]);
        ms.saturating_mul(PICOS_PER_MILLI)
    }

    /// The first opportunity at `now` or later.
    fn first(&self, now: u64) -> u64 {
        let ms = now.div_ceil(PICOS_PER_MILLI);
        // The last time of a round is the first moment of the next.
        let round = (ms / self.period_ms).saturating_sub(1);
        let within = ms - round * self.period_ms;
        let before = self.times_ms.partition_point(|&time| u64::from(time) < within);
        let first = round * self.times_ms.len() as u64 + before as u64;
        if before < self.times_ms.len() { first } else { self.first_in(round + 1, ms) }
    }

    fn first_in(&self, round: u64, ms: u64) -> u64 {
        let within = ms.saturating_sub(round * self.period_ms);
        let before = self.times_ms.partition_point(|&time| u64::from(time) < within);
        round * self.times_ms.len() as u64 + before as u64
    }

    fn end(&mut self, size: u32, now: u64) -> u64 {
        if self.time(self.at) < now {
            (self.at, self.left) = (self.first(now), self.bytes);
        }
        let mut size = size;
        while size > self.left {
            size -= self.left;
            (self.at, self.left) = (self.at + 1, self.bytes);
        }
        let end = self.time(self.at);
        self.left -= size;
        if self.left == 0 {
            (self.at, self.left) = (self.at + 1, self.bytes);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = PICOS_PER_MILLI;

    fn steps(given: &[(u64, u64)]) -> Steps {
        Steps::new(given, 12_000_000)
    }

    #[test]
    fn a_packet_leaves_when_the_integral_of_the_rate_is_its_size() {
        // 1,500 bytes take 1 ms; from 10.5 ms on twice as long.
        let mut steps = steps(&[(10_500_000, 6_000_000)]);
        assert_eq!(steps.end(1_500, 0), MILLI);
        assert_eq!(steps.end(1_500, 10 * MILLI), 10 * MILLI + 1_500 * MILLI / 1_000);
        assert_eq!(steps.end(1_500, 20 * MILLI), 22 * MILLI);
    }

    #[test]
    fn a_rate_of_zero_stops_what_is_on_its_way_out_until_it_rises() {
        let mut steps = steps(&[(500_000, 0), (7_000_000, 0), (9_000_000, 12_000_000)]);
        assert_eq!(steps.end(1_500, 0), 9 * MILLI + MILLI / 2);
        let mut stops = self::steps(&[(500_000, 0)]);
        assert_eq!(stops.end(1_500, 0), u64::MAX);
    }

    fn trace(times_ms: &[u32], period_ms: u64) -> Trace {
        Trace::new(&scenario::Trace { times_ms: times_ms.into(), period_ms, bytes: 1_514 })
    }

    fn ends(trace: &mut Trace, packets: &[(u32, u64)]) -> Vec<u64> {
        packets.iter().map(|&(size, ms)| trace.end(size, ms * MILLI) / MILLI).collect()
    }

    #[test]
    fn each_line_of_a_trace_lets_a_full_frame_leave_and_it_repeats() {
        let mut trace = trace(&[0, 3, 3, 10], 10);
        let full = (1_514, 0);
        assert_eq!(ends(&mut trace, &[full; 9]), [0, 3, 3, 10, 10, 13, 13, 20, 20]);
    }

    #[test]
    fn an_opportunity_that_nobody_waits_for_is_lost() {
        let mut trace = trace(&[1, 3, 5, 10], 10);
        assert_eq!(ends(&mut trace, &[(1_514, 4), (1_514, 4), (1_514, 35), (1_514, 36)]), [5, 10, 35, 40]);
    }

    #[test]
    fn small_packets_share_an_opportunity_and_what_does_not_fit_goes_on_in_the_next() {
        let mut trace = trace(&[1, 3, 5, 10], 10);
        assert_eq!(ends(&mut trace, &[(1_000, 0), (500, 0), (28, 0), (3_000, 0)]), [1, 1, 3, 5]);
        assert_eq!(ends(&mut trace, &[(10, 4)]), [5]);
        // Of the one at 5 ms nobody waited for the rest.
        assert_eq!(ends(&mut trace, &[(1_514, 6)]), [10]);
    }

    #[test]
    fn a_burst_leaves_at_the_lines_rate_then_packets_at_the_buckets() {
        let tbf = scenario::Tbf { rate_bps: 8_000_000, burst_bytes: 3_000, peakrate_bps: None, minburst_bytes: 0 };
        let mut shaper = Shaper::new(tbf, 80_000_000);
        let mut free = 0;
        let mut ends = |now: &[u64]| -> Vec<u64> {
            let leave = |&now: &u64| {
                free = shaper.leave(1_000, now * MILLI, free).end;
                free * 10 / MILLI
            };
            now.iter().map(leave).collect()
        };
        // In tenths of a millisecond, of which the line takes one a packet. Tokens come while the burst leaves.
        assert_eq!(ends(&[0; 6]), [1, 2, 3, 11, 21, 31]);
        assert_eq!(ends(&[100; 4]), [1_001, 1_002, 1_003, 1_011]);
    }

    #[test]
    fn a_peak_rate_spreads_a_burst() {
        let tbf = scenario::Tbf {
            rate_bps: 8_000_000,
            burst_bytes: 10_000,
            peakrate_bps: Some(16_000_000),
            minburst_bytes: 1_000,
        };
        let mut shaper = Shaper::new(tbf, 8_000_000_000);
        let starts: Vec<u64> = (0..4).map(|_| shaper.leave(1_000, 0, 0).start * 10 / MILLI).collect();
        assert_eq!(starts, [0, 5, 10, 15]);
    }

    #[test]
    fn slots_come_at_even_distances_while_packets_wait_and_a_distance_after_idleness() {
        let mut slots = Slots { every: 1_000, bytes: 3_000, next: 0, left: 0 };
        let ends: Vec<u64> = [10, 10, 10, 10, 5_000].map(|now| slots.end(1_514, now)).into();
        assert_eq!(ends, [1_010, 1_010, 2_010, 2_010, 6_000]);
    }
}
