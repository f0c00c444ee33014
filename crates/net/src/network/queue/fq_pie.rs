//! FQ-PIE: flows served in turn as in FQ-CoDel, with PIE on each. The kernel's documentation describes it; it has no
//! RFC.

use crate::network::queue::buckets::Buckets;
use crate::network::queue::drr::Drr;
use crate::network::queue::fifo::Fifo;
use crate::network::queue::pie::{Law, Pie};
use crate::network::queue::{Drops, Flows, Waiting};
use crate::rng::Rng;
use crate::scenario;
use sawtooth_units::Time;

#[derive(Clone, Debug)]
pub struct FqPie {
    law: Law,
    buckets: Buckets,
    drr: Drr,
    flows: Vec<(Fifo, Pie)>,
    rng: Rng,
}

impl FqPie {
    pub fn new(config: scenario::FqPie, frame: u32, hz: u32, rng: Rng) -> Self {
        let law = Law::new(config.pie(), frame, hz);
        FqPie {
            law,
            buckets: Buckets::new(config.flows, &mut rng.clone()),
            drr: Drr::new(config.flows, config.quantum_bytes.unwrap_or(frame)),
            flows: vec![(Fifo::default(), Pie::new(&law)); config.flows as usize],
            rng,
        }
    }

    /// Takes a packet, or drops it; `full`: there is no room.
    pub fn put(&mut self, mut waiting: Waiting, full: bool, drops: &mut Drops) {
        let flow = self.buckets.of(waiting.flow);
        let (queue, pie) = &mut self.flows[flow];
        if full {
            pie.dropped();
            return drops.full(waiting);
        }
        if pie.drops(&self.law, &mut waiting, queue.waiting().1, &mut self.rng, drops) {
            return drops.early(waiting);
        }
        queue.push(waiting);
        self.drr.wait(flow);
    }

    pub fn next(&mut self, now: Time) -> Option<Waiting> {
        let FqPie { law, drr, flows, .. } = self;
        drr.next(|flow| {
            let (queue, pie) = &mut flows[flow];
            let first = queue.pop()?;
            pie.leaves(law, now, &first, queue.waiting().1);
            Some(first)
        })
    }

    pub fn flows(&self) -> Flows {
        self.drr.flows()
    }
}
