//! Runs up to the next decision of an agent: the engine stops after the ACK that asks for one, and sends what that ACK
//! allows once the decision is there.

use super::Simulation;
use sawtooth_tcp::cc::agent::Observation;
use sawtooth_units::Time;

/// The agents of a simulation.
#[derive(Clone, Debug)]
pub(super) struct Agents {
    /// The connections that ask for decisions, and whether such a sender is in a cell.
    connections: Vec<u32>,
    pub in_cell: Vec<bool>,
    /// The connection that waits for a decision, and since when.
    pub waiting: Option<(u32, Time)>,
}

impl Agents {
    pub fn new(hosts: &crate::hosts::Hosts, cells: &crate::engine::cells::Cells) -> Self {
        let mut agents = Agents { connections: hosts.asking(), in_cell: vec![false; cells.count], waiting: None };
        for &index in &agents.connections {
            let host = hosts.connections[index as usize].from;
            agents.in_cell[cells.of_host[host as usize] as usize] = true;
        }
        agents
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

    /// The connection that waits for a decision: its place among those that ask for some, and what it sees.
    pub fn waiting(&self) -> Option<(usize, Observation)> {
        let (index, now) = self.agents.waiting?;
        let place = self.agents.connections.iter().position(|&one| one == index)?;
        Some((place, self.hosts.observe(index, now)?))
    }

    /// What the first connection that asks for decisions sees now, if it is established.
    pub fn observe(&self) -> Option<Observation> {
        self.hosts.observe(*self.agents.connections.first()?, self.outside.now)
    }

    /// Gives the waiting connection its decision. Does nothing if none waits.
    pub fn choose(&mut self, action: f64) {
        let Some((index, now)) = self.agents.waiting.take() else { return };
        self.outside.now = now;
        self.hosts.choose(index, action, &mut self.outside);
        let cell = self.cells.of_host[self.hosts.connections[index as usize].from as usize];
        let calendar = &mut self.outside.calendar;
        let arrival = calendar.heaps[cell as usize].peek().map_or(Time::NEVER, |(time, _)| time);
        let next = calendar.next_timer(cell).min(arrival);
        calendar.next[cell as usize] = next;
        let reached = &mut self.reached[cell as usize];
        *reached = next.min(*reached);
    }

    /// Processes the events of a cell with such a sender before `horizon` one by one. True: a connection waits.
    pub(super) fn run_to_decision(&mut self, cell: u32, horizon: Time) -> bool {
        let stop = self.stop;
        while self.events < stop && self.outside.calendar.next[cell as usize] < horizon {
            self.stop = self.events + 1;
            self.run_cell(cell, horizon);
            let now = self.outside.now;
            let waits = |&index: &u32| self.hosts.waits(index);
            self.agents.waiting = self.agents.connections.iter().copied().find(waits).map(|index| (index, now));
            if self.agents.waiting.is_some() {
                break;
            }
        }
        self.stop = stop;
        self.agents.waiting.is_some()
    }
}
