//! CUBIC, Linux 6.12 (`tcp_cubic.c`, version 2.3): the window follows a cubic function of time since the last loss.
//!
//! Slow start ([`hystart`]) and window adjustment ([`curve`]) are two parts that share only the path's smallest delay.
//!
//! # Where Linux differs
//!
//! From RFC 9438; this folder follows Linux, with its integers.
//!
//! - Time is counted in ticks (`CONFIG_HZ`), scaled to 1/1024 s. The rate of growth is recomputed at most once a tick,
//!   and while the window has not changed only once more than `HZ/32` ticks have passed (40 ms at 100 Hz, 32 ms at 250
//!   Hz). On short paths this is slower than the round trip, so results depend on HZ.
//! - C is 410/1024 (section 5: 0.4), beta 717/1024 (section 4.6: 0.7). Linux's K comes from an approximate cube root;
//!   this is the one place where this folder does not follow it ([`root`]).
//! - `W_cubic` is taken one smallest delay ahead, not one smoothed round-trip time (section 4.2).
//! - The Reno-friendly window (section 4.3) grows by 8/15 segment per window forever; the RFC goes to a whole segment
//!   once it passes the window of the last loss.
//! - Before the first loss and after a timeout the window grows by at least 5% a round.
//! - The decrease (section 4.6) starts from the window, not from the flight.
//! - A timeout also forgets the smallest delay. A spurious recovery (section 4.9) restores only the window.

mod curve;
mod hystart;
mod root;

use super::growth::{additive_increase, beyond_slow_start};
use super::{AckSample, Control, Event, Phase, SNDBUF_EXPAND, reno};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::window::Window;
use curve::Curve;
use hystart::HyStart;
use sawtooth_units::width::Low;

/// One connection's CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    hystart: HyStart,
    curve: Curve,
    /// Smallest delay since the last timeout in microseconds; 0 before the first sample.
    delay_min_us: u32,
}

impl Cubic {
    /// The initial state.
    fn fresh(flight: &Flight, clock: Clock) -> Self {
        Cubic { hystart: HyStart::new(flight, clock.micros().low_u32()), curve: Curve::default(), delay_min_us: 0 }
    }
}

impl Control for Cubic {
    const NAME: &'static str = "cubic";
    const HAS_CONG_CONTROL: bool = false;

    fn new(flight: &Flight, _: &mut Window, clock: Clock, _: u64) -> Self {
        Cubic::fresh(flight, clock)
    }

    fn undo_cwnd(&mut self, flight: &Flight, window: &Window) -> u32 {
        reno::undo_cwnd(flight, window)
    }

    fn min_tso_segs(&self, _: &Flight, window: &Window) -> u32 {
        window.min_tso_segs
    }

    fn sndbuf_expand(&self) -> u32 {
        SNDBUF_EXPAND
    }

    fn current_phase(&self) -> Phase {
        if self.hystart.found { Phase::HyStartFound } else { Phase::Other }
    }

    /// The window times 0.7, at least 2 segments; ends the epoch.
    fn ssthresh(&mut self, _: &Flight, window: &Window) -> u32 {
        self.curve.on_loss(window.cwnd);
        curve::decreased(window.cwnd)
    }

    fn cong_avoid(&mut self, flight: &Flight, window: &mut Window, acked: u32, clock: Clock) {
        if let Some(acked) = beyond_slow_start(flight, window, acked) {
            self.curve.update(window.cwnd, acked, self.delay_min_us, clock);
            additive_increase(window, self.curve.per_increase(), acked);
        }
    }

    /// Learns the delay. Samples in an epoch's first second still include the recovery's queue.
    fn pkts_acked(&mut self, flight: &Flight, window: &mut Window, sample: AckSample, clock: Clock) {
        let is_young = self.curve.age(clock).is_some_and(|ticks| ticks < clock.hz().cast_signed());
        if is_young || sample.rtt_us < 0 {
            return;
        }
        let delay_us = sample.rtt_us.low_u32().max(1);
        let known_us = if self.delay_min_us > 0 { self.delay_min_us } else { u32::MAX };
        self.delay_min_us = delay_us.min(known_us);
        self.hystart.on_sample(flight, window, delay_us, self.delay_min_us, clock.micros().low_u32());
    }

    /// A timeout starts over.
    fn set_state(&mut self, flight: &Flight, _: &mut Window, new: CaState, clock: Clock) {
        if new == CaState::Loss {
            *self = Cubic::fresh(flight, clock);
        }
    }

    /// HyStart follows rounds; an epoch's first second learns nothing.
    fn is_settled(&self, window: &Window, clock: Clock) -> bool {
        let is_old = self.curve.age(clock).is_none_or(|ticks| ticks >= clock.hz().cast_signed());
        is_old && (self.hystart.found || !window.in_slow_start())
    }

    /// After idle time the curve continues where it was.
    fn event(&mut self, _: &Flight, _: &mut Window, event: Event, clock: Clock) {
        if let Event::TxStart { last_send_jiffies } = event {
            self.curve.skip_idle(last_send_jiffies, clock.jiffies());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::{clock, flight, window};
    use crate::window::INFINITE_SSTHRESH;

    /// A second after the start, so that tick 0 is past.
    const START_US: u64 = 1_000_000;

    fn avoiding(cwnd: u32, hz: u32) -> (Cubic, Flight, Window) {
        let (f, mut w) = (flight(), window());
        w.cwnd = cwnd;
        w.ssthresh = cwnd;
        (Cubic::fresh(&f, clock(START_US, hz)), f, w)
    }

    /// One loss at `before` segments, then ACKs for two segments each, evenly over rounds of `rtt_us`. The window after
    /// each span of `every_us`.
    fn after_loss(before: u32, rtt_us: u64, hz: u32, every_us: u64, spans: usize) -> Vec<u32> {
        let (mut cc, f, mut w) = avoiding(before, hz);
        cc.delay_min_us = rtt_us as u32;
        w.ssthresh = cc.ssthresh(&f, &w);
        w.cwnd = w.ssthresh;
        let mut windows = Vec::new();
        let mut elapsed_ns = 0;
        while windows.len() < spans {
            elapsed_ns += rtt_us * 1_000 * 2 / u64::from(w.cwnd);
            if elapsed_ns >= every_us * 1_000 * (windows.len() as u64 + 1) {
                windows.push(w.cwnd);
            }
            cc.cong_avoid(&f, &mut w, 2, clock(START_US + elapsed_ns / 1_000, hz));
        }
        windows
    }

    #[test]
    fn on_a_long_path_the_window_follows_the_curve_at_any_tick_rate() {
        assert_eq!(
            after_loss(1_000, 100_000, 100, 1_000_000, 12),
            [788, 857, 910, 947, 973, 988, 997, 1000, 1000, 1000, 1003, 1010]
        );
        assert_eq!(
            after_loss(1_000, 100_000, 250, 1_000_000, 12),
            [788, 857, 910, 947, 973, 989, 997, 1000, 1000, 1000, 1003, 1010]
        );
    }

    /// The cube is rounded down, and taken a tick ahead at least, so the curve begins one segment above the window.
    /// Until the tick ends that means a segment more for each window acknowledged, counted in the window at the loss;
    /// the next tick finds that the window has overtaken the curve. So the longer the tick, the larger the window.
    #[test]
    fn on_a_short_path_the_window_grows_in_the_first_tick_of_an_epoch_and_then_hardly() {
        assert_eq!(after_loss(30, 600, 100, 2_000, 10), [24, 28, 33, 39, 45, 45, 45, 45, 45, 45]);
        assert_eq!(after_loss(30, 600, 250, 2_000, 10), [24, 28, 28, 28, 28, 28, 28, 28, 28, 28]);
        assert_eq!(after_loss(30, 600, 1_000, 2_000, 10), [22, 22, 22, 22, 22, 22, 22, 22, 22, 22]);
    }

    #[test]
    fn delays_in_the_first_second_of_an_epoch_are_not_learnt() {
        let (mut cc, f, mut w) = avoiding(100, 250);
        let sample = |rtt_us| AckSample { pkts_acked: 1, rtt_us, in_flight: 10 };
        cc.pkts_acked(&f, &mut w, sample(-1), clock(START_US, 250));
        assert_eq!(cc.delay_min_us, 0);
        cc.pkts_acked(&f, &mut w, sample(500), clock(START_US, 250));
        cc.pkts_acked(&f, &mut w, sample(700), clock(START_US, 250));
        assert_eq!(cc.delay_min_us, 500);
        cc.curve.update(100, 1, 500, clock(START_US, 250));
        cc.pkts_acked(&f, &mut w, sample(0), clock(START_US + 999_999, 250));
        assert_eq!(cc.delay_min_us, 500);
        cc.pkts_acked(&f, &mut w, sample(0), clock(START_US + 1_000_000, 250));
        assert_eq!(cc.delay_min_us, 1, "a delay is a microsecond at least");
    }

    #[test]
    fn a_timeout_forgets_the_loss_and_the_delay() {
        let (mut cc, f, mut w) = avoiding(100, 250);
        cc.delay_min_us = 500;
        cc.ssthresh(&f, &w);
        let before = cc.clone();
        cc.set_state(&f, &mut w, CaState::Recovery, clock(START_US, 250));
        assert_eq!(format!("{cc:?}"), format!("{before:?}"), "a recovery does not");
        cc.set_state(&f, &mut w, CaState::Loss, clock(START_US, 250));
        assert_eq!(format!("{cc:?}"), format!("{:?}", Cubic::fresh(&f, clock(START_US, 250))));
        w.ssthresh = INFINITE_SSTHRESH;
        cc.cong_avoid(&f, &mut w, 5, clock(START_US, 250));
        assert_eq!((w.cwnd, cc.curve.age(clock(START_US, 250))), (105, None), "slow start leaves the curve alone");
    }
}
