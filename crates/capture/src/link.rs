//! Link layers: where the IP header of a frame begins.

use crate::copies::Device;
use crate::decode::Skip;
use crate::decode::field;
use std::fmt;

/// Link-layer header types that are read, by their numbers in capture files (tcpdump.org/linktypes.html).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkType {
    Null,
    Ethernet,
    Ppp,
    Raw,
    LinuxCooked,
    LinuxCooked2,
    /// Not read: none of its packets counts as TCP.
    Other(u16),
}

impl LinkType {
    pub fn from_number(number: u16) -> Self {
        match number {
            // NULL has its family in the order of the capturing machine, LOOP in network order: both are tried.
            0 | 108 => LinkType::Null,
            1 => LinkType::Ethernet,
            9 | 50 => LinkType::Ppp,
            // 12 and 14 are what some systems write for 101.
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

/// Offset of the IP header in a frame.
pub fn ip_header(link: LinkType, data: &[u8]) -> Result<usize, Skip> {
    match link {
        LinkType::Raw => Ok(0),
        LinkType::Ethernet => after_ethertype(data, 12),
        LinkType::LinuxCooked => after_ethertype(data, 14),
        LinkType::LinuxCooked2 => match u16::from_be_bytes(field(data, 0)?) {
            // The tag is where the payload begins.
            VLAN | SERVICE_VLAN => after_ethertype(data, 22),
            ethertype => is_ip(ethertype).then_some(20).ok_or(Skip::NotTcp),
        },
        LinkType::Null => {
            let family: [u8; 4] = field(data, 0)?;
            let known = |family| matches!(family, AF_INET | AF_INET6_LINUX | 24 | 28 | 30);
            let ip = known(u32::from_le_bytes(family)) || known(u32::from_be_bytes(family));
            ip.then_some(4).ok_or(Skip::NotTcp)
        }
        LinkType::Ppp => {
            // RFC 1662: address and control, where they are not compressed away.
            let start = if data.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
            after_ppp_protocol(data, start)
        }
        LinkType::Other(_) => Err(Skip::NotTcp),
    }
}

/// Where a frame was seen: by the file's `interface`, if it has several, and by the header that Linux makes up.
pub fn device(link: LinkType, interface: Option<u32>, data: &[u8]) -> Device {
    let index = match link {
        LinkType::LinuxCooked2 => field(data, 4).map_or(0, u32::from_be_bytes),
        LinkType::LinuxCooked if interface.is_none() => return Device::Untold,
        _ if interface.is_none() => return Device::Only,
        _ => 0,
    };
    let outgoing = link == LinkType::LinuxCooked2 && data.get(10) == Some(&OUTGOING);
    Device::Told(u64::from(interface.unwrap_or(0)) << 33 | u64::from(index) << 1 | u64::from(outgoing))
}

/// Packet type of what the host itself sends, in Linux's cooked header.
const OUTGOING: u8 = 4;
const VLAN: u16 = 0x8100;
/// 802.1ad.
const SERVICE_VLAN: u16 = 0x88a8;
/// What was used for outer tags before 802.1ad.
const OLD_SERVICE_VLANS: [u16; 2] = [0x9100, 0x9200];
/// RFC 2516, session stage.
const PPPOE: u16 = 0x8864;

const AF_INET: u32 = 2;
const AF_INET6_LINUX: u32 = 10;

fn is_ip(ethertype: u16) -> bool {
    matches!(ethertype, 0x0800 | 0x86dd)
}

/// Follows the EtherType at `at` through any number of VLAN tags.
fn after_ethertype(data: &[u8], mut at: usize) -> Result<usize, Skip> {
    loop {
        match u16::from_be_bytes(field(data, at)?) {
            ethertype if is_ip(ethertype) => return Ok(at + 2),
            VLAN | SERVICE_VLAN => at += 4,
            ethertype if OLD_SERVICE_VLANS.contains(&ethertype) => at += 4,
            PPPOE => return after_ppp_protocol(data, at + 8),
            _ => return Err(Skip::NotTcp),
        }
    }
}

fn after_ppp_protocol(data: &[u8], at: usize) -> Result<usize, Skip> {
    match u16::from_be_bytes(field(data, at)?) {
        0x0021 | 0x0057 => Ok(at + 2),
        _ => Err(Skip::NotTcp),
    }
}
