//! What TCP sends over the wire. Sequence numbers count bytes from 0 and never wrap.

/// The ECN field of an IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Ecn {
    #[default]
    NotEct,
    Ect1,
    Ect0,
    Ce,
}

impl Ecn {
    /// From the lowest two bits.
    #[inline]
    pub fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
}

/// How much older than the newest timestamp one may be (`TCP_PAWS_WINDOW`).
pub(crate) const PAWS_WINDOW_MS: i32 = 1;

/// Flags of a packet, in one byte: the ECN field of its IP header in the lowest two bits, TCP's above.
pub const PUSH: u8 = 4;
pub const ECE: u8 = 8;
pub const CWR: u8 = 16;
pub const AE: u8 = 32;

/// A range of bytes `[start, end)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    pub start: u64,
    pub end: u64,
}

impl Block {
    pub fn len(self) -> u64 {
        self.end - self.start
    }
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }
}

/// The SACK option (RFC 2018): at most four blocks, three beside timestamps; the first may be a DSACK (RFC 2883).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sack {
    pub blocks: [Block; 4],
    pub count: u8,
    /// The first block repeats data that had already arrived.
    pub duplicate: bool,
}

impl Sack {
    pub fn blocks(&self) -> &[Block] {
        &self.blocks[..usize::from(self.count)]
    }
}

impl Burst {
    /// A packet that asks for an acknowledgement while the window is closed: no segments, one byte before `start`,
    /// which the receiver already has.
    pub fn window_probe(start: u64, tsval: u32, tsecr: u32) -> Self {
        Burst { start, bytes: 0, count: 0, push: false, cwr: false, ecn: Ecn::NotEct, tsval, tsecr }
    }

    pub fn is_window_probe(&self) -> bool {
        self.count == 0
    }

    pub fn end(&self) -> u64 {
        self.start + u64::from(self.bytes)
    }
}

/// The initial value of ACE, which differs from every SYN-ACK answer (RFC 9768 section 3.2.1).
pub const ACE_START: u8 = 5;

/// An acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The next byte expected.
    pub next: u64,
    /// Receive window in bytes from `next`.
    pub window: u64,
    /// Timestamp value and echo (RFC 7323); 0 without.
    pub tsval: u32,
    pub tsecr: u32,
    pub sack: Sack,
    /// It echoes a mark (ECE).
    pub ece: bool,
    /// With accurate ECN: three bits of the number of marked packets, starting at [`ACE_START`].
    pub ace: u8,
    /// The ECN field of its own packet.
    pub ecn: Ecn,
}

/// Data given to the network at once: a super-packet that segmentation offload would split into segments, all full
/// except the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Its first byte, and its length.
    pub start: u64,
    pub bytes: u32,
    /// Segments.
    pub count: u32,
    /// The last segment asks the receiver to acknowledge after reading (PSH).
    pub push: bool,
    /// The first segment reports that the window was reduced for a mark or a loss (CWR).
    pub cwr: bool,
    /// The ECN field of each packet.
    pub ecn: Ecn,
    pub tsval: u32,
    pub tsecr: u32,
}
