//! The bytes of a capture: a file or any other stream, decompressed if it is gzip or Zstandard.

use crate::format::problems::ReadError;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTANDARD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The largest window that a Zstandard stream may request, as a power of two in bytes: the limit of `zstd` itself.
#[cfg(feature = "zstd")]
const ZSTANDARD_WINDOW: u32 = 27;
/// Magic numbers of other compressed formats, and of data that is compressed twice.
const OTHERS: [(&[u8], &str); 6] = [
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh", "bzip2"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"PK\x03\x04", "zip"),
    (&GZIP, "gzip a second time"),
    (&ZSTANDARD, "Zstandard a second time"),
];
/// Compressed bytes read at once.
const CHUNK: usize = 128 * 1024;

/// The program that compressed data with this beginning, if it is a format not supported here.
pub(crate) fn packed_as(data: &[u8]) -> Option<&'static str> {
    OTHERS.iter().find(|(magic, _)| data.starts_with(magic)).map(|(_, program)| *program)
}

/// A stream of decompressed bytes.
pub struct Source {
    packed: bool,
    stream: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
    size: Option<u64>,
}

impl Source {
    /// The file `path`, or standard input if it is `-`.
    pub fn open(path: &str) -> Result<Self, ReadError> {
        if path == "-" {
            return Self::new(io::stdin());
        }
        let file = File::open(path)?;
        let about = file.metadata()?;
        let source = Self::new(file)?;
        Ok(Source { size: about.is_file().then_some(about.len()), ..source })
    }

    /// Any stream; it is decompressed according to its magic number (RFC 1952, RFC 8878), also if several compressed
    /// streams follow one another.
    pub fn new(stream: impl Read + Send + 'static) -> Result<Self, ReadError> {
        let read = Arc::new(AtomicU64::new(0));
        let mut counted = CountingReader { stream, read: Arc::clone(&read) };
        let mut magic = Vec::with_capacity(ZSTANDARD.len());
        (&mut counted).take(ZSTANDARD.len() as u64).read_to_end(&mut magic)?;
        let (gzip, zstandard) = (magic.starts_with(&GZIP), magic == ZSTANDARD);
        let whole = Cursor::new(magic).chain(counted);
        let stream: Box<dyn Read + Send> = if gzip {
            Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(CHUNK, whole)))
        } else if zstandard {
            unpacked(whole)?
        } else {
            Box::new(whole)
        };
        Ok(Source { packed: gzip || zstandard, stream, read, size: None })
    }

    /// Bytes taken from the file so far, as stored (compressed).
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Whether it is decompressed while being read.
    pub fn is_packed(&self) -> bool {
        self.packed
    }

    /// Bytes of the file, if it is one.
    pub fn size(&self) -> Option<u64> {
        self.size
    }
}

#[cfg(feature = "zstd")]
fn unpacked(stream: impl Read + Send + 'static) -> Result<Box<dyn Read + Send>, ReadError> {
    let mut unpacked = zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(CHUNK, stream))?;
    unpacked.window_log_max(ZSTANDARD_WINDOW)?;
    Ok(Box::new(unpacked))
}

/// Used on platforms without a C compiler.
#[cfg(not(feature = "zstd"))]
fn unpacked(_: impl Read + Send + 'static) -> Result<Box<dyn Read + Send>, ReadError> {
    Err(ReadError::Unreadable("it is packed with Zstandard, which is not read here: unpack it first".into()))
}

impl Read for Source {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.read(bytes)
    }
}

struct CountingReader<R> {
    stream: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(bytes)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
