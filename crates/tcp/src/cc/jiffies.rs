//! Order on the kernel's wrapping tick counter, as in Linux 6.12 (`jiffies.h`).

/// Whether tick `a` comes after tick `b` on the wrapping counter (`after`).
pub(super) fn after(a: u32, b: u32) -> bool {
    elapsed(a, b) > 0
}

/// Ticks from `earlier` to `now`, negative if the order is the other way.
pub(super) fn elapsed(now: u32, earlier: u32) -> i32 {
    now.wrapping_sub(earlier).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap_of_the_counter() {
        assert!(after(3, u32::MAX));
        assert!(!after(u32::MAX, 3));
        assert!(!after(7, 7));
        assert_eq!(elapsed(3, u32::MAX), 4);
    }
}
