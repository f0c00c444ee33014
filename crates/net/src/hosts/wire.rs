//! Header fields that the simulation does not need, for captures: addresses, ports, initial sequence numbers,
//! identifications. Computed once, when a host sends.

use crate::frames::{HEADERS, PROBE_SIZE, REQUEST_BYTES};
use crate::hosts::Hosts;
use crate::hosts::connection::Connection;
use crate::network::Network;
use crate::observe::tap::{TTL, What};
use crate::packet::{CWR, ECE, Kind, PUSH, Packet};
use crate::rng::{Purpose, Rng};
use crate::scenario::{Flow, Scenario};
use sawtooth_capture::segment::{self, ACK, FIN, PSH, RST, SYN};
use sawtooth_capture::{Endpoint, Options, Ping, Segment};
use sawtooth_tcp::packet::{Burst, Sack};
use sawtooth_units::Time;
use sawtooth_units::width::{Fit, Low};
use std::net::Ipv4Addr;

const SERVER_PORT: u64 = 5_201;
/// The first client port; the others follow.
const CLIENT_PORT: u64 = 20_000;
/// Headers of a probe's 98 bytes: Ethernet, IPv4 and ICMP.
const PING_HEADERS: u16 = 14 + 20 + 8;

/// The identifications of each connection's packets: its client's and its server's.
pub struct Wire(Vec<[Identification; 2]>);

/// The IPv4 identification of the next packet that an end of a connection sends.
#[derive(Clone, Copy)]
struct Identification {
    generation: u32,
    next: u16,
}

/// Random values of a connection: initial sequence numbers and identifications of client and server.
struct Drawn {
    sequence: [u32; 2],
    identification: [u16; 2],
}

impl Drawn {
    fn new(seed: u64, connection: u32, generation: u32) -> Self {
        let mut rng = Rng::new(seed, Purpose::Capture, u64::from(connection) << 32 | u64::from(generation));
        let (numbers, identifications) = (rng.next(), rng.next());
        Drawn {
            sequence: [numbers.low_u32(), (numbers >> 32).low_u32()],
            identification: [identifications.low_u16(), (identifications >> 16).low_u16()],
        }
    }
}

impl Wire {
    pub fn new(scenario: &Scenario) -> Self {
        let later = |flow: &&Flow| flow.traffic.arrives() || flow.traffic.datagrams().is_some();
        let from_the_start = scenario.flows.iter().filter(|flow| !later(flow));
        let mut wire = Wire(Vec::new());
        wire.grow(scenario.seed, from_the_start.map(|flow| flow.count).sum());
        wire
    }

    /// Grows to this number of connections.
    pub fn grow(&mut self, seed: u64, connections: usize) {
        let first = |connection: usize| {
            let drawn = Drawn::new(seed, connection.fit_u32(), 0);
            drawn.identification.map(|next| Identification { generation: 0, next })
        };
        self.0.extend((self.0.len()..connections).map(first));
    }

    /// The identification of the first of `count` packets. Linux increments it per connection from a random start;
    /// packets of a closed connection have none.
    fn identify(&mut self, connection: u32, end: usize, generation: u32, drawn: &Drawn, count: u32) -> u16 {
        let identification = &mut self.0[connection as usize][end];
        if generation < identification.generation {
            return 0;
        }
        if generation > identification.generation {
            *identification = Identification { generation, next: drawn.identification[end] };
        }
        let first = identification.next;
        identification.next = first.wrapping_add(count.low_u16());
        first
    }

    /// The TCP segment that `packet` represents, with `payload` bytes, or the super-packet of `count` segments that
    /// begins with it. If a reader opened the connection, `requests` are how many it sent and how many were taken so
    /// far.
    ///
    /// The simulation has no packets for the close: the last data segment carries the client's FIN, and the
    /// acknowledgement of everything the server's.
    fn segment(
        &mut self,
        packet: &Packet,
        [count, payload]: [u32; 2],
        requests: Option<[u64; 2]>,
        sack: &Sack,
        connection: &Connection,
        scenario: &Scenario,
    ) -> Segment {
        let Packet { owner, generation, kind, .. } = *packet;
        let drawn = Drawn::new(scenario.seed, owner, generation);
        let is_read = requests.is_some();
        let [client, server] = drawn.sequence;
        let timestamps = connection.timestamps;
        let options_of = |host: u32| scenario.hosts[host as usize].options(connection.mss);
        let ends = [connection.from, connection.to];
        let [from, to] = if is_read { [ends[1], ends[0]] } else { ends }.map(options_of);
        // As a route of the testbed sets it (`advmss`): timestamps are not subtracted.
        let mss = connection.mss + connection.options();
        let edge = |byte: u64| {
            let fin = u64::from(byte == connection.total);
            if is_read { server } else { client }.wrapping_add((1 + byte + fin).low_u32())
        };
        // What a reader has sent, and what of it has been taken.
        let [request_seq, request_ack] = requests.unwrap_or_default().map(|count| {
            if is_read { client } else { server }.wrapping_add((1 + count * u64::from(REQUEST_BYTES)).low_u32())
        });
        let scale = from.window_scale();
        // The data's sender receives none, so its window stays at its first value, rounded up to its scale.
        let first_window = from.first_window(mss).max(u64::from(mss));
        let sender_scale = if is_read { to } else { from };
        let sender_window =
            sender_scale.first_window(mss).max(u64::from(mss)).div_ceil(1 << sender_scale.window_scale());
        let ack_scale = if is_read { from } else { to }.window_scale();
        let ack_window = u64::from(packet.window) >> ack_scale;
        let mut options = Options::default();
        options.timestamps = timestamps.then_some((packet.tsval, packet.tsecr));
        let (seq, ack, flags, window) = match kind {
            Kind::Syn | Kind::Call => {
                options.mss = Some(mss.fit_u16());
                options.sack_permitted = from.sack;
                options.timestamps = from.timestamps.then_some((packet.tsval, 0));
                options.window_scale = Some(scale.fit_u8());
                (client, 0, SYN, first_window)
            }
            Kind::SynAck | Kind::CallTaken => {
                options.mss = Some(mss.fit_u16());
                options.sack_permitted = connection.sack;
                options.window_scale = Some(to.window_scale().fit_u8());
                // The window of an end that only receives requests is its first one.
                let window = if is_read { to.first_window(mss).max(u64::from(mss)) } else { u64::from(packet.window) };
                (server, client.wrapping_add(1), SYN | ACK, window)
            }
            Kind::Data => {
                let end = packet.seq + u64::from(payload);
                let push = if packet.has(PUSH) { PSH } else { 0 };
                let fin = if end == connection.total { FIN } else { 0 };
                (edge(packet.seq), request_ack, ACK | push | fin, sender_window)
            }
            Kind::Ack => {
                sack.blocks().iter().for_each(|block| options.add_sack(edge(block.start), edge(block.end)));
                let fin = if packet.seq == connection.total { FIN } else { 0 };
                (request_seq, edge(packet.seq), ACK | fin, ack_window)
            }
            Kind::WindowProbe => (edge(packet.seq).wrapping_sub(1), request_ack, ACK, sender_window),
            // A reader that requests has received everything before.
            Kind::Request => {
                let before = request_seq.wrapping_sub(REQUEST_BYTES);
                let had = connection.receiver.as_ref().map_or(0, |receiver| receiver.delivered());
                (before, edge(had), ACK | PSH, ack_window)
            }
            Kind::HangUp => (request_seq, edge(packet.seq), ACK | FIN, ack_window),
            Kind::CallConfirmed => (client.wrapping_add(1), server.wrapping_add(1), ACK, ack_window),
            Kind::Reset => {
                options.timestamps = None;
                (edge(packet.seq), request_ack, RST | ACK, sender_window)
            }
            Kind::Established | Kind::ProbeRequest | Kind::ProbeReply | Kind::Datagram => {
                (client.wrapping_add(1), server.wrapping_add(1), ACK, sender_window)
            }
        };
        let echo = if packet.has(ECE) { segment::ECE } else { 0 } | if packet.has(CWR) { segment::CWR } else { 0 };
        let config = &scenario.flows[connection.flow as usize];
        let opened = if config.traffic.arrives() {
            // Counted over all connections of the flow.
            u64::from(generation)
        } else {
            u64::from(connection.number) + u64::from(generation) * config.count as u64
        };
        let client_port = CLIENT_PORT + opened % (1 + u64::from(u16::MAX) - CLIENT_PORT);
        let server_port = SERVER_PORT + u64::from(connection.flow);
        let [host, peer] = hosts(packet, [connection.from, connection.to]);
        let (ports, end) =
            if kind.forward() != is_read { ((client_port, server_port), 0) } else { ((server_port, client_port), 1) };
        let ip_id = if matches!(kind, Kind::SynAck | Kind::CallTaken) {
            0
        } else {
            self.identify(owner, end, generation, &drawn, count)
        };
        Segment {
            frame: 0,
            time_ns: 0,
            source: Endpoint { address: address(host).into(), port: ports.0.fit_u16() },
            target: Endpoint { address: address(peer).into(), port: ports.1.fit_u16() },
            seq,
            ack,
            flags: flags | echo,
            window: window.min(u64::from(u16::MAX)).fit_u16(),
            payload,
            options,
            ip_id: Some(ip_id),
            ttl: TTL,
            ecn: packet.ecn() as u8,
            via: 0,
            cut: false,
        }
    }
}

/// Each host has one address, as on the testbed: 10.0.0.1 and so on.
fn address(host: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits((10 << 24) + host + 1)
}

fn ping(packet: &Packet, host: u32, peer: u32) -> Ping {
    Ping {
        time_ns: 0,
        source: address(host),
        target: address(peer),
        reply: packet.kind == Kind::ProbeReply,
        identifier: (packet.owner + 1).low_u16(),
        sequence: packet.seq.low_u16(),
        ttl: TTL,
        data: PROBE_SIZE - PING_HEADERS,
    }
}

impl Kind {
    fn forward(self) -> bool {
        let backward =
            [Kind::SynAck, Kind::Ack, Kind::ProbeReply, Kind::Call, Kind::CallConfirmed, Kind::Request, Kind::HangUp];
        !backward.contains(&self)
    }
}

/// The source and destination hosts of a packet; `ends` are those of the forward route.
fn hosts(packet: &Packet, [from, to]: [u32; 2]) -> [u32; 2] {
    if packet.kind.forward() { [from, to] } else { [to, from] }
}

impl Hosts {
    /// A host hands a packet to its first link. It must be the next one kept, if it is kept.
    #[cold]
    #[inline(never)]
    pub(super) fn tap_sent(&mut self, packet: &Packet, now: Time, network: &mut Network) {
        let (Some(taps), Some(wire)) = (&mut network.taps, &mut self.wire) else { return };
        if let Some(trace) = &mut taps.trace {
            let (host, headers) = match packet.kind {
                Kind::Datagram | Kind::ProbeRequest | Kind::ProbeReply => (None, 0),
                _ => {
                    let connection = &self.connections[packet.owner as usize];
                    (Some(hosts(packet, [connection.from, connection.to])[0]), HEADERS + connection.options())
                }
            };
            let slot = network.packets.next_slot();
            match host {
                Some(host) => trace.begin(slot, packet, host, headers, now),
                None => trace.forget(slot),
            }
        }
        if !taps.captures {
            return;
        }
        if packet.kind == Kind::Datagram {
            return taps.keep(network.packets.next_slot(), packet.at, What::Datagram);
        }
        let owner = packet.owner as usize;
        let (host, what, whole) = if let Kind::ProbeRequest | Kind::ProbeReply = packet.kind {
            let probe = &self.scenario.probes[owner];
            let ends = [&probe.forward, &probe.backward].map(|route| self.scenario.links[route[0]].from.fit_u32());
            let [host, peer] = hosts(packet, ends);
            (host, What::Echo(ping(packet, host, peer)), false)
        } else {
            let connection = &self.connections[owner];
            let [host, _] = hosts(packet, [connection.from, connection.to]);
            let sack = network.packets.sack(packet);
            let headers = HEADERS + connection.options();
            let carries = matches!(packet.kind, Kind::Data | Kind::Request);
            let payload = if carries { u32::from(packet.size) - headers } else { 0 };
            let requests = self.readers.requests(connection.flow, connection.number);
            let segment = wire.segment(packet, [1, payload], requests, &sack, connection, &self.scenario);
            (host, What::Tcp(segment), packet.kind == Kind::Data && connection.offload)
        };
        // If the device segments, the super-packet was already recorded.
        if !whole {
            taps.sent(host as usize, what, now);
        }
        taps.keep(network.packets.next_slot(), packet.at, what);
    }

    /// A host hands a super-packet to a device that splits it, which loses it if `lost`. `packet` is any of its
    /// segments.
    #[cold]
    #[inline(never)]
    pub(super) fn tap_super_packet(
        &mut self,
        packet: &Packet,
        burst: Burst,
        lost: bool,
        now: Time,
        network: &mut Network,
    ) {
        let (Some(taps), Some(wire)) = (&mut network.taps, &mut self.wire) else { return };
        if !taps.captures {
            return;
        }
        let packet = Packet { seq: burst.start, flags: packet.flags | if burst.push { PUSH } else { 0 }, ..*packet };
        let owner = packet.owner as usize;
        let connection = &self.connections[owner];
        let before = wire.0[owner][0];
        let requests = self.readers.requests(connection.flow, connection.number);
        let (sizes, sack) = ([burst.count, burst.bytes], Sack::default());
        let segment = wire.segment(&packet, sizes, requests, &sack, connection, &self.scenario);
        if !lost {
            // Its segments, which follow, are counted separately.
            wire.0[owner][0] = before;
        }
        taps.sent(connection.from as usize, What::Tcp(segment), now);
    }
}
