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
mod decode;
mod format;
mod output;
pub mod path;

pub use decode::link::LinkType;
pub use decode::reader::{Counts, Reader};
pub use decode::segment::{self, Endpoint, Options, Segment};
pub use format::problems::ReadError;
pub use output::analysis::Analysis;
pub use output::retention::{Retention, RetentionPolicy};
pub use output::tables;
pub use output::writer::{HEADERS_ONLY, Ping, Writer};
