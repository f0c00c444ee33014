//! Decodes TCP segments from frames: IPv4 (RFC 791), IPv6 (RFC 8200), TCP (RFC 9293) and its options.
//!
//! The payload is not needed, so a frame may be cut anywhere after the TCP header's window field.

use crate::decode::link;
use crate::decode::segment::{Endpoint, Options, Segment};
use crate::decode::skip::{Skip, field};
use crate::decode::tunnel;
use crate::format::frames::Frame;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most nested tunnels: a hostile packet may have hundreds.
const MAX_TUNNELS: usize = 8;

/// The segment in `frame`, also inside a tunnel.
pub fn segment(frame: &Frame<'_>) -> Result<Segment, Skip> {
    let mut cursor = link::ip_header(frame.link, frame.data)?;
    for _ in 0..=MAX_TUNNELS {
        let on_wire = cursor.end.unwrap_or(frame.wire as usize).saturating_sub(cursor.at);
        let packet = frame.data.get(cursor.at..).unwrap_or_default();
        let ip = match packet.first().map(|byte| byte >> 4) {
            Some(4) => ipv4(packet, on_wire)?,
            Some(6) => ipv6(packet, on_wire)?,
            _ => return Err(Skip::Unreadable),
        };
        // Some senders count the frame's padding as packet data; PPPoE has the right length.
        let ip = match cursor.end {
            Some(_) => Ip { length: ip.length.min(on_wire.saturating_sub(ip.header)), ..ip },
            None => ip,
        };
        let inside = cursor.skip(ip.header);
        cursor = match ip.protocol {
            TCP => return tcp(frame, packet, ip, cursor.via),
            // IPv4 and IPv6 in IP (RFC 2003, 4213).
            4 | 41 => inside.enclosed_by(u32::from(ip.protocol)),
            47 => tunnel::gre(frame.data, inside)?,
            17 => tunnel::udp(frame.data, inside)?,
            50 => return Err(Skip::Unread("IPsec")),
            115 => return Err(Skip::Unread("L2TP")),
            137 => return Err(Skip::Unread("MPLS in IP")),
            _ => return Err(Skip::NotTcp),
        };
    }
    Err(Skip::Unread("tunnels in tunnels"))
}

/// The facts of an IP header, and where TCP begins behind it.
struct Ip {
    source: IpAddr,
    target: IpAddr,
    id: Option<u16>,
    ttl: u8,
    ecn: u8,
    protocol: u8,
    header: usize,
    /// Bytes behind the IP headers, on the wire.
    length: usize,
}

const TCP: u8 = 6;

fn ipv4(packet: &[u8], on_wire: usize) -> Result<Ip, Skip> {
    let fixed: [u8; 20] = field(packet, 0)?;
    let offset = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff;
    if offset != 0 {
        return Err(if fixed[9] == TCP { Skip::Fragment } else { Skip::NotTcp });
    }
    let header = usize::from(fixed[0] & 0x0f) * 4;
    let total = match u16::from_be_bytes([fixed[2], fixed[3]]) {
        // Segmentation offload: the card fills in the length.
        0 => on_wire,
        total => usize::from(total),
    };
    if header < fixed.len() {
        return Err(Skip::Unreadable);
    }
    let address = |at: usize| IpAddr::V4(Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]));
    Ok(Ip {
        source: address(12),
        target: address(16),
        id: Some(u16::from_be_bytes([fixed[4], fixed[5]])),
        ttl: fixed[8],
        ecn: fixed[1] & 0x03,
        protocol: fixed[9],
        header,
        length: total.checked_sub(header).ok_or(Skip::Unreadable)?,
    })
}

fn ipv6(packet: &[u8], on_wire: usize) -> Result<Ip, Skip> {
    const FIXED: usize = 40;
    let fixed: [u8; FIXED] = field(packet, 0)?;
    let mut length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let jumbo = length == 0;
    if jumbo {
        length = on_wire.saturating_sub(FIXED);
    }
    let mut next = fixed[6];
    let mut header = FIXED;
    while matches!(next, 0 | 43 | 44 | 51 | 60 | 135 | 139 | 140) {
        let [following, size, rest @ ..]: [u8; 4] = field(packet, header)?;
        let extension = match next {
            // Hop by hop, routing, destination options, mobility, HIP, shim6.
            0 | 43 | 60 | 135 | 139 | 140 => 8 + 8 * usize::from(size),
            // The authentication header counts in words of four bytes.
            51 => 8 + 4 * usize::from(size),
            // A fragment.
            _ => {
                if u16::from_be_bytes(rest) & 0xfff8 != 0 {
                    return Err(if following == TCP { Skip::Fragment } else { Skip::NotTcp });
                }
                8
            }
        };
        if next == 0 && jumbo {
            length = jumbo_length(packet, header + 2).unwrap_or(length);
        }
        header += extension;
        next = following;
    }
    let address = |at: usize| field(packet, at).map(|bytes: [u8; 16]| IpAddr::V6(Ipv6Addr::from(bytes)));
    Ok(Ip {
        source: address(8)?,
        target: address(24)?,
        id: None,
        ttl: fixed[7],
        ecn: (fixed[1] >> 4) & 0x03,
        protocol: next,
        header,
        length: length.checked_sub(header - FIXED).ok_or(Skip::Unreadable)?,
    })
}

/// The payload length in a jumbo payload option at `at` (RFC 2675); Linux also uses it for super-packets.
fn jumbo_length(packet: &[u8], at: usize) -> Option<usize> {
    match field(packet, at).ok()? {
        [0xc2, 4, a, b, c, d] => Some(u32::from_be_bytes([a, b, c, d]) as usize),
        _ => None,
    }
}

fn tcp(frame: &Frame<'_>, packet: &[u8], ip: Ip, via: u32) -> Result<Segment, Skip> {
    const FIXED: usize = 20;
    let start: [u8; 16] = field(packet, ip.header)?;
    let word = |at: usize| u32::from_be_bytes([start[at], start[at + 1], start[at + 2], start[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([start[at], start[at + 1]]);
    let header = usize::from(start[12] >> 4) * 4;
    if header < FIXED || header > ip.length {
        return Err(Skip::Unreadable);
    }
    let end = ip.header + header;
    let options = packet.get(ip.header + FIXED..end.min(packet.len())).unwrap_or_default();
    Ok(Segment {
        frame: frame.number,
        time_ns: frame.time_ns,
        source: Endpoint { address: ip.source, port: half(0) },
        target: Endpoint { address: ip.target, port: half(2) },
        seq: word(4),
        ack: word(8),
        flags: start[13],
        window: half(14),
        payload: u32::try_from(ip.length - header).unwrap_or(u32::MAX),
        options: tcp_options(options, packet.len() < end),
        ip_id: ip.id,
        ttl: ip.ttl,
        ecn: ip.ecn,
        via,
        cut: packet.len() < end,
    })
}

/// Largest shift of the window (RFC 7323 section 2.3: a larger one counts as this).
const LARGEST_SCALE: u8 = 14;

/// Options up to the first one with an impossible length, or that the capture has `cut` off; only complete SACK blocks.
fn tcp_options(mut bytes: &[u8], cut: bool) -> Options {
    let mut options = Options::default();
    loop {
        match *bytes {
            // No operation.
            [1, ref rest @ ..] => bytes = rest,
            [0, ..] | [_] | [] => return options,
            [kind, length, ..] => {
                let Some(value) = bytes.get(2..usize::from(length)) else {
                    if cut && kind == SACK && length % 8 == 2 {
                        sacks(&mut options, &bytes[2..]);
                    }
                    return options;
                };
                tcp_option(&mut options, kind, value);
                bytes = &bytes[usize::from(length)..];
            }
        }
    }
}

/// Records one option; an option with another length than in its RFC is ignored.
fn tcp_option(options: &mut Options, kind: u8, value: &[u8]) {
    match (kind, value) {
        (2, &[high, low]) => options.mss = Some(u16::from_be_bytes([high, low])),
        (3, &[scale]) => options.window_scale = Some(scale.min(LARGEST_SCALE)),
        (4, []) => options.sack_permitted = true,
        (SACK, blocks) if blocks.len() % 8 == 0 => sacks(options, blocks),
        (8, value) if value.len() == 8 => options.timestamps = Some(pair(value)),
        _ => {}
    }
}

const SACK: u8 = 5;

fn sacks(options: &mut Options, blocks: &[u8]) {
    for block in blocks.chunks_exact(8) {
        let (left, right) = pair(block);
        options.add_sack(left, right);
    }
}

/// The two numbers in eight bytes.
fn pair(bytes: &[u8]) -> (u32, u32) {
    let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (word(0), word(4))
}
