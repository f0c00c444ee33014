//! A token bucket: bytes accumulate at a rate, up to a burst (tc-tbf, tc-police).

use sawtooth_units::width::Fit;

/// Fraction bits of the time per byte.
const FRACTION: u32 = 20;

/// The time per byte at a given rate, in picoseconds.
#[derive(Clone, Copy, Debug)]
pub struct PerByte(u64);

impl PerByte {
    pub fn new(rate_bps: u64) -> Self {
        // The slowest rate, 1 bit/s, gives 2^63.
        PerByte(((8_000_000_000_000u128 << FRACTION) / u128::from(rate_bps)).fit_u64())
    }

    #[inline(always)]
    pub fn of(self, bytes: u64) -> u64 {
        ((u128::from(bytes) * u128::from(self.0)) >> FRACTION).fit_u64()
    }
}

/// Tokens are measured by the time that they took to accumulate, in picoseconds. Full at the start.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    per_byte: PerByte,
    depth: u64,
    tokens: u64,
    /// The time of this level.
    at: u64,
}

impl Bucket {
    pub fn new(rate_bps: u64, burst_bytes: u64) -> Self {
        let per_byte = PerByte::new(rate_bps);
        let depth = per_byte.of(burst_bytes);
        Bucket { per_byte, depth, tokens: depth, at: 0 }
    }

    /// The earliest time, `now` or later, with tokens for `bytes`. More than a burst is never available; the result is
    /// then when the bucket is full plus the time for the missing tokens.
    pub fn ready(&self, bytes: u32, now: u64) -> u64 {
        now.saturating_add(self.per_byte.of(u64::from(bytes)).saturating_sub(self.held(now)))
    }

    /// Takes the tokens for `bytes`.
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
