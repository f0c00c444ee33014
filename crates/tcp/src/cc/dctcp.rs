//! DCTCP, Linux 6.12 (`tcp_dctcp.c`) and RFC 8257: reduces the window by half the share of marked segments.
//!
//! Its receiver reports each change (section 3.2): see [`crate::receiver::Echo::Exact`].
//!
//! # Where Linux differs
//!
//! From RFC 8257; this file follows Linux, with its integers.
//!
//! - The share is of segments acknowledged with an echo, not of bytes.
//! - A window of data ends with the acknowledgement that reaches its end, not with the one that passes it.
//! - It grows like Reno, and is Reno without ECN.
//! - A loss halves the window on entering recovery, even if a mark had already reduced it.

use super::growth::{additive_increase, beyond_slow_start};
use super::{Control, Event, SNDBUF_EXPAND, reno};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::window::Window;
use sawtooth_units::width::Fit;

/// The share 1, in 1024ths (`DCTCP_MAX_ALPHA`), which is the initial value.
const ONE: u32 = 1024;
/// g, the weight of a window's share, as a power of one half (`dctcp_shift_g`).
const WEIGHT: u32 = 4;

/// One connection's DCTCP.
#[derive(Clone, Copy, Debug)]
pub struct Dctcp {
    /// ECN was agreed on.
    hears: bool,
    /// DCTCP.Alpha, in 1024ths.
    alpha: u32,
    /// DCTCP.WindowEnd, and the delivered and marked counts when this window began.
    window_end: u64,
    delivered: u64,
    delivered_ce: u64,
    /// The window before the last reduction.
    before: u32,
}

impl Dctcp {
    fn begin_window(&mut self, flight: &Flight) {
        self.window_end = flight.snd_nxt;
        (self.delivered, self.delivered_ce) = (flight.delivered, flight.delivered_ce);
    }

    /// A loss is answered as Reno does (section 3.5).
    fn react_to_loss(&mut self, window: &mut Window) {
        self.before = window.cwnd;
        window.ssthresh = (window.cwnd / 2).max(2);
    }
}

impl Control for Dctcp {
    const NAME: &'static str = "dctcp";
    const HAS_CONG_CONTROL: bool = false;
    const NEEDS_ECN: bool = true;
    const HEARS_OF_ACKS: bool = true;

    fn new(flight: &Flight, _: &mut Window, _: Clock, _: u64) -> Self {
        let hears = flight.ecn;
        let mut dctcp = Dctcp { hears, alpha: ONE, window_end: 0, delivered: 0, delivered_ce: 0, before: 0 };
        dctcp.begin_window(flight);
        dctcp
    }

    /// The window reduced by half its marked share (section 3.4), at least 2 segments.
    fn ssthresh(&mut self, _: &Flight, window: &Window) -> u32 {
        if !self.hears {
            return (window.cwnd / 2).max(2);
        }
        self.before = window.cwnd;
        let marked = u64::from(window.cwnd) * u64::from(self.alpha) / u64::from(2 * ONE);
        (window.cwnd - marked.fit_u32()).max(2)
    }

    fn undo_cwnd(&mut self, flight: &Flight, window: &Window) -> u32 {
        if self.hears { window.cwnd.max(self.before) } else { reno::undo_cwnd(flight, window) }
    }

    fn min_tso_segs(&self, _: &Flight, window: &Window) -> u32 {
        window.min_tso_segs
    }

    fn sndbuf_expand(&self) -> u32 {
        SNDBUF_EXPAND
    }

    /// At the end of a window its share is averaged (section 3.3).
    fn in_ack_event(&mut self, flight: &Flight) {
        if flight.snd_una < self.window_end || !self.hears {
            return;
        }
        let delivered = (flight.delivered - self.delivered).max(1);
        let marked = flight.delivered_ce - self.delivered_ce;
        // Below 16 it falls directly to zero.
        let fall = match self.alpha >> WEIGHT {
            0 => self.alpha,
            fall => fall,
        };
        let rise = (marked << (ONE.ilog2() - WEIGHT)) / delivered;
        self.alpha = (self.alpha - fall + rise.fit_u32()).min(ONE);
        self.begin_window(flight);
    }

    fn cong_avoid(&mut self, flight: &Flight, window: &mut Window, acked: u32, _: Clock) {
        if let Some(acked) = beyond_slow_start(flight, window, acked) {
            additive_increase(window, window.cwnd, acked);
        }
    }

    fn set_state(&mut self, flight: &Flight, window: &mut Window, new: CaState, _: Clock) {
        if self.hears && new == CaState::Recovery && flight.ca_state != CaState::Recovery {
            self.react_to_loss(window);
        }
    }

    fn event(&mut self, _: &Flight, window: &mut Window, event: Event, _: Clock) {
        if self.hears && event == Event::Loss {
            self.react_to_loss(window);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::{clock, flight, window};

    /// After windows of 100 segments with this many marked.
    fn after(shares: &[u64]) -> (Dctcp, Flight, Window) {
        let mut f = Flight { ecn: true, ..flight() };
        let mut w = window();
        let mut cc = Dctcp::new(&f, &mut w, clock(0, 250), 1);
        for &marked in shares {
            f.delivered += 100;
            f.delivered_ce += marked;
            f.snd_una = f.snd_nxt;
            f.snd_nxt += 1;
            cc.in_ack_event(&f);
        }
        (cc, f, w)
    }

    #[test]
    fn the_average_moves_a_sixteenth_a_window_towards_the_marked_share() {
        // The first window ends with the first acknowledgement: nothing was sent before it.
        assert_eq!(after(&[0]).0.alpha, 960);
        assert_eq!(after(&[0, 0]).0.alpha, 900);
        assert_eq!(after(&[100]).0.alpha, 1024);
        assert_eq!(after(&[0, 50]).0.alpha, 960 - 60 + 32);
        assert_eq!(after(&[0; 80]).0.alpha, 0, "it ends at nothing");
    }

    #[test]
    fn the_window_comes_down_by_half_the_average() {
        let (mut cc, f, mut w) = after(&[0]);
        w.cwnd = 100;
        cc.alpha = 256;
        assert_eq!(cc.ssthresh(&f, &w), 88, "an eighth of 100 is 12.5, and what is left is rounded up");
        cc.alpha = 1024;
        assert_eq!(cc.ssthresh(&f, &w), 50);
        w.cwnd = 2;
        assert_eq!(cc.ssthresh(&f, &w), 2);
    }

    #[test]
    fn a_loss_halves_it_whatever_was_marked() {
        let (mut cc, f, mut w) = after(&[0; 80]);
        w.cwnd = 100;
        assert_eq!(cc.ssthresh(&f, &w), 100);
        cc.set_state(&f, &mut w, CaState::Recovery, clock(0, 250));
        assert_eq!(w.ssthresh, 50);
        w.ssthresh = 100;
        cc.event(&f, &mut w, Event::Loss, clock(0, 250));
        assert_eq!((w.ssthresh, cc.undo_cwnd(&f, &w)), (50, 100));
    }

    #[test]
    fn without_ecn_it_is_reno() {
        let (f, mut w) = (flight(), window());
        let mut cc = Dctcp::new(&f, &mut w, clock(0, 250), 1);
        w.cwnd = 100;
        cc.in_ack_event(&f);
        assert_eq!((cc.ssthresh(&f, &w), cc.alpha), (50, ONE));
    }
}
