use super::*;
use crate::cc::testing::clock;

/// BBR in its first mode on `window`, at 1 s.
pub(super) fn startup(mut window: Window) -> (Bbr, Window) {
    let bbr = Bbr::new(&mut window, clock(1_000_000, 250), 1);
    (bbr, window)
}
