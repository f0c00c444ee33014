//! Finds what limits a flow: of everything that holds it back, whatever does so for the largest share of its time.
//!
//! This one rule serves every place that names a limit. [`largest`] chooses. The shares come from the tables of a run
//! ([`FlowLimits`]), from a capture, or from the kernel's counters.

mod compiled;
mod flow_limits;
mod limit;
#[cfg(test)]
mod tests;

pub use flow_limits::{FlowLimits, TABLES};
pub use limit::{FlowLimit, Limit, Taker};

/// The index of the largest share, the first among equals, so list hosts before the network. None if all are 0 or
/// unknown (NaN).
pub fn largest(shares: &[f64]) -> Option<usize> {
    let mut found = None;
    for (at, &share) in shares.iter().enumerate() {
        if share > found.map_or(0.0, |before: usize| shares[before]) {
            found = Some(at);
        }
    }
    found
}

#[cfg(test)]
mod largest {
    use super::*;

    #[test]
    fn largest_share_wins() {
        assert_eq!(largest(&[0.47, 0.01, 0.3]), Some(0));
        assert_eq!(largest(&[0.2, 0.1, 0.7]), Some(2));
    }

    #[test]
    fn first_of_equal_shares_wins() {
        assert_eq!(largest(&[0.0, 0.5, 0.5]), Some(1));
    }

    #[test]
    fn nan_and_zero_are_no_limit() {
        assert_eq!(largest(&[f64::NAN, 0.1]), Some(1));
        assert_eq!(largest(&[0.0, f64::NAN]), None);
        assert_eq!(largest(&[]), None);
    }
}
