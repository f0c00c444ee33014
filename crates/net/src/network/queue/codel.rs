//! CoDel, RFC 8289.
//!
//! Where Linux differs, and this file follows it: a queue found empty ends the dropping, and the time that a packet has to wait
//! too long for is passed, not reached. What can be marked is marked and sent, and counts as a drop. The root of the count is
//! approached by a step of Newton's method for each change of the count, in 16 bits: it is 1/2 for two drops, not 0.71, and lags behind a
//! count that falls.

use crate::network::queue::{Drops, Waiting};
use crate::scenario;
use sawtooth_units::width::{Approx, Whole};
use sawtooth_units::{Span, Time};

/// In a whole: what 16 bits of fraction tell apart.
const UNITS: f64 = 65_536.0;
/// The most that they tell.
const ONE: f64 = (UNITS - 1.0) / UNITS;

/// What CoDel is set to.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    target: Span,
    interval: Span,
    /// Bytes: with no more behind a packet nothing is dropped (section 5.4, MAXPACKET).
    frame: u64,
    ecn: bool,
    /// Packets that waited longer are marked, whatever else.
    ce_threshold: Option<Span>,
}

/// What packets are taken from, one after the other.
pub trait Store {
    fn pop(&mut self) -> Option<Waiting>;
    /// Bytes that wait.
    fn bytes(&self) -> u64;
}

/// One queue's state (section 5.3).
#[derive(Clone, Copy, Debug)]
pub struct Codel {
    /// From when on a delay above the target is one too long; `None`: it is below.
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
    /// About 1 / sqrt(count).
    root: f64,
}

impl Default for Codel {
    fn default() -> Self {
        Codel { first_above: None, drop_next: Time::ZERO, count: 0, last_count: 0, dropping: false, root: ONE }
    }
}

impl Law {
    pub fn new(config: scenario::Codel, frame: u32) -> Self {
        let [target, interval] = [config.target_ns, config.interval_ns].map(Span::from_nanos);
        let ce_threshold = config.ce_threshold_ns.map(Span::from_nanos);
        Law { target, interval, frame: u64::from(frame), ecn: config.ecn, ce_threshold }
    }
}

impl Codel {
    /// The packet that leaves at `now`.
    pub fn next(&mut self, law: &Law, now: Time, store: &mut impl Store, drops: &mut Drops) -> Option<Waiting> {
        let (mut first, mut late) = self.pop(law, now, store);
        if self.dropping {
            self.dropping = late;
            while let Some(waiting) = &mut first
                && self.dropping
                && now >= self.drop_next
            {
                self.count = self.count.saturating_add(1);
                self.approach();
                if law.ecn && drops.marks(waiting) {
                    self.drop_next = self.after(law, self.drop_next);
                    break;
                }
                drops.early(*waiting);
                (first, late) = self.pop(law, now, store);
                self.dropping = late;
                if late {
                    self.drop_next = self.after(law, self.drop_next);
                }
            }
        } else if let Some(waiting) = &mut first
            && late
        {
            if !(law.ecn && drops.marks(waiting)) {
                drops.early(*waiting);
                (first, _) = self.pop(law, now, store);
            }
            self.dropping = first.is_some();
            // Dropping that ended a short time ago goes on near the rate at which it controlled the queue.
            let gained = self.count.saturating_sub(self.last_count);
            let recent = now.nanos().saturating_sub(self.drop_next.nanos()) < 16 * law.interval.nanos();
            if recent && gained > 1 {
                self.count = gained;
                self.approach();
            } else {
                (self.count, self.root) = (1, ONE);
            }
            self.last_count = self.count;
            self.drop_next = self.after(law, now);
        }
        if let Some(waiting) = &mut first
            && law.ce_threshold.is_some_and(|threshold| now.since(waiting.since) > threshold)
        {
            drops.marks(waiting);
        }
        first
    }

    /// The next time to drop (section 5.5, `control_law`).
    fn after(&self, law: &Law, time: Time) -> Time {
        time + Span::from_nanos((law.interval.nanos().approx() * self.root).whole())
    }

    /// A step of Newton's method towards 1 / sqrt(count).
    fn approach(&mut self) {
        let next = self.root * (3.0 - f64::from(self.count) * self.root * self.root) / 2.0;
        self.root = (next * UNITS).floor().max(1.0) / UNITS;
    }

    /// Packets were dropped though CoDel did not ask for it: so many more it is taken to have dropped.
    pub fn blame(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// The first packet, and whether packets have waited too long for too long (section 5.5, `dodequeue`).
    fn pop(&mut self, law: &Law, now: Time, store: &mut impl Store) -> (Option<Waiting>, bool) {
        let first = store.pop();
        let Some(waiting) = first else {
            self.first_above = None;
            return (None, false);
        };
        if now.since(waiting.since) < law.target || store.bytes() <= law.frame {
            self.first_above = None;
            return (first, false);
        }
        let above = *self.first_above.get_or_insert(now + law.interval);
        (first, now > above)
    }
}
