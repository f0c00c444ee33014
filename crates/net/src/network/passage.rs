//! How packets get from link to link.

use crate::engine::clock::Simulation;
use crate::network::link::{Handle, OnWay, Transmitted};
use crate::network::packet::Packet;
use crate::network::packets::Packets;
use crate::network::routes::{END, MIXED};
use sawtooth_units::{Span, Time};

impl Simulation {
    /// As `run_cell` for a cell that packets only pass through: no timers, and few links to look at.
    pub(crate) fn run_transit(&mut self, cell: usize, horizon: Time) {
        let inputs = std::mem::take(&mut self.inputs[cell]);
        self.agenda.next[cell] = match inputs[..] {
            [one, other] if !self.inner[cell] && !self.stops_soon() => self.merge(one, other, horizon),
            _ => self.run_inputs(&inputs, self.inner[cell], horizon),
        };
        self.inputs[cell] = inputs;
    }

    /// Whether `stop` may come before all packets on their way have passed one host. Otherwise they need not be counted one by
    /// one, because none comes back meanwhile.
    fn stops_soon(&self) -> bool {
        self.packets.most() > self.stop - self.events
    }

    /// Passes on what comes over `inputs` before `horizon`, up to `stop`, in order of time and then of index; when the next
    /// packet comes.
    fn run_inputs(&mut self, inputs: &[u32], inner: bool, horizon: Time) -> Time {
        loop {
            let (mut first, mut from, mut second) = (Time::NEVER, 0, horizon);
            for &link in inputs {
                let head = self.links[link as usize].head();
                if head < first {
                    second = second.min(first);
                    (first, from) = (head, link);
                } else {
                    second = second.min(head);
                }
            }
            if first >= horizon || self.events >= self.stop {
                return first;
            }
            // Up to where another link comes first; where a packet may come back to this cell, one at a time.
            self.pass(from, if inner { first } else { second });
        }
    }

    /// As [`Self::run_inputs`] for two links of which each leads on to one other with a transmitter: most hosts on the way.
    fn merge(&mut self, one: u32, other: u32, horizon: Time) -> Time {
        let next = [one, other].map(|link| self.links[link as usize].next);
        let pairs = [one, next[0], other, next[1]].map(|link| link as usize);
        let Ok([input, output, input_b, output_b]) = self.links.get_disjoint_mut(pairs) else {
            return self.run_inputs(&[one, other], false, horizon);
        };
        let (Some(through), Some(through_b)) = (output.transmitter, output_b.transmitter) else {
            return self.run_inputs(&[one, other], false, horizon);
        };
        loop {
            let (input, output, through, link) = if input.head() <= input_b.head() {
                (&mut *input, &mut *output, through, next[0])
            } else {
                (&mut *input_b, &mut *output_b, through_b, next[1])
            };
            if input.head() >= horizon {
                return input.head();
            }
            let OnWay { arrival, packet } = input.arrive();
            self.events += 1;
            match output.transmit(packet, arrival, &mut self.transmitters[through as usize]) {
                Transmitted::First => self.agenda.note(link, output.head()),
                Transmitted::Behind => {}
                Transmitted::Dropped => discard(packet, &mut self.packets, &mut self.free_sacks),
            }
        }
    }

    /// Passes on the first packet that comes over link `from`, and those after it that come before `until`, up to `stop`.
    #[inline]
    fn pass(&mut self, from: u32, until: Time) {
        let next = self.links[from as usize].next;
        if let Ok([input, output]) = self.links.get_disjoint_mut([from as usize, next as usize])
            && let Some(index) = output.transmitter
            && self.packets.most() <= self.stop - self.events
        {
            let transmitter = &mut self.transmitters[index as usize];
            loop {
                let OnWay { arrival, packet } = input.arrive();
                self.events += 1;
                match output.transmit(packet, arrival, transmitter) {
                    Transmitted::First => self.agenda.note(next, output.head()),
                    Transmitted::Behind => {}
                    Transmitted::Dropped => discard(packet, &mut self.packets, &mut self.free_sacks),
                }
                if input.head() >= until {
                    return;
                }
            }
        }
        loop {
            let OnWay { arrival, packet } = self.links[from as usize].arrive();
            self.events += 1;
            let next = self.next_link(packet, from);
            self.enter(packet, next, arrival);
            if self.links[from as usize].head() >= until || self.events >= self.stop {
                return;
            }
        }
    }

    /// A packet meets a link's loss, and if it passes, its transmitter.
    #[inline]
    pub(crate) fn enter(&mut self, packet: Handle, link: u32, now: Time) -> Option<Time> {
        if self.links[link as usize].loses() {
            self.discard(packet);
            return None;
        }
        self.send(packet, link, now)
    }

    /// Where a packet that came over `link` goes on, or [`END`].
    #[inline]
    pub(crate) fn next_link(&mut self, handle: Handle, link: u32) -> u32 {
        match self.links[link as usize].next {
            MIXED => {
                let packet = self.packets.get_mut(handle);
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
        if self.taps.is_some() {
            self.tap_sent(&packet);
        }
        let link = self.routes.link(packet.at);
        if self.links[link as usize].loses() {
            self.drop(packet);
        } else {
            let packet = self.packets.insert(packet);
            self.send(packet, link, self.now);
        }
    }

    /// Puts a packet on a link. When it will have left the transmitter, unless it was dropped.
    #[inline]
    pub(crate) fn send(&mut self, packet: Handle, index: u32, now: Time) -> Option<Time> {
        let link = &mut self.links[index as usize];
        let departure = match link.transmitter {
            Some(t) => match self.transmitters[t as usize].send(packet.size() + link.overhead, now) {
                Some(departure) => departure,
                None => {
                    self.discard(packet);
                    return None;
                }
            },
            None => {
                if link.delay == Span::ZERO {
                    let next = self.next_link(packet, index);
                    // Neither transmitter nor delay: the next host passes it on at the same instant.
                    if next != END {
                        return self.enter_at_once(packet, [index, next], now);
                    }
                }
                now
            }
        };
        let link = &mut self.links[index as usize];
        if link.carry(packet, departure) {
            self.agenda.note(index, link.head());
        }
        Some(departure)
    }

    #[inline(never)]
    fn enter_at_once(&mut self, packet: Handle, [from, next]: [u32; 2], now: Time) -> Option<Time> {
        if self.taps.is_some() {
            self.tap_arrival(packet, from, now);
        }
        self.enter(packet, next, now)
    }

    fn discard(&mut self, packet: Handle) {
        discard(packet, &mut self.packets, &mut self.free_sacks);
    }

    pub(crate) fn drop(&mut self, packet: Packet) {
        if packet.sack != 0 {
            self.free_sacks.push(packet.sack - 1);
        }
    }
}

#[cold]
fn discard(packet: Handle, packets: &mut Packets, free_sacks: &mut Vec<u32>) {
    let packet = packets.remove(packet);
    if packet.sack != 0 {
        free_sacks.push(packet.sack - 1);
    }
}
