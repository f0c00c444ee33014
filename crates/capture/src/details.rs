//! Every segment of one connection, as rows of the tables `segments` and `sacks`.

use crate::kind::Kind;
use crate::segment::Segment;
use crate::tables::{Column, Table};

/// A segment with what the analysis made of it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub t_s: f64,
    pub direction: u8,
    pub seq: i64,
    pub ack: i64,
    /// Bytes, scaled.
    pub window: u64,
    pub kind: Kind,
    pub rtt_s: f64,
}

/// Columns; see the reference of captures.
#[derive(Debug, Default)]
pub struct Details {
    /// With the columns that a picture does not need: timestamps, round-trip times and frames.
    whole: bool,
    pub t_s: Vec<f64>,
    pub direction: Vec<u8>,
    pub seq: Vec<i64>,
    pub length: Vec<u32>,
    pub ack: Vec<i64>,
    pub window: Vec<u64>,
    pub flags: Vec<u8>,
    pub kind: Vec<u8>,
    pub tsval: Vec<i64>,
    pub tsecr: Vec<i64>,
    pub rtt_s: Vec<f64>,
    pub frame: Vec<u64>,
    pub sack_segment: Vec<u64>,
    pub sack_start: Vec<i64>,
    pub sack_end: Vec<i64>,
    pub sack_dsack: Vec<bool>,
}

impl Details {
    pub fn new(whole: bool) -> Self {
        Details { whole, ..Details::default() }
    }

    /// Segments and SACK blocks.
    pub fn rows(&self) -> usize {
        self.t_s.len() + self.sack_segment.len()
    }

    pub fn push(&mut self, segment: &Segment, row: Row) {
        self.t_s.push(row.t_s);
        self.direction.push(row.direction);
        self.seq.push(row.seq);
        self.length.push(segment.payload);
        self.ack.push(row.ack);
        self.window.push(row.window);
        self.flags.push(segment.flags);
        self.kind.push(row.kind as u8);
        if !self.whole {
            return;
        }
        let (tsval, tsecr) = match segment.options.timestamps {
            Some((tsval, tsecr)) => (i64::from(tsval), i64::from(tsecr)),
            None => (-1, -1),
        };
        self.tsval.push(tsval);
        self.tsecr.push(tsecr);
        self.rtt_s.push(row.rtt_s);
        self.frame.push(segment.frame);
    }

    /// A SACK block of the segment that is pushed next.
    pub fn sack(&mut self, start: i64, end: i64, dsack: bool) {
        self.sack_segment.push(self.t_s.len() as u64);
        self.sack_start.push(start);
        self.sack_end.push(end);
        self.sack_dsack.push(dsack);
    }

    /// The receiver reported the retransmission in `row` as a duplicate.
    pub fn spurious(&mut self, row: usize) {
        if let Some(kind) = self.kind.get_mut(row) {
            *kind = Kind::Spurious as u8;
        }
    }

    /// The tables `segments` and `sacks`.
    pub fn tables(self) -> Vec<(&'static str, Table)> {
        let mut segments = vec![
            ("t_s", Column::Float(self.t_s)),
            ("direction", Column::Small(self.direction)),
            ("seq", Column::Integer(self.seq)),
            ("length", Column::Medium(self.length)),
            ("ack", Column::Integer(self.ack)),
            ("window", Column::Unsigned(self.window)),
            ("flags", Column::Small(self.flags)),
            ("kind", Column::Small(self.kind)),
        ];
        if self.whole {
            segments.extend([
                ("tsval", Column::Integer(self.tsval)),
                ("tsecr", Column::Integer(self.tsecr)),
                ("rtt_s", Column::Float(self.rtt_s)),
                ("frame", Column::Unsigned(self.frame)),
            ]);
        }
        let sacks = vec![
            ("segment", Column::Unsigned(self.sack_segment)),
            ("start", Column::Integer(self.sack_start)),
            ("end", Column::Integer(self.sack_end)),
            ("dsack", Column::Flag(self.sack_dsack)),
        ];
        vec![("segments", segments), ("sacks", sacks)]
    }
}
