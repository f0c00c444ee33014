//! What waits for a transmitter, and what is dropped: a file each discipline.

pub mod buckets;
pub mod codel;
pub mod delays;
pub mod fifo;
pub mod fq_codel;
pub mod fq_pie;
pub mod pie;
pub mod red;
pub mod rounds;
pub mod taildrop;

use crate::network::link::Handle;
use crate::network::queue::codel::{Codel, Store};
use crate::network::queue::fifo::Fifo;
use crate::network::queue::fq_codel::FqCodel;
use crate::network::queue::fq_pie::FqPie;
use crate::network::queue::pie::Pie;
use crate::network::queue::red::Red;
use crate::network::queue::taildrop::TailDrop;
use crate::rng::Rng;
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
    Codel(codel::Law, Codel, Fifo),
    FqCodel(FqCodel),
    Red(Red, Fifo),
    Pie(pie::Law, Pie, Rng, Fifo),
    FqPie(FqPie),
}

/// A packet that is held, and the link that it is to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub packet: Handle,
    pub link: u32,
    /// Bytes, the link's overhead included.
    pub size: u32,
    pub since: Time,
    /// Of the flow that it belongs to.
    pub flow: u64,
}

/// What a discipline needs to know of where it is.
#[derive(Clone, Debug)]
pub struct Place {
    /// Bytes of the largest frame that is sent.
    pub frame: u32,
    /// Timer tick of its host.
    pub hz: u32,
    pub rng: Rng,
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
    pub fn new(config: &scenario::Transmitter, place: Place) -> Self {
        let Place { frame, hz, rng } = place;
        let kind = match config.discipline {
            scenario::Discipline::TailDrop => return Discipline::TailDrop(TailDrop::new(config)),
            scenario::Discipline::Fifo {} => Kind::Fifo(Fifo::default()),
            scenario::Discipline::Codel(codel) => {
                Kind::Codel(codel::Law::new(codel, frame), Codel::default(), Fifo::default())
            }
            scenario::Discipline::FqCodel(given) => Kind::FqCodel(FqCodel::new(given, frame, rng)),
            scenario::Discipline::Red(given) => Kind::Red(Red::new(given, rng), Fifo::default()),
            scenario::Discipline::Pie(given) => {
                Kind::Pie(pie::Law::new(given, frame, hz), Pie::new(), rng, Fifo::default())
            }
            scenario::Discipline::FqPie(given) => Kind::FqPie(FqPie::new(given, frame, hz, rng)),
        };
        let limits = [config.queue_packets, config.queue_bytes].map(|limit| limit.unwrap_or(u64::MAX));
        Discipline::Held(Box::new(Held { kind, chosen: None, limit_packets: limits[0], limit_bytes: limits[1] }))
    }
}

impl Held {
    /// Takes a packet. What is dropped for that, itself perhaps, goes to `drops`.
    pub fn put(&mut self, waiting: Waiting, drops: &mut Drops) {
        let (packets, bytes) = self.waiting();
        let full = packets >= self.limit_packets || bytes + u64::from(waiting.size) > self.limit_bytes;
        let (early, queue) = match &mut self.kind {
            Kind::FqCodel(queue) => return queue.put(waiting, full, drops),
            Kind::FqPie(queue) => return queue.put(waiting, full, drops),
            Kind::Fifo(queue) | Kind::Codel(_, _, queue) => (false, queue),
            Kind::Red(red, queue) => (red.drops(waiting.since, bytes), queue),
            Kind::Pie(_, pie, _, queue) if full => {
                pie.dropped();
                (false, queue)
            }
            Kind::Pie(law, pie, rng, queue) => (pie.drops(law, waiting.since, waiting.size, bytes, rng), queue),
        };
        if early {
            drops.early(waiting);
        } else if full {
            drops.full(waiting);
        } else {
            queue.push(waiting);
        }
    }

    /// Chooses what leaves next, at `now`. What is dropped before it goes to `drops`.
    pub fn choose(&mut self, now: Time, drops: &mut Drops) {
        if self.chosen.is_none() {
            self.chosen = match &mut self.kind {
                Kind::Fifo(queue) | Kind::Red(_, queue) => queue.pop(),
                Kind::FqCodel(queue) => queue.next(now, drops),
                Kind::FqPie(queue) => queue.next(now),
                Kind::Pie(law, pie, _, queue) => queue.pop().inspect(|first| {
                    pie.leaves(law, now, first, queue.waiting().1);
                }),
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
            Kind::Fifo(queue) | Kind::Codel(_, _, queue) | Kind::Red(_, queue) | Kind::Pie(_, _, _, queue) => {
                queue.waiting()
            }
            Kind::FqCodel(queue) => queue.waiting(),
            Kind::FqPie(queue) => queue.waiting(),
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
