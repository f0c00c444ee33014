//! Connections whose congestion control waits for decisions from outside.

use crate::calendar::Calendar;
use crate::hosts::connection::Phase;
use crate::hosts::{Hosts, Outside};
use sawtooth_tcp::cc::Chosen;
use sawtooth_tcp::cc::agent::Observation;
use sawtooth_units::Time;

impl Hosts {
    /// The sending hosts of flows that ask for decisions.
    pub fn asking(&self) -> impl Iterator<Item = usize> {
        let asks = |flow: &usize| self.chosen[*flow].as_ref().is_some_and(Chosen::asks);
        (0..self.chosen.len()).filter(asks).map(|flow| self.scenario.links[self.scenario.flows[flow].forward[0]].from)
    }

    /// The connection whose last ACK waits for a decision, if one has arrived since the last call.
    pub fn take_waiting(&mut self) -> Option<u32> {
        let index = self.waiting.take()?;
        let phase = &self.connections[index as usize].phase;
        matches!(phase, Phase::Established(sender) if sender.is_waiting()).then_some(index)
    }

    pub fn observe(&self, index: u32, now: Time) -> Option<Observation> {
        let connection = &self.connections[index as usize];
        let Phase::Established(sender) = &connection.phase else { return None };
        sender.observe(connection.sender_clock(now))
    }

    pub fn choose<C: Calendar>(&mut self, index: u32, action: f64, outside: &mut Outside<C>) {
        self.with_sender(index, outside, |sender, clock, out| sender.choose(action, clock, out));
    }
}
