//! One quantity with its 90% interval, and a sentence on how it was obtained.

use serde::Serialize;

/// The only end of an interval that was measured; the other says how far a replay tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Bound {
    #[serde(rename = "")]
    None,
    #[serde(rename = "at least")]
    AtLeast,
    #[serde(rename = "at most")]
    AtMost,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimated {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    pub how: String,
    pub bound: Bound,
}

impl Estimated {
    pub fn new(value: f64, low: f64, high: f64, how: impl Into<String>) -> Self {
        Estimated { value, low, high, how: how.into(), bound: Bound::None }
    }

    /// A value that was given or has no spread.
    pub fn exact(value: f64, how: impl Into<String>) -> Self {
        Self::new(value, value, value, how)
    }

    pub fn at_least(value: f64, low: f64, high: f64, how: impl Into<String>) -> Self {
        Estimated { bound: Bound::AtLeast, ..Self::new(value, low, high, how) }
    }

    pub fn at_most(value: f64, low: f64, high: f64, how: impl Into<String>) -> Self {
        Estimated { bound: Bound::AtMost, ..Self::new(value, low, high, how) }
    }

    /// The same estimate, with nothing below `floor`.
    pub fn above(self, floor: f64) -> Self {
        Estimated { value: self.value.max(floor), low: self.low.max(floor), high: self.high.max(floor), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_raises_value_and_interval() {
        let found = Estimated::new(10.0, 5.0, 20.0, "");
        assert_eq!(found.clone().above(12.0), Estimated::new(12.0, 12.0, 20.0, ""));
        assert_eq!(found.clone().above(4.0), found);
        assert_eq!(found.above(30.0), Estimated::exact(30.0, ""));
    }
}
