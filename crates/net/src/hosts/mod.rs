//! What hosts do: connections from handshake to end, and probes.

mod agent;
pub mod arrivals;
pub mod connection;
mod datagrams;
mod ecn;
mod endpoints;
mod event_log;
mod gro;
mod lifecycle;
mod probe;
mod reader;
mod reading;
pub mod source;
mod steady;
mod wire;

use crate::calendar::Calendar;
use crate::frames::PROBE_SIZE;
use crate::hosts::arrivals::Arriving;
use crate::hosts::connection::{Connection, Phase};
use crate::hosts::datagrams::{Seen, Stream};
use crate::hosts::event_log::EventLog;
pub use crate::hosts::event_log::event_names;
use crate::hosts::gro::{Card, Merged};
use crate::hosts::probe::Prober;
use crate::hosts::reader::Readers;
use crate::hosts::source::Source;
use crate::hosts::wire::Wire;
use crate::network::Network;
use crate::network::routes::Routes;
use crate::observe::tables::{self, Reports};
use crate::packet::{Kind, Packet};
use crate::scenario::{Application, Flow, Scenario};
use sawtooth_tcp::cc::Chosen;
use sawtooth_tcp::packet::Burst;
use sawtooth_tcp::sender::SenderStats;
use sawtooth_units::Time;
use sawtooth_units::width::Fit;
use std::sync::Arc;

/// Timers of a connection.
const SENDER: u32 = 0;
const RECEIVER: u32 = 1;
const LIFE: u32 = 2;
const CONNECTION_TIMERS: u32 = 3;

/// What receiving applications have read.
#[derive(Clone, Copy, Debug, Default)]
struct Delivered {
    segments: u64,
    bytes: u64,
    /// They are readers, which request it.
    is_asked: bool,
}

/// What is outside the hosts: the instant, the network on which they put packets, and the calendar of their timers. One
/// value, so that a host reaches each through one pointer.
pub struct Outside<C> {
    pub now: Time,
    /// More packets arrive at this instant, after the current one.
    pub more: bool,
    pub network: Network,
    pub calendar: C,
}

/// Connections and probes. Order of their timers: one per probe, per stream of datagrams, per flow with arrivals, per
/// line of a reader, per reader, and per merging card; then three per connection, whose number may grow.
pub struct Hosts {
    scenario: Arc<Scenario>,
    pub connections: Vec<Connection>,
    probers: Vec<Prober>,
    streams: Vec<Stream>,
    /// Indexed by flows with datagrams.
    seen: Vec<Seen>,
    arriving: Vec<Arriving>,
    /// For each flow: its congestion control, its applications, what its receivers have read, and the counters of its
    /// ended connections.
    chosen: Vec<Option<Chosen>>,
    sources: Vec<Source>,
    readers: Readers,
    delivered: Vec<Delivered>,
    retired: Vec<SenderStats>,
    pub reports: Reports,
    bursts: Vec<Burst>,
    /// The last connection that asked for a decision.
    waiting: Option<u32>,
    /// The first timer of a connection.
    first_timer: u32,
    /// The merging cards, and what one passes up.
    cards: Vec<Card>,
    up: Vec<Merged>,
    /// Present if packets are captured.
    wire: Option<Wire>,
    /// Present if sender events are reported.
    event_log: Option<EventLog>,
}

impl Hosts {
    /// The scenario's flows and probes, which add their `routes`.
    pub fn new(scenario: Arc<Scenario>, routes: &mut Routes, captured: bool) -> Self {
        let (mut connections, mut arriving, mut first) = (Vec::new(), Vec::new(), Vec::new());
        let (mut streams, mut seen) = (Vec::new(), Vec::new());
        for flow in 0..scenario.flows.len() {
            let config = &scenario.flows[flow];
            let ways = [&config.forward, &config.backward].map(|route| routes.add(route));
            first.push(connections.len().fit_u32());
            if config.traffic.datagrams().is_some() {
                streams.extend(Stream::of(&scenario, flow, ways[0]));
                seen.push(Seen::new(flow.fit_u32()));
                continue;
            }
            if let Some(arrivals) = Arriving::new(&scenario, flow, ways) {
                arriving.push(arrivals);
                continue;
            }
            connections.extend((0..config.count).map(|number| Connection::new(&scenario, flow, number, ways)));
        }
        let cards = Card::all(&scenario);
        for connection in &mut connections {
            connection.find_card(&scenario, &cards);
        }
        let probers = scenario.probes.iter().map(|config| {
            let [forward_at, backward_at] = [&config.forward, &config.backward].map(|route| routes.add(route));
            Prober::new(config, forward_at, backward_at)
        });
        let probers: Vec<_> = probers.collect();
        let readers = Readers::new(&scenario, &first);
        let flows = scenario.flows.len();
        Hosts {
            first_timer: (probers.len() + streams.len() + arriving.len() + readers.timers() + cards.len()).fit_u32(),
            probers,
            streams,
            seen,
            arriving,
            chosen: chosen(&scenario),
            sources: (0..flows).map(|flow| Source::new(&scenario, flow)).collect(),
            readers,
            delivered: scenario
                .flows
                .iter()
                .map(|flow| Delivered { is_asked: flow.traffic.requested().is_some(), ..Delivered::default() })
                .collect(),
            retired: vec![SenderStats::default(); flows],
            reports: reports(&scenario),
            bursts: Vec::new(),
            waiting: None,
            cards,
            up: Vec::new(),
            wire: captured.then(|| Wire::new(&scenario)),
            event_log: None,
            connections,
            scenario,
        }
    }

    /// Starts reporting what happens to senders and packets.
    pub fn watch(&mut self) {
        self.event_log = Some(EventLog::default());
        self.reports.events = Some(Vec::new());
    }

    /// The host of each timer, by index.
    pub fn timer_hosts(&self) -> Vec<usize> {
        let probes = self.scenario.probes.iter().map(|config| self.scenario.links[config.forward[0]].from);
        let of_connection = |c: &Connection| [c.from, c.to, c.from].map(Fit::fit_usize);
        let sends = |flow: u32| self.scenario.links[self.scenario.flows[flow as usize].forward[0]].from;
        let streams = self.streams.iter().map(|stream| sends(stream.flow));
        let arriving = self.arriving.iter().map(|arrivals| sends(arrivals.flow));
        let of_reader = |connection: u32| self.connections[connection as usize].to.fit_usize();
        let readers = self.readers.timed().map(of_reader);
        probes
            .chain(streams)
            .chain(arriving)
            .chain(readers)
            .chain(self.cards.iter().map(Card::host))
            .chain(self.connections.iter().flat_map(of_connection))
            .collect()
    }

    /// Sets the timers that begin the run.
    pub fn begin(&self, calendar: &mut impl Calendar) {
        for (index, config) in self.scenario.probes.iter().enumerate() {
            calendar.timer(index.fit_u32(), Time::from_nanos(config.start_ns));
        }
        for (index, stream) in self.streams.iter().enumerate() {
            calendar.timer((self.probers.len() + index).fit_u32(), stream.begins());
        }
        for (index, arrivals) in self.arriving.iter().enumerate() {
            calendar.timer(self.arriving_timer(index), arrivals.due());
        }
        for (index, connection) in self.connections.iter().enumerate() {
            calendar.timer(self.timer(index.fit_u32(), LIFE), self.sources[connection.flow as usize].opens());
        }
        for (index, start) in self.readers.starts().enumerate() {
            calendar.timer(self.reader_timer(index.fit_u32()), start);
        }
    }

    /// The index of a connection's timer.
    fn timer(&self, connection: u32, timer: u32) -> u32 {
        self.first_timer + connection * CONNECTION_TIMERS + timer
    }

    /// The index of a card's timer.
    fn card_timer(&self, card: u32) -> u32 {
        self.first_timer - self.cards.len().fit_u32() + card
    }

    /// The index of the timer of a flow whose transfers start over time (`arrivals`).
    fn arriving_timer(&self, arriving: usize) -> u32 {
        (self.probers.len() + self.streams.len() + arriving).fit_u32()
    }

    /// The timers of a line and of a reader.
    fn line_timer(&self, line: u32) -> u32 {
        self.arriving_timer(self.arriving.len()) + line
    }
    fn reader_timer(&self, reader: u32) -> u32 {
        self.line_timer(self.readers.lines.len().fit_u32()) + reader
    }

    /// A packet has reached its destination host.
    #[inline(always)]
    pub fn arrive<C: Calendar>(&mut self, packet: Packet, outside: &mut Outside<C>) {
        match packet.kind {
            Kind::Data => self.take_data(packet, outside),
            Kind::Ack => self.take_ack(packet, outside),
            _ => self.take_other(Packet { ..packet }, outside),
        }
    }

    /// A packet that is neither data nor an acknowledgement.
    #[inline(never)]
    fn take_other<C: Calendar>(&mut self, packet: Packet, outside: &mut Outside<C>) {
        match packet.kind {
            Kind::Data | Kind::Ack => {}
            Kind::Syn => self.take_syn(packet, outside),
            Kind::SynAck => self.take_synack(packet, outside),
            Kind::Established => self.take_established(packet, outside),
            Kind::WindowProbe => {
                self.let_up(packet.owner, outside);
                self.take_window_probe(packet, outside);
            }
            Kind::Reset => {
                self.let_up(packet.owner, outside);
                self.take_reset(packet, &mut outside.calendar);
            }
            Kind::Call => self.take_call(packet, outside),
            Kind::CallTaken => self.take_call_taken(packet, outside),
            Kind::CallConfirmed => self.take_call_confirmed(packet, outside.now),
            Kind::Request => self.take_request(packet, outside),
            Kind::HangUp => self.take_hang_up(packet, outside),
            Kind::ProbeRequest => {
                let at = self.probers[packet.owner as usize].backward_at;
                self.forward(Packet { kind: Kind::ProbeReply, at, ..packet }, outside);
            }
            Kind::ProbeReply => {
                let prober = &mut self.probers[packet.owner as usize];
                prober.answer(packet.owner, packet.seq, outside.now, &mut self.reports.probes);
            }
            Kind::Datagram => self.take_datagram(&packet, outside.now),
        }
    }

    /// Timer `index` is due.
    pub fn fire<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let Some(timer) = index.checked_sub(self.first_timer) else {
            return self.fire_other(index, outside);
        };
        let connection = timer / CONNECTION_TIMERS;
        match timer % CONNECTION_TIMERS {
            SENDER => self.with_sender(connection, outside, |sender, clock, out| {
                // At one instant its timer comes before room in the host's queue.
                if sender.timer() <= clock.now { sender.on_timer(clock, out) } else { sender.on_room(clock, out) }
            }),
            RECEIVER => self.receiver_timer(connection, outside),
            _ => self.life(connection, outside),
        }
    }

    /// A timer that belongs to no connection.
    #[inline(never)]
    fn fire_other<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let Some(timer) = index.checked_sub(self.probers.len().fit_u32()) else {
            return self.send_probe(index, outside);
        };
        let Some(timer) = timer.checked_sub(self.streams.len().fit_u32()) else {
            return self.send_datagram(timer, outside);
        };
        let Some(timer) = timer.checked_sub(self.arriving.len().fit_u32()) else {
            return self.come(timer, outside);
        };
        if let Some(card) = index.checked_sub(self.card_timer(0)) {
            return self.flush(card, outside);
        }
        match timer.checked_sub(self.readers.lines.len().fit_u32()) {
            None => self.line_timer_fires(timer, outside),
            Some(reader) => self.reader_wakes(reader, outside),
        }
    }

    fn send_probe<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let prober = &mut self.probers[index as usize];
        let Some(seq) = prober.next(index, outside.now, &mut self.reports.probes) else {
            return;
        };
        let packet = Packet { seq, ..Packet::new(index, Kind::ProbeRequest, PROBE_SIZE, prober.forward_at) };
        outside.calendar.timer(index, prober.next_due(outside.now));
        self.forward(packet, outside);
    }

    fn send_datagram<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let stream = &mut self.streams[index as usize];
        let (packet, next) = stream.send(index, outside.now);
        self.retired[stream.flow as usize].segments_out += 1;
        outside.calendar.timer(self.probers.len().fit_u32() + index, next);
        self.forward(packet, outside);
    }

    fn take_datagram(&mut self, packet: &Packet, now: Time) {
        let stream = &mut self.streams[packet.owner as usize];
        let Some(seen) = self.seen.iter_mut().find(|seen| seen.flow == stream.flow) else { return };
        let delivered = &mut self.delivered[stream.flow as usize];
        delivered.segments += 1;
        delivered.bytes += seen.arrive(stream, packet, now);
    }

    /// The rows for the interval that ends at `t_s`, for flows with datagrams.
    pub fn take_datagrams(&mut self, t_s: f64, mut push: impl FnMut(tables::Datagrams)) {
        self.seen.iter_mut().for_each(|seen| push(seen.take(t_s, &self.streams)));
    }

    /// Puts a packet on the first link of its route.
    #[inline(never)]
    fn forward<C: Calendar>(&mut self, packet: Packet, outside: &mut Outside<C>) {
        if self.wire.is_some() {
            self.tap_sent(&packet, outside.now, &mut outside.network);
        }
        outside.network.forward(packet, outside.now, &mut outside.calendar);
    }

    /// The end of the run: reports what is still open.
    pub fn finish(&mut self, now: Time) {
        for index in 0..self.connections.len().fit_u32() {
            if !matches!(self.connections[index as usize].phase, Phase::Idle | Phase::Done) {
                self.report_end(index, false, now);
            }
        }
        for stream in &self.streams {
            self.reports.flows.push((now, stream.end(now)));
        }
        for (i, prober) in self.probers.iter_mut().enumerate() {
            prober.give_up(i.fit_u32(), &mut self.reports.probes);
        }
    }

    /// Segments that receiving applications have read.
    pub fn delivered_segments(&self) -> u64 {
        self.delivered.iter().map(|delivered| delivered.segments).sum()
    }

    /// For each flow, since the start and including ended connections: the senders' counters, and the bytes read at the
    /// receivers.
    pub fn flow_totals(&self) -> Vec<(SenderStats, u64)> {
        let bytes = self.delivered.iter().map(|delivered| delivered.bytes);
        let mut totals: Vec<_> = self.retired.iter().copied().zip(bytes).collect();
        for connection in &self.connections {
            let total = &mut totals[connection.flow as usize];
            total.0 = total.0 + connection.stats();
        }
        totals
    }
}

/// Empty tables; with those of readers if there are any.
fn reports(scenario: &Scenario) -> Reports {
    let read =
        |which: fn(&Application) -> bool| scenario.flows.iter().filter_map(|flow| flow.traffic.requested()).any(which);
    Reports {
        responses: read(|_| true).then(Vec::new),
        pages: read(|asks| matches!(asks, Application::Pages { .. })).then(Vec::new),
        segments: read(|asks| matches!(asks, Application::Video { .. })).then(Vec::new),
        ..Reports::default()
    }
}

fn chosen(scenario: &Scenario) -> Vec<Option<Chosen>> {
    scenario.flows.iter().map(Flow::chosen).collect()
}
