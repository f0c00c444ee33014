//! BBR v3's use of marks, on paths whose queues mark early (from the public v3 tree; draft-ietf-ccwg-bbr leaves ECN
//! out). The share of marked segments, averaged over rounds, bounds the flight except while probing, and ends probing
//! if it is large.
//!
//! This needs a receiver that reports each change between marked and unmarked, and a smallest round trip of at most 5
//! ms.

use super::long_term::part_of;
use super::probing::Phase;
use super::{Bbr3, Edition, Mode, NO_BOUND};
use crate::cc::RateSample;
use crate::cc::bbr::mode::{UNIT, UNIT_SHIFT};
use crate::flight::{CaState, Flight};
use crate::window::Window;
use sawtooth_units::width::Fit;

/// Longer paths than this, in microseconds, have queues that mark late (`bbr_ecn_max_rtt_us`).
const LONGEST_RTT_US: u32 = 5_000;
/// Weight of a round's share in the average, in 256ths (`bbr_ecn_alpha_gain`); the average begins at 1
/// (`bbr_ecn_alpha_init`).
const GAIN: u32 = UNIT / 16;
/// The bound falls by this part of the average (`bbr_ecn_factor`).
const FACTOR: u32 = UNIT / 3;
/// A larger share means that too much is in flight (`bbr_ecn_thresh`).
const TOO_HIGH: u32 = UNIT / 2;
/// Consecutive rounds with such a share that end startup (`bbr_full_ecn_cnt`).
const STARTUP_ROUNDS: u8 = 2;
/// When marks have ceased, the first round of probing raises the long-term bound by this part of it
/// (`bbr_ecn_reprobe_gain`).
const REPROBE: u32 = UNIT / 2;

#[derive(Clone, Debug)]
pub(super) struct Marks {
    /// The path was short enough once, and the ends agreed on ECN (`ecn_eligible`).
    heeded: bool,
    /// The average share in 256ths (`ecn_alpha`), and the delivered and marked counts when it was last updated.
    pub(super) share: u32,
    delivered: u64,
    delivered_ce: u64,
    /// Consecutive rounds of startup with a large share.
    startup_rounds: u8,
    /// An ACK of this round echoed a mark; in this cycle an ACK delivered marked segments, and none reported a loss.
    in_round: bool,
    in_cycle: bool,
    loss_in_cycle: bool,
}

impl Marks {
    pub(super) const NONE: Marks = Marks {
        heeded: false,
        share: UNIT,
        delivered: 0,
        delivered_ce: 0,
        startup_rounds: 0,
        in_round: false,
        in_cycle: false,
        loss_in_cycle: false,
    };

    /// A cycle of probing is over.
    pub(super) fn forget(&mut self) {
        (self.in_round, self.in_cycle, self.loss_in_cycle) = (false, false, false);
    }

    pub(super) fn end_round(&mut self) {
        self.in_round = false;
    }

    /// A segment is lost.
    pub(super) fn note_loss(&mut self) {
        self.loss_in_cycle = true;
    }

    /// Records what later ACKs need from this one.
    pub(super) fn note(&mut self, sample: &RateSample) {
        self.loss_in_cycle |= sample.lost > 0;
        self.in_cycle |= sample.delivered_ce > 0;
    }

    pub(super) fn are_in_round(&self) -> bool {
        self.in_round
    }

    /// A bound on the flight after a round with marks.
    pub(super) fn cut(&self, inflight: u32) -> u32 {
        part_of(inflight, UNIT - part_of(self.share, FACTOR))
    }

    /// The marked share of the sample is too large.
    fn are_too_many(&self, sample: &RateSample) -> bool {
        let delivered = u32::try_from(sample.delivered).unwrap_or(0);
        self.heeded && delivered > 0 && sample.delivered_ce > part_of(delivered, TOO_HIGH)
    }
}

impl<E: Edition> Bbr3<E> {
    /// A round began: adds its share to the average. Two large ones in a row end startup.
    fn take_share(&mut self, flight: &Flight, window: &Window) {
        self.marks.heeded |= flight.ecn && self.min_rtt.us <= LONGEST_RTT_US;
        let marks = &mut self.marks;
        let delivered = flight.delivered - marks.delivered;
        if !marks.heeded || delivered == 0 {
            return;
        }
        let share = (((flight.delivered_ce - marks.delivered_ce) << UNIT_SHIFT) / delivered).fit_u32();
        marks.share = (part_of(marks.share, UNIT - GAIN) + part_of(share, GAIN)).min(UNIT);
        (marks.delivered, marks.delivered_ce) = (flight.delivered, flight.delivered_ce);
        if self.full_pipe.reached {
            return;
        }
        marks.startup_rounds = if share >= TOO_HIGH { marks.startup_rounds + 1 } else { 0 };
        if marks.startup_rounds >= STARTUP_ROUNDS {
            self.end_startup(flight, window);
        }
    }

    /// Processes an ACK's echoes.
    pub(super) fn see_marks(&mut self, flight: &Flight, window: &Window, sample: &RateSample) {
        if self.rounds.started {
            self.take_share(flight, window);
        }
        self.marks.in_round |= self.marks.heeded && sample.is_ece;
    }

    /// IsInflightTooHigh.
    pub(super) fn shows_too_much(&self, sample: &RateSample) -> bool {
        Self::is_too_high(sample.lost, sample.tx_in_flight) || E::HEEDS_MARKS && self.marks.are_too_many(sample)
    }

    /// This cycle had marks and no loss, and the marks have ceased: there may be room again.
    pub(super) fn is_time_to_probe_again(&self, flight: &Flight) -> bool {
        let marks = &self.marks;
        E::HEEDS_MARKS
            && marks.heeded
            && marks.in_cycle
            && !marks.loss_in_cycle
            && flight.ca_state == CaState::Open
            && matches!(self.mode, Mode::ProbeBw(Phase::Down | Phase::Cruise))
    }

    /// Doublings of the step after which a round raises the long-term bound by half.
    pub(super) fn doublings_to_probe_again(&self) -> u32 {
        part_of(self.long_term, REPROBE).checked_ilog2().unwrap_or(0)
    }

    /// The short-term bound on the flight after a round with marks; the bound on the rate stays.
    pub(super) fn bound_by_marks(&mut self, window: &Window) -> u32 {
        if !E::HEEDS_MARKS || !self.marks.are_in_round() {
            return NO_BOUND;
        }
        if self.short_term.inflight == NO_BOUND {
            self.short_term.inflight = window.cwnd;
        }
        self.marks.cut(self.short_term.inflight)
    }
}

#[cfg(test)]
mod tests {
    use super::super::path::{Path, Shape};
    use super::*;
    use crate::cc::Control;
    use crate::cc::bbr3::{Linux, LowLatency};
    use crate::cc::testing::{clock, flight, window};

    /// 2 ms and ten segments per millisecond: twenty fill it. A segment that finds ten waiting is marked.
    const SHORT: Shape =
        Shape { segments_per_ms: 10, rtt_us: 2_000, queue: 400, marks_above: Some(10), ..Shape::PLAIN };

    fn path<E: Edition>(shape: Shape) -> Path<Bbr3<E>> {
        let mut path = Path::new(shape);
        path.f.ecn = true;
        path
    }

    fn bbr(share: u32) -> (Bbr3<LowLatency>, Flight, Window) {
        let (f, mut w) = (Flight { ecn: true, ..flight() }, window());
        let mut bbr = Bbr3::<LowLatency>::new(&f, &mut w, clock(0, 250), 1);
        (bbr.marks.heeded, bbr.marks.share) = (true, share);
        (bbr, f, w)
    }

    #[test]
    fn a_round_s_share_has_a_sixteenth_of_the_average() {
        let (mut bbr, mut f, w) = bbr(UNIT);
        let mut round = |marked: u64| {
            (f.delivered, f.delivered_ce) = (f.delivered + 100, f.delivered_ce + marked);
            bbr.take_share(&f, &w);
            bbr.marks.share
        };
        assert_eq!([round(0), round(0), round(50), round(100)], [240, 225, 218, 220]);
    }

    #[test]
    fn a_bound_comes_down_by_a_third_of_the_average() {
        assert_eq!([UNIT, UNIT / 2, 0].map(|share| bbr(share).0.marks.cut(300)), [200, 250, 300]);
    }

    #[test]
    fn marks_bound_the_flight_and_not_the_rate() {
        let (mut bbr, _, mut w) = bbr(UNIT);
        w.cwnd = 90;
        assert_eq!(bbr.bound_by_marks(&w), NO_BOUND, "no mark");
        bbr.marks.in_round = true;
        assert_eq!(bbr.bound_by_marks(&w), 60);
        assert_eq!(bbr.short_term.bandwidth, NO_BOUND);
    }

    #[test]
    fn more_than_half_of_a_sample_marked_is_too_much() {
        let (bbr, ..) = bbr(UNIT);
        let sample = |delivered_ce| RateSample { delivered: 20, delivered_ce, ..crate::cc::bbr::tests::sample() };
        assert_eq!([10, 11].map(|marked| bbr.shows_too_much(&sample(marked))), [false, true]);
    }

    #[test]
    fn the_first_step_of_probing_again_is_half_the_bound() {
        let (mut bbr, ..) = bbr(UNIT);
        bbr.long_term = 128;
        assert_eq!(bbr.doublings_to_probe_again(), 6);
        bbr.long_term = NO_BOUND;
        assert_eq!(bbr.doublings_to_probe_again(), 30);
    }

    #[test]
    fn over_a_short_path_marks_keep_the_queue_short_and_the_link_busy() {
        let queue = |mut path: Path<Bbr3<LowLatency>>| {
            path.run_until_ms(2_000);
            path.most_waiting = 0;
            path.run_until_ms(8_000);
            (path.most_waiting, path.f.delivered)
        };
        let (marked, delivered) = queue(path(SHORT));
        let (unmarked, most) = queue(path(Shape { marks_above: None, ..SHORT }));
        assert!(3 * marked < 2 * unmarked, "{marked} {unmarked}");
        assert!(delivered * 10 > most * 9, "{delivered} {most}");
    }

    #[test]
    fn marks_are_ignored_above_5_ms_rtt_or_without_agreement() {
        let long = Shape { rtt_us: 5_100, ..SHORT };
        let mut short_without = path::<LowLatency>(SHORT);
        short_without.f.ecn = false;
        for mut path in [path::<LowLatency>(long), short_without] {
            path.run_until_ms(3_000);
            assert!(!path.cc.marks.heeded && path.f.delivered_ce > 0);
        }
    }

    #[test]
    fn linux_without_low_latency_ecn_does_the_same_with_marks_as_without() {
        let delivered = [SHORT, Shape { marks_above: None, ..SHORT }].map(|shape| {
            let mut path = path::<Linux>(shape);
            path.keeps_state_open = true;
            path.run_until_ms(2_000);
            (path.f.delivered, path.w.cwnd, path.cc.long_term)
        });
        assert_eq!(delivered[0], delivered[1]);
    }
}
