//! One TCP connection: its handshake, its two ends, and the data of each.

use crate::analysis::end::{End, Syn};
use crate::analysis::flow::{Acknowledgement, Data, EndState, Flow, UNKNOWN_WINDOW};
use crate::analysis::identification::SequencePosition;
use crate::analysis::kind::Kind;
use crate::analysis::round_trips::RoundTrips;
use crate::analysis::sequence::Sequence;
use crate::analysis::series;
use crate::analysis::shared::Shared;
use crate::decode::segment::{self, Endpoint, Segment};
use crate::output::details::Row;
use sawtooth_units::width::{Approx, Fit};

/// Payload that every host accepts in a segment (RFC 9293 section 3.7.1): a smaller one counts as one segment.
const ANY_HOST: u32 = 536;

/// A SYN captured this long after later packets of the connection, or this far below their numbers, is not of that
/// connection.
const SYN_LATE_NS: u64 = 3_000_000_000;
const SYN_BELOW: i64 = 1 << 16;

#[derive(Debug)]
pub struct Connection {
    pub index: u32,
    /// Client and server.
    pub endpoints: [Endpoint; 2],
    /// The header facts of the client and of the server.
    pub ends: [End; 2],
    /// The client's data and the server's; None until there is some.
    pub flows: [Option<Box<Flow>>; 2],
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Connection {
    /// Begins a connection with its first segment.
    pub fn new(index: u32, first: &Segment) -> Self {
        let from_server = match first.flags & (segment::SYN | segment::ACK) {
            segment::SYN => false,
            flags if flags == segment::SYN | segment::ACK => true,
            // Joined midway: the server has the lower port.
            _ => first.source.port < first.target.port,
        };
        let endpoints = if from_server { [first.target, first.source] } else { [first.source, first.target] };
        Connection {
            index,
            endpoints,
            ends: Default::default(),
            flows: [None, None],
            start_ns: first.time_ns,
            end_ns: first.time_ns,
        }
    }

    /// Whether a SYN starts another connection between the same ports. A SYN with the same number is a retransmission,
    /// whatever happened since. One that fits the data already seen was captured late.
    pub fn is_over_for(&self, segment: &Segment) -> bool {
        if segment.flags & segment::SYN == 0 {
            return false;
        }
        let answer = segment.flags & segment::ACK != 0;
        let end = &self.ends[self.side(segment)];
        let closed = self.ends.iter().all(|end| end.fin) || self.ends.iter().any(|end| end.reset);
        match (&end.sequence, &end.syn) {
            (Some(sequence), Some(_)) => {
                let stale = answer && self.ends[1 - self.side(segment)].syn.is_some();
                !sequence.is_origin(segment.seq) && !stale
            }
            (Some(sequence), None) => {
                let below = (-SYN_BELOW..=0).contains(&sequence.relative(segment.seq));
                let late = below && !closed && segment.time_ns.saturating_sub(self.start_ns) <= SYN_LATE_NS;
                !sequence.is_origin(segment.seq) && !late
            }
            (None, _) => closed && !answer,
        }
    }

    pub fn take(&mut self, segment: &Segment, shared: &mut Shared) {
        let side = self.side(segment);
        self.end_ns = self.end_ns.max(segment.time_ns);
        let has = |flag: u8| segment.flags & flag != 0;
        if has(segment::SYN) && self.flows[side].is_none() && self.ends[side].begins_anew(segment) {
            self.ends[1 - side].forget_acked();
        }
        self.ends[side].see(segment);
        // A SYN has a sequence number before its data.
        let first = self.ends[side].sequence.map_or(0, |sequence| sequence.relative(segment.seq));
        let seq = first + i64::from(has(segment::SYN));
        let ack = if has(segment::ACK) { self.acknowledged(side, segment.ack) } else { 0 };
        let window = self.window(side, segment);

        let mut kind = Kind::Plain;
        let mut trip_ns = None;
        if has(segment::ACK) && !has(segment::SYN | segment::RST) {
            let mss = self.mss(1 - side);
            if let Some(flow) = &mut self.flows[1 - side] {
                let seen = Acknowledgement { segment, ack, window, mss };
                let (of_ack, trip) = flow.acknowledge(&seen, shared);
                (kind, trip_ns) = (of_ack, trip);
                shared.keep_runs(self.index, 1 - side.fit_u8());
            }
            self.ends[side].acknowledges(ack);
        }
        let fin = has(segment::FIN);
        // The payload of a reset is its reason (RFC 9293 section 3.5.3), not data. Data repeated with a SYN belongs to
        // the SYN.
        let again = has(segment::SYN) && self.ends[side].sent().is_some_and(|(sent, _)| seq < sent);
        let length = if has(segment::RST) || again { 0 } else { i64::from(segment.payload) + i64::from(fin) };
        let echoed = self.timestamps(side, segment, ack, shared);
        if length > i64::from(fin) || (fin && self.flows[side].is_some()) {
            kind = self.data(side, segment, seq, length, shared);
            trip_ns = trip_ns.or(echoed);
        } else if fin && !has(segment::RST) {
            self.ends[side].lone_fin(segment);
        } else if length == 0 && !has(segment::SYN | segment::RST) {
            self.ends[side].identification.order(segment.ip_id, 1, SequencePosition::Empty);
            kind = self.keep_alive(side, seq).unwrap_or(kind);
            if let Some(flow) = &mut self.flows[side] {
                flow.must_have_sent(seq, segment, shared);
            }
        }
        let end = &mut self.ends[side];
        // A reset, or a SYN with another number than the first, says nothing about what was sent.
        let stray = has(segment::SYN) && first > 0;
        if !has(segment::RST) && !stray {
            if let Some(sequence) = &mut end.sequence {
                sequence.reach(seq + length);
            }
            end.has_sent(seq + length, segment.time_ns);
        }
        end.fin |= fin;
        end.reset |= has(segment::RST);
        if let Some(details) = &mut shared.details {
            let t_s = segment.time_ns.saturating_sub(shared.start_ns).approx() / 1e9;
            let rtt_s = trip_ns.map_or(f64::NAN, |ns| ns.approx() / 1e9);
            details.push(segment, Row { t_s, direction: side.fit_u8(), seq: first, ack, window, kind, rtt_s });
        }
    }

    /// 0 for the client's segments, 1 for the server's.
    fn side(&self, segment: &Segment) -> usize {
        usize::from(segment.source != self.endpoints[0])
    }

    /// The peer's sequence number that `raw` acknowledges.
    fn acknowledged(&mut self, side: usize, raw: u32) -> i64 {
        let sequence = self.ends[1 - side].sequence.get_or_insert(Sequence::joined(raw));
        let ack = sequence.relative(raw);
        sequence.reach(ack);
        ack
    }

    fn data(&mut self, side: usize, segment: &Segment, seq: i64, length: i64, shared: &mut Shared) -> Kind {
        let mss = self.mss(side);
        let sack = self.sack();
        let peer = &self.ends[1 - side];
        let scale = if peer.window_of_syn { 0 } else { self.scale(1 - side) };
        let window = if peer.packets == 0 { UNKNOWN_WINDOW } else { u64::from(peer.window) << scale };
        let acked = peer.acked();
        let own = &mut self.ends[side];
        let before = EndState { sent: own.sent(), fin: own.fin, acked };
        let packets = segment.payload.div_ceil(mss).clamp(1, 64) as u16;
        let position = match before.sent {
            Some((sent, _)) if seq > sent => {
                SequencePosition::AfterHole(((seq - sent).fit_u64()).div_ceil(u64::from(mss)))
            }
            Some((sent, _)) if seq < sent => SequencePosition::Below,
            _ => SequencePosition::Next,
        };
        let order = own.identification.order(segment.ip_id, packets, position);
        let identified = own.identification.is_unique_per_packet();
        let full = segment.payload > 0
            && (segment.payload.is_multiple_of(mss)
                || (segment.flags & segment::PSH == 0 && own.size.full() == Some(segment.payload)));
        let flow = self.flows[side].get_or_insert_with(|| {
            shared.directions += 1;
            shared.intervals = series::share(shared.directions);
            let trips = RoundTrips::of_handshake(self.ends[side].handshake_ns(), self.ends[1 - side].handshake_ns());
            Box::new(Flow::new(seq, before, window, segment, trips, shared))
        });
        let data = Data { segment, start: seq, end: seq + length, order, identified, full, mss, sack };
        let kind = flow.data(&data, shared);
        let in_flight = flow.in_flight();
        self.infer_scale(1 - side, in_flight);
        kind
    }

    /// A segment without data below what was sent: a keep-alive, or Linux's zero-window probe (`tcp_xmit_probe_skb`).
    fn keep_alive(&mut self, side: usize, seq: i64) -> Option<Kind> {
        let flow = self.flows[side].as_mut()?;
        flow.is_below(seq).then(|| flow.probe())
    }

    /// Pairs TSvals with their echoes; returns the sender's half of the round trip of data.
    fn timestamps(&mut self, side: usize, segment: &Segment, ack: i64, shared: &Shared) -> Option<u64> {
        if let Some((tsval, _)) = segment.options.timestamps {
            self.ends[side].echo.sent(tsval, ack, segment.time_ns);
        }
        if segment.flags & segment::ACK == 0 {
            return None;
        }
        let peer = &mut self.ends[1 - side];
        let echoed = segment.options.timestamps.and_then(|(_, tsecr)| peer.echo.echoed(tsecr, segment.time_ns));
        if let Some(syn) = &mut peer.syn
            && (segment.flags & segment::SYN != 0) == (side == 1)
        {
            syn.answer(segment.time_ns, echoed.map(|(ns, _)| ns));
        }
        let (ns, ack) = echoed?;
        if segment.payload > 0 {
            if let Some(flow) = &mut self.flows[side] {
                flow.sender_echo(ns, ack, segment.time_ns, shared);
            }
            return Some(ns);
        }
        if let Some(flow) = &mut self.flows[1 - side] {
            flow.trips.receiver_echo.add(ns);
        }
        None
    }

    /// The window in bytes that a segment of `side` offers.
    fn window(&self, side: usize, segment: &Segment) -> u64 {
        let scale = if segment.flags & segment::SYN != 0 { 0 } else { self.scale(side) };
        u64::from(segment.window) << scale
    }

    /// The shift of the windows that `side` offers. It needs both SYNs (RFC 7323 section 2.2); otherwise it is
    /// inferred.
    pub fn scale(&self, side: usize) -> u8 {
        match (&self.ends[0].syn, &self.ends[1].syn) {
            (Some(client), Some(server)) => match (client.window_scale, server.window_scale) {
                (Some(client), Some(server)) => if side == 0 { client } else { server }.min(14),
                _ => 0,
            },
            _ => self.ends[side].inferred_scale,
        }
    }

    fn infer_scale(&mut self, side: usize, in_flight: u64) {
        if self.handshake_seen() {
            return;
        }
        let end = &mut self.ends[side];
        while end.window > 0 && end.inferred_scale < 14 && in_flight > u64::from(end.window) << end.inferred_scale {
            end.inferred_scale += 1;
        }
    }

    pub fn handshake_seen(&self) -> bool {
        self.ends.iter().all(|end| end.syn.is_some())
    }

    /// Whether both ends offered SACK; None if the handshake was not captured.
    pub fn sack(&self) -> Option<bool> {
        self.offered(|syn| syn.sack)
    }

    pub fn offered(&self, what: impl Fn(&Syn) -> bool) -> Option<bool> {
        let (client, server) = (self.ends[0].syn.as_ref()?, self.ends[1].syn.as_ref()?);
        Some(what(client) && what(server))
    }

    /// Payload bytes of a full segment of `side`: what its peer's SYN allows, minus the timestamp option. Without that
    /// SYN it is what the segments show, or else the longest payload seen, so that each counts as one segment.
    pub fn mss(&self, side: usize) -> u32 {
        let allowed = self.ends[1 - side].syn.as_ref().and_then(|syn| syn.mss).map(u32::from);
        let own = self.ends[side].syn.as_ref().and_then(|syn| syn.mss).map(u32::from);
        let option = if self.offered(|syn| syn.timestamps) == Some(true) { 12 } else { 0 };
        match allowed {
            // An end that announces a smaller MSS has a smaller path MTU, and does not send larger segments either.
            Some(allowed) => allowed.min(own.unwrap_or(allowed)).saturating_sub(option).max(1),
            None => {
                let size = &self.ends[side].size;
                size.full().unwrap_or_else(|| size.largest().max(ANY_HOST))
            }
        }
    }

    /// The times from the SYN to the SYN-ACK and from that to the acknowledgement.
    pub fn handshake_trips_ns(&self) -> (Option<u64>, Option<u64>) {
        (self.ends[0].handshake_ns(), self.ends[1].handshake_ns())
    }

    pub fn finish(&mut self, shared: &mut Shared) {
        for (direction, flow) in self.flows.iter_mut().enumerate() {
            if let Some(flow) = flow {
                flow.finish(shared);
                shared.keep_runs(self.index, direction.fit_u8());
            }
        }
    }
}
