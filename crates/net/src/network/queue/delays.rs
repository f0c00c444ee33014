//! A histogram of packets' waiting times with bins 1/32 of their value wide: quantiles without a list.

use sawtooth_units::Span;
use sawtooth_units::width::{Approx, Fit};

/// Bins per octave, as a power of two.
const FINE: u32 = 5;
/// Delays from 2^42 ns (73 minutes) count as that.
const OCTAVES: u32 = 42 - FINE;
const BINS: usize = ((OCTAVES + 1) << FINE) as usize;

#[derive(Clone, Debug)]
pub struct Delays {
    bins: Box<[u32]>,
    count: u64,
}

fn bin(ns: u64) -> usize {
    let octave = (u64::BITS - ns.leading_zeros()).saturating_sub(FINE + 1);
    let place = (u64::from(octave) << FINE) + (ns >> octave);
    (place.fit_usize()).min(BINS - 1)
}

/// The middle of a bin.
fn middle(bin: usize) -> u64 {
    let octave = (bin.fit_u32() >> FINE).saturating_sub(1);
    let low = (bin as u64 - (u64::from(octave) << FINE)) << octave;
    low + (1 << octave) / 2
}

impl Delays {
    pub fn new() -> Self {
        Delays { bins: vec![0; BINS].into(), count: 0 }
    }

    #[inline]
    pub fn add(&mut self, delay: Span) {
        self.bins[bin(delay.nanos())] += 1;
        self.count += 1;
    }

    /// The delays that these shares of packets (ascending) did not exceed; `None` without packets. Starts again
    /// afterwards.
    pub fn take<const N: usize>(&mut self, shares: [f64; N]) -> Option<[Span; N]> {
        if self.count == 0 {
            return None;
        }
        let mut found = [Span::ZERO; N];
        let (mut seen, mut next) = (0u64, 0);
        for (at, &packets) in self.bins.iter().enumerate().filter(|(_, packets)| **packets > 0) {
            seen += u64::from(packets);
            while next < N && seen.approx() >= shares[next] * self.count.approx() {
                found[next] = Span::from_nanos(middle(at));
                next += 1;
            }
        }
        self.bins.fill(0);
        self.count = 0;
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_quantiles_are_within_a_bin() {
        let mut delays = Delays::new();
        assert!(delays.take([0.5]).is_none());
        for us in 1..=10_000 {
            delays.add(Span::from_nanos(us * 1_000));
        }
        let [median, high, all] = delays.take([0.5, 0.95, 1.0]).unwrap().map(|span| span.secs_f64() * 1e3);
        assert!(
            (median - 5.0).abs() < 5.0 / 32.0 && (high - 9.5).abs() < 9.5 / 32.0 && (all - 10.0).abs() < 10.0 / 32.0
        );
        assert!(delays.take([0.5]).is_none(), "begins anew");
    }

    #[test]
    fn short_delays_are_exact_and_long_ones_bounded() {
        for ns in [0, 1, 31, 32, 33, 63] {
            assert_eq!(middle(bin(ns)), ns);
        }
        for ns in (0..60).map(|bits| 1u64 << bits) {
            let estimate = middle(bin(ns));
            assert!(ns > 1 << 41 || estimate.abs_diff(ns) <= ns / 32, "{ns}: {estimate}");
        }
    }
}
