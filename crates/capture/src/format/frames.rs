//! Reads frames from a capture file, pcap or pcapng, one at a time.

use crate::decode::copies::Device;
use crate::decode::link::{self, LinkType};
use crate::format::buffer::Buffer;
use crate::format::pcap::Pcap;
use crate::format::pcapng::Pcapng;
use crate::format::problems::{Problems, ReadError};
use crate::format::record::Broken;
use crate::format::source::Source;

/// One captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Frame number, from 1.
    pub number: u64,
    /// Offset of its record in the uncompressed file.
    pub byte: u64,
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    pub link: LinkType,
    pub device: Device,
    /// Bytes of the whole frame on the wire, at least those of `data`.
    pub wire: u32,
    /// The bytes that the capture kept.
    pub data: &'a [u8],
}

enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// The frames of a capture, in the file's order. Memory does not grow with the file.
pub struct Frames {
    buffer: Buffer,
    format: Format,
    number: u64,
    ended: bool,
}

impl Frames {
    pub fn new(source: Source) -> Result<Self, ReadError> {
        let mut buffer = Buffer::new(source);
        if !buffer.need(4) {
            let text = buffer.failure().unwrap_or("it has less than 4 bytes").to_owned();
            return Err(ReadError::NotACapture(text));
        }
        let format = if Pcapng::begins(&buffer) {
            Format::Pcapng(Pcapng::default())
        } else {
            Format::Pcap(Pcap::open(&mut buffer)?)
        };
        Ok(Frames { buffer, format, number: 0, ended: false })
    }

    /// The next frame; None if the capture ends or is damaged (`problems` then says how).
    pub fn next_frame(&mut self, problems: &mut Problems) -> Option<Frame<'_>> {
        if self.ended {
            return None;
        }
        let next = self.number + 1;
        let found = match &mut self.format {
            Format::Pcap(pcap) => pcap.next_record(&mut self.buffer),
            Format::Pcapng(pcapng) => pcapng.next_record(&mut self.buffer, next, problems),
        };
        match found {
            Ok(Some(record)) => {
                self.number = next;
                let data = &self.buffer.passed(record.kept + record.behind)[..record.kept];
                Some(Frame {
                    number: next,
                    byte: record.byte,
                    time_ns: record.time_ns,
                    link: record.link,
                    device: link::device(record.link, record.interface, data),
                    wire: record.wire.max(u32::try_from(record.kept).unwrap_or(u32::MAX)),
                    data,
                })
            }
            Ok(None) => {
                self.ended = true;
                if let Some(failure) = self.buffer.failure() {
                    problems.add(next, self.buffer.position(), failure);
                }
                None
            }
            Err(Broken { byte, text }) => {
                self.ended = true;
                match self.buffer.failure() {
                    Some(failure) => problems.add(next, byte, format_args!("{text}: {failure}")),
                    None => problems.add(next, byte, text),
                }
                None
            }
        }
    }

    pub fn source(&self) -> &Source {
        self.buffer.source()
    }
}
