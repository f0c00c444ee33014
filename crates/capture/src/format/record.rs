//! A record of a capture file, or why there is none.

use crate::decode::link::LinkType;

/// A frame that was just passed in the buffer.
pub(crate) struct Record {
    /// Offset of the record in the uncompressed file.
    pub byte: u64,
    pub time_ns: u64,
    pub link: LinkType,
    /// Number of the interface, if the file has several.
    pub interface: Option<u32>,
    pub wire: u32,
    /// Bytes kept of the frame, and bytes of the record after them.
    pub kept: usize,
    pub behind: usize,
}

/// Nothing more can be read from the stream, and why.
pub(crate) struct Broken {
    pub byte: u64,
    pub text: String,
}
