//! The next event of each cell.

use crate::calendar::Calendar;
use crate::engine::departures::Departures;
use crate::engine::schedule::{LinkHeap, Timers};
use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::steady::Visit;
use sawtooth_units::Time;

#[derive(Clone, Debug)]
pub struct Agenda {
    pub cells: Vec<Ahead>,
    departures: Departures,
    timers: Timers,
    /// For each link, the cell where its packets arrive, and whether they only pass through it.
    arrives_in: Vec<(u32, bool)>,
}

/// How far a cell is, and what is ahead in it.
#[derive(Clone, Debug)]
pub struct Ahead {
    /// The time up to which its events have been processed.
    pub reached: Time,
    /// When its next event may be.
    pub next: Time,
    /// When its next timer may be due.
    due: Time,
    /// The links into it with packets on them; unused for cells that packets only pass through.
    links: LinkHeap,
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
        let ahead = Ahead { reached: Time::ZERO, next: Time::ZERO, due: Time::NEVER, links: LinkHeap::default() };
        Agenda { cells: vec![ahead; cells], departures, timers: Timers::new(cells, timers), arrives_in }
    }

    /// When the next timer of `cell` may be due; the next arrival there, [`Time::NEVER`] if there is none, and its link.
    #[inline(always)]
    pub fn ahead(&self, cell: u32) -> (Time, (Time, u32)) {
        let Ahead { due, links, .. } = &self.cells[cell as usize];
        (*due, links.first())
    }

    /// The first arrival in `cell` has been taken; the next one on its link is at `next`.
    #[inline(always)]
    pub fn arrived(&mut self, cell: u32, next: Time) {
        self.cells[cell as usize].links.replace_top(next);
    }

    /// Takes the next timer of `cell` if it is really due. At one instant a packet leaves before a host acts.
    #[inline]
    pub fn pop_timer(&mut self, cell: u32) -> Option<Due> {
        let due = if self.departures.next_due(cell) <= self.timers.next_due(cell) {
            self.departures.pop(cell).map(Due::Departure)
        } else {
            self.timers.pop(cell).map(Due::Timer)
        };
        self.look(cell);
        due
    }

    /// A timer or a departure of `cell` has changed.
    #[inline]
    fn look(&mut self, cell: u32) {
        self.cells[cell as usize].due = self.timers.next_due(cell).min(self.departures.next_due(cell));
    }

    /// See [`sawtooth_tcp::steady`]. Timers for which not `moves` stay, and limit how far the others may move. These are
    /// forgotten then.
    pub fn visit(&mut self, moves: impl Fn(u32) -> bool, visit: &mut Visit) {
        self.timers.due().filter(|(index, _)| !moves(*index)).for_each(|(_, due)| visit.until(due));
        if visit.is_moving() {
            self.timers.cancel(moves);
            for (index, cell) in (0..).zip(&mut self.cells) {
                cell.links.delay(visit.ahead());
                cell.due = self.timers.next_due(index).min(self.departures.next_due(index));
            }
        }
    }

    /// When the first event of all may be.
    pub fn first(&self) -> Time {
        self.cells.iter().map(|cell| cell.next).min().unwrap_or(Time::NEVER)
    }
}

impl Calendar for Agenda {
    #[inline]
    fn arrival(&mut self, link: u32, time: Time) {
        let (cell, through) = self.arrives_in[link as usize];
        let cell = &mut self.cells[cell as usize];
        cell.next = time.min(cell.next);
        if !through {
            cell.links.push(time, link);
        }
    }

    #[inline]
    fn departure(&mut self, transmitter: u32, time: Time) {
        let cell = self.departures.set(transmitter, time);
        self.look(cell);
    }

    /// A timer of the cell that is running; before the first event, of any cell.
    #[inline]
    fn timer(&mut self, index: u32, due: Time) {
        if let Some(cell) = self.timers.set(index, due) {
            self.look(cell);
        }
    }

    #[inline(always)]
    fn tick(&mut self, index: u32, due: Time, tick: Time, clock: Clock) {
        if let Some(cell) = self.timers.tick(index, due, tick, clock) {
            self.look(cell);
        }
    }

    fn add_timer(&mut self, link: u32) {
        self.timers.add(self.arrives_in[link as usize].0);
    }
}
