//! How packets get from link to link.

use crate::engine::Simulation;
use crate::link::OnWay;
use crate::packet::Packet;
use crate::routes::{END, MIXED};
use sawtooth_units::{Span, Time};

impl Simulation {
    /// As [`Self::run_cell`] for a cell that packets only pass through: no timers, and few links to look at.
    pub(crate) fn run_transit(&mut self, cell: usize, horizon: Time) {
        let inputs = std::mem::take(&mut self.inputs[cell]);
        loop {
            let (mut first, mut from, mut second) = (Time::NEVER, 0, horizon);
            for &link in &inputs {
                let head = self.links[link as usize].head();
                if head < first {
                    second = second.min(first);
                    (first, from) = (head, link);
                } else {
                    second = second.min(head);
                }
            }
            if first >= horizon {
                self.next[cell] = first;
                break;
            }
            if self.inner[cell] {
                second = first;
            }
            // Up to where another link comes first.
            while {
                let packet = self.links[from as usize].arrive();
                self.pass(packet, from);
                self.events += 1;
                self.links[from as usize].head() < second
            } {}
        }
        self.inputs[cell] = inputs;
    }

    /// Passes a packet on that came over link `from` and goes further.
    fn pass(&mut self, packet: OnWay, from: u32) {
        let next = self.next_link(packet.slot, from);
        self.enter(packet.slot, packet.size, next, packet.arrival);
    }

    /// A packet meets a link's loss, and if it passes, its transmitter.
    #[inline]
    pub(crate) fn enter(&mut self, slot: u32, size: u16, link: u32, now: Time) -> Option<Time> {
        if self.links[link as usize].loses() {
            self.discard(slot);
            return None;
        }
        self.send(slot, size, link, now)
    }

    /// Where a packet that came over `link` goes on, or [`END`].
    #[inline]
    pub(crate) fn next_link(&mut self, slot: u32, link: u32) -> u32 {
        match self.links[link as usize].next {
            MIXED => {
                let packet = self.packets.get_mut(slot);
                let after = self.routes.after(packet.at, link);
                let next = self.routes.link(after);
                if next != END {
                    packet.at = after;
                }
                next
            }
            next => next,
        }
    }

    /// Puts a packet of this host on the first link of its route.
    pub(crate) fn forward(&mut self, packet: Packet) {
        let link = self.routes.link(packet.at);
        if self.links[link as usize].loses() {
            self.drop(packet);
        } else {
            let slot = self.packets.insert(packet);
            self.send(slot, packet.size, link, self.now);
        }
    }

    /// Puts a packet on a link. When it will have left the transmitter, unless it was dropped.
    #[inline]
    pub(crate) fn send(&mut self, slot: u32, size: u16, index: u32, now: Time) -> Option<Time> {
        let link = &mut self.links[index as usize];
        let departure = match link.transmitter {
            Some(t) => match self.transmitters[t as usize].send(u32::from(size) + link.overhead, now) {
                Some(departure) => departure,
                None => {
                    self.discard(slot);
                    return None;
                }
            },
            None => {
                if link.delay == Span::ZERO {
                    let next = self.next_link(slot, index);
                    // Neither transmitter nor delay: the next host passes it on at the same instant.
                    if next != END {
                        return self.enter_at_once(slot, size, next, now);
                    }
                }
                now
            }
        };
        let link = &mut self.links[index as usize];
        if link.carry(slot, size, departure) {
            let arrival = departure + link.delay;
            let cell = self.arrives_in[index as usize] as usize;
            self.next[cell] = self.next[cell].min(arrival);
            if !self.through[cell] {
                self.heaps[cell].push(arrival, index);
            }
        }
        Some(departure)
    }

    #[inline(never)]
    fn enter_at_once(&mut self, slot: u32, size: u16, link: u32, now: Time) -> Option<Time> {
        self.enter(slot, size, link, now)
    }

    fn discard(&mut self, slot: u32) {
        let packet = self.packets.remove(slot);
        self.drop(packet);
    }

    pub(crate) fn drop(&mut self, packet: Packet) {
        if packet.sack != 0 {
            self.free_sacks.push(packet.sack - 1);
        }
    }
}
