//! A receiving host's card that merges data segments of a connection (generic receive offload; Linux: net/core/gro.c,
//! `tcp_gro_receive`, and `gro_flush_timeout`).

use crate::frames::ETHERNET;
use crate::packet::{CWR, PUSH, Packet};
use crate::scenario::Scenario;
use sawtooth_tcp::clock::Clock;
use sawtooth_units::{Span, Time};

/// `GRO_LEGACY_MAX_SIZE`: a merged packet with its IP header is shorter.
const LONGEST: u32 = 65_536;

/// A merged packet: the first packet, with the PSH of the last one; total payload bytes, and those of each segment
/// except the last.
#[derive(Clone, Copy, Debug)]
pub struct Merged {
    pub first: Packet,
    pub bytes: u32,
    pub unit: u32,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    merged: Merged,
    /// The tick at which the first packet came.
    since: u64,
}

/// A card through which connections arrive at one end of a link.
#[derive(Clone, Debug)]
pub struct Card {
    link: usize,
    host: usize,
    hz: u32,
    wait: Span,
    /// In the order in which their first packets came.
    held: Vec<Held>,
}

impl Card {
    /// The cards of links over which a merging host receives a flow's data.
    pub fn all(scenario: &Scenario) -> Vec<Card> {
        let mut links: Vec<usize> = scenario.flows.iter().filter_map(|flow| flow.forward.last().copied()).collect();
        links.sort_unstable();
        links.dedup();
        let card = |link: usize| {
            let host = scenario.links[link].to;
            let config = &scenario.hosts[host];
            // At one instant a timer comes before packets, so packets of the same instant wait until the next.
            let wait = Span::from_nanos(config.gro_ns?.max(1));
            Some(Card { link, host, hz: config.hz, wait, held: Vec::new() })
        };
        links.into_iter().filter_map(card).collect()
    }

    pub fn link(&self) -> usize {
        self.link
    }
    pub fn host(&self) -> usize {
        self.host
    }

    /// Takes a data packet with `payload` bytes; `up` receives what is passed up at once. Returns when [`Self::flush`]
    /// is due.
    pub fn take(&mut self, packet: Packet, payload: u32, now: Time, up: &mut Vec<Merged>) -> Time {
        let tick = Clock::new(now, self.hz).jiffies64();
        let mut new = Some(Merged { first: packet, bytes: payload, unit: payload });
        let is_same = |one: &Held| {
            let first = &one.merged.first;
            (first.owner, first.generation) == (packet.owner, packet.generation)
        };
        if let Some(at) = self.held.iter().position(is_same) {
            let merged = &mut self.held[at].merged;
            let fits = merged.takes(&packet, payload);
            if fits {
                merged.bytes += payload;
                merged.first.flags |= packet.flags & PUSH;
                new = None;
            }
            if !fits || payload < merged.unit || packet.has(PUSH) {
                up.push(self.held.remove(at).merged);
            }
        }
        match new {
            // The end of a write is not kept back.
            Some(merged) if packet.has(PUSH) => up.push(merged),
            Some(merged) => self.held.push(Held { merged, since: tick }),
            None => {}
        }
        let due = if self.held.is_empty() { Time::NEVER } else { now + self.wait };
        let old = self.held.iter().take_while(|one| one.since != tick).count();
        up.extend(self.held.drain(..old).map(|one| one.merged));
        due
    }

    /// Nothing came during the waiting time: pass everything up.
    pub fn flush(&mut self, up: &mut Vec<Merged>) {
        up.extend(self.held.drain(..).map(|one| one.merged));
    }

    /// Passes up a connection's merged packet, because another packet of it came, which must not overtake.
    pub fn give_up(&mut self, owner: u32, up: &mut Vec<Merged>) {
        if let Some(at) = self.held.iter().position(|one| one.merged.first.owner == owner) {
            up.push(self.held.remove(at).merged);
        }
    }
}

impl Merged {
    /// Whether a packet continues the merged one: same ECN field, flags and timestamps, and no longer than the others.
    fn takes(&self, packet: &Packet, payload: u32) -> bool {
        let first = &self.first;
        let headers = u32::from(packet.size) - payload - ETHERNET;
        let flags = !(PUSH | CWR);
        first.seq + u64::from(self.bytes) == packet.seq
            && (first.tsval, first.tsecr, first.flags & flags) == (packet.tsval, packet.tsecr, packet.flags & flags)
            && !packet.has(CWR)
            && payload <= self.unit
            && headers + self.bytes + payload < LONGEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Kind;

    const MSS: u32 = 1448;

    fn card() -> Card {
        Card { link: 0, host: 0, hz: 250, wait: Span::from_nanos(50_000), held: Vec::new() }
    }

    fn packet(owner: u32, number: u64) -> Packet {
        Packet { seq: number * u64::from(MSS), tsval: 7, ..Packet::new(owner, Kind::Data, 1514, 0) }
    }

    /// What is passed up when packets come 10 µs apart: owner, first segment, segments.
    fn ups(packets: &[Packet]) -> (Vec<(u32, u64, u32)>, Time) {
        let (mut card, mut up, mut due) = (card(), Vec::new(), Time::NEVER);
        for (turn, &packet) in packets.iter().enumerate() {
            due = card.take(packet, MSS, Time::from_nanos(turn as u64 * 10_000), &mut up);
        }
        let told = |m: &Merged| (m.first.owner, m.first.seq / u64::from(MSS), m.bytes / MSS);
        (up.iter().map(told).collect(), due)
    }

    #[test]
    fn what_follows_is_merged_up_to_64_kib() {
        let packets: Vec<Packet> = (0..50).map(|number| packet(1, number)).collect();
        let (up, due) = ups(&packets);
        assert_eq!(up, [(1, 0, 45)]);
        assert_eq!(due, Time::from_nanos(49 * 10_000 + 50_000));
    }

    #[test]
    fn a_gap_another_timestamp_a_mark_and_a_fallen_window_end_it() {
        for other in [
            packet(1, 3),
            Packet { tsval: 8, ..packet(1, 2) },
            Packet { flags: 3, ..packet(1, 2) },
            Packet { flags: CWR, ..packet(1, 2) },
        ] {
            assert_eq!(ups(&[packet(1, 0), packet(1, 1), other]).0, [(1, 0, 2)], "{other:?}");
        }
    }

    #[test]
    fn a_push_goes_up_with_what_it_ends_and_alone_at_once() {
        let pushed = Packet { flags: PUSH, ..packet(1, 1) };
        assert_eq!(ups(&[packet(1, 0), pushed]).0, [(1, 0, 2)]);
        assert_eq!(ups(&[pushed]), (vec![(1, 1, 1)], Time::NEVER));
    }

    #[test]
    fn connections_are_merged_each_by_itself() {
        let packets = [packet(1, 0), packet(2, 0), packet(1, 1), packet(2, 5)];
        assert_eq!(ups(&packets).0, [(2, 0, 1)]);
    }

    #[test]
    fn none_is_kept_over_a_tick_of_the_kernel() {
        let (mut card, mut up) = (card(), Vec::new());
        card.take(packet(1, 0), MSS, Time::from_nanos(3_990_000), &mut up);
        card.take(packet(2, 0), MSS, Time::from_nanos(4_010_000), &mut up);
        assert_eq!(up.iter().map(|one| one.first.owner).collect::<Vec<_>>(), [1]);
    }
}
