//! The maximum or minimum of a stream within a sliding window, in constant space (Kathleen Nichols' three candidates).
//!
//! A sample as good as an older one outlives it, so candidates for the extreme get worse the younger they are. Three
//! are kept, apart in time: the extreme itself, and its successors when it leaves the window.

use crate::clock::Clock;
use crate::steady::Visit;

const CANDIDATES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Candidate {
    at: u32,
    value: u32,
}

/// The largest sample within a window. Time is any count that may wrap: ticks, rounds.
#[derive(Clone, Copy, Debug)]
pub struct WindowedMax {
    /// From the oldest and best to the youngest.
    candidates: [Candidate; CANDIDATES],
}

impl WindowedMax {
    pub fn new(at: u32, value: u32) -> Self {
        WindowedMax { candidates: [Candidate { at, value }; CANDIDATES] }
    }

    pub fn get(&self) -> u32 {
        self.candidates[0].value
    }

    /// Takes `value`, seen at `at`; returns the maximum.
    pub fn update(&mut self, window: u32, at: u32, value: u32) -> u32 {
        let newest = Candidate { at, value };
        for candidate in &mut self.candidates {
            if candidate.value <= value {
                *candidate = newest;
            }
        }
        let age = at.wrapping_sub(self.candidates[0].at);
        if age > window {
            self.expire(window, newest);
        } else {
            self.spread(window, age, newest);
        }
        self.get()
    }

    /// Candidates that left the window are replaced by the newest.
    #[cold]
    fn expire(&mut self, window: u32, newest: Candidate) {
        while newest.at.wrapping_sub(self.candidates[0].at) > window {
            self.candidates.rotate_left(1);
            self.candidates[CANDIDATES - 1] = newest;
        }
    }

    /// Two candidates of the same time are worth one. The second is needed after the window's first quarter, the third
    /// from its second half: the first sample at that time is taken.
    fn spread(&mut self, window: u32, age: u32, newest: Candidate) {
        for (place, wanted_from) in [(1, window / 4), (2, window / 2)] {
            if age > wanted_from && self.candidates[place].at == self.candidates[place - 1].at {
                self.candidates[place..].fill(newest);
            }
        }
    }
}

/// The smallest sample within a window: the largest of complements.
#[derive(Clone, Copy, Debug)]
pub struct WindowedMin(WindowedMax);

impl WindowedMin {
    pub fn new(at: u32, value: u32) -> Self {
        WindowedMin(WindowedMax::new(at, !value))
    }

    pub fn get(&self) -> u32 {
        !self.0.get()
    }

    /// See [`crate::steady`]. `window` is in ticks.
    pub fn visit(&mut self, window: u32, clock: Clock, visit: &mut Visit) {
        let [first, second, third] = self.0.candidates.each_ref().map(|candidate| candidate.at);
        let ages = [(first == second, window / 4), (second == third, window / 2), (true, window)];
        for (_, age) in ages.into_iter().filter(|(matters, _)| *matters) {
            visit.until_unless_seen(first, clock, age);
        }
        self.0.candidates.iter_mut().for_each(|candidate| visit.seen(&mut candidate.at, clock.hz()));
    }

    /// Takes `value`, seen at `at`; returns the minimum.
    pub fn update(&mut self, window: u32, at: u32, value: u32) -> u32 {
        !self.0.update(window, at, !value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Random;

    fn maxima(window: u32, samples: impl IntoIterator<Item = (u32, u32)>) -> Vec<u32> {
        let mut max = WindowedMax::new(0, 0);
        samples.into_iter().map(|(at, value)| max.update(window, at, value)).collect()
    }

    #[test]
    fn a_new_maximum_replaces_all() {
        let mut max = WindowedMax::new(0, 5);
        max.update(10, 1, 9);
        assert_eq!(max.candidates, [Candidate { at: 1, value: 9 }; 3]);
        max.update(10, 2, 9);
        assert_eq!(max.candidates[0].at, 2, "an equal one is younger");
    }

    #[test]
    fn the_maximum_leaves_with_its_window() {
        let falling = (1..=13).map(|at| (at, 100 - at));
        assert_eq!(maxima(10, falling), [99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 96, 96]);
    }

    #[test]
    fn a_gap_longer_than_the_window_forgets_everything() {
        assert_eq!(maxima(10, [(1, 50), (12, 7)]), [50, 7]);
    }

    #[test]
    fn the_time_may_wrap() {
        let mut max = WindowedMax::new(u32::MAX - 1, 50);
        assert_eq!([max.update(10, 2, 7), max.update(10, 10, 7)], [50, 7]);
    }

    #[test]
    fn the_minimum_lasts_one_window_and_then_gives_way_to_the_second_best() {
        let mut min = WindowedMin::new(0, 10);
        let seen = [(30, 20), (60, 30), (101, 40), (102, 5)].map(|(at, value)| min.update(100, at, value));
        assert_eq!(seen, [10, 10, 20, 5]);
    }

    /// Compared with the whole history: never above the true maximum, never below the newest sample.
    #[test]
    fn the_estimate_is_between_the_newest_sample_and_the_true_maximum() {
        let mut random = Random::new(7);
        let mut max = WindowedMax::new(0, 0);
        let mut history: Vec<(u32, u32)> = vec![(0, 0)];
        let mut at = 0;
        for _ in 0..5_000 {
            at += random.below(3);
            let value = random.below(1_000);
            history.push((at, value));
            max.update(10, at, value);
            let highest = history.iter().rev().take_while(|s| at - s.0 <= 10).map(|s| s.1).max();
            assert!(max.get() >= value && Some(max.get()) <= highest);
        }
    }
}
