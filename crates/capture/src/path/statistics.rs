//! Sums, quantiles and positions in columns of numbers.

use sawtooth_units::width::{Approx, Whole};

/// The position at which `value` would be inserted into `sorted`, before equal values.
pub fn before<T: PartialOrd>(sorted: &[T], value: T) -> usize {
    sorted.partition_point(|one| *one < value)
}

/// The position at which `value` would be inserted into `sorted`, after equal values.
pub fn after<T: PartialOrd>(sorted: &[T], value: T) -> usize {
    sorted.partition_point(|one| *one <= value)
}

/// The running maximum.
pub fn highest(values: &[i64]) -> Vec<i64> {
    let mut most = i64::MIN;
    values
        .iter()
        .map(|&one| {
            most = most.max(one);
            most
        })
        .collect()
}

/// Prefix sums: one more than there are values. NaN counts as 0.
pub fn sums(values: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    std::iter::once(0.0)
        .chain(values.iter().map(|&one| {
            sum += if one.is_nan() { 0.0 } else { one };
            sum
        }))
        .collect()
}

/// Prefix sums of counts.
pub fn counts(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut sum = 0;
    std::iter::once(0)
        .chain(values.map(|one| {
            sum += one;
            sum
        }))
        .collect()
}

/// The value below which the share `part` of the values is, interpolated; `sorted` is not empty.
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let position = part * (sorted.len() - 1).approx();
    let below = usize::try_from(position.floor().whole()).unwrap_or(0);
    let (low, high) = (sorted[below], sorted[(below + 1).min(sorted.len() - 1)]);
    low + (high - low) * (position - position.floor())
}

pub fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

pub fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}

/// In percent, with `digits` digits after the point.
pub fn percent(share: f64, digits: usize) -> String {
    format!("{:.digits$}%", share * 100.0)
}

/// Three significant digits.
pub fn three(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let size = libm::log10(value.abs()).floor();
    let scale = libm::pow(10.0, 2.0 - size);
    format!("{}", (value * scale).round() / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_interpolates_between_neighbours() {
        assert_eq!([0.0, 0.5, 0.75, 1.0].map(|part| quantile(&[1.0, 2.0, 4.0], part)), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn three_significant_digits_at_any_size() {
        assert_eq!([12.345, 0.012_345, 1234.5, 0.0].map(three), ["12.3", "0.0123", "1230", "0"]);
    }
}
