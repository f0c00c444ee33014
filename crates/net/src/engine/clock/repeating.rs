//! Repeats a period many times at once, if one of them ends with the state with which it began.

use super::repetition::{Recording, Repetition};
use super::skipping::MOST_EVENTS;
use super::{Simulation, WATCHED};
use crate::hosts::connection::{Connection, Phase};
use crate::network::Network;
use crate::observe::sampling::Observed;
use crate::packet::{Kind, Packet};
use sawtooth_tcp::receiver::Buffer;
use sawtooth_tcp::sender::{Rounds, Sender};
use sawtooth_tcp::steady::{Step, View, Visit};
use sawtooth_units::width::Fit;
use sawtooth_units::{Span, Time};
use std::ops::Range;

/// Rows of one skip.
const MOST_ROWS: u64 = 1 << 16;
/// Timers and filters that follow the clocks are renewed within this and some round trips.
const RENEWED: Span = Span::from_millis(50);
const ROUND_TRIPS: u64 = 3;

/// What each connection notes that follows rounds and clocks, not its packets.
type Notes = Vec<Option<(Buffer, Rounds)>>;
type Repetitions = Vec<Option<Repetition>>;

/// When samples are due, as time since the beginning of a period, and in which period.
type Samples = Vec<(u64, u64)>;
/// What is observed then, with the number of periods to the one in which it is due.
type Rows = Vec<(u64, Observed)>;

fn established(connection: &Connection) -> Option<&Sender> {
    match &connection.phase {
        Phase::Established(sender) => Some(sender),
        _ => None,
    }
}

impl Simulation {
    /// Processes one period, and skips those that follow if it ends with the state with which it began. `None`: it does
    /// not.
    pub(super) fn repeat(&mut self, span: Span, until: Time) -> Option<()> {
        let first = self.look();
        let (notes, before) = (self.notes(), self.seen());
        let end = first.now + span;
        let times = |view: &View, limit: Time| {
            let limit = self.before(view.limit(span).min(limit), span).min(until);
            limit.nanos().saturating_sub(end.nanos()) / span.nanos()
        };
        let rows = Span::from_nanos(self.interval.nanos().saturating_mul(MOST_ROWS));
        let most_times = times(&first, self.end).min(times(&View::default(), self.next_sample + rows));
        if most_times == 0 {
            return None;
        }
        let samples = self.samples(end, span, most_times);
        let (repetitions, rows) = self.record_period(span, samples)?;
        let second = self.look();
        let step = first.step(&second)?;
        let after = self.seen();
        // A filter may not have seen in this period what it had seen before.
        let limit = self.before(second.limit(span), span);
        let still = limit.nanos().saturating_sub(end.nanos()) / span.nanos();
        let times = most_times.min(second.most(&first)).min(still);
        if times == 0 || !self.predicts(&repetitions, &notes) {
            return None;
        }
        let later = later(&repetitions, &self.notes(), 1..1 + times)?;
        let packets = self.delivered_packets();
        self.move_by(&step, times);
        self.skipping.packets += self.delivered_packets() - packets;
        self.note(&repetitions, later);
        for (periods, row) in rows {
            let row = row.later([&before, &after], periods);
            if row.now <= self.outside.now {
                self.next_sample = row.now + self.interval;
                self.baseline.record(row, &mut self.tables);
            }
        }
        // Filters take a period to settle.
        let next = second.limit(span);
        self.skipping.not_before = if next < until { next + span } else { Time::ZERO };
        Some(())
    }

    fn samples(&self, end: Time, span: Span, times: u64) -> Samples {
        let last = end + Span::from_nanos(span.nanos() * times);
        let due = std::iter::successors(Some(self.next_sample), |at| Some(*at + self.interval));
        let due = due.skip_while(|at| *at <= end).take_while(|at| *at <= last).map(|at| {
            let since = (at - end).nanos() - 1;
            (since % span.nanos() + 1, since / span.nanos() + 1)
        });
        let mut samples: Samples = due.collect();
        samples.sort_unstable();
        samples
    }

    /// Well before `time`: what follows the clocks is renewed until then, and a filter's samples within a period.
    fn before(&self, time: Time, span: Span) -> Time {
        let round_trips = self.hosts.connections.iter().filter_map(established).map(|one| one.flight.srtt_us / 8);
        let longest_us = u64::from(round_trips.max().unwrap_or(0));
        let renewed = span + RENEWED + Span::from_micros(ROUND_TRIPS * longest_us);
        Time::from_nanos(time.nanos().saturating_sub(renewed.nanos()))
    }

    fn notes(&self) -> Notes {
        let notes = |connection: &Connection| {
            let (sender, receiver) = established(connection).zip(connection.receiver.as_ref())?;
            Some((receiver.buffer().clone(), sender.rounds()))
        };
        self.hosts.connections.iter().map(notes).collect()
    }

    /// Whether notes and timestamps are as the recorded period says, which began with `notes`.
    fn predicts(&mut self, repetitions: &Repetitions, notes: &Notes) -> bool {
        let is_same = later(repetitions, notes, 0..1).is_some_and(|later| later == self.notes());
        is_same && self.stamps(repetitions, |packet, stamps| (packet.tsval, packet.tsecr) == stamps)
    }

    /// Sets the notes, and the timestamps of what is on its way.
    fn note(&mut self, repetitions: &Repetitions, notes: Notes) {
        for ((connection, notes), repetition) in self.hosts.connections.iter_mut().zip(notes).zip(repetitions) {
            let has_stamps = connection.timestamps;
            let (Phase::Established(sender), Some(receiver), Some((buffer, rounds)), Some(repetition)) =
                (&mut connection.phase, &mut connection.receiver, notes, repetition)
            else {
                continue;
            };
            receiver.set_buffer(buffer);
            sender.set_rounds(rounds);
            if let Some(stamp) = repetition.stamp_of(sender.flight.snd_una).filter(|_| has_stamps) {
                sender.set_ts_recent(stamp);
            }
        }
        self.stamps(repetitions, |packet, stamps| {
            (packet.tsval, packet.tsecr) = stamps;
            true
        });
    }

    /// Calls `act` with each packet on its way and the timestamps that it has according to the recorded period; whether
    /// it always returned true.
    fn stamps(&mut self, repetitions: &Repetitions, mut act: impl FnMut(&mut Packet, (u32, u32)) -> bool) -> bool {
        let Network { links, packets, .. } = &mut self.outside.network;
        let mut are_known = true;
        for handle in links.iter().flat_map(|link| link.on_way()) {
            let packet = packets.get_mut(handle);
            let owner = packet.owner as usize;
            let Some(repetition) = repetitions[owner].as_ref().filter(|_| self.hosts.connections[owner].timestamps)
            else {
                continue;
            };
            let stamps = match packet.kind {
                Kind::Data => repetition.stamps(packet.seq),
                // The echo of an acknowledgement matters only after a loss.
                _ => repetition.stamp_of(packet.seq).map(|own| (own, packet.tsecr)),
            };
            are_known &= stamps.is_some_and(|stamps| act(packet, stamps));
        }
        are_known
    }

    /// Processes and records one period, and observes what the samples need. `None`: what a connection did depends on
    /// more than its packets.
    fn record_period(&mut self, span: Span, samples: Samples) -> Option<(Repetitions, Rows)> {
        let (begin, most) = (self.outside.now, self.events + MOST_EVENTS);
        let end = begin + span;
        let mut rows = Vec::with_capacity(samples.len());
        let mut samples = samples.into_iter().peekable();
        let mut recorded: Vec<Option<Recording>> = self.hosts.connections.iter().map(Recording::begin).collect();
        loop {
            let next = self.outside.calendar.first();
            // A row comes before the events of its instant, and after this period's own rows: to observe a queue is to
            // remove what has left.
            while let Some((phase, periods)) = samples.next_if(|(phase, _)| begin + Span::from_nanos(*phase) <= next) {
                let time = begin + Span::from_nanos(phase);
                while self.next_sample < time {
                    if !self.run_to(self.next_sample) {
                        return None;
                    }
                }
                self.outside.now = time;
                rows.push((periods, self.seen()));
            }
            if self.events >= most {
                return None;
            }
            if next > end {
                break;
            }
            let active = self.hosts.connections.iter().zip(&mut recorded);
            active.filter_map(|(one, recording)| Some((one, recording.as_mut()?))).for_each(|(one, recording)| {
                recording.expect(one, next);
            });
            if !self.step(end) {
                return None;
            }
            for (one, recording) in self.hosts.connections.iter().zip(&mut recorded) {
                if let Some(recording) = recording {
                    recording.note(one, self.outside.now)?;
                }
            }
        }
        if !self.run_to(end) {
            return None;
        }
        let repetitions = self.hosts.connections.iter().zip(recorded).map(|(connection, recording)| {
            let Some((recording, sender)) = recording.zip(established(connection)) else { return Some(None) };
            let repetition = Repetition::new(recording, connection, span)?;
            sender.is_content(repetition.most_in_flight()).then_some(Some(repetition))
        });
        rows.sort_unstable_by_key(|(periods, row)| (*periods, row.now));
        Some((repetitions.collect::<Option<_>>()?, rows))
    }

    fn seen(&mut self) -> Observed {
        Observed::new(self.outside.now, &mut self.outside.network, &self.hosts)
    }

    /// Whether everything that happens is part of a visit.
    pub(super) fn is_plain(&self) -> bool {
        let network = &self.outside.network;
        network.taps.is_none() && network.left.is_empty() && self.hosts.is_plain() && self.agents.waiting.is_none()
    }

    pub(super) fn look(&mut self) -> View {
        let mut visit = Visit::looking(self.outside.now);
        self.visit(&mut visit);
        visit.view
    }

    /// Moves everything by `times` steps: what is to come, and what has been counted.
    fn move_by(&mut self, step: &Step, times: u64) {
        let mut visit = Visit::moving(self.outside.now, step, times);
        self.visit(&mut visit);
        let now = self.outside.now + visit.ahead();
        self.outside.now = now;
        self.hosts.set_timers(now, &mut self.outside.calendar);
        for cell in 0..self.cells.count {
            let inputs = &self.cells.crossings[cell].inputs;
            let passes = inputs.iter().map(|&link| self.outside.network.links[link as usize].head()).min();
            let (timer, (arrival, _)) = self.outside.calendar.ahead(cell.fit_u32());
            let ahead = &mut self.outside.calendar.cells[cell];
            (ahead.reached, ahead.next) = (now, timer.min(arrival).min(passes.unwrap_or(Time::NEVER)));
        }
    }

    fn visit(&mut self, visit: &mut Visit) {
        let now = self.outside.now;
        self.hosts.visit(now, visit);
        let network = &mut self.outside.network;
        network.links.iter_mut().for_each(|link| link.visit(&mut network.packets, visit));
        network.transmitters.iter_mut().for_each(|transmitter| transmitter.visit(now, visit));
        let hosts = &self.hosts;
        self.outside.calendar.visit(|timer| hosts.moves(timer), visit);
    }

    /// A number that tells most states apart.
    pub(super) fn glimpse(&self) -> u64 {
        let (now, network) = (self.outside.now, &self.outside.network);
        let senders = self.hosts.connections.iter().filter_map(established).flat_map(|sender| sender.glimpse(now));
        let heads = network.links.iter().map(|link| link.head()).filter(|head| *head < Time::NEVER);
        let heads = heads.map(|head| head.nanos().wrapping_sub(now.nanos()));
        let free = network.transmitters.iter().map(|transmitter| transmitter.free.since(now).nanos());
        // FNV-1a by words.
        senders.chain(heads).chain(free).fold(0, |hash, word| (hash ^ word).wrapping_mul(0x0100_0000_01b3))
    }

    /// Processes everything up to the next event, if that is not after `until`. False: it is, or time does not advance.
    pub(super) fn step(&mut self, until: Time) -> bool {
        let next = self.outside.calendar.first();
        next <= until && self.run_to(next)
    }

    /// Processes everything up to `time`. False: time does not advance, which [`Simulation::watch`] will find.
    fn run_to(&mut self, time: Time) -> bool {
        self.stop = self.events.saturating_add(WATCHED);
        let is_there = self.reaches::<false>(time);
        if is_there {
            self.outside.now = time;
        }
        is_there
    }
}

/// The notes after periods with these numbers; `None`: they would change what packets do.
fn later(repetitions: &Repetitions, notes: &Notes, periods: Range<u64>) -> Option<Notes> {
    let later = repetitions.iter().zip(notes).map(|(repetition, notes)| {
        let Some((repetition, (buffer, rounds))) = repetition.as_ref().zip(notes.clone()) else { return Some(None) };
        let buffer = repetition.sized(buffer, periods.clone())?;
        Some(Some((buffer, repetition.rounds(rounds, periods.clone()))))
    });
    later.collect()
}
