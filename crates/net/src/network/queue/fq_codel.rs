//! FQ-CoDel, RFC 8290: many hashed flow queues served in turn, with CoDel on each.
//!
//! As in Linux, and unlike the RFC's section 4.1: a full queue drops up to 64 packets, at most half of the longest
//! flow's.

use crate::network::queue::buckets::Buckets;
use crate::network::queue::codel::{Codel, Law, Store};
use crate::network::queue::drr::Drr;
use crate::network::queue::fifo::Fifo;
use crate::network::queue::{Drops, Flows, Waiting};
use crate::rng::Rng;
use crate::scenario;
use sawtooth_units::Time;

/// Packets dropped at once when there is no room.
const BATCH: u32 = 64;

#[derive(Clone, Debug)]
pub struct FqCodel {
    law: Law,
    buckets: Buckets,
    drr: Drr,
    flows: Vec<Flow>,
    bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    queue: Fifo,
    codel: Codel,
}

/// One flow's queue; the number of bytes that CoDel asks for is that of all queues.
struct One<'a> {
    queue: &'a mut Fifo,
    bytes: &'a mut u64,
}

impl Store for One<'_> {
    fn pop(&mut self) -> Option<Waiting> {
        let first = self.queue.pop()?;
        *self.bytes -= u64::from(first.size);
        Some(first)
    }
    fn bytes(&self) -> u64 {
        *self.bytes
    }
}

impl FqCodel {
    pub fn new(config: scenario::FqCodel, frame: u32, mut rng: Rng) -> Self {
        let scenario::FqCodel { flows, quantum_bytes, .. } = config;
        FqCodel {
            law: Law::new(config.codel(), frame),
            buckets: Buckets::new(flows, &mut rng),
            drr: Drr::new(flows, quantum_bytes.unwrap_or(frame)),
            flows: vec![Flow::default(); flows as usize],
            bytes: 0,
        }
    }

    /// Takes a packet; `full`: there is no room for one more.
    pub fn put(&mut self, waiting: Waiting, full: bool, drops: &mut Drops) {
        let flow = self.buckets.of(waiting.flow);
        self.bytes += u64::from(waiting.size);
        self.flows[flow].queue.push(waiting);
        self.drr.wait(flow);
        if full {
            self.make_room(drops);
        }
    }

    #[cold]
    fn make_room(&mut self, drops: &mut Drops) {
        let held = |flow: &Flow| flow.queue.waiting().1;
        let Some(most) = self.flows.iter().map(held).max() else { return };
        let Some(fattest) = self.flows.iter_mut().find(|flow| held(flow) == most) else { return };
        let mut one = One { queue: &mut fattest.queue, bytes: &mut self.bytes };
        let (mut dropped, mut count) = (0, 0);
        while count < BATCH
            && dropped < most / 2
            && let Some(waiting) = one.pop()
        {
            dropped += u64::from(waiting.size);
            count += 1;
            drops.full(waiting);
        }
        fattest.codel.blame(count);
    }

    pub fn next(&mut self, now: Time, drops: &mut Drops) -> Option<Waiting> {
        let FqCodel { law, drr, flows, bytes, .. } = self;
        drr.next(|flow| {
            let Flow { queue, codel } = &mut flows[flow];
            codel.next(law, now, &mut One { queue, bytes }, drops)
        })
    }

    pub fn flows(&self) -> Flows {
        self.drr.flows()
    }
}
