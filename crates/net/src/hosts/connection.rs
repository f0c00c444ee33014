//! One connection: handshake, sender, receiver, and its packets in the sending host's queue.

use crate::frames::TIMESTAMP_OPTION;
use crate::hosts::gro::Card;
use crate::network::slice_queue::SliceQueue;
use crate::packet::Packet;
use crate::scenario::Scenario;
use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::receiver::Receiver;
use sawtooth_tcp::sender::{Scoreboard, Sender, SenderStats};
use sawtooth_tcp::steady::Visit;
use sawtooth_units::Time;
use sawtooth_units::width::Fit;

/// The phase of a connection's life.
#[derive(Debug)]
pub enum Phase {
    /// Before its start, or after its end.
    Idle,
    /// A SYN was sent; the last time, and how often.
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
    /// When it begins to leave; [`Time::NEVER`] if that is unknown.
    pub leaves: Time,
    /// Bytes of memory that it uses until then.
    pub memory: u32,
}

/// When a sender acts on its own, and when its timer fires; whether it never will again.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    pub next: Time,
    pub tick: Time,
    pub is_done: bool,
}

/// The SYN that the receiving end answers, and how often a timer has repeated the answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answered {
    pub tsval: u32,
    pub flags: u8,
    pub repeats: u8,
}

/// What the sending end knows from the completed handshake.
#[derive(Clone, Copy, Debug)]
pub struct Handshake {
    /// Its duration in microseconds; 0: unknown.
    pub us: u64,
    /// Retransmitted SYNs; 0 if the answer shows that the first one arrived.
    pub repeats: u32,
    /// Both ends agreed on ECN.
    pub ecn: bool,
}

/// With many connections, each packet finds its connection outside the cache. So the fields are ordered by user, in
/// three cache lines: the sending end, the receiving end, and what only start and end need.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Connection {
    pub phase: Phase,
    /// The sending host keeps packets in a separate queue.
    pub host_queue: SliceQueue<Queued>,
    /// Counts the connections that used this slot.
    pub generation: u32,
    pub forward_at: u32,
    pub from_hz: u32,
    pub host_queued: bool,
    /// Loss on the first link takes whole super-packets.
    pub offload: bool,
    /// Super-packets reach the first queue on the way whole, which is a forwarding host's.
    pub whole: bool,
    /// Both ends agreed on them.
    pub sack: bool,
    pub timestamps: bool,

    pub receiver: Option<Box<Receiver>>,
    pub synack_sent: Time,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Which connection the receiving end serves: it learns about a new one from its SYN.
    pub receiver_generation: u32,
    pub backward_at: u32,
    pub to_hz: u32,
    pub flow: u32,
    /// Which card merges what it receives, from 1; 0: none.
    pub card: u32,

    /// Its number among those of its flow.
    pub number: u32,
    /// The hosts, by index.
    pub from: u32,
    pub to: u32,
    pub started: Time,
    /// When it is closed, whatever it has delivered.
    pub ends: Time,
    /// Bytes that its application writes in total; `u64::MAX`: endless.
    pub total: u64,
    /// Since when its application writes and the other end's reads.
    pub established: Time,
    pub accepted: Time,
    /// SYNs sent.
    pub handshake: SenderStats,
    /// The receiving end has agreed on ECN.
    pub ecn: bool,
    pub answered: Answered,
    /// The tick of its last answer to a repeated SYN-ACK; 0: none.
    pub challenged: u32,
}

impl Connection {
    /// The `number`-th connection of a flow, before its start; and where its routes there and back begin.
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
            challenged: 0,
            host_queue: SliceQueue::new(),
            host_queued: first.transmitter.is_some(),
            offload: from.offload,
            whole: !scenario.whole(config).is_empty(),
            mss: from.mss.min(to.mss),
            total: config.traffic.bytes(),
        }
    }

    /// Finds the card through which its data arrives.
    pub fn find_card(&mut self, scenario: &Scenario, cards: &[Card]) {
        let last = scenario.flows[self.flow as usize].forward.last();
        let at = cards.iter().position(|card| Some(&card.link()) == last);
        self.card = at.map_or(0, |at| at.fit_u32() + 1);
    }

    /// Uses this place for the transfer with this number.
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
    /// Whether the sender has data to send or to be acknowledged.
    pub fn is_sending(&self) -> bool {
        matches!(self.phase, Phase::Established(_)) && self.generation == self.receiver_generation
    }
    /// The sender's counters, including the handshake's SYNs (as Linux counts them).
    pub fn stats(&self) -> SenderStats {
        match &self.phase {
            Phase::Established(sender) => sender.stats + self.handshake,
            _ => self.handshake,
        }
    }
    /// Payload bytes that the sender knows to be delivered.
    pub fn acknowledged_bytes(&self) -> u64 {
        match &self.phase {
            Phase::Established(sender) => sender.flight.snd_una,
            _ => 0,
        }
    }
    /// Bytes of the options in every segment.
    pub fn options(&self) -> u32 {
        if self.timestamps { TIMESTAMP_OPTION } else { 0 }
    }
    /// The duration of the sending end's handshake in microseconds; 0: unknown. `sent`: its own packet, the last of
    /// `tries`. If it was repeated, the timestamp echoed by `answer` decides (`tcp_ack_update_rtt`).
    pub fn handshake_us(&self, sent: Time, tries: u32, answer: &Packet, now: Time) -> u64 {
        match tries {
            1 => now.since(sent).micros().max(1),
            _ if self.timestamps => u64::from(self.sender_clock(now).echoed_us(answer.tsecr)),
            _ => 0,
        }
    }

    pub fn sender_clock(&self, now: Time) -> Clock {
        Clock::new(now, self.from_hz)
    }
    pub fn receiver_clock(&self, now: Time) -> Clock {
        Clock::new(now, self.to_hz)
    }

    /// See [`sawtooth_tcp::steady`].
    pub fn visit(&mut self, now: Time, visit: &mut Visit) {
        visit.needs(!self.offload && !self.whole && self.card == 0);
        visit.needs(matches!(self.phase, Phase::Established(_) | Phase::Idle | Phase::Done));
        let mut board = Scoreboard::new(self.mss);
        self.sender().into_iter().for_each(|sender| sender.swap_board(&mut board));
        visit.whole(self, |connection, visit| {
            let clocks = [connection.sender_clock(now), connection.receiver_clock(now)];
            connection.host_queue.as_mut_slice().iter_mut().for_each(|queued| visit.time(&mut queued.leaves));
            match (&mut connection.phase, &mut connection.receiver) {
                (Phase::Established(sender), Some(receiver)) => {
                    visit.ends(connection.total, receiver.delivered());
                    sender.visit(clocks[0], visit);
                    receiver.visit(clocks[1], visit);
                }
                (Phase::Established(_), None) => visit.unknown(),
                _ => visit.connection(0, 0),
            }
        });
        board.visit(visit);
        self.sender().into_iter().for_each(|sender| sender.swap_board(&mut board));
    }

    /// Releases what has left the host's queue by `now`.
    pub fn settle_host_queue(&mut self, now: Time) {
        let mut freed = 0;
        while let Some(&Queued { leaves, memory, .. }) = self.host_queue.front()
            && leaves <= now
        {
            freed += u64::from(memory);
            self.host_queue.pop();
        }
        if self.host_queue.len() == 0 {
            // Back to the first slot, which is in the cache.
            self.host_queue.clear();
        }
        if let Some(sender) = self.sender() {
            sender.host_queue -= freed;
        }
    }

    /// The first packet with an unknown departure begins to leave at `at`.
    pub fn leaves_host_queue(&mut self, at: Time) {
        if let Some(queued) = self.host_queue.as_mut_slice().iter_mut().find(|queued| queued.leaves == Time::NEVER) {
            queued.leaves = at;
        }
    }

    /// What its sender does next on its own, as of `now`.
    #[inline(always)]
    pub fn due(&self, now: Time) -> Option<Due> {
        let Phase::Established(sender) = &self.phase else { return None };
        let queue = self.host_queue.as_slice();
        let leaves = |place: usize| queue.get(place).or(queue.last()).map_or(now, |queued| queued.leaves);
        let tick = sender.timer();
        Some(Due { next: tick.min(sender.next_room(leaves)), tick, is_done: sender.is_done() })
    }
}
