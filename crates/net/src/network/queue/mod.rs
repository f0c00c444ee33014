//! What waits for a transmitter, and what is dropped: a file each discipline.

pub mod fifo;
pub mod taildrop;

use crate::network::link::Handle;
use crate::network::queue::fifo::Fifo;
use crate::network::queue::taildrop::TailDrop;
use crate::scenario;
use sawtooth_units::Time;

/// A transmitter's queue. One that decides only when a packet comes knows at once when that will leave: no event is spent on it.
/// One that decides when packets leave as well holds them, and is asked for the next whenever the transmitter is free.
#[derive(Clone, Debug)]
pub enum Discipline {
    TailDrop(TailDrop),
    Held(Held),
}

/// Disciplines that decide when packets leave.
#[derive(Clone, Debug)]
pub enum Held {
    Fifo(Fifo),
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

impl Discipline {
    pub fn new(config: &scenario::Transmitter) -> Self {
        match config.discipline {
            scenario::Discipline::TailDrop => Discipline::TailDrop(TailDrop::new(config)),
            scenario::Discipline::Fifo => Discipline::Held(Held::Fifo(Fifo::new(config))),
        }
    }
}

impl Held {
    /// Takes a packet, which has to wait. What is dropped for that, itself perhaps, goes to `dropped`.
    pub fn put(&mut self, waiting: Waiting, dropped: &mut Vec<Waiting>) {
        match self {
            Held::Fifo(queue) => queue.put(waiting, dropped),
        }
    }

    /// The packet that leaves at `now`. What is dropped before it goes to `dropped`.
    pub fn next(&mut self, _now: Time, _dropped: &mut Vec<Waiting>) -> Option<Waiting> {
        match self {
            Held::Fifo(queue) => queue.next(),
        }
    }

    /// Packets and bytes that wait.
    pub fn waiting(&self) -> (u64, u64) {
        match self {
            Held::Fifo(queue) => queue.waiting(),
        }
    }
}
