//! A reader's end of a connection, and the sending end's handling of requests. The reader opens the connection,
//! requests one answer at a time, and closes it. Lost packets of this are sent again.

use crate::calendar::Calendar;
use crate::frames::{HEADERS, REQUEST_BYTES, SYN_OPTIONS};
use crate::hosts::connection::{Connection, Handshake, Phase};
use crate::hosts::ecn::Wish;
use crate::hosts::lifecycle::{SYN_LINEAR_TIMEOUTS, SYN_TIMEOUT};
use crate::hosts::{Hosts, Outside, RECEIVER};
use crate::packet::{ECE, Kind, Packet, ace};
use sawtooth_tcp::packet::Ack;
use sawtooth_tcp::receiver::Receiver;
use sawtooth_units::width::Fit;
use sawtooth_units::{Span, Time};

/// `TCP_RTO_MIN`, and the first timeout (RFC 6298 section 2), in microseconds.
const RTO_MIN_US: u64 = 200_000;
const RTO_FIRST_US: u64 = 1_000_000;
/// `TCP_RTO_MAX`.
const RTO_MAX_US: u64 = 120_000_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    /// A SYN was sent.
    Calling,
    Open,
}

/// The reader's end.
#[derive(Clone, Debug, Default)]
pub struct ClientConnection {
    pub connection: u32,
    pub reader: u32,
    state: State,
    /// Which of the connections in this place it is at, or will open next.
    generation: u32,
    opened: Time,
    /// For this connection: bytes requested, the number of requests, and how many of them the sending end has taken.
    requested_bytes: u64,
    requests: u64,
    taken: u64,
    /// The sending end has agreed on ECN.
    ecn: bool,
    /// For all connections: answers requested, the size of the last one, since when it is awaited, and whether it still
    /// is.
    number: u64,
    bytes: u64,
    since: Time,
    waits: bool,
    /// When the SYN or the request was last sent, how often, and whether something came back.
    sent: Time,
    tries: u32,
    heard: bool,
    /// Smoothed round trip and its deviation in microseconds (RFC 6298).
    rtt_us: Option<(u64, u64)>,
}

/// A complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub number: u64,
    pub bytes: u64,
    pub took: Span,
}

impl ClientConnection {
    pub fn new(connection: u32, reader: u32) -> Self {
        ClientConnection { connection, reader, ..ClientConnection::default() }
    }

    /// Requests of the connection: how many the reader has sent, and how many the sending end has taken.
    pub fn requests(&self) -> [u64; 2] {
        [self.requests, self.taken]
    }

    /// Whether `delivered` bytes in total complete everything that is awaited.
    pub fn has_all(&self, delivered: u64) -> bool {
        self.waits && self.state == State::Open && delivered >= self.requested_bytes
    }

    /// Takes the complete answer.
    pub fn take_answer(&mut self, now: Time) -> Answer {
        self.waits = false;
        Answer { number: self.number - 1, bytes: self.bytes, took: now.since(self.since) }
    }

    /// Something came back. True: for the first time since the request.
    fn hears(&mut self, now: Time) -> bool {
        if self.heard {
            return false;
        }
        self.heard = true;
        if self.tries == 1 {
            self.measure(now.since(self.sent).micros().max(1));
        }
        true
    }

    fn measure(&mut self, us: u64) {
        self.rtt_us = Some(match self.rtt_us {
            None => (us, us / 2),
            Some((mean, deviation)) => ((7 * mean + us) / 8, (3 * deviation + mean.abs_diff(us)) / 4),
        });
    }

    /// How long to wait for an answer after the `tries`-th transmission. The first repetition is a tail loss probe with
    /// the same delay, so the timeout doubles from the third on.
    fn timeout_us(&self) -> u64 {
        let rto = self.rtt_us.map_or(RTO_FIRST_US, |(mean, deviation)| mean + (4 * deviation).max(RTO_MIN_US));
        (rto << self.tries.saturating_sub(2).min(20)).min(RTO_MAX_US)
    }
}

impl Hosts {
    /// Requests `bytes` over a line, opening it first if needed.
    pub(super) fn ask<C: Calendar>(&mut self, index: u32, bytes: u64, outside: &mut Outside<C>) {
        let line = &mut self.readers.lines[index as usize];
        line.bytes = bytes;
        line.number += 1;
        line.since = outside.now;
        line.waits = true;
        (line.tries, line.heard) = (0, false);
        if line.state == State::Open {
            line.requested_bytes += bytes;
            return self.send_request(index, outside);
        }
        line.state = State::Calling;
        line.opened = outside.now;
        line.requested_bytes = bytes;
        line.requests = 0;
        self.call(index, outside);
    }

    /// Sends the SYN, or repeats it.
    fn call<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let line = &mut self.readers.lines[index as usize];
        let connection = &self.connections[line.connection as usize];
        let clock = connection.receiver_clock(outside.now);
        let timeout_us =
            (SYN_TIMEOUT.micros() << line.tries.saturating_sub(SYN_LINEAR_TIMEOUTS).min(20)).min(RTO_MAX_US);
        let host = &self.scenario.hosts[connection.to as usize];
        let flags = Wish::of(self.chosen[connection.flow as usize].as_ref()).syn(host, line.tries);
        line.sent = outside.now;
        line.tries += 1;
        let packet = Packet {
            flags,
            seq: line.opened.nanos(),
            generation: line.generation,
            tsval: clock.timestamp(),
            ..Packet::new(line.connection, Kind::Call, (HEADERS + SYN_OPTIONS).fit_u16(), connection.backward_at)
        };
        let due = clock.wheel_time(clock.jiffies64() + clock.jiffies_from_micros(timeout_us));
        outside.calendar.timer(self.line_timer(index), due);
        self.forward(packet, outside);
    }

    /// The sending end answers a SYN.
    #[cold]
    pub(in crate::hosts) fn take_call<C: Calendar>(&mut self, packet: Packet, outside: &mut Outside<C>) {
        let index = packet.owner;
        let connection = &self.connections[index as usize];
        let is_same = packet.generation == connection.generation;
        let tries = match connection.phase {
            Phase::Connecting { tries, .. } if is_same => tries,
            Phase::Established(_) if is_same => return,
            _ if packet.generation < connection.generation => return,
            // It did not learn that the reader closed.
            Phase::Connecting { .. } | Phase::Established(_) => {
                self.end(index, false, outside);
                0
            }
            Phase::Idle | Phase::Done => 0,
        };
        let connection = &mut self.connections[index as usize];
        connection.generation = packet.generation;
        connection.started = Time::from_nanos(packet.seq);
        let wish = Wish::of(self.chosen[connection.flow as usize].as_ref());
        let ecn = wish.agrees(&self.scenario.hosts[connection.from as usize], &packet);
        if tries == 0
            && let Some(line) = self.readers.line(connection.flow, connection.number)
        {
            let line = &mut self.readers.lines[line as usize];
            (line.taken, line.ecn) = (0, ecn);
        }
        connection.phase = Phase::Connecting { sent: outside.now, tries: tries + 1 };
        let clock = connection.sender_clock(outside.now);
        let reply = Packet {
            flags: wish.synack(ecn, packet.flags),
            generation: packet.generation,
            tsval: if connection.timestamps { clock.timestamp() } else { 0 },
            tsecr: packet.tsval,
            ..Packet::new(index, Kind::CallTaken, (HEADERS + SYN_OPTIONS).fit_u16(), connection.forward_at)
        };
        self.forward(reply, outside);
    }

    /// The reader's connection is open, and it sends the request for which it opened it.
    #[cold]
    pub(in crate::hosts) fn take_call_taken<C: Calendar>(&mut self, packet: Packet, outside: &mut Outside<C>) {
        let connection = &mut self.connections[packet.owner as usize];
        let Some(index) = self.readers.line(connection.flow, connection.number) else { return };
        let line = &mut self.readers.lines[index as usize];
        if line.state != State::Calling || line.generation != packet.generation {
            return;
        }
        let clock = connection.receiver_clock(outside.now);
        let options = self.scenario.hosts[connection.to as usize].options(connection.mss);
        let wish = Wish::of(self.chosen[connection.flow as usize].as_ref());
        connection.ecn = wish.agreed(&packet);
        let echo = wish.echo(connection.ecn);
        let mut receiver = Box::new(Receiver::new(options, connection.sack, echo, clock));
        receiver.note_handshake(outside.now.since(line.sent).micros(), clock);
        let confirmed = Packet {
            generation: packet.generation,
            tsval: clock.timestamp(),
            tsecr: packet.tsval,
            window: receiver.initial_window().fit_u32(),
            ..Packet::new(
                packet.owner,
                Kind::CallConfirmed,
                (HEADERS + connection.options()).fit_u16(),
                connection.backward_at,
            )
        };
        connection.receiver = Some(receiver);
        connection.receiver_generation = packet.generation;
        line.hears(outside.now);
        line.state = State::Open;
        (line.tries, line.heard) = (0, false);
        self.forward(confirmed, outside);
        self.send_request(index, outside);
    }

    /// The handshake is complete for the sending end.
    #[cold]
    pub(in crate::hosts) fn take_call_confirmed(&mut self, packet: Packet, now: Time) {
        let connection = &self.connections[packet.owner as usize];
        let Phase::Connecting { sent, tries } = connection.phase else { return };
        if packet.generation == connection.generation {
            let us = connection.handshake_us(sent, tries, &packet, now);
            let line = self.readers.line(connection.flow, connection.number);
            let ecn = line.is_some_and(|line| self.readers.lines[line as usize].ecn);
            self.establish(&packet, Handshake { us, repeats: 0, ecn }, now);
        }
    }

    fn send_request<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let line = &mut self.readers.lines[index as usize];
        line.sent = outside.now;
        line.requests += u64::from(line.tries == 0);
        line.tries += 1;
        let ClientConnection { connection, requested_bytes, .. } = *line;
        let clock = self.connections[connection as usize].receiver_clock(outside.now);
        let due = clock.wheel_time(clock.jiffies64() + clock.jiffies_from_micros(line.timeout_us()));
        outside.calendar.timer(self.line_timer(index), due);
        if let Some(packet) = self.acknowledging(index, Kind::Request, REQUEST_BYTES, outside) {
            self.forward(Packet { seq: requested_bytes, ..packet }, outside);
        }
    }

    /// A packet with `bytes` of the reader's own data, which acknowledges everything received.
    fn acknowledging<C: Calendar>(
        &mut self,
        index: u32,
        kind: Kind,
        payload: u32,
        outside: &mut Outside<C>,
    ) -> Option<Packet> {
        let line = &self.readers.lines[index as usize];
        let (owner, generation) = (line.connection, line.generation);
        let connection = &mut self.connections[owner as usize];
        let clock = connection.receiver_clock(outside.now);
        let receiver = connection.receiver.as_mut()?;
        let mut answer = Ack::default();
        receiver.answer(clock, &mut |ack| answer = *ack);
        let timer = receiver.timer();
        let size = HEADERS + connection.options() + payload;
        let packet = Packet {
            seq: answer.next,
            tsval: answer.tsval,
            tsecr: answer.tsecr,
            window: answer.window.min(u64::from(u32::MAX)).fit_u32(),
            flags: answer.ecn as u8 | ace(answer.ace) | if answer.ece { ECE } else { 0 },
            generation,
            ..Packet::new(owner, kind, size.fit_u16(), connection.backward_at)
        };
        outside.calendar.timer(self.timer(owner, RECEIVER), timer);
        Some(packet)
    }

    /// The sending application receives a request and writes the answer.
    #[cold]
    pub(in crate::hosts) fn take_request<C: Calendar>(&mut self, packet: Packet, outside: &mut Outside<C>) {
        let index = packet.owner;
        // The handshake's last packet may have been lost.
        self.take_call_confirmed(packet, outside.now);
        let connection = &mut self.connections[index as usize];
        if packet.generation != connection.generation {
            return;
        }
        let Some(sender) = connection.sender() else { return };
        let before = sender.total();
        if packet.seq <= before {
            // It had already arrived.
            return;
        }
        let Connection { flow, number, .. } = *connection;
        if let Some(line) = self.readers.line(flow, number) {
            // All requests up to this one: the reader waits for each answer.
            self.readers.lines[line as usize].taken += 1;
        }
        // A reader that requests has received everything before.
        let ack = Ack { next: before, ..ack_of(&packet) };
        self.with_sender(index, outside, |sender, clock, out| {
            sender.on_ack(&ack, clock, out);
            sender.extend(packet.seq - before, clock, out);
        });
    }

    /// Data up to the byte `end` has arrived over a reader's connection; `delivered` bytes are complete.
    #[inline(never)]
    pub(in crate::hosts) fn take_answer<C: Calendar>(
        &mut self,
        connection: u32,
        [end, delivered]: [u64; 2],
        outside: &mut Outside<C>,
    ) {
        let Connection { flow, number, .. } = self.connections[connection as usize];
        let Some(index) = self.readers.line(flow, number) else { return };
        let line = &mut self.readers.lines[index as usize];
        // A retransmission of an earlier answer says nothing about the request.
        if line.waits && end > line.requested_bytes - line.bytes && line.hears(outside.now) {
            outside.calendar.timer(self.line_timer(index), Time::NEVER);
        }
        if self.readers.lines[index as usize].has_all(delivered) {
            self.answered(index, outside);
        }
    }

    /// Nothing came back in time.
    #[cold]
    pub(in crate::hosts) fn line_timer_fires<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        match self.readers.lines[index as usize].state {
            State::Closed => {}
            State::Calling => self.call(index, outside),
            State::Open => self.send_request(index, outside),
        }
    }

    /// The reader closes, whatever is under way.
    pub(super) fn hang_up<C: Calendar>(&mut self, index: u32, outside: &mut Outside<C>) {
        let ClientConnection { connection: owner, generation, state, .. } = self.readers.lines[index as usize];
        if state == State::Closed {
            return;
        }
        let at = self.connections[owner as usize].backward_at;
        let unopened = Packet { generation, ..Packet::new(owner, Kind::HangUp, HEADERS.fit_u16(), at) };
        let packet = self.acknowledging(index, Kind::HangUp, 0, outside).unwrap_or(unopened);
        self.connections[owner as usize].receiver = None;
        let line = &mut self.readers.lines[index as usize];
        line.state = State::Closed;
        line.waits = false;
        line.generation += 1;
        outside.calendar.timer(self.line_timer(index), Time::NEVER);
        outside.calendar.timer(self.timer(owner, RECEIVER), Time::NEVER);
        self.forward(packet, outside);
    }

    /// The sending end learns that the reader has closed.
    #[cold]
    pub(in crate::hosts) fn take_hang_up<C: Calendar>(&mut self, packet: Packet, outside: &mut Outside<C>) {
        let index = packet.owner;
        let connection = &mut self.connections[index as usize];
        if packet.generation != connection.generation || matches!(connection.phase, Phase::Idle | Phase::Done) {
            return;
        }
        let has_all = connection.sender().is_some_and(|sender| packet.seq >= sender.total());
        if has_all {
            let ack = ack_of(&packet);
            self.with_sender(index, outside, |sender, clock, out| sender.on_ack(&ack, clock, out));
        }
        self.end(index, has_all, outside);
    }
}

/// What a packet of the reader acknowledges, up to its number.
fn ack_of(packet: &Packet) -> Ack {
    let Packet { seq: next, tsval, tsecr, .. } = *packet;
    let (window, ece, ace, ecn) = (u64::from(packet.window), packet.has(ECE), packet.ace(), packet.ecn());
    Ack { next, window, tsval, tsecr, ece, ace, ecn, ..Ack::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_retransmitted_with_backoff() {
        let mut line = ClientConnection::new(0, 0);
        let waits = |line: &mut ClientConnection| {
            [1, 2, 3, 4].map(|tries| {
                line.tries = tries;
                line.timeout_us()
            })
        };
        assert_eq!(waits(&mut line), [1_000_000, 1_000_000, 2_000_000, 4_000_000]);
        line.measure(40_000);
        assert_eq!(waits(&mut line), [240_000, 240_000, 480_000, 960_000]);
    }
}
