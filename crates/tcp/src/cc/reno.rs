//! Reno, Linux 6.12 (`tcp_cong.c`): additive increase, halving at a loss.
//!
//! # Where Linux differs
//!
//! From RFC 5681; this file follows Linux.
//!
//! - The threshold is half of the *window* (RFC 5681 section 3.1, equation 4: half of the flight), at least 2 segments.
//!   The two agree while the window is full; the sender's window validation covers the rest.
//! - The window is counted in segments, and an ACK is worth the segments that it newly delivers, without RFC 3465's
//!   limit of two a stretched ACK.
//! - The window grows only while it is what holds the sender back.

use super::growth::{additive_increase, beyond_slow_start};
use super::{Control, SNDBUF_EXPAND};
use crate::clock::Clock;
use crate::flight::Flight;
use crate::window::Window;

/// Reno keeps no state.
#[derive(Clone, Copy, Debug)]
pub struct Reno;

/// The window before the reduction, unless it has grown larger since.
pub(super) fn undo_cwnd(flight: &Flight, window: &Window) -> u32 {
    window.cwnd.max(flight.prior_cwnd)
}

impl Control for Reno {
    const NAME: &'static str = "reno";
    const HAS_CONG_CONTROL: bool = false;

    fn new(_: &Flight, _: &mut Window, _: Clock, _: u64) -> Self {
        Reno
    }

    /// Half of the window, at least 2 segments.
    fn ssthresh(&mut self, _: &Flight, window: &Window) -> u32 {
        (window.cwnd / 2).max(2)
    }

    fn undo_cwnd(&mut self, flight: &Flight, window: &Window) -> u32 {
        undo_cwnd(flight, window)
    }

    fn min_tso_segs(&self, _: &Flight, window: &Window) -> u32 {
        window.min_tso_segs
    }

    fn sndbuf_expand(&self) -> u32 {
        SNDBUF_EXPAND
    }

    fn is_settled(&self, _: &Window, _: Clock) -> bool {
        true
    }

    /// One segment per acknowledged segment below `ssthresh`, above it one segment a window.
    fn cong_avoid(&mut self, flight: &Flight, window: &mut Window, acked: u32, _: Clock) {
        if let Some(acked) = beyond_slow_start(flight, window, acked) {
            additive_increase(window, window.cwnd, acked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::{clock, flight, window};

    #[test]
    fn a_loss_halves_the_window_but_not_below_two() {
        let (f, mut w) = (flight(), window());
        for (cwnd, expected) in [(100, 50), (11, 5), (5, 2), (3, 2), (1, 2)] {
            w.cwnd = cwnd;
            assert_eq!(Reno.ssthresh(&f, &w), expected);
        }
    }

    #[test]
    fn the_window_doubles_a_round_in_slow_start() {
        let (f, mut w) = (flight(), window());
        let mut rounds = Vec::new();
        for _ in 0..4 {
            for _ in 0..w.cwnd {
                Reno.cong_avoid(&f, &mut w, 1, clock(0, 250));
            }
            rounds.push(w.cwnd);
        }
        assert_eq!(rounds, [20, 40, 80, 160]);
    }

    #[test]
    fn the_window_grows_by_one_segment_a_round_in_congestion_avoidance() {
        let (f, mut w) = (flight(), window());
        w.ssthresh = 10;
        let mut rounds = Vec::new();
        for _ in 0..4 {
            for _ in 0..w.cwnd / 2 {
                Reno.cong_avoid(&f, &mut w, 2, clock(0, 250));
            }
            rounds.push((w.cwnd, w.cwnd_cnt));
        }
        assert_eq!(rounds, [(11, 0), (11, 10), (12, 9), (13, 9)]);
    }

    #[test]
    fn acks_left_by_slow_start_count_in_congestion_avoidance() {
        let (f, mut w) = (flight(), window());
        w.ssthresh = 12;
        Reno.cong_avoid(&f, &mut w, 5, clock(0, 250));
        assert_eq!((w.cwnd, w.cwnd_cnt), (12, 3));
    }

    #[test]
    fn unused_window_does_not_grow() {
        let (mut f, mut w) = (flight(), window());
        f.is_cwnd_limited = false;
        f.max_packets_out = 3;
        Reno.cong_avoid(&f, &mut w, 5, clock(0, 250));
        assert_eq!((w.cwnd, w.cwnd_cnt), (10, 0));
    }
}
