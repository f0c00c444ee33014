//! Connections whose congestion control waits for decisions from outside.

use crate::calendar::Calendar;
use crate::hosts::connection::Phase;
use crate::hosts::{Hosts, Outside};
use sawtooth_tcp::cc::Chosen;
use sawtooth_tcp::cc::agent::Observation;
use sawtooth_units::Time;
use sawtooth_units::width::Fit;

impl Hosts {
    /// Those that ask for decisions.
    pub fn asking(&self) -> Vec<u32> {
        let asks = |flow: u32| self.chosen[flow as usize].as_ref().is_some_and(Chosen::asks);
        let indices = self.connections.iter().enumerate().filter(|(_, connection)| asks(connection.flow));
        indices.map(|(index, _)| index.fit_u32()).collect()
    }

    /// Whether the last ACK of a connection waits for a decision.
    pub fn waits(&self, index: u32) -> bool {
        matches!(&self.connections[index as usize].phase, Phase::Established(sender) if sender.is_waiting())
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
