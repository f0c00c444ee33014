//! Writes pcap files of TCP segments and echoes for any capture tool: Ethernet, nanoseconds, payloads of zeros.

use crate::decode::segment::{Options, Segment};
use sawtooth_units::width::{Fit, Low};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};

/// Keeps all headers of TCP over IPv4 (14 + 20 + at most 60 bytes) and hardly any payload.
pub const HEADERS_ONLY: u32 = 96;

const NANOSECOND_MAGIC: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;
const ICMP: u8 = 1;
const TCP: u8 = 6;
/// Bytes for TCP options in a header (RFC 9293 section 3.1).
const OPTIONS_ROOM: usize = 40;

/// An ICMP echo over IPv4 (RFC 792), as ping sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    pub source: Ipv4Addr,
    pub target: Ipv4Addr,
    pub reply: bool,
    pub identifier: u16,
    pub sequence: u16,
    pub ttl: u8,
    /// Bytes after the header.
    pub data: u16,
}

/// Writes a pcap file, one record per segment. Each is one `write_all`, so use a buffered stream.
pub struct Writer<W: Write> {
    out: W,
    snaplen: u32,
    record: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a file that keeps at most `snaplen` bytes of each frame.
    pub fn new(mut out: W, snaplen: u32) -> io::Result<Self> {
        let (major, minor) = (2_u16, 4_u16);
        out.write_all(&NANOSECOND_MAGIC.to_le_bytes())?;
        out.write_all(&major.to_le_bytes())?;
        out.write_all(&minor.to_le_bytes())?;
        // Time zone and accuracy: always 0.
        out.write_all(&[0; 8])?;
        out.write_all(&snaplen.to_le_bytes())?;
        out.write_all(&ETHERNET.to_le_bytes())?;
        Ok(Writer { out, snaplen, record: Vec::new() })
    }

    /// Writes the frame of `segment`. Its fields `frame` and `cut` have no place in a file; a missing `ip_id` is
    /// written as 0; SACK blocks that do not fit into the header are dropped. A packet of more than 65,535 bytes gets
    /// the IP length 0, as segmentation offload does.
    ///
    /// # Errors
    ///
    /// The stream's errors; `InvalidInput` for addresses of two families, or a time after 2106.
    pub fn write(&mut self, segment: &Segment) -> io::Result<()> {
        let record = self.begin(segment.source.address, segment.target.address);
        let tcp = tcp_header(segment);
        let length = segment.payload.saturating_add(tcp.len().fit_u32());
        match (segment.source.address, segment.target.address) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                let fields = [segment.ecn, segment.ttl, TCP];
                ipv4_header(record, fields, segment.ip_id.unwrap_or(0), length, source.octets(), target.octets());
                finish_tcp(record, tcp, &[&source.octets(), &target.octets()], length);
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                ipv6_header(record, segment, length, source.octets(), target.octets());
                finish_tcp(record, tcp, &[&source.octets(), &target.octets()], length);
            }
            _ => return Err(invalid("an IPv4 and an IPv6 address")),
        }
        self.end(segment.time_ns, segment.payload)
    }

    /// Writes the frame of an echo, with the IP identification 0, as Linux does for unfragmentable packets.
    ///
    /// # Errors
    ///
    /// The stream's errors; `InvalidInput` for a time after 2106.
    pub fn write_ping(&mut self, ping: &Ping) -> io::Result<()> {
        const HEADER: u32 = 8;
        let record = self.begin(ping.source.into(), ping.target.into());
        let length = HEADER + u32::from(ping.data);
        ipv4_header(record, [0, ping.ttl, ICMP], 0, length, ping.source.octets(), ping.target.octets());
        let kind = if ping.reply { [0, 0] } else { [8, 0] };
        let [identifier, sequence] = [ping.identifier, ping.sequence].map(u16::to_be_bytes);
        let sum = checksum(&[&kind, &identifier, &sequence]).to_be_bytes();
        [kind, sum, identifier, sequence].iter().for_each(|field| record.extend_from_slice(field));
        self.end(ping.time_ns, u32::from(ping.data))
    }

    /// Begins a record; its header is written at the end.
    fn begin(&mut self, source: IpAddr, target: IpAddr) -> &mut Vec<u8> {
        self.record.clear();
        self.record.extend_from_slice(&[0; RECORD_HEADER]);
        self.record.extend_from_slice(&hardware_address(target));
        self.record.extend_from_slice(&hardware_address(source));
        &mut self.record
    }

    /// Ends a record that has its headers and is followed by `payload` zeros.
    fn end(&mut self, time_ns: u64, payload: u32) -> io::Result<()> {
        let seconds = u32::try_from(time_ns / 1_000_000_000).map_err(|_| invalid("a time after 2106"))?;
        let nanos = (time_ns % 1_000_000_000) as u32;
        let record = &mut self.record;
        let wire = payload.saturating_add((record.len() - RECORD_HEADER).fit_u32());
        let kept = wire.min(self.snaplen);
        record.resize(RECORD_HEADER + kept as usize, 0);
        for (field, value) in record.chunks_exact_mut(4).zip([seconds, nanos, kept, wire]) {
            field.copy_from_slice(&value.to_le_bytes());
        }
        self.out.write_all(record)
    }

    /// The stream, flushed.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

const RECORD_HEADER: usize = 16;

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// A locally administered address that contains the end of the IP address.
fn hardware_address(address: IpAddr) -> [u8; 6] {
    let [.., a, b, c, d] = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    [0x02, 0x00, a, b, c, d]
}

/// The header for a packet with `length` bytes of content.
fn ipv4_header(
    record: &mut Vec<u8>,
    [ecn, ttl, protocol]: [u8; 3],
    identification: u16,
    length: u32,
    source: [u8; 4],
    target: [u8; 4],
) {
    const HEADER: u32 = 20;
    record.extend_from_slice(&[0x08, 0x00]);
    let start = record.len();
    record.extend_from_slice(&[0x45, ecn & 0x03]);
    record.extend_from_slice(&u16::try_from(length.saturating_add(HEADER)).unwrap_or(0).to_be_bytes());
    record.extend_from_slice(&identification.to_be_bytes());
    // Don't fragment.
    record.extend_from_slice(&[0x40, 0x00, ttl, protocol, 0, 0]);
    record.extend_from_slice(&source);
    record.extend_from_slice(&target);
    let sum = checksum(&[&record[start..]]);
    record[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
}

fn ipv6_header(record: &mut Vec<u8>, segment: &Segment, length: u32, source: [u8; 16], target: [u8; 16]) {
    record.extend_from_slice(&[0x86, 0xdd, 0x60, (segment.ecn & 0x03) << 4, 0, 0]);
    record.extend_from_slice(&u16::try_from(length).unwrap_or(0).to_be_bytes());
    record.extend_from_slice(&[TCP, segment.ttl]);
    record.extend_from_slice(&source);
    record.extend_from_slice(&target);
}

/// The header of `segment` without its checksum.
fn tcp_header(segment: &Segment) -> Vec<u8> {
    let mut header = Vec::with_capacity(60);
    header.extend_from_slice(&segment.source.port.to_be_bytes());
    header.extend_from_slice(&segment.target.port.to_be_bytes());
    header.extend_from_slice(&segment.seq.to_be_bytes());
    header.extend_from_slice(&segment.ack.to_be_bytes());
    header.extend_from_slice(&[0, segment.flags]);
    header.extend_from_slice(&segment.window.to_be_bytes());
    // Checksum and urgent pointer.
    header.extend_from_slice(&[0; 4]);
    add_options(&mut header, &segment.options);
    header[12] = (header.len().fit_u8() / 4) << 4;
    header
}

const NOP: u8 = 1;

/// Options in the order and with the padding of Linux (`tcp_options_write`): MSS, SACK permitted in the place of the
/// padding before the timestamps, window scale, SACK blocks.
fn add_options(header: &mut Vec<u8>, options: &Options) {
    let start = header.len();
    if let Some(mss) = options.mss {
        header.extend_from_slice(&[2, 4]);
        header.extend_from_slice(&mss.to_be_bytes());
    }
    if options.sack_permitted {
        let padded: &[u8] = if options.timestamps.is_some() { &[4, 2] } else { &[NOP, NOP, 4, 2] };
        header.extend_from_slice(padded);
    }
    if let Some((value, echo)) = options.timestamps {
        if !options.sack_permitted {
            header.extend_from_slice(&[NOP, NOP]);
        }
        header.extend_from_slice(&[8, 10]);
        header.extend_from_slice(&value.to_be_bytes());
        header.extend_from_slice(&echo.to_be_bytes());
    }
    if let Some(scale) = options.window_scale {
        header.extend_from_slice(&[NOP, 3, 3, scale]);
    }
    let room = (OPTIONS_ROOM - (header.len() - start)).saturating_sub(4) / 8;
    let sacks = &options.sacks()[..options.sacks().len().min(room)];
    if !sacks.is_empty() {
        header.extend_from_slice(&[NOP, NOP, 5, 2 + 8 * sacks.len().fit_u8()]);
        for (left, right) in sacks {
            header.extend_from_slice(&left.to_be_bytes());
            header.extend_from_slice(&right.to_be_bytes());
        }
    }
}

/// Adds the TCP header with its checksum (RFC 9293 section 3.1); the payload's zeros do not change it.
fn finish_tcp(record: &mut Vec<u8>, mut header: Vec<u8>, addresses: &[&[u8]; 2], length: u32) {
    let sum = checksum(&[addresses[0], addresses[1], &[0, TCP], &length.to_be_bytes(), &header]);
    header[16..18].copy_from_slice(&sum.to_be_bytes());
    record.extend_from_slice(&header);
}

/// The Internet checksum (RFC 1071) of parts with even lengths.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks_exact(2));
    let mut sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum.low_u16())
}
