//! A video's playback buffer, and the choice of the next segment's rate.
//!
//! `Rule::Buffer` is BBA-0 of Huang, Johari, McKeown, Trunnell and Watson, "A Buffer-Based Approach to Rate Adaptation"
//! (SIGCOMM 2014, algorithm 1). Its reservoir of 90 s and upper end of 216 s, of a buffer of 240 s, are kept as shares.
//! `Rule::Throughput` uses 90% of the mean of the last four segments, as dash.js does for videos that are not live.

use crate::scenario::Rule;
use sawtooth_units::width::Fit;
use sawtooth_units::{Span, Time};

/// Shares of the buffer: below the first the lowest rate is chosen, above the second the highest.
const RESERVOIR: (u64, u64) = (3, 8);
const UPPER: (u64, u64) = (9, 10);
/// Most bytes of a segment: a petabyte.
const LARGEST: u128 = 1_000_000_000_000_000;
/// Segments averaged by the throughput rule.
const SAMPLES: usize = 4;
const SAFE_PERCENT: u128 = 90;

#[derive(Clone, Debug, Default)]
pub struct Playback {
    /// Video left to play at `at`, in nanoseconds; it plays from the first segment on.
    level_ns: u64,
    at: Time,
    plays: bool,
    rate_bps: u64,
    /// Throughput of the last segments.
    measured: Vec<u64>,
}

/// The state when a segment had arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferState {
    pub rate_bps: u64,
    /// Including it.
    pub buffer: Span,
    pub stalled: Span,
}

fn share((part, whole): (u64, u64), ns: u64) -> u64 {
    (u128::from(ns) * u128::from(part) / u128::from(whole)).fit_u64()
}

impl Playback {
    fn level(&self, now: Time) -> u64 {
        let played = if self.plays { now.since(self.at).nanos() } else { 0 };
        self.level_ns.saturating_sub(played)
    }

    /// Chooses the bit rate of the next segment and returns its size in bytes. `rates` are in ascending order.
    pub fn chooses(&mut self, rates: &[u64], [segment, buffer]: [u64; 2], rule: Rule, now: Time) -> u64 {
        self.rate_bps = match rule {
            Rule::Buffer => self.by_buffer(rates, buffer, now),
            Rule::Throughput => self.by_throughput(rates),
        };
        let bits = u128::from(self.rate_bps) * u128::from(segment);
        bits.div_ceil(8_000_000_000).clamp(1, LARGEST).fit_u64()
    }

    fn by_buffer(&self, rates: &[u64], buffer: u64, now: Time) -> u64 {
        let (lowest, highest, level) = (rates[0], rates[rates.len() - 1], self.level(now));
        let (reservoir, upper) = (share(RESERVOIR, buffer), share(UPPER, buffer));
        if level <= reservoir {
            return lowest;
        }
        if level >= upper {
            return highest;
        }
        let rise = u128::from(highest - lowest) * u128::from(level - reservoir) / u128::from(upper - reservoir);
        let mapped = lowest + rise.fit_u64();
        let above = rates.iter().copied().find(|&rate| rate > self.rate_bps).unwrap_or(highest);
        let below = rates.iter().copied().rev().find(|&rate| rate < self.rate_bps).unwrap_or(lowest);
        if mapped >= above {
            rates.iter().copied().rev().find(|&rate| rate < mapped).unwrap_or(lowest)
        } else if mapped <= below {
            rates.iter().copied().find(|&rate| rate > mapped).unwrap_or(highest)
        } else {
            self.rate_bps
        }
    }

    fn by_throughput(&self, rates: &[u64]) -> u64 {
        if self.measured.is_empty() {
            return rates[0];
        }
        let sum: u128 = self.measured.iter().copied().map(u128::from).sum();
        let safe = sum * SAFE_PERCENT / (100 * self.measured.len() as u128);
        rates.iter().copied().rev().find(|&rate| u128::from(rate) <= safe).unwrap_or(rates[0])
    }

    /// A segment of `bytes` has arrived after the time `took`.
    pub fn takes(&mut self, segment: u64, bytes: u64, took: Span, now: Time) -> BufferState {
        let stalled =
            if self.plays { Span::from_nanos(now.since(self.at).nanos().saturating_sub(self.level_ns)) } else { took };
        self.level_ns = self.level(now) + segment;
        self.at = now;
        self.plays = true;
        let bps = u128::from(bytes) * 8_000_000_000 / u128::from(took.nanos().max(1));
        self.measured.push(u64::try_from(bps).unwrap_or(u64::MAX));
        if self.measured.len() > SAMPLES {
            self.measured.remove(0);
        }
        BufferState { rate_bps: self.rate_bps, buffer: Span::from_nanos(self.level_ns), stalled }
    }

    /// The time from the last arrival until the buffer has room for one more.
    pub fn until_room(&self, segment: u64, buffer: u64) -> Span {
        Span::from_nanos((self.level_ns + segment).saturating_sub(buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const RATES: [u64; 4] = [1_000_000, 2_000_000, 4_000_000, 8_000_000];

    fn at(seconds: u64) -> Time {
        Time::from_nanos(seconds * SECOND)
    }

    /// Playing, with this level in the buffer now.
    fn with(level: u64, rate_bps: u64) -> Playback {
        Playback { level_ns: level * SECOND, plays: true, rate_bps, ..Playback::default() }
    }

    #[test]
    fn buffer_map_gives_lowest_and_highest_rate_at_its_ends() {
        let rate = |level| with(level, RATES[1]).by_buffer(&RATES, 80 * SECOND, at(0));
        // 30 s of 80 s, and 72 s.
        assert_eq!([0, 30, 72, 80].map(rate), [RATES[0], RATES[0], RATES[3], RATES[3]]);
    }

    #[test]
    fn rate_stays_until_map_reaches_neighbour() {
        // From 30 s to 72 s the mapping rises from 1 to 8 Mbit/s: 6 s for each.
        let rate = |level, before| with(level, before).by_buffer(&RATES, 80 * SECOND, at(0));
        assert_eq!(rate(36, RATES[0]), RATES[0], "the map is at a neighbour: the highest below it");
        assert_eq!([37, 49].map(|level| rate(level, RATES[0])), [RATES[1], RATES[2]]);
        assert_eq!([45, 41].map(|level| rate(level, RATES[2])), [RATES[2], RATES[2]]);
        assert_eq!(rate(36, RATES[2]), RATES[2], "the map is at a neighbour: the lowest above it");
        assert_eq!(rate(35, RATES[2]), RATES[1]);
    }

    #[test]
    fn throughput_rule_uses_ninety_percent() {
        let mut playback = Playback::default();
        assert_eq!(playback.by_throughput(&RATES), RATES[0]);
        for (bytes, rate) in [(555_000, RATES[1]), (555_000, RATES[1]), (560_000, RATES[2]), (10_000_000, RATES[3])] {
            playback.takes(4 * SECOND, bytes, Span::from_secs(1), at(1));
            assert_eq!(playback.by_throughput(&RATES), rate, "{bytes}");
        }
        for _ in 0..4 {
            playback.takes(4 * SECOND, 1_000, Span::from_secs(1), at(1));
        }
        assert_eq!(playback.by_throughput(&RATES), RATES[0], "only the last four count");
    }

    #[test]
    fn playback_drains_buffer_and_counts_stalls() {
        let mut playback = Playback::default();
        let had = |playback: &mut Playback, now| {
            let had = playback.takes(4 * SECOND, 1, Span::from_secs(1), at(now));
            [had.buffer, had.stalled].map(|span| span.nanos() / SECOND)
        };
        assert_eq!(had(&mut playback, 1), [4, 1], "the first begins the video");
        assert_eq!(had(&mut playback, 3), [6, 0]);
        assert_eq!(had(&mut playback, 11), [4, 2]);
        assert_eq!(playback.until_room(4 * SECOND, 6 * SECOND).nanos(), 2 * SECOND);
        assert_eq!(playback.until_room(4 * SECOND, 8 * SECOND), Span::ZERO);
    }

    #[test]
    fn a_segment_is_its_rate_times_its_length() {
        let bytes = Playback::default().chooses(&RATES, [4 * SECOND, 30 * SECOND], Rule::Buffer, at(0));
        assert_eq!(bytes, 500_000);
    }
}
