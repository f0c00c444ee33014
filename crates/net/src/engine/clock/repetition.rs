//! One period of a connection's packets, and what follows from many of them in closed form: rounds, which begin at
//! another place in each period, and timestamps.

use crate::hosts::connection::{Connection, Phase};
use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::receiver::{Buffer, Receiver};
use sawtooth_tcp::sender::Rounds;
use sawtooth_units::width::Fit;
use sawtooth_units::{Span, Time};
use std::ops::Range;

const NANOS_PER_SEC: u64 = 1_000_000_000;
const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_MICRO: u64 = 1_000;
/// Guesses off by more than this are not corrected step by step.
const NEAR: usize = 8;

/// Numbers that grow, and grow by a constant with each period.
#[derive(Clone, Debug, Default)]
struct Growing {
    values: Vec<u64>,
    by: u64,
}

impl Growing {
    /// `None`: there are none, or they do not grow.
    fn new(values: impl Iterator<Item = u64>, by: u64) -> Option<Self> {
        let values: Vec<u64> = values.collect();
        (values.is_sorted() && !values.is_empty()).then_some(Growing { values, by })
    }

    fn at(&self, index: u64) -> u64 {
        let count = self.values.len() as u64;
        self.values[(index % count).fit_usize()] + index / count * self.by
    }

    /// The index of the first value of `least` or more, from the index `from` on.
    fn first(&self, least: u64, from: u64) -> u64 {
        let (count, last) = (self.values.len(), self.values[self.values.len() - 1]);
        let periods = least.saturating_sub(last).div_ceil(self.by);
        let least = least.saturating_sub(periods * self.by);
        let share = least.saturating_sub(self.values[0]).saturating_mul(count as u64) / self.by;
        let mut at = share.fit_usize().min(count - 1);
        let mut steps = 0;
        while steps < NEAR && at > 0 && self.values[at - 1] >= least {
            (at, steps) = (at - 1, steps + 1);
        }
        while steps < NEAR && self.values[at] < least {
            (at, steps) = (at + 1, steps + 1);
        }
        if steps == NEAR {
            at = self.values.partition_point(|&value| value < least);
        }
        (periods * count as u64 + at as u64).max(from)
    }
}

/// A period as it is recorded. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Recording {
    first: Standing,
    last: Standing,
    /// When a segment came, the next expected byte after it, and what was offered before.
    arrivals: Vec<[u64; 3]>,
    /// When an acknowledgement came, the first unacknowledged byte after it, and the end of what was sent before.
    acks: Vec<[u64; 3]>,
    sent: Vec<Sent>,
    /// Its timer might have fired before an event, had ticks begun elsewhere.
    is_late: bool,
}

/// Something left: when, the first unacknowledged byte then, its end, and the segments in flight with it.
#[derive(Clone, Copy, Debug)]
struct Sent {
    time: u64,
    una: u64,
    until: u64,
    in_flight: u32,
}

/// A connection between two events.
#[derive(Clone, Copy, Debug)]
struct Standing {
    next: u64,
    segments: u64,
    una: u64,
    sent: u64,
    offered: u64,
    /// It delays an acknowledgement.
    delays: bool,
}

impl Standing {
    fn of(connection: &Connection) -> Option<Self> {
        let (Phase::Established(sender), Some(receiver)) = (&connection.phase, &connection.receiver) else {
            return None;
        };
        Some(Standing {
            next: receiver.expects(),
            segments: receiver.delivered_segments(),
            una: sender.flight.snd_una,
            sent: sender.flight.snd_nxt,
            offered: receiver.offered(),
            delays: receiver.delays(),
        })
    }
}

impl Recording {
    pub fn begin(connection: &Connection) -> Option<Self> {
        let first = Standing::of(connection)?;
        Some(Recording { first, last: first, arrivals: Vec::new(), acks: Vec::new(), sent: Vec::new(), is_late: false })
    }

    /// The next event is at `next`.
    pub fn expect(&mut self, connection: &Connection, next: Time) {
        if let Phase::Established(sender) = &connection.phase {
            self.is_late |= !sender.is_before_timeout(connection.sender_clock(next));
        }
    }

    /// What the connection did at this instant. `None`: more than one thing, or something else.
    pub fn note(&mut self, connection: &Connection, now: Time) -> Option<()> {
        let (before, after, time) = (self.last, Standing::of(connection)?, now.nanos());
        let Phase::Established(sender) = &connection.phase else { return None };
        let in_flight = sender.flight.packets_out;
        if in_flight == 0 {
            return None;
        }
        if after.next > before.next {
            if after.segments - before.segments != 1 || before.delays && after.delays {
                return None;
            }
            self.arrivals.push([time, after.next, before.offered]);
        }
        if after.una > before.una {
            self.acks.push([time, after.una, before.sent]);
        }
        if after.sent > before.sent {
            self.sent.push(Sent { time, una: after.una, until: after.sent, in_flight });
        }
        self.last = after;
        Some(())
    }
}

/// Whether times that repeat after `span` are always closer than this many ticks.
fn are_close(events: &[[u64; 3]], span: u64, ticks: u64, hz: u32) -> bool {
    let most = ticks * NANOS_PER_SEC / u64::from(hz);
    let wrap = events.first().zip(events.last()).map(|(first, last)| first[0] + span - last[0]);
    events.windows(2).map(|pair| pair[1][0] - pair[0][0]).chain(wrap).all(|gap| gap < most)
}

/// What a connection does in one period.
#[derive(Clone, Debug)]
pub struct Repetition {
    /// Bytes in a period.
    bytes: u64,
    /// When segments arrive, the next expected byte, and how much the receiver has offered then.
    arrivals: Growing,
    next: Growing,
    offered: Vec<u64>,
    /// When the acknowledgement left whose timestamp a segment echoes; absent without timestamps.
    echoed: Option<Growing>,
    /// The first unacknowledged byte after an acknowledgement, and the end of what was sent before it.
    acked: Growing,
    sent_before: Vec<u64>,
    /// The first unacknowledged byte when something is sent; and how far on there are more in flight.
    una: Growing,
    sent: Vec<Sent>,
    fuller: Vec<Option<u64>>,
    hz: u32,
}

impl Repetition {
    /// `None`: it does what is not understood.
    pub fn new(recorded: Recording, connection: &Connection, span: Span) -> Option<Self> {
        let (Recording { first, last, arrivals, acks, sent, is_late }, span) = (recorded, span.nanos());
        let bytes = last.una - first.una;
        let clock = connection.receiver_clock(Time::ZERO);
        // Timers never fire, and the delay of acknowledgements stays.
        let is_timely = are_close(&arrivals, span, Receiver::keeps_delay(clock).saturating_sub(1), clock.hz())
            && (!is_late || are_close(&acks, span, 1, connection.from_hz));
        if !is_timely || [last.next - first.next, last.sent - first.sent] != [bytes; 2] {
            return None;
        }
        let in_flight: Vec<u32> = sent.iter().map(|sent| sent.in_flight).collect();
        let mut repetition = Repetition {
            bytes,
            arrivals: Growing::new(arrivals.iter().map(|arrival| arrival[0]), span)?,
            next: Growing::new(arrivals.iter().map(|arrival| arrival[1]), bytes)?,
            offered: arrivals.iter().map(|arrival| arrival[2]).collect(),
            echoed: None,
            acked: Growing::new(acks.iter().map(|ack| ack[1]), bytes)?,
            sent_before: acks.iter().map(|ack| ack[2]).collect(),
            una: Growing::new(sent.iter().map(|sent| sent.una), bytes)?,
            fuller: fuller(&in_flight),
            sent,
            hz: connection.to_hz,
        };
        if connection.timestamps {
            let starts = [first.next].into_iter().chain(repetition.next.values.iter().copied());
            let echoed = |start: u64| repetition.acknowledged(repetition.departure(start).1)?.try_into().ok();
            let echoed: Option<Vec<u64>> = starts.take(arrivals.len()).map(echoed).collect();
            repetition.echoed = Some(Growing::new(echoed?.into_iter(), span)?);
        }
        Some(repetition)
    }

    /// In which period, from now on or before, and where in it, `value` is reached that grows by `by`; `last` is the
    /// last of this period.
    fn period(value: i64, last: u64, by: u64) -> (i64, u64) {
        let (last, by) = (last.cast_signed(), by.cast_signed());
        let periods = (value - last - 1).div_euclid(by) + 1;
        (periods, (value - periods * by).cast_unsigned())
    }

    /// When the segment that begins at `seq` left, and the first unacknowledged byte then.
    fn departure(&self, seq: u64) -> (i64, i64) {
        let last = self.sent[self.sent.len() - 1].until;
        let (periods, end) = Self::period(seq.cast_signed() + 1, last, self.bytes);
        let sent = self.sent[self.sent.partition_point(|sent| sent.until < end)];
        let [by, bytes] = [self.arrivals.by, self.bytes].map(|by| periods * by.cast_signed());
        (sent.time.cast_signed() + by, sent.una.cast_signed() + bytes)
    }

    /// When the receiver acknowledged everything before `una`: when that arrived.
    fn acknowledged(&self, una: i64) -> Option<i64> {
        let next = &self.next.values;
        let (periods, una) = Self::period(una, next[next.len() - 1], self.bytes);
        let at = next.binary_search(&una).ok()?;
        Some(self.arrivals.values[at].cast_signed() + periods * self.arrivals.by.cast_signed())
    }

    /// The timestamps of a segment in flight that begins at `seq`: its own, and its echo.
    pub fn stamps(&self, seq: u64) -> Option<(u32, u32)> {
        let (time, una) = self.departure(seq);
        Some((stamp(time.fit_u64()), stamp(self.acknowledged(una)?.fit_u64())))
    }

    /// The timestamp of the acknowledgement of everything before `una`.
    pub fn stamp_of(&self, una: u64) -> Option<u32> {
        Some(stamp(self.acknowledged(una.cast_signed())?.fit_u64()))
    }

    /// The most segments in flight.
    pub fn most_in_flight(&self) -> u32 {
        self.sent.iter().map(|sent| sent.in_flight).max().unwrap_or(0)
    }

    /// The sender's rounds after the periods with these numbers.
    pub fn rounds(&self, mut rounds: Rounds, periods: Range<u64>) -> Rounds {
        let count = self.sent_before.len() as u64;
        let mut at = self.acked.first(rounds.variance_end + 1, periods.start * count);
        while at < periods.end * count {
            rounds.variance_end = self.sent_before[(at % count).fit_usize()] + at / count * self.bytes;
            at = self.acked.first(rounds.variance_end + 1, at + 1);
        }
        let count = self.sent.len() as u64;
        let mut from = periods.start * count;
        let is_fuller = |at: &u64| self.sent[(at % count).fit_usize()].in_flight > rounds.most_in_flight;
        let mut fuller = (from..from + count).find(is_fuller);
        loop {
            let at = self.una.first(rounds.usage_end, from).min(fuller.unwrap_or(u64::MAX));
            if at >= periods.end * count {
                return rounds;
            }
            let sent = &self.sent[(at % count).fit_usize()];
            rounds.usage_end = sent.until + at / count * self.bytes;
            rounds.most_in_flight = sent.in_flight;
            fuller = self.fuller[(at % count).fit_usize()].map(|on| at + on);
            from = at + 1;
        }
    }

    /// The receive buffer after the periods with these numbers, whose segments take the steps that change how it is
    /// sized. `None`: its size changes.
    pub fn sized(&self, mut buffer: Buffer, periods: Range<u64>) -> Option<Buffer> {
        let (count, sizes) = (self.offered.len() as u64, buffer.sizes());
        let mut from = periods.start * count;
        loop {
            let (byte, micros, echo) = buffer.next_round();
            let window = self.next.first(byte, from);
            let space = self.arrivals.first(micros.saturating_mul(NANOS_PER_MICRO), from);
            let newer = u64::from(echo - 1) * NANOS_PER_MILLI;
            let echo = self.echoed.as_ref().map(|echoed| (echoed.first(newer, from), echoed));
            let at = window.min(space).min(echo.map_or(u64::MAX, |(at, _)| at));
            if at >= periods.end * count {
                return Some(buffer);
            }
            let (next, clock) = (self.next.at(at), Clock::new(Time::from_nanos(self.arrivals.at(at)), self.hz));
            buffer.sample_rtt_window(next, self.offered[(at % count).fit_usize()], clock);
            buffer.sample_rtt_echo(echo.map_or(0, |(_, echoed)| stamp(echoed.at(at))), clock);
            buffer.adjust(next, 0, clock);
            if buffer.sizes() != sizes {
                return None;
            }
            from = at + 1;
        }
    }
}

/// For each number, how far on in the cycle a larger one is.
fn fuller(cycle: &[u32]) -> Vec<Option<u64>> {
    let mut found = vec![None; cycle.len()];
    let mut open: Vec<usize> = Vec::new();
    for at in 0..2 * cycle.len() {
        let now = cycle[at % cycle.len()];
        while let Some(before) = open.pop_if(|before| cycle[*before % cycle.len()] < now) {
            if before < cycle.len() {
                found[before] = Some((at - before) as u64);
            }
        }
        open.push(at);
    }
    found
}

fn stamp(nanos: u64) -> u32 {
    Clock::new(Time::from_nanos(nanos), 1_000).timestamp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_large_enough_is_found_in_any_period_and_where_the_guess_is_far_off() {
        let crowded: Vec<u64> = (0..100).chain([1_000]).collect();
        for (values, by) in [(vec![3, 4, 4, 40, 41, 90], 100), (crowded, 2_000)] {
            let growing = Growing::new(values.into_iter(), by).unwrap();
            let all: Vec<u64> = (0..600).map(|index| growing.at(index)).collect();
            for least in 0..5_000 {
                let expected = all.iter().position(|&value| value >= least).unwrap_or(0) as u64;
                assert_eq!(growing.first(least, 0), expected, "{least}");
                assert_eq!(growing.first(least, expected + 3), expected + 3);
            }
        }
    }

    #[test]
    fn a_larger_one_may_follow_in_the_next_cycle() {
        assert_eq!(fuller(&[5, 2, 3, 3]), [None, Some(1), Some(2), Some(1)]);
    }
}
