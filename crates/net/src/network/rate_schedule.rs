//! When packets leave a transmitter with a varying rate or a token bucket. All of it is known in advance, so departures
//! are still known on arrival.

use crate::network::bucket::{Bucket, PerByte};
use crate::network::overlimits::Overlimits;
use crate::scenario;
use sawtooth_units::width::Fit;

const PICOS_PER_MILLI: u64 = 1_000_000_000;
const PICOS_PER_NANO: u64 = 1_000;
const PICOS_PER_SECOND: u64 = 1_000_000_000_000;
/// After a short silence the next opportunity is among this many.
const NEAR: usize = 16;

/// What lets packets leave, and its progress.
#[derive(Clone, Debug)]
pub struct RateSchedule {
    kind: Kind,
    state: State,
}

#[derive(Clone, Debug)]
enum Kind {
    Steps(Steps),
    Slots(Slots),
    Trace(Trace),
    Shaper(Shaper),
}

/// Its progress. A value, so that a packet that does not fit the queue changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    /// The step that was last needed, or the next opportunity.
    at: usize,
    /// When that is (slots), when its round began (traces), or when the last packet had its tokens (shapers).
    since: u64,
    /// Bytes left of it, or of the last packet.
    left: u32,
    /// When the last packet became first, and when it began to leave (shapers).
    first: u64,
    begun: u64,
}

/// When a packet begins to leave, and when it has left (picoseconds).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    pub start: u64,
    pub end: u64,
}

impl RateSchedule {
    /// `None`: departures follow each other at the transmitter's rate.
    pub fn of(config: &scenario::Transmitter) -> Option<Self> {
        match (&config.pace, config.discipline) {
            (Some(pace), _) => Some(RateSchedule::new(pace, config.rate_bps)),
            (None, scenario::Discipline::Tbf(tbf)) => Some(Kind::Shaper(Shaper::new(tbf, config.rate_bps)).into()),
            (None, _) => None,
        }
    }

    /// `rate_bps`: the rate until the first step, and that of slots.
    fn new(config: &scenario::RateSchedule, rate_bps: u64) -> Self {
        match config {
            scenario::RateSchedule::Steps(steps) => Kind::Steps(Steps::new(steps, rate_bps)).into(),
            &scenario::RateSchedule::Slots { every_ns, bytes } => {
                Kind::Slots(Slots { every: every_ns * PICOS_PER_NANO, bytes: bytes.fit_u32() }).into()
            }
            scenario::RateSchedule::Trace(trace) => {
                let state = State { left: trace.bytes.fit_u32(), ..State::default() };
                RateSchedule { kind: Kind::Trace(Trace::new(trace)), state }
            }
        }
    }

    /// For a packet of `size` bytes that may begin at `free` and is present at `now`. Unless it is [kept](Self::keep),
    /// the next one finds the same state.
    pub fn leave(&self, size: u32, now: u64, free: u64) -> (Leaving, State) {
        let mut state = self.state;
        let leaving = match &self.kind {
            Kind::Steps(steps) => {
                let start = free.max(now);
                Leaving { start, end: steps.end(size, start, &mut state) }
            }
            // It stays complete until an opportunity has room for its last byte.
            Kind::Slots(slots) => at_once(slots.end(size, now, &mut state)),
            Kind::Trace(trace) => at_once(trace.end(size, now, &mut state)),
            Kind::Shaper(shaper) => shaper.leave(size, now, free, &mut state),
        };
        (leaving, state)
    }

    /// A packet arrives, which may find no room.
    pub fn comes(&mut self, now: u64) {
        if let Kind::Shaper(shaper) = &mut self.kind {
            shaper.overlimits.packet_arrives(now);
        }
    }

    /// For a token bucket: how often it lacked tokens when Linux asked for a packet, up to `now`.
    pub fn overlimits(&mut self, now: u64) -> Option<u64> {
        if let Kind::Shaper(shaper) = &mut self.kind { Some(shaper.overlimits.count(now)) } else { None }
    }

    /// The packet leaves; none may leave before it after that.
    pub fn keep(&mut self, state: State) {
        if let Kind::Shaper(shaper) = &mut self.kind {
            shaper.take(&state);
        }
        self.state = state;
    }
}

impl From<Kind> for RateSchedule {
    fn from(kind: Kind) -> Self {
        RateSchedule { kind, state: State::default() }
    }
}

fn at_once(end: u64) -> Leaving {
    Leaving { start: end, end }
}

/// A token bucket (tc-tbf) before a line: a packet moves on when there are tokens for it, after the previous one has
/// begun to leave.
#[derive(Clone, Debug)]
struct Shaper {
    rate: Bucket,
    peak: Option<Bucket>,
    line: PerByte,
    overlimits: Overlimits,
}

impl Shaper {
    fn new(config: scenario::Tbf, line_bps: u64) -> Self {
        Shaper {
            rate: Bucket::new(config.rate_bps, config.burst_bytes),
            peak: config.peakrate_bps.map(|peak| Bucket::new(peak, config.minburst_bytes)),
            line: PerByte::new(line_bps),
            overlimits: Overlimits::default(),
        }
    }

    fn leave(&self, size: u32, now: u64, free: u64, state: &mut State) -> Leaving {
        state.first = now.max(state.begun);
        let buckets = std::iter::once(&self.rate).chain(&self.peak);
        let start = buckets.map(|bucket| bucket.ready(size, state.first)).fold(state.first, u64::max);
        (state.since, state.left, state.begun) = (start, size, start.max(free));
        Leaving { start, end: state.begun.saturating_add(self.line.of(u64::from(size))) }
    }

    /// Takes the tokens of the packet that led to `state`.
    fn take(&mut self, state: &State) {
        self.overlimits.packet_waits(state.first, state.since);
        self.rate.take(state.left, state.since);
        self.peak.iter_mut().for_each(|peak| peak.take(state.left, state.since));
    }
}

/// A rate that changes at given times; 0 stops it. A packet being sent continues at the new rate.
#[derive(Clone, Debug)]
struct Steps {
    /// Start time (picoseconds, the first is 0), and bit/s.
    steps: Vec<(u64, u64)>,
}

impl Steps {
    fn new(given: &[(u64, u64)], rate_bps: u64) -> Self {
        let first = std::iter::once((0, rate_bps));
        let steps = first.chain(given.iter().map(|&(ns, bps)| (ns.saturating_mul(PICOS_PER_NANO), bps))).collect();
        Steps { steps }
    }

    fn change_after(&self, at: usize) -> u64 {
        self.steps.get(at + 1).map_or(u64::MAX, |&(from, _)| from)
    }

    /// When the integral of the rate from `start` equals the packet.
    fn end(&self, size: u32, start: u64, state: &mut State) -> u64 {
        while self.change_after(state.at) <= start {
            state.at += 1;
        }
        let mut now = start;
        // Bits times picoseconds per second, so that 1 bit/s does 1 per picosecond. A super-packet has 5e17.
        let mut left = u64::from(size) * 8 * PICOS_PER_SECOND;
        loop {
            let (bps, until) = (self.steps[state.at].1, self.change_after(state.at));
            let possible = u128::from(until - now) * u128::from(bps);
            if possible >= u128::from(left) {
                return now + left / bps.max(1);
            }
            if until == u64::MAX {
                return u64::MAX;
            }
            left -= possible.fit_u64();
            now = until;
            state.at += 1;
        }
    }
}

/// Opportunities at even intervals, each for a number of bytes and the rest of a packet. After idleness the next one is
/// an interval away.
#[derive(Clone, Debug)]
struct Slots {
    every: u64,
    bytes: u32,
}

impl Slots {
    fn end(&self, size: u32, now: u64, state: &mut State) -> u64 {
        if state.since < now {
            (state.since, state.left) = (now + self.every, self.bytes);
        }
        let end = state.since;
        state.left = state.left.saturating_sub(size);
        if state.left == 0 {
            (state.since, state.left) = (end + self.every, self.bytes);
        }
        end
    }
}

/// Opportunities at recorded times, repeated. One that nobody waits for is lost; a packet that does not fit continues
/// in the next.
#[derive(Clone, Debug)]
struct Trace {
    times_ms: Vec<u32>,
    period_ms: u64,
    bytes: u32,
}

impl Trace {
    fn new(config: &scenario::Trace) -> Self {
        let scenario::Trace { times_ms, period_ms, bytes } = config;
        Trace { times_ms: times_ms.clone(), period_ms: *period_ms, bytes: bytes.fit_u32() }
    }

    fn time(&self, state: &State) -> u64 {
        state.since.saturating_add(u64::from(self.times_ms[state.at])).saturating_mul(PICOS_PER_MILLI)
    }

    /// Moves to the next opportunity.
    fn step(&self, state: &mut State) {
        state.at += 1;
        if state.at == self.times_ms.len() {
            (state.at, state.since) = (0, state.since.saturating_add(self.period_ms));
        }
        state.left = self.bytes;
    }

    /// Moves to the first opportunity at `now` or later, which is after that of `state`.
    fn skip(&self, now: u64, state: &mut State) {
        for _ in 0..NEAR {
            self.step(state);
            if self.time(state) >= now {
                return;
            }
        }
        let ms = now.div_ceil(PICOS_PER_MILLI);
        // The last time of a round is the first moment of the next.
        let round = (ms / self.period_ms).saturating_sub(1) * self.period_ms;
        state.since = state.since.max(round);
        loop {
            let within = ms - state.since.min(ms);
            state.at = self.times_ms.partition_point(|&time| u64::from(time) < within);
            if state.at < self.times_ms.len() {
                return;
            }
            state.since += self.period_ms;
        }
    }

    fn end(&self, size: u32, now: u64, state: &mut State) -> u64 {
        if self.time(state) < now {
            self.skip(now, state);
        }
        let mut size = size;
        while size > state.left {
            size -= state.left;
            self.step(state);
        }
        let end = self.time(state);
        state.left -= size;
        if state.left == 0 {
            self.step(state);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = PICOS_PER_MILLI;

    fn steps(given: &[(u64, u64)]) -> RateSchedule {
        RateSchedule::new(&scenario::RateSchedule::Steps(given.into()), 12_000_000)
    }

    fn leave(pace: &mut RateSchedule, size: u32, now: u64, free: u64) -> Leaving {
        let (leaving, state) = pace.leave(size, now, free);
        pace.keep(state);
        leaving
    }

    /// When a packet that leaves, at `now` or later, has left.
    fn end(pace: &mut RateSchedule, size: u32, now: u64) -> u64 {
        leave(pace, size, now, 0).end
    }

    #[test]
    fn packet_leaves_when_rate_integral_equals_size() {
        // 1,500 bytes take 1 ms; from 10.5 ms on twice as long.
        let mut steps = steps(&[(10_500_000, 6_000_000)]);
        assert_eq!(end(&mut steps, 1_500, 0), MILLI);
        assert_eq!(end(&mut steps, 1_500, 10 * MILLI), 10 * MILLI + 1_500 * MILLI / 1_000);
        assert_eq!(end(&mut steps, 1_500, 20 * MILLI), 22 * MILLI);
    }

    #[test]
    fn zero_rate_pauses_the_departing_packet() {
        let mut steps = steps(&[(500_000, 0), (7_000_000, 0), (9_000_000, 12_000_000)]);
        assert_eq!(end(&mut steps, 1_500, 0), 9 * MILLI + MILLI / 2);
        let mut stops = self::steps(&[(500_000, 0)]);
        assert_eq!(end(&mut stops, 1_500, 0), u64::MAX);
    }

    fn trace(times_ms: &[u32], period_ms: u64) -> RateSchedule {
        let trace = scenario::Trace { times_ms: times_ms.into(), period_ms, bytes: 1_514 };
        RateSchedule::new(&scenario::RateSchedule::Trace(trace), 1)
    }

    fn ends(trace: &mut RateSchedule, packets: &[(u32, u64)]) -> Vec<u64> {
        packets.iter().map(|&(size, ms)| end(trace, size, ms * MILLI) / MILLI).collect()
    }

    #[test]
    fn trace_line_is_one_frame_and_trace_repeats() {
        let mut trace = trace(&[0, 3, 3, 10], 10);
        let full = (1_514, 0);
        assert_eq!(ends(&mut trace, &[full; 9]), [0, 3, 3, 10, 10, 13, 13, 20, 20]);
    }

    #[test]
    fn unused_trace_opportunity_is_lost() {
        let mut trace = trace(&[1, 3, 5, 10], 10);
        assert_eq!(ends(&mut trace, &[(1_514, 4), (1_514, 4), (1_514, 35), (1_514, 36)]), [5, 10, 35, 40]);
    }

    #[test]
    fn opportunity_after_silence_is_the_next_in_time() {
        let times: Vec<u32> = (1..=50).map(|at| 2 * at).collect();
        for (now, expected) in [(31, 32), (99, 100), (100, 100), (101, 102), (100_000, 100_000), (123_455, 123_456)] {
            assert_eq!(ends(&mut trace(&times, 100), &[(1_514, now)]), [expected], "{now}");
        }
        assert_eq!(ends(&mut trace(&[1, 3], 10), &[(1_514, 994), (1_514, 0)]), [1_001, 1_003]);
    }

    #[test]
    fn small_packets_share_an_opportunity() {
        let mut trace = trace(&[1, 3, 5, 10], 10);
        assert_eq!(ends(&mut trace, &[(1_000, 0), (500, 0), (28, 0), (3_000, 0)]), [1, 1, 3, 5]);
        assert_eq!(ends(&mut trace, &[(10, 4)]), [5]);
        // No packet waited for the rest of the opportunity at 5 ms.
        assert_eq!(ends(&mut trace, &[(1_514, 6)]), [10]);
    }

    #[test]
    fn uncommitted_packet_takes_no_tokens() {
        let mut trace = trace(&[1, 3, 5, 10], 10);
        let first = trace.leave(1_514, 0, 0).0;
        assert_eq!(first, trace.leave(1_514, 0, 0).0);
        assert_eq!(ends(&mut trace, &[(1_514, 0), (1_514, 0)]), [1, 3]);
    }

    #[test]
    fn burst_leaves_at_line_rate_then_bucket_rate() {
        let tbf = scenario::Tbf { rate_bps: 8_000_000, burst_bytes: 3_000, peakrate_bps: None, minburst_bytes: 0 };
        let mut shaper = RateSchedule::from(Kind::Shaper(Shaper::new(tbf, 80_000_000)));
        let mut free = 0;
        let mut ends = |now: &[u64]| -> Vec<u64> {
            let ends_at = |&now: &u64| {
                free = leave(&mut shaper, 1_000, now * MILLI, free).end;
                free * 10 / MILLI
            };
            now.iter().map(ends_at).collect()
        };
        // In tenths of a millisecond; the line takes one per packet. Tokens arrive while the burst leaves.
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
        let mut shaper = RateSchedule::from(Kind::Shaper(Shaper::new(tbf, 8_000_000_000)));
        let starts: Vec<u64> = (0..4).map(|_| leave(&mut shaper, 1_000, 0, 0).start * 10 / MILLI).collect();
        assert_eq!(starts, [0, 5, 10, 15]);
    }

    #[test]
    fn slots_are_evenly_spaced_and_restart_after_idle() {
        let mut slots = RateSchedule::new(&scenario::RateSchedule::Slots { every_ns: 1, bytes: 3_000 }, 1);
        let ends: Vec<u64> = [10, 10, 10, 10, 5_000].map(|now| end(&mut slots, 1_514, now)).into();
        assert_eq!(ends, [1_010, 1_010, 2_010, 2_010, 6_000]);
    }
}
