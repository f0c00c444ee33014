//! The cube root by which CUBIC finds K (RFC 9438 section 4.2), to the nearest whole number.
//!
//! # Where Linux differs
//!
//! The kernel's root (`cubic_root` in `tcp_cubic.c`) is an approximation, up to 0.4% off; so its plateau is as much of
//! K earlier or later.

/// Bits of the largest root: the cube of 2^22 is above every argument.
const ROOT_BITS: u32 = 22;

/// The whole number nearest to the cube root of `a`.
pub(super) fn cube_root(a: u64) -> u32 {
    let mut root = 0;
    for bit in (0..ROOT_BITS).rev() {
        let larger = root | 1 << bit;
        if less_half_is_below_the_root(larger, a) {
            root = larger;
        }
    }
    root
}

/// Whether `n` - 1/2 is below the cube root of `a`. Doubled, to be whole: they are never equal, since an odd number's
/// cube is odd.
fn less_half_is_below_the_root(n: u32, a: u64) -> bool {
    let doubled = u128::from(2 * n - 1);
    doubled * doubled * doubled < 8 * u128::from(a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cube_has_its_root() {
        for root in (0..2_642_245).step_by(997).chain([1, 2, 3, 1 << 21, 2_642_245]) {
            assert_eq!(cube_root(u64::from(root).pow(3)), root);
        }
    }

    #[test]
    fn a_root_between_two_whole_numbers_is_the_nearer_one() {
        // 2.5^3 is 15.625, 3.5^3 is 42.875, and so on.
        for (range, root) in [(0..1, 0), (1..4, 1), (4..16, 2), (16..43, 3), (43..92, 4), (92..167, 5)] {
            for a in range {
                assert_eq!(cube_root(a), root, "of {a}");
            }
        }
        for root in [9_304_u64, 400_000, 2_642_244] {
            let half_above = root.pow(3) + (6 * root * root + 3 * root) / 4;
            assert_eq!([half_above, half_above + 1].map(cube_root).map(u64::from), [root, root + 1]);
        }
    }

    #[test]
    fn the_largest_argument_has_a_root() {
        assert_eq!(cube_root(u64::MAX), 2_642_246);
    }
}
