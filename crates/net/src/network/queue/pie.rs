//! PIE, RFC 8033: a drop probability at the tail, from the delay and its change.
//!
//! As in Linux: the delay is that of the last packet that left, from its arrival time, and updates follow the kernel's
//! clock.

use crate::network::queue::{Drops, Waiting};
use crate::rng::Rng;
use crate::scenario;
use sawtooth_units::width::Approx;
use sawtooth_units::{Span, Time};

/// Nothing is dropped for this time after idleness (MAX_BURST).
const BURST: Span = Span::from_millis(150);
const HIGH_DELAY: Span = Span::from_millis(250);
/// The most that an update adds.
const STEP: f64 = 0.02;
/// Sums of probabilities between which chance decides (section 5.4).
const SURE_NOT: f64 = 0.85;
const SURE: f64 = 8.5;
/// Up to this probability, packets that can be marked are marked (section 5.1).
const MARKED: f64 = 0.1;

/// PIE's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    target: Span,
    /// The change of probability per second of delay above the target, and per second of its change.
    alpha: f64,
    beta: f64,
    update: Span,
    bytemode: bool,
    ecn: bool,
    frame: u64,
}

/// One queue's state.
#[derive(Clone, Copy, Debug)]
pub struct Pie {
    probability: f64,
    /// Sum of the probabilities of packets since the last drop.
    sum: f64,
    delay: Span,
    delay_before: Span,
    burst: Span,
    left: Option<Time>,
    next_update: Time,
}

impl Law {
    pub fn new(config: scenario::Pie, frame: u32, hz: u32) -> Self {
        let tick = 1_000_000_000 / u64::from(hz);
        Law {
            target: Span::from_nanos(config.target_ns),
            alpha: f64::from(config.alpha) / 16.0,
            beta: f64::from(config.beta) / 16.0,
            update: Span::from_nanos(config.tupdate_ns.div_ceil(tick).max(1) * tick),
            bytemode: config.bytemode,
            ecn: config.ecn,
            frame: u64::from(frame),
        }
    }

    fn low(&self, delay: Span) -> bool {
        2 * delay.nanos() < self.target.nanos()
    }
}

impl Pie {
    /// A queue that existed long before the run.
    pub fn new(law: &Law) -> Self {
        Pie {
            probability: 0.0,
            sum: 0.0,
            delay: Span::ZERO,
            delay_before: Span::ZERO,
            burst: BURST,
            left: None,
            next_update: Time::ZERO + law.update,
        }
    }

    /// Whether a packet with this many bytes ahead of it is dropped (not marked) although there is room.
    pub fn drops(
        &mut self,
        law: &Law,
        waiting: &mut Waiting,
        waiting_bytes: u64,
        rng: &mut Rng,
        drops: &mut Drops,
    ) -> bool {
        if !self.chooses(law, waiting, waiting_bytes, rng) {
            return false;
        }
        if law.ecn && self.probability <= MARKED && drops.marks(waiting) {
            return false;
        }
        self.dropped();
        true
    }

    /// Section 4.1.
    fn chooses(
        &mut self,
        law: &Law,
        &Waiting { size, since, .. }: &Waiting,
        waiting_bytes: u64,
        rng: &mut Rng,
    ) -> bool {
        self.update(law, since, waiting_bytes);
        let spared = self.burst > Span::ZERO || (law.low(self.delay) && self.probability < 0.2);
        if spared || waiting_bytes < 2 * law.frame {
            return false;
        }
        let share = if law.bytemode { (f64::from(size) / law.frame.approx()).min(1.0) } else { 1.0 };
        let chance = self.probability * share;
        self.sum = if chance > 0.0 { self.sum + chance } else { 0.0 };
        if self.sum < SURE_NOT {
            return false;
        }
        if self.sum >= SURE {
            // As in Linux, where a certain mark does not reset the sum.
            return true;
        }
        let chosen = (rng.next() >> 11).approx() < chance * (1u64 << 53).approx();
        if chosen {
            self.sum = 0.0;
        }
        chosen
    }

    /// A packet was dropped, for any reason.
    pub fn dropped(&mut self) {
        self.sum = 0.0;
    }

    /// A packet leaves, with this many bytes behind it.
    pub fn leaves(&mut self, law: &Law, now: Time, waiting: &Waiting, bytes_behind: u64) {
        self.update(law, now, bytes_behind + u64::from(waiting.size));
        self.delay = if bytes_behind == 0 { Span::ZERO } else { now.since(waiting.since) };
        if let Some(before) = self.left.replace(now) {
            let gone = now.since(before).nanos();
            self.burst = Span::from_nanos(self.burst.nanos().saturating_sub(gone));
        }
    }

    /// Performs all updates since the last packet arrived or left: neither the delay nor the queue has changed since.
    fn update(&mut self, law: &Law, now: Time, waiting_bytes: u64) {
        while self.next_update <= now {
            self.next_update += law.update;
            self.step(law, waiting_bytes);
            if self.probability == 0.0 && self.delay == Span::ZERO && self.delay_before == Span::ZERO {
                // Nothing changes from here on.
                let rest = now.nanos().saturating_sub(self.next_update.nanos()) / law.update.nanos();
                self.next_update += Span::from_nanos(rest * law.update.nanos());
            }
        }
    }

    /// Section 4.2.
    fn step(&mut self, law: &Law, waiting_bytes: u64) {
        let [delay, before, target] = [self.delay, self.delay_before, law.target].map(Span::secs_f64);
        // A delay of zero with packets waiting means that it was not measured.
        let known = self.delay > Span::ZERO || waiting_bytes == 0;
        let mut change = law.alpha * (delay - target) + law.beta * (delay - before);
        // The smaller the probability, the smaller the steps.
        change *= match self.probability {
            p if p < 1e-6 => 1.0 / 2048.0,
            p if p < 1e-5 => 1.0 / 512.0,
            p if p < 1e-4 => 1.0 / 128.0,
            p if p < 1e-3 => 1.0 / 32.0,
            p if p < 1e-2 => 1.0 / 8.0,
            p if p < 1e-1 => 1.0 / 2.0,
            _ => 1.0,
        };
        if self.probability >= 0.1 {
            change = change.min(STEP);
        }
        if self.delay > HIGH_DELAY {
            change += STEP;
        }
        self.probability = (self.probability + change).clamp(0.0, 1.0);
        if known && self.delay == Span::ZERO && self.delay_before == Span::ZERO {
            self.probability -= self.probability / 64.0;
        }
        if law.low(self.delay) && law.low(self.delay_before) && self.probability == 0.0 {
            (self.burst, self.sum, self.left) = (BURST, 0.0, None);
        }
        self.delay_before = self.delay;
    }
}
