//! CoDel, RFC 8289.
//!
//! This file follows Linux where it differs: an empty queue ends the dropping state, and a packet is late if its wait
//! exceeds the limit, not if it reaches it. Packets that can be marked are marked and sent, and count as drops. The
//! inverse square root of the count is approximated by one Newton step per change of the count, in 16 bits: it is 1/2
//! for two drops, not 0.71, and lags behind a falling count.

use crate::network::queue::{Drops, Waiting};
use crate::scenario;
use sawtooth_units::width::{Fit, Low};
use sawtooth_units::{Span, Time};

/// Bits of the root's fraction.
const FRACTION: u32 = 16;

/// CoDel's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    target: Span,
    interval: Span,
    /// Bytes: with no more than this behind a packet, nothing is dropped (section 5.4, MAXPACKET).
    frame: u64,
    ecn: bool,
    /// Packets that waited longer are marked, independently of the rest.
    ce_threshold: Option<Span>,
}

/// The queue from which packets are taken one after the other.
pub trait Store {
    fn pop(&mut self) -> Option<Waiting>;
    /// Bytes that wait.
    fn bytes(&self) -> u64;
}

/// One queue's state (section 5.3).
#[derive(Clone, Copy, Debug)]
pub struct Codel {
    /// When the delay will have been above the target for too long; `None`: it is below.
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
    /// About 1 / sqrt(count), in units of 2^-16.
    root: u16,
}

impl Default for Codel {
    fn default() -> Self {
        Codel { first_above: None, drop_next: Time::ZERO, count: 0, last_count: 0, dropping: false, root: u16::MAX }
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
            // A dropping state that ended a short time ago resumes near the rate at which it controlled the queue.
            let gained = self.count.saturating_sub(self.last_count);
            let recent = now.nanos().saturating_sub(self.drop_next.nanos()) < 16 * law.interval.nanos();
            if recent && gained > 1 {
                self.count = gained;
                self.approach();
            } else {
                (self.count, self.root) = (1, u16::MAX);
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
        let span = (u128::from(law.interval.nanos()) * u128::from(self.root)) >> FRACTION;
        time + Span::from_nanos(span.fit_u64())
    }

    /// One Newton step towards 1 / sqrt(count). Far from it, as after many simultaneous drops, the step overflows and
    /// continues with the remaining bits (`codel_Newton_step`).
    fn approach(&mut self) {
        let root = u64::from(self.root) << FRACTION;
        let square = (root * root) >> 32;
        let rest = (3u64 << 32).wrapping_sub(u64::from(self.count) * square) >> 2;
        self.root = (rest.wrapping_mul(root) >> (31 + FRACTION)).low_u16();
    }

    /// Counts packets that were dropped for another reason as CoDel's drops.
    pub fn blame(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// The first packet, and whether packets have been late for too long (section 5.5, `dodequeue`).
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The root in units of 2^-16 after each step, while the count grows by `by` per step.
    fn roots(mut codel: Codel, by: u32, steps: usize) -> Vec<u16> {
        let step = |_| {
            codel.count += by;
            codel.approach();
            codel.root
        };
        (0..steps).map(step).collect()
    }

    #[test]
    fn inverse_sqrt_steps_follow_the_root() {
        let found = roots(Codel { count: 1, ..Codel::default() }, 1, 1_000);
        assert_eq!(found[0], 32_769, "1/2 for two");
        let exact = |count: f64| 65_536.0 / count.sqrt();
        assert!(
            found
                .iter()
                .zip(2..)
                .skip(10)
                .all(|(&root, count)| (f64::from(root) / exact(f64::from(count)) - 1.0).abs() < 0.05)
        );
    }

    #[test]
    fn inverse_sqrt_step_wraps_in_64_bits() {
        // 3 - 65 (1 - 2^-16)^2 is negative: computed by hand in 64 bits.
        let mut codel = Codel { count: 64, ..Codel::default() };
        codel.count += 1;
        codel.approach();
        let root = 65_535u128 << 16;
        let rest = ((1u128 << 64) + (3 << 32) - 65 * ((root * root) >> 32)) >> 2;
        let expected = ((rest * root) & u128::from(u64::MAX)) >> 47;
        assert_eq!(u128::from(codel.root), expected & 0xffff);
        assert_ne!(codel.root, 0);
    }
}
