//! When each cell has something to do.

use crate::calendar::Calendar;
use crate::engine::schedule::{LinkHeap, Timers};
use sawtooth_units::Time;

#[derive(Clone, Debug)]
pub struct Agenda {
    /// When each cell's next event may be.
    pub next: Vec<Time>,
    /// The links that lead into each cell and have packets on their way; unused for cells that packets only pass through.
    pub heaps: Vec<LinkHeap>,
    pub timers: Timers,
    /// Each link's cell: where its packets arrive. And whether packets only pass through that.
    arrives_in: Vec<(u32, bool)>,
}

impl Agenda {
    /// For `cells` cells; in which each timer and each link's arrivals are.
    pub fn new(cells: usize, timers: &[u32], arrives_in: Vec<(u32, bool)>) -> Self {
        Agenda {
            next: vec![Time::ZERO; cells],
            heaps: vec![LinkHeap::default(); cells],
            timers: Timers::new(cells, timers),
            arrives_in,
        }
    }

    /// When the first event of all may be.
    pub fn first(&self) -> Time {
        self.next.iter().copied().min().unwrap_or(Time::NEVER)
    }
}

impl Calendar for Agenda {
    #[inline]
    fn arrival(&mut self, link: u32, time: Time) {
        let (cell, through) = self.arrives_in[link as usize];
        let next = &mut self.next[cell as usize];
        *next = time.min(*next);
        if !through {
            self.heaps[cell as usize].push(time, link);
        }
    }

    /// Of the cell whose events are being taken, or of any before the first.
    #[inline]
    fn timer(&mut self, index: u32, due: Time) {
        self.timers.set(index, due);
    }
}
