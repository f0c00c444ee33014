//! Which of several queues a packet's flow uses: a hash with a secret per run, so that flows collide as they may on
//! Linux.

use crate::rng::Rng;
use sawtooth_units::width::Fit;

#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    secret: u64,
    count: u32,
}

impl Buckets {
    pub fn new(count: u32, rng: &mut Rng) -> Self {
        Buckets { secret: rng.next(), count }
    }

    /// The queue of the flow with this key, from 0.
    #[inline]
    pub fn of(&self, flow: u64) -> usize {
        let mixed = (flow ^ self.secret).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (((mixed >> 32) * u64::from(self.count)) >> 32).fit_usize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;

    #[test]
    fn hash_spreads_flows_and_depends_on_the_secret() {
        let buckets = |seed| Buckets::new(16, &mut Rng::new(seed, Purpose::Queue, 0));
        let mut found = [0; 16];
        (0..16_000).for_each(|flow| found[buckets(1).of(flow)] += 1);
        assert!(found.iter().all(|&flows| (850..1_150).contains(&flows)), "{found:?}");
        assert!((0..100).any(|flow| buckets(1).of(flow) != buckets(2).of(flow)));
    }
}
