//! One captured TCP segment.

use std::net::IpAddr;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    pub address: IpAddr,
    pub port: u16,
}

/// The TCP options that matter to the analysis (RFC 9293, 7323, 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    /// TSval, TSecr.
    pub timestamps: Option<(u32, u32)>,
    sacks: [(u32, u32); 4],
    sack_count: u8,
}

impl Options {
    /// SACK blocks in the option's order, left and right edge.
    pub fn sacks(&self) -> &[(u32, u32)] {
        &self.sacks[..usize::from(self.sack_count)]
    }

    /// Adds a SACK block; there is room for four (RFC 2018 section 3), further ones are dropped.
    pub fn add_sack(&mut self, left: u32, right: u32) {
        if let Some(place) = self.sacks.get_mut(usize::from(self.sack_count)) {
            *place = (left, right);
            self.sack_count += 1;
        }
    }
}

pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const PSH: u8 = 0x08;
pub const ACK: u8 = 0x10;
pub const URG: u8 = 0x20;
pub const ECE: u8 = 0x40;
pub const CWR: u8 = 0x80;

/// The headers of a segment; numbers as on the wire, in host byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// Number of its frame in the file, from 1 as Wireshark counts.
    pub frame: u64,
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    pub source: Endpoint,
    pub target: Endpoint,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    /// Unscaled.
    pub window: u16,
    /// Payload bytes by the IP header, even if the capture kept fewer. A super-packet from segmentation offload whose
    /// IP length is 0 counts by the frame's length.
    pub payload: u32,
    pub options: Options,
    /// IPv4 identification, which Linux increments for each packet of a connection.
    pub ip_id: Option<u16>,
    pub ttl: u8,
    /// The two ECN bits of the IP header (RFC 3168).
    pub ecn: u8,
    /// The enclosing VLANs, labels and tunnels, hashed into a number; 0 for none.
    pub via: u32,
    /// The TCP header was cut off: flags and numbers are valid, options and SACK blocks may be missing.
    pub cut: bool,
}
