//! BBR v3 as a whole, on one bottleneck: its states, what loss and the application do to it.

use super::path::{Path, Shape};
use super::probing::Phase;
use super::*;
use crate::cc::bbr::mode::UNIT;
use crate::cc::bbr::pacing::BW_UNIT;
use crate::cc::testing::{clock, flight, window};

pub(super) type V3 = Bbr3<Linux>;

impl<E: Edition> Path<Bbr3<E>> {
    /// The states from now to `ms`, and the millisecond at which each began.
    pub(super) fn modes_until_ms(&mut self, ms: u64) -> Vec<(Mode, u64)> {
        let mut seen = vec![(self.cc.mode, self.now_ms())];
        while self.now_ms() < ms {
            self.step();
            if seen.last().is_some_and(|last| last.0 != self.cc.mode) {
                seen.push((self.cc.mode, self.now_ms()));
            }
        }
        seen
    }

    /// Runs until it enters `mode`.
    pub(super) fn run_until(&mut self, mode: Mode) {
        while self.cc.mode == mode {
            self.step();
        }
        let last_ms = self.now_ms() + 60_000;
        while self.cc.mode != mode {
            assert!(self.now_ms() < last_ms, "a minute without {mode:?}, in {:?}", self.cc.mode);
            self.step();
        }
    }
}

const UP: Mode = Mode::ProbeBw(Phase::Up);
const DOWN: Mode = Mode::ProbeBw(Phase::Down);
const CRUISE: Mode = Mode::ProbeBw(Phase::Cruise);
const REFILL: Mode = Mode::ProbeBw(Phase::Refill);

fn gains(mode: Mode) -> (u32, u32) {
    let (f, mut w) = (flight(), window());
    let mut bbr = V3::new(&f, &mut w, clock(0, 250), 1);
    bbr.mode = mode;
    bbr.update_gains();
    (bbr.pacing_gain, bbr.cwnd_gain)
}

#[test]
fn the_gains_are_the_kernels() {
    assert_eq!([Mode::Startup, Mode::Drain, Mode::ProbeRtt].map(gains), [(710, 512), (88, 512), (256, 256)]);
    assert_eq!([DOWN, CRUISE, REFILL, UP].map(gains), [(232, 512), (256, 512), (256, 512), (320, 576)]);
}

#[test]
fn it_starts_drains_and_then_cruises_and_probes_in_turn() {
    let mut path = Path::<V3>::new(Shape::default());
    let modes: Vec<Mode> = path.modes_until_ms(4_500).iter().map(|seen| seen.0).collect();
    assert_eq!(
        modes[..6],
        [Mode::Startup, Mode::Drain, CRUISE, REFILL, UP, DOWN],
        "drained, there is no queue to bring down"
    );
    let exact = 10 * BW_UNIT / 1_000;
    assert!(u64::from(path.cc.max_bandwidth.get()).abs_diff(exact) * 50 <= exact);
}

#[test]
fn probing_waits_for_two_to_three_seconds_or_63_rounds() {
    let mut path = Path::<V3>::new(Shape { rtt_us: 100_000, ..Shape::default() });
    let modes = path.modes_until_ms(20_000);
    let starts: Vec<u64> = modes.iter().filter(|seen| seen.0 == DOWN).map(|seen| seen.1).collect();
    let ups = |from: u64| modes.iter().find(|seen| seen.0 == REFILL && seen.1 >= from).map(|seen| seen.1);
    for &start in starts.iter().filter(|&&start| start < 4_000) {
        let wait = ups(start).expect("it probes again") - start;
        assert!((2_000..=3_200).contains(&wait), "{modes:?}");
    }

    let mut short = Path::<V3>::new(Shape { rtt_us: 10_000, ..Shape::default() });
    let modes = short.modes_until_ms(3_000);
    let begins = |mode: Mode| modes.iter().filter(move |seen| seen.0 == mode).map(|seen| seen.1);
    let (down, refill) = (begins(DOWN).next().unwrap(), begins(REFILL).next().unwrap());
    assert!((600..1_100).contains(&(refill - down)), "62 or 63 rounds of 10 ms and more: {modes:?}");
}

#[test]
fn after_five_seconds_the_flight_is_halved_for_200_ms() {
    let mut path = Path::<V3>::new(Shape::default());
    let modes = path.modes_until_ms(12_000);
    let at = modes.iter().position(|seen| seen.0 == Mode::ProbeRtt).expect("five seconds have passed");
    assert_eq!(modes[at + 1].0, CRUISE);
    let length = modes[at + 1].1 - modes[at].1;
    assert!((200..=260).contains(&length), "{length} ms");
    assert!(modes[at].1 < 7_500, "{modes:?}");
}

#[test]
fn two_percent_of_loss_in_a_probe_ends_it_and_bounds_the_flight() {
    let mut path = Path::<V3>::new(Shape::default());
    path.run_until(UP);
    path.shape.lost_of_1024 = 50;
    let modes = path.modes_until_ms(path.now_ms() + 100);
    assert_eq!(modes[1].0, DOWN, "{modes:?}");
    assert!(path.cc.probe.was_too_high && path.cc.long_term < 400, "{}", path.cc.long_term);
}

#[test]
fn the_probe_after_one_that_went_too_high_stops_at_the_bound() {
    let mut path = Path::<V3>::new(Shape { queue: 60, ..Shape::default() });
    path.run_until(UP);
    path.run_until(DOWN);
    assert!(path.cc.probe.was_too_high, "60 segments are less than a quarter of 200 and what the round trip adds");
    let bound = path.cc.long_term;
    path.run_until(UP);
    path.run_until(DOWN);
    assert!(path.cc.probe.was_cautious && !path.cc.probe.was_too_high);
    assert!(path.f.in_flight() <= bound + 60);
    path.run_until(REFILL);
    assert!(path.cc.probe.acks == super::probing::Acks::OfRefill, "no cruise between");
}

#[test]
fn loss_while_cruising_lowers_rate_and_flight_to_what_was_delivered() {
    let mut path = Path::<V3>::new(Shape::default());
    path.run_until(CRUISE);
    path.shape.lost_of_1024 = 10;
    path.run_until_ms(path.now_ms() + 200);
    let bounds = path.cc.short_term;
    assert!(bounds.bandwidth < path.cc.max_bandwidth.get() && bounds.inflight < NO_BOUND, "{bounds:?}");
    path.shape.lost_of_1024 = 0;
    path.run_until(REFILL);
    assert_eq!(path.cc.short_term, Bounds::NONE, "which the next probe forgets");
}

#[test]
fn a_tail_loss_probes_repair_is_a_loss_of_one() {
    let mut path = Path::<V3>::new(Shape::default());
    path.run_until(UP);
    path.cc.latest.segments = 30;
    path.event(Event::TlpRecovery { is_app_limited: false });
    assert_eq!(path.cc.mode, DOWN);
    assert!(path.cc.probe.was_too_high);
}

#[test]
fn an_undo_gives_back_what_the_loss_took() {
    let (mut f, mut w) = (flight(), window());
    let mut bbr = V3::new(&f, &mut w, clock(0, 250), 1);
    (bbr.mode, bbr.full_pipe.reached, bbr.long_term) = (CRUISE, true, 300);
    w.cwnd = 250;
    assert_eq!(bbr.ssthresh(&f, &w), INFINITE_SSTHRESH);
    (bbr.short_term, bbr.long_term) = (Bounds { bandwidth: 5, inflight: 100 }, 200);
    (w.cwnd, f.ca_state) = (100, CaState::Recovery);
    assert_eq!(bbr.undo_cwnd(&f, &w), 250);
    assert_eq!((bbr.short_term, bbr.long_term), (Bounds::NONE, 300));
}

#[test]
fn a_timeout_bounds_the_flight_by_the_window_before_it_which_comes_back() {
    let (f, mut w) = (flight(), window());
    let mut bbr = V3::new(&f, &mut w, clock(0, 250), 1);
    bbr.mode = CRUISE;
    w.cwnd = 80;
    bbr.ssthresh(&f, &w);
    w.cwnd = 1;
    bbr.set_state(&f, &mut w, CaState::Loss, clock(0, 250));
    assert_eq!(bbr.short_term.inflight, 80);
    bbr.set_state(&f, &mut w, CaState::Open, clock(0, 250));
    assert_eq!(w.cwnd, 80);
}

#[test]
fn super_packets_are_larger_on_short_paths_and_never_below_two() {
    let (f, mut w) = (flight(), window());
    let mut bbr = V3::new(&f, &mut w, clock(0, 250), 1);
    w.pacing_rate = 12_500_000;
    let sizes = [u32::MAX, 20_000, 1_024, 511].map(|us| {
        bbr.min_rtt.us = us;
        (bbr.tso_segs(&f, &w).unwrap(), bbr.super_packet(&f, &w, crate::cc::gso::MAX_PAYLOAD))
    });
    assert_eq!(sizes, [(8, 8), (8, 8), (19, 19), (44, 45)]);
    w.pacing_rate = 1_000;
    bbr.min_rtt.us = 20_000;
    assert_eq!(bbr.tso_segs(&f, &w), Some(2));
}

#[test]
fn the_bound_has_headroom_while_cruising_and_in_probe_rtt() {
    let (f, mut w) = (flight(), window());
    let mut bbr = V3::new(&f, &mut w, clock(0, 250), 1);
    assert_eq!(bbr.with_headroom(), NO_BOUND);
    bbr.long_term = 256;
    assert_eq!(bbr.with_headroom(), 256 - 38);
    bbr.long_term = 4;
    assert_eq!(bbr.with_headroom(), 4);
    assert_eq!(bbr.pacing_gain % UNIT, 0);
}
