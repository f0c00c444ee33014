//! COBALT: CoDel and BLUE combined (Høiland-Jørgensen et al. 2018, section 3.2; Palmei et al. 2019), as in Linux's
//! CAKE.
//!
//! Unlike [`super::codel`], it leaves the dropping state gradually: the count falls at the rate at which it rose. A
//! queue that never had a count has no first interval either: its second consecutive late packet is dropped.

use crate::network::queue::{Drops, Waiting};
use crate::rng::Rng;
use crate::scenario;
use sawtooth_units::width::{Approx, Low, Whole};
use sawtooth_units::{Span, Time};

/// By how much BLUE's probability rises for a full queue and falls for an empty one: 1/256 and 1/4096 of 2^32.
const RISE: u32 = 1 << 24;
const FALL: u32 = 1 << 20;

/// COBALT's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    target: Span,
    interval: Span,
    /// What a packet may wait regardless of the target: four full frames at the shaper's rate.
    least: Span,
}

/// One queue's state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cobalt {
    count: u32,
    /// 1/√count, as of the last change of the count.
    pace: f64,
    /// When to drop next; with a count of 0, until when the queue is active.
    drop_next: Time,
    dropping: bool,
    /// BLUE's probability, in units of 2^-32.
    probability: u32,
    probability_since: Time,
}

impl Law {
    /// `frame_time`: a full frame's time at the shaper's rate, if there is one. The target is at least one and a half
    /// of it, and the interval grows by the same amount.
    pub fn new(config: &scenario::Cake, frame_time: Span) -> Self {
        let target = config.target_ns.max(frame_time.nanos() * 3 / 2);
        let interval = (config.interval_ns + target - config.target_ns).max(2 * target);
        let [target, interval, least] = [target, interval, 4 * frame_time.nanos()].map(Span::from_nanos);
        Law { target, interval, least }
    }

    fn after(&self, time: Time, pace: f64) -> Time {
        time + Span::from_nanos((self.interval.nanos().approx() * pace).whole())
    }
}

impl Cobalt {
    /// Whether a packet that leaves at `now` should be dropped; the caller may still let it go. Packets that can be
    /// marked are marked instead, except by BLUE.
    pub fn drops(&mut self, law: &Law, now: Time, waiting: &mut Waiting, rng: &mut Rng, drops: &mut Drops) -> bool {
        let waited = now.since(waiting.since);
        let late = waited > law.target && waited > law.least;
        let due = self.count > 0 && now >= self.drop_next;
        let mut passed = now > self.drop_next;
        if late && !self.dropping {
            self.drop_next = law.after(now, self.pace);
        }
        self.dropping = late;
        if late {
            self.count = self.count.max(1);
        }
        let mut drop = self.probability > 0 && (rng.next() >> 32).low_u32() < self.probability;
        if due && late {
            drop = drop || !drops.marks(waiting);
            self.recount(self.count.saturating_add(1));
            self.drop_next = law.after(self.drop_next, self.pace);
            passed = now > self.drop_next;
        } else if due {
            passed = self.settle(law, now);
        }
        if self.count == 0 {
            self.drop_next = now + law.interval;
        } else if passed && !drop {
            self.drop_next = now;
        }
        drop
    }

    /// Decreases the count by everything that was due; returns whether the next step is also overdue.
    fn settle(&mut self, law: &Law, now: Time) -> bool {
        while self.count > 0 && now >= self.drop_next {
            self.recount(self.count - 1);
            self.drop_next = law.after(self.drop_next, self.pace);
        }
        now > self.drop_next
    }

    fn recount(&mut self, count: u32) {
        self.count = count;
        self.pace = 1.0 / f64::from(count.max(1)).sqrt();
    }

    /// The queue was full, and a packet of this flow had to go.
    pub fn full(&mut self, law: &Law, now: Time) {
        if now.since(self.probability_since) > law.target {
            self.probability = self.probability.saturating_add(RISE);
            self.probability_since = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// It was this queue's turn, and it was empty.
    pub fn empty(&mut self, law: &Law, now: Time) {
        if self.probability > 0 && now.since(self.probability_since) > law.target {
            self.probability = self.probability.saturating_sub(FALL);
            self.probability_since = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.recount(self.count - 1);
            self.drop_next = law.after(self.drop_next, self.pace);
        }
    }

    /// Whether no state is left.
    pub fn rests(&self, now: Time) -> bool {
        self.probability == 0 && self.count == 0 && now >= self.drop_next
    }
}
