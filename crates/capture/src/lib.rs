//! Captures: reads frames from pcap and pcapng, finds their TCP connections, and analyzes each.

#![cfg_attr(
    not(test),
    warn(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        clippy::expect_used,
        clippy::unwrap_used
    )
)]

mod analysis;
mod buffer;
mod bursts;
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
mod gaps;
mod gilbert;
mod identification;
mod kept;
mod kind;
mod limits;
mod link;
mod loss_facts;
mod losses;
mod outstanding;
pub mod path;
mod pcap;
mod pcapng;
mod pieces;
mod problems;
mod reader;
mod recent;
mod record;
mod round_trips;
mod sack_blocks;
pub mod segment;
mod segment_size;
mod sequence;
mod series;
mod shared;
mod skip;
mod source;
mod spread;
pub mod tables;
mod tunnel;
mod writer;

pub use analysis::Analysis;
pub use kept::{Kept, Wanted};
pub use link::LinkType;
pub use problems::ReadError;
pub use reader::{Counts, Reader};
pub use segment::{Endpoint, Options, Segment};
pub use writer::{HEADERS_ONLY, Ping, Writer};
