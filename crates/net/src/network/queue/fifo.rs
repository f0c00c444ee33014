//! First in, first out, what comes to a full queue is dropped: as tail drop, but held until it leaves.

use crate::network::queue::Waiting;
use crate::scenario;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub struct Fifo {
    waiting: VecDeque<Waiting>,
    bytes: u64,
    limit_packets: u64,
    limit_bytes: u64,
}

impl Fifo {
    pub fn new(config: &scenario::Transmitter) -> Self {
        Fifo {
            waiting: VecDeque::new(),
            bytes: 0,
            limit_packets: config.queue_packets.unwrap_or(u64::MAX),
            limit_bytes: config.queue_bytes.unwrap_or(u64::MAX),
        }
    }

    pub fn put(&mut self, waiting: Waiting, dropped: &mut Vec<Waiting>) {
        let bytes = self.bytes + u64::from(waiting.size);
        if self.waiting.len() as u64 >= self.limit_packets || bytes > self.limit_bytes {
            return dropped.push(waiting);
        }
        self.bytes = bytes;
        self.waiting.push_back(waiting);
    }

    pub fn next(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.bytes -= u64::from(first.size);
        Some(first)
    }

    pub fn waiting(&self) -> (u64, u64) {
        (self.waiting.len() as u64, self.bytes)
    }
}
