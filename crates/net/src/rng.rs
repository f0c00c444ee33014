//! Seeded randomness: one generator a purpose, so that adding a link does not change what another link drops.

/// xoshiro256** (Blackman and Vigna 2018), seeded through SplitMix64.
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

/// What a generator is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Losses of a link.
    Loss = 1,
    /// What a connection's congestion control draws.
    Congestion = 2,
    /// Lifetimes of a flow's connections.
    Lifetime = 3,
    /// Initial sequence numbers and identifications of a connection in captures.
    Capture = 4,
    /// What a link does to packets on their way.
    Variation = 5,
    /// What a transmitter's queue draws.
    Queue = 6,
    /// When a flow's transfers come.
    Arrival = 7,
    /// How large they are.
    Size = 8,
    /// How large what a reader asks for is.
    Answer = 9,
    /// How long a reader waits before it asks again.
    Think = 10,
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// The generator of `purpose` (and its `index`) in the run with `seed`.
    pub fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        let mut state = seed;
        let mixed = splitmix(&mut state) ^ (purpose as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mut state = mixed ^ index.wrapping_mul(0xa076_1d64_78bd_642f);
        Rng(std::array::from_fn(|_| splitmix(&mut state)))
    }

    pub fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = u128::from(high - low) + 1;
        low + ((u128::from(self.next()) * span) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_draw_equal_numbers_and_purposes_differ() {
        let draw = |purpose, index| {
            let mut rng = Rng::new(7, purpose, index);
            [rng.next(), rng.next()]
        };
        assert_eq!(draw(Purpose::Loss, 2), draw(Purpose::Loss, 2));
        assert_ne!(draw(Purpose::Loss, 2), draw(Purpose::Lifetime, 2));
        assert_ne!(draw(Purpose::Loss, 2), draw(Purpose::Loss, 3));
    }

    #[test]
    fn between_covers_its_range_evenly() {
        let mut rng = Rng::new(1, Purpose::Loss, 0);
        let mut seen = [0u32; 6];
        for _ in 0..60_000 {
            seen[rng.between(10, 15) as usize - 10] += 1;
        }
        assert!(seen.iter().all(|&n| (9_500..10_500).contains(&n)), "{seen:?}");
    }
}
