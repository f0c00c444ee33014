//! CoDel, RFC 8289.
//!
//! Where Linux differs, and this file follows it: a queue found empty ends the dropping, and the time that a packet has to wait
//! too long for is passed, not reached. What can be marked is marked and sent, and counts as a drop. Its square root is an approximation; this one is not.

use crate::network::queue::{Drops, Waiting};
use crate::scenario;
use sawtooth_units::width::{Approx, Whole};
use sawtooth_units::{Span, Time};

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
#[derive(Clone, Copy, Debug, Default)]
pub struct Codel {
    /// From when on a delay above the target is one too long; `None`: it is below.
    first_above: Option<Time>,
    drop_next: Time,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Law {
    pub fn new(config: scenario::Codel, frame: u32) -> Self {
        let [target, interval] = [config.target_ns, config.interval_ns].map(Span::from_nanos);
        let ce_threshold = config.ce_threshold_ns.map(Span::from_nanos);
        Law { target, interval, frame: u64::from(frame), ecn: config.ecn, ce_threshold }
    }

    /// The next time to drop (section 5.5, `control_law`).
    fn after(&self, time: Time, count: u32) -> Time {
        time + Span::from_nanos((self.interval.nanos().approx() / f64::from(count).sqrt()).whole())
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
                if law.ecn && drops.marks(waiting) {
                    self.drop_next = law.after(self.drop_next, self.count);
                    break;
                }
                drops.early(*waiting);
                (first, late) = self.pop(law, now, store);
                self.dropping = late;
                if late {
                    self.drop_next = law.after(self.drop_next, self.count);
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
            self.count = if recent && gained > 1 { gained } else { 1 };
            self.last_count = self.count;
            self.drop_next = law.after(now, self.count);
        }
        if let Some(waiting) = &mut first
            && law.ce_threshold.is_some_and(|threshold| now.since(waiting.since) > threshold)
        {
            drops.marks(waiting);
        }
        first
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
