//! A policer: drops what exceeds its rate by more than a burst; nothing waits (tc-police).

use crate::network::bucket::Bucket;
use crate::scenario;
use sawtooth_units::Time;

const PICOS_PER_NANO: u64 = 1_000;

#[derive(Clone, Copy, Debug)]
pub struct Policer(Bucket);

impl Policer {
    pub fn new(config: scenario::Policer) -> Self {
        Policer(Bucket::new(config.rate_bps, config.burst_bytes))
    }

    /// Whether a packet of `size` bytes passes, which takes tokens; a dropped one takes none.
    pub fn passes(&mut self, size: u32, now: Time) -> bool {
        let now = now.nanos().saturating_mul(PICOS_PER_NANO);
        let passes = self.0.ready(size, now) == now;
        if passes {
            self.0.take(size, now);
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_packets_take_no_tokens() {
        // 1,000 bytes are 1 ms.
        let mut policer = Policer::new(scenario::Policer { rate_bps: 8_000_000, burst_bytes: 2_000 });
        let passed: Vec<u64> =
            (0..40).filter(|&quarter| policer.passes(1_000, Time::from_nanos(quarter * 250_000))).collect();
        assert_eq!(passed, [0, 1, 4, 8, 12, 16, 20, 24, 28, 32, 36]);
    }
}
