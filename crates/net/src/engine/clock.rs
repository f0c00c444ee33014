//! The simulation: processes events in order of time; hosts and network act on them.

mod decisions;
mod repeating;
mod repetition;
mod skipping;

use crate::engine::agenda::{Agenda, Due};
use crate::engine::cells::{Cells, Crossing, Inlet};
use crate::engine::departures::Departures;
use crate::hosts::{Hosts, Outside};
use crate::network::routes::{END, MIXED, Routes};
use crate::network::transmitter::Transmitter;
use crate::network::{Network, transmitter_hosts};
use crate::observe::sampling::{Baseline, Observed};
use crate::observe::tables::{Table, Tables};
use crate::observe::tap::Taps;
use crate::scenario::Scenario;
use decisions::Agents;
use sawtooth_tcp::sender::SenderStats;
use sawtooth_units::width::{Approx, Fit};
use sawtooth_units::{Span, Time};
use skipping::Skipping;
use std::io;
use std::sync::Arc;

/// Events after which progress of time is checked.
const WATCHED: u64 = 1 << 20;
/// Events allowed at one instant for each connection and each packet on a link, in addition to [`WATCHED`]: many
/// connections may start together. Only a defect continues without end.
const AT_ONE_INSTANT: u64 = 64;
/// Connections, links and transmitters sampled at the end of an interval in the time of one event.
const SAMPLED_AN_EVENT: usize = 8;

/// Detects time standing still: the earliest pending event and the last one processed when they last changed, how many
/// events had been processed by then, and the most connections and packets on links since.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    instant: (Time, Time),
    since: u64,
    members: u64,
}

pub struct Simulation {
    outside: Outside<Agenda>,
    hosts: Hosts,
    cells: Cells,
    end: Time,
    interval: Span,
    next_sample: Time,
    baseline: Baseline,
    tables: Tables,
    events: u64,
    /// The event count at which to pause.
    stop: u64,
    /// Cost of samples so far, in events.
    sampling: u64,
    watch: Watch,
    agents: Agents,
    skipping: Skipping,
    finished: bool,
}

impl Simulation {
    pub fn new(scenario: Scenario) -> Self {
        Self::tapped(scenario, None)
    }

    /// A simulation that writes captures, which change nothing else.
    pub fn tapped(scenario: Scenario, taps: Option<Taps>) -> Self {
        let scenario = Arc::new(scenario);
        let mut routes = Routes::default();
        let hosts = Hosts::new(Arc::clone(&scenario), &mut routes, taps.is_some());
        let mut cells = Cells::new(&scenario);
        // Packets that are captured are processed one by one.
        taps.iter().flat_map(Taps::hosts).for_each(|host| cells.take_one_by_one(host));
        let network = Network::new(&scenario, routes, taps);
        let sends = transmitter_hosts(&scenario);
        // So are packets that leave by events.
        let holding = network.transmitters.iter().zip(&sends).filter(|(transmitter, _)| transmitter.holds());
        holding.for_each(|(_, &host)| cells.take_one_by_one(host));
        let homes = sends.into_iter().map(|host| cells.of_host[host]).collect();
        let departures = Departures::new(cells.count, homes, network.transmitters.iter().map(Transmitter::holds));
        let timers: Vec<u32> = hosts.timer_hosts().into_iter().map(|host| cells.of_host[host]).collect();
        let arrives_in = scenario.links.iter().map(|link| cells.of_host[link.to]);
        let arrives_in = arrives_in.map(|cell| (cell, !cells.crossings[cell as usize].inputs.is_empty()));
        let mut agenda = Agenda::new(cells.count, departures, &timers, arrives_in.collect());
        hosts.begin(&mut agenda);
        let ends_datagrams = scenario.flows.iter().any(|flow| flow.traffic.datagrams().is_some());
        Simulation {
            outside: Outside { now: Time::ZERO, more: false, network, calendar: agenda },
            end: Time::from_nanos(scenario.duration_ns),
            agents: Agents::new(&hosts, &cells),
            cells,
            hosts,
            interval: Span::from_nanos(scenario.interval_ns),
            next_sample: Time::from_nanos(scenario.interval_ns),
            baseline: Baseline::new(&scenario),
            tables: Tables { datagrams: ends_datagrams.then(Default::default), ..Tables::default() },
            events: 0,
            stop: 0,
            sampling: 0,
            watch: Watch::default(),
            skipping: Skipping::default(),
            finished: false,
        }
    }

    /// A simulation that reports what happens to senders and packets, which changes nothing else: in the table
    /// `events`, and while [`Self::record`] is on, each packet's path in `packets` and `hops`.
    pub fn watched(scenario: Scenario) -> Self {
        let taps = Taps::tracing(&scenario);
        let mut simulation = Self::tapped(scenario, Some(taps));
        simulation.hosts.watch();
        simulation
    }

    /// Starts or stops recording packets' paths; does nothing if the simulation is not watched.
    pub fn record(&mut self, on: bool) {
        if let Some(trace) = self.outside.network.taps.as_mut().and_then(|taps| taps.trace.as_mut()) {
            trace.record(on);
        }
    }

    pub fn now(&self) -> Time {
        self.outside.now
    }
    pub fn events(&self) -> u64 {
        self.events
    }
    /// Data packets delivered to their receiver's application in order.
    pub fn delivered_packets(&self) -> u64 {
        self.hosts.delivered_segments()
    }
    /// Packets on links. With those delivered, dropped and lost, they are all packets sent.
    pub fn in_transit(&self) -> usize {
        self.outside.network.in_transit()
    }
    /// Counters of all connections, including ended ones.
    pub fn totals(&self) -> SenderStats {
        self.hosts.flow_totals().into_iter().fold(SenderStats::default(), |sum, (stats, _)| sum + stats)
    }
    /// The first failed write of a capture, with the capture's host; the capture ends there. Reported once.
    pub fn capture_fault(&mut self) -> Option<(usize, io::Error)> {
        self.outside.network.taps.as_mut()?.fault()
    }

    /// The rows since the last call that are final in order: nothing can come before them.
    pub fn take(&mut self) -> Vec<Table> {
        let mut tables = self.tables.take();
        if let Some(trace) = self.outside.network.taps.as_mut().and_then(|taps| taps.trace.as_mut()) {
            self.hosts.report_gone(trace.take_gone());
            tables.extend(trace.take());
        }
        tables.extend(self.hosts.reports.take(if self.finished { None } else { Some(self.outside.calendar.first()) }));
        tables
    }

    /// Runs until `until` or the scenario's end, or until `max_events` events were processed: at most one more, or one
    /// sample, which counts as events in proportion to its rows. True: the end was reached. Where it pauses never
    /// changes a result.
    ///
    /// # Panics
    ///
    /// If events follow each other at one instant without end. No scenario that [`Scenario::parse`] accepts does that.
    pub fn advance(&mut self, until: Time, max_events: u64) -> bool {
        self.go::<false>(until, max_events)
    }

    /// See [`Self::advance`]. `ASKS`: it also stops when a connection waits for a decision.
    fn go<const ASKS: bool>(&mut self, until: Time, max_events: u64) -> bool {
        let until = until.min(self.end);
        let target = self.work().saturating_add(max_events);
        loop {
            self.stop = target.saturating_sub(self.sampling).min(self.events.saturating_add(WATCHED));
            let next = if ASKS { until } else { self.skipping.at.min(until) };
            if self.reaches::<ASKS>(next) {
                if next == until {
                    break;
                }
                self.outside.now = next;
                self.consider(until);
                continue;
            }
            if ASKS && self.agents.waiting.is_some() {
                return false;
            }
            self.watch();
            if self.work() >= target {
                self.outside.now = self.outside.calendar.first().min(self.next_sample).min(until);
                return false;
            }
        }
        self.outside.now = until;
        if self.outside.now == self.end && !self.finished {
            self.finished = true;
            self.finish();
        }
        self.finished
    }

    /// Lets the run end at `end`, if that is neither past nor after its end.
    pub fn shorten(&mut self, end: Time) {
        self.end = self.end.min(end.max(self.outside.now));
    }

    /// The end of the run: reports what is still open.
    fn finish(&mut self) {
        self.sample();
        self.hosts.finish(self.outside.now);
        if let Some(taps) = &mut self.outside.network.taps {
            taps.finish();
        }
    }

    /// Events and samples so far.
    fn work(&self) -> u64 {
        self.events + self.sampling
    }

    /// Processes all events up to `until`; false if it pauses earlier, at [`Self::stop`]. Inlined: a second
    /// caller ([`Self::run_to`]) would otherwise cost instructions.
    #[inline(always)]
    fn reaches<const ASKS: bool>(&mut self, until: Time) -> bool {
        while self.events < self.stop {
            let first = self.outside.calendar.first();
            if self.next_sample <= first {
                if self.next_sample > until {
                    return true;
                }
                self.outside.now = self.next_sample;
                self.sample();
                self.next_sample += self.interval;
                let looked_at = self.hosts.connections.len()
                    + self.outside.network.links.len()
                    + self.outside.network.transmitters.len();
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
                let ahead = &mut self.outside.calendar.cells[cell];
                ahead.reached = horizon;
                if ahead.next < horizon {
                    let asked = if ASKS && self.agents.in_cell[cell] {
                        self.run_to_decision(cell.fit_u32(), horizon)
                    } else {
                        self.run_cell(cell.fit_u32(), horizon);
                        false
                    };
                    if asked || self.events >= self.stop {
                        let ahead = &mut self.outside.calendar.cells[cell];
                        ahead.reached = horizon.min(ahead.next);
                        return false;
                    }
                }
            }
        }
        false
    }

    /// Panics if time does not advance.
    fn watch(&mut self) {
        let instant = (self.outside.calendar.first(), self.outside.now);
        if instant != self.watch.instant {
            self.watch = Watch { instant, since: self.events, members: 0 };
        }
        let members = (self.hosts.connections.len() + self.in_transit()) as u64;
        self.watch.members = self.watch.members.max(members);
        assert!(
            self.events - self.watch.since <= WATCHED + AT_ONE_INSTANT * self.watch.members,
            "time does not advance at {}: events follow each other without end",
            self.outside.now
        );
    }

    /// The time before which nothing can arrive in `cell`, if nothing happens anywhere before `first`.
    fn horizon(&self, cell: usize, first: Time) -> Time {
        let sooner = |horizon: Time, inlet: &Inlet| {
            let mut departs = self.outside.calendar.cells[inlet.from as usize].reached.max(first);
            if let Some(transmitter) = inlet.transmitter {
                departs = departs.max(self.outside.network.transmitters[transmitter as usize].free);
            }
            horizon.min(departs + inlet.delay)
        };
        self.cells.inlets[cell].iter().fold(Time::NEVER, sooner)
    }

    /// Processes the events of one cell before `horizon`, up to [`Self::stop`].
    #[inline(always)]
    fn run_cell(&mut self, cell: u32, horizon: Time) {
        let mut left = self.stop - self.events;
        let Crossing { inputs, inner } = &self.cells.crossings[cell as usize];
        let next = if inputs.is_empty() {
            self.run_hosts(cell, horizon, &mut left)
        } else {
            self.outside.network.pass_through(inputs, *inner, horizon, &mut left, &mut self.outside.calendar)
        };
        self.outside.calendar.cells[cell as usize].next = next;
        self.events = self.stop - left;
    }

    /// As [`Self::run_cell`], for a cell where connections or probes end, counting down `left`; returns the time of its
    /// next event.
    ///
    /// In order of time. At one instant timers come first: in Linux a packet from an interrupt is processed after the
    /// timers that are due.
    fn run_hosts(&mut self, cell: u32, horizon: Time, left: &mut u64) -> Time {
        loop {
            let (timer, (arrival, link)) = self.outside.calendar.ahead(cell);
            let first = timer.min(arrival);
            if first >= horizon || *left == 0 {
                return first;
            }
            if arrival < timer {
                self.arrive(cell, link, arrival);
            } else {
                self.outside.now = timer;
                match self.outside.calendar.pop_timer(cell) {
                    Some(Due::Timer(index)) => self.hosts.fire(index, &mut self.outside),
                    Some(Due::Departure(transmitter)) => self.depart(transmitter),
                    None => {}
                }
            }
            *left -= 1;
        }
    }

    /// The first packet on `link`, the first in `cell`, arrives.
    #[inline]
    fn arrive(&mut self, cell: u32, link: u32, now: Time) {
        self.outside.now = now;
        let Outside { network, calendar, .. } = &mut self.outside;
        let input = &mut network.links[link as usize];
        if input.head() != now {
            // A packet overtook the one for this entry, which has another entry now.
            return calendar.arrived(cell, Time::NEVER);
        }
        let packet = input.arrive().packet;
        let (next, mut after) = (input.head(), input.next);
        calendar.arrived(cell, next);
        network.seen(packet, link, now);
        if after == MIXED {
            after = network.next_link(packet, link);
        }
        match after {
            END => {
                let packet = network.packets.remove(packet);
                self.outside.more = next == now;
                self.hosts.arrive(packet, &mut self.outside);
            }
            next => {
                network.enter(packet, next, now, calendar);
            }
        }
    }

    /// A transmitter that holds packets is free for the next; the packets' hosts learn what has left.
    #[cold]
    fn depart(&mut self, transmitter: u32) {
        let now = self.outside.now;
        let left = self.outside.network.depart(transmitter, now, &mut self.outside.calendar);
        while let Some(dropped) = self.outside.network.left.pop_front() {
            self.hosts.left(dropped, &mut self.outside);
        }
        if let Some(left) = left {
            self.hosts.left(left, &mut self.outside);
        }
    }

    fn sample(&mut self) {
        let now = self.outside.now;
        let seen = Observed::new(now, &mut self.outside.network, &self.hosts);
        if self.baseline.record(seen, &mut self.tables)
            && let Some(table) = &mut self.tables.datagrams
        {
            self.hosts.take_datagrams(now.nanos().approx() / 1e9, |row| table.push(row));
        }
    }
}
