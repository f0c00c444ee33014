//! Random numbers for changes: those of Python's `random.Random` seeded with a text. They stay the same so that old
//! scenarios keep their results.

use sha2::{Digest, Sha512};

const N: usize = 624;
const M: usize = 397;

/// The Mersenne Twister (Matsumoto and Nishimura 1998, MT19937).
pub struct Draws {
    state: [u32; N],
    place: usize,
}

impl Draws {
    /// Seeds with the text and its SHA-512, as version 2 of CPython's `random.seed` does.
    pub fn new(text: &str) -> Draws {
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend(Sha512::digest(text.as_bytes()));
        // Converts a number (most significant byte first) to words (least significant first).
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
        let word = |bytes: &[u8]| bytes.iter().fold(0, |sum: u32, byte| sum << 8 | u32::from(*byte));
        Draws::by_key(&bytes[start..].rchunks(4).map(word).collect::<Vec<_>>())
    }

    fn by_key(key: &[u32]) -> Draws {
        let mut state = [0; N];
        state[0] = 19_650_218;
        for i in 1..N {
            let before: u32 = state[i - 1];
            state[i] = (before ^ before >> 30).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        let mut i = 1;
        let mut turn = |state: &mut [u32; N], factor: u32, more: u32, is_minus: bool| {
            let mixed = state[i] ^ (state[i - 1] ^ state[i - 1] >> 30).wrapping_mul(factor);
            state[i] = if is_minus { mixed.wrapping_sub(more) } else { mixed.wrapping_add(more) };
            i += 1;
            if i == N {
                state[0] = state[N - 1];
                i = 1;
            }
            i as u32
        };
        for step in 0..N.max(key.len()) {
            let place = step % key.len();
            turn(&mut state, 1_664_525, key[place].wrapping_add(place as u32), false);
        }
        let mut place = (N.max(key.len()) % (N - 1) + 1) as u32;
        for _ in 1..N {
            place = turn(&mut state, 1_566_083_941, place, true);
        }
        state[0] = 0x8000_0000;
        Draws { state, place: N }
    }

    fn word(&mut self) -> u32 {
        if self.place == N {
            for k in 0..N {
                let mixed = (self.state[k] & 0x8000_0000) | (self.state[(k + 1) % N] & 0x7fff_ffff);
                let odd = if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[k] = self.state[(k + M) % N] ^ mixed >> 1 ^ odd;
            }
            self.place = 0;
        }
        let mut word = self.state[self.place];
        self.place += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }

    /// A number from 0 to below 1, in steps of 2^-53.
    pub fn next(&mut self) -> f64 {
        let (high, low) = (f64::from(self.word() >> 5), f64::from(self.word() >> 6));
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }
}

#[cfg(test)]
mod tests {
    use super::Draws;

    #[test]
    fn random_numbers_match_cpython() {
        // The first three values of random() for random.Random("1 a>b 0 rate").
        let mut draws = Draws::new("1 a>b 0 rate");
        assert_eq!([draws.next(), draws.next(), draws.next()], EXPECTED);
    }

    const EXPECTED: [f64; 3] = [0.6978035166610346, 0.4693166072767472, 0.07049532021211735];
}
