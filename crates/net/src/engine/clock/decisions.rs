//! Runs up to the next decision of an agent: the engine stops after the ACK that asks for one, and sends what that ACK
//! allows once the decision is there.

use super::Simulation;
use crate::engine::cells::Cells;
use crate::hosts::Hosts;
use sawtooth_tcp::cc::agent::Observation;
use sawtooth_units::Time;
use sawtooth_units::width::Fit;

/// The agents of a simulation.
#[derive(Clone, Debug)]
pub(super) struct Agents {
    /// Whether a sender that asks for decisions is in a cell.
    pub in_cell: Vec<bool>,
    /// The connection that waits for a decision, and since when.
    pub waiting: Option<(u32, Time)>,
}

impl Agents {
    pub fn new(hosts: &Hosts, cells: &Cells) -> Self {
        let mut in_cell = vec![false; cells.count];
        hosts.asking().for_each(|host| in_cell[cells.of_host[host] as usize] = true);
        Agents { in_cell, waiting: None }
    }
}

impl Simulation {
    /// As [`Self::advance`] to the end, but stops when a connection waits for a decision ([`Self::waiting`]).
    pub fn advance_to_decision(&mut self, max_events: u64) -> bool {
        if self.agents.waiting.is_some() {
            return false;
        }
        self.go::<true>(self.end, max_events)
    }

    /// The connection that waits for a decision, by a number that no other one has, and what it sees.
    pub fn waiting(&self) -> Option<(u64, Observation)> {
        let (index, now) = self.agents.waiting?;
        let generation = self.hosts.connections[index as usize].generation;
        Some((u64::from(generation) << 32 | u64::from(index), self.hosts.observe(index, now)?))
    }

    /// What the first connection of a flow sees now, if it is established.
    pub fn observe(&self, flow: usize) -> Option<Observation> {
        let index = self.hosts.connections.iter().position(|one| one.flow as usize == flow)?;
        self.hosts.observe(index.fit_u32(), self.outside.now)
    }

    /// Gives the waiting connection its decision. Does nothing if none waits.
    pub fn choose(&mut self, action: f64) {
        let Some((index, now)) = self.agents.waiting.take() else { return };
        self.outside.now = now;
        self.hosts.choose(index, action, &mut self.outside);
        let cell = self.cells.of_host[self.hosts.connections[index as usize].from as usize];
        let calendar = &mut self.outside.calendar;
        let (timer, (arrival, _)) = calendar.ahead(cell);
        let next = timer.min(arrival);
        let ahead = &mut calendar.cells[cell as usize];
        ahead.next = next;
        ahead.reached = next.min(ahead.reached);
    }

    /// Processes the events of a cell with such a sender before `horizon` one by one. True: a connection waits.
    pub(super) fn run_to_decision(&mut self, cell: u32, horizon: Time) -> bool {
        let stop = self.stop;
        while self.events < stop && self.outside.calendar.cells[cell as usize].next < horizon {
            self.stop = self.events + 1;
            self.run_cell(cell, horizon);
            if let Some(index) = self.hosts.take_waiting() {
                self.agents.waiting = Some((index, self.outside.now));
                break;
            }
        }
        self.stop = stop;
        self.agents.waiting.is_some()
    }
}
