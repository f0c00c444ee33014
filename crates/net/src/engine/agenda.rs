//! When each cell has something to do.

use crate::engine::schedule::LinkHeap;
use sawtooth_units::Time;

#[derive(Clone, Debug)]
pub struct Agenda {
    /// When each cell's next event may be.
    pub next: Vec<Time>,
    /// The links that lead into each cell and have packets on their way; unused for cells that packets only pass through.
    pub heaps: Vec<LinkHeap>,
    /// Each link's cell: where its packets arrive. And whether packets only pass through that.
    arrives_in: Vec<(u32, bool)>,
}

impl Agenda {
    pub fn new(next: Vec<Time>, arrives_in: Vec<(u32, bool)>) -> Self {
        Agenda { heaps: vec![LinkHeap::default(); next.len()], next, arrives_in }
    }

    /// The first packet on its way over `link`, which was empty, arrives at `time`.
    #[inline]
    pub fn note(&mut self, link: u32, time: Time) {
        let (cell, through) = self.arrives_in[link as usize];
        let next = &mut self.next[cell as usize];
        *next = time.min(*next);
        if !through {
            self.heaps[cell as usize].push(time, link);
        }
    }

    /// When the first event of all may be.
    pub fn first(&self) -> Time {
        self.next.iter().copied().min().unwrap_or(Time::NEVER)
    }
}
