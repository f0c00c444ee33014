//! What capture files are made of: streams, pcap and pcapng records, frames.

pub mod buffer;
pub mod frames;
pub mod pcap;
pub mod pcapng;
pub mod problems;
pub mod record;
pub mod source;
