//! Comparing a simulation's state with itself one period earlier, and moving it by many periods.
//!
//! A deterministic system whose state is an earlier one, shifted, does from then on what it did from there, shifted.
//! So if nothing outside interferes, many periods have the same effect as one of them, many times, and need not be
//! simulated. Shifted means: times count from now, sequence numbers from the connection's first unacknowledged byte,
//! and counters, which decide nothing, differ by a constant.
//!
//! One visit of the state serves both ends. It *looks*, which gives a [`View`], and two views give a [`Step`]; or it
//! *moves* the state by many steps. For a connection the visits name the fields that shift. The rest must be equal,
//! which is compared as `Debug` text with the shifting fields blanked ([`Visit::whole`]): a field that no visit names
//! can prevent a skip, never falsify one. Visits of links, queues, transmitters and packets name all fields. Whatever
//! else a simulation holds must be at rest, which the simulator checks before it looks. What a visit does not
//! understand it calls [`Visit::unknown`], and nothing is skipped.
//!
//! Three kinds of state do not repeat with the packets: ticks and milliseconds of the kernel's clocks, rounds that
//! begin at another packet in each period, and filters of the last samples. While nothing is lost they decide nothing,
//! so looking ignores them. Moving sets clocks as if they had been read now, and a skip ends early enough before the
//! next event that all of them are renewed by then. Rounds are computed by whoever moves the state.

use crate::clock::Clock;
use sawtooth_units::width::Low;
use sawtooth_units::{Span, Time};
use std::collections::VecDeque;
use std::fmt::{Debug, Write};

/// The state at one time.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub now: Time,
    /// Equal one period later.
    words: Vec<u64>,
    texts: String,
    /// Differ by a constant.
    counts: Vec<u128>,
    /// Times that stay or move, in nanoseconds.
    anchors: Vec<u64>,
    /// When the filters' samples were seen, in ticks, and how many there are in a second.
    seen: Vec<(u32, u32)>,
    /// Something else may happen at these times; with the tick of a sample that prevents it while it is fresh.
    limits: Vec<(Time, Option<(u32, u32)>)>,
    /// Sequence numbers that may not be passed, and the one now.
    ends: Vec<[u64; 2]>,
    is_unknown: bool,
}

/// How the state differs from that one period earlier.
#[derive(Clone, Debug)]
pub struct Step {
    pub span: Span,
    counts: Vec<u128>,
    anchors: Vec<u64>,
    seen: Vec<bool>,
}

impl View {
    pub fn is_known(&self) -> bool {
        !self.is_unknown
    }

    /// The step from `self` to `later`, if the state repeats. Microseconds repeat only after whole ones.
    pub fn step(&self, later: &View) -> Option<Step> {
        let span = later.now - self.now;
        let lengths = |view: &View| [view.counts.len(), view.anchors.len(), view.seen.len(), view.ends.len()];
        let is_same = self.words == later.words && self.texts == later.texts && lengths(self) == lengths(later);
        if !self.is_known() || !later.is_known() || !is_same || !span.nanos().is_multiple_of(1_000) {
            return None;
        }
        let seen = |(&(before, hz), &(after, _)): (&(u32, u32), &(u32, u32))| {
            let is_fresh = is_fresh(after, hz, later.now, span);
            (is_fresh || before == after).then_some(is_fresh)
        };
        let moved = |(before, after): (&u64, &u64)| {
            let by = after.wrapping_sub(*before);
            [0, span.nanos()].contains(&by).then_some(by)
        };
        Some(Step {
            span,
            anchors: self.anchors.iter().zip(&later.anchors).map(moved).collect::<Option<_>>()?,
            counts: self.counts.iter().zip(&later.counts).map(|(before, after)| after.wrapping_sub(*before)).collect(),
            seen: self.seen.iter().zip(&later.seen).map(seen).collect::<Option<_>>()?,
        })
    }

    /// The time from which something else may happen, if everything repeats after `span`.
    pub fn limit(&self, span: Span) -> Time {
        let applies = |&&(time, seen): &&(Time, Option<(u32, u32)>)| {
            time >= self.now && !seen.is_some_and(|(at, hz)| is_fresh(at, hz, self.now, span))
        };
        self.limits.iter().filter(applies).map(|(time, _)| *time).min().unwrap_or(Time::NEVER)
    }

    /// How many times the step from `before` may be repeated before a sequence number comes near its end.
    pub fn most(&self, before: &View) -> u64 {
        let left = self.ends.iter().zip(&before.ends).map(|(now, then)| match now[1] - then[1] {
            0 => u64::MAX,
            step => ((now[0] - now[1]) / step).saturating_sub(2),
        });
        left.min().unwrap_or(u64::MAX)
    }
}

/// Whether a sample seen at the tick `at` was surely seen in the last `span`.
fn is_fresh(at: u32, hz: u32, now: Time, span: Span) -> bool {
    let then = Time::from_nanos(now.nanos().saturating_sub(span.nanos()));
    let [now, then] = [now, then].map(|time| Clock::new(time, hz).jiffies());
    now.wrapping_sub(at) < now.wrapping_sub(then)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Look,
    /// Look, and blank what shifts; then put it back.
    Blank,
    Restore,
    Move,
}

/// The first unacknowledged byte and the count of deliveries of a connection, and how far they move.
#[derive(Clone, Copy, Debug, Default)]
struct Base {
    una: u64,
    delivered: u64,
    una_ahead: u64,
    delivered_ahead: u64,
}

/// A visit of the state: it looks, or moves what it sees.
#[derive(Debug)]
pub struct Visit<'a> {
    pub view: View,
    mode: Mode,
    by: Option<(&'a Step, u64)>,
    blanked: VecDeque<u64>,
    /// Places in the step's lists.
    counted: usize,
    anchored: usize,
    seen: usize,
    bases: Vec<Base>,
    base: Base,
}

impl<'a> Visit<'a> {
    pub fn looking(now: Time) -> Self {
        Visit {
            view: View { now, ..View::default() },
            mode: Mode::Look,
            by: None,
            blanked: VecDeque::new(),
            counted: 0,
            anchored: 0,
            seen: 0,
            bases: Vec::new(),
            base: Base::default(),
        }
    }

    /// Moves the state at `now` by `times` steps.
    pub fn moving(now: Time, step: &'a Step, times: u64) -> Self {
        Visit { mode: Mode::Move, by: Some((step, times)), ..Visit::looking(now) }
    }

    pub fn is_moving(&self) -> bool {
        self.mode == Mode::Move
    }

    /// How far it moves; zero while it looks.
    pub fn ahead(&self) -> Span {
        self.by.map_or(Span::ZERO, |(step, times)| Span::from_nanos(step.span.nanos() * times))
    }

    /// Compares all of `value`, except for what `act` visits.
    pub fn whole<T: Debug>(&mut self, value: &mut T, mut act: impl FnMut(&mut T, &mut Self)) {
        if self.is_moving() {
            return act(value, self);
        }
        self.mode = Mode::Blank;
        act(value, self);
        // Writing to a string never fails.
        let _ = writeln!(self.view.texts, "{value:?}");
        self.mode = Mode::Restore;
        act(value, self);
        self.mode = Mode::Look;
    }

    /// Looks at a value with `look`, or moves it to `moved`.
    fn shift(&mut self, value: &mut u64, look: impl FnOnce(&mut View, u64), moved: impl FnOnce(&mut Self, u64) -> u64) {
        match self.mode {
            Mode::Move => *value = moved(self, *value),
            Mode::Restore => *value = self.blanked.pop_front().unwrap_or_default(),
            Mode::Look => look(&mut self.view, *value),
            Mode::Blank => {
                look(&mut self.view, *value);
                self.blanked.push_back(std::mem::take(value));
            }
        }
    }
    fn narrow(&mut self, value: &mut u32, act: impl FnOnce(&mut Self, &mut u64)) {
        let mut wide = u64::from(*value);
        act(self, &mut wide);
        *value = wide.low_u32();
    }

    /// This state is not understood: nothing is skipped.
    pub fn unknown(&mut self) {
        self.view.is_unknown = true;
    }
    pub fn needs(&mut self, is_understood: bool) {
        self.view.is_unknown |= !is_understood && self.mode != Mode::Restore;
    }

    /// Nothing is skipped beyond `time`, if that is not past.
    pub fn until(&mut self, time: Time) {
        self.view.limits.push((time, None));
    }
    /// Nor once a filter's sample, seen `at`, is this many ticks old.
    pub fn until_unless_seen(&mut self, at: u32, clock: Clock, age: u32) {
        if self.mode != Mode::Restore {
            self.view.limits.push((clock.after(at, age), Some((at, clock.hz()))));
        }
    }
    /// The byte `now` never passes `end`.
    pub fn ends(&mut self, end: u64, now: u64) {
        if self.mode != Mode::Restore {
            self.view.ends.push([end, now]);
        }
    }

    /// It does not change. Not needed within [`Self::whole`].
    pub fn same(&mut self, word: impl Into<u64>) {
        if matches!(self.mode, Mode::Look | Mode::Blank) {
            self.view.words.push(word.into());
        }
    }

    fn relative(&mut self, value: &mut u64, base: u64, ahead: u64) {
        self.shift(
            value,
            |view, value| view.words.push(value.wrapping_sub(base)),
            |_, value| value.wrapping_add(ahead),
        );
    }
    /// It moves with the packets.
    pub fn time(&mut self, time: &mut Time) {
        if *time == Time::NEVER {
            return self.same(u64::MAX / 2);
        }
        let mut nanos = time.nanos();
        self.nanos(&mut nanos);
        *time = Time::from_nanos(nanos);
    }
    pub fn nanos(&mut self, nanos: &mut u64) {
        self.relative(nanos, self.view.now.nanos(), self.ahead().nanos());
    }
    pub fn micros(&mut self, micros: &mut u64) {
        self.relative(micros, self.view.now.micros(), self.ahead().micros());
    }
    /// In picoseconds; one that is past no longer matters.
    pub fn picos(&mut self, picos: &mut u64) {
        let now = self.view.now.nanos() * 1_000;
        if *picos <= now {
            return self.same(0u64);
        }
        self.relative(picos, now, self.ahead().nanos() * 1_000);
    }

    /// The next visited values belong to a connection with these counts.
    pub fn connection(&mut self, una: u64, delivered: u64) {
        if self.mode == Mode::Restore {
            return;
        }
        let [una_ahead, delivered_ahead] = [una, delivered].map(|value| match self.by {
            None => {
                self.view.counts.push(value.into());
                0
            }
            Some(_) => self.count_ahead().low_u64(),
        });
        self.base = Base { una, delivered, una_ahead, delivered_ahead };
        self.bases.push(self.base);
    }
    /// The next visited values belong to the connection with this index.
    pub fn owner(&mut self, index: u32) {
        self.base = self.bases.get(index as usize).copied().unwrap_or_default();
    }

    pub fn sequence(&mut self, seq: &mut u64) {
        self.relative(seq, self.base.una, self.base.una_ahead);
    }
    /// One that no longer matters once it is past.
    pub fn mark(&mut self, seq: &mut u64) {
        let Base { una, una_ahead, .. } = self.base;
        let look = |view: &mut View, seq: u64| view.words.push(seq.saturating_sub(una));
        self.shift(seq, look, |_, seq| if seq > una { seq.wrapping_add(una_ahead) } else { seq });
    }
    /// The low half of the connection's count of deliveries at some time.
    pub fn deliveries(&mut self, count: &mut u32) {
        let Base { delivered, delivered_ahead, .. } = self.base;
        match self.by {
            None => self.same(delivered.low_u32().wrapping_sub(*count)),
            Some(_) => *count = count.wrapping_add(delivered_ahead.low_u32()),
        }
    }

    /// It only counts.
    pub fn count(&mut self, count: &mut u64) {
        let moved = |visit: &mut Self, value: u64| value.wrapping_add(visit.count_ahead().low_u64());
        self.shift(count, |view, value| view.counts.push(value.into()), moved);
    }
    /// As [`Self::count`], outside of [`Self::whole`].
    pub fn count_wide(&mut self, count: &mut u128) {
        match self.by {
            None => self.view.counts.push(*count),
            Some(_) => *count = count.wrapping_add(self.count_ahead()),
        }
    }
    fn count_ahead(&mut self) -> u128 {
        let ahead = self.by.map_or(0, |(step, times)| step.counts[self.counted].wrapping_mul(u128::from(times)));
        self.counted += 1;
        ahead
    }

    /// Since when something lasts, which decides nothing: as long as it lasts it stays, else it moves.
    pub fn since(&mut self, time: &mut Time) {
        let mut nanos = time.nanos();
        let look = |view: &mut View, nanos: u64| view.anchors.push(nanos);
        self.shift(&mut nanos, look, |visit, nanos| {
            let by = visit.by.map_or(0, |(step, times)| step.anchors[visit.anchored] * times);
            visit.anchored += 1;
            nanos + by
        });
        *time = Time::from_nanos(nanos);
    }

    /// It follows rounds, and is set afterwards.
    pub fn round(&mut self, value: &mut u64) {
        self.shift(value, |_, _| (), |_, value| value);
    }
    pub fn round_count(&mut self, value: &mut u32) {
        self.narrow(value, Self::round);
    }

    /// A time in ticks that follows the clock, not the packets.
    pub fn ticks(&mut self, ticks: &mut u64, hz: u32) {
        self.shift(ticks, |_, _| (), |visit, ticks| visit.ticked(ticks, hz));
    }
    pub fn ticks32(&mut self, ticks: &mut u32, hz: u32) {
        self.narrow(ticks, |visit, ticks| visit.ticks(ticks, hz));
    }
    fn ticked(&self, ticks: u64, hz: u32) -> u64 {
        let at = |now| Clock::new(now, hz).jiffies64();
        ticks + at(self.view.now + self.ahead()) - at(self.view.now)
    }
    /// When a filter saw a sample, in ticks: it moves if the last period saw it.
    pub fn seen(&mut self, at: &mut u32, hz: u32) {
        self.narrow(at, |visit, at| {
            let look = |view: &mut View, at: u64| view.seen.push((at.low_u32(), hz));
            visit.shift(at, look, |visit, at| {
                let moves = visit.by.is_some_and(|(step, _)| step.seen[visit.seen]);
                visit.seen += 1;
                if moves { visit.ticked(at, hz) } else { at }
            });
        });
    }
    /// A timestamp, in milliseconds; 0: there is none.
    pub fn stamp(&mut self, stamp: &mut u32) {
        self.narrow(stamp, |visit, stamp| {
            let look = |view: &mut View, stamp: u64| view.words.push(u64::from(stamp > 0));
            visit.shift(stamp, look, |visit, stamp| if stamp > 0 { visit.ticked(stamp, 1_000) } else { 0 });
        });
    }
    /// When a timer on the kernel's wheel fires that expires at this tick.
    pub fn fires(&mut self, timer: &mut Time, expires: u64, hz: u32) {
        if *timer == Time::NEVER {
            return;
        }
        let mut nanos = timer.nanos();
        self.shift(
            &mut nanos,
            |_, _| (),
            |visit, _| Clock::new(visit.view.now + visit.ahead(), hz).wheel_time(expires).nanos(),
        );
        *timer = Time::from_nanos(nanos);
    }
}
