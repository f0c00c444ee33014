//! A queue in a ring of a power of two: what every packet passes on every link, so without anything that it does not need.

#[derive(Clone, Debug)]
pub struct Ring<T> {
    slots: Vec<T>,
    head: usize,
    len: usize,
}

impl<T: Copy + Default> Ring<T> {
    pub fn new() -> Self {
        Ring { slots: vec![T::default(); 16], head: 0, len: 0 }
    }
    pub fn len(&self) -> usize {
        self.len
    }

    fn slot(&self, offset: usize) -> usize {
        (self.head + offset) & (self.slots.len() - 1)
    }

    pub fn front(&self) -> Option<&T> {
        (self.len > 0).then(|| &self.slots[self.slot(0)])
    }

    /// Takes the front off. The ring must not be empty.
    pub fn pop(&mut self) -> T {
        debug_assert!(self.len > 0, "an empty ring has no front");
        let item = self.slots[self.slot(0)];
        self.head = self.slot(1);
        self.len -= 1;
        item
    }

    pub fn push(&mut self, item: T) {
        if self.len == self.slots.len() {
            self.grow();
        }
        let at = self.slot(self.len);
        self.slots[at] = item;
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        self.slots.rotate_left(self.head);
        self.head = 0;
        self.slots.resize(2 * self.slots.len(), T::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(ring.len() as u32, next_in - next_out);
        }
        while ring.len() > 0 {
            ring.pop();
        }
        assert!(ring.front().is_none());
    }
}
