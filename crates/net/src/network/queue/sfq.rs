//! Stochastic fairness queueing (McKenney 1990) as in Linux's `sfq`: flows are hashed to queues served in turn. Without
//! room, the longest queue loses its last packet.

use crate::network::queue::buckets::Buckets;
use crate::network::queue::fifo::Fifo;
use crate::network::queue::{Drops, Waiting};
use crate::rng::Rng;
use crate::scenario;
use sawtooth_units::width::Fit;
use sawtooth_units::{Span, Time};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub struct Sfq {
    quantum: i64,
    limit: u64,
    depth: u64,
    headdrop: bool,
    buckets: Buckets,
    /// Interval at which flows are hashed again.
    perturb: Option<Span>,
    perturbs: Time,
    /// The queue of each bucket.
    taken: Vec<Option<u32>>,
    queues: Vec<Queue>,
    free: Vec<u32>,
    turns: VecDeque<u32>,
    /// Counts arrivals and departures: among equally long queues, the one that changed last counts as the longest.
    changes: u64,
    rng: Rng,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    held: Fifo,
    bucket: usize,
    allot: i64,
    changed: u64,
}

impl Sfq {
    pub fn new(config: scenario::Sfq, limit: u64, frame: u32, mut rng: Rng) -> Self {
        let perturb = (config.perturb_ns > 0).then(|| Span::from_nanos(config.perturb_ns));
        let flows = u64::from(config.flows.min(config.divisor));
        let limit = limit.min(flows * u64::from(config.depth));
        let flows = flows.min(limit).fit_u32();
        Sfq {
            quantum: i64::from(config.quantum_bytes.unwrap_or(frame)),
            limit,
            depth: u64::from(config.depth),
            headdrop: config.headdrop,
            buckets: Buckets::new(config.divisor, &mut rng),
            perturb,
            perturbs: perturb.map_or(Time::NEVER, |every| Time::ZERO + every),
            taken: vec![None; config.divisor as usize],
            queues: vec![Queue::default(); flows as usize],
            free: (0..flows).rev().collect(),
            turns: VecDeque::new(),
            changes: 0,
            rng,
        }
    }

    /// Takes a packet while `packets` wait, including the one that leaves next.
    pub fn put(&mut self, waiting: Waiting, packets: u64, drops: &mut Drops) {
        self.perturb(waiting.since, drops);
        let Some(index) = self.queue(waiting.flow) else { return drops.full(waiting) };
        let queue = &mut self.queues[index as usize];
        if queue.held.waiting().0 >= self.depth {
            if !self.headdrop {
                return drops.full(waiting);
            }
            queue.held.push(waiting);
            queue.held.pop().into_iter().for_each(|first| drops.full(first));
            return;
        }
        self.push(index, waiting);
        if packets >= self.limit {
            self.make_room(drops);
        }
    }

    /// The queue of a flow; `None`: it has none, and none is free.
    fn queue(&mut self, flow: u64) -> Option<u32> {
        let bucket = self.buckets.of(flow);
        if self.taken[bucket].is_none() {
            let index = self.free.pop()?;
            self.taken[bucket] = Some(index);
            self.queues[index as usize].bucket = bucket;
        }
        self.taken[bucket]
    }

    fn push(&mut self, index: u32, waiting: Waiting) {
        self.changes += 1;
        let queue = &mut self.queues[index as usize];
        queue.changed = self.changes;
        queue.held.push(waiting);
        if queue.held.waiting().0 == 1 {
            queue.allot = self.quantum;
            self.turns.push_back(index);
        }
    }

    #[cold]
    fn make_room(&mut self, drops: &mut Drops) {
        let rank = |index: &u32| {
            let queue = &self.queues[*index as usize];
            (queue.held.waiting().0, queue.changed)
        };
        let Some(longest) = self.turns.iter().copied().max_by_key(rank) else { return };
        let is_one = self.queues[longest as usize].held.waiting().0 == 1;
        // If each has one packet, the victim is the next queue's.
        let victim = if is_one { self.turns[0] } else { longest };
        let queue = &mut self.queues[victim as usize];
        let dropped = if self.headdrop { queue.held.pop() } else { queue.held.pop_last() };
        dropped.into_iter().for_each(|dropped| {
            self.gone(victim);
            drops.full(dropped);
        });
        if is_one {
            self.turns.pop_front();
            self.release(victim);
        }
    }

    fn gone(&mut self, index: u32) {
        self.changes += 1;
        self.queues[index as usize].changed = self.changes;
    }

    fn release(&mut self, index: u32) {
        self.taken[self.queues[index as usize].bucket] = None;
        self.free.push(index);
    }

    pub fn next(&mut self, now: Time, drops: &mut Drops) -> Option<Waiting> {
        self.perturb(now, drops);
        loop {
            let index = *self.turns.front()?;
            let queue = &mut self.queues[index as usize];
            if queue.allot <= 0 {
                queue.allot += self.quantum;
                self.turns.rotate_left(1);
                continue;
            }
            let first = queue.held.pop()?;
            queue.allot -= i64::from(first.size);
            let is_empty = queue.held.waiting().0 == 0;
            self.gone(index);
            if is_empty {
                self.turns.pop_front();
                self.release(index);
            }
            return Some(first);
        }
    }

    /// Hashes waiting packets again when it is time: other flows collide, and a flow's packets stay in order.
    fn perturb(&mut self, now: Time, drops: &mut Drops) {
        let Some(every) = self.perturb else { return };
        if now < self.perturbs {
            return;
        }
        while self.perturbs <= now {
            self.perturbs += every;
        }
        self.buckets = Buckets::new(self.taken.len().fit_u32(), &mut self.rng);
        let mut all = Vec::new();
        self.turns.clear();
        for index in 0..self.queues.len().fit_u32() {
            let before = all.len();
            while let Some(waiting) = self.queues[index as usize].held.pop() {
                self.gone(index);
                all.push(waiting);
            }
            if all.len() > before {
                self.release(index);
            }
        }
        for waiting in all {
            match self.queue(waiting.flow) {
                Some(index) if self.queues[index as usize].held.waiting().0 < self.depth => self.push(index, waiting),
                _ => drops.full(waiting),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::link::Handle;
    use crate::rng::Purpose;
    use sawtooth_tcp::packet::Ecn;

    const SFQ: scenario::Sfq =
        scenario::Sfq { quantum_bytes: None, perturb_ns: 0, flows: 128, divisor: 65_536, depth: 127, headdrop: false };

    fn sfq(config: scenario::Sfq, limit: u64) -> Sfq {
        Sfq::new(config, limit, 1_000, Rng::new(1, Purpose::Queue, 0))
    }

    fn packet(number: u32, flow: u64, ms: u64) -> Waiting {
        let since = Time::ZERO + Span::from_millis(ms);
        Waiting { packet: Handle::new(number, 1000), link: 0, at: 0, size: 1000, ecn: Ecn::NotEct, since, flow }
    }

    fn waiting(sfq: &Sfq) -> u64 {
        sfq.queues.iter().map(|queue| queue.held.waiting().0).sum()
    }

    /// Puts packets of these flows.
    fn put(sfq: &mut Sfq, flows: &[u64]) -> Vec<u32> {
        let mut drops = Drops::default();
        for (number, &flow) in (0..).zip(flows) {
            let packets = waiting(sfq);
            sfq.put(packet(number, flow, 0), packets, &mut drops);
        }
        drops.packets.iter().map(|waiting| waiting.packet.slot()).collect()
    }

    fn order(sfq: &mut Sfq, now: Time) -> Vec<(u64, u32)> {
        let mut drops = Drops::default();
        std::iter::from_fn(|| sfq.next(now, &mut drops)).map(|one| (one.flow, one.packet.slot())).collect()
    }

    #[test]
    fn full_sfq_drops_tail_of_longest_flow() {
        let mut sfq = sfq(SFQ, 5);
        assert_eq!(put(&mut sfq, &[1, 1, 1, 2, 2, 3]), [2]);
        assert_eq!(order(&mut sfq, Time::ZERO), [(1, 0), (2, 3), (3, 5), (1, 1), (2, 4)]);
        assert_eq!(waiting(&sfq), 0);
    }

    #[test]
    fn headdrop_drops_head_of_longest_flow() {
        let mut sfq = sfq(scenario::Sfq { headdrop: true, ..SFQ }, 5);
        assert_eq!(put(&mut sfq, &[1, 1, 1, 2, 2, 3]), [0]);
        let mut short = self::sfq(scenario::Sfq { headdrop: true, depth: 2, ..SFQ }, 5);
        assert_eq!(put(&mut short, &[1, 1, 1, 1]), [0, 1]);
        assert_eq!(order(&mut short, Time::ZERO), [(1, 2), (1, 3)]);
    }

    #[test]
    fn full_sfq_of_single_packets_drops_from_next_flow() {
        let (mut sfq, mut drops) = (sfq(SFQ, 3), Drops::default());
        // One more packet has left these queues and waits to leave.
        for (number, flow) in (0..).zip([1, 2, 3]) {
            let packets = waiting(&sfq) + 1;
            sfq.put(packet(number, flow, 0), packets, &mut drops);
        }
        assert_eq!(drops.packets, [packet(0, 1, 0)]);
        assert_eq!(order(&mut sfq, Time::ZERO), [(2, 1), (3, 2)]);
    }

    #[test]
    fn arrivals_beyond_flow_or_depth_limit_are_dropped() {
        let mut few = sfq(scenario::Sfq { flows: 2, ..SFQ }, 100);
        assert_eq!(put(&mut few, &[1, 2, 3]), [2]);
        let mut short = sfq(scenario::Sfq { depth: 2, ..SFQ }, 100);
        assert_eq!(put(&mut short, &[1, 1, 1, 2]), [2]);
    }

    #[test]
    fn rehash_keeps_order_within_a_flow() {
        let mut sfq = sfq(scenario::Sfq { perturb_ns: 1_000_000_000, divisor: 2, ..SFQ }, 100);
        let before = sfq.buckets;
        put(&mut sfq, &[1, 2, 3, 4, 1, 2, 3, 4]);
        let later = Time::ZERO + Span::from_millis(1_000);
        let left = order(&mut sfq, later);
        let of = |flow| left.iter().filter(|one| one.0 == flow).map(|one| one.1).collect::<Vec<_>>();
        assert_eq!([of(1), of(2), of(3), of(4)], [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert!((0..100).any(|flow| before.of(flow) != sfq.buckets.of(flow)));
    }
}
