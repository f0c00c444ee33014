//! What a connection's segments say: losses, round trips, limits, in bounded memory.

pub mod bursts;
pub mod capture_point;
#[cfg(test)]
pub mod clauses;
pub mod connection;
pub mod connections;
pub mod counts;
pub mod duplicate_filter;
pub mod echo;
pub mod end;
pub mod flow;
pub mod gaps;
pub mod gilbert;
pub mod identification;
pub mod kind;
pub mod limits;
pub mod losses;
pub mod outstanding;
pub mod quantiles;
pub mod reassembly;
pub mod round_trips;
pub mod sack_blocks;
pub mod segment_size;
pub mod sequence;
pub mod series;
pub mod shared;
