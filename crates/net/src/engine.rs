//! The simulation: takes events in order of time and moves packets between links and endpoints.

use crate::connection::{Connection, Phase};
use crate::link::Link;
use crate::packet::{HEADERS, Kind, PROBE_SIZE, Packet, SYN_OPTIONS, TIMESTAMP_OPTION, sack_option};
use crate::probe::Prober;
use crate::rng::Rng;
use crate::routes::{END, Routes};
use crate::sampling::Baseline;
use crate::scenario::Scenario;
use crate::schedule::{LinkHeap, Timers};
use crate::tables::{Table, Tables};
use crate::transmitter::Transmitter;
use sawtooth_tcp::cc::Algorithm;
use sawtooth_tcp::packet::{Ack, Burst, Sack};
use sawtooth_tcp::receiver::{Data, Receiver};
use sawtooth_tcp::sender::{Sender, SenderStats, Start, SUPER_PACKET_OVERHEAD};
use sawtooth_units::{Span, Time};

/// Purposes of randomness; a link's losses have purpose 1.
const CONGESTION_PURPOSE: u64 = 2;
const LIFETIME_PURPOSE: u64 = 3;

/// Timers of a connection.
const SENDER: u32 = 0;
const ROOM: u32 = 1;
const RECEIVER: u32 = 2;
const LIFE: u32 = 3;
const CONNECTION_TIMERS: u32 = 4;
/// The timer that closes an interval; probes come after it, then connections.
const SAMPLE: u32 = 0;
const FIRST_PROBE: u32 = 1;

/// First retransmission timeout of a SYN (RFC 6298 section 2).
const SYN_TIMEOUT: Span = Span::from_secs(1);
/// `sysctl_tcp_syn_retries`.
const SYN_RETRIES: u32 = 6;

pub struct Simulation {
    pub(crate) scenario: Scenario,
    pub(crate) now: Time,
    pub(crate) end: Time,
    pub(crate) links: Vec<Link>,
    pub(crate) transmitters: Vec<Transmitter>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) probers: Vec<Prober>,
    pub(crate) tables: Tables,
    pub(crate) baseline: Baseline,
    algorithms: Vec<Algorithm>,
    lifetimes: Vec<Rng>,
    routes: Routes,
    heap: LinkHeap,
    timers: Timers,
    first_connection: u32,
    bursts: Vec<Burst>,
    sacks: Vec<Sack>,
    free_sacks: Vec<u32>,
    events: u64,
    pub(crate) delivered_packets: u64,
}

impl Simulation {
    pub fn new(scenario: Scenario) -> Self {
        let mut routes = Routes::default();
        let mut connections = Vec::new();
        for (flow, config) in scenario.flows.iter().enumerate() {
            let forward_at = routes.add(&config.forward);
            let backward_at = routes.add(&config.backward);
            let first = &scenario.links[config.forward[0]];
            let from = &scenario.hosts[first.from];
            let to = &scenario.hosts[scenario.links[config.backward[0]].from];
            let mss = u64::from(from.mss.min(to.mss));
            let total = config.bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(mss));
            for number in 0..config.count {
                connections.push(Connection {
                    flow: flow as u32,
                    number: number as u32,
                    generation: 0,
                    phase: Phase::Idle,
                    receiver: None,
                    synack_sent: Time::ZERO,
                    started: Time::ZERO,
                    ends: Time::NEVER,
                    forward_at,
                    backward_at,
                    from: from.options(mss as u32),
                    to: to.options(mss as u32),
                    host_queue: Default::default(),
                    host_queued: first.transmitter.is_some(),
                    offload: from.offload,
                    total,
                    last_size: config.bytes.map_or(mss, |bytes| bytes - (total - 1) * mss) as u32,
                });
            }
        }
        let probers: Vec<Prober> = scenario
            .probes
            .iter()
            .map(|config| Prober::new(config, routes.add(&config.forward), routes.add(&config.backward)))
            .collect();
        let first_connection = FIRST_PROBE + probers.len() as u32;
        let mut timers = Timers::new(first_connection as usize + connections.len() * CONNECTION_TIMERS as usize);
        timers.set(SAMPLE, Time::from_nanos(scenario.interval_ns));
        for (i, config) in scenario.probes.iter().enumerate() {
            timers.set(FIRST_PROBE + i as u32, Time::from_nanos(config.start_ns));
        }
        for (i, connection) in connections.iter().enumerate() {
            let start = Time::from_nanos(scenario.flows[connection.flow as usize].start_ns);
            timers.set(first_connection + i as u32 * CONNECTION_TIMERS + LIFE, start);
        }
        Simulation {
            now: Time::ZERO,
            end: Time::from_nanos(scenario.duration_ns),
            links: scenario.links.iter().enumerate().map(|(i, l)| Link::new(l, scenario.seed, i)).collect(),
            transmitters: scenario.transmitters.iter().map(Transmitter::new).collect(),
            algorithms: scenario
                .flows
                .iter()
                .map(|flow| Algorithm::from_name(&flow.cc).expect("checked when the scenario was parsed"))
                .collect(),
            lifetimes: (0..scenario.flows.len())
                .map(|i| Rng::new(scenario.seed, LIFETIME_PURPOSE, i as u64))
                .collect(),
            baseline: Baseline::new(&scenario),
            tables: Tables::default(),
            heap: LinkHeap::default(),
            bursts: Vec::new(),
            sacks: Vec::new(),
            free_sacks: Vec::new(),
            events: 0,
            delivered_packets: 0,
            connections,
            probers,
            routes,
            timers,
            first_connection,
            scenario,
        }
    }

    pub fn now(&self) -> Time {
        self.now
    }
    pub fn events(&self) -> u64 {
        self.events
    }
    /// Data packets that reached their receiver's application in order.
    pub fn delivered_packets(&self) -> u64 {
        self.delivered_packets
            + self.connections.iter().filter_map(|c| c.receiver.as_ref()).map(|r| r.delivered()).sum::<u64>()
    }

    /// Runs until `until` or the scenario's end, or for `max_events` events. True: the end was reached.
    pub fn advance(&mut self, until: Time, max_events: u64) -> bool {
        let until = until.min(self.end);
        let mut budget = max_events;
        while budget > 0 {
            let timer = self.timers.next_due();
            match self.heap.peek() {
                Some((time, link)) if time <= timer => {
                    if time > until {
                        break;
                    }
                    self.now = time;
                    let link = &mut self.links[link as usize];
                    let packet = link.arrive();
                    self.heap.replace_top(link.next_arrival());
                    if let Some(packet) = packet {
                        self.arrive(packet);
                    }
                }
                _ => {
                    if timer > until || timer == Time::NEVER {
                        break;
                    }
                    self.now = timer;
                    if let Some(index) = self.timers.pop() {
                        self.fire(index);
                    }
                }
            }
            budget -= 1;
        }
        self.events += max_events - budget;
        if budget == 0 {
            return false;
        }
        self.now = until;
        if self.now == self.end {
            self.finish();
        }
        self.now == self.end
    }

    /// A packet has crossed a link: on to the next, or into the host.
    fn arrive(&mut self, packet: Packet) {
        if self.routes.link(packet.at) != END {
            self.forward(packet, self.now);
            return;
        }
        match packet.kind {
            Kind::Data => self.take_data(packet),
            Kind::Ack => self.take_ack(packet),
            Kind::Syn => self.take_syn(packet),
            Kind::SynAck => self.take_synack(packet),
            Kind::ProbeRequest => {
                let at = self.probers[packet.owner as usize].backward_at;
                self.forward(Packet { kind: Kind::ProbeReply, at, ..packet }, self.now);
            }
            Kind::ProbeReply => {
                let prober = &mut self.probers[packet.owner as usize];
                prober.answer(packet.owner, packet.seq, self.now, &mut self.tables.probes);
            }
        }
    }

    /// Puts a packet on the next link of its route. When it will have left the transmitter, unless it was dropped.
    fn forward(&mut self, packet: Packet, now: Time) -> Option<Time> {
        let index = self.routes.link(packet.at);
        if self.links[index as usize].loses() {
            self.drop(packet);
            return None;
        }
        self.send(packet, index, now)
    }

    fn send(&mut self, mut packet: Packet, index: u32, now: Time) -> Option<Time> {
        let link = &mut self.links[index as usize];
        packet.at += 1;
        let departure = match link.transmitter {
            None => now,
            Some(t) => {
                let size = u32::from(packet.size) + link.overhead;
                match self.transmitters[t as usize].send(size, now) {
                    Some(departure) => departure,
                    None => {
                        self.drop(packet);
                        return None;
                    }
                }
            }
        };
        if link.carry(packet, departure) {
            self.heap.push(departure + link.delay, index);
        }
        Some(departure)
    }

    fn drop(&mut self, packet: Packet) {
        if packet.sack != 0 {
            self.free_sacks.push(packet.sack - 1);
        }
    }

    fn fire(&mut self, timer: u32) {
        if timer == SAMPLE {
            self.sample();
            let next = self.now + Span::from_nanos(self.scenario.interval_ns);
            return self.timers.set(SAMPLE, next);
        }
        if timer < self.first_connection {
            return self.send_probe(timer - FIRST_PROBE);
        }
        let index = (timer - self.first_connection) / CONNECTION_TIMERS;
        match (timer - self.first_connection) % CONNECTION_TIMERS {
            SENDER => self.with_sender(index, |sender, clock, out| sender.on_timer(clock, out)),
            ROOM => self.with_sender(index, |sender, clock, out| sender.on_room(clock, out)),
            RECEIVER => {
                let connection = &mut self.connections[index as usize];
                let clock = connection.receiver_clock(self.now);
                if let Some(mut receiver) = connection.receiver.take() {
                    receiver.on_timer(clock, &mut |ack| self.send_ack(index, ack));
                    self.put_receiver(index, receiver);
                }
            }
            _ => self.life(index),
        }
    }

    fn timer_index(&self, connection: u32, timer: u32) -> u32 {
        self.first_connection + connection * CONNECTION_TIMERS + timer
    }

    fn send_probe(&mut self, index: u32) {
        let prober = &mut self.probers[index as usize];
        let Some(seq) = prober.next(index, self.now, &mut self.tables.probes) else { return };
        let packet = Packet { seq, ..Packet::new(index, Kind::ProbeRequest, PROBE_SIZE, prober.forward_at) };
        self.timers.set(FIRST_PROBE + index, prober.next_due(self.now));
        self.forward(packet, self.now);
    }

    /// The connection's life timer: start, SYN retransmission, end.
    fn life(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        match connection.phase {
            Phase::Idle => self.open(index),
            Phase::Connecting { tries, .. } if self.now < connection.ends => {
                if tries > SYN_RETRIES {
                    self.close(index, false);
                } else {
                    self.send_syn(index, tries);
                }
            }
            Phase::Connecting { .. } | Phase::Established(_) => self.close(index, false),
            Phase::Done => {}
        }
    }

    fn open(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let config = &self.scenario.flows[connection.flow as usize];
        let lifetime = match config.lifetime_ns {
            Some([low, high]) => Some(self.lifetimes[connection.flow as usize].between(low, high)),
            None => config.duration_ns,
        };
        connection.started = self.now;
        connection.ends = lifetime.map_or(Time::NEVER, |ns| self.now + Span::from_nanos(ns));
        self.send_syn(index, 0);
    }

    fn send_syn(&mut self, index: u32, tries: u32) {
        let connection = &mut self.connections[index as usize];
        connection.phase = Phase::Connecting { sent: self.now, tries: tries + 1 };
        let retry = self.now + Span::from_nanos(SYN_TIMEOUT.nanos() << tries);
        let due = retry.min(connection.ends);
        let packet = Packet {
            generation: connection.generation,
            ..Packet::new(index, Kind::Syn, (HEADERS + SYN_OPTIONS) as u16, connection.forward_at)
        };
        self.timers.set(self.timer_index(index, LIFE), due);
        self.forward(packet, self.now);
    }

    fn take_syn(&mut self, packet: Packet) {
        let connection = &mut self.connections[packet.owner as usize];
        if packet.generation != connection.generation {
            return;
        }
        let clock = connection.receiver_clock(self.now);
        if connection.receiver.is_none() {
            connection.receiver = Some(Box::new(Receiver::new(connection.to, connection.sack(), clock)));
        }
        connection.synack_sent = self.now;
        let reply = Packet {
            generation: packet.generation,
            tsval: if connection.timestamps() { clock.timestamp() } else { 0 },
            window: connection.receiver.as_ref().map_or(0, |r| r.initial_window()) as u32,
            ..Packet::new(packet.owner, Kind::SynAck, (HEADERS + SYN_OPTIONS) as u16, connection.backward_at)
        };
        self.forward(reply, self.now);
    }

    fn take_synack(&mut self, packet: Packet) {
        let index = packet.owner;
        let connection = &mut self.connections[index as usize];
        let Phase::Connecting { sent, tries } = connection.phase else { return };
        if packet.generation != connection.generation {
            return;
        }
        let number = (u64::from(index) << 32) | u64::from(connection.generation);
        let start = Start {
            handshake_us: if tries == 1 { (self.now - sent).micros().max(1) } else { 0 },
            send_window: u64::from(packet.window),
            ts_recent: packet.tsval,
            seed: Rng::new(self.scenario.seed, CONGESTION_PURPOSE, number).next(),
        };
        let algorithm = self.algorithms[connection.flow as usize];
        let clock = connection.sender_clock(self.now);
        let sender = Sender::new(algorithm, connection.from, connection.sack(), connection.total, start, clock);
        connection.phase = Phase::Established(Box::new(sender));
        let ends = connection.ends;
        self.timers.set(self.timer_index(index, LIFE), ends);
        self.with_sender(index, |sender, clock, out| sender.start(clock, out));
    }

    fn take_data(&mut self, packet: Packet) {
        let index = packet.owner;
        let connection = &mut self.connections[index as usize];
        if packet.generation != connection.generation {
            return;
        }
        let clock = connection.receiver_clock(self.now);
        let Some(mut receiver) = connection.receiver.take() else { return };
        receiver.note_handshake(self.now.since(connection.synack_sent).micros());
        let data = Data { seq: packet.seq, push: packet.push, tsval: packet.tsval, tsecr: packet.tsecr };
        receiver.on_data(data, clock, &mut |ack| self.send_ack(index, ack));
        self.put_receiver(index, receiver);
    }

    fn put_receiver(&mut self, index: u32, receiver: Box<Receiver>) {
        self.timers.set(self.timer_index(index, RECEIVER), receiver.timer());
        self.connections[index as usize].receiver = Some(receiver);
    }

    fn send_ack(&mut self, index: u32, ack: &Ack) {
        let connection = &self.connections[index as usize];
        let timestamps = if connection.timestamps() { TIMESTAMP_OPTION } else { 0 };
        let size = HEADERS + timestamps + sack_option(ack.sack.count);
        let mut packet = Packet {
            seq: ack.next,
            tsval: ack.tsval,
            tsecr: ack.tsecr,
            window: ack.window.min(u64::from(u32::MAX)) as u32,
            generation: connection.generation,
            ..Packet::new(index, Kind::Ack, size as u16, connection.backward_at)
        };
        if ack.sack.count > 0 {
            let slot = self.free_sacks.pop().unwrap_or_else(|| {
                self.sacks.push(Sack::default());
                self.sacks.len() as u32 - 1
            });
            self.sacks[slot as usize] = ack.sack;
            packet.sack = slot + 1;
        }
        self.forward(packet, self.now);
    }

    fn take_ack(&mut self, packet: Packet) {
        let index = packet.owner;
        let sack = match packet.sack {
            0 => Sack::default(),
            slot => self.sacks[slot as usize - 1],
        };
        self.drop(packet);
        if packet.generation != self.connections[index as usize].generation {
            return;
        }
        let ack = Ack {
            next: packet.seq,
            window: u64::from(packet.window),
            tsval: packet.tsval,
            tsecr: packet.tsecr,
            sack,
        };
        self.with_sender(index, |sender, clock, out| sender.on_ack(&ack, clock, out));
    }

    /// Lets the sender of a connection act, sends what it wants sent, and re-arms its timers.
    fn with_sender(
        &mut self,
        index: u32,
        act: impl FnOnce(&mut Sender, sawtooth_tcp::clock::Clock, &mut Vec<Burst>),
    ) {
        let now = self.now;
        let connection = &mut self.connections[index as usize];
        let clock = connection.sender_clock(now);
        if connection.host_queued {
            connection.settle_host_queue(now);
        }
        let Some(sender) = connection.sender() else { return };
        let mut bursts = std::mem::take(&mut self.bursts);
        act(sender, clock, &mut bursts);
        for burst in bursts.drain(..) {
            self.send_burst(index, burst);
        }
        self.bursts = bursts;
        let connection = &mut self.connections[index as usize];
        let leaves = connection.host_queue.front().map_or(now, |&(departure, _)| departure);
        let Some(sender) = connection.sender() else { return };
        let done = sender.is_done();
        let timer = sender.timer();
        let mut room = sender.pacing_timer();
        if sender.throttled {
            room = room.min(leaves);
        }
        self.timers.set(self.timer_index(index, SENDER), timer);
        self.timers.set(self.timer_index(index, ROOM), room);
        if done {
            self.close(index, true);
        }
    }

    fn send_burst(&mut self, index: u32, burst: Burst) {
        let connection = &self.connections[index as usize];
        let options = HEADERS + if connection.timestamps() { TIMESTAMP_OPTION } else { 0 };
        let (mss, total, last_size) = (connection.from.mss, connection.total, connection.last_size);
        let (offload, queued) = (connection.offload, connection.host_queued);
        let mut packet = Packet {
            tsval: burst.tsval,
            tsecr: burst.tsecr,
            generation: connection.generation,
            ..Packet::new(index, Kind::Data, (mss + options) as u16, connection.forward_at)
        };
        let first = self.routes.link(packet.at);
        let memory = u64::from(burst.count) * u64::from(mss) + SUPER_PACKET_OVERHEAD;
        let whole_lost = offload && self.links[first as usize].loses();
        let mut leaves = self.now;
        if !whole_lost {
            for seq in burst.start..burst.start + u64::from(burst.count) {
                packet.seq = seq;
                packet.push = burst.push && seq + 1 == burst.start + u64::from(burst.count);
                if seq + 1 == total {
                    packet.size = (last_size + options) as u16;
                }
                let departure = if offload || !self.links[first as usize].loses() {
                    self.send(packet, first, self.now)
                } else {
                    None
                };
                leaves = departure.unwrap_or(leaves);
            }
        }
        let connection = &mut self.connections[index as usize];
        if queued && leaves > self.now {
            connection.host_queue.push_back((leaves, memory as u32));
        } else if let Some(sender) = connection.sender() {
            sender.host_queue -= memory;
        }
    }

    /// Ends a connection; a replaced one begins anew at once.
    fn close(&mut self, index: u32, completed: bool) {
        self.report_end(index, completed);
        let connection = &mut self.connections[index as usize];
        let stats = connection.stats();
        self.baseline.retire(connection.flow as usize, stats, connection.delivered_bytes());
        self.delivered_packets += connection.receiver.as_ref().map_or(0, |r| r.delivered());
        connection.receiver = None;
        connection.host_queue.clear();
        connection.generation += 1;
        let replaced = self.scenario.flows[connection.flow as usize].lifetime_ns.is_some();
        connection.phase = if replaced { Phase::Idle } else { Phase::Done };
        for timer in [SENDER, ROOM, RECEIVER, LIFE] {
            self.timers.set(self.timer_index(index, timer), Time::NEVER);
        }
        if replaced {
            self.open(index);
        }
    }

    /// The end of the run: what is still open is reported as it stands.
    fn finish(&mut self) {
        for index in 0..self.connections.len() as u32 {
            if !matches!(self.connections[index as usize].phase, Phase::Idle | Phase::Done) {
                self.report_end(index, false);
            }
        }
        for (i, prober) in self.probers.iter_mut().enumerate() {
            prober.give_up(i as u32, &mut self.tables.probes);
        }
    }

    /// The rows since the last call.
    pub fn take(&mut self) -> Vec<Table> {
        self.tables.take()
    }

    /// Packets on links: with those delivered, dropped and lost they are all that were sent.
    pub fn in_transit(&self) -> usize {
        self.links.iter().map(Link::in_transit).sum()
    }
    /// Counters of all connections, ended ones included.
    pub fn totals(&self) -> SenderStats {
        (0..self.scenario.flows.len()).map(|f| self.flow_totals(f).0).fold(SenderStats::default(), |a, b| {
            SenderStats {
                segments_out: a.segments_out + b.segments_out,
                retransmits: a.retransmits + b.retransmits,
                timeouts: a.timeouts + b.timeouts,
                tail_probes: a.tail_probes + b.tail_probes,
                ..a
            }
        })
    }
}
