//! Options of queueing disciplines in the binary form of rtnetlink (linux/pkt_sched.h), in the machine's byte order.

use sawtooth_units::width::Fit;

/// Packets or bytes: a queue that is never full.
pub const UNLIMITED: u32 = (1 << 31) - 1;
/// Bytes of an Ethernet header, and the number of the link type.
const ETHERNET: u16 = 14;
const LINK_ETHERNET: u8 = 1;

/// The limits of a queue and the overhead of its frames, which Linux takes besides the discipline's parameters.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub packets: Option<u64>,
    pub bytes: Option<u64>,
    /// Bytes that each frame takes beside its own.
    pub overhead: u16,
}

impl Room {
    /// The limit in packets.
    pub fn packets(self) -> u32 {
        self.packets.map_or(UNLIMITED, saturating)
    }

    /// The limit in bytes, for disciplines that keep it in a signed number.
    pub fn bytes(self) -> u32 {
        self.bytes.map_or(UNLIMITED, saturating).min(UNLIMITED)
    }

    /// The overhead beyond an IP packet.
    pub fn beyond_ip(self) -> u32 {
        u32::from(ETHERNET + self.overhead)
    }
}

/// An attribute, padded to four bytes.
pub fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = (4 + value.len()).fit_u16();
    let mut made = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    made.extend_from_slice(value);
    made.resize(made.len().next_multiple_of(4), 0);
    made
}

/// Attributes of 32 bits each; those without a value are left out.
pub fn numbers(values: &[(u16, Option<u32>)]) -> Vec<u8> {
    values
        .iter()
        .filter_map(|(kind, value)| value.map(|value| attribute(*kind, &value.to_ne_bytes())))
        .flatten()
        .collect()
}

/// Numbers of 32 bits in a row.
pub fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// Microseconds, at least one.
pub fn us(ns: u64) -> u32 {
    let (whole, rest) = (ns / 1000, ns % 1000);
    let up = rest > 500 || (rest == 500 && whole % 2 == 1);
    saturating((whole + u64::from(up)).max(1))
}

pub fn saturating(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// `tc_ratespec`. The size of its table's cells is ignored, but must not be 0.
pub fn rate(bps: u64, overhead: u16) -> Vec<u8> {
    let mut made = vec![3, LINK_ETHERNET];
    made.extend([overhead.to_ne_bytes(), [0; 2], [0; 2]].concat());
    made.extend(saturating(bytes_per_second(bps).max(1)).to_ne_bytes());
    made
}

/// A rate that does not fit into 32 bits of bytes per second.
pub fn large_rate(kind: u16, bps: u64) -> Vec<u8> {
    let rate = bytes_per_second(bps);
    if rate > u64::from(u32::MAX) { attribute(kind, &rate.to_ne_bytes()) } else { Vec::new() }
}

/// Rounded, halves to even.
fn bytes_per_second(bps: u64) -> u64 {
    let (whole, rest) = (bps / 8, bps % 8);
    whole + u64::from(rest > 4 || (rest == 4 && whole % 2 == 1))
}
