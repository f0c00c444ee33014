//! Reads TCP segments from a capture, and counts everything else.

use crate::decode::copies::Copies;
use crate::decode::link::LinkType;
use crate::decode::packet;
use crate::decode::segment::Segment;
use crate::decode::skip::Skip;
use crate::format::frames::Frames;
use crate::format::problems::{Problems, ReadError};
use crate::format::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

/// What was read so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub packets: u64,
    pub bytes_on_wire: u64,
    /// Other protocols, and unsupported link types.
    pub not_tcp: u64,
    /// Among these, by name, what may contain TCP but is not decoded.
    pub unread: BTreeMap<&'static str, u64>,
    /// IP fragments after the first, which alone has the TCP header.
    pub fragments: u64,
    /// Too short or inconsistent to find a TCP header.
    pub unreadable: u64,
    /// TCP segments that other devices in the same capture had already recorded.
    pub copies: u64,
    /// Packets of which the capture kept less than was on the wire.
    pub truncated: u64,
    /// Earliest and latest packet, nanoseconds since 1970; 0 if there is none.
    pub first_ns: u64,
    pub last_ns: u64,
    /// Link types of the packets.
    pub link_types: BTreeSet<LinkType>,
}

/// Reads a capture from front to end. Memory does not grow with the file.
pub struct Reader {
    frames: Frames,
    counts: Counts,
    copies: Copies,
    problems: Problems,
}

impl Reader {
    /// The file `path`, or standard input if it is `-`.
    pub fn open(path: &str) -> Result<Self, ReadError> {
        Source::open(path).and_then(Self::from_source)
    }

    /// A capture in any stream, compressed or not.
    pub fn new(stream: impl Read + Send + 'static) -> Result<Self, ReadError> {
        Source::new(stream).and_then(Self::from_source)
    }

    fn from_source(source: Source) -> Result<Self, ReadError> {
        Ok(Reader {
            frames: Frames::new(source)?,
            counts: Counts::default(),
            copies: Copies::default(),
            problems: Problems::default(),
        })
    }

    /// The next TCP segment, only once even if several devices saw it; None if the capture ends or is damaged
    /// (`problems` then says how).
    pub fn next_segment(&mut self) -> Option<Segment> {
        let counts = &mut self.counts;
        while let Some(frame) = self.frames.next_frame(&mut self.problems) {
            counts.first_ns = if counts.packets == 0 { frame.time_ns } else { counts.first_ns.min(frame.time_ns) };
            counts.last_ns = counts.last_ns.max(frame.time_ns);
            counts.packets += 1;
            counts.bytes_on_wire += u64::from(frame.wire);
            counts.truncated += u64::from(frame.data.len() < frame.wire as usize);
            if counts.link_types.insert(frame.link) && matches!(frame.link, LinkType::Other(_)) {
                self.problems.add(frame.number, frame.byte, format_args!("link {} is not read", frame.link));
            }
            let found = packet::segment(&frame);
            match &found {
                Ok(segment) if self.copies.is_copy(segment, frame.device) => counts.copies += 1,
                Ok(_) => return found.ok(),
                Err(Skip::NotTcp) => counts.not_tcp += 1,
                Err(Skip::Unread(name)) => {
                    counts.not_tcp += 1;
                    *counts.unread.entry(name).or_default() += 1;
                }
                Err(Skip::Fragment) => counts.fragments += 1,
                Err(Skip::Unreadable) => counts.unreadable += 1,
            }
        }
        None
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Problems in the file, each with its packet (from 1) and byte (from 0, uncompressed); a bounded list.
    pub fn problems(&self) -> &[String] {
        self.problems.list()
    }

    /// Bytes taken from the file so far, as stored (compressed).
    pub fn bytes_read(&self) -> u64 {
        self.frames.source().bytes_read()
    }

    /// Bytes of the file, if it is one.
    pub fn size(&self) -> Option<u64> {
        self.frames.source().size()
    }
}
