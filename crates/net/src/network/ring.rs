//! A queue in a ring whose size is a power of two. Every packet passes it on every link, so it has only what is needed.

/// `head` and `tail` keep counting, whatever the size.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    slots: Box<[T]>,
    head: usize,
    tail: usize,
}

impl<T: Copy + Default> Ring<T> {
    pub fn new() -> Self {
        Ring { slots: vec![T::default(); 16].into(), head: 0, tail: 0 }
    }
    pub fn len(&self) -> usize {
        self.tail - self.head
    }

    fn slot(&self, count: usize) -> usize {
        count & (self.slots.len() - 1)
    }

    #[inline]
    pub fn front(&self) -> Option<&T> {
        (self.head != self.tail).then(|| &self.slots[self.slot(self.head)])
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (self.head..self.tail).map(|count| &self.slots[self.slot(count)])
    }

    /// Takes the front. The ring must not be empty.
    #[inline]
    pub fn pop(&mut self) -> T {
        debug_assert!(self.len() > 0, "an empty ring has no front");
        let item = self.slots[self.slot(self.head)];
        self.head += 1;
        item
    }

    /// Takes the items at the front that `is` holds for, none of which is after one that it does not hold for; returns
    /// the last of them. It looks farther and farther ahead, then back by halves.
    pub fn pop_while(&mut self, is: impl Fn(&T) -> bool) -> Option<T> {
        let (mut count, mut step) = (0, 1);
        let holds = |count: usize| count <= self.len() && is(&self.slots[self.slot(self.head + count - 1)]);
        while holds(count + step) {
            count += step;
            step *= 2;
        }
        while step > 1 {
            step /= 2;
            count += if holds(count + step) { step } else { 0 };
        }
        self.head += count;
        (count > 0).then(|| self.slots[self.slot(self.head - 1)])
    }

    /// Moves the rest to the first slots, so that a ring that was once long does not use all its memory in turn.
    #[inline]
    pub fn rewind(&mut self) {
        if self.head == self.tail {
            (self.head, self.tail) = (0, 0);
            return;
        }
        let (first, len) = (self.slot(self.head), self.len());
        if first >= len && first + len <= self.slots.len() {
            self.slots.copy_within(first..first + len, 0);
            (self.head, self.tail) = (0, len);
        }
    }

    #[inline]
    pub fn push(&mut self, item: T) {
        if self.len() == self.slots.len() {
            self.grow();
        }
        let at = self.slot(self.tail);
        self.slots[at] = item;
        self.tail += 1;
    }

    /// Inserts an item before those at the end that are `after` it.
    pub fn insert(&mut self, item: T, after: impl Fn(&T) -> bool) {
        self.push(item);
        let mut at = self.tail - 1;
        while at > self.head && after(&self.slots[self.slot(at - 1)]) {
            let (here, before) = (self.slot(at), self.slot(at - 1));
            self.slots[here] = self.slots[before];
            at -= 1;
        }
        let here = self.slot(at);
        self.slots[here] = item;
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![T::default(); 2 * self.slots.len()];
        let mask = slots.len() - 1;
        for count in self.head..self.tail {
            slots[count & mask] = self.slots[self.slot(count)];
        }
        self.slots = slots.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_before_others_comes_out_before_them() {
        let mut ring = Ring::new();
        (0..40).for_each(|n| ring.push(10 * n));
        (0..20).for_each(|_| _ = ring.pop());
        [395, 205, 390, 500, 1].into_iter().for_each(|item| ring.insert(item, |&other| other > item));
        let all: Vec<u32> = std::iter::from_fn(|| (ring.len() > 0).then(|| ring.pop())).collect();
        assert!(all.is_sorted() && all.len() == 25, "{all:?}");
    }

    #[test]
    fn items_at_the_front_are_taken_up_to_the_first_that_does_not_fit() {
        for (len, bound) in (0..70u32).flat_map(|len| (0..=len).map(move |bound| (len, bound))) {
            let mut ring = Ring::new();
            (0..5).for_each(|_| ring.push(0));
            (0..5).for_each(|_| _ = ring.pop());
            (0..len).for_each(|item| ring.push(item));
            assert_eq!(ring.pop_while(|&item| item < bound), bound.checked_sub(1));
            assert_eq!((ring.front().copied(), ring.len() as u32), ((bound < len).then_some(bound), len - bound));
        }
    }

    #[test]
    fn what_goes_in_comes_out_in_order_over_growth_and_wrap() {
        let mut ring = Ring::new();
        let (mut next_in, mut next_out) = (0u32, 0u32);
        for round in 0..200u32 {
            for _ in 0..round % 7 + 3 {
                ring.push(next_in);
                next_in += 1;
            }
            for _ in 0..round % 5 + 1 {
                assert_eq!(ring.front(), Some(&next_out));
                assert_eq!(ring.pop(), next_out);
                next_out += 1;
            }
            if round % 3 == 0 {
                ring.rewind();
            }
            assert_eq!(ring.len() as u32, next_in - next_out);
        }
        while ring.len() > 0 {
            ring.pop();
        }
        assert!(ring.front().is_none());
    }
}
