//! Captures: frames read from pcap and pcapng, TCP connections out of them, and what is told of each.

mod analysis;
mod buffer;
mod capture_point;
#[cfg(test)]
mod clauses;
mod connection;
mod connections;
mod copies;
mod counts;
mod decode;
mod details;
mod echo;
mod end;
mod facts;
mod flow;
mod frames;
mod gilbert;
mod identification;
mod kind;
mod limits;
mod link;
mod loss_facts;
mod losses;
mod outstanding;
mod pcap;
mod pcapng;
mod problems;
mod reader;
mod round_trips;
mod sack_blocks;
pub mod segment;
mod sequence;
mod series;
mod shared;
mod source;
mod spread;
pub mod tables;
mod writer;

pub use analysis::Analysis;
pub use link::LinkType;
pub use problems::ReadError;
pub use reader::{Counts, Reader};
pub use segment::{Endpoint, Options, Segment};
pub use writer::{HEADERS_ONLY, Ping, Writer};
