//! The test cases in the appendix of draft-ietf-ccwg-bbr (August 2026), on one bottleneck, for version 1, version 3 as
//! Linux has it, and version 3 as the draft has it. The table that comes out is the one in docs/explanation/bbr3.md.

use super::path::{Path, Shape};
use super::probing::Phase;
use super::*;
use crate::cc::bbr::mode::UNIT;
use crate::cc::bbr::pacing::BW_UNIT;
use crate::cc::bbr::{Bbr, mode};

/// Segments per millisecond on the usual path.
const RATE: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// What the cases observe. `None`: the version does not have it.
pub(super) trait Watched: Control {
    fn state(&self) -> State;
    fn pacing_gain(&self) -> u32;
    fn max_bandwidth(&self) -> u32;
    fn full_reached(&self) -> bool;
    fn long_term(&self) -> Option<u32>;
    fn has_short_term(&self) -> Option<bool>;
}

impl Watched for Bbr {
    fn state(&self) -> State {
        match (self.mode(), self.phase()) {
            (mode::Mode::Startup, _) => State::Startup,
            (mode::Mode::Drain, _) => State::Drain,
            (mode::Mode::ProbeRtt, _) => State::ProbeRtt,
            (mode::Mode::ProbeBw, 0) => State::Up,
            (mode::Mode::ProbeBw, 1) => State::Down,
            (mode::Mode::ProbeBw, _) => State::Cruise,
        }
    }
    fn pacing_gain(&self) -> u32 {
        self.gain()
    }
    fn max_bandwidth(&self) -> u32 {
        self.bandwidth()
    }
    fn full_reached(&self) -> bool {
        self.state() != State::Startup
    }
    fn long_term(&self) -> Option<u32> {
        None
    }
    fn has_short_term(&self) -> Option<bool> {
        None
    }
}

impl<E: Edition> Watched for Bbr3<E> {
    fn state(&self) -> State {
        match self.mode {
            Mode::Startup => State::Startup,
            Mode::Drain => State::Drain,
            Mode::ProbeRtt => State::ProbeRtt,
            Mode::ProbeBw(Phase::Down) => State::Down,
            Mode::ProbeBw(Phase::Cruise) => State::Cruise,
            Mode::ProbeBw(Phase::Refill) => State::Refill,
            Mode::ProbeBw(Phase::Up) => State::Up,
        }
    }
    fn pacing_gain(&self) -> u32 {
        self.pacing_gain
    }
    fn max_bandwidth(&self) -> u32 {
        self.max_bandwidth.get()
    }
    fn full_reached(&self) -> bool {
        self.full_pipe.reached
    }
    fn long_term(&self) -> Option<u32> {
        Some(self.long_term)
    }
    fn has_short_term(&self) -> Option<bool> {
        Some(self.short_term != Bounds::NONE)
    }
}

impl<C: Watched> Path<C> {
    fn state(&self) -> State {
        self.cc.state()
    }

    /// Runs to the beginning of `state`; false if it does not come within `seconds`.
    fn reach(&mut self, state: State, seconds: u64) -> bool {
        let last_ms = self.now_ms() + 1_000 * seconds;
        let mut before = self.state();
        while self.now_ms() < last_ms {
            self.step();
            if before != state && self.state() == state {
                return true;
            }
            before = self.state();
        }
        false
    }

    /// The next state, and the milliseconds until then; the current one if it lasts longer than `seconds`.
    fn next(&mut self, seconds: u64) -> (State, u64) {
        let (state, start_ms) = (self.state(), self.now_ms());
        while self.state() == state && self.now_ms() < start_ms + 1_000 * seconds {
            self.step();
        }
        (self.state(), self.now_ms() - start_ms)
    }

    fn is_rate(&self, segments_per_ms: u64, percent: u64) -> bool {
        let exact = segments_per_ms * BW_UNIT / 1_000;
        u64::from(self.cc.max_bandwidth()).abs_diff(exact) * 100 <= exact * percent
    }

    /// Percent of the path's rate delivered within `ms`.
    fn utilisation(&mut self, ms: u64) -> u64 {
        let (before, end_ms) = (self.f.delivered, self.now_ms() + ms);
        self.run_until_ms(end_ms);
        (self.f.delivered - before) * 100 / (ms * self.shape.segments_per_ms)
    }
}

fn usual<C: Watched>() -> Path<C> {
    Path::new(Shape { segments_per_ms: RATE, ..Shape::default() })
}

/// "yes", or what happens instead.
fn yes_or(is: bool, otherwise: impl Into<String>) -> String {
    if is { "yes".into() } else { otherwise.into() }
}

fn gain_is<C: Watched>(path: &Path<C>, percent: u32) -> String {
    let gain = path.cc.pacing_gain();
    yes_or(gain == UNIT * percent / 100, format!("yes, gain {:.2}", f64::from(gain) / f64::from(UNIT)))
}

fn startup_on_plateau<C: Watched>() -> String {
    let mut path = usual::<C>();
    let (after, _) = path.next(5);
    yes_or(after == State::Drain && path.cc.full_reached() && path.is_rate(RATE, 2), "no")
}

fn startup_on_loss<C: Watched>() -> String {
    let mut path = usual::<C>();
    (path.shape.written, path.shape.lost_of_1024) = (150, 150);
    let (after, _) = path.next(4);
    let by_loss = path.cc.long_term().is_some_and(|bound| bound != NO_BOUND);
    yes_or(after != State::Startup && by_loss, if after == State::Startup { "stays" } else { "by plateau" })
}

fn drain_on_flight<C: Watched>() -> String {
    let mut path = usual::<C>();
    path.reach(State::Drain, 5);
    let answer = gain_is(&path, 50);
    let (after, _) = path.next(5);
    yes_or(answer == "yes" && after != State::Drain, answer)
}

/// The rate falls to three tenths: by one tenth, as the case has it, drains, too.
fn drain_on_time<C: Watched>() -> String {
    let mut path = usual::<C>();
    path.reach(State::Drain, 5);
    path.change_rate(3);
    let (after, ms) = path.next(20);
    match (after, path.f.in_flight()) {
        (State::Drain, _) => "not in 20 s".into(),
        (State::ProbeRtt, _) => format!("PROBE_RTT ends it, after {ms} ms"),
        (_, 0..=210) => format!("after {ms} ms, by flight"),
        _ => "yes".into(),
    }
}

fn up_on_plateau<C: Watched>() -> String {
    let mut path = usual::<C>();
    path.reach(State::Up, 10);
    let (after, ms) = path.next(5);
    yes_or(after == State::Down && ms >= 60, format!("after {ms} ms, by flight"))
}

fn up_on_loss<C: Watched>() -> String {
    let mut path = usual::<C>();
    path.reach(State::Up, 10);
    (path.shape.written, path.shape.lost_of_1024) = (150, 100);
    let (after, ms) = path.next(5);
    yes_or(after == State::Down && ms <= 60, format!("{ms} ms, not by loss"))
}

fn never_while_limited<C: Watched>() -> String {
    let mut path = usual::<C>();
    path.shape.written = 50;
    path.run_until_ms(4_500);
    yes_or(path.state() == State::Startup, format!("{:?}", path.state()))
}

fn down_on_flight<C: Watched>() -> String {
    let mut path = usual::<C>();
    path.reach(State::Up, 10);
    path.reach(State::Down, 5);
    path.step();
    let answer = gain_is(&path, 90);
    let (after, _) = path.next(2);
    yes_or(answer == "yes" && after == State::Cruise, answer)
}

/// The rate falls by three tenths: by a tenth, the rate of this phase drains it.
fn down_on_time<C: Watched>() -> String {
    let mut path = usual::<C>();
    path.reach(State::Up, 10);
    path.reach(State::Down, 5);
    path.change_rate(7);
    let (after, ms) = path.next(4);
    yes_or(after == State::Refill, format!("{after:?} after {ms} ms"))
}

fn probe_rtt<C: Watched>() -> String {
    let mut path = usual::<C>();
    path.reach(State::Up, 10);
    let comes = path.reach(State::ProbeRtt, 8);
    let (after, ms) = path.next(2);
    yes_or(comes && ms >= 200 && after != State::ProbeRtt, "every 10 s")
}

fn idle_instead_of_probe_rtt<C: Watched>() -> String {
    let mut path = usual::<C>();
    path.reach(State::Cruise, 5);
    path.fall_silent(11_000);
    let end_ms = path.now_ms() + 500;
    let mut probed = false;
    while path.now_ms() < end_ms {
        path.step();
        probed |= path.state() == State::ProbeRtt;
    }
    yes_or(!probed, "no")
}

fn startup_with_aggregation<C: Watched>() -> String {
    let mut path = usual::<C>();
    path.shape.batch_ms = 10;
    path.reach(State::Drain, 5);
    let (is_found, is_wide) = (path.is_rate(RATE, 5), path.w.cwnd > 2 * 200);
    yes_or(
        is_found && is_wide,
        format!("rate {}, window {}", if is_found { "found" } else { "not found" }, path.w.cwnd),
    )
}

fn cruise_with_aggregation<C: Watched>() -> String {
    let mut path = usual::<C>();
    path.reach(State::Cruise, 5);
    path.shape.batch_ms = 10;
    let percent = path.utilisation(2_000);
    yes_or(percent >= 95, format!("{percent}%"))
}

fn tiny_product<C: Watched>() -> String {
    let mut path = Path::<C>::new(Shape { segments_per_ms: 1, rtt_us: 500 + 1_000, ..Shape::default() });
    path.reach(State::Cruise, 5);
    let percent = path.utilisation(3_000);
    yes_or(path.w.cwnd >= 4 && percent >= 95, format!("window {}, {percent}%", path.w.cwnd))
}

fn ten_times_more<C: Watched>() -> String {
    let mut path = usual::<C>();
    path.reach(State::Cruise, 5);
    path.change_rate(100);
    path.shape.queue = 4_000;
    let start_ms = path.now_ms();
    while !path.is_rate(100, 10) && path.now_ms() < start_ms + 30_000 {
        path.step();
    }
    let seconds = (path.now_ms() - start_ms).div_ceil(1_000);
    format!("{} {seconds} s", if path.is_rate(100, 10) { "in" } else { "not in" })
}

fn ten_times_less<C: Watched>() -> String {
    let mut path = Path::<C>::new(Shape { segments_per_ms: 100, queue: 2_000, ..Shape::default() });
    path.reach(State::Cruise, 5);
    path.change_rate(10);
    path.shape.queue = 200;
    let start_ms = path.now_ms();
    let mut had_short_term = false;
    while !path.is_rate(10, 10) && path.now_ms() < start_ms + 30_000 {
        path.step();
        had_short_term |= path.cc.has_short_term().unwrap_or(false);
    }
    let seconds = (path.now_ms() - start_ms).div_ceil(1_000);
    let how = if had_short_term { ", by losses first" } else { "" };
    format!("{} {seconds} s{how}", if path.is_rate(10, 10) { "in" } else { "not in" })
}

/// Without a queue, everything above the rate is lost.
fn policer<C: Watched>() -> String {
    let mut path = Path::<C>::new(Shape { queue: 2, ..Shape::default() });
    path.run_until_ms(10_000);
    let (lost, delivered) = (path.f.lost, path.f.delivered);
    path.run_until_ms(30_000);
    let (lost, delivered) = (path.f.lost - lost, path.f.delivered - delivered);
    format!("{:.1}% lost, {}% used", 100.0 * lost as f64 / (lost + delivered) as f64, delivered / (200 * RATE))
}

fn spurious<C: Watched>(timeout: bool) -> String {
    let mut path = usual::<C>();
    path.reach(State::Up, 10);
    path.misjudge(timeout);
    yes_or(matches!(path.state(), State::Up | State::Refill), format!("{:?}", path.state()))
}

fn probe_rtt_in_startup<C: Watched>() -> String {
    let mut path = usual::<C>();
    path.shape.written = 50;
    // The smallest delay does not recur: the path has become longer.
    path.run_until_ms(1_200);
    path.shape.rtt_us = 25_000;
    let comes = path.reach(State::ProbeRtt, 12);
    let (after, _) = path.next(2);
    yes_or(comes && after == State::Startup, format!("{after:?}"))
}

fn loss_in_up_with_bound<C: Watched>() -> String {
    let mut path = Path::<C>::new(Shape { queue: 60, ..Shape::default() });
    path.reach(State::Up, 10);
    path.reach(State::Down, 5);
    let Some(bound) = path.cc.long_term() else { return "no bound".into() };
    if bound == NO_BOUND {
        return "no bound".into();
    }
    path.reach(State::Up, 10);
    path.shape.lost_of_1024 = 150;
    let (after, ms) = path.next(5);
    let is_lower = path.cc.long_term() < Some(bound);
    yes_or(after == State::Down && ms <= 60 && is_lower, format!("{after:?} after {ms} ms, by caution"))
}

fn limited_in_refill<C: Watched>() -> String {
    let mut path = usual::<C>();
    if !path.reach(State::Refill, 10) {
        return "no such state".into();
    }
    let before = path.cc.max_bandwidth();
    path.shape.written = 20;
    let (after, _) = path.next(2);
    yes_or(after == State::Up && path.cc.max_bandwidth() == before, format!("{after:?}"))
}

/// A case: its title, and the three answers.
fn row(title: &str, answers: [String; 3]) -> String {
    format!("| {title} | {} |\n", answers.join(" | "))
}

macro_rules! rows {
    ($($title:literal: $case:ident,)+) => {
        [$(row($title, [$case::<Bbr>(), $case::<Bbr3<Linux>>(), $case::<Bbr3<Draft>>()]),)+].concat()
    };
}

fn spurious_recovery<C: Watched>() -> String {
    spurious::<C>(false)
}

fn spurious_timeout<C: Watched>() -> String {
    spurious::<C>(true)
}

fn table() -> String {
    rows! {
        "Exiting STARTUP on bandwidth plateau": startup_on_plateau,
        "Exiting STARTUP on loss when application-limited": startup_on_loss,
        "Exiting DRAIN based on inflight": drain_on_flight,
        "Exiting DRAIN based on time": drain_on_time,
        "Exiting PROBE_UP on bandwidth plateau": up_on_plateau,
        "Exiting PROBE_UP on loss when application-limited": up_on_loss,
        "Never exiting STARTUP when application-limited with no loss": never_while_limited,
        "Exiting PROBE_DOWN on inflight": down_on_flight,
        "Exiting PROBE_DOWN after max time": down_on_time,
        "Entering and exiting PROBE_RTT": probe_rtt,
        "Skipping PROBE_RTT due to application-limited sending": idle_instead_of_probe_rtt,
        "STARTUP bandwidth on a link with aggregation": startup_with_aggregation,
        "Cruise bandwidth on a link with aggregation": cruise_with_aggregation,
        "Sub-packet BDPs": tiny_product,
        "Increasing bandwidth 10x": ten_times_more,
        "Decreasing bandwidth 10x": ten_times_less,
        "Token bucket policers": policer,
        "Spurious fast recovery": spurious_recovery,
        "Spurious RTO recovery": spurious_timeout,
        "PROBE_RTT during STARTUP": probe_rtt_in_startup,
        "Loss during PROBE_UP after inflight_longterm is set": loss_in_up_with_bound,
        "Application-limited sending during PROBE_REFILL": limited_in_refill,
    }
}

#[test]
fn draft_test_cases_match_documented_table() {
    let page = include_str!("../../../../../docs/explanation/bbr3.md");
    let table = table();
    assert!(page.contains(&table), "the page has another table than\n{table}");
}
