//! First in, first out.

use crate::network::queue::Waiting;
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub struct Fifo {
    waiting: VecDeque<Waiting>,
    bytes: u64,
}

impl Fifo {
    pub fn push(&mut self, waiting: Waiting) {
        self.bytes += u64::from(waiting.size);
        self.waiting.push_back(waiting);
    }

    pub fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.bytes -= u64::from(first.size);
        Some(first)
    }

    pub fn first(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    /// Takes the last packet.
    pub fn pop_last(&mut self) -> Option<Waiting> {
        let last = self.waiting.pop_back()?;
        self.bytes -= u64::from(last.size);
        Some(last)
    }

    /// Packets and bytes that wait.
    pub fn waiting(&self) -> (u64, u64) {
        (self.waiting.len() as u64, self.bytes)
    }
}
