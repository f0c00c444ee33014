//! A bucket of tokens: as many bytes as a rate brings, and at most a burst of them at once (tc-tbf, tc-police).

use sawtooth_units::width::Fit;

/// Fraction bits of the time a byte takes.
const FRACTION: u32 = 20;

/// The time that bytes of a given rate take, in picoseconds.
#[derive(Clone, Copy, Debug)]
pub struct PerByte(u64);

impl PerByte {
    pub fn new(rate_bps: u64) -> Self {
        // The slowest rate, 1 bit/s, makes 2^63 of it.
        PerByte(((8_000_000_000_000u128 << FRACTION) / u128::from(rate_bps)).fit_u64())
    }

    #[inline(always)]
    pub fn of(self, bytes: u64) -> u64 {
        ((u128::from(bytes) * u128::from(self.0)) >> FRACTION).fit_u64()
    }
}

/// Tokens are told as the time that they took to come, in picoseconds. Full at the beginning.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    per_byte: PerByte,
    depth: u64,
    tokens: u64,
    /// When there were so many.
    at: u64,
}

impl Bucket {
    pub fn new(rate_bps: u64, burst_bytes: u64) -> Self {
        let per_byte = PerByte::new(rate_bps);
        let depth = per_byte.of(burst_bytes);
        Bucket { per_byte, depth, tokens: depth, at: 0 }
    }

    /// From when on, `now` or later, there are tokens for so many bytes. More than a burst never has them: it is told when the bucket
    /// is full and what lacks would have come.
    pub fn ready(&self, bytes: u32, now: u64) -> u64 {
        now.saturating_add(self.per_byte.of(u64::from(bytes)).saturating_sub(self.held(now)))
    }

    /// Takes the tokens of so many bytes.
    pub fn take(&mut self, bytes: u32, now: u64) {
        self.tokens = self.held(now).saturating_sub(self.per_byte.of(u64::from(bytes)));
        self.at = now;
    }

    fn held(&self, now: u64) -> u64 {
        self.tokens.saturating_add(now.saturating_sub(self.at)).min(self.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000_000;

    #[test]
    fn a_full_bucket_serves_a_burst_at_once_and_then_its_rate() {
        // 1,000 bytes take 1 ms.
        let mut bucket = Bucket::new(8_000_000, 3_000);
        let mut times = Vec::new();
        let mut now = 0;
        for _ in 0..5 {
            now = bucket.ready(1_000, now);
            bucket.take(1_000, now);
            times.push(now / MILLI);
        }
        assert_eq!(times, [0, 0, 0, 1, 2]);
    }

    #[test]
    fn an_idle_bucket_fills_up_to_its_burst() {
        let mut bucket = Bucket::new(8_000_000, 3_000);
        bucket.take(3_000, 0);
        assert_eq!(bucket.ready(1_000, 0), MILLI);
        assert_eq!(bucket.ready(3_000, 100 * MILLI), 100 * MILLI);
        bucket.take(3_000, 100 * MILLI);
        assert_eq!(bucket.ready(1_000, 100 * MILLI), 101 * MILLI);
    }
}
