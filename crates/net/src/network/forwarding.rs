//! How packets move from link to link.

use crate::calendar::Calendar;
use crate::network::Network;
use crate::network::link::{Handle, Link, OnWay, Transmitted, WayIn};
use crate::network::packets::Packets;
use crate::network::routes::{END, MIXED};
use crate::network::transmitter::Transmitter;
use crate::network::variation::Fate;
use crate::observe::trace::{self, Gone};
use crate::packet::{Kind, Packet};
use sawtooth_units::{Span, Time};

/// The outcome for a packet that was put on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Its departure is known: [`Network::begins`] gave it.
    Leaves,
    /// It waits for an unknown time; [`Network::left`] will report it.
    Held,
    /// Lost, or the queue was full.
    Dropped,
}

/// A link with a steady transmitter, onto which its host puts packets.
pub struct Entrance<'a> {
    index: u32,
    link: &'a mut Link,
    transmitter: &'a mut Transmitter,
    packets: &'a mut Packets,
}

impl Entrance<'_> {
    /// When the next packet would begin to leave.
    #[inline(always)]
    pub fn begins(&self, now: Time) -> Time {
        self.transmitter.free.max(now)
    }

    /// Puts a new packet on the link.
    #[inline(always)]
    pub fn send(&mut self, packet: &Packet, now: Time, calendar: &mut impl Calendar) -> Sent {
        let handle = self.packets.insert(*packet);
        match self.link.transmit(handle, now, self.transmitter) {
            Transmitted::First => calendar.arrival(self.index, self.link.head()),
            Transmitted::Behind => {}
            Transmitted::Dropped => {
                self.packets.discard(handle);
                return Sent::Dropped;
            }
        }
        Sent::Leaves
    }
}

impl Network {
    /// Passes on packets that arrive over the links `inputs` before `horizon` at hosts that send nothing themselves, in
    /// order of time and then of index, counting down `left`; returns when the next packet arrives. `inner`: some of
    /// the links connect two of these hosts.
    pub fn pass_through(
        &mut self,
        inputs: &[u32],
        inner: bool,
        horizon: Time,
        left: &mut u64,
        calendar: &mut impl Calendar,
    ) -> Time {
        // If all packets on the links may pass before the count ends, they need not be checked one by one: none comes
        // back meanwhile.
        if let &[one, other] = inputs
            && !inner
            && self.packets.most() <= *left
            && let Some(next) = self.merge(one, other, horizon, left, calendar)
        {
            return next;
        }
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
            if first >= horizon || *left == 0 {
                return first;
            }
            // Up to the next arrival on another link; one at a time if a packet may come back to this cell.
            self.pass(from, if inner { first } else { second }, left, calendar);
        }
    }

    /// As [`Self::pass_through`] for two links that each lead to one other with a steady transmitter, which covers most
    /// hosts on a path. `None`: they are not such links.
    fn merge(
        &mut self,
        one: u32,
        other: u32,
        horizon: Time,
        left: &mut u64,
        calendar: &mut impl Calendar,
    ) -> Option<Time> {
        let next = [one, other].map(|link| self.links[link as usize].next);
        let pairs = [one, next[0], other, next[1]].map(|link| link as usize);
        let Ok([input, output, input_b, output_b]) = self.links.get_disjoint_mut(pairs) else {
            return None;
        };
        let through = [output.way_in.steady()?, output_b.way_in.steady()?].map(|transmitter| transmitter as usize);
        let sides = [Side { input, output, next: next[0] }, Side { input: input_b, output: output_b, next: next[1] }];
        let packets = &mut self.packets;
        Some(match self.transmitters.get_disjoint_mut(through) {
            Ok(transmitters) => merge_sides(sides, transmitters, packets, horizon, left, calendar),
            // Both links share one.
            Err(_) => merge_sides(sides, [&mut self.transmitters[through[0]]], packets, horizon, left, calendar),
        })
    }

    /// Passes on the first packet on link `from`, and those that follow before `until`, while `left` allows.
    #[inline]
    fn pass(&mut self, from: u32, until: Time, left: &mut u64, calendar: &mut impl Calendar) {
        let next = self.links[from as usize].next;
        if let Ok([input, output]) = self.links.get_disjoint_mut([from as usize, next as usize])
            && let Some(index) = output.way_in.steady()
            && self.packets.most() <= *left
        {
            let transmitter = &mut self.transmitters[index as usize];
            loop {
                let OnWay { arrival, packet } = input.arrive();
                *left -= 1;
                match output.transmit(packet, arrival, transmitter) {
                    Transmitted::First => calendar.arrival(next, output.head()),
                    Transmitted::Behind => {}
                    Transmitted::Dropped => self.packets.discard(packet),
                }
                if input.head() >= until {
                    return;
                }
            }
        }
        loop {
            let OnWay { arrival, packet } = self.links[from as usize].arrive();
            *left -= 1;
            let next = self.next_link(packet, from);
            self.enter(packet, next, arrival, calendar);
            if self.links[from as usize].head() >= until || *left == 0 {
                return;
            }
        }
    }

    /// A packet meets a link's loss and, if it survives, its transmitter.
    #[inline]
    pub fn enter(&mut self, packet: Handle, link: u32, now: Time, calendar: &mut impl Calendar) -> Sent {
        if self.links[link as usize].loses(now) {
            self.discard(packet, link, trace::Fate::Lost, now);
            return Sent::Dropped;
        }
        self.send(packet, link, now, calendar)
    }

    /// Where a packet that came over `link` continues, or [`END`].
    #[inline(always)]
    pub fn next_link(&mut self, handle: Handle, link: u32) -> u32 {
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

    /// Puts a packet on the first link of its route.
    #[inline(always)]
    pub fn forward(&mut self, packet: Packet, now: Time, calendar: &mut impl Calendar) {
        let link = self.routes.link(packet.at);
        if let Some(mut entrance) = self.entrance(link) {
            entrance.send(&packet, now, calendar);
        } else if self.links[link as usize].loses(now) {
            self.packets.release(&packet);
            self.lost_first(&Packet { ..packet }, link, 1, now);
        } else {
            let packet = self.packets.insert(packet);
            self.send(packet, link, now, calendar);
        }
    }

    /// The way onto a link with a steady transmitter, if nobody watches packets.
    #[inline]
    pub fn entrance(&mut self, index: u32) -> Option<Entrance<'_>> {
        let link = &mut self.links[index as usize];
        let transmitter = link.way_in.steady().filter(|_| self.taps.is_none())?;
        let transmitter = &mut self.transmitters[transmitter as usize];
        Some(Entrance { index, link, transmitter, packets: &mut self.packets })
    }

    /// When a packet put on a link now would begin to leave, unless its wait is unknown.
    #[inline]
    pub fn begins(&self, link: u32, now: Time) -> Time {
        let transmitter = self.links[link as usize].transmitter;
        transmitter.map_or(now, |transmitter| self.transmitters[transmitter as usize].free.max(now))
    }

    /// Puts a packet on a link.
    #[inline]
    pub fn send(&mut self, packet: Handle, index: u32, now: Time, calendar: &mut impl Calendar) -> Sent {
        let link = &mut self.links[index as usize];
        let departure = match link.way_in {
            WayIn::Steady(transmitter) => {
                let size = packet.size() + link.overhead;
                let Some(departure) = self.transmitters[transmitter as usize].send_steady(size, now) else {
                    self.discard(packet, index, trace::Fate::Dropped, now);
                    return Sent::Dropped;
                };
                departure
            }
            WayIn::Open => now,
            WayIn::Held(transmitter) => return self.hold(transmitter, packet, index, now, calendar),
            WayIn::Other => return self.send_otherwise(packet, index, now, calendar),
        };
        if link.carry(packet, departure) {
            calendar.arrival(index, link.head());
        }
        Sent::Leaves
    }

    /// As [`Self::send`], for any kind of link.
    #[inline(never)]
    fn send_otherwise(&mut self, packet: Handle, index: u32, now: Time, calendar: &mut impl Calendar) -> Sent {
        let link = &self.links[index as usize];
        let departure = match link.transmitter {
            Some(t) => {
                let (transmitter, size) = (&mut self.transmitters[t as usize], packet.size() + link.overhead);
                if transmitter.holds() {
                    return self.hold(t, packet, index, now, calendar);
                }
                match transmitter.send(size, now) {
                    Some(departure) => departure,
                    None => {
                        self.discard(packet, index, trace::Fate::Dropped, now);
                        return Sent::Dropped;
                    }
                }
            }
            None => {
                if link.delay == Span::ZERO && link.special.is_none() {
                    let next = self.next_link(packet, index);
                    // Neither transmitter nor delay: the next host passes it on at the same instant.
                    if next != END {
                        return self.enter_at_once(packet, [index, next], now, calendar);
                    }
                }
                now
            }
        };
        self.carry(packet, index, departure, calendar);
        Sent::Leaves
    }

    /// Puts a packet that leaves its transmitter at `departure` on the link.
    #[inline(always)]
    pub(super) fn carry(&mut self, packet: Handle, index: u32, departure: Time, calendar: &mut impl Calendar) {
        let link = &mut self.links[index as usize];
        if link.special.is_some() {
            return self.carry_otherwise(packet, index, departure, calendar);
        }
        if link.carry(packet, departure) {
            calendar.arrival(index, link.head());
        }
    }

    /// The same on a link that does more than a constant delay, or whose transmitter cuts super-packets.
    #[inline(never)]
    fn carry_otherwise(&mut self, packet: Handle, index: u32, departure: Time, calendar: &mut impl Calendar) {
        if !self.links[index as usize].special.as_ref().is_some_and(|special| special.cuts) {
            return self.vary(packet, index, departure, calendar);
        }
        // As from a shaper before a faster card (HTB): the segments leave together, when the first one has left.
        let (first, size) = (*self.packets.get_mut(packet), packet.size());
        let Some(transmitter) = self.links[index as usize].transmitter else { return };
        let transmitter = transmitter as usize;
        let behind = self.transmitters[transmitter].span(size - u32::from(first.size));
        let left = Time::from_nanos(departure.nanos() - behind.nanos());
        let mut next = Some(packet);
        while let Some(packet) = next {
            next = self.packets.following(packet);
            let segment = self.packets.part(packet, &first);
            self.transmitters[transmitter].counts_segment(next.is_some());
            let link = &mut self.links[index as usize];
            if link.special.as_ref().is_some_and(|special| special.variation.is_some()) {
                self.vary(segment, index, left, calendar);
            } else if link.carry(segment, left) {
                calendar.arrival(index, link.head());
            }
        }
    }

    /// The same on a link that does more than a constant delay.
    fn vary(&mut self, packet: Handle, index: u32, departure: Time, calendar: &mut impl Calendar) {
        let link = &mut self.links[index as usize];
        let size = packet.size() + link.overhead;
        let Some(variation) = link.variation() else { return };
        let copy = variation.doubles().then(|| self.packets.copy(packet));
        if let (Some(copy), Some(taps)) = (copy, &mut self.taps) {
            taps.copied(packet.slot(), copy.slot());
        }
        for packet in [Some(packet), copy].into_iter().flatten() {
            let link = &mut self.links[index as usize];
            let Some(variation) = link.variation() else { return };
            match variation.fate(size, departure) {
                Fate::Arrives(arrival) => {
                    if link.way.put(OnWay { arrival, packet }) {
                        calendar.arrival(index, arrival);
                    }
                }
                Fate::Broken => self.discard(packet, index, trace::Fate::Refused, departure),
                Fate::Policed => {
                    link.policed += 1;
                    self.discard(packet, index, trace::Fate::Refused, departure);
                }
            }
        }
    }

    #[inline(never)]
    fn enter_at_once(
        &mut self,
        packet: Handle,
        [from, next]: [u32; 2],
        now: Time,
        calendar: &mut impl Calendar,
    ) -> Sent {
        self.seen(packet, from, now);
        self.enter(packet, next, now, calendar)
    }

    /// A packet is lost at `link`.
    #[cold]
    pub fn discard(&mut self, packet: Handle, link: u32, fate: trace::Fate, now: Time) {
        let mut next = self.taps.is_some().then_some(packet);
        while let Some(packet) = next {
            let of = *self.packets.get_mut(packet);
            self.tell_gone(Some(packet.slot()), &of, link, Gone { fate, ..gone(&of, 1, now) });
            next = self.packets.following(packet);
        }
        self.packets.discard(packet);
    }

    /// The loss of its first link takes a packet, or one with `segments`.
    #[cold]
    pub fn lost_first(&mut self, packet: &Packet, link: u32, segments: u32, now: Time) {
        self.tell_gone(None, packet, link, gone(packet, segments, now));
    }

    fn tell_gone(&mut self, slot: Option<u32>, packet: &Packet, link: u32, gone: Gone) {
        if let Some(taps) = &mut self.taps {
            taps.gone(slot, packet, link, gone);
        }
    }

    /// A packet arrives over `link`: a capture there sees it.
    #[inline]
    pub fn seen(&mut self, packet: Handle, link: u32, now: Time) {
        if self.taps.is_some() {
            self.tell_seen(packet, link, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_seen(&mut self, packet: Handle, link: u32, now: Time) {
        let Some(taps) = &mut self.taps else { return };
        let ecn = self.packets.get_mut(packet).ecn();
        let mut next = Some(packet);
        while let Some(packet) = next {
            taps.arrived(packet.slot(), link, ecn, now, |begins| self.routes.after(begins, link) - begins);
            next = self.packets.following(packet);
        }
    }
}

/// One direction through a host that packets pass: the link on which they come, and the link `next`.
struct Side<'a> {
    input: &'a mut Link,
    output: &'a mut Link,
    next: u32,
}

/// Passes on what arrives on both sides before `horizon`, the first side first at one instant. Each has its
/// transmitter, or both share one.
#[inline(always)]
fn merge_sides<const N: usize>(
    mut sides: [Side; 2],
    transmitters: [&mut Transmitter; N],
    packets: &mut Packets,
    horizon: Time,
    left: &mut u64,
    calendar: &mut impl Calendar,
) -> Time {
    let [one, other] = &mut sides;
    while one.input.head().min(other.input.head()) < horizon {
        let head = other.input.head();
        let until = if head < horizon { head + Span::from_nanos(1) } else { horizon };
        *left -= one.pass(until, transmitters[0], packets, calendar);
        let until = one.input.head().min(horizon);
        *left -= other.pass(until, transmitters[N - 1], packets, calendar);
    }
    one.input.head().min(other.input.head())
}

impl Side<'_> {
    /// Passes on what arrives before `until`; returns how many packets that are.
    #[inline(always)]
    fn pass(
        &mut self,
        until: Time,
        transmitter: &mut Transmitter,
        packets: &mut Packets,
        calendar: &mut impl Calendar,
    ) -> u64 {
        let Side { input, output, next } = self;
        let mut passed = 0;
        while input.head() < until {
            let OnWay { arrival, packet } = input.arrive();
            passed += 1;
            match output.transmit(packet, arrival, transmitter) {
                Transmitted::First => calendar.arrival(*next, output.head()),
                Transmitted::Behind => {}
                Transmitted::Dropped => packets.discard(packet),
            }
        }
        passed
    }
}

/// A lost packet as an event.
fn gone(packet: &Packet, segments: u32, time: Time) -> Gone {
    Gone { time, owner: packet.owner, fate: trace::Fate::Lost, is_data: packet.kind == Kind::Data, segments }
}
