//! Probabilities of Poisson counts, by the regularized lower gamma function P(a, x). It uses the logarithms of `libm`,
//! so that page and command line print the same digits.

use sawtooth_units::width::Approx;

/// The smallest term that still matters.
const SMALLEST: f64 = 1e-15;
/// From this count on, the cube root is normal to six digits of the interval's ends (Wilson and Hilferty, 1931).
const MANY: f64 = 1e5;
const MAX_TERMS: u32 = 100_000;
/// Standard deviations from the center of a normal distribution to either end of its middle 90%.
pub const Z90: f64 = 1.644_853_626_951_472_2;

/// The probability of `count` or more if `mean` are expected.
pub fn at_least(count: u64, mean: f64) -> f64 {
    if count == 0 { 1.0 } else { lower(count.approx(), mean) }
}

/// The middle 90% of the mean of a Poisson count: Jeffreys' gamma(count + 1/2); the low end is 0 if `count` is 0.
pub fn poisson_interval(count: u64) -> (f64, f64) {
    gamma_interval(count.approx())
}

/// The middle 90% of the mean of a sum of `events` geometric lengths, in units of `sum`. Chance in their number
/// and in their lengths add up: a compound Poisson sum has the relative variance (2 - 1 / mean length) / events.
pub fn compound_interval(sum: u64, events: u64) -> (f64, f64) {
    if sum == 0 || events == 0 {
        return poisson_interval(sum);
    }
    let (sum, events) = (sum.approx(), events.approx());
    let worth = events / (2.0 - (events / sum).min(1.0));
    let (low, high) = gamma_interval(worth);
    (low * sum / worth, high * sum / worth)
}

fn gamma_interval(count: f64) -> (f64, f64) {
    let low = if count > 0.0 { inverse(count + 0.5, 0.05) } else { 0.0 };
    (low, inverse(count + 0.5, 0.95))
}

/// P(a, x): a series below the middle, Legendre's continued fraction above it (Abramowitz and Stegun, 6.5.29 and
/// 6.5.31).
fn lower(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let scale = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        let (mut term, mut sum) = (1.0 / a, 1.0 / a);
        for step in 1..MAX_TERMS {
            term *= x / (a + f64::from(step));
            sum += term;
            if term < sum * SMALLEST {
                break;
            }
        }
        return (sum * scale).min(1.0);
    }
    // Lentz's method, from the front.
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (f64::MAX, 1.0 / b);
    let mut fraction = d;
    for step in (1..MAX_TERMS).map(f64::from) {
        let numerator = -step * (step - a);
        b += 2.0;
        d = 1.0 / (numerator * d + b);
        c = b + numerator / c;
        fraction *= d * c;
        if (d * c - 1.0).abs() < SMALLEST {
            break;
        }
    }
    (1.0 - scale * fraction).max(0.0)
}

/// The x at which P(a, x) is `part`, by bisection.
fn inverse(a: f64, part: f64) -> f64 {
    let near = |z: f64| a * libm::pow((1.0 - 1.0 / (9.0 * a) + z / (3.0 * a.sqrt())).max(0.0), 3.0);
    if a > MANY {
        return near(if part < 0.5 { -Z90 } else { Z90 });
    }
    let (mut low, mut high) = (0.0, near(4.0) + 10.0);
    while high - low > 1e-12 * high {
        let middle = f64::midpoint(low, high);
        if lower(a, middle) < part { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varying_lengths_widen_the_interval() {
        assert_eq!(compound_interval(100, 100), poisson_interval(100));
        assert_eq!(compound_interval(0, 0), poisson_interval(0));
        // Mean length 10: as certain as 10 / 1.9 counts.
        let (found, worth) = (compound_interval(100, 10), gamma_interval(10.0 / 1.9));
        assert!((found.0 / 19.0 - worth.0).abs() < 1e-9 && (found.1 / 19.0 - worth.1).abs() < 1e-9, "{found:?}");
    }

    /// SciPy's gammaincinv(count + 1/2, …) and gammainc(count, mean).
    #[test]
    fn intervals_match_scipy() {
        for (count, low, high) in [
            (0, 0.0, 1.920_729_410_3),
            (1, 0.175_923_158_6, 3.907_363_951_6),
            (100, 84.598_159_926, 117.538_254_822),
            (1_000_000, 998_356.214_672, 1_001_645.922_356),
        ] {
            let found = poisson_interval(count);
            assert!((found.0 - low).abs() <= 1e-7 * high && (found.1 - high).abs() <= 1e-7 * high, "{found:?}");
        }
        for (count, mean, chance) in [
            (3, 0.5, 0.014_387_677_966_97),
            (200, 150.0, 5.709_688_574e-5),
            (200, 260.0, 0.999_952_499_876),
            (5, 0.0, 0.0),
            (0, 3.0, 1.0),
        ] {
            assert!((at_least(count, mean) - chance).abs() <= 1e-8 * chance.max(1e-3), "{}", at_least(count, mean));
        }
    }
}
