//! Conversions to narrower number types, by purpose: [`Fit`] if the value fits, [`Low`] for its low bits, [`Approx`]
//! for a nearby float.

/// The nearest float: exact up to 2^53, or up to 2^24 for 32-bit floats.
pub trait Approx {
    fn approx(self) -> f64;
    fn approx_f32(self) -> f32;
}

/// The integer part of a float: 0 if negative or not a number, the largest integer if too large.
pub trait Whole {
    fn whole(self) -> u64;
}

impl Whole for f64 {
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is what is asked for")]
    fn whole(self) -> u64 {
        self as u64
    }
}

macro_rules! widths {
    ($($fit:ident $low:ident $to:ty),+) => {
        /// Converts a value that must fit. Builds with debug assertions check this; others truncate without a branch.
        pub trait Fit {
            $(fn $fit(self) -> $to;)+
        }

        /// The low bits, for counters that wrap around, as Linux's 32-bit counters, and for products that the kernel
        /// keeps in fewer bits.
        pub trait Low {
            $(fn $low(self) -> $to;)+
        }
    };
}
macro_rules! narrowed {
    ($from:ty: $($fit:ident $low:ident $to:ty),+) => {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap, clippy::cast_lossless,
            trivial_numeric_casts, reason = "the one place where numbers are cut: checked before, or intended")]
        impl Fit for $from {
            $(#[inline(always)]
            fn $fit(self) -> $to {
                debug_assert!(<$to>::try_from(self).is_ok(), concat!("{} does not fit ", stringify!($to)), self);
                self as $to
            })+
        }

        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap, clippy::cast_lossless,
            trivial_numeric_casts, reason = "the one place where numbers are cut: checked before, or intended")]
        impl Low for $from {
            $(#[inline(always)]
            fn $low(self) -> $to {
                self as $to
            })+
        }
    };
}
macro_rules! with_widths {
    ($do:ident!($($before:tt)*)) => {
        $do!($($before)* fit_u8 low_u8 u8, fit_u16 low_u16 u16, fit_u32 low_u32 u32, fit_u64 low_u64 u64,
            fit_usize low_usize usize, fit_i64 low_i64 i64);
    };
}

with_widths!(widths!());
with_widths!(narrowed!(usize:));
with_widths!(narrowed!(u128:));
with_widths!(narrowed!(u64:));
with_widths!(narrowed!(u32:));
with_widths!(narrowed!(i64:));

macro_rules! approximated {
    ($($from:ty),+) => {
        $(impl Approx for $from {
            #[inline(always)]
            #[expect(clippy::cast_precision_loss, reason = "it is what is asked for")]
            fn approx(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            #[expect(clippy::cast_precision_loss, reason = "it is what is asked for")]
            fn approx_f32(self) -> f32 {
                self as f32
            }
        })+
    };
}

approximated!(u64, u128, usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_fit_are_unchanged() {
        assert_eq!(u64::from(u32::MAX).fit_u32(), u32::MAX);
        assert_eq!(65_535u32.fit_u16(), u16::MAX);
        assert_eq!(7usize.fit_i64(), 7);
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "4294967296 does not fit u32")]
    fn value_that_does_not_fit_panics_in_debug() {
        (1u64 << 32).fit_u32();
    }

    #[test]
    fn whole_saturates() {
        assert_eq!([2.9, -1.0, f64::NAN, 1e300].map(Whole::whole), [2, 0, 0, u64::MAX]);
    }

    #[test]
    fn low_bits_wrap() {
        assert_eq!(((1u64 << 32) + 5).low_u32(), 5);
        assert_eq!(65_537u32.low_u16(), 1);
        assert_eq!((-1i64).low_u32(), u32::MAX);
    }
}
