//! Prague, draft-briscoe-iccrg-prague-congestion-control and the public Linux version (`tcp_prague.c` 0.7): DCTCP's
//! response to marks, for the internet. It grows smoothly on unmarked segments, as if round trips were at least 25 ms,
//! and paces.
//!
//! # Where Linux differs
//!
//! From the draft; this file follows Linux, with its integers.
//!
//! - Below windows of four segments Linux moves a rate instead of the window, and below two sends smaller segments.
//!   Neither is implemented: the window is at least two segments.
//! - Neither has the draft's fall-back to a classic response when a classic queue marks (section 2.4.1 leaves it open).

use super::growth::{is_cwnd_limited, slow_start};
use super::{Control, Event, MIN_TSO_SEGS, RateSample, SNDBUF_EXPAND};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::window::Window;
use sawtooth_units::width::Fit;

/// Shares are in 2^-24 (`PRAGUE_ALPHA_BITS`); windows in 2^-20 of a segment (`CWND_UNIT`).
const SHARE_BITS: u32 = 24;
const SEGMENT: u64 = 1 << 20;
/// g, the weight of a round trip's share, as a power of one half.
const WEIGHT: u32 = 4;
/// Shorter round trips behave like this one, in microseconds times eight (section 2.4.4, `RTT_TARGET`); longer ones are
/// not scaled.
const TARGET: u64 = 25_000 << 3;
const LONGEST_SCALED: u64 = 100_000 << 3;
/// Round trips after slow start before scaling begins (`DEFAULT_RTT_TRANSITION`).
const TRANSITION: u32 = 4;
const LEAST_WINDOW: u32 = 2;
/// With less, the pace would fall so far that the window would never limit again, and so never grow.
const LEAST_FRACTION: u64 = LEAST_WINDOW as u64 * SEGMENT;
/// Bytes per second.
const LEAST_RATE: u64 = 12_500;
/// A super-packet is what leaves within 2^-12 s (`prague_burst_shift`).
const BURST_SHIFT: u32 = 12;
/// IP and TCP headers, which Linux includes in rates.
const HEADERS: u64 = 40;

/// One connection's Prague.
#[derive(Clone, Copy, Debug)]
pub struct Prague {
    /// The average share of marks, times 16.
    alpha: u64,
    /// The window.
    fraction: u64,
    /// Growth in a window of one segment, per unmarked segment.
    increase: u64,
    /// The current round trip: where it ends, and the delivered and marked counts when it began.
    round_end: u64,
    delivered: u64,
    delivered_ce: u64,
    /// Round trips since slow start.
    rounds: u32,
    /// Marks at the last acknowledgement; whether there has been one.
    seen_ce: u64,
    is_marked: bool,
    /// When the average was last updated, and when the window was last reduced.
    averaged_us: u64,
    reduced_us: u64,
    in_loss: bool,
    before_loss: u32,
    burst: u32,
}

impl Prague {
    fn acts_as_if_longer(&self, window: &Window) -> bool {
        !window.in_slow_start() && self.rounds >= TRANSITION
    }

    /// The window in whole segments.
    fn cwnd(&self, window: &Window) -> u32 {
        self.fraction.div_ceil(SEGMENT).min(u64::from(u32::MAX)).fit_u32().max(LEAST_WINDOW).min(window.clamp)
    }

    /// Short round trips add (RTT / 25 ms)² segments, so that flows with different round trips grow at the same rate
    /// per time.
    fn scale(&mut self, flight: &Flight) {
        let rtt = u64::from(flight.srtt_us);
        let as_is = self.rounds < TRANSITION || rtt == 0 || rtt > LONGEST_SCALED || rtt >= TARGET;
        self.increase = if as_is { SEGMENT } else { (rtt * rtt * SEGMENT + TARGET * TARGET / 2) / (TARGET * TARGET) };
    }

    fn begin_round(&mut self, flight: &Flight, window: &Window) {
        self.round_end = flight.snd_nxt;
        (self.delivered, self.delivered_ce) = (flight.delivered, flight.delivered_ce);
        if !window.in_slow_start() {
            self.rounds = self.rounds.saturating_add(1);
        }
        self.scale(flight);
    }

    /// At the end of a round trip, and at most every 25 ms, its share of marks is averaged (section 2.4.2).
    fn average(&mut self, flight: &Flight, window: &Window, clock: Clock) {
        let now = clock.micros();
        let soon = self.acts_as_if_longer(window) && now < self.averaged_us + (TARGET >> 3);
        if flight.snd_una < self.round_end || soon {
            return;
        }
        if self.is_marked {
            let marked = (flight.delivered_ce - self.delivered_ce) << SHARE_BITS;
            let share = marked / (flight.delivered - self.delivered).max(1);
            self.alpha = (self.alpha - (self.alpha >> WEIGHT) + share).min(1 << (SHARE_BITS + WEIGHT));
            self.averaged_us = now;
        }
        self.begin_round(flight, window);
    }

    /// Unmarked segments let the window grow, even while marks reduce it; `marked` segments were marked (section
    /// 2.4.3).
    fn grow(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample, marked: u64) {
        let mut acked = u64::from(sample.acked_sacked).saturating_sub(marked);
        if marked > 0 && !self.is_marked {
            // The first mark ends slow start, when the average is still meaningless.
            self.fraction = self.fraction.div_ceil(2);
            self.is_marked = true;
        }
        if acked > 0 && !self.in_loss && is_cwnd_limited(flight, window) {
            if window.in_slow_start() {
                acked = u64::from(slow_start(window, acked.fit_u32()));
                self.fraction = u64::from(window.cwnd) * SEGMENT;
                if acked == 0 {
                    return self.scale(flight);
                }
            }
            self.fraction += (acked * self.increase * SEGMENT / self.fraction.max(1)).max(acked);
        }
        // At most one segment per acknowledgement, up or down.
        let wanted = self.cwnd(window);
        if window.cwnd > wanted {
            window.cwnd -= 1;
            window.ssthresh = window.cwnd;
        } else if window.cwnd < wanted {
            window.cwnd += 1;
        }
        self.scale(flight);
    }

    fn pace(&mut self, flight: &Flight, window: &mut Window) {
        let frame = u64::from(flight.mss) + HEADERS;
        let segments = (self.fraction / SEGMENT).max(u64::from(flight.in_flight()));
        let mut rate = (8_000_000 * frame / u64::from(flight.srtt_us.max(1)) * segments).max(LEAST_RATE);
        if window.cwnd < window.ssthresh / 2 {
            rate *= 2;
        }
        self.burst = ((rate / frame) >> BURST_SHIFT).clamp(1, u64::from(u32::MAX)).fit_u32();
        window.pacing_rate = rate;
    }

    fn react_to_loss(&mut self, window: &Window) {
        self.before_loss = window.cwnd;
        self.fraction = (self.fraction - self.fraction / 2).max(LEAST_FRACTION);
        self.in_loss = true;
    }

    /// Reduces by half the average share, as DCTCP, but at most once in 25 ms.
    fn react_to_marks(&mut self, window: &Window, clock: Clock) {
        let now = clock.micros();
        if self.acts_as_if_longer(window) && now < self.reduced_us + (TARGET >> 3) {
            return;
        }
        self.reduced_us = now;
        let alpha = u128::from(self.alpha >> WEIGHT);
        let reduction = (alpha * u128::from(self.fraction) + (1 << SHARE_BITS)) >> (SHARE_BITS + 1);
        let reduced = self.fraction - u64::try_from(reduction).unwrap_or(self.fraction).min(self.fraction);
        self.fraction = reduced.max(LEAST_FRACTION);
    }
}

impl Control for Prague {
    const NAME: &'static str = "prague";
    const HAS_CONG_CONTROL: bool = true;
    const NEEDS_ECN: bool = true;
    const NEEDS_ACCURATE_ECN: bool = true;

    fn new(flight: &Flight, window: &mut Window, clock: Clock, _: u64) -> Self {
        let mut prague = Prague {
            alpha: 0,
            fraction: u64::from(window.cwnd) * SEGMENT,
            increase: SEGMENT,
            round_end: 0,
            delivered: 0,
            delivered_ce: 0,
            rounds: 0,
            seen_ce: flight.delivered_ce,
            is_marked: flight.delivered_ce > 0,
            averaged_us: clock.micros(),
            reduced_us: 0,
            in_loss: false,
            before_loss: 0,
            burst: 1,
        };
        window.pacing = true;
        prague.pace(flight, window);
        prague.begin_round(flight, window);
        prague
    }

    /// The window is reduced by the steps of [`Self::cong_control`].
    fn ssthresh(&mut self, _: &Flight, window: &Window) -> u32 {
        window.ssthresh
    }

    fn undo_cwnd(&mut self, _: &Flight, window: &Window) -> u32 {
        self.in_loss = false;
        let cwnd = window.cwnd.max(self.before_loss);
        self.fraction = self.fraction.max(u64::from(self.before_loss) * SEGMENT);
        cwnd
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

    fn cong_control(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample, clock: Clock) {
        let marked = flight.delivered_ce - self.seen_ce;
        self.seen_ce = flight.delivered_ce;
        self.grow(flight, window, sample, marked);
        self.average(flight, window, clock);
        self.pace(flight, window);
    }

    fn set_state(&mut self, flight: &Flight, window: &mut Window, new: CaState, clock: Clock) {
        if new == flight.ca_state {
            return;
        }
        match new {
            CaState::Recovery => self.react_to_loss(window),
            CaState::Cwr => self.react_to_marks(window, clock),
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
    use super::*;
    use crate::cc::testing::{clock, flight, window};

    fn started() -> (Prague, Flight, Window) {
        let f = Flight { ecn: true, ..flight() };
        let mut w = window();
        let prague = Prague::new(&f, &mut w, clock(0, 250), 1);
        (prague, f, w)
    }

    #[test]
    fn the_average_knows_nothing_before_the_first_mark_and_moves_by_a_sixteenth() {
        let (mut prague, mut f, w) = started();
        let mut round = |prague: &mut Prague, marked| {
            f.delivered += 100;
            f.delivered_ce += marked;
            f.snd_una = f.snd_nxt;
            prague.average(&f, &w, clock(0, 250));
            prague.alpha
        };
        assert_eq!(round(&mut prague, 0), 0);
        prague.is_marked = true;
        // The average is stored times 16.
        let quarter = 1 << (SHARE_BITS - 2);
        assert_eq!(round(&mut prague, 25), quarter);
        assert_eq!(round(&mut prague, 0), quarter - quarter / 16);
    }

    #[test]
    fn a_shorter_round_trip_grows_by_its_square_once_slow_start_is_long_over() {
        let (mut prague, mut f, _) = started();
        f.srtt_us = 5_000 << 3;
        prague.scale(&f);
        assert_eq!(prague.increase, SEGMENT);
        prague.rounds = TRANSITION;
        prague.scale(&f);
        assert_eq!(prague.increase, (SEGMENT + 12) / 25);
        f.srtt_us = 30_000 << 3;
        prague.scale(&f);
        assert_eq!(prague.increase, SEGMENT);
    }

    #[test]
    fn marks_take_half_their_average_share_and_losses_half() {
        let (mut prague, f, mut w) = started();
        (prague.fraction, prague.alpha) = (100 * SEGMENT, 1 << (SHARE_BITS + WEIGHT - 1));
        prague.set_state(&f, &mut w, CaState::Cwr, clock(0, 250));
        assert_eq!(prague.fraction, 75 * SEGMENT);
        prague.set_state(&f, &mut w, CaState::Recovery, clock(0, 250));
        assert_eq!(prague.fraction.div_ceil(SEGMENT), 38);
        assert!(prague.in_loss);
        let recovering = Flight { ca_state: CaState::Recovery, ..f };
        prague.set_state(&recovering, &mut w, CaState::Open, clock(0, 250));
        assert!(!prague.in_loss);
    }

    #[test]
    fn a_window_that_marks_and_losses_kept_small_can_grow_again() {
        let (mut prague, f, mut w) = started();
        let f = Flight { srtt_us: 10_000 << 3, ..f };
        (prague.alpha, w.cwnd, w.ssthresh) = (1 << (SHARE_BITS + WEIGHT), LEAST_WINDOW, 1);
        for round in 1..40 {
            prague.set_state(&f, &mut w, CaState::Cwr, clock(round * 30_000, 250));
        }
        prague.pace(&f, &mut w);
        assert_eq!(w.pacing_rate, 2 * 100 * (u64::from(f.mss) + HEADERS), "two segments in 10 ms");
    }

    #[test]
    fn the_window_comes_down_at_most_once_in_25_ms() {
        let (mut prague, f, mut w) = started();
        (prague.fraction, prague.alpha, prague.rounds) = (100 * SEGMENT, 1 << (SHARE_BITS + WEIGHT - 1), TRANSITION);
        w.ssthresh = 1;
        for (at_us, segments) in [(100_000, 75), (124_000, 75), (125_000, 57)] {
            prague.set_state(&f, &mut w, CaState::Cwr, clock(at_us, 250));
            assert_eq!(prague.fraction.div_ceil(SEGMENT), segments, "{at_us}");
        }
    }
}
