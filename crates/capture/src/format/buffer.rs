//! The part of a stream that is in memory: never more than the largest record, whatever a file claims.

use crate::format::source::Source;
use std::io::{ErrorKind, Read};

/// The largest record that is read, in bytes; libpcap keeps at most 256 KiB of a packet.
pub const LARGEST: usize = 1 << 20;

/// Records of a compressed capture up to which their number is not compared with its size.
const RECORDS: u64 = 1 << 20;
/// Most records per compressed byte. A record takes at least one byte, since its time differs.
const RECORDS_A_BYTE: u64 = 4;
/// Uncompressed bytes up to which their number is not compared with the compressed size.
const UNPACKED: u64 = 1 << 30;
/// Most uncompressed bytes per compressed byte: what gzip reaches with zeros.
const UNPACKED_A_BYTE: u64 = 1_100;

pub struct Buffer {
    source: Source,
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    position: u64,
    /// How often data was passed: about once per record.
    passes: u64,
    ended: bool,
    failure: Option<String>,
}

impl Buffer {
    pub fn new(source: Source) -> Self {
        let bytes = vec![0; LARGEST].into_boxed_slice();
        Buffer { source, bytes, start: 0, end: 0, position: 0, passes: 0, ended: false, failure: None }
    }

    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Offset of the first byte of `data` in the uncompressed stream.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Why the stream could not be read further, if it did not simply end.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The bytes in memory that are not yet passed.
    pub fn data(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The last `length` bytes before `data`.
    pub fn passed(&self, length: usize) -> &[u8] {
        &self.bytes[self.start - length..self.start]
    }

    /// Reads until `data` has at least `length` bytes, at most `LARGEST`. False: the stream ends before that.
    pub fn need(&mut self, length: usize) -> bool {
        debug_assert!(length <= LARGEST);
        if self.end - self.start >= length {
            return true;
        }
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < length && !self.ended {
            if let Some(failure) = self.bomb() {
                self.ended = true;
                self.failure = Some(failure);
                break;
            }
            match self.source.read(&mut self.bytes[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.failure = Some(error.to_string());
                }
            }
        }
        self.end >= length
    }

    /// Why a compressed file is refused as a decompression bomb: it expands to more work than its size justifies.
    fn bomb(&self) -> Option<String> {
        let packed = self.source.bytes_read();
        if !self.source.is_packed() {
            return None;
        }
        if self.passes > RECORDS && self.passes / RECORDS_A_BYTE > packed {
            return Some(format!("{} records from {packed} packed bytes: no packets take so little", self.passes));
        }
        let unpacked = self.position + self.end as u64;
        (unpacked > UNPACKED && unpacked / UNPACKED_A_BYTE > packed)
            .then(|| format!("{packed} packed bytes have become {unpacked}: no capture expands this much"))
    }

    /// Passes `length` bytes of `data`.
    pub fn pass(&mut self, length: usize) {
        debug_assert!(length <= self.end - self.start);
        self.start += length;
        self.position += length as u64;
        self.passes += 1;
    }

    /// Passes `length` bytes, which need not all be in memory. False: the stream has fewer.
    pub fn skip(&mut self, mut length: u64) -> bool {
        while length > 0 {
            if !self.need(1) {
                return false;
            }
            let step = self.data().len().min(usize::try_from(length).unwrap_or(usize::MAX));
            self.pass(step);
            length -= step as u64;
        }
        true
    }
}
