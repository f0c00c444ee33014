//! The next event in a cell: a heap of links (one entry each, by their next arrival), and lazily re-armed timers.

use crate::engine::wheel::Wheel;
use sawtooth_units::Time;

/// Links with packets on them, the earliest arrival first; ties go to the lower index. A link's next arrival only
/// changes while it is on top or when it was idle, so no search is needed.
#[derive(Clone, Debug, Default)]
pub struct LinkHeap {
    heap: Vec<(Time, u32)>,
}

impl LinkHeap {
    pub fn peek(&self) -> Option<(Time, u32)> {
        self.heap.first().copied()
    }

    pub fn push(&mut self, time: Time, link: u32) {
        self.heap.push((time, link));
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

    /// Gives the top its next arrival, or removes it if there is none.
    #[inline]
    pub fn replace_top(&mut self, next: Time) {
        if next == Time::NEVER {
            self.heap.swap_remove(0);
            if self.heap.is_empty() {
                return;
            }
        } else {
            self.heap[0].0 = next;
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

/// A cell with this many timers keeps them on a wheel.
const MANY: usize = 64;

/// Timers by index, each assigned to one cell. A timer that moves later costs nothing until its old entry comes up.
#[derive(Clone, Debug)]
pub struct Timers {
    wheels: Vec<Wheel>,
    /// The number of timers in each cell.
    counts: Vec<usize>,
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    cell: u32,
    due: Time,
    /// The time of its earliest entry on the wheel.
    queued: Time,
}

impl Timers {
    /// One timer for each entry of `homes`, its cell; there are `cells` of them.
    pub fn new(cells: usize, homes: &[u32]) -> Self {
        let mut counts = vec![0usize; cells];
        homes.iter().for_each(|&cell| counts[cell as usize] += 1);
        Timers {
            wheels: counts.iter().map(|&timers| Wheel::new(timers >= MANY)).collect(),
            counts,
            slots: homes.iter().map(|&cell| Slot { cell, due: Time::NEVER, queued: Time::NEVER }).collect(),
        }
    }

    /// Adds a timer to `cell`.
    pub fn add(&mut self, cell: u32) {
        self.slots.push(Slot { cell, due: Time::NEVER, queued: Time::NEVER });
        self.counts[cell as usize] += 1;
        if self.counts[cell as usize] == MANY {
            self.wheels[cell as usize].enlarge();
        }
    }

    /// Sets timer `index` to `due`; `Time::NEVER` cancels it.
    pub fn set(&mut self, index: u32, due: Time) {
        let slot = &mut self.slots[index as usize];
        slot.due = due;
        if due < slot.queued {
            slot.queued = due;
            self.wheels[slot.cell as usize].push(due, index);
        }
    }

    /// When the next timer of `cell` may be due.
    pub fn next_due(&self, cell: u32) -> Time {
        self.wheels[cell as usize].first()
    }

    /// Takes the next entry of `cell`; returns the timer's index if it is really due.
    pub fn pop(&mut self, cell: u32) -> Option<u32> {
        let (time, index) = self.wheels[cell as usize].pop()?;
        let slot = &mut self.slots[index as usize];
        if slot.queued != time {
            return None;
        }
        slot.queued = Time::NEVER;
        if slot.due > time {
            let due = slot.due;
            if due != Time::NEVER {
                self.set(index, due);
            }
            return None;
        }
        slot.due = Time::NEVER;
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
        assert_eq!(heap.peek(), Some((t(10), 1)));
        heap.replace_top(t(25));
        assert_eq!(heap.peek(), Some((t(10), 2)));
        heap.replace_top(Time::NEVER);
        assert_eq!(heap.peek(), Some((t(20), 3)));
        heap.replace_top(Time::NEVER);
        assert_eq!(heap.peek(), Some((t(25), 1)));
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

    #[test]
    fn a_cancelled_timer_never_fires() {
        let mut timers = Timers::new(1, &[0]);
        timers.set(0, t(50));
        timers.set(0, Time::NEVER);
        assert_eq!(timers.pop(0), None);
        assert_eq!(timers.next_due(0), Time::NEVER);
    }
}
