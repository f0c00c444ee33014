//! One direction of a link: loss, transmitter (its own or a shared card's), propagation delay, and the packets on it.

use crate::network::loss::Loss;
use crate::network::packets::Packets;
use crate::network::routes::END;
use crate::network::slice_queue::SliceQueue;
use crate::network::transmitter::Transmitter;
use crate::network::variation::{Special, Variation};
use crate::scenario;
use sawtooth_tcp::steady::Visit;
use sawtooth_units::width::{Fit, Low};
use sawtooth_units::{Span, Time};

/// A packet on a link, as far as a host needs it to pass it on. Two machine words, which stay in registers.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnWay {
    pub arrival: Time,
    pub packet: Handle,
}

const NONE: OnWay = OnWay { arrival: Time::NEVER, packet: Handle(0) };

/// A travelling packet: where it is kept, and its frame bytes as Linux counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handle(u64);

impl Handle {
    pub fn new(slot: u32, size: u16) -> Self {
        Handle(u64::from(slot) << 32 | u64::from(size))
    }
    /// The same packet, counted as `size` bytes.
    pub fn with_size(self, size: u32) -> Self {
        Handle(self.0 >> 32 << 32 | u64::from(size))
    }
    pub fn slot(self) -> u32 {
        (self.0 >> 32) as u32
    }
    pub fn size(self) -> u32 {
        self.0.low_u32()
    }
}

/// The outcome for a packet that was put on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmitted {
    /// It is the first on the link.
    First,
    /// Others are ahead of it.
    Behind,
    /// Lost, or the queue was full.
    Dropped,
}

/// The packets on a link.
#[derive(Clone, Debug)]
pub struct Way {
    /// The first, with arrival [`Time::NEVER`] if there is none.
    first: OnWay,
    /// The others, in order of arrival at the other end.
    behind: SliceQueue<OnWay>,
}

impl Way {
    /// Adds a packet that arrives last. True: it is the only one.
    #[inline]
    fn push(&mut self, on_way: OnWay) -> bool {
        let is_first = self.first.arrival == Time::NEVER;
        if is_first {
            self.first = on_way;
        } else {
            self.behind.push(on_way);
        }
        is_first
    }

    /// Adds a packet that may overtake others. True: it is now the first.
    pub fn put(&mut self, on_way: OnWay) -> bool {
        let is_first = on_way.arrival < self.first.arrival;
        let behind = if is_first { std::mem::replace(&mut self.first, on_way) } else { on_way };
        if behind.arrival < Time::NEVER {
            self.behind.insert(behind, |other| other.arrival > behind.arrival);
        }
        is_first
    }
}

/// What packets meet before a link, distinguishing the common cases.
#[derive(Clone, Copy, Debug)]
pub enum WayIn {
    /// A steady transmitter, then a delay.
    Steady(u32),
    /// A transmitter that holds packets, then a delay.
    Held(u32),
    /// Only a delay.
    Open,
    Other,
}

impl WayIn {
    pub fn steady(self) -> Option<u32> {
        if let WayIn::Steady(transmitter) = self { Some(transmitter) } else { None }
    }
}

#[derive(Clone, Debug)]
pub struct Link {
    pub transmitter: Option<u32>,
    pub way_in: WayIn,
    pub delay: Span,
    pub overhead: u32,
    loss: Loss,
    /// Absent: nothing but a constant delay follows its transmitter.
    pub special: Option<Box<Special>>,
    pub way: Way,
    /// Where its packets continue: a link, [`END`] or [`MIXED`] (see [`crate::network::routes`]).
    pub next: u32,
    /// Packets lost by the loss model since the start.
    pub lost: u64,
    /// Packets dropped by its policer.
    pub policed: u64,
}

impl Link {
    pub fn new(config: &scenario::Link, seed: u64, index: usize) -> Self {
        Link {
            transmitter: config.transmitter.map(|t| t.fit_u32()),
            way_in: WayIn::Other,
            delay: Span::from_nanos(config.delay_ns),
            overhead: config.overhead_bytes.fit_u32(),
            loss: Loss::new(config, seed, index),
            special: Variation::new(config, seed, index)
                .map(|variation| Box::new(Special { variation: Some(variation), cuts: false })),
            way: Way { first: NONE, behind: SliceQueue::new() },
            next: END,
            lost: 0,
            policed: 0,
        }
    }

    pub fn variation(&mut self) -> Option<&mut Variation> {
        self.special.as_mut()?.variation.as_mut()
    }

    /// Whether the loss model takes the next packet.
    #[inline]
    pub fn loses(&mut self, now: Time) -> bool {
        let lost = self.loss.takes(now);
        if lost {
            self.lost += 1;
        }
        lost
    }

    /// Puts a packet that left the transmitter at `departure` on the link. True: the link was empty.
    #[inline]
    pub fn carry(&mut self, packet: Handle, departure: Time) -> bool {
        self.way.push(OnWay { arrival: departure + self.delay, packet })
    }

    /// Passes a packet through the loss model and `transmitter` (this link's, and steady) onto the link.
    #[inline(always)]
    pub fn transmit(&mut self, packet: Handle, now: Time, transmitter: &mut Transmitter) -> Transmitted {
        if self.loses(now) {
            return Transmitted::Dropped;
        }
        match transmitter.send_steady(packet.size() + self.overhead, now) {
            Some(departure) if self.carry(packet, departure) => Transmitted::First,
            Some(_) => Transmitted::Behind,
            None => Transmitted::Dropped,
        }
    }

    /// When the next packet arrives; `Time::NEVER` if there is none.
    #[inline]
    pub fn head(&self) -> Time {
        self.way.first.arrival
    }
    /// Takes the next packet off the link; there must be one.
    #[inline]
    pub fn arrive(&mut self) -> OnWay {
        let Way { first, behind } = &mut self.way;
        let packet = *first;
        *first = behind.pop().unwrap_or_else(|| {
            behind.clear();
            NONE
        });
        packet
    }
    /// See [`sawtooth_tcp::steady`]. Where a packet is stored does not matter.
    pub fn visit(&mut self, packets: &mut Packets, visit: &mut Visit) {
        let Link {
            special,
            loss,
            lost,
            policed,
            way: Way { first, behind },
            transmitter: _,
            way_in: _,
            delay: _,
            overhead: _,
            next: _,
        } = self;
        visit.needs(special.is_none() && loss.is_none());
        [*lost, *policed, behind.len() as u64].into_iter().for_each(|word| visit.same(word));
        let mut one = |on_way: &mut OnWay| {
            visit.time(&mut on_way.arrival);
            if on_way.arrival < Time::NEVER {
                packets.get_mut(on_way.packet).visit(visit);
            }
        };
        one(first);
        behind.as_mut_slice().iter_mut().for_each(one);
    }

    /// The packets on the link.
    pub fn on_way(&self) -> impl Iterator<Item = Handle> {
        let first = (self.way.first.arrival < Time::NEVER).then_some(self.way.first.packet);
        first.into_iter().chain(self.way.behind.as_slice().iter().map(|on_way| on_way.packet))
    }

    /// Packets on the link.
    pub fn in_transit(&self) -> usize {
        self.way.behind.len() + usize::from(self.way.first.arrival != Time::NEVER)
    }
}
