//! The cube root by which CUBIC finds K, Linux 6.12 (`cubic_root` in `tcp_cubic.c`).
//!
//! # Where Linux differs
//!
//! RFC 9438 section 4.2 asks for the cube root; the kernel gives an approximation: a first guess from the six leading
//! bits, one step of Newton's iteration, and a division by three that is a multiplication by 341/1024. This file
//! follows Linux to the last bit, since K decides when the window is back at its plateau.

use sawtooth_units::width::{Fit, Low};

/// First guesses by the leading bits of the argument: 64 times the cube root of the index, less [`BIAS`].
static GUESS: [u8; 64] = guesses();
const BIAS: u32 = 10;

/// Linux's guesses were tuned by hand, so that one Newton step ends nearer to the root over the whole bucket. This is
/// what the tuning adds, in 64ths, to the plain guess for the indices 8 to 63, row by row of eight.
#[rustfmt::skip]
const TUNING: [i8; 56] = [
    -4, -3, -2, -3, -2, -2, -2,  0,
    -3, -2, -2, -1, -2, -2, -2, -2,
    -2, -1, -1, -1, -1, -1,  0, -1,
    -2, -2, -2, -2, -1, -1, -1, -1,
     0,  0,  0, -1,  0, -1, -1,  0,
     0, -1,  0,  0,  0,  0,  0,  0,
     1,  0,  0,  0,  1,  1,  0,  1,
];

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "the roots of up to 63 * 2^18 are below 255"
)]
const fn guesses() -> [u8; 64] {
    let mut table = [0; 64];
    let mut i = 1;
    while i < 64 {
        // The root of i * 2^18 is 64 times the root of i.
        let root = floor_root((i as u64) << 18);
        table[i] = if i < 8 {
            // Only looked up as it stands, never refined: the nearest whole root.
            (((root + 32) >> 6 << 6) - BIAS) as u8
        } else {
            (root as i32 - 1 + TUNING[i - 8] as i32) as u8
        };
        i += 1;
    }
    table
}

/// The exact cube root, rounded down, of a number below 2^60.
#[expect(clippy::cast_possible_truncation, reason = "a root below 2^20")]
const fn floor_root(a: u64) -> u32 {
    let mut root: u64 = 0;
    let mut bit: u64 = 1 << 19;
    while bit > 0 {
        let next = root | bit;
        if next * next * next <= a {
            root = next;
        }
        bit >>= 1;
    }
    root as u32
}

/// The cube root of `a` as the kernel computes it: within 0.4% and one unit for the arguments that CUBIC has (see the
/// tests).
pub(super) fn cube_root(a: u64) -> u32 {
    let bits = u64::BITS - a.leading_zeros();
    if bits < 7 {
        return (u32::from(GUESS[a.fit_usize()]) + 35) >> 6;
    }
    // bits / 3 by multiplication (84/256), less one: what is left of `a` after the shift has at most six bits.
    let digits = ((bits * 84) >> 8) - 1;
    let leading = (a >> (digits * 3)).fit_usize();
    let guess = ((u32::from(GUESS[leading]) + BIAS) << digits) >> 6;

    let quotient = a / (u64::from(guess) * u64::from(guess - 1));
    let sum = guess.wrapping_mul(2).wrapping_add(quotient.low_u32());
    sum.wrapping_mul(341) >> 10
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::cubic::curve::CUBE_FACTOR;

    #[test]
    fn the_exact_root_is_exact() {
        assert_eq!([0, 1, 7, 8, 26, 27, 63, 64].map(floor_root), [0, 1, 1, 2, 2, 3, 3, 4]);
        assert_eq!([(1 << 57) - 1, 1 << 57, (1 << 60) - 1].map(floor_root), [(1 << 19) - 1, 1 << 19, (1 << 20) - 1]);
    }

    #[test]
    fn small_arguments_give_the_nearest_root() {
        for (range, root) in [(0..1, 0), (1..4, 1), (4..16, 2), (16..42, 3), (42..64, 4)] {
            for a in range {
                assert_eq!(cube_root(a), root, "of {a}");
            }
        }
    }

    #[test]
    fn guesses_rise_with_the_index() {
        assert!(GUESS.is_sorted());
        assert_eq!((GUESS[0], GUESS[1], GUESS[7], GUESS[8], GUESS[63]), (0, 54, 118, 123, 254));
    }

    /// Every bucket of every size that the leading bits can select: its ends and points between.
    #[test]
    fn the_root_is_within_a_small_part_of_the_exact_one() {
        let mut worst_ppm = 0;
        for digits in 4..18 {
            for leading in 8_u64..64 {
                for part in 0..32_u64 {
                    let a = (leading << (3 * digits)) + ((part << (3 * digits)) / 32);
                    let exact = floor_root(a);
                    let error = cube_root(a).abs_diff(exact);
                    let allowed = 1 + exact * 4 / 1_000;
                    assert!(error <= allowed, "root of {a}: {} for {exact}", cube_root(a));
                    if exact > 10_000 {
                        worst_ppm = worst_ppm.max(u64::from(error) * 1_000_000 / u64::from(exact));
                    }
                }
            }
        }
        assert!(worst_ppm > 1_000, "an approximation, not the root: at worst {worst_ppm} ppm");
    }

    #[test]
    fn the_root_over_cubics_arguments_never_falls_by_more_than_a_step() {
        let mut last = 0;
        for segments in 1..200_000_u64 {
            let root = cube_root(CUBE_FACTOR * segments);
            let exact = floor_root(CUBE_FACTOR * segments);
            assert!(root.abs_diff(exact) <= 1 + exact * 4 / 1_000);
            assert!(root + 1 + root / 200 >= last, "at {segments} segments");
            last = root;
        }
    }
}
