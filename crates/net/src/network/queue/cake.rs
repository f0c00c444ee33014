//! CAKE (Høiland-Jørgensen et al. 2018) as in Linux: a shaper with a virtual clock, flow queues served in turn with
//! fairness between hosts, and COBALT on each.
//!
//! All packets are best effort here, so only one tin is used. Hosts are distinguished exactly, not by a hash.

use crate::network::queue::cobalt::{Cobalt, Law};
use crate::network::queue::fifo::Fifo;
use crate::network::queue::set_associative::SetAssociative;
use crate::network::queue::{Drops, Place, Waiting};
use crate::rng::Rng;
use crate::scenario;
use sawtooth_units::width::{Fit, Low};
use sawtooth_units::{Span, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of a flow's turn: with a shaper, what it passes in a 4096th of a second, within these bounds; otherwise the
/// larger bound.
const QUANTUM: [u64; 2] = [300, 1_514];
/// Kernel memory that a packet takes beyond its frame.
const PACKET_MEMORY: u64 = 790;

#[derive(Clone, Debug)]
pub struct Cake {
    law: Law,
    shaper: Option<Shaper>,
    isolation: scenario::Isolation,
    shares: Shares,
    sets: SetAssociative,
    flows: Vec<Flow>,
    /// Per queue, the data that is checked a hundred times per packet if a host has a hundred queues.
    turns: Box<[Turn; SetAssociative::QUEUES]>,
    /// Queues that begin to wait; those that continue; and empty ones whose COBALT is still active.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    decaying: VecDeque<u32>,
    /// For each place on a route, the hosts at its ends.
    ends: Arc<[[u32; 2]]>,
    memory_limit: u64,
    packets: u64,
    bytes: u64,
}

/// What a queue may still send.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    credit: i64,
    /// The source and destination host of its first packet.
    hosts: [u32; 2],
}

/// What queues may send in a turn.
#[derive(Clone, Debug)]
struct Shares {
    /// Bytes of a turn, in 65536ths, by the load of a queue's host.
    quanta: Vec<u32>,
    /// For each host, the number of queues with more than one turn's data from it, and to it; 0 if that does not count.
    loads: [Vec<u32>; 2],
    counts: [bool; 2],
    rng: Rng,
}

impl Shares {
    /// The quantum of a turn, in 65536ths: the busier of a queue's hosts divides it among its queues.
    fn quantum(&self, [from, to]: [u32; 2]) -> u32 {
        let load = self.loads[0][from as usize].max(self.loads[1][to as usize]);
        self.quanta[load as usize]
    }

    /// Gives a queue another turn.
    fn give(&mut self, turn: &mut Turn) {
        turn.credit += whole(self.quantum(turn.hosts), &mut self.rng);
    }

    /// Gives another turn to each of `queues` before the first one that may send; returns how many there are.
    fn give_until(&mut self, turns: &mut [Turn; SetAssociative::QUEUES], queues: &[u32]) -> usize {
        // Values that stay in registers, and a lookup that happens only when the hosts change.
        let (mut rng, mut hosts, mut quantum) = (self.rng.clone(), [u32::MAX; 2], 0);
        let mut passed = 0;
        for &queue in queues {
            let turn = &mut turns[queue as usize % SetAssociative::QUEUES];
            if turn.credit > 0 {
                break;
            }
            if turn.hosts != hosts {
                (hosts, quantum) = (turn.hosts, self.quantum(turn.hosts));
            }
            turn.credit += whole(quantum, &mut rng);
            passed += 1;
        }
        self.rng = rng;
        passed
    }

    fn count(&mut self, hosts: [u32; 2], change: impl Fn(u32) -> u32) {
        for ((loads, host), _) in self.loads.iter_mut().zip(hosts).zip(self.counts).filter(|(_, counts)| *counts) {
            loads[host as usize] = change(loads[host as usize]);
        }
    }
}

/// The integer part of this many 65536ths; the fraction is rounded at random.
#[inline(always)]
fn whole(parts: u32, rng: &mut Rng) -> i64 {
    i64::from((parts + u32::from(rng.next().low_u16())) >> 16)
}

/// A queue's position among the turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Set {
    #[default]
    None,
    Sparse,
    /// It was found empty with nothing left of its turn: in the old list, and still sparse.
    SparseWait,
    Bulk,
    Decaying,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    queue: Fifo,
    cobalt: Cobalt,
    set: Set,
}

/// Packets leave as on a line of this rate: the clock advances by each packet's time, and restarts only after a pause.
#[derive(Clone, Copy, Debug)]
struct Shaper {
    bps: u64,
    next: Time,
}

impl Shaper {
    fn takes(bps: u64, bytes: u64) -> Span {
        Span::from_nanos((u128::from(bytes) * 8_000_000_000 / u128::from(bps)).fit_u64())
    }
}

impl Cake {
    pub fn new(config: &scenario::Cake, place: Place) -> Self {
        let Place { frame, mut rng, ends, .. } = place;
        let bps = config.bandwidth_bps;
        let hosts = ends.iter().flatten().max().map_or(0, |host| *host as usize + 1);
        let [least, most] = QUANTUM;
        let quantum = bps.map_or(most, |bps| (bps / 8 / 4096).clamp(least, most));
        let turn = |load: u64| (quantum * (65_535 / load.max(1))).fit_u32();
        Cake {
            law: Law::new(config, bps.map_or(Span::ZERO, |bps| Shaper::takes(bps, u64::from(frame)))),
            shaper: bps.map(|bps| Shaper { bps, next: Time::ZERO }),
            isolation: config.isolation,
            sets: SetAssociative::new(rng.next()),
            shares: Shares {
                quanta: (0..=SetAssociative::QUEUES as u64).map(turn).collect(),
                loads: [vec![0; hosts], vec![0; hosts]],
                counts: config.isolation.counts(),
                rng,
            },
            flows: vec![Flow::default(); SetAssociative::QUEUES],
            turns: Box::new([Turn::default(); SetAssociative::QUEUES]),
            new: VecDeque::new(),
            old: VecDeque::new(),
            decaying: VecDeque::new(),
            ends,
            memory_limit: config.memory_bytes,
            packets: 0,
            bytes: 0,
        }
    }

    /// Takes a packet; `idle`: nothing waits.
    pub fn put(&mut self, waiting: Waiting, idle: bool, drops: &mut Drops) {
        if let Some(shaper) = &mut self.shaper
            && idle
        {
            shaper.next = shaper.next.max(waiting.since);
        }
        let index = self.queue_of(&waiting);
        let flow = &mut self.flows[index];
        flow.queue.push(waiting);
        self.packets += 1;
        self.bytes += u64::from(waiting.size);
        match flow.set {
            Set::None | Set::Decaying => self.begin(index),
            Set::SparseWait => self.load(index),
            Set::Sparse | Set::Bulk => {}
        }
        while self.bytes + self.packets * PACKET_MEMORY > self.memory_limit && self.packets > 0 {
            self.make_room(waiting.since, drops);
        }
    }

    /// The queue of a packet's flow, which may be a new one.
    fn queue_of(&mut self, waiting: &Waiting) -> usize {
        let hosts = self.ends[waiting.at as usize];
        let Some(key) = self.isolation.key(waiting.flow, hosts) else { return 0 };
        let flows = &self.flows;
        let (index, taken) = self.sets.find(key, |queue| flows[queue].set != Set::None);
        if taken {
            let was_bulk = self.flows[index].set == Set::Bulk;
            if was_bulk {
                self.unload(index);
            }
            self.turns[index].hosts = hosts;
            if was_bulk {
                self.load(index);
            }
        }
        index
    }

    /// A queue begins to wait.
    fn begin(&mut self, index: usize) {
        let (flow, turn) = (&mut self.flows[index], &mut self.turns[index]);
        turn.credit = 0;
        self.shares.give(turn);
        if flow.set == Set::Decaying
            && let Some(at) = self.decaying.iter().position(|&other| other as usize == index)
        {
            self.decaying.remove(at);
        }
        flow.set = Set::Sparse;
        self.new.push_back(index.fit_u32());
    }

    /// A queue now has more than one turn's data.
    fn load(&mut self, index: usize) {
        self.flows[index].set = Set::Bulk;
        self.shares.count(self.turns[index].hosts, |load| load + 1);
    }

    /// It no longer has; the caller sets its new state.
    fn unload(&mut self, index: usize) {
        self.shares.count(self.turns[index].hosts, |load| load - 1);
    }

    /// Drops the first packet of the longest queue.
    #[cold]
    fn make_room(&mut self, now: Time, drops: &mut Drops) {
        let held = |index: &&u32| self.flows[**index as usize].queue.waiting().1;
        let Some(&longest) = self.new.iter().chain(&self.old).max_by_key(held) else { return };
        let flow = &mut self.flows[longest as usize];
        flow.cobalt.full(&self.law, now);
        if let Some(first) = flow.queue.pop() {
            self.packets -= 1;
            self.bytes -= u64::from(first.size);
            drops.full(first);
        }
    }

    /// The packet that leaves at `now`.
    pub fn next(&mut self, now: Time, drops: &mut Drops) -> Option<Waiting> {
        if self.packets == 0 {
            return None;
        }
        if self.shaper.is_some_and(|shaper| shaper.next > now) {
            drops.overlimits += 1;
            return None;
        }
        // One of the empty queues is checked each time.
        let mut decays = true;
        loop {
            let index = self.whose_turn(decays)?;
            decays = false;
            if self.turns[index].credit <= 0 {
                self.ages(index);
                continue;
            }
            match self.take(index, now, drops) {
                None => self.is_empty(index, now),
                Some(first) => {
                    self.turns[index].credit -= i64::from(first.size);
                    if let Some(shaper) = &mut self.shaper {
                        shaper.next += Shaper::takes(shaper.bps, u64::from(first.size));
                    }
                    return Some(first);
                }
            }
        }
    }

    /// Removes the queue whose turn it is from its list.
    fn whose_turn(&mut self, decays: bool) -> Option<usize> {
        let decayed = if decays { self.decaying.pop_front() } else { None };
        let next = decayed.or_else(|| self.new.pop_front()).or_else(|| self.next_old());
        next.or_else(|| self.decaying.pop_front()).map(|index| index as usize)
    }

    /// The first old queue that may send; those before it get another turn. If a host has many queues, a turn is a few
    /// bytes.
    fn next_old(&mut self) -> Option<u32> {
        let Cake { old, turns, shares, .. } = self;
        while !old.is_empty() {
            let (front, back) = old.as_slices();
            let mut passed = shares.give_until(turns, front);
            if passed == front.len() {
                passed += shares.give_until(turns, back);
            }
            if passed < old.len() {
                old.rotate_left(passed);
                return old.pop_front();
            }
        }
        None
    }

    /// A new queue has used up its turn: it moves to the old list.
    fn ages(&mut self, index: usize) {
        if self.flows[index].queue.waiting().0 > 0 {
            self.load(index);
        } else {
            self.flows[index].set = Set::SparseWait;
        }
        self.shares.give(&mut self.turns[index]);
        self.old.push_back(index.fit_u32());
    }

    /// A packet of the queue, without those that COBALT drops before it; the very last one is not dropped. The queue
    /// then returns to the head of its list.
    fn take(&mut self, index: usize, now: Time, drops: &mut Drops) -> Option<Waiting> {
        let flow = &mut self.flows[index];
        loop {
            let mut first = flow.queue.pop()?;
            self.packets -= 1;
            self.bytes -= u64::from(first.size);
            let dropped = flow.cobalt.drops(&self.law, now, &mut first, &mut self.shares.rng, drops);
            if !dropped || flow.queue.waiting().0 == 0 {
                match flow.set {
                    Set::Sparse => self.new.push_front(index.fit_u32()),
                    _ => self.old.push_front(index.fit_u32()),
                }
                return Some(first);
            }
            drops.early(first);
        }
    }

    /// It was this queue's turn, and it was empty.
    fn is_empty(&mut self, index: usize, now: Time) {
        if self.flows[index].set == Set::Bulk {
            self.unload(index);
        }
        let flow = &mut self.flows[index];
        flow.cobalt.empty(&self.law, now);
        flow.set = if flow.cobalt.rests(now) { Set::None } else { Set::Decaying };
        if flow.set == Set::Decaying {
            self.decaying.push_back(index.fit_u32());
        }
    }

    /// Until when the shaper releases nothing; `None`: there is no shaper.
    pub fn ready(&self) -> Option<Time> {
        self.shaper.map(|shaper| shaper.next)
    }
}
