//! The next event of each cell.

use crate::calendar::Calendar;
use crate::engine::departures::Departures;
use crate::engine::schedule::{LinkHeap, Timers};
use sawtooth_tcp::clock::Clock;
use sawtooth_units::Time;

#[derive(Clone, Debug)]
pub struct Agenda {
    /// When each cell's next event may be.
    pub next: Vec<Time>,
    /// The links into each cell with packets on them; unused for cells that packets only pass through.
    pub heaps: Vec<LinkHeap>,
    departures: Departures,
    timers: Timers,
    /// For each link, the cell where its packets arrive, and whether they only pass through it.
    arrives_in: Vec<(u32, bool)>,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// A transmitter may release its next packet.
    Departure(u32),
    /// A timer of the hosts.
    Timer(u32),
}

impl Agenda {
    /// For `cells` cells; with the cell of each host timer and of each link's arrivals.
    pub fn new(cells: usize, departures: Departures, timers: &[u32], arrives_in: Vec<(u32, bool)>) -> Self {
        Agenda {
            next: vec![Time::ZERO; cells],
            heaps: vec![LinkHeap::default(); cells],
            departures,
            timers: Timers::new(cells, timers),
            arrives_in,
        }
    }

    /// When the next timer of `cell` may be due.
    #[inline]
    pub fn next_timer(&self, cell: u32) -> Time {
        self.timers.next_due(cell).min(self.departures.next_due(cell))
    }

    /// Takes the next timer of `cell` if it is really due. At one instant a packet leaves before a host acts.
    #[inline]
    pub fn pop_timer(&mut self, cell: u32) -> Option<Due> {
        if self.departures.next_due(cell) <= self.timers.next_due(cell) {
            self.departures.pop(cell).map(Due::Departure)
        } else {
            self.timers.pop(cell).map(Due::Timer)
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

    #[inline]
    fn departure(&mut self, transmitter: u32, time: Time) {
        self.departures.set(transmitter, time);
    }

    /// A timer of the cell that is running; before the first event, of any cell.
    #[inline]
    fn timer(&mut self, index: u32, due: Time) {
        self.timers.set(index, due);
    }

    #[inline(always)]
    fn tick(&mut self, index: u32, due: Time, tick: Time, clock: Clock) {
        self.timers.tick(index, due, tick, clock);
    }

    fn add_timer(&mut self, link: u32) {
        self.timers.add(self.arrives_in[link as usize].0);
    }
}
