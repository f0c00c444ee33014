//! Random early detection (Floyd and Jacobson 1993), in bytes, with a probability adapted to the load (Floyd, Gummadi
//! and Shenker 2001).
//!
//! As in Linux under a token bucket: an empty queue is not asked for packets, so it does not count as idle, and the
//! average falls only with arriving packets.

use crate::network::queue::{Drops, Waiting};
use crate::rng::Rng;
use crate::scenario;
use sawtooth_units::width::Approx;
use sawtooth_units::{Span, Time};

/// Time between two checks of the average if the probability adapts.
const ADAPTED: Span = Span::from_millis(500);
const LEAST: f64 = 0.01;
const MOST: f64 = 0.5;

#[derive(Clone, Debug)]
pub struct Red {
    min: f64,
    max: f64,
    weight: f64,
    probability: f64,
    adaptive: bool,
    ecn: bool,
    harddrop: bool,
    average: f64,
    /// Packets since the last drop; `None`: the average was not between the thresholds.
    since: Option<u32>,
    /// Random number for the next drop: uniform from 0 to 1.
    draw: f64,
    adapts: Time,
    rng: Rng,
}

impl Red {
    pub fn new(config: scenario::Red, rng: Rng) -> Self {
        Red {
            min: config.min_bytes.approx(),
            max: config.max_bytes.approx(),
            weight: 0.5f64.powi(i32::from(config.weight_log)),
            probability: config.probability_ppb.approx() / 1e9,
            adaptive: config.adaptive,
            ecn: config.ecn,
            harddrop: config.harddrop,
            average: 0.0,
            since: None,
            draw: 0.0,
            adapts: Time::ZERO + ADAPTED,
            rng,
        }
    }

    /// Whether a packet with this many bytes ahead of it is dropped (not marked), although there may be room.
    pub fn drops(&mut self, waiting: &mut Waiting, waiting_bytes: u64, drops: &mut Drops) -> bool {
        if self.adaptive {
            self.adapt(waiting.since);
        }
        let chosen = self.chooses(waiting_bytes);
        drops.overlimits += u64::from(chosen);
        let marks = self.ecn && !(self.harddrop && self.average >= self.max);
        chosen && !(marks && drops.marks(waiting))
    }

    fn chooses(&mut self, waiting_bytes: u64) -> bool {
        self.average += self.weight * (waiting_bytes.approx() - self.average);
        if self.average < self.min {
            self.since = None;
            return false;
        }
        if self.average >= self.max {
            self.since = None;
            return true;
        }
        let Some(since) = self.since else {
            self.again();
            return false;
        };
        let chance = self.probability * (self.average - self.min) / (self.max - self.min);
        if chance * f64::from(since + 1) < self.draw {
            self.since = Some(since + 1);
            return false;
        }
        self.again();
        true
    }

    /// Draws the next drop: drops are spread evenly (Floyd and Jacobson, section 7, method 2).
    fn again(&mut self) {
        self.since = Some(0);
        self.draw = (self.rng.next() >> 11).approx() / (1u64 << 53).approx();
    }

    /// The average does not change between packets, so all checks since the last one can be done at once.
    fn adapt(&mut self, now: Time) {
        let fifth = (self.max - self.min) / 5.0;
        while self.adapts <= now {
            self.adapts += ADAPTED;
            if self.average > self.min + 3.0 * fifth && self.probability <= MOST {
                self.probability += LEAST.min(self.probability / 4.0);
            } else if self.average < self.min + 2.0 * fifth && self.probability >= LEAST {
                self.probability *= 0.9;
            }
        }
    }
}
