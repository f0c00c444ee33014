//! What waits for a transmitter, and what is dropped: a file each discipline.

pub mod codel;
pub mod delays;
pub mod fifo;
pub mod taildrop;

use crate::network::link::Handle;
use crate::network::queue::codel::{Codel, Law, Store};
use crate::network::queue::fifo::Fifo;
use crate::network::queue::taildrop::TailDrop;
use crate::scenario;
use sawtooth_units::Time;

/// A transmitter's queue. One that decides only when a packet comes knows at once when that will leave: no event is spent on it.
/// One that decides when packets leave as well holds them, and is asked for the next whenever the transmitter is free.
#[derive(Clone, Debug)]
pub enum Discipline {
    TailDrop(TailDrop),
    Held(Box<Held>),
}

/// A queue that holds its packets. The packet that leaves next is chosen when the one before begins to leave, as below Linux's
/// token bucket, which looks whether its tokens are enough for it; until then it still counts.
#[derive(Clone, Debug)]
pub struct Held {
    kind: Kind,
    chosen: Option<Waiting>,
    limit_packets: u64,
    limit_bytes: u64,
}

/// Disciplines that hold packets.
#[derive(Clone, Debug)]
enum Kind {
    Fifo(Fifo),
    Codel(Law, Codel, Fifo),
}

/// A packet that is held, and the link that it is to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub packet: Handle,
    pub link: u32,
    /// Bytes, the link's overhead included.
    pub size: u32,
    pub since: Time,
}

/// Packets that are dropped.
#[derive(Debug, Default)]
pub struct Drops {
    pub packets: Vec<Waiting>,
    /// How many of them though there was room.
    pub early: u64,
}

impl Drops {
    pub fn early(&mut self, waiting: Waiting) {
        self.early += 1;
        self.packets.push(waiting);
    }

    pub fn full(&mut self, waiting: Waiting) {
        self.packets.push(waiting);
    }
}

impl Discipline {
    /// `frame`: bytes of the largest that is sent.
    pub fn new(config: &scenario::Transmitter, frame: u32) -> Self {
        let kind = match config.discipline {
            scenario::Discipline::TailDrop => return Discipline::TailDrop(TailDrop::new(config)),
            scenario::Discipline::Fifo {} => Kind::Fifo(Fifo::default()),
            scenario::Discipline::Codel(codel) => {
                Kind::Codel(Law::new(codel, frame), Codel::default(), Fifo::default())
            }
        };
        let limits = [config.queue_packets, config.queue_bytes].map(|limit| limit.unwrap_or(u64::MAX));
        Discipline::Held(Box::new(Held { kind, chosen: None, limit_packets: limits[0], limit_bytes: limits[1] }))
    }
}

impl Held {
    /// Takes a packet. What is dropped for that, itself perhaps, goes to `drops`.
    pub fn put(&mut self, waiting: Waiting, drops: &mut Drops) {
        let (packets, bytes) = self.waiting();
        if packets >= self.limit_packets || bytes + u64::from(waiting.size) > self.limit_bytes {
            return drops.full(waiting);
        }
        match &mut self.kind {
            Kind::Fifo(queue) | Kind::Codel(_, _, queue) => queue.push(waiting),
        }
    }

    /// Chooses what leaves next, at `now`. What is dropped before it goes to `drops`.
    pub fn choose(&mut self, now: Time, drops: &mut Drops) {
        if self.chosen.is_none() {
            self.chosen = match &mut self.kind {
                Kind::Fifo(queue) => queue.pop(),
                Kind::Codel(law, codel, queue) => codel.next(law, now, queue, drops),
            };
        }
    }

    /// Takes what was chosen.
    pub fn take(&mut self) -> Option<Waiting> {
        self.chosen.take()
    }

    /// Packets and bytes that wait.
    pub fn waiting(&self) -> (u64, u64) {
        let (packets, bytes) = match &self.kind {
            Kind::Fifo(queue) | Kind::Codel(_, _, queue) => queue.waiting(),
        };
        let chosen = self.chosen.map_or(0, |waiting| u64::from(waiting.size));
        (packets + u64::from(self.chosen.is_some()), bytes + chosen)
    }
}

impl Store for Fifo {
    fn pop(&mut self) -> Option<Waiting> {
        Fifo::pop(self)
    }
    fn bytes(&self) -> u64 {
        self.waiting().1
    }
}
