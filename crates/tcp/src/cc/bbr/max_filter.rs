//! Windowed maximum by three estimates, Linux 6.12 (`win_minmax.c`, after Kathleen Nichols).
//!
//! Keeps the best, second and third best of a window in constant space. Each is younger than the one before; when the
//! best grows too old the second takes its place, so that the maximum never rests on a sample outside the window.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Estimate {
    at: u32,
    value: u32,
}

/// The maximum of the samples no older than a window. Time is any wrapping count: BBR's is round trips.
#[derive(Clone, Debug)]
pub(super) struct MaxFilter {
    best: [Estimate; 3],
}

impl MaxFilter {
    pub(super) fn new(at: u32, value: u32) -> Self {
        MaxFilter { best: [Estimate { at, value }; 3] }
    }

    pub(super) fn get(&self) -> u32 {
        self.best[0].value
    }

    /// Add a sample (`minmax_running_max`).
    pub(super) fn update(&mut self, window: u32, at: u32, value: u32) {
        let sample = Estimate { at, value };
        let [first, second, third] = &mut self.best;
        if value >= first.value || at.wrapping_sub(third.at) > window {
            // A new maximum, or nothing left in the window: what came before has no say any more.
            self.best = [sample; 3];
            return;
        }
        if value >= second.value {
            *second = sample;
            *third = sample;
        } else if value >= third.value {
            *third = sample;
        }
        self.expire(window, sample);
    }

    /// Promote younger estimates as time passes (`minmax_subwin_update`).
    fn expire(&mut self, window: u32, sample: Estimate) {
        let [first, second, third] = self.best;
        let age = sample.at.wrapping_sub(first.at);
        if age > window {
            self.best = [second, third, sample];
            if sample.at.wrapping_sub(second.at) > window {
                self.best = [third, sample, sample];
            }
        } else if second.at == first.at && age > window / 4 {
            // A quarter of the window without a new second best: take it from the second quarter.
            self.best = [first, sample, sample];
        } else if third.at == second.at && age > window / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maxima(window: u32, samples: impl IntoIterator<Item = (u32, u32)>) -> Vec<u32> {
        let mut f = MaxFilter::new(0, 0);
        let mut seen = Vec::new();
        for (at, value) in samples {
            f.update(window, at, value);
            seen.push(f.get());
        }
        seen
    }

    #[test]
    fn a_new_maximum_replaces_all() {
        let mut f = MaxFilter::new(0, 5);
        f.update(10, 1, 9);
        assert_eq!(f.best, [Estimate { at: 1, value: 9 }; 3]);
        f.update(10, 2, 9);
        assert_eq!(f.best[0].at, 2, "an equal one is younger");
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
        let mut f = MaxFilter::new(u32::MAX - 1, 50);
        f.update(10, 2, 7);
        assert_eq!(f.get(), 50);
        f.update(10, 10, 7);
        assert_eq!(f.get(), 7);
    }

    /// Against the whole history: never above the true maximum, never below the newest sample, and right whenever the
    /// last sample is the maximum.
    #[test]
    fn the_estimate_lies_between_the_newest_sample_and_the_true_maximum() {
        let mut random = crate::cc::bbr::random::Random::new(7);
        let mut f = MaxFilter::new(0, 0);
        let mut history: Vec<(u32, u32)> = vec![(0, 0)];
        let mut at = 0;
        for _ in 0..5_000 {
            at += random.below(3);
            let value = random.below(1_000);
            history.push((at, value));
            f.update(10, at, value);
            let highest = history.iter().rev().take_while(|s| at - s.0 <= 10).map(|s| s.1).max();
            assert!(f.get() >= value && Some(f.get()) <= highest);
        }
    }
}
