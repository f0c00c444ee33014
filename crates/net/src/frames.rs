//! Frame sizes, defined in one place.

pub const ETHERNET: u32 = 14;
/// Ethernet, IPv4 and TCP headers without options.
pub const HEADERS: u32 = ETHERNET + 20 + 20;
/// Ethernet, IPv4 and UDP headers.
pub const DATAGRAM_HEADERS: u32 = ETHERNET + 20 + 8;
/// The timestamp option, padded.
pub const TIMESTAMP_OPTION: u32 = 12;
/// Options of a SYN: MSS, SACK permitted, timestamps, window scale, padded.
pub const SYN_OPTIONS: u32 = 20;
/// Payload of a reader's request: about what a browser sends for an object.
pub const REQUEST_BYTES: u32 = 400;
/// An ICMP echo of ping's default size: 56 bytes of data.
pub const PROBE_SIZE: u16 = 98;

/// Bytes of a SACK option with `blocks` blocks, padded.
pub const fn sack_option(blocks: u8) -> u32 {
    if blocks == 0 { 0 } else { 4 + 8 * blocks as u32 }
}
