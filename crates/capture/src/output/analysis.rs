//! Analyzes a capture, from its file to its facts and tables.

use std::io::Read;

use crate::analysis::connections::{Connections, MOST_CONNECTIONS};
use crate::analysis::shared::{MOST_LOSS_ROWS, MOST_OUTSTANDING};
use crate::decode::reader::Reader;
use crate::format::problems::ReadError;
use crate::output::facts::{ConnectionFacts, Facts};
use crate::output::retention::{Retention, RetentionPolicy};
use crate::output::tables::{self, Table};
use sawtooth_units::width::Approx;

/// A capture being read. Memory grows with its connections, and with the segments of the connections that `policy`
/// selects.
pub struct Analysis {
    file: String,
    reader: Reader,
    connections: Option<Connections>,
    policy: RetentionPolicy,
}

impl Analysis {
    /// Opens the capture `path` (`-`: standard input); `policy` selects the connections whose every segment is kept.
    pub fn open(path: &str, policy: RetentionPolicy) -> Result<Self, ReadError> {
        Ok(Analysis { file: path.to_owned(), reader: Reader::open(path)?, connections: None, policy })
    }

    /// Opens a capture in any stream.
    pub fn new(stream: impl Read + Send + 'static, policy: RetentionPolicy) -> Result<Self, ReadError> {
        Ok(Analysis { file: "-".to_owned(), reader: Reader::new(stream)?, connections: None, policy })
    }

    /// Takes up to `segments` segments; true at the capture's end.
    pub fn advance(&mut self, segments: u64) -> bool {
        for _ in 0..segments {
            let Some(segment) = self.reader.next_segment() else { return true };
            let (reader, policy) = (&self.reader, self.policy);
            self.connections.get_or_insert_with(|| Connections::new(reader.counts().first_ns, policy)).take(&segment);
        }
        false
    }

    /// Bytes of the file read so far, as stored (compressed).
    pub fn bytes_read(&self) -> u64 {
        self.reader.bytes_read()
    }

    /// Bytes of the file; None for a stream.
    pub fn size(&self) -> Option<u64> {
        self.reader.size()
    }

    /// The results, once the capture's end is reached: facts, the tables `series` and `losses`, and the kept segments.
    pub fn finish(mut self) -> (Facts, Vec<(&'static str, Table)>, Retention) {
        let counts = self.reader.counts();
        let mut connections = self.connections.take().unwrap_or_else(|| Connections::new(counts.first_ns, self.policy));
        connections.finish();
        let mut problems = self.reader.problems().to_vec();
        problems.extend(bounds(&connections));
        let facts = Facts {
            file: self.file,
            packets: counts.packets,
            bytes: counts.bytes_on_wire,
            first_s: counts.first_ns.approx() / 1e9,
            last_s: counts.last_ns.approx() / 1e9,
            link_types: counts.link_types.iter().map(ToString::to_string).collect(),
            truncated_packets: counts.truncated,
            not_tcp: counts.not_tcp,
            not_looked_into: counts.unread.clone(),
            fragments: counts.fragments,
            unreadable: counts.unreadable,
            copies: counts.copies,
            problems,
            connections: connections.all.iter().map(|one| ConnectionFacts::of(one, counts.first_ns)).collect(),
        };
        (facts, tables::tables(&connections), connections.retention)
    }
}

/// Sentences about what the memory bounds left out.
fn bounds(connections: &Connections) -> Vec<String> {
    let shared = &connections.shared;
    let mut problems = Vec::new();
    if connections.passed_over > 0 {
        problems.push(format!(
            "{} segments are of connections after the first {MOST_CONNECTIONS}, and were passed over",
            connections.passed_over
        ));
    }
    if shared.losses_left_out > 0 {
        problems.push(format!(
            "the table of losses ends after {MOST_LOSS_ROWS} rows; {} more are counted",
            shared.losses_left_out
        ));
    }
    if shared.given_up > 0 {
        problems.push(format!(
            "{} segments were never seen acknowledged and given up, to keep to {MOST_OUTSTANDING} a connection",
            shared.given_up
        ));
    }
    problems
}
