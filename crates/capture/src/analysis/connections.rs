//! All connections of a capture, found by their addresses and ports.

#![expect(clippy::disallowed_types, reason = "connections are looked up in the map, which is never walked")]

use std::collections::HashMap;

use crate::analysis::connection::Connection;
use crate::analysis::shared::Shared;
use crate::decode::segment::{Endpoint, Segment};
use crate::output::retention::{Retention, RetentionPolicy};
use sawtooth_units::width::Fit;

/// Most connections. This bounds the memory of a SYN flood, at about 500 to 900 bytes each.
pub const MOST_CONNECTIONS: usize = 1 << 20;

/// Analyzes a capture: takes its segments in order, then has the results.
#[derive(Debug)]
pub struct Connections {
    pub all: Vec<Connection>,
    pub shared: Shared,
    by_endpoints: HashMap<(Endpoint, Endpoint), u32>,
    latest: Option<((Endpoint, Endpoint), u32)>,
    pub retention: Retention,
    /// Segments of connections beyond the limit.
    pub passed_over: u64,
}

impl Connections {
    /// `start_ns` is the time of the capture's first packet; all segments of the connections that `policy` selects are
    /// kept.
    pub fn new(start_ns: u64, policy: RetentionPolicy) -> Self {
        Connections {
            all: Vec::new(),
            shared: Shared::new(start_ns),
            by_endpoints: HashMap::new(),
            latest: None,
            retention: Retention::new(policy),
            passed_over: 0,
        }
    }

    pub fn take(&mut self, segment: &Segment) {
        let Some(index) = self.index(segment) else {
            self.passed_over += 1;
            return;
        };
        let directions = self.shared.directions;
        let intervals = self.shared.intervals;
        let connection = &mut self.all[index as usize];
        self.shared.details = self.retention.borrow(index);
        connection.take(segment, &mut self.shared);
        if let Some(details) = self.shared.details.take() {
            self.retention.give_back(index, details);
        }
        if self.shared.directions != directions && self.shared.intervals < intervals {
            self.shorten();
        }
    }

    /// Closes all connections at the capture's end.
    pub fn finish(&mut self) {
        for connection in &mut self.all {
            connection.finish(&mut self.shared);
        }
    }

    /// Shortens all series to the new share of the budget.
    fn shorten(&mut self) {
        for flow in self.all.iter_mut().flat_map(|connection| &mut connection.flows).flatten() {
            flow.series.shorten(self.shared.intervals);
        }
    }

    fn index(&mut self, segment: &Segment) -> Option<u32> {
        let key = if segment.source <= segment.target {
            (segment.source, segment.target)
        } else {
            (segment.target, segment.source)
        };
        let known = match self.latest {
            Some((latest, index)) if latest == key => Some(index),
            _ => self.by_endpoints.get(&key).copied(),
        };
        let index = match known {
            Some(index) if !self.all[index as usize].is_over_for(segment) => index,
            _ => self.open(key, segment)?,
        };
        self.latest = Some((key, index));
        Some(index)
    }

    fn open(&mut self, key: (Endpoint, Endpoint), first: &Segment) -> Option<u32> {
        if self.all.len() >= MOST_CONNECTIONS {
            return None;
        }
        let index = self.all.len().fit_u32();
        self.all.push(Connection::new(index, first));
        self.retention.begin();
        self.by_endpoints.insert(key, index);
        Some(index)
    }
}
