//! A time series whose intervals double in length, so that their number stays bounded.

use sawtooth_units::width::Fit;

/// Length of the first intervals.
const SHORTEST_NS: u64 = 10_000_000;

/// Most intervals of one direction.
pub const MOST: usize = 4096;

/// Most intervals of all directions together, about 30 MB.
const BUDGET: usize = 1 << 19;

/// Intervals that one of `directions` may have so that all stay within the budget.
pub fn share(directions: usize) -> usize {
    let each = BUDGET / directions.max(1);
    (1 << each.max(64).ilog2()).min(MOST)
}

/// One interval of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// Bytes acknowledged for the first time.
    pub acknowledged: u64,
    /// Bytes captured for the first time.
    pub sent: u64,
    pub packets: u32,
    pub retransmits: u32,
    /// From the capture point to the receiver and back, in seconds.
    pub rtt_sum: f32,
    pub rtt_count: u32,
    /// 0: none.
    pub rtt_min: f32,
    /// From the capture point to the sender and back, in seconds.
    pub sender_sum: f32,
    pub sender_count: u32,
    /// 0: none.
    pub sender_min: f32,
    /// The largest.
    pub in_flight: u32,
    /// The peer's smallest window, plus one; 0: none.
    pub window: u32,
    /// What limited the sender longest, and by how much longer than everything else, in microseconds.
    pub limit: u8,
    pub limit_us: u32,
}

impl Interval {
    pub fn rtt(&mut self, s: f32) {
        self.rtt_sum += s;
        self.rtt_count += 1;
        self.rtt_min = lower(self.rtt_min, s);
    }

    pub fn sender(&mut self, s: f32) {
        self.sender_sum += s;
        self.sender_count += 1;
        self.sender_min = lower(self.sender_min, s);
    }

    pub fn window(&mut self, bytes: u32) {
        let window = bytes.saturating_add(1);
        self.window = if self.window == 0 { window } else { self.window.min(window) };
    }

    /// Keeps the prevailing limit (Boyer and Moore's majority vote, by time).
    pub fn limit(&mut self, limit: u8, us: u32) {
        if limit == self.limit {
            self.limit_us = self.limit_us.saturating_add(us);
        } else if us > self.limit_us {
            self.limit = limit;
            self.limit_us = us - self.limit_us;
        } else {
            self.limit_us -= us;
        }
    }

    fn join(&mut self, other: &Interval) {
        self.acknowledged += other.acknowledged;
        self.sent += other.sent;
        self.packets = self.packets.saturating_add(other.packets);
        self.retransmits = self.retransmits.saturating_add(other.retransmits);
        self.rtt_sum += other.rtt_sum;
        self.rtt_count += other.rtt_count;
        self.rtt_min = lower(self.rtt_min, other.rtt_min);
        self.sender_sum += other.sender_sum;
        self.sender_count += other.sender_count;
        self.sender_min = lower(self.sender_min, other.sender_min);
        self.in_flight = self.in_flight.max(other.in_flight);
        if other.window > 0 {
            self.window(other.window - 1);
        }
        self.limit(other.limit, other.limit_us);
    }
}

/// The smaller of two durations, where 0 means none. A duration too short to differ from 0 counts as one nanosecond.
fn lower(old: f32, new: f32) -> f32 {
    let new = if new <= 0.0 { old } else { new };
    if old <= 0.0 { new } else { old.min(new) }
}

/// Intervals in order of time; their borders are multiples of their length since the capture's start.
#[derive(Debug, Default)]
pub struct Series {
    /// How often the first length was doubled.
    doublings: u32,
    first: u64,
    intervals: Vec<Interval>,
}

impl Series {
    pub fn length_ns(&self) -> u64 {
        SHORTEST_NS << self.doublings
    }

    /// The interval that contains `at_ns` (since the capture's start); at most `most` intervals are kept.
    pub fn at(&mut self, at_ns: u64, most: usize) -> &mut Interval {
        if self.intervals.is_empty() {
            self.first = at_ns / self.length_ns();
        }
        while (at_ns / self.length_ns()).saturating_sub(self.first) >= most as u64 {
            self.fold();
        }
        let index = (at_ns / self.length_ns()).saturating_sub(self.first).fit_usize();
        if index >= self.intervals.len() {
            self.intervals.resize(index + 1, Interval::default());
        }
        &mut self.intervals[index]
    }

    /// The interval of `at_ns` if it exists.
    pub fn existing(&mut self, at_ns: u64) -> Option<&mut Interval> {
        let index = (at_ns / self.length_ns()).checked_sub(self.first)?;
        self.intervals.get_mut(usize::try_from(index).ok()?)
    }

    /// Merges the intervals until there are at most `most`.
    pub fn shorten(&mut self, most: usize) {
        while self.intervals.len() > most {
            self.fold();
        }
        self.intervals.shrink_to_fit();
    }

    /// Each interval with its end in nanoseconds since the capture's start.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Interval)> {
        let length = self.length_ns();
        self.intervals
            .iter()
            .enumerate()
            .map(move |(index, one)| ((self.first + index as u64 + 1).saturating_mul(length), one))
    }

    fn fold(&mut self) {
        let odd = (self.first % 2) as usize;
        let folded = (self.intervals.len() + odd).div_ceil(2);
        for index in 0..self.intervals.len() {
            let one = std::mem::take(&mut self.intervals[index]);
            self.intervals[(index + odd) / 2].join(&one);
        }
        self.intervals.truncate(folded);
        self.first /= 2;
        self.doublings += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_merged_at_the_bound_without_loss() {
        let mut series = Series::default();
        for step in 0..100_000_u64 {
            series.at(55_000_000 + step * 7_000_000, 256).acknowledged += 1;
        }
        assert!(series.intervals.len() <= 256);
        assert_eq!(series.iter().map(|(_, one)| one.acknowledged).sum::<u64>(), 100_000);
        let last = 55_000_000 + 99_999 * 7_000_000;
        let (end, _) = series.iter().last().unwrap();
        assert!(end > last && end - last <= series.length_ns());
        series.shorten(64);
        assert!(series.intervals.len() <= 64);
        assert_eq!(series.iter().map(|(_, one)| one.acknowledged).sum::<u64>(), 100_000);
    }

    #[test]
    fn clock_jump_of_years_is_bounded() {
        let mut series = Series::default();
        series.at(0, MOST).packets += 1;
        series.at(u64::MAX / 2, MOST).packets += 1;
        assert!(series.intervals.len() <= MOST);
        assert_eq!(series.iter().map(|(_, one)| one.packets).sum::<u32>(), 2);
    }

    #[test]
    fn directions_share_one_interval_budget() {
        assert_eq!((share(1), share(128), share(2000)), (4096, 4096, 256));
        assert!(share(1_000_000) >= 64);
    }

    #[test]
    fn prevailing_limit_is_reported() {
        let mut interval = Interval::default();
        interval.limit(1, 40);
        interval.limit(3, 50);
        interval.limit(3, 10);
        assert_eq!(interval.limit, 3);
    }
}
