//! Tunnels: where the content begins behind the header of a GRE or UDP tunnel.
//!
//! etherparse 0.21 reads none of them. Each is a header of a few bytes whose first bytes give its length. A UDP port
//! alone does not make a tunnel: a datagram that does not begin like one is other traffic on that port.

use crate::decode::link::{Cursor, after_ethertype, after_ppp, of_type};
use crate::decode::skip::{Skip, field};

const ETHERNET: usize = 12;

/// GRE (RFC 2784, 2890), also PPTP's (RFC 2637), with ERSPAN inside.
pub fn gre(data: &[u8], cursor: Cursor) -> Result<Cursor, Skip> {
    let [flags, version, high, low]: [u8; 4] = field(data, cursor.at)?;
    let has = |bit: u8| usize::from(flags & bit != 0) * 4;
    let protocol = u16::from_be_bytes([high, low]);
    if version & 7 == 1 {
        // The key is always present; an acknowledgement number may be. Without a sequence number there is no payload.
        let acknowledges = usize::from(version & 0x80 != 0) * 4;
        let call = u32::from(u16::from_be_bytes(field(data, cursor.at + 6)?));
        let inside = cursor.enclosed_by(call).skip(8 + has(0x10) + acknowledges);
        return if flags & 0x10 == 0 || protocol != 0x880b { Err(Skip::NotTcp) } else { after_ppp(data, inside) };
    }
    if version & 7 != 0 || flags & 0x40 != 0 {
        return Err(Skip::Unread("GRE with a routing header"));
    }
    let key_at = cursor.at + 4 + has(0x80);
    let key = if has(0x20) == 0 { 0 } else { u32::from_be_bytes(field(data, key_at)?) };
    let inside = cursor.enclosed_by(key).skip(4 + has(0x80) + has(0x20) + has(0x10));
    match protocol {
        // ERSPAN type I has no header and no sequence number, type II a header of 8 bytes.
        0x88be if has(0x10) == 0 => after_ethertype(data, inside.skip(ETHERNET)),
        0x88be => after_ethertype(data, inside.skip(8 + ETHERNET)),
        // Type III has 12 bytes, and 8 more if the last bit says so.
        0x22eb => {
            let more = usize::from(field::<1>(data, inside.at + 11)?[0] & 1) * 8;
            after_ethertype(data, inside.skip(12 + more + ETHERNET))
        }
        _ => of_type(data, protocol, inside),
    }
}

/// The tunnel, if there is one, in the UDP datagram whose header is at `cursor`.
pub fn udp(data: &[u8], cursor: Cursor) -> Result<Cursor, Skip> {
    let [a, b, c, d]: [u8; 4] = field(data, cursor.at)?;
    let (source, target) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    let inside = cursor.skip(8);
    // A reply from a tunnel's port is rarely from its other end, except with GTP-U and Teredo.
    match (source, target) {
        (_, 4789 | 8472) => vxlan(data, inside),
        (_, 4790) => vxlan_gpe(data, inside),
        (_, 6081) => geneve(data, inside),
        (_, 2152) | (2152, _) => gtp(data, inside),
        (_, TEREDO_PORT) | (TEREDO_PORT, _) => teredo(data, inside),
        (_, 4754) => gre(data, inside),
        (_, 1701) | (1701, _) => Err(Skip::Unread("L2TP")),
        (_, 4500) | (4500, _) => Err(Skip::Unread("IPsec")),
        (_, 5247) | (5247, _) => Err(Skip::Unread("CAPWAP")),
        (_, 51_820) => Err(Skip::Unread("WireGuard")),
        _ => Err(Skip::NotTcp),
    }
}

/// RFC 7348; the flag says that the network identifier is present.
fn vxlan(data: &[u8], cursor: Cursor) -> Result<Cursor, Skip> {
    let [flags, _, _, _, network @ ..]: [u8; 8] = field(data, cursor.at)?;
    if flags & 0x08 == 0 {
        return Err(Skip::NotTcp);
    }
    after_ethertype(data, cursor.enclosed_by(u32::from_be_bytes(network) >> 8).skip(8 + ETHERNET))
}

/// The draft with a protocol in the header.
fn vxlan_gpe(data: &[u8], cursor: Cursor) -> Result<Cursor, Skip> {
    let [flags, _, _, protocol, network @ ..]: [u8; 8] = field(data, cursor.at)?;
    let inside = cursor.enclosed_by(u32::from_be_bytes(network) >> 8).skip(8);
    match protocol {
        _ if flags & 0x08 == 0 => Err(Skip::NotTcp),
        1 | 2 => Ok(inside),
        3 => after_ethertype(data, inside.skip(ETHERNET)),
        _ => Err(Skip::Unread("network service headers")),
    }
}

/// RFC 8926; the options' length counts words.
fn geneve(data: &[u8], cursor: Cursor) -> Result<Cursor, Skip> {
    let [first, _, high, low, network @ ..]: [u8; 8] = field(data, cursor.at)?;
    if first >> 6 != 0 {
        return Err(Skip::NotTcp);
    }
    let inside = cursor.enclosed_by(u32::from_be_bytes(network) >> 8).skip(8 + 4 * usize::from(first & 0x3f));
    of_type(data, u16::from_be_bytes([high, low]), inside)
}

/// GTP-U, 3GPP TS 29.281: a G-PDU of version 1 contains a packet, after extension headers that each name the next.
fn gtp(data: &[u8], cursor: Cursor) -> Result<Cursor, Skip> {
    let [flags, kind, _, _, tunnel @ ..]: [u8; 8] = field(data, cursor.at)?;
    if flags >> 4 != 3 || kind != 255 {
        return Err(Skip::NotTcp);
    }
    let mut inside = cursor.enclosed_by(u32::from_be_bytes(tunnel)).skip(8);
    if flags & 7 != 0 {
        let mut next = field::<4>(data, inside.at)?[3];
        inside = inside.skip(4);
        while flags & 4 != 0 && next != 0 {
            let length = 4 * usize::from(field::<1>(data, inside.at)?[0]);
            if length == 0 {
                return Err(Skip::Unreadable);
            }
            next = field::<1>(data, inside.at + length - 1)?[0];
            inside = inside.skip(length);
        }
    }
    Ok(inside)
}

const TEREDO_PORT: u16 = 3544;

/// RFC 4380: IPv6 in UDP, perhaps after authentication and origin headers.
fn teredo(data: &[u8], datagram: Cursor) -> Result<Cursor, Skip> {
    let end = datagram.at - 8 + usize::from(u16::from_be_bytes(field(data, datagram.at - 4)?));
    let mut cursor = datagram.enclosed_by(u32::from(TEREDO_PORT));
    if let [0, 1, identity, value] = field::<4>(data, cursor.at)? {
        cursor = cursor.skip(4 + usize::from(identity) + usize::from(value) + 9);
    }
    if let [0, 0] = field::<2>(data, cursor.at)? {
        cursor = cursor.skip(8);
    }
    let [version, .., high, low]: [u8; 6] = field(data, cursor.at)?;
    let fits = cursor.at + 40 + usize::from(u16::from_be_bytes([high, low])) == end;
    if version >> 4 == 6 && fits { Ok(cursor) } else { Err(Skip::NotTcp) }
}
