//! The simulation: takes events in order of time and moves packets between links and endpoints.

use crate::ends::connection::{Connection, Phase};
use crate::ends::probe::Prober;
use crate::engine::agenda::Agenda;
use crate::engine::cells::{Cells, Inlet};
use crate::engine::schedule::Timers;
use crate::frames::PROBE_SIZE;
use crate::network::link::Link;
use crate::network::packet::{Kind, Packet};
use crate::network::packets::Packets;
use crate::network::routes::{END, Routes};
use crate::network::transmitter::Transmitter;
use crate::observe::sampling::Baseline;
use crate::observe::tables::{Table, Tables};
use crate::observe::tap::Taps;
use crate::rng::{Purpose, Rng};
use crate::scenario::{self, Scenario};
use sawtooth_tcp::cc::Algorithm;
use sawtooth_tcp::packet::{Burst, Sack};
use sawtooth_tcp::sender::SenderStats;
use sawtooth_units::width::Fit;
use sawtooth_units::{Span, Time};

/// Timers of a connection.
pub(crate) const SENDER: u32 = 0;
pub(crate) const ROOM: u32 = 1;
pub(crate) const RECEIVER: u32 = 2;
pub(crate) const LIFE: u32 = 3;
const CONNECTION_TIMERS: u32 = 4;

/// Looking at so many links in turn is still faster than a heap of them.
const TRANSIT_LINKS_MAX: usize = 4;

/// After so many events at the latest it is looked whether time goes on.
const WATCHED: u64 = 1 << 20;
/// So many events for each connection and each packet on its way may be at one instant, and [`WATCHED`] more: many
/// connections may start together. A spin has no end.
const AT_ONE_INSTANT: u64 = 64;
/// At the end of an interval so many connections, links and transmitters are looked at in the time of an event.
const SAMPLED_AN_EVENT: usize = 8;

/// What receiving applications have read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    pub segments: u64,
    pub bytes: u64,
}

/// Whether time goes on: the earliest event that is to come and the last one that was taken, when they last changed, and
/// how many events had been taken then; the most connections and packets on their way since.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    instant: (Time, Time),
    since: u64,
    members: u64,
}

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
    pub(crate) algorithms: Vec<Algorithm>,
    pub(crate) lifetimes: Vec<Rng>,
    pub(crate) routes: Routes,
    pub(crate) packets: Packets,
    cells: Cells,
    pub(crate) agenda: Agenda,
    /// Of each cell that packets only pass through: the links that lead into it. Empty for all other cells.
    pub(crate) inputs: Vec<Vec<u32>>,
    /// Whether a link begins and ends in the cell.
    pub(crate) inner: Vec<bool>,
    /// Up to when each cell's events have been taken.
    reached: Vec<Time>,
    next_sample: Time,
    pub(crate) timers: Timers,
    first_connection: u32,
    pub(crate) bursts: Vec<Burst>,
    pub(crate) sacks: Vec<Sack>,
    pub(crate) free_sacks: Vec<u32>,
    pub(crate) events: u64,
    /// At which count of events to pause.
    pub(crate) stop: u64,
    /// What samples took, in events.
    sampling: u64,
    watch: Watch,
    finished: bool,
    /// What each flow's receivers have read.
    pub(crate) delivered: Vec<Delivered>,
    pub(crate) taps: Option<Box<Taps>>,
}

impl Simulation {
    pub fn new(scenario: Scenario) -> Self {
        Self::tapped(scenario, None)
    }

    /// A simulation that writes captures, which change nothing else.
    pub fn tapped(scenario: Scenario, taps: Option<Taps>) -> Self {
        let mut routes = Routes::default();
        let mut connections = Vec::new();
        for (flow, config) in scenario.flows.iter().enumerate() {
            let forward_at = routes.add(&config.forward);
            let backward_at = routes.add(&config.backward);
            let first = &scenario.links[config.forward[0]];
            let (from_host, to_host) = (first.from, scenario.links[config.backward[0]].from);
            let (from, to) = (&scenario.hosts[from_host], &scenario.hosts[to_host]);
            let mss = u64::from(from.mss.min(to.mss));
            let total = config.bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(mss));
            for number in 0..config.count {
                connections.push(Connection {
                    flow: flow.fit_u32(),
                    number: number.fit_u32(),
                    generation: 0,
                    phase: Phase::Idle,
                    receiver: None,
                    receiver_generation: 0,
                    synack_sent: Time::ZERO,
                    started: Time::ZERO,
                    ends: Time::NEVER,
                    forward_at,
                    backward_at,
                    from: from_host.fit_u32(),
                    to: to_host.fit_u32(),
                    from_hz: from.hz,
                    to_hz: to.hz,
                    mss: mss.fit_u32(),
                    sack: from.sack && to.sack,
                    timestamps: from.timestamps && to.timestamps,
                    handshake: SenderStats::default(),
                    host_queue: Default::default(),
                    host_queued: first.transmitter.is_some(),
                    offload: from.offload,
                    total,
                    last_size: config.bytes.map_or(mss, |bytes| bytes - (total - 1) * mss).fit_u32(),
                });
            }
        }
        let probers: Vec<Prober> = scenario
            .probes
            .iter()
            .map(|config| Prober::new(config, routes.add(&config.forward), routes.add(&config.backward)))
            .collect();
        // Timers: probes first, then four a connection, each in the cell where it acts.
        let cells = Cells::new(&scenario);
        let starts_in = |route: &[usize]| cells.of_host[scenario.links[route[0]].from];
        let mut homes: Vec<u32> = scenario.probes.iter().map(|config| starts_in(&config.forward)).collect();
        for connection in &connections {
            let config = &scenario.flows[connection.flow as usize];
            let (from, to) = (starts_in(&config.forward), starts_in(&config.backward));
            homes.extend([from, from, to, from]);
        }
        let mut timers = Timers::new(cells.count, &homes);
        for (index, config) in scenario.probes.iter().enumerate() {
            timers.set(index.fit_u32(), Time::from_nanos(config.start_ns));
        }
        let first_connection = scenario.probes.len().fit_u32();
        for (index, connection) in connections.iter().enumerate() {
            let start_ns = scenario.flows[connection.flow as usize].start_ns;
            timers.set(first_connection + index.fit_u32() * CONNECTION_TIMERS + LIFE, Time::from_nanos(start_ns));
        }
        let mut links: Vec<Link> =
            scenario.links.iter().enumerate().map(|(i, l)| Link::new(l, scenario.seed, i)).collect();
        for (link, next) in links.iter_mut().zip(routes.successors(scenario.links.len())) {
            link.next = next;
        }
        let mut inner = vec![false; cells.count];
        for link in scenario.links.iter().filter(|link| cells.of_host[link.from] == cells.of_host[link.to]) {
            inner[cells.of_host[link.to] as usize] = true;
        }
        let mut inputs = transit_inputs(&scenario, &cells);
        // Where packets are looked at they are taken one by one.
        taps.iter().flat_map(Taps::hosts).for_each(|host| inputs[cells.of_host[host] as usize].clear());
        let cell_of = |link: &scenario::Link| cells.of_host[link.to];
        let arrives_in = scenario.links.iter().map(|link| (cell_of(link), !inputs[cell_of(link) as usize].is_empty()));
        let next = (0..cells.count.fit_u32()).map(|cell| timers.next_due(cell)).collect();
        Simulation {
            now: Time::ZERO,
            end: Time::from_nanos(scenario.duration_ns),
            links,
            transmitters: scenario.transmitters.iter().map(Transmitter::new).collect(),
            algorithms: algorithms(&scenario),
            lifetimes: (0..scenario.flows.len())
                .map(|i| Rng::new(scenario.seed, Purpose::Lifetime, i as u64))
                .collect(),
            baseline: Baseline::new(&scenario),
            tables: Tables::default(),
            agenda: Agenda::new(next, arrives_in.collect()),
            reached: vec![Time::ZERO; cells.count],
            next_sample: Time::from_nanos(scenario.interval_ns),
            inputs,
            inner,
            cells,
            packets: Packets::new(),
            delivered: vec![Delivered::default(); scenario.flows.len()],
            taps: taps.map(Box::new),
            bursts: Vec::new(),
            sacks: Vec::new(),
            free_sacks: Vec::new(),
            events: 0,
            stop: 0,
            sampling: 0,
            watch: Watch::default(),
            finished: false,
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
        self.delivered.iter().map(|delivered| delivered.segments).sum()
    }

    /// Runs until `until` or the scenario's end, or until `max_events` events have been handled: one more at most, or one
    /// sample, which counts as events in proportion to its rows. True: the end was reached. Where it pauses changes nothing.
    ///
    /// # Panics
    /// Where events follow each other at one instant without end. No scenario that [`Scenario::parse`] takes does that.
    pub fn advance(&mut self, until: Time, max_events: u64) -> bool {
        let until = until.min(self.end);
        let target = self.work().saturating_add(max_events);
        loop {
            self.stop = (target - self.sampling).min(self.events.saturating_add(WATCHED));
            if self.reaches(until) {
                break;
            }
            self.watch();
            if self.work() >= target {
                self.now = self.agenda.first().min(self.next_sample).min(until);
                return false;
            }
        }
        self.now = until;
        if self.now == self.end && !self.finished {
            self.finished = true;
            self.finish();
        }
        self.finished
    }

    /// Events and samples so far.
    fn work(&self) -> u64 {
        self.events + self.sampling
    }

    /// Takes all events up to `until`; false where it pauses before, at [`Self::stop`].
    fn reaches(&mut self, until: Time) -> bool {
        while self.events < self.stop {
            let first = self.agenda.first();
            if self.next_sample <= first {
                if self.next_sample > until {
                    return true;
                }
                self.now = self.next_sample;
                self.sample();
                self.next_sample += Span::from_nanos(self.scenario.interval_ns);
                let looked_at = self.connections.len() + self.links.len() + self.transmitters.len();
                let cost = 1 + (looked_at / SAMPLED_AN_EVENT) as u64;
                self.sampling += cost;
                self.stop = self.stop.saturating_sub(cost);
                continue;
            }
            if first > until {
                return true;
            }
            let limit = self.next_sample.min(until + Span::from_nanos(1));
            for cell in 0..self.cells.count {
                let horizon = self.horizon(cell, first).min(limit);
                self.reached[cell] = horizon;
                if self.agenda.next[cell] < horizon {
                    if self.inputs[cell].is_empty() {
                        self.run_cell(cell.fit_u32(), horizon);
                    } else {
                        self.run_transit(cell, horizon);
                    }
                    if self.events >= self.stop {
                        self.reached[cell] = horizon.min(self.agenda.next[cell]);
                        return false;
                    }
                }
            }
        }
        false
    }

    /// Ends a run in which time stands still.
    fn watch(&mut self) {
        let instant = (self.agenda.first(), self.now);
        if instant != self.watch.instant {
            self.watch = Watch { instant, since: self.events, members: 0 };
        }
        let members = (self.connections.len() + self.in_transit()) as u64;
        self.watch.members = self.watch.members.max(members);
        assert!(
            self.events - self.watch.since <= WATCHED + AT_ONE_INSTANT * self.watch.members,
            "time stands still at {}: events follow each other without end",
            self.now
        );
    }

    /// Before when nothing can come into `cell` any more, where nothing happens anywhere before `first`.
    fn horizon(&self, cell: usize, first: Time) -> Time {
        let sooner = |horizon: Time, inlet: &Inlet| {
            let mut departs = self.reached[inlet.from as usize].max(first);
            if let Some(transmitter) = inlet.transmitter {
                departs = departs.max(self.transmitters[transmitter as usize].free);
            }
            horizon.min(departs + inlet.delay)
        };
        self.cells.inlets[cell].iter().fold(Time::NEVER, sooner)
    }

    /// Takes the events of one cell before `horizon`, up to [`Self::stop`], in order of time. At one instant timers come first: in Linux a packet
    /// that an interrupt brings goes up after the timers that are due with it.
    fn run_cell(&mut self, cell: u32, horizon: Time) {
        let mut left = self.stop - self.events;
        self.agenda.next[cell as usize] = loop {
            let timer = self.timers.next_due(cell);
            let arrival = self.agenda.heaps[cell as usize].peek();
            match arrival {
                Some((time, link)) if time < timer => {
                    if time >= horizon || left == 0 {
                        break time;
                    }
                    self.now = time;
                    let input = &mut self.links[link as usize];
                    let packet = input.arrive().packet;
                    self.agenda.heaps[cell as usize].replace_top(input.head());
                    if self.taps.is_some() {
                        self.tap_arrival(packet, link, time);
                    }
                    match self.next_link(packet, link) {
                        END => {
                            let packet = self.packets.remove(packet);
                            self.arrive(packet);
                        }
                        next => {
                            self.enter(packet, next, time);
                        }
                    }
                }
                _ => {
                    if timer >= horizon || left == 0 {
                        break timer;
                    }
                    self.now = timer;
                    if let Some(index) = self.timers.pop(cell) {
                        self.fire(index);
                    }
                }
            }
            left -= 1;
        };
        self.events = self.stop - left;
    }

    /// A packet has reached the host that it was sent to.
    fn arrive(&mut self, packet: Packet) {
        match packet.kind {
            Kind::Data => self.take_data(packet),
            Kind::Ack => self.take_ack(packet),
            Kind::Syn => self.take_syn(packet),
            Kind::SynAck => self.take_synack(packet),
            Kind::Established => self.take_established(packet),
            Kind::Reset => self.take_reset(packet),
            Kind::ProbeRequest => {
                let at = self.probers[packet.owner as usize].backward_at;
                self.forward(Packet { kind: Kind::ProbeReply, at, ..packet });
            }
            Kind::ProbeReply => {
                let prober = &mut self.probers[packet.owner as usize];
                prober.answer(packet.owner, packet.seq, self.now, &mut self.tables.probes);
            }
        }
    }

    fn fire(&mut self, timer: u32) {
        if timer < self.first_connection {
            return self.send_probe(timer);
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

    pub(crate) fn timer_index(&self, connection: u32, timer: u32) -> u32 {
        self.first_connection + connection * CONNECTION_TIMERS + timer
    }

    fn send_probe(&mut self, index: u32) {
        let prober = &mut self.probers[index as usize];
        let Some(seq) = prober.next(index, self.now, &mut self.tables.probes) else {
            return;
        };
        let packet = Packet { seq, ..Packet::new(index, Kind::ProbeRequest, PROBE_SIZE, prober.forward_at) };
        self.timers.set(index, prober.next_due(self.now));
        self.forward(packet);
    }

    /// The end of the run: what is still open is reported as it stands.
    fn finish(&mut self) {
        self.sample();
        for index in 0..self.connections.len().fit_u32() {
            if !matches!(self.connections[index as usize].phase, Phase::Idle | Phase::Done) {
                self.report_end(index, false);
            }
        }
        for (i, prober) in self.probers.iter_mut().enumerate() {
            prober.give_up(i.fit_u32(), &mut self.tables.probes);
        }
        if let Some(taps) = &mut self.taps {
            taps.finish();
        }
    }

    /// The rows since the last call, as far as they can be put in order: nothing comes any more before them.
    pub fn take(&mut self) -> Vec<Table> {
        self.tables.take(if self.finished { None } else { Some(self.agenda.first()) })
    }

    /// Packets on links: with those delivered, dropped and lost they are all that were sent.
    pub fn in_transit(&self) -> usize {
        self.links.iter().map(Link::in_transit).sum()
    }
    /// Counters of all connections, ended ones included.
    pub fn totals(&self) -> SenderStats {
        self.flow_totals().into_iter().fold(SenderStats::default(), |sum, (stats, _)| sum + stats)
    }
}

#[expect(clippy::expect_used, reason = "the parser of scenarios refuses other names")]
fn algorithms(scenario: &Scenario) -> Vec<Algorithm> {
    let named = scenario.flows.iter().map(|flow| Algorithm::from_name(&flow.cc));
    named.map(|algorithm| algorithm.expect("a congestion control")).collect()
}

/// For each cell in which no flow or probe begins or ends, and that few links lead into: those links in order.
fn transit_inputs(scenario: &Scenario, cells: &Cells) -> Vec<Vec<u32>> {
    let mut inputs = vec![Vec::new(); cells.count];
    for (index, link) in scenario.links.iter().enumerate() {
        inputs[cells.of_host[link.to] as usize].push(index.fit_u32());
    }
    let routes = scenario.flows.iter().map(|f| (&f.forward, &f.backward));
    let routes = routes.chain(scenario.probes.iter().map(|p| (&p.forward, &p.backward)));
    for (forward, backward) in routes {
        for route in [forward, backward] {
            inputs[cells.of_host[scenario.links[route[0]].from] as usize].clear();
        }
    }
    inputs.into_iter().map(|links| if links.len() > TRANSIT_LINKS_MAX { Vec::new() } else { links }).collect()
}
