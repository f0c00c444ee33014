//! Captures at hosts: each packet as its host hands it to its first link, and as it comes in.
//!
//! What a packet says on the wire beyond what the simulation needs (addresses, ports, bytes instead of segments,
//! identifications) is worked out once, when it is sent, and kept while it travels. Nothing here acts on what it sees.

use crate::engine::clock::Simulation;
use crate::frames::{PROBE_SIZE, TIMESTAMP_OPTION};
use crate::network::link::Handle;
use crate::network::packet::{Kind, Packet};
use crate::rng::{Purpose, Rng};
use crate::scenario::Scenario;
use sawtooth_capture::segment::{ACK, FIN, PSH, RST, SYN};
use sawtooth_capture::{Endpoint, HEADERS_ONLY, Options, Ping, Segment, Writer};
use sawtooth_tcp::packet::Burst;
use sawtooth_units::Time;
use sawtooth_units::width::{Fit, Low};
use std::io::{self, Write};
use std::net::Ipv4Addr;

/// When a run begins: 2026-01-01 00:00:00 UTC, as the clock of the engine `kernel`.
const EPOCH_NS: u64 = 1_767_225_600 * 1_000_000_000;
const SERVER_PORT: u64 = 5_201;
/// Ports of clients: all from here on.
const CLIENT_PORT: u64 = 20_000;
const TTL: u8 = 64;
/// Of a probe's 98 bytes: Ethernet, IPv4 and ICMP.
const PING_HEADERS: u16 = 14 + 20 + 8;

/// Where a capture goes. Records are small: buffer it.
pub type Output = Box<dyn Write + Send + Sync>;

/// The captures of a run.
pub struct Taps {
    /// Of each host.
    files: Vec<Option<Writer<Output>>>,
    /// What travels, by the slot where its packet is kept.
    frames: Vec<Frame>,
    /// Of each connection: its client's and its server's.
    identifications: Vec<[Identification; 2]>,
    fault: Option<(usize, io::Error)>,
}

#[derive(Clone, Copy)]
struct Frame {
    /// Where its route begins.
    begins: u32,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Tcp(Segment),
    Echo(Ping),
}

/// The IPv4 identification of the next packet that an end of a connection sends.
#[derive(Clone, Copy)]
struct Identification {
    generation: u32,
    next: u16,
}

/// What is drawn by chance for a connection: initial sequence numbers and identifications of client and server.
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

impl Taps {
    /// Captures at hosts, by their index in `scenario`.
    ///
    /// # Errors
    /// Those of the streams.
    pub fn new(scenario: &Scenario, outputs: impl IntoIterator<Item = (usize, Output)>) -> io::Result<Self> {
        let mut files: Vec<_> = scenario.hosts.iter().map(|_| None).collect();
        for (host, output) in outputs {
            files[host] = Some(Writer::new(output, HEADERS_ONLY)?);
        }
        let connections = scenario.flows.iter().map(|flow| flow.count.fit_u32()).sum();
        let first = |connection| {
            let drawn = Drawn::new(scenario.seed, connection, 0);
            drawn.identification.map(|next| Identification { generation: 0, next })
        };
        Ok(Taps { files, frames: Vec::new(), identifications: (0..connections).map(first).collect(), fault: None })
    }

    /// Hosts with a capture.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = usize> {
        self.files.iter().enumerate().filter(|(_, file)| file.is_some()).map(|(host, _)| host)
    }

    /// The identification of the first of `count` packets. Linux counts a connection's packets up from a random start;
    /// what a closed connection still sends has none.
    fn identify(&mut self, connection: u32, end: usize, generation: u32, drawn: &Drawn, count: u32) -> u16 {
        let identification = &mut self.identifications[connection as usize][end];
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

    fn write(&mut self, host: usize, what: What, now: Time, ttl: u8) {
        let Some(file) = &mut self.files[host] else { return };
        let time_ns = EPOCH_NS + now.nanos();
        let written = match what {
            What::Tcp(segment) => file.write(&Segment { time_ns, ttl, ..segment }),
            What::Echo(ping) => file.write_ping(&Ping { time_ns, ttl, ..ping }),
        };
        if let Err(error) = written {
            self.files[host] = None;
            self.fault.get_or_insert((host, error));
        }
    }

    /// The end of the run.
    pub(crate) fn finish(&mut self) {
        for (host, file) in self.files.iter_mut().enumerate() {
            if let Some(Err(error)) = file.take().map(Writer::finish) {
                self.fault.get_or_insert((host, error));
            }
        }
    }
}

/// Each host has one address, as in the testbed: 10.0.0.1 and so on.
fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits((10 << 24) + host.fit_u32() + 1)
}

impl Kind {
    fn forward(self) -> bool {
        !matches!(self, Kind::SynAck | Kind::Ack | Kind::ProbeReply)
    }
}

impl Simulation {
    /// The first write that failed, with the host of that capture, which ends there. Told once.
    pub fn capture_fault(&mut self) -> Option<(usize, io::Error)> {
        self.taps.as_mut()?.fault.take()
    }

    /// A host hands a packet to its first link. It must be kept next, if at all.
    #[cold]
    #[inline(never)]
    pub(crate) fn tap_sent(&mut self, packet: &Packet) {
        let Some(mut taps) = self.taps.take() else { return };
        let (host, peer) = self.ends(packet);
        let (what, whole) = match packet.kind {
            Kind::ProbeRequest | Kind::ProbeReply => (What::Echo(self.ping(packet, host, peer)), false),
            kind => {
                let offloaded = kind == Kind::Data && self.connections[packet.owner as usize].offload;
                (What::Tcp(self.segment(packet, 1, &mut taps, host, peer)), offloaded)
            }
        };
        // Where segmentation is left to the device the super-packet was seen.
        if !whole {
            taps.write(host, what, self.now, TTL);
        }
        let frame = Frame { begins: packet.at, what };
        let slot = self.packets.next_slot() as usize;
        match taps.frames.get_mut(slot) {
            Some(place) => *place = frame,
            // Slots come one after the other; one that nothing was kept in since is filled later.
            None => taps.frames.resize(slot + 1, frame),
        }
        self.taps = Some(taps);
    }

    /// A host hands a super-packet to a device that cuts it, which loses it if `lost`. `packet` is any of its segments.
    #[cold]
    #[inline(never)]
    pub(crate) fn tap_super_packet(&mut self, packet: &Packet, burst: Burst, lost: bool) {
        let Some(mut taps) = self.taps.take() else { return };
        let (host, peer) = self.ends(packet);
        let packet = Packet { seq: burst.start, push: burst.push, ..*packet };
        let before = taps.identifications[packet.owner as usize][0];
        let segment = self.segment(&packet, burst.count, &mut taps, host, peer);
        if !lost {
            // Its segments, which follow, count for themselves.
            taps.identifications[packet.owner as usize][0] = before;
        }
        taps.write(host, What::Tcp(segment), self.now, TTL);
        self.taps = Some(taps);
    }

    /// A packet comes in over `link`.
    #[cold]
    #[inline(never)]
    pub(crate) fn tap_arrival(&mut self, handle: Handle, link: u32, now: Time) {
        let host = self.scenario.links[link as usize].to;
        let Some(taps) = &mut self.taps else { return };
        if taps.files[host].is_none() {
            return;
        }
        let Frame { begins, what } = taps.frames[handle.slot() as usize];
        let links = self.routes.after(begins, link) - begins;
        let routers = u8::try_from(links - 1).unwrap_or(TTL);
        taps.write(host, what, now, TTL.saturating_sub(routers).max(1));
    }

    /// The hosts that a packet is sent from and to.
    fn ends(&self, packet: &Packet) -> (usize, usize) {
        let owner = packet.owner as usize;
        let (forward, backward) = match packet.kind {
            Kind::ProbeRequest | Kind::ProbeReply => {
                let probe = &self.scenario.probes[owner];
                (&probe.forward, &probe.backward)
            }
            _ => {
                let flow = &self.scenario.flows[self.connections[owner].flow as usize];
                (&flow.forward, &flow.backward)
            }
        };
        let ends = [forward, backward].map(|route| self.scenario.links[route[0]].from);
        if packet.kind.forward() { (ends[0], ends[1]) } else { (ends[1], ends[0]) }
    }

    fn ping(&self, packet: &Packet, host: usize, peer: usize) -> Ping {
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

    /// The TCP segment that `packet` stands for, or the super-packet of `count` segments that begins with it.
    ///
    /// The close has no packets of its own in the simulation: the last data segment carries the client's FIN, and the
    /// acknowledgement of everything the server's.
    fn segment(&self, packet: &Packet, count: u32, taps: &mut Taps, host: usize, peer: usize) -> Segment {
        let Packet { owner, generation, kind, .. } = *packet;
        let connection = &self.connections[owner as usize];
        let drawn = Drawn::new(self.scenario.seed, owner, generation);
        let [client, server] = drawn.sequence;
        let timestamps = connection.timestamps;
        let options_of = |host: u32| self.scenario.hosts[host as usize].options(connection.mss);
        let (from, to) = (options_of(connection.from), options_of(connection.to));
        // What a route of the testbed says (`advmss`): timestamps are not taken off.
        let mss = connection.mss + if timestamps { TIMESTAMP_OPTION } else { 0 };
        let edge = |segments: u64| {
            let fin = u64::from(segments == connection.total);
            client.wrapping_add((1 + connection.bytes(segments) + fin).low_u32())
        };
        let scale = from.window_scale();
        // The client receives no data: its window stays what it was, rounded up to its scale.
        let first_window = from.first_window(mss).max(u64::from(mss));
        let client_window = first_window.div_ceil(1 << scale);
        let mut options = Options::default();
        options.timestamps = timestamps.then_some((packet.tsval, packet.tsecr));
        let mut payload = 0;
        let (seq, ack, flags, window) = match kind {
            Kind::Syn => {
                options.mss = Some(mss.fit_u16());
                options.sack_permitted = from.sack;
                options.timestamps = from.timestamps.then_some((packet.tsval, 0));
                options.window_scale = Some(scale.fit_u8());
                (client, 0, SYN, first_window)
            }
            Kind::SynAck => {
                options.mss = Some(mss.fit_u16());
                options.sack_permitted = connection.sack;
                options.window_scale = Some(to.window_scale().fit_u8());
                (server, client.wrapping_add(1), SYN | ACK, u64::from(packet.window))
            }
            Kind::Data => {
                let end = packet.seq + u64::from(count);
                payload = (connection.bytes(end) - connection.bytes(packet.seq)).fit_u32();
                let push = if packet.push { PSH } else { 0 };
                let fin = if end == connection.total { FIN } else { 0 };
                (edge(packet.seq), server.wrapping_add(1), ACK | push | fin, client_window)
            }
            Kind::Ack => {
                if packet.sack != 0 {
                    for block in self.sacks[packet.sack as usize - 1].blocks() {
                        options.add_sack(edge(block.start), edge(block.end));
                    }
                }
                let fin = if packet.seq == connection.total { FIN } else { 0 };
                let window = u64::from(packet.window) >> to.window_scale();
                (server.wrapping_add(1), edge(packet.seq), ACK | fin, window)
            }
            Kind::Reset => {
                options.timestamps = None;
                (edge(packet.seq), server.wrapping_add(1), RST | ACK, client_window)
            }
            Kind::Established | Kind::ProbeRequest | Kind::ProbeReply => {
                (client.wrapping_add(1), server.wrapping_add(1), ACK, client_window)
            }
        };
        let config = &self.scenario.flows[connection.flow as usize];
        let opened = u64::from(connection.number) + u64::from(generation) * config.count as u64;
        let client_port = CLIENT_PORT + opened % (1 + u64::from(u16::MAX) - CLIENT_PORT);
        let server_port = SERVER_PORT + u64::from(connection.flow);
        let (ports, end) =
            if kind.forward() { ((client_port, server_port), 0) } else { ((server_port, client_port), 1) };
        let ip_id = if kind == Kind::SynAck { 0 } else { taps.identify(owner, end, generation, &drawn, count) };
        Segment {
            frame: 0,
            time_ns: 0,
            source: Endpoint { address: address(host).into(), port: ports.0.fit_u16() },
            target: Endpoint { address: address(peer).into(), port: ports.1.fit_u16() },
            seq,
            ack,
            flags,
            window: window.min(u64::from(u16::MAX)).fit_u16(),
            payload,
            options,
            ip_id: Some(ip_id),
            ttl: TTL,
            ecn: 0,
            via: 0,
            cut: false,
        }
    }
}
