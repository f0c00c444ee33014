//! A queue of times: a heap of near times, and a hierarchical wheel (Varghese and Lauck 1987) of distant ones.
//!
//! With a thousand flows, most timers are so far ahead that sorting them among all others would be wasted. The order is
//! exact: a wheel slot is emptied into the heap before its time comes.

use sawtooth_units::Time;
use sawtooth_units::width::{Fit, Low};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slots of the lowest level last `1 << GRAIN` nanoseconds: 66 µs.
const GRAIN: u32 = 16;
const SLOT_BITS: u32 = 10;
const SLOTS: usize = 1 << SLOT_BITS;
/// Enough for 200 days.
const LEVELS: usize = 4;

/// A timer's index, below its rank among those of the same time, below the time: the order is that of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry(u128);

impl Entry {
    /// Before every other one of the same time, which is [`Time::NEVER`].
    pub const NEVER: Entry = Entry((Time::NEVER.nanos() as u128) << 64);

    #[inline]
    pub fn new(time: Time, rank: u32, index: u32) -> Self {
        Entry(u128::from(time.nanos()) << 64 | u128::from(rank) << 32 | u128::from(index))
    }

    #[inline]
    pub fn time(self) -> Time {
        Time::from_nanos((self.0 >> 64).low_u64())
    }

    #[inline]
    pub fn rank(self) -> u32 {
        (self.0 >> 32).low_u32()
    }

    #[inline]
    pub fn index(self) -> u32 {
        self.0.low_u32()
    }
}

#[derive(Clone, Debug)]
pub struct Wheel {
    near: BinaryHeap<Reverse<Entry>>,
    /// Nanoseconds before which everything is in the heap.
    edge: u64,
    /// One level after the other. An entry's level is that of the highest digit (base `SLOTS`) in which it differs from
    /// the edge; its slot is that digit.
    far: Vec<Vec<Entry>>,
    /// Which slots are not empty.
    occupied: [[u64; SLOTS / 64]; LEVELS],
}

impl Wheel {
    /// `large`: many entries are expected; otherwise only the heap is used.
    pub fn new(large: bool) -> Self {
        let (edge, slots) = if large { (0, LEVELS * SLOTS) } else { (u64::MAX, 0) };
        Wheel { near: BinaryHeap::new(), edge, far: vec![Vec::new(); slots], occupied: [[0; SLOTS / 64]; LEVELS] }
    }

    /// Many entries are expected from now on.
    pub fn enlarge(&mut self) {
        let near = std::mem::replace(self, Wheel::new(true)).near;
        near.into_iter().for_each(|Reverse(entry)| self.push(entry));
    }

    #[inline(never)]
    pub fn push(&mut self, entry: Entry) {
        if entry.time().nanos() < self.edge {
            self.near.push(Reverse(entry));
        } else {
            self.put_far(entry);
        }
        if self.near.is_empty() {
            self.bring_near();
        }
    }

    /// The earliest time; `Time::NEVER` if empty.
    #[inline]
    pub fn first(&self) -> Time {
        self.near.peek().map_or(Time::NEVER, |&Reverse(entry)| entry.time())
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Entry> {
        let Reverse(entry) = self.near.pop()?;
        if self.near.is_empty() {
            self.bring_near();
        }
        Some(entry)
    }

    fn put_far(&mut self, entry: Entry) {
        let nanos = entry.time().nanos();
        let differs = (nanos ^ self.edge) >> GRAIN;
        let level = (differs.checked_ilog2().unwrap_or(0) / SLOT_BITS) as usize;
        let slot = slot_at(nanos, level);
        self.far[level * SLOTS + slot].push(entry);
        self.occupied[level][slot / 64] |= 1 << (slot % 64);
    }

    /// Moves the earliest slot's entries into the heap, which is empty; does nothing if there are none.
    fn bring_near(&mut self) {
        while let Some((level, slot)) = self.first_slot() {
            let shift = GRAIN + SLOT_BITS * level.fit_u32();
            let start = self.edge >> (shift + SLOT_BITS) << (shift + SLOT_BITS) | (slot as u64) << shift;
            if level > 0 {
                self.edge = start;
                self.spread(level, slot);
                continue;
            }
            self.edge = start + (1 << GRAIN);
            let mut entries = self.empty(level, slot);
            self.near.extend(entries.drain(..).map(Reverse));
            self.far[slot] = entries;
            // When the edge enters a slot of a higher level, that slot is distributed over the lower levels.
            let mut level = 1;
            while slot_at(self.edge, level - 1) == 0 && level < LEVELS {
                self.spread(level, slot_at(self.edge, level));
                level += 1;
            }
            return;
        }
    }

    fn first_slot(&self) -> Option<(usize, usize)> {
        self.occupied.iter().enumerate().find_map(|(level, words)| {
            let word = words.iter().position(|&bits| bits != 0)?;
            Some((level, 64 * word + words[word].trailing_zeros() as usize))
        })
    }

    /// Empties a slot; the caller returns its buffer.
    fn empty(&mut self, level: usize, slot: usize) -> Vec<Entry> {
        self.occupied[level][slot / 64] &= !(1 << (slot % 64));
        std::mem::take(&mut self.far[level * SLOTS + slot])
    }

    fn spread(&mut self, level: usize, slot: usize) {
        let mut entries = self.empty(level, slot);
        entries.drain(..).for_each(|entry| self.put_far(entry));
        self.far[level * SLOTS + slot] = entries;
    }
}

fn slot_at(nanos: u64, level: usize) -> usize {
    (nanos >> (GRAIN + SLOT_BITS * level.fit_u32())).fit_usize() % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Rng};

    #[test]
    fn entries_come_in_the_order_of_a_heap() {
        for (seed, reach) in [(1, 20), (2, 100_000), (3, 10_000_000), (4, 5_000_000_000), (5, 1 << 50)] {
            let mut rng = Rng::new(seed, Purpose::Lifetime, 0);
            let (mut wheel, mut heap, mut now) = (Wheel::new(true), BinaryHeap::new(), 0);
            for index in 0..20_000 {
                let entry = Entry::new(Time::from_nanos(now + rng.between(0, reach)), 7, index % 100);
                wheel.push(entry);
                heap.push(Reverse(entry));
                assert_eq!(wheel.first(), heap.peek().expect("one was pushed").0.time());
                while rng.between(0, 9) < 5 {
                    let (entry, expected) = (wheel.pop(), heap.pop());
                    assert_eq!(entry, expected.map(|Reverse(entry)| entry));
                    now = entry.map_or(now, |entry| entry.time().nanos());
                    if now > 1 << 51 {
                        return;
                    }
                }
            }
            while let Some(Reverse(expected)) = heap.pop() {
                assert_eq!(wheel.pop(), Some(expected));
            }
            assert_eq!((wheel.pop(), wheel.first()), (None, Time::NEVER));
        }
    }

    #[test]
    fn entry_may_precede_the_prefetched_one() {
        let mut wheel = Wheel::new(true);
        let t = Time::from_nanos;
        wheel.push(Entry::new(t(3_000_000_000), 0, 0));
        assert_eq!(wheel.first(), t(3_000_000_000));
        wheel.push(Entry::new(t(5), 0, 1));
        wheel.push(Entry::new(t(3_000_000_001), 0, 2));
        wheel.push(Entry::new(t(4_000_000), 0, 3));
        assert_eq!([(); 4].map(|()| wheel.pop().map(Entry::index)), [Some(1), Some(3), Some(0), Some(2)]);
    }
}
