//! Extends TCP's 32-bit sequence numbers to 64 bits, relative to the first one seen.

use sawtooth_units::width::Low;

/// The sequence numbers of one end. Its SYN is number 0; if that was not captured, the first number seen is 1.
#[derive(Clone, Copy, Debug)]
pub struct Sequence {
    origin: u32,
    highest: i64,
}

impl Sequence {
    /// `raw` is the SYN's number.
    pub fn of_syn(raw: u32) -> Self {
        Sequence { origin: raw, highest: 0 }
    }

    /// `raw` is the first number seen of a connection without a captured SYN.
    pub fn joined(raw: u32) -> Self {
        Sequence { origin: raw.wrapping_sub(1), highest: 1 }
    }

    /// The number that `raw` means, nearest to the highest so far (RFC 9293 section 3.4: comparison modulo 2^32).
    pub fn relative(&self, raw: u32) -> i64 {
        let distance = raw.wrapping_sub(self.origin).wrapping_sub(self.highest.low_u32()).cast_signed();
        self.highest + i64::from(distance)
    }

    /// Records a number that was sent or acknowledged; later numbers are interpreted relative to it.
    pub fn reach(&mut self, relative: i64) {
        self.highest = self.highest.max(relative);
    }

    /// Whether `raw` is the SYN's number.
    pub fn is_origin(&self, raw: u32) -> bool {
        raw == self.origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_numbers_continue_past_2_to_the_32() {
        let mut sequence = Sequence::of_syn(u32::MAX - 1);
        for step in 1..10_i64 {
            let raw = (u32::MAX - 1).wrapping_add((step * 1_000_000_000) as u32);
            assert_eq!(sequence.relative(raw), step * 1_000_000_000);
            sequence.reach(step * 1_000_000_000);
        }
    }

    #[test]
    fn older_numbers_are_lower_across_the_wrap() {
        let mut sequence = Sequence::of_syn(u32::MAX - 10);
        sequence.reach(100);
        assert_eq!(sequence.relative(u32::MAX), 10);
        assert_eq!(sequence.relative(89), 100);
    }

    #[test]
    fn connection_joined_midway_starts_at_1() {
        let sequence = Sequence::joined(5);
        assert_eq!(sequence.relative(5), 1);
        assert_eq!(sequence.relative(2), -2);
    }
}
