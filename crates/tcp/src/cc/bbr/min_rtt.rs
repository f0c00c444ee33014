//! BBR's smallest round-trip time and PROBE_RTT, Linux 6.12 (`bbr_update_min_rtt` in `tcp_bbr.c`).

use super::Bbr;
use super::mode::Mode;
use crate::cc::{RateSample, jiffies};
use crate::clock::Clock;
use crate::window::Window;

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
        MinRtt {
            us,
            at: now,
            done_at: None,
            round_done: false,
        }
    }
}

impl Bbr {
    /// `bbr_update_min_rtt`.
    pub(super) fn update_min_rtt(&mut self, window: &mut Window, sample: &RateSample, clock: Clock) {
        let now = clock.jiffies();
        let expired = jiffies::after(now, self.min_rtt.at.wrapping_add(WINDOW_SECONDS * clock.hz));
        if sample.rtt_us >= 0 && (sample.rtt_us < i64::from(self.min_rtt.us) || (expired && !sample.is_ack_delayed)) {
            self.min_rtt.us = sample.rtt_us as u32;
            self.min_rtt.at = now;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(window);
            self.min_rtt.done_at = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(window, clock);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// Keep the flight small for 200 ms and a round.
    fn probe_rtt(&mut self, window: &mut Window, clock: Clock) {
        let now = clock.jiffies();
        // The low rate of this mode is not the path's.
        window.app_limited = (window.delivered + u64::from(window.in_flight())).max(1);
        match self.min_rtt.done_at {
            None if window.in_flight() <= MIN_CWND => {
                self.min_rtt.done_at = Some(now.wrapping_add(clock.jiffies_from_micros(PROBE_RTT_US) as u32));
                self.min_rtt.round_done = false;
                self.rounds.next_delivered = window.delivered;
            }
            None => {}
            Some(_) => {
                self.min_rtt.round_done |= self.rounds.started;
                if self.min_rtt.round_done {
                    self.check_probe_rtt_done(window, now);
                }
            }
        }
    }

    /// `bbr_check_probe_rtt_done`.
    pub(super) fn check_probe_rtt_done(&mut self, window: &mut Window, now: u32) {
        if self.min_rtt.done_at.is_some_and(|done| jiffies::after(now, done)) {
            self.min_rtt.at = now;
            window.cwnd = window.cwnd.max(self.prior_cwnd);
            self.leave_probe_rtt(window);
        }
    }
}
