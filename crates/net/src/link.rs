//! One direction of a link: loss model, transmitter (its own or a shared card's), propagation delay, and what is on its way.

use crate::ring::Ring;
use crate::rng::{Purpose, Rng};
use crate::routes::END;
use crate::scenario;
use sawtooth_units::{Span, Time};

/// A packet on a link: what a host needs to pass it on.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnWay {
    pub arrival: Time,
    /// Where the rest of it is kept.
    pub slot: u32,
    /// Frame bytes as Linux counts them.
    pub size: u16,
}

#[derive(Clone, Debug)]
pub struct Link {
    pub transmitter: Option<u32>,
    pub delay: Span,
    pub overhead: u32,
    /// Draws below this are lost; `None` where nothing is.
    lost_below: Option<u64>,
    rng: Rng,
    /// When the first packet on its way arrives.
    head: Time,
    /// Packets on their way, in order of arrival at the other end.
    on_way: Ring<OnWay>,
    /// Where its packets go on: a link, [`END`] or [`MIXED`] (see [`crate::routes`]).
    pub next: u32,
    /// Packets dropped by the loss model since the start.
    pub lost: u64,
}

impl Link {
    pub fn new(config: &scenario::Link, seed: u64, index: usize) -> Self {
        let lost_below = match config.loss_ppb {
            0 => None,
            1_000_000_000.. => Some(u64::MAX),
            ppb => Some(((u128::from(ppb) << 64) / 1_000_000_000) as u64),
        };
        Link {
            transmitter: config.transmitter.map(|t| t as u32),
            delay: Span::from_nanos(config.delay_ns),
            overhead: config.overhead_bytes as u32,
            lost_below,
            rng: Rng::new(seed, Purpose::Loss, index as u64),
            head: Time::NEVER,
            on_way: Ring::new(),
            next: END,
            lost: 0,
        }
    }

    /// Whether the loss model drops the next packet (Bernoulli, independent of size).
    #[inline]
    pub fn loses(&mut self) -> bool {
        match self.lost_below {
            None => false,
            Some(limit) => {
                let lost = self.rng.next() < limit || limit == u64::MAX;
                self.lost += u64::from(lost);
                lost
            }
        }
    }

    /// Puts a packet that has left the transmitter at `departure` on its way. True: nothing was on its way before.
    #[inline]
    pub fn carry(&mut self, slot: u32, size: u16, departure: Time) -> bool {
        let arrival = departure + self.delay;
        let first = self.head == Time::NEVER;
        if first {
            self.head = arrival;
        }
        self.on_way.push(OnWay { arrival, slot, size });
        first
    }

    /// When the next packet arrives; `Time::NEVER` without one.
    #[inline]
    pub fn head(&self) -> Time {
        self.head
    }
    /// Takes the next packet off the link; there must be one.
    #[inline]
    pub fn arrive(&mut self) -> OnWay {
        let packet = self.on_way.pop();
        self.head = self.on_way.front().map_or(Time::NEVER, |next| next.arrival);
        packet
    }
    /// Packets on their way.
    pub fn in_transit(&self) -> usize {
        self.on_way.len()
    }
}
