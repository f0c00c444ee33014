//! A connection's life: handshake, end, replacement.

use crate::calendar::Calendar;
use crate::frames::{HEADERS, SYN_OPTIONS};
use crate::hosts::connection::{Answered, Connection, Handshake, Phase};
use crate::hosts::ecn::Wish;
use crate::hosts::{Hosts, LIFE, Outside, RECEIVER, SENDER};
use crate::observe::tables::FlowEnd;
use crate::packet::{Kind, Packet};
use crate::rng::{Purpose, Rng};
use sawtooth_tcp::receiver::Receiver;
use sawtooth_tcp::sender::{Sender, SenderStats, Start};
use sawtooth_units::width::{Approx, Fit};
use sawtooth_units::{Span, Time};

/// First retransmission timeout of a SYN (RFC 6298 section 2).
pub(super) const SYN_TIMEOUT: Span = Span::from_secs(1);
/// `sysctl_tcp_syn_linear_timeouts`: how often the timeout is not doubled (Linux 6.5 and newer).
pub(super) const SYN_LINEAR_TIMEOUTS: u32 = 4;
/// `sysctl_tcp_synack_retries`.
const SYNACK_RETRIES: u8 = 5;
/// `sysctl_tcp_syn_retries`, after those.
const SYN_RETRIES: u32 = 6 + SYN_LINEAR_TIMEOUTS;

impl Hosts {
    /// The connection's life timer: start, SYN retransmission, the application's writes, end.
    #[cold]
    pub(super) fn life<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let connection = &mut self.connections[index as usize];
        match connection.phase {
            Phase::Idle => self.open(index, outside),
            Phase::Connecting { tries, .. } if outside.now < connection.ends => {
                if tries > SYN_RETRIES {
                    self.close(index, false, outside);
                } else {
                    self.send_syn(index, tries, outside);
                }
            }
            Phase::Established(_) if outside.now < connection.ends => self.write(index, outside),
            Phase::Connecting { .. } | Phase::Established(_) => self.close(index, false, outside),
            Phase::Done => {}
        }
    }

    /// Takes the transfers that were due by now.
    #[cold]
    pub(super) fn come<C: Calendar>(&mut self, arriving: u32, outside: &mut Outside<C>) {
        self.arriving[arriving as usize].come(outside.now);
        let due = self.arriving[arriving as usize].due();
        outside.calendar.timer(self.arriving_timer(arriving.fit_usize()), due);
        self.open_waiting(arriving.fit_usize(), outside);
    }

    /// Opens waiting transfers as long as there are places.
    fn open_waiting<C: Calendar>(&mut self, arriving: usize, outside: &mut Outside<C>) {
        while let Some((number, bytes, place)) = self.arriving[arriving].opens() {
            let index = place.unwrap_or_else(|| self.add_place(arriving, &mut outside.calendar));
            self.connections[index as usize].take_place(number, bytes);
            self.open(index, outside);
        }
    }

    /// Adds a connection.
    fn add_place(&mut self, arriving: usize, calendar: &mut impl Calendar) -> u32 {
        let arrivals = &self.arriving[arriving];
        let flow = arrivals.flow.fit_usize();
        let mut connection = Connection::new(&self.scenario, flow, arrivals.places() - 1, arrivals.ways);
        connection.find_card(&self.scenario, &self.cards);
        self.connections.push(connection);
        let config = &self.scenario.flows[flow];
        let [there, back] = [&config.forward, &config.backward].map(|way| way[way.len() - 1].fit_u32());
        // Timers of every connection: sender, receiver, life.
        [back, there, back].into_iter().for_each(|link| calendar.add_timer(link));
        if let Some(wire) = &mut self.wire {
            wire.grow(self.scenario.seed, self.connections.len());
        }
        self.connections.len().fit_u32() - 1
    }

    fn open<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let connection = &mut self.connections[index as usize];
        connection.started = outside.now;
        connection.challenged = 0;
        connection.ends = self.sources[connection.flow as usize].closes(outside.now);
        self.send_syn(index, 0, outside);
    }

    fn send_syn<C: Calendar>(&mut self, index: u32, tries: u32, outside: &mut Outside<C>) {
        let connection = &mut self.connections[index as usize];
        connection.phase = Phase::Connecting { sent: outside.now, tries: tries + 1 };
        if tries > 0 {
            connection.handshake.retransmits += 1;
            connection.handshake.timeouts += 1;
        }
        let clock = connection.sender_clock(outside.now);
        let timeout = clock.jiffies_from_micros(SYN_TIMEOUT.micros() << tries.saturating_sub(SYN_LINEAR_TIMEOUTS));
        let retry = clock.wheel_time(clock.jiffies64() + timeout);
        let due = retry.min(connection.ends);
        let host = &self.scenario.hosts[connection.from as usize];
        let wish = Wish::of(self.chosen[connection.flow as usize].as_ref());
        let packet = Packet {
            generation: connection.generation,
            tsval: clock.timestamp(),
            flags: wish.syn(host, tries),
            ..Packet::new(index, Kind::Syn, (HEADERS + SYN_OPTIONS).fit_u16(), connection.forward_at)
        };
        outside.calendar.tick(self.timer(index, LIFE), due, retry, clock);
        self.forward(packet, outside);
    }

    #[cold]
    pub(super) fn take_syn<C: Calendar>(&mut self, packet: Packet, outside: &mut Outside<C>) {
        let connection = &mut self.connections[packet.owner as usize];
        let clock = connection.receiver_clock(outside.now);
        let new = connection.receiver.is_none() && connection.receiver_generation == packet.generation;
        let wish = Wish::of(self.chosen[connection.flow as usize].as_ref());
        let is_later = connection.receiver_generation < packet.generation;
        if new || is_later {
            let host = &self.scenario.hosts[connection.to as usize];
            connection.ecn = wish.agrees(host, &packet);
            let echo = wish.echo(connection.ecn);
            let mut receiver = Receiver::new(host.options(connection.mss), connection.sack, echo, clock);
            if self.scenario.flows[connection.flow as usize].traffic.reads().is_some() {
                receiver.wait_for_reads();
            }
            connection.receiver = Some(Box::new(receiver));
            connection.receiver_generation = packet.generation;
        } else if connection.receiver_generation != packet.generation {
            return;
        }
        // It echoes the first SYN that arrived, whichever one it answers (`tcp_check_req`).
        let Answered { tsval, repeats, .. } = connection.answered;
        let (tsval, repeats) = if new || is_later { (packet.tsval, 0) } else { (tsval, repeats) };
        connection.answered = Answered { tsval, flags: packet.flags, repeats };
        self.send_synack(packet.owner, outside);
    }

    fn send_synack<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let connection = &mut self.connections[index as usize];
        let clock = connection.receiver_clock(outside.now);
        let wish = Wish::of(self.chosen[connection.flow as usize].as_ref());
        let Answered { tsval, flags, repeats } = connection.answered;
        let Some(receiver) = &connection.receiver else { return };
        connection.synack_sent = outside.now;
        let reply = Packet {
            generation: connection.receiver_generation,
            tsval: if connection.timestamps { clock.timestamp() } else { 0 },
            tsecr: tsval,
            window: receiver.initial_window().fit_u32(),
            flags: wish.synack(connection.ecn, flags),
            ..Packet::new(index, Kind::SynAck, (HEADERS + SYN_OPTIONS).fit_u16(), connection.backward_at)
        };
        if !receiver.is_open() {
            let timeout = clock.jiffies_from_micros(SYN_TIMEOUT.micros() << repeats);
            let due = clock.wheel_time(clock.jiffies64() + timeout);
            outside.calendar.tick(self.timer(index, RECEIVER), due, due, clock);
        }
        self.forward(reply, outside);
    }

    /// Nothing followed the answer to a SYN: it is repeated, whether or not another SYN arrives.
    #[cold]
    pub(super) fn repeat_synack<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let answered = &mut self.connections[index as usize].answered;
        if answered.repeats < SYNACK_RETRIES {
            answered.repeats += 1;
            self.send_synack(index, outside);
        }
    }

    #[cold]
    pub(super) fn take_synack<C: Calendar>(&mut self, packet: Packet, outside: &mut Outside<C>) {
        let index = packet.owner;
        let connection = &mut self.connections[index as usize];
        if packet.generation != connection.generation {
            return self.send_reset(index, packet.generation, 0, outside);
        }
        let Phase::Connecting { sent, tries } = connection.phase else {
            return self.challenge(&packet, outside);
        };
        let wish = Wish::of(self.chosen[connection.flow as usize].as_ref());
        let agreed = wish.agreed(&packet);
        let handshake = connection.handshake_us(sent, tries, &packet, outside.now);
        // The arrival of the first SYN shows that no timeout was due to a loss (`tcp_try_undo_spurious_syn`).
        let first = connection.sender_clock(connection.started).timestamp();
        let repeats = if connection.timestamps && packet.tsecr == first { 0 } else { tries - 1 };
        self.establish(&packet, Handshake { us: handshake, repeats, ecn: agreed }, outside.now);
        let connection = &self.connections[index as usize];
        let source = &self.sources[connection.flow as usize];
        let due = connection.ends.min(source.writes_next(outside.now, outside.now));
        outside.calendar.timer(self.timer(index, LIFE), due);
        self.confirm(&packet, if agreed { wish.ect() } else { 0 }, outside);
        self.with_sender(index, outside, |sender, clock, out| sender.start(clock, out));
    }

    /// Acknowledges the answer to a SYN.
    fn confirm<C: Calendar>(&mut self, answer: &Packet, flags: u8, outside: &mut Outside<C>) {
        let connection = &self.connections[answer.owner as usize];
        let size = HEADERS + connection.options();
        let established = Packet {
            generation: connection.generation,
            tsval: connection.sender_clock(outside.now).timestamp(),
            tsecr: answer.tsval,
            flags,
            ..Packet::new(answer.owner, Kind::Established, size.fit_u16(), connection.forward_at)
        };
        self.forward(established, outside);
    }

    /// An established end acknowledges a further answer to its SYN (`tcp_send_challenge_ack`), at most twice a second.
    fn challenge<C: Calendar>(&mut self, answer: &Packet, outside: &mut Outside<C>) {
        let connection = &mut self.connections[answer.owner as usize];
        let clock = connection.sender_clock(outside.now);
        let (last, ticks) = (connection.challenged, clock.jiffies());
        let is_recent = last > 0 && ticks.wrapping_sub(last) < clock.hz() / 2;
        if matches!(connection.phase, Phase::Established(_)) && !is_recent {
            connection.challenged = ticks;
            self.confirm(answer, 0, outside);
        }
    }

    /// Opens the sending end, on a `packet` that offers a window.
    pub(super) fn establish(&mut self, packet: &Packet, handshake: Handshake, now: Time) {
        let connection = &mut self.connections[packet.owner as usize];
        let source = &self.sources[connection.flow as usize];
        let number = (u64::from(packet.owner) << 32) | u64::from(connection.generation);
        let start = Start {
            handshake_us: handshake.us,
            syn_repeats: handshake.repeats,
            send_window: u64::from(packet.window),
            ts_recent: packet.tsval,
            host_queued: connection.host_queued,
            ecn: handshake.ecn,
            stays_open: source.writes_again(),
            seed: Rng::new(self.scenario.seed, Purpose::Congestion, number).next(),
        };
        let Some(chosen) = self.chosen[connection.flow as usize].clone() else { return };
        let clock = connection.sender_clock(now);
        let options = self.scenario.hosts[connection.from as usize].options(connection.mss);
        let bytes = if source.writes_again() { source.write_bytes() } else { connection.total };
        let sender = Sender::new(chosen, options, connection.sack, bytes, start, clock);
        connection.phase = Phase::Established(Box::new(sender));
        connection.established = now;
    }

    /// The application writes again.
    fn write<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let connection = &self.connections[index as usize];
        let source = &self.sources[connection.flow as usize];
        let (bytes, next) = (source.write_bytes(), source.writes_next(connection.established, outside.now));
        outside.calendar.timer(self.timer(index, LIFE), connection.ends.min(next));
        self.with_sender(index, outside, |sender, clock, out| sender.extend(bytes, clock, out));
    }

    #[cold]
    pub(super) fn take_established<C: Calendar>(&mut self, packet: Packet, outside: &mut Outside<C>) {
        let connection = &mut self.connections[packet.owner as usize];
        let clock = connection.receiver_clock(outside.now);
        if packet.generation != connection.receiver_generation {
            return;
        }
        let Some(mut receiver) = connection.receiver.take() else { return };
        if receiver.note_handshake(outside.now.since(connection.synack_sent).micros(), clock) {
            self.accept(packet.owner, &mut receiver, outside);
        }
        self.put_receiver(packet.owner, receiver, clock, outside);
    }

    /// A closed end's answer to whatever still arrives (RFC 9293 section 3.5.2); also how it closes after sending `seq`
    /// bytes.
    #[cold]
    pub(super) fn send_reset<C: Calendar>(&mut self, index: u32, generation: u32, seq: u64, outside: &mut Outside<C>) {
        let at = self.connections[index as usize].forward_at;
        let reset = Packet { generation, seq, ..Packet::new(index, Kind::Reset, HEADERS.fit_u16(), at) };
        self.forward(reset, outside);
    }

    #[cold]
    pub(super) fn take_reset(&mut self, packet: Packet, calendar: &mut impl Calendar) {
        let connection = &mut self.connections[packet.owner as usize];
        // A reader's line has separate generations.
        if packet.generation == connection.receiver_generation
            && self.scenario.flows[connection.flow as usize].traffic.requested().is_none()
        {
            connection.receiver = connection.receiver.take().and_then(Receiver::closed);
            // A late SYN of the same connection finds it closed.
            connection.receiver_generation += 1;
            let due = connection.receiver.as_ref().map_or(Time::NEVER, |receiver| receiver.timer());
            calendar.timer(self.timer(packet.owner, RECEIVER), due);
        }
    }

    /// Closes a connection; the next one in its place opens when the source says so.
    #[cold]
    pub(super) fn close<C: Calendar>(&mut self, index: u32, completed: bool, outside: &mut Outside<C>) {
        let connection = &mut self.connections[index as usize];
        let closed = connection.generation;
        let sent = connection.sender().map_or(0, |sender| sender.flight.snd_nxt);
        let reopens = self.sources[connection.flow as usize].reopens(outside.now);
        self.end(index, completed, outside);
        if !completed {
            self.send_reset(index, closed, sent, outside);
        }
        if reopens <= outside.now {
            self.open(index, outside);
        } else {
            outside.calendar.timer(self.timer(index, LIFE), reopens);
        }
        let flow = self.connections[index as usize].flow;
        if let Some(arriving) = self.arriving.iter().position(|arrivals| arrivals.flow == flow) {
            self.arriving[arriving].ended(index);
            self.open_waiting(arriving, outside);
        }
    }

    /// Hosts the sending end of a connection.
    #[cold]
    pub(super) fn end<C: Calendar>(&mut self, index: u32, completed: bool, outside: &mut Outside<C>) {
        self.report_end(index, completed, outside.now);
        let connection = &mut self.connections[index as usize];
        let retired = &mut self.retired[connection.flow as usize];
        *retired = *retired + connection.stats();
        connection.handshake = SenderStats::default();
        connection.host_queue.clear();
        connection.generation += 1;
        let reopens = self.sources[connection.flow as usize].reopens(outside.now);
        connection.phase = if reopens == Time::NEVER { Phase::Done } else { Phase::Idle };
        outside.calendar.timer(self.timer(index, SENDER), Time::NEVER);
    }

    pub(super) fn report_end(&mut self, index: u32, completed: bool, now: Time) {
        let connection = &self.connections[index as usize];
        let stats = connection.stats();
        let row = FlowEnd {
            flow: i64::from(connection.flow),
            connection: i64::from(connection.number),
            generation: i64::from(connection.generation),
            start_s: connection.started.nanos().approx() / 1e9,
            end_s: now.nanos().approx() / 1e9,
            asked_bytes: if connection.total == u64::MAX { 0 } else { connection.total.cast_signed() },
            delivered_bytes: connection.acknowledged_bytes().cast_signed(),
            segments_out: stats.segments_out.cast_signed(),
            retransmits: stats.retransmits.cast_signed(),
            timeouts: stats.timeouts.cast_signed(),
            tail_probes: stats.tail_probes.cast_signed(),
            completed: i64::from(completed),
            window_probes: stats.window_probes.cast_signed(),
        };
        self.reports.flows.push((now, row));
    }
}
