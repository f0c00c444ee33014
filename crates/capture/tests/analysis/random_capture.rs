//! Captures made out of any bytes: whatever they are, the packets are ones that TCP may send. Two connections of two
//! ends each send data, send it again, overtake, lose, acknowledge with SACK and DSACK, close their windows, begin and
//! end.

use std::io::Cursor;

use sawtooth_capture::segment::{ACK, CWR, ECE, FIN, PSH, RST, SYN};
use sawtooth_capture::{Analysis, Endpoint, HEADERS_ONLY, Options, RetentionPolicy, Segment, Writer};

const MSS: u32 = 1448;
/// Packets of a capture, at most.
const MAX_PACKETS: usize = 4096;

/// One end of a connection; numbers are relative to `isn`.
#[derive(Clone, Copy, Default)]
struct End {
    isn: u32,
    sent: u32,
    acknowledged: u32,
    window: u16,
    identification: u16,
    closed: bool,
}

struct Generator<'a> {
    bytes: &'a [u8],
    time_ns: u64,
    /// The connection and the end that act.
    connection: usize,
    side: usize,
    ends: [[End; 2]; 2],
    packets: Vec<Segment>,
}

/// A pcap file given as `bytes`.
pub fn capture(bytes: &[u8]) -> Vec<u8> {
    let mut generator = Generator {
        bytes,
        time_ns: 1_700_000_000_000_000_000,
        connection: 0,
        side: 0,
        ends: Default::default(),
        packets: Vec::new(),
    };
    for (number, end) in generator.ends.iter_mut().flatten().enumerate() {
        // Data crosses 2^32 in one of them.
        *end = End { isn: [u32::MAX - 20_000, 7, 1 << 31, 0][number], sent: 1, acknowledged: 1, window: 500, ..*end };
    }
    while !generator.bytes.is_empty() && generator.packets.len() < MAX_PACKETS {
        generator.act();
    }
    let mut writer = Writer::new(Vec::new(), HEADERS_ONLY).expect("memory takes all");
    for packet in &generator.packets {
        writer.write(packet).expect("memory takes all");
    }
    writer.finish().expect("memory takes all")
}

impl Generator<'_> {
    fn byte(&mut self) -> u32 {
        let (first, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
        self.bytes = rest;
        u32::from(*first)
    }

    fn own(&mut self) -> &mut End {
        &mut self.ends[self.connection][self.side]
    }

    fn peer(&self) -> End {
        self.ends[self.connection][1 - self.side]
    }

    fn act(&mut self) {
        let (act, how) = (self.byte(), self.byte());
        match act % 16 {
            0..=2 => self.data(how),
            3 => self.again(how),
            // Lost before the capture point.
            4 => self.own().sent += MSS * (how % 4 + 1),
            5 | 6 => self.acknowledge(how, 0),
            7 | 8 => self.acknowledge(how, how % 4 + 1),
            9 => self.time_ns += u64::from(how) * 100_000,
            10 => self.time_ns += u64::from(how) * 10_000_000,
            11 => self.own().window = (how * how) as u16,
            12 => (self.connection, self.side) = (how as usize % 2, how as usize / 2 % 2),
            13 => self.open(how),
            14 => self.close(how),
            _ => self.repeat(how),
        }
        self.time_ns += 1_000;
    }

    fn data(&mut self, how: u32) {
        let seq = self.own().sent;
        let length = [MSS, 1, how, MSS * (how % 9 + 1)][how as usize % 4];
        self.own().sent += length;
        self.put(ACK | if how.is_multiple_of(8) { PSH } else { 0 }, seq, length, &[]);
    }

    /// From this many segments before the end.
    fn again(&mut self, how: u32) {
        let seq = self.own().sent.saturating_sub(MSS * (how % 32 + 1)).max(1);
        let length = (MSS * (how / 64 + 1)).min(self.own().sent - seq);
        self.put(ACK, seq, length, &[]);
    }

    /// Up to a part of what the peer sent, with SACK blocks of the rest; the first of four is a DSACK.
    fn acknowledge(&mut self, how: u32, blocks: u32) {
        let end = self.peer();
        let up_to = end.acknowledged + (end.sent.saturating_sub(end.acknowledged)) / 8 * (how / 32);
        self.ends[self.connection][1 - self.side].acknowledged = up_to;
        let mut sacks = Vec::new();
        if blocks == 4 {
            sacks.push((up_to.saturating_sub(MSS), up_to));
        }
        for block in 1..=blocks.min(3) {
            let left = up_to + MSS * (2 * block - 1);
            if left + MSS <= end.sent {
                sacks.push((left, left + MSS));
            }
        }
        let seq = self.own().sent;
        self.put(ACK | if how == 77 { ECE } else { 0 }, seq, 0, &sacks);
    }

    fn open(&mut self, how: u32) {
        if how.is_multiple_of(8) {
            // The ports are used again.
            for end in &mut self.ends[self.connection] {
                *end = End { isn: end.isn.wrapping_add(end.sent + 64_000), sent: 1, acknowledged: 1, ..*end };
                end.closed = false;
            }
        }
        let answer = if self.side == 1 { ACK } else { 0 };
        self.put(SYN | answer | if how % 8 == 1 { ECE | CWR } else { 0 }, 0, 0, &[]);
    }

    fn close(&mut self, how: u32) {
        let seq = self.own().sent;
        if how.is_multiple_of(4) {
            self.put(RST | ACK, seq, 0, &[]);
        } else if !self.own().closed {
            self.own().closed = true;
            self.own().sent += how % 2 * 100 + 1;
            self.put(FIN | ACK, seq, how % 2 * 100, &[]);
        }
    }

    /// An earlier packet comes by late, or once more.
    fn repeat(&mut self, how: u32) {
        if let Some(&packet) = self.packets.iter().rev().nth(how as usize) {
            self.packets.push(Segment { time_ns: self.time_ns, ..packet });
        }
    }

    fn put(&mut self, flags: u8, seq: u32, payload: u32, sacks: &[(u32, u32)]) {
        let (peer, connection, side) = (self.peer(), self.connection, self.side);
        let mut options = Options::default();
        if flags & SYN != 0 {
            (options.mss, options.window_scale, options.sack_permitted) = (Some(1460), Some(connection as u8), true);
        }
        if connection == 0 {
            let clock = (self.time_ns / 1_000_000) as u32;
            options.timestamps = Some((clock, clock.wrapping_sub(20)));
        }
        for &(left, right) in sacks {
            options.add_sack(peer.isn.wrapping_add(left), peer.isn.wrapping_add(right));
        }
        let own = self.own();
        own.identification = own.identification.wrapping_add(payload.div_ceil(MSS).max(1) as u16);
        let end = |side: usize| Endpoint { address: [10, 0, 0, side as u8].into(), port: [40_000, 80][side] };
        let ack = if flags & ACK == 0 { 0 } else { peer.isn.wrapping_add(peer.acknowledged) };
        let segment = Segment {
            frame: 0,
            time_ns: self.time_ns,
            source: Endpoint { port: end(side).port + connection as u16, ..end(side) },
            target: Endpoint { port: end(1 - side).port + connection as u16, ..end(1 - side) },
            seq: self.own().isn.wrapping_add(seq),
            ack,
            flags,
            window: self.own().window,
            payload,
            options,
            ip_id: Some(self.own().identification),
            ttl: 64,
            ecn: 2,
            via: 0,
            cut: false,
        };
        self.packets.push(segment);
    }
}

/// Analyses a capture file and checks what holds for any; the facts as JSON.
pub fn check(file: &[u8]) -> String {
    let mut analysis = Analysis::new(Cursor::new(file.to_vec()), RetentionPolicy::One(0)).expect("a capture");
    while !analysis.advance(100) {}
    let (facts, mut tables, mut kept) = analysis.finish();
    tables.extend(kept.only().expect("one is selected"));
    let mut packets = facts.not_tcp + facts.fragments + facts.unreadable + facts.copies;
    let mut of_first = 0;
    for connection in &facts.connections {
        assert!(connection.start_s <= connection.end_s);
        let all: u64 = connection.directions.iter().map(|direction| direction.packets).sum();
        packets += all;
        of_first += if connection.index == 0 { all } else { 0 };
        for data in connection.directions.iter().filter_map(|direction| direction.data.as_ref()) {
            let (counts, volume) = (&data.counts, &data.volume);
            assert_eq!(counts.retransmits, counts.fast + counts.timeout_retransmits + counts.tail_probes);
            assert!(counts.timeouts <= counts.timeout_retransmits);
            assert!(counts.reported_spurious <= counts.spurious && counts.spurious <= counts.retransmits);
            assert!(counts.filled_holes <= counts.retransmits && counts.dsacks <= counts.sack_blocks);
            assert!(counts.retransmitted_bytes <= volume.payload_bytes);
            assert!(counts.out_of_order + counts.duplicated_packets <= volume.data_packets);
            let loss = &data.loss;
            assert!(loss.lost <= loss.segments && loss.lost <= loss.lost_copies && loss.runs <= loss.lost);
            assert_eq!(loss.before + loss.after, loss.lost_copies);
            assert!(u64::from(loss.longest_run) <= loss.lost);
            let limits = &data.limits;
            let judged_s = limits.unknown_s + limits.sender_s + limits.receiver_window_s;
            let judged_s = judged_s + limits.congestion_window_s + limits.path_s + limits.idle_s;
            assert!((judged_s - data.duration_s).abs() < 1e-3, "{judged_s} of {} s", data.duration_s);
        }
    }
    assert_eq!(packets, facts.packets);
    for (name, table) in &tables {
        let rows = table[0].1.len();
        assert!(table.iter().all(|(_, column)| column.len() == rows), "{name}");
        assert!(*name != "segments" || rows as u64 == of_first);
    }
    serde_json::to_string(&facts).expect("JSON")
}
