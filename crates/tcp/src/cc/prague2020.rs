//! Prague of August 2020: `tcp_prague.c` 0.5 of L4STeam's Linux, commit b256daed, which heistp/l4s-tests ran. Unlike
//! `prague`:
//!
//! - A short round trip is not treated as a longer one (`RTT_CONTROL_NONE`).
//! - The window also grows while the pace holds data back, not only while the window does.
//! - The average share of marks begins at one, not at zero.
//! - The pace follows the window in whole segments, not its fraction.
//!
//! Its fall-back to a classic response is off there, and so it is missing here.

use super::growth::{is_cwnd_limited, slow_start};
use super::{Control, Event, MIN_TSO_SEGS, RateSample, SNDBUF_EXPAND};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::window::Window;
use sawtooth_units::width::Fit;

/// Shares and fractions of a segment are in 2^-20 (`PRAGUE_ALPHA_BITS`, `CWND_UNIT`).
const BITS: u32 = 20;
const SEGMENT: i64 = 1 << BITS;
/// The weight of a round trip's share, as a power of one half (`PRAGUE_SHIFT_G`).
const WEIGHT: u32 = 4;
const LEAST_WINDOW: u32 = 2;
/// A super-packet is what leaves within 2^-12 s (`prague_burst_shift`).
const BURST_SHIFT: u32 = 12;
/// IP and TCP headers with timestamps, which rates include (`tcp_mss_to_mtu`).
const HEADERS: u64 = 52;

/// One connection's Prague.
#[derive(Clone, Copy, Debug)]
pub struct Prague2020 {
    /// The average share of marks, times 16.
    alpha: u64,
    /// What the window still gains or loses in whole segments, one at each acknowledgement (`cwnd_cnt`).
    carry: i64,
    /// The current round trip: where it ends, and the delivered and marked counts when it began.
    round_end: u64,
    delivered: u64,
    delivered_ce: u64,
    /// Marks at the last acknowledgement; whether there has been one.
    seen_ce: u64,
    is_marked: bool,
    in_loss: bool,
    before_loss: u32,
    carry_before_loss: i64,
    burst: u32,
}

impl Prague2020 {
    fn begin_round(&mut self, flight: &Flight) {
        self.round_end = flight.snd_nxt;
        (self.delivered, self.delivered_ce) = (flight.delivered, flight.delivered_ce);
    }

    /// At the end of a round trip, its share of marks is averaged (`prague_update_alpha`).
    fn average(&mut self, flight: &Flight) {
        if flight.snd_una < self.round_end {
            return;
        }
        if self.is_marked {
            let marked = (flight.delivered_ce - self.delivered_ce) << BITS;
            let share = marked / (flight.delivered - self.delivered).max(1);
            self.alpha = (self.alpha - (self.alpha >> WEIGHT) + share).min(1 << (BITS + WEIGHT));
        }
        self.begin_round(flight);
    }

    /// As `prague_update_cwnd`. Data that waits for the pace counts as limited by the window: TCP itself paces, since
    /// the device has no queue `fq`.
    fn update_window(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample) {
        let marked = flight.delivered_ce - self.seen_ce;
        self.seen_ce = flight.delivered_ce;
        self.is_marked |= marked > 0;
        let mut acked = sample.acked_sacked.saturating_sub(marked.fit_u32());
        if acked > 0 && !self.in_loss && (is_cwnd_limited(flight, window) || sample.has_unsent) {
            if window.in_slow_start() {
                acked = slow_start(window, acked);
                if acked == 0 {
                    return;
                }
            }
            let cwnd = u64::from(window.cwnd.max(1));
            let increase = ((u64::from(acked) << BITS) + cwnd / 2) / cwnd;
            self.carry += increase.max(u64::from(acked)).cast_signed();
        }
        self.step(window);
    }

    /// At most one segment per acknowledgement, up or down.
    fn step(&mut self, window: &mut Window) {
        if self.carry <= -SEGMENT {
            self.carry += SEGMENT;
            window.cwnd -= 1;
            if window.cwnd < LEAST_WINDOW {
                (window.cwnd, self.carry) = (LEAST_WINDOW, 0);
            }
            window.ssthresh = window.cwnd;
        } else if self.carry >= SEGMENT {
            self.carry -= SEGMENT;
            window.cwnd = (window.cwnd + 1).min(window.clamp);
        }
    }

    fn pace(&mut self, flight: &Flight, window: &mut Window) {
        let frame = u64::from(flight.mss) + HEADERS;
        let faster = u64::from(window.cwnd < window.ssthresh / 2);
        let each = ((8_000_000 * frame) << faster) / u64::from(flight.srtt_us.max(1));
        let rate = each * u64::from(window.cwnd.max(flight.in_flight()));
        self.burst = ((rate / frame) >> BURST_SHIFT).clamp(1, u64::from(u32::MAX)).fit_u32();
        window.pacing_rate = rate;
    }

    fn react_to_loss(&mut self, window: &Window) {
        (self.before_loss, self.carry_before_loss) = (window.cwnd, self.carry);
        self.carry -= (i64::from(window.cwnd) << (BITS - 1)) + (self.carry >> 1);
        self.in_loss = true;
    }

    fn react_to_marks(&mut self, window: &Window) {
        let alpha = self.alpha >> WEIGHT;
        let reduction = (alpha * (u64::from(window.cwnd) << BITS) + (1 << BITS)) >> (BITS + 1);
        self.carry -= reduction.cast_signed();
    }
}

impl Control for Prague2020 {
    const NAME: &'static str = "prague";
    const VARIANT: Option<&'static str> = Some("2020");
    const HAS_CONG_CONTROL: bool = true;
    const NEEDS_ECN: bool = true;
    const NEEDS_ACCURATE_ECN: bool = true;

    fn new(flight: &Flight, window: &mut Window, _: Clock, _: u64) -> Self {
        let mut prague = Prague2020 {
            alpha: 1 << (BITS + WEIGHT),
            carry: 0,
            round_end: 0,
            delivered: 0,
            delivered_ce: 0,
            seen_ce: flight.delivered_ce,
            is_marked: flight.delivered_ce > 0,
            in_loss: false,
            before_loss: 0,
            carry_before_loss: 0,
            burst: 1,
        };
        window.pacing = true;
        prague.pace(flight, window);
        prague.begin_round(flight);
        prague
    }

    /// The window is reduced by the steps of [`Self::cong_control`].
    fn ssthresh(&mut self, _: &Flight, window: &Window) -> u32 {
        window.ssthresh
    }

    /// Moves the carry away from its value before the loss, not back to it, as that kernel does.
    fn undo_cwnd(&mut self, _: &Flight, window: &Window) -> u32 {
        self.carry += self.carry - self.carry_before_loss;
        window.cwnd.max(self.before_loss)
    }

    fn min_tso_segs(&self, _: &Flight, _: &Window) -> u32 {
        MIN_TSO_SEGS
    }

    fn tso_segs(&self, _: &Flight, _: &Window) -> Option<u32> {
        Some(self.burst)
    }

    fn sndbuf_expand(&self) -> u32 {
        SNDBUF_EXPAND
    }

    fn cong_control(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample, _: Clock) {
        self.update_window(flight, window, sample);
        self.average(flight);
        self.pace(flight, window);
    }

    fn set_state(&mut self, flight: &Flight, window: &mut Window, new: CaState, _: Clock) {
        if new == flight.ca_state {
            return;
        }
        match new {
            CaState::Recovery => self.react_to_loss(window),
            CaState::Cwr => self.react_to_marks(window),
            CaState::Open => self.in_loss = false,
            CaState::Disorder | CaState::Loss => {}
        }
    }

    fn event(&mut self, _: &Flight, window: &mut Window, event: Event, _: Clock) {
        if event == Event::Loss {
            self.react_to_loss(window);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bbr::tests::sample;
    use super::*;
    use crate::cc::testing::{clock, flight, window};

    fn started(cwnd: u32) -> (Prague2020, Flight, Window) {
        let f = Flight { ecn: true, srtt_us: 5_000 << 3, ..flight() };
        let mut w = window();
        let prague = Prague2020::new(&f, &mut w, clock(0, 250), 1);
        (w.cwnd, w.ssthresh) = (cwnd, 1);
        (prague, f, w)
    }

    /// The window after `acks` acknowledgements of one segment each.
    fn after(prague: &mut Prague2020, f: &Flight, w: &mut Window, acks: u32, has_unsent: bool) -> u32 {
        for _ in 0..acks {
            prague.update_window(f, w, &RateSample { acked_sacked: 1, has_unsent, ..sample() });
        }
        w.cwnd
    }

    #[test]
    fn a_short_round_trip_grows_by_a_segment_also_while_the_pace_holds_data_back() {
        let (mut prague, f, mut w) = started(20);
        let f = Flight { is_cwnd_limited: false, ..f };
        assert_eq!(after(&mut prague, &f, &mut w, 100, false), 20, "nothing waited to be sent");
        assert_eq!(after(&mut prague, &f, &mut w, 20, true), 21);
    }

    #[test]
    fn the_first_mark_halves_the_window_segment_by_segment() {
        let (mut prague, f, mut w) = started(20);
        prague.set_state(&f, &mut w, CaState::Cwr, clock(0, 250));
        prague.in_loss = true;
        assert_eq!(after(&mut prague, &f, &mut w, 3, true), 17);
        assert_eq!(after(&mut prague, &f, &mut w, 30, true), 10);
        assert_eq!(w.ssthresh, 10);
    }

    #[test]
    fn a_loss_halves_the_window_and_stops_its_growth_until_it_is_repaired() {
        let (mut prague, f, mut w) = started(20);
        prague.set_state(&f, &mut w, CaState::Recovery, clock(0, 250));
        let recovering = Flight { ca_state: CaState::Recovery, ..f };
        assert_eq!(after(&mut prague, &recovering, &mut w, 50, true), 10);
        prague.set_state(&recovering, &mut w, CaState::Open, clock(0, 250));
        assert_eq!(after(&mut prague, &f, &mut w, 10, true), 11);
    }

    #[test]
    fn the_window_is_at_least_two_segments() {
        let (mut prague, f, mut w) = started(3);
        for _ in 0..5 {
            prague.set_state(&f, &mut w, CaState::Recovery, clock(0, 250));
        }
        assert_eq!(after(&mut prague, &f, &mut w, 9, true), LEAST_WINDOW);
        assert_eq!(prague.carry, 0);
    }

    #[test]
    fn the_average_begins_at_one_and_moves_by_a_sixteenth() {
        let (mut prague, mut f, _) = started(20);
        f.delivered += 100;
        (prague.is_marked, f.snd_una) = (true, f.snd_nxt);
        prague.average(&f);
        assert_eq!(prague.alpha >> WEIGHT, (1 << BITS) - (1 << (BITS - WEIGHT)));
    }

    #[test]
    fn the_pace_is_the_window_per_round_trip_and_twice_that_in_slow_start() {
        let (mut prague, f, mut w) = started(20);
        let window_s = 20 * 200 * (u64::from(f.mss) + HEADERS);
        prague.pace(&f, &mut w);
        assert_eq!(w.pacing_rate, window_s);
        w.ssthresh = 100;
        prague.pace(&f, &mut w);
        assert_eq!(w.pacing_rate, 2 * window_s);
    }
}
