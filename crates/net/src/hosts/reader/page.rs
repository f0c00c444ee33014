//! A page: objects that are requested as lines become free.

use sawtooth_units::Time;

/// The page that a reader is loading.
#[derive(Clone, Debug, Default)]
pub struct Visit {
    /// How many pages were begun.
    pub number: u64,
    pub began: Time,
    pub objects: u64,
    /// Objects still to be requested; objects received, and their bytes.
    left: u64,
    come: u64,
    pub bytes: u64,
}

impl Visit {
    pub fn begin(&mut self, objects: u64, now: Time) {
        *self = Visit { number: self.number + 1, began: now, objects, left: objects, come: 0, bytes: 0 };
    }

    /// Whether there is an object to request; it then counts as requested.
    pub fn takes_one(&mut self) -> bool {
        let is_left = self.left > 0;
        self.left -= u64::from(is_left);
        is_left
    }

    /// An object has arrived. True: it was the last.
    pub fn has_come(&mut self, bytes: u64) -> bool {
        self.come += 1;
        self.bytes += bytes;
        self.come == self.objects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_complete_when_all_objects_arrived() {
        let mut visit = Visit::default();
        visit.begin(3, Time::from_nanos(5));
        assert_eq!([0; 4].map(|_| visit.takes_one()), [true, true, true, false]);
        assert_eq!([10, 20, 30].map(|bytes| visit.has_come(bytes)), [false, false, true]);
        assert_eq!((visit.number, visit.bytes, visit.began.nanos()), (1, 60, 5));
        visit.begin(1, Time::from_nanos(9));
        assert_eq!((visit.number, visit.bytes, visit.takes_one()), (2, 0, true));
    }
}
