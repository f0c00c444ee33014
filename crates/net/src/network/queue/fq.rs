//! Flow queueing as in Linux's `fq`: one queue per flow, served in turns of a quantum, each with a length limit.
//!
//! A queue that begins to wait comes before those that continue. While no flow waits, packets use a short common queue
//! and pay no credit. Linux's fq also paces sockets of its host; here senders pace themselves before.

use crate::network::queue::buckets::Buckets;
use crate::network::queue::fifo::Fifo;
use crate::network::queue::{Drops, Place, Waiting};
use crate::packet::Packet;
use crate::scenario;
use sawtooth_units::width::Fit;
use sawtooth_units::{Span, Time};
use std::collections::VecDeque;

/// Most packets in the common queue.
const FAST: u64 = 8;

#[derive(Clone, Debug)]
pub struct Fq {
    limit: u64,
    flow_limit: u64,
    quantum: i64,
    initial: i64,
    refill_delay: Span,
    /// `None`: each of the host's own flows has a queue.
    buckets: Option<Buckets>,
    flows: Vec<Flow>,
    fast: Fifo,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Flows with packets, and the number of their packets.
    active: u64,
    packets: u64,
}

#[derive(Clone, Debug)]
struct Flow {
    queue: Fifo,
    credit: i64,
    listed: bool,
    /// Since when it is on no list.
    left: Time,
}

impl Fq {
    pub fn new(config: scenario::Fq, limit: u64, mut place: Place) -> Self {
        let frame = i64::from(place.frame);
        let queues = 1 << config.orphan_mask.count_ones();
        Fq {
            limit,
            flow_limit: config.flow_limit,
            quantum: config.quantum_bytes.map_or(2 * frame, i64::from),
            initial: config.initial_quantum_bytes.map_or(10 * frame, i64::from),
            refill_delay: Span::from_nanos(config.refill_delay_ns),
            buckets: (!place.sends).then(|| Buckets::new(queues, &mut place.rng)),
            flows: Vec::new(),
            fast: Fifo::default(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            active: 0,
            packets: 0,
        }
    }

    fn flow(&mut self, waiting: &Waiting) -> usize {
        let index = match &self.buckets {
            Some(buckets) => buckets.of(waiting.flow),
            // A connection, a probe or datagrams; successive connections in one place count as one flow.
            None => {
                let (place, what) = (waiting.flow >> 32, waiting.flow & u64::from(u32::MAX));
                let kind = if what == Packet::DATAGRAMS { 2 } else { what & 1 };
                (3 * place + kind).fit_usize()
            }
        };
        if index >= self.flows.len() {
            let flow = Flow { queue: Fifo::default(), credit: self.initial, listed: false, left: Time::ZERO };
            self.flows.resize(index + 1, flow);
        }
        index
    }

    /// Takes a packet, or drops it.
    pub fn put(&mut self, waiting: Waiting, drops: &mut Drops) {
        if self.packets >= self.limit {
            return drops.full(waiting);
        }
        if self.active == 0 && self.fast.waiting().0 < FAST {
            return self.fast.push(waiting);
        }
        let index = self.flow(&waiting);
        let flow = &mut self.flows[index];
        let held = flow.queue.waiting().0;
        if held >= self.flow_limit {
            return drops.full(waiting);
        }
        if !flow.listed {
            flow.listed = true;
            if waiting.since.since(flow.left) > self.refill_delay {
                flow.credit = flow.credit.max(self.quantum);
            }
            self.new.push_back(index.fit_u32());
        }
        self.active += u64::from(held == 0);
        self.packets += 1;
        flow.queue.push(waiting);
    }

    pub fn next(&mut self, now: Time) -> Option<Waiting> {
        if let Some(first) = self.fast.pop() {
            return Some(first);
        }
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.credit <= 0 {
                flow.credit += self.quantum;
            } else if let Some(first) = flow.queue.pop() {
                flow.credit -= i64::from(first.size);
                self.active -= u64::from(flow.queue.waiting().0 == 0);
                self.packets -= 1;
                return Some(first);
            } else if !is_new {
                (flow.listed, flow.left) = (false, now);
                list.pop_front();
                continue;
            }
            // This also holds for a new flow without more packets: it moves behind the old ones once, so that it is not
            // new again at once.
            list.pop_front();
            self.old.push_back(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::link::Handle;
    use crate::rng::{Purpose, Rng};
    use sawtooth_tcp::packet::Ecn;

    const FQ: scenario::Fq = scenario::Fq {
        flow_limit: 20,
        quantum_bytes: Some(2_000),
        initial_quantum_bytes: Some(3_000),
        orphan_mask: 1_023,
        refill_delay_ns: 40_000_000,
    };

    fn fq(sends: bool) -> Fq {
        let rng = Rng::new(1, Purpose::Queue, 0);
        let place = Place { frame: 1000, hz: 1000, sends, rng, ends: [].into() };
        Fq::new(FQ, 100, place)
    }

    fn packet(number: u32, connection: u64) -> Waiting {
        let packet = Handle::new(number, 1000);
        Waiting { packet, link: 0, at: 0, size: 1000, ecn: Ecn::NotEct, since: Time::ZERO, flow: connection << 32 }
    }

    fn waiting(fq: &Fq) -> u64 {
        fq.packets + fq.fast.waiting().0
    }

    /// The connections of packets in the order in which they leave.
    fn order(fq: &mut Fq) -> Vec<u64> {
        std::iter::from_fn(|| fq.next(Time::ZERO)).map(|waiting| waiting.flow >> 32).collect()
    }

    #[test]
    fn first_turn_uses_initial_quantum() {
        let (mut fq, mut drops) = (fq(true), Drops::default());
        (0..FAST.fit_u32()).for_each(|number| fq.put(packet(number, 9), &mut drops));
        for number in 0..12 {
            fq.put(packet(number, u64::from(number % 2)), &mut drops);
        }
        let order = order(&mut fq);
        assert_eq!(order[..8], [9; 8], "what came while no flow waited is first, and pays nothing");
        assert_eq!(order[8..], [0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 1]);
        assert!(drops.packets.is_empty());
    }

    #[test]
    fn flow_limit_and_total_limit_hold() {
        let (mut fq, mut drops) = (fq(true), Drops::default());
        (0..50).for_each(|number| fq.put(packet(number, 1), &mut drops));
        assert_eq!((waiting(&fq), drops.packets.len()), (28, 22));
        (0..200).for_each(|number| fq.put(packet(number, 2 + u64::from(number % 10)), &mut drops));
        assert_eq!((waiting(&fq), drops.packets.len()), (108, 142));
    }

    #[test]
    fn forwarded_flows_share_buckets_and_local_ones_do_not() {
        let meet = |sends| {
            let mut fq = fq(sends);
            let mut found = vec![0; 2_000];
            (0..500).for_each(|connection| found[fq.flow(&packet(0, connection))] += 1);
            found.into_iter().any(|flows| flows > 1)
        };
        assert!(meet(false) && !meet(true));
    }
}
