//! One connection: handshake, sender, receiver, and what waits in the sending host's own queue.

use crate::ends::card::Card;
use crate::frames::TIMESTAMP_OPTION;
use crate::packet::Packet;
use crate::scenario::Scenario;
use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::receiver::Receiver;
use sawtooth_tcp::sender::{Sender, SenderStats};
use sawtooth_units::Time;
use sawtooth_units::width::Fit;
use std::collections::VecDeque;

/// Where a connection is in its life.
#[derive(Debug)]
pub enum Phase {
    /// Before its start, or after its end.
    Idle,
    /// A SYN is out; when it was sent last and how often.
    Connecting {
        sent: Time,
        tries: u32,
    },
    Established(Box<Sender>),
    Done,
}

/// A packet in the sending host's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// When it begins to leave; [`Time::NEVER`] while that is not known.
    pub leaves: Time,
    /// Bytes that it holds until then.
    pub memory: u32,
}

/// The SYN that the receiving end answers, and how often a timer has sent its answer again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answered {
    pub tsval: u32,
    pub flags: u8,
    pub repeats: u8,
}

/// What the sending end knows of the handshake that is over.
#[derive(Clone, Copy, Debug)]
pub struct Handshake {
    /// How long it took in microseconds; 0: unknown.
    pub us: u64,
    /// SYNs that were sent again; 0 where the answer tells that the first one came.
    pub repeats: u32,
    /// Both ends agreed on ECN.
    pub ecn: bool,
}

/// With many connections each packet finds its own out of the cache. So the fields lie in order of who uses them, in three
/// lines: the sending end, the receiving end, and what only start and end need.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Connection {
    pub phase: Phase,
    /// The sending host keeps packets in a queue of its own.
    pub host_queue: VecDeque<Queued>,
    /// Counts the connections that used this slot.
    pub generation: u32,
    pub forward_at: u32,
    pub from_hz: u32,
    pub host_queued: bool,
    /// Loss on the first link takes whole super-packets.
    pub offload: bool,
    /// Both ends agreed on them.
    pub sack: bool,
    pub timestamps: bool,

    pub receiver: Option<Box<Receiver>>,
    pub synack_sent: Time,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Which connection the receiving end serves: it learns of a new one by its SYN.
    pub receiver_generation: u32,
    pub backward_at: u32,
    pub to_hz: u32,
    pub flow: u32,
    /// Which card merges what it receives, from 1; 0: none.
    pub card: u32,

    /// Among those of its flow.
    pub number: u32,
    /// Of the hosts, by index.
    pub from: u32,
    pub to: u32,
    pub started: Time,
    /// When it is closed, whatever it has delivered.
    pub ends: Time,
    /// Bytes that its application writes in all; `u64::MAX`: without end.
    pub total: u64,
    /// Since when its application writes, and the other end's reads.
    pub established: Time,
    pub accepted: Time,
    /// SYNs sent.
    pub handshake: SenderStats,
    /// The receiving end has agreed on ECN.
    pub ecn: bool,
    pub answered: Answered,
}

impl Connection {
    /// The `number`-th of a flow, before its start; where its ways there and back begin.
    pub fn new(scenario: &Scenario, flow: usize, number: usize, [forward_at, backward_at]: [u32; 2]) -> Self {
        let config = &scenario.flows[flow];
        let first = &scenario.links[config.forward[0]];
        let ends = [first.from, scenario.links[config.backward[0]].from];
        let [from, to] = ends.map(|host| &scenario.hosts[host]);
        Connection {
            flow: flow.fit_u32(),
            card: 0,
            number: number.fit_u32(),
            generation: 0,
            phase: Phase::Idle,
            receiver: None,
            receiver_generation: 0,
            synack_sent: Time::ZERO,
            started: Time::ZERO,
            ends: Time::NEVER,
            established: Time::NEVER,
            accepted: Time::NEVER,
            forward_at,
            backward_at,
            from: ends[0].fit_u32(),
            to: ends[1].fit_u32(),
            from_hz: from.hz,
            to_hz: to.hz,
            sack: from.sack && to.sack,
            timestamps: from.timestamps && to.timestamps,
            handshake: SenderStats::default(),
            ecn: false,
            answered: Answered::default(),
            host_queue: VecDeque::new(),
            host_queued: first.transmitter.is_some(),
            offload: from.offload,
            mss: from.mss.min(to.mss),
            total: config.bytes.unwrap_or(u64::MAX),
        }
    }

    /// By which of the cards its data comes in.
    pub fn find_card(&mut self, scenario: &Scenario, cards: &[Card]) {
        let last = scenario.flows[self.flow as usize].forward.last();
        let at = cards.iter().position(|card| Some(&card.link()) == last);
        self.card = at.map_or(0, |at| at.fit_u32() + 1);
    }

    /// The `number`-th transfer that came is to be in this place.
    pub fn take_place(&mut self, number: u32, bytes: u64) {
        self.generation = number;
        self.total = bytes;
    }

    pub fn sender(&mut self) -> Option<&mut Sender> {
        match &mut self.phase {
            Phase::Established(sender) => Some(sender),
            _ => None,
        }
    }
    /// Whether the sender of what is received has something to send, or to be acknowledged.
    pub fn is_sending(&self) -> bool {
        matches!(self.phase, Phase::Established(_)) && self.generation == self.receiver_generation
    }
    /// The sender's counters, the handshake's SYNs included (as Linux counts them).
    pub fn stats(&self) -> SenderStats {
        match &self.phase {
            Phase::Established(sender) => sender.stats + self.handshake,
            _ => self.handshake,
        }
    }
    /// Payload bytes that the sender knows to have been delivered.
    pub fn acknowledged_bytes(&self) -> u64 {
        match &self.phase {
            Phase::Established(sender) => sender.flight.snd_una,
            _ => 0,
        }
    }
    /// Bytes of the options that every segment has.
    pub fn options(&self) -> u32 {
        if self.timestamps { TIMESTAMP_OPTION } else { 0 }
    }
    /// How long the sending end's handshake took, in microseconds; 0: unknown. `sent`: its own packet of it, the last of so many
    /// `tries`. Of one that had to be sent again the timestamp that the `answer` echoes tells (`tcp_ack_update_rtt`).
    pub fn handshake_us(&self, sent: Time, tries: u32, answer: &Packet, now: Time) -> u64 {
        match tries {
            1 => now.since(sent).micros().max(1),
            _ if self.timestamps => u64::from(self.sender_clock(now).echoed_us(answer.tsecr)),
            _ => 0,
        }
    }

    pub fn sender_clock(&self, now: Time) -> Clock {
        Clock { now, hz: self.from_hz }
    }
    pub fn receiver_clock(&self, now: Time) -> Clock {
        Clock { now, hz: self.to_hz }
    }

    /// Lets go of what has left the host's queue by `now`.
    pub fn settle_host_queue(&mut self, now: Time) {
        let mut freed = 0;
        while let Some(&Queued { leaves, memory, .. }) = self.host_queue.front()
            && leaves <= now
        {
            freed += u64::from(memory);
            self.host_queue.pop_front();
        }
        if self.host_queue.is_empty() {
            // Back to the first slot, which is in the cache.
            self.host_queue.clear();
        }
        if let Some(sender) = self.sender() {
            sender.host_queue -= freed;
        }
    }

    /// The first of the packets that wait for nobody knows how long begins to leave at `at`.
    pub fn leaves_host_queue(&mut self, at: Time) {
        if let Some(queued) = self.host_queue.iter_mut().find(|queued| queued.leaves == Time::NEVER) {
            queued.leaves = at;
        }
    }

    /// When its sender acts next by itself, as it is `now`.
    pub fn due(&self, now: Time) -> Option<Time> {
        let Phase::Established(sender) = &self.phase else { return None };
        let leaves =
            |place: usize| self.host_queue.get(place).or(self.host_queue.back()).map_or(now, |queued| queued.leaves);
        Some(sender.timer().min(sender.next_room(leaves)))
    }
}
