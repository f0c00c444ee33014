//! From a frame to its TCP segment: link layers, tunnels, IP and TCP headers, copies of packets.

pub mod copies;
pub mod link;
pub mod packet;
pub mod reader;
pub mod segment;
pub mod skip;
pub mod tunnel;
