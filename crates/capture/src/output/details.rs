//! Every segment of one connection, as rows of the tables `segments` and `sacks`.

use std::borrow::Cow;

use crate::analysis::kind::Kind;
use crate::decode::segment::Segment;
use crate::output::tables::{Column, Table};
use crate::path::Rows;

/// A segment with its analysis.
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

/// Columns; the reference of captures defines them.
#[derive(Debug, Default)]
pub struct Details {
    /// Also has the columns that pictures and estimates do not need: timestamps and round-trip times.
    whole: bool,
    pub t_s: Vec<f64>,
    pub direction: Vec<u8>,
    pub seq: Vec<i64>,
    pub length: Vec<u32>,
    pub ack: Vec<i64>,
    pub window: Vec<u64>,
    pub flags: Vec<u8>,
    pub kind: Vec<u8>,
    /// Whether each segment has timestamps; then their values and echoes.
    pub stamped: Vec<bool>,
    pub stamps: Vec<[u32; 2]>,
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

    /// Number of segments and SACK blocks.
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
        self.stamped.push(segment.options.timestamps.is_some());
        let (tsval, tsecr) = segment.options.timestamps.unwrap_or_default();
        self.stamps.push([tsval, tsecr]);
        self.frame.push(segment.frame);
        if self.whole {
            self.rtt_s.push(row.rtt_s);
        }
    }

    /// Adds a SACK block of the segment that is pushed next.
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

    /// Values (0) or echoes (1) of timestamps; -1 where a segment has none.
    fn timestamps(&self, which: usize) -> Vec<i64> {
        let value = |(&stamped, stamps): (&bool, &[u32; 2])| if stamped { i64::from(stamps[which]) } else { -1 };
        self.stamped.iter().zip(&self.stamps).map(value).collect()
    }

    /// The rows, for an estimate of the path.
    pub fn as_rows(&self) -> Rows<'_> {
        Rows {
            t_s: &self.t_s,
            direction: &self.direction,
            seq: &self.seq,
            length: &self.length,
            ack: &self.ack,
            kind: &self.kind,
            tsval: Cow::Owned(self.timestamps(0)),
            tsecr: Cow::Owned(self.timestamps(1)),
            sack_segment: &self.sack_segment,
            sack_start: &self.sack_start,
            sack_end: &self.sack_end,
            sack_dsack: &self.sack_dsack,
        }
    }

    /// The tables `segments` and `sacks`.
    pub fn tables(self) -> Vec<(&'static str, Table)> {
        let whole = self.whole.then(|| [0, 1].map(|which| self.timestamps(which)));
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
        if let Some([tsval, tsecr]) = whole {
            segments.extend([
                ("tsval", Column::Integer(tsval)),
                ("tsecr", Column::Integer(tsecr)),
                ("rtt_s", Column::Float(self.rtt_s)),
            ]);
        }
        segments.push(("frame", Column::Unsigned(self.frame)));
        let sacks = vec![
            ("segment", Column::Unsigned(self.sack_segment)),
            ("start", Column::Integer(self.sack_start)),
            ("end", Column::Integer(self.sack_end)),
            ("dsack", Column::Flag(self.sack_dsack)),
        ];
        vec![("segments", segments), ("sacks", sacks)]
    }
}
