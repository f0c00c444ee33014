//! BBR's smallest round-trip time (the draft's RTprop, section 4.1.2) and PROBE_RTT (4.3.5), as in Linux 6.12
//! (`bbr_update_min_rtt`).

use super::Bbr;
use super::mode::Mode;
use crate::cc::{RateSample, jiffies};
use crate::clock::Clock;
use crate::flight::Flight;
use crate::window::Window;
use sawtooth_units::width::Low;

/// RTpropFilterLen: the minimum is over this many seconds (`bbr_min_rtt_win_sec`).
pub(in crate::cc) const WINDOW_SECONDS: u32 = 10;
/// ProbeRTTDuration: PROBE_RTT lasts this many microseconds at least (`bbr_probe_rtt_mode_ms`).
pub(in crate::cc) const PROBE_RTT_US: u64 = 200_000;
/// BBRMinPipeCwnd: the window in PROBE_RTT, and the smallest of any mode, in segments (`bbr_cwnd_min_target`).
pub(in crate::cc) const MIN_CWND: u32 = 4;

#[derive(Clone, Debug)]
pub(super) struct MinRtt {
    /// Microseconds; `u32::MAX` before the first sample.
    pub(super) us: u32,
    /// Tick of that sample, or of the end of the last PROBE_RTT.
    pub(super) at: u32,
    /// PROBE_RTT's timing, once the flight is small.
    small: Option<Small>,
}

/// How long the flight has been small enough to show the path's own delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Small {
    /// The tick after which that has lasted 200 ms.
    until: u32,
    /// Whether a round began since.
    round_began: bool,
}

impl MinRtt {
    pub(super) fn new(us: u32, now: u32) -> Self {
        MinRtt { us, at: now, small: None }
    }

    fn is_expired(&self, clock: Clock) -> bool {
        jiffies::after(clock.jiffies(), self.at.wrapping_add(WINDOW_SECONDS * clock.hz()))
    }

    fn take(&mut self, us: u32, now: u32) {
        (self.us, self.at) = (us, now);
    }
}

impl Bbr {
    /// The minimum must be measured again when it has expired, unless an idle period has just shown it.
    pub(super) fn update_min_rtt(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample, clock: Clock) {
        let is_expired = self.min_rtt.is_expired(clock);
        if let Ok(rtt_us) = u64::try_from(sample.rtt_us)
            && (rtt_us < u64::from(self.min_rtt.us) || is_expired && !sample.is_ack_delayed)
        {
            self.min_rtt.take(rtt_us.low_u32(), clock.jiffies());
        }
        if is_expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.enter_probe_rtt(window);
        }
        if self.mode == Mode::ProbeRtt {
            self.hold_probe_rtt(flight, window, clock);
        }
        self.idle_restart &= sample.delivered <= 0;
    }

    /// The saved window counts as cut by PROBE_RTT: a previously saved, larger one is kept.
    fn enter_probe_rtt(&mut self, window: &Window) {
        self.mode = Mode::ProbeRtt;
        self.min_rtt.small = None;
        self.save_cwnd(window);
    }

    /// Keeps the flight small for 200 ms and one round.
    fn hold_probe_rtt(&mut self, flight: &Flight, window: &mut Window, clock: Clock) {
        // The low rate in this mode is not the path's.
        window.app_limited = (flight.delivered + u64::from(flight.in_flight())).max(1);
        let Some(small) = &mut self.min_rtt.small else {
            if flight.in_flight() <= MIN_CWND {
                self.note_small_flight(flight, clock);
            }
            return;
        };
        small.round_began |= self.rounds.started;
        if small.round_began {
            self.check_probe_rtt_done(flight, window, clock.jiffies());
        }
    }

    fn note_small_flight(&mut self, flight: &Flight, clock: Clock) {
        let until = clock.jiffies().wrapping_add(clock.jiffies_from_micros(PROBE_RTT_US).low_u32());
        self.min_rtt.small = Some(Small { until, round_began: false });
        self.rounds.next_delivered = flight.delivered;
    }

    /// Ends PROBE_RTT if the flight was small for long enough, and restores the window.
    pub(super) fn check_probe_rtt_done(&mut self, flight: &Flight, window: &mut Window, now: u32) {
        if self.min_rtt.small.is_none_or(|small| !jiffies::after(now, small.until)) {
            return;
        }
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        self.min_rtt.at = now;
        self.leave_probe_rtt(flight);
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
        assert_eq!(bbr.min_rtt.small, None, "100 segments are still in flight");
        assert_eq!(w.app_limited, f.delivered + 100);

        f.packets_out = 4;
        let small = start + 150_000;
        ack(&mut bbr, &f, &mut w, 30_000, small);
        let until = clock(small + 200_000, 250).jiffies();
        assert_eq!(bbr.min_rtt.small, Some(Small { until, round_began: false }));
        assert_eq!(bbr.rounds.next_delivered, f.delivered);

        bbr.rounds.started = false;
        assert_eq!(ack(&mut bbr, &f, &mut w, 30_000, small + 300_000).1, Mode::ProbeRtt, "no round yet");
        bbr.rounds.started = true;
        assert_eq!(ack(&mut bbr, &f, &mut w, 30_000, small + 200_000).1, Mode::ProbeRtt, "the tick has to pass");
        assert_eq!(ack(&mut bbr, &f, &mut w, 30_000, small + 200_000 + TICK_US).1, Mode::ProbeBw);
        assert_eq!(w.cwnd, 200, "the window is back");
    }

    #[test]
    fn before_the_pipe_was_full_startup_continues() {
        let (mut bbr, f, mut w) = full();
        bbr.full_pipe.reached = false;
        bbr.mode = Mode::ProbeRtt;
        bbr.min_rtt.small = Some(Small { until: 500, round_began: false });
        bbr.check_probe_rtt_done(&f, &mut w, 501);
        assert_eq!((bbr.mode, bbr.min_rtt.at), (Mode::Startup, 501));
    }
}
