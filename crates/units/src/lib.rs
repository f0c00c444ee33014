//! Quantities as types, each with a private field and only the operators that make sense.
//!
//! `Time` is a point on the simulated clock, `Span` the distance between two.

pub mod width;

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in simulated time, in nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time in nanoseconds; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Time {
    pub const ZERO: Time = Time(0);
    /// Later than every event: an unset timer.
    pub const NEVER: Time = Time(u64::MAX);

    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }
    pub const fn nanos(self) -> u64 {
        self.0
    }
    /// Whole microseconds, rounded down, as Linux's `tcp_mstamp`.
    pub const fn micros(self) -> u64 {
        self.0 / 1_000
    }
    /// The span since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    pub const ZERO: Span = Span(0);

    pub const fn from_nanos(nanos: u64) -> Self {
        Span(nanos)
    }
    pub const fn from_micros(micros: u64) -> Self {
        Span(micros * 1_000)
    }
    pub const fn from_millis(millis: u64) -> Self {
        Span(millis * 1_000_000)
    }
    pub const fn from_secs(secs: u64) -> Self {
        Span(secs * 1_000_000_000)
    }
    pub const fn nanos(self) -> u64 {
        self.0
    }
    pub const fn micros(self) -> u64 {
        self.0 / 1_000
    }
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0 + span.0)
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}
impl Sub<Time> for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        debug_assert!(self.0 >= earlier.0, "a span is never negative");
        Span(self.0 - earlier.0)
    }
}
impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_a_later_time_is_zero() {
        assert_eq!(Time::from_nanos(1).since(Time::from_nanos(2)), Span::ZERO);
    }
}
