//! Gaps: sequence numbers that the receiver acknowledged although no segment with them was captured. The capture lost
//! them, they took another path, or they appear after their acknowledgement.

use sawtooth_units::width::Fit;
use std::collections::VecDeque;

/// Ranges remembered for segments that appear later; older ones stay counted as never captured.
const MOST: usize = 64;

/// A range, when it was found missing, and the TSval of the segment that showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub start: i64,
    pub end: i64,
    pub found_ns: u64,
    pub tsval: u32,
}

#[derive(Debug, Default)]
pub struct Gaps {
    all: VecDeque<Gap>,
}

impl Gaps {
    pub fn add(&mut self, gap: Gap) {
        if gap.start < gap.end {
            if self.all.len() == MOST {
                self.all.pop_front();
            }
            self.all.push_back(gap);
        }
    }

    /// The first range that overlaps `start..end`.
    pub fn find(&self, start: i64, end: i64) -> Option<Gap> {
        self.all.iter().find(|gap| gap.start < end && gap.end > start).copied()
    }

    /// Removes `start..end`, which is now captured; returns how many sequence numbers that covers.
    pub fn fill(&mut self, start: i64, end: i64) -> u64 {
        let mut filled = 0;
        let mut index = 0;
        while let Some(gap) = self.all.get_mut(index) {
            let (low, high) = (gap.start.max(start), gap.end.min(end));
            if low >= high {
                index += 1;
                continue;
            }
            filled += (high - low).fit_u64();
            let rest = Gap { start: high, ..*gap };
            gap.end = low;
            match (gap.start < gap.end, rest.start < rest.end) {
                (false, false) => {
                    self.all.remove(index);
                }
                (false, true) => *gap = rest,
                (true, false) => index += 1,
                (true, true) => {
                    self.all.insert(index + 1, rest);
                    index += 2;
                }
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_data_fills_its_gap_once() {
        let mut gaps = Gaps::default();
        gaps.add(Gap { start: 10, end: 40, found_ns: 5, tsval: 0 });
        gaps.add(Gap { start: 50, end: 60, found_ns: 6, tsval: 0 });
        assert_eq!(gaps.find(0, 10), None);
        assert_eq!(gaps.find(35, 55).map(|gap| gap.found_ns), Some(5));
        assert_eq!((gaps.fill(20, 30), gaps.fill(20, 30)), (10, 0));
        assert_eq!(gaps.fill(0, 100), 30);
        assert_eq!(gaps.find(0, 100), None);
    }
}
