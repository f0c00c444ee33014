//! Frames and capture files, put together byte by byte.

use sawtooth_capture::{Counts, Reader, Segment};
use std::io::Cursor;

/// All of a capture: its segments, counts and problems.
pub fn read(file: &[u8]) -> (Vec<Segment>, Counts, Vec<String>) {
    let mut reader = Reader::new(Cursor::new(file.to_vec())).expect("a capture");
    let segments = std::iter::from_fn(|| reader.next_segment()).collect();
    (segments, reader.counts().clone(), reader.problems().to_vec())
}

/// The only segment of a capture without problems.
pub fn read_one(file: &[u8]) -> Segment {
    let (segments, counts, problems) = read(file);
    assert_eq!(problems, Vec::<String>::new());
    assert_eq!(segments.len(), 1, "{counts:?}");
    segments[0]
}

/// From port 1000 to 2000, sequence number 1, acknowledgement 2, ACK, window 3.
pub fn tcp(options: &[u8], payload: usize) -> Vec<u8> {
    let words = 5 + options.len().div_ceil(4) as u8;
    let mut bytes = vec![3, 0xe8, 7, 0xd0, 0, 0, 0, 1, 0, 0, 0, 2, words << 4, 0x10, 0, 3, 0, 0, 0, 0];
    bytes.extend_from_slice(options);
    bytes.resize(usize::from(words) * 4 + payload, 0);
    bytes
}

/// From 10.0.0.1 to 10.0.0.2, identification 7, 64 hops, ECN 1.
pub fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let mut bytes = vec![0x45, 1, high, low, 0, 7, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    bytes.extend_from_slice(payload);
    bytes
}

/// From fd00::1 to fd00::2, 64 hops, ECN 1.
pub fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    let mut bytes = vec![0x60, 0x10, 0, 0, high, low, next, 64];
    for end in [1, 2] {
        bytes.extend_from_slice(&[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
    }
    bytes.extend_from_slice(payload);
    bytes
}

/// `between` are the bytes from the first EtherType to the IP header.
pub fn ethernet(between: &[u8], packet: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], between, packet].concat()
}

/// TCP over IPv4 over Ethernet.
pub fn plain(options: &[u8], payload: usize) -> Vec<u8> {
    ethernet(&[8, 0], &ipv4(6, &tcp(options, payload)))
}

#[derive(Clone, Copy)]
pub enum Order {
    Little,
    Big,
}

impl Order {
    pub fn word(self, value: u32) -> [u8; 4] {
        match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    pub fn half(self, value: u16) -> [u8; 2] {
        match self {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    fn words(self, values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| self.word(*value)).collect()
    }
}

pub const MICROSECONDS: u32 = 0xa1b2_c3d4;
pub const NANOSECONDS: u32 = 0xa1b2_3c4d;

pub fn pcap_header(order: Order, magic: u32, link: u32) -> Vec<u8> {
    [order.word(magic).as_slice(), &order.half(2), &order.half(4), &order.words(&[0, 0, 262_144, link])].concat()
}

/// A record at 5 s and 6 units, of which `wire` bytes were on the wire.
pub fn pcap_record(order: Order, frame: &[u8], wire: usize) -> Vec<u8> {
    [order.words(&[5, 6, frame.len() as u32, wire as u32]).as_slice(), frame].concat()
}

/// A little-endian pcap file of whole frames.
pub fn pcap(link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = pcap_header(Order::Little, MICROSECONDS, link);
    for frame in frames {
        file.extend(pcap_record(Order::Little, frame, frame.len()));
    }
    file
}

/// A pcapng block of `body`, padded.
pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = body.len().next_multiple_of(4) - body.len();
    let length = (body.len() + padding + 12) as u32;
    [&order.words(&[kind, length]), body, &[0; 3][..padding], &order.word(length)].concat()
}

pub fn section(order: Order) -> Vec<u8> {
    let version = [order.half(1), order.half(0)].concat();
    block(order, 0x0a0d_0d0a, &[order.word(0x1a2b_3c4d).as_slice(), &version, &[0xff; 8]].concat())
}

/// An interface; options are code and value.
pub fn interface(order: Order, link: u16, snaplen: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = [order.half(link).as_slice(), &[0, 0], &order.word(snaplen)].concat();
    for (code, value) in options {
        body.extend([order.half(*code), order.half(value.len() as u16)].concat());
        body.extend_from_slice(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    block(order, 1, &body)
}

pub fn enhanced_packet(order: Order, interface: u32, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let length = frame.len() as u32;
    let head = order.words(&[interface, (ticks >> 32) as u32, ticks as u32, length, length]);
    block(order, 6, &[&head, frame].concat())
}

pub fn simple_packet(order: Order, frame: &[u8], wire: u32) -> Vec<u8> {
    block(order, 3, &[order.word(wire).as_slice(), frame].concat())
}

pub fn obsolete_packet(order: Order, interface: u16, ticks: u64, frame: &[u8]) -> Vec<u8> {
    let length = frame.len() as u32;
    let head = [order.half(interface), order.half(0)].concat();
    let rest = order.words(&[(ticks >> 32) as u32, ticks as u32, length, length]);
    block(order, 2, &[&head, rest.as_slice(), frame].concat())
}
