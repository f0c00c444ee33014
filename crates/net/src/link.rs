//! One direction of a link: loss, transmitter (its own or a shared card's), propagation delay, and what is on its way.

use crate::loss::Loss;
use crate::packet::Packet;
use crate::ring::Ring;
use crate::scenario;
use sawtooth_units::{Span, Time};

#[derive(Clone, Debug)]
pub struct Link {
    pub transmitter: Option<u32>,
    pub delay: Span,
    pub overhead: u32,
    loss: Loss,
    /// When the first packet on its way arrives.
    head: Time,
    /// Packets on their way, in order of arrival at the other end.
    on_way: Ring<(Time, Packet)>,
    /// Packets dropped by the loss model since the start.
    pub lost: u64,
}

impl Link {
    pub fn new(config: &scenario::Link, seed: u64, index: usize) -> Self {
        Link {
            transmitter: config.transmitter.map(|t| t as u32),
            delay: Span::from_nanos(config.delay_ns),
            overhead: config.overhead_bytes as u32,
            loss: Loss::new(config, seed, index),
            head: Time::NEVER,
            on_way: Ring::new(),
            lost: 0,
        }
    }

    /// Whether the loss model drops the next packet.
    pub fn loses(&mut self) -> bool {
        let lost = self.loss.takes();
        if lost {
            self.lost += 1;
        }
        lost
    }

    /// Puts a packet that has left the transmitter at `departure` on its way. True: nothing was on its way before.
    pub fn carry(&mut self, packet: Packet, departure: Time) -> bool {
        let arrival = departure + self.delay;
        let first = self.head == Time::NEVER;
        if first {
            self.head = arrival;
        }
        self.on_way.push((arrival, packet));
        first
    }

    /// When the next packet arrives; `Time::NEVER` without one.
    pub fn head(&self) -> Time {
        self.head
    }
    /// Takes the next packet off the link; there must be one.
    pub fn arrive(&mut self) -> Packet {
        let (_, packet) = self.on_way.pop();
        self.head = self.on_way.front().map_or(Time::NEVER, |&(time, _)| time);
        packet
    }
    /// Packets on their way.
    pub fn in_transit(&self) -> usize {
        self.on_way.len()
    }
}
