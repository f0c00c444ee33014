//! What happens next: a heap of links (one entry each, by their next arrival) and a heap of timers, re-armed lazily.

use sawtooth_units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Links with packets on their way, the earliest arrival first; ties go to the lower index. A link's next arrival only
/// changes while it is on top or when it was idle, so there is no search.
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

    /// Gives the top its next arrival, or removes it.
    pub fn replace_top(&mut self, next: Option<Time>) {
        match next {
            Some(time) => self.heap[0].0 = time,
            None => {
                self.heap.swap_remove(0);
                if self.heap.is_empty() {
                    return;
                }
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

/// Timers by index. A timer that moves later costs nothing until its old entry comes up.
#[derive(Clone, Debug)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    /// For each timer: when it is due, and when its earliest entry in the heap is.
    slots: Vec<(Time, Time)>,
}

impl Timers {
    pub fn new(count: usize) -> Self {
        Timers { heap: BinaryHeap::new(), slots: vec![(Time::NEVER, Time::NEVER); count] }
    }

    /// Sets timer `index` to `due`; `Time::NEVER` cancels it.
    pub fn set(&mut self, index: u32, due: Time) {
        let slot = &mut self.slots[index as usize];
        slot.0 = due;
        if due < slot.1 {
            slot.1 = due;
            self.heap.push(Reverse((due, index)));
        }
    }

    pub fn next_due(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |&Reverse((time, _))| time)
    }

    /// Takes the next entry; the timer's index if it is really due now.
    pub fn pop(&mut self) -> Option<u32> {
        let Reverse((time, index)) = self.heap.pop()?;
        let slot = &mut self.slots[index as usize];
        if slot.1 != time {
            return None;
        }
        slot.1 = Time::NEVER;
        if slot.0 > time {
            let due = slot.0;
            if due != Time::NEVER {
                self.set(index, due);
            }
            return None;
        }
        slot.0 = Time::NEVER;
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
        heap.replace_top(Some(t(25)));
        assert_eq!(heap.peek(), Some((t(10), 2)));
        heap.replace_top(None);
        assert_eq!(heap.peek(), Some((t(20), 3)));
        heap.replace_top(None);
        assert_eq!(heap.peek(), Some((t(25), 1)));
    }

    #[test]
    fn a_timer_that_moved_later_fires_once_and_late() {
        let mut timers = Timers::new(2);
        timers.set(0, t(10));
        timers.set(0, t(50));
        timers.set(1, t(20));
        assert_eq!(timers.pop(), None);
        assert_eq!(timers.pop(), Some(1));
        assert_eq!(timers.next_due(), t(50));
        assert_eq!(timers.pop(), Some(0));
        assert_eq!(timers.next_due(), Time::NEVER);
    }

    #[test]
    fn a_timer_that_moved_earlier_fires_once() {
        let mut timers = Timers::new(1);
        timers.set(0, t(50));
        timers.set(0, t(10));
        assert_eq!(timers.pop(), Some(0));
        assert_eq!(timers.pop(), None);
        assert_eq!(timers.next_due(), Time::NEVER);
    }

    #[test]
    fn a_cancelled_timer_never_fires() {
        let mut timers = Timers::new(1);
        timers.set(0, t(50));
        timers.set(0, Time::NEVER);
        assert_eq!(timers.pop(), None);
        assert_eq!(timers.next_due(), Time::NEVER);
    }
}
