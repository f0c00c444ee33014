//! DualPI2, RFC 9332: a low-latency queue marked early and often, beside a classic one, with a common controller.
//!
//! As in Linux: probabilities are in 1/2^32; the controller uses the arrival times of the first packet of each queue;
//! weighted credit decides whose turn it is; below two full frames only the step marks.

use crate::network::queue::fifo::Fifo;
use crate::network::queue::{Drops, Waiting};
use crate::rng::Rng;
use crate::scenario;
use sawtooth_tcp::packet::Ecn;
use sawtooth_units::{Span, Time};
use std::collections::VecDeque;

/// A probability of 1.
const CERTAIN: u64 = u32::MAX as u64;
/// Nanoseconds times a gain are in 1/2^6 of a probability's unit.
const GAIN_FRACTION: u32 = 6;
/// The sum of the two weights.
const WEIGHTS: i64 = 100;

#[derive(Clone, Debug)]
pub struct DualPi2 {
    given: scenario::DualPi2,
    /// Bytes of a full frame.
    frame: u32,
    /// The change of probability per nanosecond of delay above the target, and per nanosecond of its change.
    alpha: i128,
    beta: i128,
    low_latency: Fifo,
    /// For each of its packets, whether enough packets were ahead of it for the step to mark it.
    may_step: VecDeque<bool>,
    classic: Fifo,
    /// The controller's probability: squared for classic packets, times the coupling factor for low latency.
    probability: u64,
    delay: Span,
    next_update: Time,
    /// Positive: it is the classic queue's turn.
    credit: i64,
    rng: Rng,
}

impl DualPi2 {
    /// A queue that existed long before the run.
    pub fn new(given: scenario::DualPi2, frame: u32, rng: Rng) -> Self {
        let gain = |hertz_256: u32| i128::from((u64::from(hertz_256) << (32 - 8 + GAIN_FRACTION)) / 1_000_000_000);
        DualPi2 {
            given,
            frame,
            alpha: gain(given.alpha_256),
            beta: gain(given.beta_256),
            low_latency: Fifo::default(),
            may_step: VecDeque::new(),
            classic: Fifo::default(),
            probability: 0,
            delay: Span::ZERO,
            next_update: Time::ZERO + Span::from_nanos(given.tupdate_ns),
            credit: start_credit(&given, frame),
            rng,
        }
    }

    /// Takes a packet with `waiting_bytes` ahead of it, or drops it; `full`: there is no room.
    pub fn put(&mut self, mut waiting: Waiting, full: bool, waiting_bytes: u64, drops: &mut Drops) {
        self.update(waiting.since);
        if full {
            drops.overlimits += 1;
            return drops.full(waiting);
        }
        let is_low = self.is_low(waiting.ecn);
        if self.given.drop_enqueue && self.chooses(is_low, &mut waiting, waiting_bytes, drops) {
            return drops.early(waiting);
        }
        if is_low {
            self.may_step.push_back(self.low_latency.waiting().0 >= self.given.min_qlen_step);
            self.low_latency.push(waiting);
        } else {
            self.classic.push(waiting);
        }
    }

    pub fn next(&mut self, now: Time, drops: &mut Drops) -> Option<Waiting> {
        self.update(now);
        loop {
            let [low, classic] = [&self.low_latency, &self.classic].map(|queue| queue.waiting().0);
            let is_low = low > 0 && (classic == 0 || self.credit <= 0);
            let queue = if is_low { &mut self.low_latency } else { &mut self.classic };
            let Some(mut next) = queue.pop() else {
                self.credit = start_credit(&self.given, self.frame);
                return None;
            };
            // The turn only matters if both queues wait.
            let weight = i64::from(self.given.classic_protection);
            let change = match (is_low, low > 0, classic > 0) {
                (true, _, true) => weight,
                (false, true, _) => weight - WEIGHTS,
                _ => 0,
            };
            let waiting_bytes = self.waiting().1;
            let may_step = is_low && self.may_step.pop_front() == Some(true);
            if !self.given.drop_enqueue && self.chooses(is_low, &mut next, waiting_bytes, drops) {
                drops.early(next);
                continue;
            }
            if may_step && self.beyond_step(&next, now) {
                drops.marks(&mut next);
            }
            self.credit += change * i64::from(next.size);
            return Some(next);
        }
    }

    /// Packets and bytes that wait.
    pub fn waiting(&self) -> (u64, u64) {
        let (low, classic) = (self.low_latency.waiting(), self.classic.waiting());
        (low.0 + classic.0, low.1 + classic.1)
    }

    /// RFC 9331: ECT(1) and CE belong to the low-latency queue.
    fn is_low(&self, ecn: Ecn) -> bool {
        match ecn {
            Ecn::NotEct => false,
            Ecn::Ect0 => self.given.any_ect,
            Ecn::Ect1 | Ecn::Ce => true,
        }
    }

    /// Whether a packet is dropped (not marked) although there is room, with this many bytes waiting.
    fn chooses(&mut self, is_low: bool, waiting: &mut Waiting, waiting_bytes: u64, drops: &mut Drops) -> bool {
        if waiting_bytes < 2 * u64::from(self.frame) {
            return false;
        }
        let coupled = self.probability * u64::from(self.given.coupling_factor);
        let overload = coupled > CERTAIN;
        if !is_low {
            return self.squared() && (overload || !drops.marks(waiting));
        }
        if overload {
            if self.given.drop_on_overload && self.squared() {
                return true;
            }
            drops.marks(waiting);
        } else if self.rolls(coupled) {
            drops.marks(waiting);
        }
        false
    }

    fn squared(&mut self) -> bool {
        self.rolls(self.probability) && self.rolls(self.probability)
    }

    fn rolls(&mut self, probability: u64) -> bool {
        self.rng.next() >> 32 <= probability
    }

    /// Whether a packet that has just left the low-latency queue waited too long for the step.
    fn beyond_step(&self, waiting: &Waiting, now: Time) -> bool {
        let waited = now.since(waiting.since).nanos();
        self.given.step_thresh_ns.is_some_and(|most| waited > most)
            || self.given.step_thresh_packets.is_some_and(|most| self.low_latency.waiting().0 > most)
    }

    /// Performs all updates since the last packet arrived or left.
    fn update(&mut self, now: Time) {
        let update = Span::from_nanos(self.given.tupdate_ns);
        while self.next_update <= now {
            let before = (self.probability, self.delay);
            self.step(self.next_update);
            self.next_update += update;
            if self.delay == Span::ZERO && before == (self.probability, self.delay) {
                // Nothing changes any more: the queue is empty.
                let rest = now.nanos().saturating_sub(self.next_update.nanos()) / update.nanos();
                self.next_update += Span::from_nanos(rest * update.nanos());
            }
        }
    }

    /// RFC 9332, appendix A, figure 6.
    fn step(&mut self, now: Time) {
        let waited = |queue: &Fifo| queue.first().map_or(Span::ZERO, |first| now.since(first.since));
        let delay = waited(&self.low_latency).max(waited(&self.classic));
        let [is, was, target] = [delay.nanos(), self.delay.nanos(), self.given.target_ns].map(i128::from);
        let change = (self.alpha * (is - target) + self.beta * (is - was)) / (1 << GAIN_FRACTION);
        let most = if self.given.drop_on_overload { CERTAIN } else { CERTAIN / u64::from(self.given.coupling_factor) };
        self.probability =
            (i128::from(self.probability) + change).clamp(0, i128::from(most)).try_into().unwrap_or(most);
        self.delay = delay;
    }
}

/// In bytes times a weight.
fn start_credit(given: &scenario::DualPi2, frame: u32) -> i64 {
    i64::from(frame) * (2 * i64::from(given.classic_protection) - WEIGHTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::link::Handle;
    use crate::rng::Purpose;

    const GIVEN: scenario::DualPi2 = scenario::DualPi2 {
        target_ns: 15_000_000,
        tupdate_ns: 16_000_000,
        alpha_256: 41,
        beta_256: 819,
        coupling_factor: 2,
        step_thresh_ns: Some(1_000_000),
        step_thresh_packets: None,
        min_qlen_step: 0,
        classic_protection: 10,
        drop_on_overload: true,
        drop_enqueue: false,
        any_ect: false,
    };

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn packet(ecn: Ecn, since: Time) -> Waiting {
        Waiting { packet: Handle::new(0, 1000), link: 0, size: 1000, ecn, since, flow: 1, at: 0 }
    }

    /// A queue that received this many packets of each kind at 0 ms.
    fn filled(given: scenario::DualPi2, of: &[(Ecn, usize)]) -> DualPi2 {
        let mut queue = DualPi2::new(given, 1000, Rng::new(1, Purpose::Queue, 0));
        for &(ecn, count) in of {
            for _ in 0..count {
                queue.put(packet(ecn, Time::ZERO), false, 0, &mut Drops::default());
            }
        }
        queue
    }

    #[test]
    fn classic_queue_gets_its_share_of_turns() {
        for (percent, expected) in [(10, 10), (0, 0), (50, 50), (100, 100)] {
            let given = scenario::DualPi2 { classic_protection: percent, step_thresh_ns: Some(1 << 40), ..GIVEN };
            let mut queue = filled(given, &[(Ecn::NotEct, 200), (Ecn::Ect1, 200)]);
            let mut drops = Drops::default();
            let classic = (0..100).filter(|_| queue.next(at(0), &mut drops).unwrap().ecn == Ecn::NotEct).count();
            assert!(usize::abs_diff(classic, expected) <= 1, "{percent}: {classic}");
        }
        let mut queue = filled(GIVEN, &[(Ecn::NotEct, 5)]);
        assert_eq!((0..6).filter_map(|_| queue.next(at(0), &mut Drops::default())).count(), 5);
    }

    #[test]
    fn ect1_and_ce_go_to_low_latency_queue() {
        let places = |any_ect| {
            let given = scenario::DualPi2 { any_ect, ..GIVEN };
            [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]
                .map(|ecn| filled(given, &[(ecn, 1)]).low_latency.waiting().0 == 1)
        };
        assert_eq!(places(false), [false, false, true, true]);
        assert_eq!(places(true), [false, true, true, true]);
    }

    #[test]
    fn step_marks_by_delay_or_packets() {
        let marks = |given: scenario::DualPi2, now| {
            let mut queue = filled(given, &[(Ecn::Ect1, 10)]);
            let mut drops = Drops::default();
            (0..10).map(|_| queue.next(now, &mut drops).unwrap().ecn == Ecn::Ce).collect::<Vec<_>>()
        };
        assert_eq!(marks(GIVEN, at(1)), [false; 10]);
        assert_eq!(marks(GIVEN, at(2)), [true; 10]);
        let packets = scenario::DualPi2 { step_thresh_ns: None, step_thresh_packets: Some(6), ..GIVEN };
        assert_eq!(marks(packets, at(9)).iter().filter(|marked| **marked).count(), 3);
        let later = scenario::DualPi2 { min_qlen_step: 4, ..GIVEN };
        assert_eq!(marks(later, at(2)), [[false; 4].as_slice(), &[true; 6]].concat());
    }

    /// RFC 9332, appendix A, figure 6: `p = p + alpha (delay - target) + beta (delay - delay before)`.
    #[test]
    fn probability_follows_longer_delay_and_its_change() {
        let mut queue = filled(GIVEN, &[(Ecn::NotEct, 100)]);
        let (alpha, beta, mut expected, mut before) = (41.0 / 256.0, 819.0 / 256.0, 0.0f64, 0.0);
        for update in 1..=5u32 {
            queue.update(at(u64::from(update) * 16));
            let delay = 0.016 * f64::from(update);
            expected += alpha * (delay - 0.015) + beta * (delay - before);
            before = delay;
            let found = queue.probability as f64 / f64::from(u32::MAX);
            // The gains are whole units, one of which is 0.1% of them.
            assert!((found / expected - 1.0).abs() < 2e-3, "{update}: {found} {expected}");
        }
    }

    #[test]
    fn idle_queue_resets_probability_and_keeps_clock() {
        let mut queue = filled(GIVEN, &[(Ecn::NotEct, 1)]);
        queue.update(at(160));
        assert!(queue.probability > 0);
        assert!(queue.next(at(160), &mut Drops::default()).is_some());
        queue.update(at(3_600_000));
        assert_eq!((queue.probability, queue.delay), (0, Span::ZERO));
        assert_eq!(queue.next_update, at(3_600_000 + 16));
    }

    /// The shares of 10,000 packets that are marked and dropped at a probability.
    fn fate(given: scenario::DualPi2, probability: f64, ecn: Ecn) -> [f64; 2] {
        let mut queue = DualPi2::new(given, 1000, Rng::new(1, Purpose::Queue, 0));
        queue.probability = (probability * f64::from(u32::MAX)) as u64;
        let is_low = queue.is_low(ecn);
        let mut drops = Drops::default();
        let dropped =
            (0..10_000).filter(|_| queue.chooses(is_low, &mut packet(ecn, at(0)), 10_000, &mut drops)).count();
        [drops.marks as f64 / 1e4, dropped as f64 / 1e4]
    }

    /// RFC 9332, sections 2.1 and 2.5.1.1: `p_C = p'^2`, `p_CL = k p'`; above a `p_CL` of 1 all are dropped with `p_C`.
    #[test]
    fn classic_gets_squared_and_low_latency_coupled_probability() {
        let close = |found: [f64; 2], expected: [f64; 2]| {
            assert!((0..2).all(|i| (found[i] - expected[i]).abs() < 0.015), "{found:?} {expected:?}");
        };
        close(fate(GIVEN, 0.3, Ecn::NotEct), [0.0, 0.09]);
        close(fate(GIVEN, 0.3, Ecn::Ect0), [0.09, 0.0]);
        close(fate(GIVEN, 0.3, Ecn::Ect1), [0.6, 0.0]);
        close(fate(GIVEN, 0.7, Ecn::Ect0), [0.0, 0.49]);
        close(fate(GIVEN, 0.7, Ecn::Ect1), [0.51, 0.49]);
        let kept = scenario::DualPi2 { drop_on_overload: false, ..GIVEN };
        close(fate(kept, 0.7, Ecn::Ect1), [1.0, 0.0]);
        let mut queue = DualPi2::new(GIVEN, 1000, Rng::new(1, Purpose::Queue, 0));
        queue.probability = CERTAIN;
        assert!(!queue.chooses(false, &mut packet(Ecn::NotEct, at(0)), 1_999, &mut Drops::default()), "too few wait");
    }
}
