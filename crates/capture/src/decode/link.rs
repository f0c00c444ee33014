//! Link layers: where the IP header of a frame begins.

use crate::decode::copies::Device;
use crate::decode::skip::{Skip, field};
use std::fmt;

/// Supported link-layer header types, by their numbers in capture files (tcpdump.org/linktypes.html).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkType {
    Null,
    Ethernet,
    Ppp,
    Raw,
    LinuxCooked,
    LinuxCooked2,
    /// Not supported: none of its packets counts as TCP.
    Other(u16),
}

impl LinkType {
    pub fn from_number(number: u16) -> Self {
        match number {
            // NULL has its address family in the capturing machine's byte order, LOOP in network order: both are tried.
            0 | 108 => LinkType::Null,
            1 => LinkType::Ethernet,
            9 | 50 => LinkType::Ppp,
            // Some systems write 12 and 14 for 101.
            12 | 14 | 101 | 228 | 229 => LinkType::Raw,
            113 => LinkType::LinuxCooked,
            276 => LinkType::LinuxCooked2,
            other => LinkType::Other(other),
        }
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkType::Null => f.write_str("loopback"),
            LinkType::Ethernet => f.write_str("ethernet"),
            LinkType::Ppp => f.write_str("ppp"),
            LinkType::Raw => f.write_str("raw-ip"),
            LinkType::LinuxCooked => f.write_str("linux-cooked"),
            LinkType::LinuxCooked2 => f.write_str("linux-cooked-2"),
            LinkType::Other(number) => write!(f, "type-{number}"),
        }
    }
}

/// Where in a frame a header begins, and what encloses it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    pub at: usize,
    /// A number that depends on the enclosing tags, labels or tunnels; 0 without any.
    pub via: u32,
    /// Where its content ends, if an enclosing header says so: padding follows.
    pub end: Option<usize>,
}

impl Cursor {
    pub fn at(at: usize) -> Self {
        Cursor { at, ..Cursor::default() }
    }

    /// The position after a header of this many bytes.
    pub fn skip(self, bytes: usize) -> Self {
        Cursor { at: self.at + bytes, ..self }
    }

    /// The position inside something that `tag` distinguishes from others of its kind.
    pub fn enclosed_by(self, tag: u32) -> Self {
        Cursor { via: self.via.rotate_left(7) ^ tag.wrapping_add(1).wrapping_mul(0x9e37_79b9), ..self }
    }
}

/// Where the IP header in a frame begins.
pub fn ip_header(link: LinkType, data: &[u8]) -> Result<Cursor, Skip> {
    match link {
        LinkType::Raw => Ok(Cursor::at(0)),
        LinkType::Ethernet => after_ethertype(data, Cursor::at(12)),
        LinkType::LinuxCooked => after_ethertype(data, Cursor::at(14)),
        LinkType::LinuxCooked2 => match u16::from_be_bytes(field(data, 0)?) {
            // The tag is at the start of the payload.
            VLAN | SERVICE_VLAN => after_ethertype(data, vlan(data, Cursor::at(18))?),
            ethertype => of_type(data, ethertype, Cursor::at(20)),
        },
        LinkType::Null => {
            let family: [u8; 4] = field(data, 0)?;
            let known = |family| matches!(family, AF_INET | AF_INET6_LINUX | 24 | 28 | 30);
            let ip = known(u32::from_le_bytes(family)) || known(u32::from_be_bytes(family));
            ip.then_some(Cursor::at(4)).ok_or(Skip::NotTcp)
        }
        LinkType::Ppp => after_ppp(data, Cursor::at(0)),
        LinkType::Other(_) => Err(Skip::NotTcp),
    }
}

/// The device of a frame: the file's `interface`, if it has several, and the pseudo-header that Linux adds.
pub fn device(link: LinkType, interface: Option<u32>, data: &[u8]) -> Device {
    let index = match link {
        LinkType::LinuxCooked2 => field(data, 4).map_or(0, u32::from_be_bytes),
        LinkType::LinuxCooked if interface.is_none() => return Device::Unknown,
        _ if interface.is_none() => return Device::Only,
        _ => 0,
    };
    let outgoing = link == LinkType::LinuxCooked2 && data.get(10) == Some(&OUTGOING);
    Device::Id(u64::from(interface.unwrap_or(0)) << 33 | u64::from(index) << 1 | u64::from(outgoing))
}

/// Packet type of packets sent by the host, in Linux's cooked header.
const OUTGOING: u8 = 4;
const VLAN: u16 = 0x8100;
/// 802.1ad.
const SERVICE_VLAN: u16 = 0x88a8;
/// EtherTypes of outer tags before 802.1ad.
const OLD_SERVICE_VLANS: [u16; 2] = [0x9100, 0x9200];
/// RFC 2516, session stage.
const PPPOE: u16 = 0x8864;

const AF_INET: u32 = 2;
const AF_INET6_LINUX: u32 = 10;

/// MPLS (RFC 3032), unicast and multicast.
const MPLS: [u16; 2] = [0x8847, 0x8848];
/// The largest value that is a length and not a type (IEEE 802.3).
const LONGEST: u16 = 1500;

/// Follows the EtherType at `cursor` through any number of VLAN tags.
pub fn after_ethertype(data: &[u8], mut cursor: Cursor) -> Result<Cursor, Skip> {
    loop {
        match u16::from_be_bytes(field(data, cursor.at)?) {
            VLAN | SERVICE_VLAN => cursor = vlan(data, cursor)?,
            ethertype if OLD_SERVICE_VLANS.contains(&ethertype) => cursor = vlan(data, cursor)?,
            length @ ..=LONGEST => {
                let cursor = cursor.skip(2);
                // LLC with SNAP and an EtherType (RFC 1042); 4 in Linux's cooked header says that LLC follows.
                return match field::<8>(data, cursor.at)? {
                    [0xaa, 0xaa, 3, 0, 0, 0 | 0xf8, ..] => after_ethertype(data, cursor.skip(6)),
                    _ if length == 0 => Err(Skip::Unreadable),
                    _ => Err(Skip::NotTcp),
                };
            }
            ethertype => return of_type(data, ethertype, cursor.skip(2)),
        }
    }
}

/// The position of the content that an EtherType announces at `cursor`.
pub fn of_type(data: &[u8], ethertype: u16, cursor: Cursor) -> Result<Cursor, Skip> {
    match ethertype {
        0x0800 | 0x86dd => Ok(cursor),
        VLAN | SERVICE_VLAN => after_ethertype(data, cursor.enclosed_by(tag(data, cursor.at)?).skip(2)),
        PPPOE => {
            let length = tag(data, cursor.at + 4)? as usize;
            let session = cursor.enclosed_by(tag(data, cursor.at + 2)?).skip(6);
            after_ppp(data, Cursor { end: Some(session.at + length), ..session })
        }
        _ if MPLS.contains(&ethertype) => after_labels(data, cursor),
        TRANSPARENT_ETHERNET => after_ethertype(data, cursor.skip(12)),
        0x880b => after_ppp(data, cursor),
        0x88e5 => Err(Skip::Unread("MACsec")),
        0x88e7 => Err(Skip::Unread("provider backbone bridging")),
        0x894f => Err(Skip::Unread("network service headers")),
        _ => Err(Skip::NotTcp),
    }
}

/// A whole Ethernet frame (RFC 1701).
const TRANSPARENT_ETHERNET: u16 = 0x6558;

/// The position after the VLAN tag whose EtherType is at `cursor`: the next EtherType.
fn vlan(data: &[u8], cursor: Cursor) -> Result<Cursor, Skip> {
    Ok(cursor.enclosed_by(tag(data, cursor.at + 2)?).skip(4))
}

fn tag(data: &[u8], at: usize) -> Result<u32, Skip> {
    field(data, at).map(|bytes| u32::from(u16::from_be_bytes(bytes)))
}

fn after_labels(data: &[u8], mut cursor: Cursor) -> Result<Cursor, Skip> {
    loop {
        let entry = u32::from_be_bytes(field(data, cursor.at)?);
        cursor = cursor.enclosed_by(entry >> 12).skip(4);
        if entry & 0x100 != 0 {
            break;
        }
    }
    // The labels do not say what follows. A pseudowire's Ethernet may have a control word, whose first bits are 0 (RFC
    // 4385).
    match field::<1>(data, cursor.at)?[0] >> 4 {
        4 | 6 => Ok(cursor),
        0 => after_ethertype(data, cursor.skip(4 + 12)),
        _ => after_ethertype(data, cursor.skip(12)),
    }
}

/// A PPP frame: address and control, and the first byte of the protocol, may be compressed away (RFC 1661, 1662).
pub fn after_ppp(data: &[u8], cursor: Cursor) -> Result<Cursor, Skip> {
    let start = match data.get(cursor.at..) {
        Some([0xff, 3, ..]) => cursor.skip(2),
        _ => cursor,
    };
    match field::<2>(data, start.at)? {
        [0, 0x21 | 0x57] => Ok(start.skip(2)),
        [0x21 | 0x57, _] => Ok(start.skip(1)),
        [2, 0x81] => after_labels(data, start.skip(2)),
        [0, 0xfd] => Err(Skip::Unread("compressed or encrypted PPP")),
        _ => Err(Skip::NotTcp),
    }
}
