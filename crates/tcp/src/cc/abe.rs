//! Alternative backoff with ECN (RFC 8511): an echoed mark reduces the window less than a loss does. A queue that marks
//! early is short, and halving would leave it empty. Linux 6.12 does not have this; everything else is as in Linux.

use super::cubic::Cubic;
use super::reno::Reno;
use super::{AckSample, Control, Event, Phase};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::window::Window;
use sawtooth_units::width::Fit;

/// An algorithm for which RFC 8511, section 3.1, gives a factor.
pub trait Marked: Control {
    /// Percent of the window that remains after a mark.
    const BETA_ECN: u64;
}

impl Marked for Reno {
    const BETA_ECN: u64 = 80;
}

impl Marked for Cubic {
    const BETA_ECN: u64 = 85;
}

/// The algorithm with that response to marks.
#[derive(Debug)]
pub struct Abe<C>(C);

impl<C: Marked> Control for Abe<C> {
    const NAME: &'static str = C::NAME;
    const VARIANT: Option<&'static str> = Some("abe");
    const HAS_CONG_CONTROL: bool = C::HAS_CONG_CONTROL;

    fn new(flight: &Flight, window: &mut Window, clock: Clock, seed: u64) -> Self {
        Abe(C::new(flight, window, clock, seed))
    }

    fn ssthresh(&mut self, flight: &Flight, window: &Window) -> u32 {
        self.0.ssthresh(flight, window)
    }

    /// The algorithm records a reduction as for a loss; then the window is set larger, at least 2 segments.
    fn ssthresh_marked(&mut self, flight: &Flight, window: &Window) -> u32 {
        self.0.ssthresh(flight, window);
        (u64::from(window.cwnd) * C::BETA_ECN / 100).max(2).fit_u32()
    }

    fn undo_cwnd(&mut self, flight: &Flight, window: &Window) -> u32 {
        self.0.undo_cwnd(flight, window)
    }

    fn min_tso_segs(&self, flight: &Flight, window: &Window) -> u32 {
        self.0.min_tso_segs(flight, window)
    }

    fn sndbuf_expand(&self) -> u32 {
        self.0.sndbuf_expand()
    }

    fn is_settled(&self, window: &Window, clock: Clock) -> bool {
        self.0.is_settled(window, clock)
    }

    fn current_phase(&self) -> Phase {
        self.0.current_phase()
    }

    fn cong_avoid(&mut self, flight: &Flight, window: &mut Window, acked: u32, clock: Clock) {
        self.0.cong_avoid(flight, window, acked, clock);
    }

    fn pkts_acked(&mut self, flight: &Flight, window: &mut Window, sample: AckSample, clock: Clock) {
        self.0.pkts_acked(flight, window, sample, clock);
    }

    fn set_state(&mut self, flight: &Flight, window: &mut Window, new: CaState, clock: Clock) {
        self.0.set_state(flight, window, new, clock);
    }

    fn event(&mut self, flight: &Flight, window: &mut Window, event: Event, clock: Clock) {
        self.0.event(flight, window, event, clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::{clock, flight, window};

    fn left<C: Marked>(cwnd: u32) -> (u32, u32) {
        let (f, mut w) = (flight(), window());
        let mut one = Abe::<C>::new(&f, &mut w, clock(0, 250), 1);
        w.cwnd = cwnd;
        (one.ssthresh_marked(&f, &w), one.ssthresh(&f, &w))
    }

    #[test]
    fn a_mark_leaves_four_fifths_of_reno_s_window_and_85_percent_of_cubic_s_a_loss_what_it_always_did() {
        assert_eq!(left::<Reno>(100), (80, 50));
        assert_eq!(left::<Cubic>(100), (85, 70));
        assert_eq!(left::<Reno>(2), (2, 2));
    }
}
