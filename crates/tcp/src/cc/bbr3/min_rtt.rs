//! BBR v3's smallest round-trip time and PROBE_RTT (the draft's "ProbeRTT"): probed every 5 s, kept for 10 s.

use super::mode::Mode;
use super::probing::Acks;
use super::short_term::Bounds;
use super::{Bbr3, Edition};
use crate::cc::bbr::min_rtt::{MIN_CWND, PROBE_RTT_US, WINDOW_SECONDS};
use crate::cc::bbr::mode::UNIT;
use crate::cc::bbr::window::product;
use crate::cc::{RateSample, jiffies};
use crate::clock::Clock;
use crate::flight::Flight;
use crate::window::Window;
use sawtooth_units::width::Low;

/// ProbeRTTInterval: PROBE_RTT follows after this many microseconds without a smaller sample (`bbr_probe_rtt_win_ms`).
const PROBE_RTT_INTERVAL_US: u64 = 5_000_000;
/// ProbeRTTCwndGain: the flight in PROBE_RTT, as a part of the bandwidth-delay product.
const PROBE_RTT_CWND_GAIN: u32 = UNIT / 2;

/// A smallest round-trip time and the tick at which it was seen.
#[derive(Clone, Copy, Debug)]
struct Smallest {
    us: u32,
    at: u32,
}

#[derive(Clone, Debug)]
pub(super) struct MinRtt {
    /// Microseconds; `u32::MAX` before the first sample.
    pub(super) us: u32,
    at: u32,
    /// In the last five seconds (`probe_rtt_min_us`); its tick is also that of the end of the last PROBE_RTT.
    recent: Smallest,
    /// In PROBE_RTT, once the flight is small: the tick after which that has lasted 200 ms.
    small_until: Option<u32>,
    /// Whether a round began since.
    small_for_round: bool,
}

impl MinRtt {
    pub(super) fn new(us: u32, now: u32) -> Self {
        MinRtt { us, at: now, recent: Smallest { us, at: now }, small_until: None, small_for_round: false }
    }

    /// Takes a sample; true: five seconds brought none as small.
    fn update(&mut self, sample: &RateSample, equal_renews: bool, clock: Clock) -> bool {
        let interval = clock.jiffies_from_micros(PROBE_RTT_INTERVAL_US).low_u32();
        let is_due = jiffies::after(clock.jiffies(), self.recent.at.wrapping_add(interval));
        if let Ok(rtt_us) = u64::try_from(sample.rtt_us)
            && (rtt_us < u64::from(self.recent.us) || is_due && !sample.is_ack_delayed)
        {
            self.recent = Smallest { us: rtt_us.low_u32(), at: clock.jiffies() };
        }
        let is_expired = jiffies::after(clock.jiffies(), self.at.wrapping_add(WINDOW_SECONDS * clock.hz()));
        let is_smaller = self.recent.us < self.us || equal_renews && self.recent.us == self.us;
        if is_smaller || is_expired {
            (self.us, self.at) = (self.recent.us, self.recent.at);
        }
        is_due
    }
}

impl<E: Edition> Bbr3<E> {
    /// UpdateMinRTT and CheckProbeRTT.
    pub(super) fn update_min_rtt(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample, clock: Clock) {
        let is_due = self.min_rtt.update(sample, E::EQUAL_RTT_RENEWS, clock);
        if is_due && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(window);
            self.min_rtt.small_until = None;
            self.probe.acks = Acks::OfProbeStopping;
            self.rounds.next_delivered = flight.delivered;
        }
        if self.mode == Mode::ProbeRtt {
            self.hold_probe_rtt(flight, window, clock);
        }
        self.idle_restart &= sample.delivered <= 0;
    }

    /// Keeps the flight small for 200 ms and one round.
    fn hold_probe_rtt(&mut self, flight: &Flight, window: &mut Window, clock: Clock) {
        // The low rate in this mode is not the path's.
        window.app_limited = (flight.delivered + u64::from(flight.in_flight())).max(1);
        if self.min_rtt.small_until.is_none() {
            if flight.in_flight() <= self.probe_rtt_cwnd() {
                let ticks = clock.jiffies_from_micros(PROBE_RTT_US).low_u32();
                self.min_rtt.small_until = Some(clock.jiffies().wrapping_add(ticks));
                self.min_rtt.small_for_round = false;
                self.rounds.next_delivered = flight.delivered;
            }
            return;
        }
        self.min_rtt.small_for_round |= self.rounds.started;
        if self.min_rtt.small_for_round {
            self.check_probe_rtt_done(flight, window, clock);
        }
    }

    /// ProbeRTTCwnd.
    pub(super) fn probe_rtt_cwnd(&self) -> u32 {
        product(self.bandwidth(), self.min_rtt.us, PROBE_RTT_CWND_GAIN).unwrap_or(self.initial_window).max(MIN_CWND)
    }

    /// Ends PROBE_RTT if the flight was small for long enough. The next probing for bandwidth waits as usual, but there
    /// is no queue to drain before it.
    pub(super) fn check_probe_rtt_done(&mut self, flight: &Flight, window: &mut Window, clock: Clock) {
        if self.min_rtt.small_until.is_none_or(|until| !jiffies::after(clock.jiffies(), until)) {
            return;
        }
        self.min_rtt.recent.at = clock.jiffies();
        self.restore_cwnd(window);
        self.short_term = Bounds::NONE;
        if self.full_pipe.reached {
            self.probe_down(flight, clock);
            self.cruise();
        } else {
            self.mode = Mode::Startup;
        }
    }
}
