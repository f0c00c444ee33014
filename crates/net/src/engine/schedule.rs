//! The next event in a cell: a heap of links (one entry each, by their next arrival), and lazily re-armed timers.

use crate::engine::wheel::{Entry, Wheel};
use sawtooth_tcp::clock::Clock;
use sawtooth_units::{Span, Time};

/// Links with packets on them, the earliest arrival first; ties go to the lower index. A link's next arrival only
/// changes while it is on top or when it was idle, so no search is needed.
#[derive(Clone, Debug)]
pub struct LinkHeap {
    /// The first, kept apart because most cells have no other; [`Time::NEVER`]: none.
    top: (Time, u32),
    heap: Vec<(Time, u32)>,
}

impl Default for LinkHeap {
    fn default() -> Self {
        LinkHeap { top: (Time::NEVER, 0), heap: Vec::new() }
    }
}

impl LinkHeap {
    /// The first arrival, [`Time::NEVER`] if there is none, and its link.
    #[inline(always)]
    pub fn first(&self) -> (Time, u32) {
        self.top
    }

    pub fn push(&mut self, time: Time, link: u32) {
        let other = if (time, link) < self.top { std::mem::replace(&mut self.top, (time, link)) } else { (time, link) };
        if other.0 == Time::NEVER {
            return;
        }
        self.heap.push(other);
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent] <= self.heap[at] {
                break;
            }
            self.heap.swap(parent, at);
            at = parent;
        }
    }

    /// Everything arrives later.
    pub fn delay(&mut self, by: Span) {
        let all = std::iter::once(&mut self.top).chain(&mut self.heap);
        all.filter(|(time, _)| *time < Time::NEVER).for_each(|(time, _)| *time += by);
    }

    /// Gives the top its next arrival, or removes it if there is none.
    #[inline(always)]
    pub fn replace_top(&mut self, next: Time) {
        self.top.0 = next;
        if !self.heap.is_empty() {
            self.sift_down();
        }
    }

    /// Lets another one be first if it is earlier than the top, whose time has changed.
    #[inline(never)]
    fn sift_down(&mut self) {
        if self.top < self.heap[0] {
            return;
        }
        let later = std::mem::replace(&mut self.top, self.heap[0]);
        if later.0 < Time::NEVER {
            self.heap[0] = later;
        } else {
            self.heap.swap_remove(0);
            if self.heap.is_empty() {
                return;
            }
        }
        let entry = self.heap[0];
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child + 1] < self.heap[child] {
                child += 1;
            }
            if entry <= self.heap[child] {
                break;
            }
            self.heap[at] = self.heap[child];
            at = child;
        }
        self.heap[at] = entry;
    }
}

/// A rank on Linux's wheel has its level in the highest bits, and below them how late it was put there.
const LATER_BITS: u32 = 28;
const LEVELS: u32 = 8;
/// The rank of timers that are not on Linux's wheel. They come after those, by index.
const UNRANKED: u32 = u32::MAX;

/// A cell with this many timers keeps them on a wheel.
const MANY: usize = 64;

/// Timers by index, each assigned to one cell. A timer that moves later costs nothing until its old entry comes up.
#[derive(Clone, Debug)]
pub struct Timers {
    wheels: Vec<Wheel>,
    /// The number of timers in each cell.
    counts: Vec<usize>,
    slots: Vec<Slot>,
    /// How often a timer of Linux's wheel was put into another bucket.
    ticks: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    cell: u32,
    /// When its timer on Linux's wheel fires, when it was put there, and how many had been before.
    tick: Time,
    put: Clock,
    before: u32,
    due: Time,
    /// Its earliest entry on the wheel.
    queued: Entry,
}

impl Slot {
    fn new(cell: u32) -> Self {
        let never = Time::NEVER;
        let put = Clock::new(Time::ZERO, 1);
        Slot { cell, tick: never, put, before: 0, due: never, queued: Entry::NEVER }
    }

    /// Its place among those of the same time: the lowest first.
    fn rank(&self) -> u32 {
        if self.due != self.tick || self.due == Time::NEVER {
            return UNRANKED;
        }
        let later = !self.before & ((1 << LATER_BITS) - 1);
        (LEVELS - self.put.wheel_level(self.tick)) << LATER_BITS | later
    }

    /// Puts it on its wheel, if it comes before its entry there; returns the cell of that wheel.
    #[inline(always)]
    fn put(&mut self, index: u32, wheels: &mut [Wheel]) -> Option<u32> {
        if self.due > self.queued.time() {
            return None;
        }
        let entry = Entry::new(self.due, self.rank(), index);
        if entry >= self.queued {
            return None;
        }
        self.queued = entry;
        wheels[self.cell as usize].push(entry);
        Some(self.cell)
    }
}

impl Timers {
    /// One timer for each entry of `homes`, its cell; there are `cells` of them.
    pub fn new(cells: usize, homes: &[u32]) -> Self {
        let mut counts = vec![0usize; cells];
        homes.iter().for_each(|&cell| counts[cell as usize] += 1);
        Timers {
            wheels: counts.iter().map(|&timers| Wheel::new(timers >= MANY)).collect(),
            counts,
            slots: homes.iter().map(|&cell| Slot::new(cell)).collect(),
            ticks: 0,
        }
    }

    /// Adds a timer to `cell`.
    pub fn add(&mut self, cell: u32) {
        self.slots.push(Slot::new(cell));
        self.counts[cell as usize] += 1;
        if self.counts[cell as usize] == MANY {
            self.wheels[cell as usize].enlarge();
        }
    }

    /// Sets timer `index` to `due`; `Time::NEVER` cancels it. Returns the cell whose next timer may have changed.
    #[inline(always)]
    pub fn set(&mut self, index: u32, due: Time) -> Option<u32> {
        let slot = &mut self.slots[index as usize];
        slot.due = due;
        slot.put(index, &mut self.wheels)
    }

    /// As [`Self::set`], with a timer on Linux's wheel (kernel/time/timer.c) that fires at `tick`. In one tick, timers
    /// that were set from farther away come first, then the one that came into its bucket last. A timer that is set
    /// again within its bucket keeps its place, also if it was cancelled meanwhile: Linux leaves it on the wheel
    /// (`inet_csk_clear_xmit_timer`).
    #[inline(always)]
    pub fn tick(&mut self, index: u32, due: Time, tick: Time, clock: Clock) -> Option<u32> {
        let slot = &mut self.slots[index as usize];
        if tick != slot.tick && tick < Time::NEVER {
            self.ticks = self.ticks.wrapping_add(1);
            (slot.tick, slot.put, slot.before) = (tick, clock, self.ticks);
        }
        self.set(index, due)
    }

    /// When each timer is due, by index.
    pub fn due(&self) -> impl Iterator<Item = (u32, Time)> {
        (0..).zip(self.slots.iter().map(|slot| slot.due))
    }

    /// Cancels some, as if the others had been set at once now, however much later that is.
    pub fn cancel(&mut self, is_cancelled: impl Fn(u32) -> bool) {
        self.wheels = self.counts.iter().map(|&timers| Wheel::new(timers >= MANY)).collect();
        for (index, slot) in (0..).zip(&mut self.slots) {
            slot.due = if is_cancelled(index) { Time::NEVER } else { slot.due };
            slot.queued = Entry::NEVER;
            slot.put(index, &mut self.wheels);
        }
    }

    /// When the next timer of `cell` may be due.
    pub fn next_due(&self, cell: u32) -> Time {
        self.wheels[cell as usize].first()
    }

    /// Takes the next entry of `cell`; returns the timer's index if it is really due.
    pub fn pop(&mut self, cell: u32) -> Option<u32> {
        let entry = self.wheels[cell as usize].pop()?;
        let (time, index) = (entry.time(), entry.index());
        let slot = &mut self.slots[index as usize];
        if slot.queued != entry {
            return None;
        }
        slot.queued = Entry::NEVER;
        if slot.due > time || slot.rank() > entry.rank() {
            slot.put(index, &mut self.wheels);
            return None;
        }
        slot.due = Time::NEVER;
        if slot.tick <= time {
            slot.tick = Time::NEVER;
        }
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn links_come_up_in_order_of_arrival_and_then_of_index() {
        let mut heap = LinkHeap::default();
        for (time, link) in [(30, 0), (10, 2), (10, 1), (20, 3)] {
            heap.push(t(time), link);
        }
        assert_eq!(heap.first(), (t(10), 1));
        heap.replace_top(t(25));
        assert_eq!(heap.first(), (t(10), 2));
        heap.replace_top(Time::NEVER);
        assert_eq!(heap.first(), (t(20), 3));
        heap.replace_top(Time::NEVER);
        assert_eq!(heap.first(), (t(25), 1));
        heap.replace_top(Time::NEVER);
        assert_eq!(heap.first(), (t(30), 0));
        heap.replace_top(Time::NEVER);
        assert_eq!(heap.first().0, Time::NEVER);
        heap.push(t(40), 5);
        assert_eq!(heap.first(), (t(40), 5));
    }

    #[test]
    fn a_timer_that_moved_later_fires_once_and_late() {
        let mut timers = Timers::new(1, &[0, 0]);
        timers.set(0, t(10));
        timers.set(0, t(50));
        timers.set(1, t(20));
        assert_eq!(timers.pop(0), None);
        assert_eq!(timers.pop(0), Some(1));
        assert_eq!(timers.next_due(0), t(50));
        assert_eq!(timers.pop(0), Some(0));
        assert_eq!(timers.next_due(0), Time::NEVER);
    }

    #[test]
    fn a_timer_that_moved_earlier_fires_once() {
        let mut timers = Timers::new(1, &[0]);
        timers.set(0, t(50));
        timers.set(0, t(10));
        assert_eq!(timers.pop(0), Some(0));
        assert_eq!(timers.pop(0), None);
        assert_eq!(timers.next_due(0), Time::NEVER);
    }

    fn in_order(timers: &mut Timers) -> Vec<u32> {
        std::iter::from_fn(|| {
            let due = timers.next_due(0);
            (due < Time::NEVER).then(|| timers.pop(0))
        })
        .flatten()
        .collect()
    }

    #[test]
    fn timers_of_one_tick_fire_in_the_reverse_order_in_which_they_were_set() {
        let mut timers = Timers::new(1, &[0; 5]);
        let clock = Clock::new(t(0), 250);
        let due = t(40_000_000);
        timers.set(4, due);
        timers.tick(0, t(20_000_000), t(20_000_000), clock);
        (1..4).for_each(|index| _ = timers.tick(index, due, due, clock));
        // Set again within its bucket, it keeps its place, whatever is due meanwhile; from another it comes first.
        timers.tick(1, t(30_000_000), due, clock);
        timers.tick(1, due, due, clock);
        timers.tick(0, due, due, clock);
        assert_eq!(in_order(&mut timers), [0, 3, 2, 1, 4]);
    }

    #[test]
    fn of_one_tick_those_from_farther_levels_of_the_wheel_fire_first() {
        let mut timers = Timers::new(1, &[0; 3]);
        let due = t(4_000_000 * 128);
        for (index, now) in [(0, 0), (1, 100), (2, 10)] {
            timers.tick(index, due, due, Clock::new(t(4_000_000 * now), 250));
        }
        assert_eq!(in_order(&mut timers), [2, 0, 1]);
    }

    #[test]
    fn a_cancelled_timer_never_fires() {
        let mut timers = Timers::new(1, &[0]);
        timers.set(0, t(50));
        timers.set(0, Time::NEVER);
        assert_eq!(timers.pop(0), None);
        assert_eq!(timers.next_due(0), Time::NEVER);
    }
}
