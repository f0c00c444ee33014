//! The distribution of durations: count, mean, extremes and quantiles in bounded memory.

use sawtooth_units::width::{Approx, Fit, Whole};
use serde::Serialize;

/// Buckets per doubling of the duration: a quantile is off by at most 1/64 of itself.
const BUCKETS: u64 = 32;

/// Durations in nanoseconds. Memory grows with the ratio of the longest to the shortest, at most 8 KiB.
#[derive(Clone, Debug, Default)]
pub struct Quantiles {
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    first: usize,
    counts: Vec<u32>,
}

/// The statistics of a [`Quantiles`]; times in seconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Summary {
    pub samples: u64,
    pub min_s: f64,
    pub mean_s: f64,
    pub median_s: f64,
    pub p95_s: f64,
    pub max_s: f64,
}

impl Summary {
    /// The same statistics for durations that are all longer by `ns`.
    pub fn longer_by(self, ns: u64) -> Self {
        let s = ns.approx() / 1e9;
        Summary {
            min_s: self.min_s + s,
            mean_s: self.mean_s + s,
            median_s: self.median_s + s,
            p95_s: self.p95_s + s,
            max_s: self.max_s + s,
            ..self
        }
    }
}

impl Quantiles {
    pub fn add(&mut self, ns: u64) {
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.count += 1;
        self.sum_ns += u128::from(ns);
        let bucket = bucket(ns);
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let missing = self.first - bucket;
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = bucket;
        }
        let index = bucket - self.first;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] = self.counts[index].saturating_add(1);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The shortest, in nanoseconds.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// The duration in nanoseconds that the share `q` (0 … 1) of all durations does not exceed.
    pub fn quantile_ns(&self, q: f64) -> Option<f64> {
        let rank = (q * self.count.approx()).ceil().max(1.0).whole();
        let mut passed = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            passed += u64::from(count);
            if passed >= rank {
                return Some(middle(self.first + index).clamp(self.min_ns.approx(), self.max_ns.approx()));
            }
        }
        None
    }

    pub fn summary(&self) -> Option<Summary> {
        (self.count > 0).then(|| Summary {
            samples: self.count,
            min_s: self.min_ns.approx() / 1e9,
            mean_s: self.sum_ns.approx() / self.count.approx() / 1e9,
            median_s: self.quantile_ns(0.5).unwrap_or(0.0) / 1e9,
            p95_s: self.quantile_ns(0.95).unwrap_or(0.0) / 1e9,
            max_s: self.max_ns.approx() / 1e9,
        })
    }
}

fn bucket(ns: u64) -> usize {
    if ns < BUCKETS {
        return ns.fit_usize();
    }
    let octave = u64::from(ns.ilog2() - BUCKETS.ilog2());
    (octave * BUCKETS + (ns >> octave)).fit_usize()
}

/// The middle of a bucket.
fn middle(bucket: usize) -> f64 {
    let bucket = bucket as u64;
    if bucket < 2 * BUCKETS {
        return bucket.approx();
    }
    let octave = bucket / BUCKETS - 1;
    let lowest = (bucket - octave * BUCKETS) << octave;
    lowest.approx() + (1_u64 << octave).approx() / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_error_is_below_two_percent() {
        let mut spread = Quantiles::default();
        for us in (1..=10_000_u64).rev() {
            spread.add(us * 1000);
        }
        for q in [0.01, 0.5, 0.95, 1.0] {
            let exact = q * 1e7;
            let estimate = spread.quantile_ns(q).unwrap();
            assert!((estimate - exact).abs() < 0.02 * exact, "{q}: {estimate} and {exact}");
        }
        let summary = spread.summary().unwrap();
        assert_eq!((summary.min_s, summary.max_s, summary.samples), (1e-6, 0.01, 10_000));
        assert!((summary.mean_s - 0.005_000_5).abs() < 1e-9);
    }

    #[test]
    fn extreme_u64_values_fit() {
        let mut spread = Quantiles::default();
        spread.add(u64::MAX);
        spread.add(0);
        assert_eq!(spread.summary().unwrap().samples, 2);
        assert!(spread.counts.len() < 2048);
    }
}
