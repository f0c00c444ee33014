//! A queue in one slice. Every packet passes it on every link, so it has only what is needed: items come at the end,
//! leave at the front, and move back to the front only where there is no more room behind them.

use std::fmt::{self, Debug, Formatter};

#[derive(Clone)]
pub struct SliceQueue<T> {
    items: Vec<T>,
    /// The first of them have left.
    gone: usize,
}

/// As the items in it: what has left does not matter.
impl<T: Copy + Debug> Debug for SliceQueue<T> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(formatter)
    }
}

impl<T: Copy> SliceQueue<T> {
    pub const fn new() -> Self {
        SliceQueue { items: Vec::new(), gone: 0 }
    }
    pub fn len(&self) -> usize {
        self.items.len() - self.gone
    }
    pub fn as_slice(&self) -> &[T] {
        &self.items[self.gone..]
    }
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.items[self.gone..]
    }

    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.items.get(self.gone)
    }

    /// Takes the front.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let item = *self.items.get(self.gone)?;
        self.gone += 1;
        Some(item)
    }

    /// Takes the items at the front that `is` holds for, none of which is after one that it does not hold for; returns
    /// the last of them. It looks farther and farther ahead, then back by halves.
    pub fn pop_while(&mut self, is: impl Fn(&T) -> bool) -> Option<T> {
        let items = self.as_slice();
        let mut end = 1;
        while items.get(end - 1).is_some_and(&is) {
            end *= 2;
        }
        let from = end / 2;
        let count = from + items[from..items.len().min(end)].partition_point(is);
        let last = items[..count].last().copied();
        self.gone += count;
        if self.len() == 0 {
            self.clear();
        }
        last
    }

    #[inline]
    pub fn push(&mut self, item: T) {
        self.make_room();
        self.items.push(item);
    }

    /// Removes all items. It is worth calling if there are none: the next ones take the first places, which are in the
    /// cache.
    pub fn clear(&mut self) {
        self.items.clear();
        self.gone = 0;
    }

    /// Inserts an item before those at the end that are `after` it.
    pub fn insert(&mut self, item: T, after: impl Fn(&T) -> bool) {
        self.make_room();
        let ahead = self.as_slice().iter().rposition(|other| !after(other)).map_or(0, |last| last + 1);
        self.items.insert(self.gone + ahead, item);
    }

    #[inline(always)]
    fn make_room(&mut self) {
        if self.items.len() == self.items.capacity() {
            self.move_or_grow();
        }
    }

    /// Moves the items to the front if that leaves three quarters of the memory free: then few are moved for each that
    /// comes.
    #[cold]
    #[inline(never)]
    fn move_or_grow(&mut self) {
        if self.gone > self.items.len() / 4 * 3 {
            self.items.drain(..self.gone);
            self.gone = 0;
        } else {
            self.items.reserve(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_before_others_comes_out_before_them() {
        let mut queue = SliceQueue::new();
        (0..40).for_each(|n| queue.push(10 * n));
        (0..20).for_each(|_| _ = queue.pop());
        [395, 205, 390, 500, 1].into_iter().for_each(|item| queue.insert(item, |&other| other > item));
        let all: Vec<u32> = std::iter::from_fn(|| queue.pop()).collect();
        assert!(all.is_sorted() && all.len() == 25, "{all:?}");
    }

    #[test]
    fn a_queue_that_is_never_empty_takes_no_more_memory_with_time() {
        let mut queue = SliceQueue::new();
        for n in 0..10_000 {
            queue.insert(n, |&other| other > n);
            if n >= 10 {
                assert_eq!(queue.pop(), Some(n - 10));
            }
        }
        assert!(queue.items.capacity() <= 8 * 11, "{}", queue.items.capacity());
    }

    #[test]
    fn items_at_the_front_are_taken_up_to_the_first_that_does_not_fit() {
        for (len, bound) in (0..70u32).flat_map(|len| (0..=len).map(move |bound| (len, bound))) {
            let mut queue = SliceQueue::new();
            (0..5).for_each(|_| queue.push(0));
            (0..5).for_each(|_| _ = queue.pop());
            (0..len).for_each(|item| queue.push(item));
            assert_eq!(queue.pop_while(|&item| item < bound), bound.checked_sub(1));
            assert_eq!((queue.front().copied(), queue.len() as u32), ((bound < len).then_some(bound), len - bound));
        }
    }

    #[test]
    fn what_goes_in_comes_out_in_order_while_it_grows_and_moves() {
        let mut queue = SliceQueue::new();
        let (mut next_in, mut next_out, mut most) = (0u32, 0u32, 0);
        for round in 0..200u32 {
            for _ in 0..round % 7 + 3 {
                queue.push(next_in);
                next_in += 1;
            }
            for _ in 0..round % 5 + 1 {
                assert_eq!(queue.front(), Some(&next_out));
                assert_eq!(queue.pop(), Some(next_out));
                next_out += 1;
            }
            if queue.len() == 0 {
                queue.clear();
            }
            assert_eq!(queue.len() as u32, next_in - next_out);
            most = most.max(queue.len());
        }
        assert!(queue.items.capacity() <= 8 * most);
        while queue.pop().is_some() {}
        assert_eq!((queue.front(), queue.len()), (None, 0));
    }
}
