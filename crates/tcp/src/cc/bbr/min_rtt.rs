//! BBR's smallest round-trip time and PROBE_RTT, Linux 6.12 (`bbr_update_min_rtt` in `tcp_bbr.c`).

use super::Bbr;
use super::mode::Mode;
use crate::cc::{RateSample, jiffies};
use crate::clock::Clock;
use crate::flight::Flight;
use crate::window::Window;
use sawtooth_units::width::Low;

/// The minimum is over this many seconds (`bbr_min_rtt_win_sec`).
const WINDOW_SECONDS: u32 = 10;
/// PROBE_RTT lasts this many microseconds at least (`bbr_probe_rtt_mode_ms`).
const PROBE_RTT_US: u64 = 200_000;
/// The window in PROBE_RTT, and the smallest of any mode, in segments (`bbr_cwnd_min_target`).
pub(super) const MIN_CWND: u32 = 4;

#[derive(Clone, Debug)]
pub(super) struct MinRtt {
    /// Microseconds; `u32::MAX` before the first sample.
    pub(super) us: u32,
    /// Tick of that sample.
    pub(super) at: u32,
    /// Tick at which PROBE_RTT may end, once the flight is small.
    done_at: Option<u32>,
    /// Whether a whole round has passed since.
    round_done: bool,
}

impl MinRtt {
    pub(super) fn new(us: u32, now: u32) -> Self {
        MinRtt { us, at: now, done_at: None, round_done: false }
    }
}

impl Bbr {
    /// `bbr_update_min_rtt`.
    pub(super) fn update_min_rtt(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample, clock: Clock) {
        let now = clock.jiffies();
        let expired = jiffies::after(now, self.min_rtt.at.wrapping_add(WINDOW_SECONDS * clock.hz));
        if sample.rtt_us >= 0 && (sample.rtt_us < i64::from(self.min_rtt.us) || (expired && !sample.is_ack_delayed)) {
            self.min_rtt.us = sample.rtt_us.low_u32();
            self.min_rtt.at = now;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(window);
            self.min_rtt.done_at = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(flight, window, clock);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// Keep the flight small for 200 ms and a round.
    fn probe_rtt(&mut self, flight: &Flight, window: &mut Window, clock: Clock) {
        let now = clock.jiffies();
        // The low rate of this mode is not the path's.
        window.app_limited = (flight.delivered + u64::from(flight.in_flight())).max(1);
        match self.min_rtt.done_at {
            None if flight.in_flight() <= MIN_CWND => {
                self.min_rtt.done_at = Some(now.wrapping_add(clock.jiffies_from_micros(PROBE_RTT_US).low_u32()));
                self.min_rtt.round_done = false;
                self.rounds.next_delivered = flight.delivered;
            }
            None => {}
            Some(_) => {
                self.min_rtt.round_done |= self.rounds.started;
                if self.min_rtt.round_done {
                    self.check_probe_rtt_done(flight, window, now);
                }
            }
        }
    }

    /// `bbr_check_probe_rtt_done`.
    pub(super) fn check_probe_rtt_done(&mut self, flight: &Flight, window: &mut Window, now: u32) {
        if self.min_rtt.done_at.is_some_and(|done| jiffies::after(now, done)) {
            self.min_rtt.at = now;
            window.cwnd = window.cwnd.max(self.prior_cwnd);
            self.leave_probe_rtt(flight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::bbr::tests::{full, sample};
    use crate::cc::testing::clock;

    /// Ten seconds after the minimum of `full` was seen.
    const EXPIRY_US: u64 = 12_000_000;
    const TICK_US: u64 = 4_000;

    fn ack(bbr: &mut Bbr, f: &Flight, w: &mut Window, rtt_us: i64, at_us: u64) -> (u32, Mode) {
        bbr.update_min_rtt(f, w, &RateSample { rtt_us, ..sample() }, clock(at_us, 250));
        (bbr.min_rtt.us, bbr.mode)
    }

    #[test]
    fn a_lower_sample_is_the_new_minimum_and_restarts_its_window() {
        let (mut bbr, f, mut w) = full();
        assert_eq!(ack(&mut bbr, &f, &mut w, -1, 3_000_000).0, 10_000);
        assert_eq!(ack(&mut bbr, &f, &mut w, 10_001, 3_000_000).0, 10_000);
        assert_eq!(ack(&mut bbr, &f, &mut w, 9_999, 3_000_000).0, 9_999);
        assert_eq!(bbr.min_rtt.at, 750);
    }

    #[test]
    fn after_ten_seconds_any_sample_is_the_minimum_and_the_pipe_is_emptied() {
        let (mut bbr, f, mut w) = full();
        assert_eq!(ack(&mut bbr, &f, &mut w, 30_000, EXPIRY_US), (10_000, Mode::ProbeBw));
        assert_eq!(ack(&mut bbr, &f, &mut w, 30_000, EXPIRY_US + TICK_US), (30_000, Mode::ProbeRtt));
        assert_eq!(bbr.prior_cwnd, w.cwnd);
    }

    #[test]
    fn a_delayed_ack_is_no_new_minimum() {
        let (mut bbr, f, mut w) = full();
        let delayed = RateSample { rtt_us: 30_000, is_ack_delayed: true, ..sample() };
        bbr.update_min_rtt(&f, &mut w, &delayed, clock(EXPIRY_US + TICK_US, 250));
        assert_eq!((bbr.min_rtt.us, bbr.mode), (10_000, Mode::ProbeRtt));
    }

    #[test]
    fn a_restart_from_idle_needs_no_emptying() {
        let (mut bbr, f, mut w) = full();
        bbr.idle_restart = true;
        assert_eq!(ack(&mut bbr, &f, &mut w, 30_000, EXPIRY_US + TICK_US), (30_000, Mode::ProbeBw));
        assert!(!bbr.idle_restart, "which ends with the first delivery");
    }

    #[test]
    fn the_pipe_stays_empty_for_200_ms_and_a_round_from_when_it_is() {
        let (mut bbr, mut f, mut w) = full();
        let start = EXPIRY_US + TICK_US;
        ack(&mut bbr, &f, &mut w, 30_000, start);
        w.cwnd = MIN_CWND;
        ack(&mut bbr, &f, &mut w, 30_000, start + 100_000);
        assert_eq!(bbr.min_rtt.done_at, None, "100 segments are still in flight");
        assert_eq!(w.app_limited, f.delivered + 100);

        f.packets_out = 4;
        let small = start + 150_000;
        ack(&mut bbr, &f, &mut w, 30_000, small);
        assert_eq!(bbr.min_rtt.done_at, Some(clock(small + 200_000, 250).jiffies()));
        assert_eq!(bbr.rounds.next_delivered, f.delivered);

        bbr.rounds.started = false;
        assert_eq!(ack(&mut bbr, &f, &mut w, 30_000, small + 300_000).1, Mode::ProbeRtt, "no round yet");
        bbr.rounds.started = true;
        assert_eq!(ack(&mut bbr, &f, &mut w, 30_000, small + 200_000).1, Mode::ProbeRtt, "the tick has to pass");
        assert_eq!(ack(&mut bbr, &f, &mut w, 30_000, small + 200_000 + TICK_US).1, Mode::ProbeBw);
        assert_eq!(w.cwnd, 200, "the window is back");
    }

    #[test]
    fn before_the_pipe_was_full_startup_goes_on() {
        let (mut bbr, f, mut w) = full();
        bbr.full_pipe.reached = false;
        bbr.mode = Mode::ProbeRtt;
        bbr.min_rtt.done_at = Some(500);
        bbr.check_probe_rtt_done(&f, &mut w, 501);
        assert_eq!((bbr.mode, bbr.min_rtt.at), (Mode::Startup, 501));
    }
}
