//! A transmitter: how long each packet takes to leave, one after the other, and the queue before it.

use crate::network::queue::delays::Delays;
use crate::network::queue::taildrop::TailDrop;
use crate::network::queue::{Drops, Flows, Held, Place, Waiting};
use crate::network::rate_schedule::{Leaving, RateSchedule};
use crate::scenario;
use sawtooth_tcp::steady::Visit;
use sawtooth_units::width::Fit;
use sawtooth_units::{Span, Time};

const PICOS_PER_NANO: u64 = 1_000;
/// Later than any run lasts.
const NEVER_PS: u64 = u64::MAX - PICOS_PER_NANO;
/// Fraction bits of the time per byte.
const FRACTION: u32 = 20;

#[derive(Clone, Debug)]
pub struct Transmitter {
    /// Picoseconds per byte, with [`FRACTION`] bits of fraction.
    per_byte: u64,
    /// When the last packet with a known departure will have left, in picoseconds, so that rounding never drifts.
    free_ps: u64,
    /// The same, rounded up: no later packet leaves before.
    pub free: Time,
    /// Replaces `per_byte` if the rate varies or there is a token bucket.
    pace: Option<Box<RateSchedule>>,
    /// What waits and has a known departure.
    waiting: TailDrop,
    /// Present if its discipline holds packets; then nothing waits otherwise.
    held: Option<Box<Held>>,
    counters: Counters,
    /// Delays of held packets that have begun to leave, or of all packets if the scenario asks for it.
    delays: Option<Delays>,
}

/// Since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub packets: u64,
    pub drops: u64,
    pub bytes: u64,
    /// Drops although there was room.
    pub early_drops: u64,
    pub marks: u64,
    pub overlimits: u64,
    /// The sum of all waiting times in nanoseconds. Together with the next field, divided by a length of time, it is
    /// the mean queue (Little's law). At 1 bit/s, a thousand packets in a long queue wait longer than 64 bits can
    /// count.
    pub waited_ns: u128,
    /// The same for packets that waited and were dropped, which is part of no packet's delay.
    pub dropped_waited_ns: u128,
}

/// Packets waiting at a moment whose time [`Counters`] counts completely in advance, or not at all yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ahead {
    pub packets: u64,
    pub bytes: u64,
    /// Nanoseconds counted that are still to come, minus those that have passed and are not counted.
    pub waits_ns: i128,
}

impl Transmitter {
    /// `tells_delays`: report percentiles whatever the discipline.
    pub fn new(config: &scenario::Transmitter, place: Place, tells_delays: bool) -> Self {
        let held = Held::new(config, place).map(Box::new);
        Transmitter {
            // The slowest rate, 1 bit/s, gives 2^63.
            per_byte: ((8_000_000_000_000u128 << FRACTION) / u128::from(config.rate_bps)).fit_u64(),
            free_ps: 0,
            free: Time::ZERO,
            pace: RateSchedule::of(config).map(Box::new),
            counters: Counters::default(),
            delays: (tells_delays || held.is_some()).then(Delays::new),
            waiting: TailDrop::new(config),
            held,
        }
    }

    /// Takes a packet of `size` bytes at `now`; returns when it has left entirely, or `None` if it was dropped. Only if
    /// departures are known on arrival: see [`Self::holds`].
    pub fn send(&mut self, size: u32, now: Time) -> Option<Time> {
        let waited = self.counters.waited_ns;
        let left = if self.pace.is_some() { self.send_paced(size, now) } else { self.send_steady(size, now) }?;
        if let Some(delays) = &mut self.delays {
            delays.add(Span::from_nanos((self.counters.waited_ns - waited).fit_u64()));
        }
        Some(left)
    }

    /// Whether packets may use [`Self::send_steady`].
    pub fn is_steady(&self) -> bool {
        self.pace.is_none() && self.delays.is_none()
    }

    /// As [`Self::send`], for a constant rate.
    #[inline(always)]
    pub fn send_steady(&mut self, size: u32, now: Time) -> Option<Time> {
        let start = if self.free > now {
            if !self.admits(size, self.free_ps, now) {
                return None;
            }
            self.free_ps
        } else {
            now.nanos() * PICOS_PER_NANO
        };
        Some(self.leave(size, start))
    }

    /// Whether the queue accepts a packet that begins to leave at `start`, later than now; counts its wait, or a drop.
    #[inline(always)]
    fn admits(&mut self, size: u32, start: u64, now: Time) -> bool {
        if !self.waiting.takes(size, start, now) {
            self.counters.drops += 1;
            return false;
        }
        self.counters.waited_ns += u128::from(start / PICOS_PER_NANO - now.nanos());
        true
    }

    /// As [`Self::leave`], also for a varying rate.
    #[inline(always)]
    fn leave_held(&mut self, size: u32, start: u64) -> Time {
        match &mut self.pace {
            Some(pace) => {
                let (Leaving { end, .. }, state) = pace.leave(size, start, start);
                pace.keep(state);
                self.left_by(size, end)
            }
            None => self.leave(size, start),
        }
    }

    /// As [`Self::send`], for a varying rate.
    #[inline(never)]
    fn send_paced(&mut self, size: u32, now: Time) -> Option<Time> {
        let now_ps = now.nanos() * PICOS_PER_NANO;
        let pace = self.pace.as_mut()?;
        pace.comes(now_ps);
        let (Leaving { start, end }, state) = pace.leave(size, now_ps, self.free_ps);
        if start > now_ps && !self.admits(size, start, now) {
            return None;
        }
        self.pace.as_mut()?.keep(state);
        Some(self.left_by(size, end))
    }

    /// Counts a packet that has left entirely at `end` (picoseconds).
    fn left_by(&mut self, size: u32, end: u64) -> Time {
        self.free_ps = end.min(NEVER_PS);
        self.counters.packets += 1;
        self.counters.bytes += u64::from(size);
        self.free = Time::from_nanos(self.free_ps.div_ceil(PICOS_PER_NANO));
        self.free
    }

    /// Lets a packet begin to leave at `start` (picoseconds); returns when it has left entirely.
    #[inline(always)]
    #[expect(clippy::manual_div_ceil, reason = "half the instructions, and it cannot overflow")]
    fn leave(&mut self, size: u32, start: u64) -> Time {
        let duration = ((u128::from(size) * u128::from(self.per_byte)) >> FRACTION).fit_u64();
        self.free_ps = start.saturating_add(duration).min(NEVER_PS);
        self.counters.packets += 1;
        self.counters.bytes += u64::from(size);
        self.free = Time::from_nanos((self.free_ps + (PICOS_PER_NANO - 1)) / PICOS_PER_NANO);
        self.free
    }

    /// How long `bytes` take to leave, in picoseconds.
    pub fn picos_of(&self, bytes: u32) -> u64 {
        ((u128::from(bytes) * u128::from(self.per_byte)) >> FRACTION).fit_u64()
    }

    /// The same, in whole nanoseconds.
    pub fn span(&self, bytes: u32) -> Span {
        Span::from_nanos(self.picos_of(bytes) / PICOS_PER_NANO)
    }

    /// A super-packet that left counts as one packet, and each further segment as another.
    pub fn counts_segment(&mut self, is_further: bool) {
        self.counters.packets += u64::from(is_further);
    }

    /// Whether it holds packets until they leave: then they arrive by [`Self::put`] and leave by [`Self::next`].
    #[inline]
    pub fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// Takes a packet that is held until it leaves. If it begins at once, returns it with the time when it has left
    /// entirely; otherwise it waits or is among the drops.
    pub fn put(&mut self, waiting: Waiting, drops: &mut Drops) -> Option<(Waiting, Time)> {
        let now = waiting.since;
        let idle = self.free <= now;
        let held = self.held.as_mut()?;
        let at_once = idle && held.waiting().0 == 0;
        held.put(waiting, drops);
        held.choose(now, drops);
        let first = if at_once { held.take() } else { None };
        self.count(drops, now);
        first.map(|first| (first, self.begin(first, now.nanos() * PICOS_PER_NANO)))
    }

    /// The packet that begins to leave at `now`, when the previous one has left, and when it will have left. The next
    /// one is chosen then; what is dropped instead goes to `drops`.
    pub fn next(&mut self, now: Time, drops: &mut Drops) -> Option<(Waiting, Time)> {
        // Exact to the picosecond, unless a shaper held it back.
        let start = if now > self.free { now.nanos() * PICOS_PER_NANO } else { self.free_ps };
        let is_free = now >= self.free;
        let held = self.held.as_mut()?;
        if held.shapes() {
            held.choose(now, drops);
        }
        let next = if is_free { held.take() } else { None };
        if next.is_some() {
            held.choose(now, drops);
        }
        self.count(drops, now);
        next.map(|next| (next, self.begin(next, start)))
    }

    /// When to call [`Self::next`] after `now`, if that is not always when the last packet has left: under a shaper.
    pub fn lets_go(&self, now: Time) -> Option<Time> {
        self.held.as_ref()?.lets_go(self.free.max(now))
    }

    #[inline(always)]
    fn begin(&mut self, waiting: Waiting, start_ps: u64) -> Time {
        let waited_ns = (start_ps - waiting.since.nanos() * PICOS_PER_NANO) / PICOS_PER_NANO;
        self.counters.waited_ns += u128::from(waited_ns);
        if let Some(delays) = &mut self.delays {
            delays.add(Span::from_nanos(waited_ns));
        }
        self.leave_held(waiting.size, start_ps)
    }

    #[inline]
    fn count(&mut self, drops: &Drops, now: Time) {
        if drops.none() {
            return;
        }
        let waited = drops.packets.iter().map(|dropped| u128::from(now.since(dropped.since).nanos()));
        self.counters.dropped_waited_ns += waited.sum::<u128>();
        self.counters.drops += drops.packets.len() as u64;
        self.counters.early_drops += drops.early;
        self.counters.marks += drops.marks;
        self.counters.overlimits += drops.overlimits;
    }

    /// The waits that these shares of the packets did not exceed, for packets that left since the last call; `None` if
    /// waits are not recorded or none left.
    pub fn take_delays<const N: usize>(&mut self, shares: [f64; N]) -> Option<[Span; N]> {
        self.delays.as_mut()?.take(shares)
    }

    /// The flows, if its discipline reports them.
    pub fn flows(&self) -> Option<Flows> {
        self.held.as_ref()?.flows()
    }

    /// The counters up to `now`.
    pub fn counters(&mut self, now: Time) -> Counters {
        if let Some(overlimits) = self.pace.as_mut().and_then(|pace| pace.overlimits(now.nanos() * PICOS_PER_NANO)) {
            self.counters.overlimits = overlimits;
        }
        self.counters
    }

    /// What its counters include too early, or not yet, at `now`.
    pub fn ahead(&mut self, now: Time) -> Ahead {
        if let Some(held) = &self.held {
            return Ahead { waits_ns: -i128::from(held.waited_ns(now)), ..Ahead::default() };
        }
        let (packets, bytes) = self.waiting.waiting(now);
        Ahead { packets, bytes, waits_ns: self.waiting.will_wait_ns(now).cast_signed() }
    }

    /// Packets and bytes waiting at `now`.
    pub fn waiting(&mut self, now: Time) -> (u64, u64) {
        match &self.held {
            Some(held) => held.waiting(),
            None => self.waiting.waiting(now),
        }
    }

    /// See [`sawtooth_tcp::steady`].
    pub fn visit(&mut self, now: Time, visit: &mut Visit) {
        let Transmitter { free_ps, free, pace, delays, held, waiting, counters, per_byte: _ } = self;
        visit.needs(pace.is_none() && delays.is_none() && held.is_none());
        visit.picos(free_ps);
        *free = Time::from_nanos(free_ps.div_ceil(PICOS_PER_NANO));
        waiting.visit(now, visit);
        let Counters { packets, drops, bytes, early_drops, marks, overlimits, waited_ns, dropped_waited_ns } = counters;
        [*drops, *early_drops, *marks, *overlimits].into_iter().for_each(|count| visit.same(count));
        visit.needs(*dropped_waited_ns == 0);
        [packets, bytes].into_iter().for_each(|count| visit.count(count));
        visit.count_wide(waited_ns);
    }

    /// Packets that are held, and on no link yet.
    pub fn holding(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.waiting().0.fit_usize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Rng};

    fn place() -> Place {
        Place { frame: 1514, hz: 250, sends: true, rng: Rng::new(1, Purpose::Queue, 0), ends: [].into() }
    }

    fn gigabit(queue_packets: u64) -> Transmitter {
        let config = scenario::Transmitter {
            name: "t".into(),
            rate_bps: 1_000_000_000,
            queue_packets: Some(queue_packets),
            queue_bytes: None,
            pace: None,
            discipline: scenario::Discipline::TailDrop,
        };
        Transmitter::new(&config, place(), false)
    }

    #[test]
    fn departures_follow_each_other_at_the_rate() {
        let mut t = gigabit(10);
        assert_eq!(t.send_steady(1514, Time::ZERO), Some(Time::from_nanos(12_112)));
        assert_eq!(t.send_steady(1514, Time::ZERO), Some(Time::from_nanos(24_224)));
        assert_eq!(t.send_steady(66, Time::from_nanos(30_000)), Some(Time::from_nanos(30_528)));
    }

    #[test]
    fn the_limit_counts_waiting_packets_and_not_the_one_on_the_wire() {
        let mut t = gigabit(2);
        assert!(t.send_steady(1514, Time::ZERO).is_some());
        assert!(t.send_steady(1514, Time::ZERO).is_some());
        assert!(t.send_steady(1514, Time::ZERO).is_some());
        assert!(t.send_steady(1514, Time::ZERO).is_none());
        assert_eq!(t.waiting(Time::ZERO), (2, 3028));
        assert_eq!(t.waiting(Time::from_nanos(12_112)), (1, 1514));
        assert!(t.send_steady(1514, Time::from_nanos(12_112)).is_some());
        assert_eq!(t.counters.drops, 1);
    }

    #[test]
    fn rounding_never_drifts() {
        let config = scenario::Transmitter {
            name: "t".into(),
            rate_bps: 7_000_000_000,
            queue_packets: None,
            queue_bytes: None,
            pace: None,
            discipline: scenario::Discipline::TailDrop,
        };
        let mut t = Transmitter::new(&config, place(), false);
        let mut last = Time::ZERO;
        for _ in 0..7_000 {
            last = t.send_steady(1250, Time::ZERO).unwrap();
        }
        // 7,000 packets of 10,000 bits at 7 Gbit/s.
        assert!((9_999_990..=10_000_000).contains(&last.nanos()), "{last}");
    }
}
