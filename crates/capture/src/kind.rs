//! What a segment is, in the order of numbers that the table `segments` has.

/// Kinds 0 to 7 and 11 are of segments with data, the others of pure acknowledgements and control segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    InOrder = 0,
    FastRetransmission = 1,
    Timeout = 2,
    TailProbe = 3,
    /// Retransmitted although the receiver had it.
    Spurious = 4,
    /// Sent before segments that were seen before it.
    OutOfOrder = 5,
    /// Retransmitted, and its first copy was never seen here.
    FillsHole = 6,
    /// Zero-window probe or keep-alive.
    Probe = 7,
    Plain = 8,
    DuplicateAck = 9,
    WindowUpdate = 10,
    /// The very same packet with data, captured once more.
    Copy = 11,
}

/// What made a sender retransmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Duplicate acknowledgements or SACK (RFC 5681, 6675, RACK of RFC 8985).
    Fast,
    /// The retransmission timer (RFC 6298).
    Timer,
    /// The recovery that follows it.
    AfterTimer,
    /// The tail loss probe (RFC 8985 section 7).
    TailProbe,
}

impl Cause {
    pub fn kind(self) -> Kind {
        match self {
            Cause::Fast => Kind::FastRetransmission,
            Cause::Timer | Cause::AfterTimer => Kind::Timeout,
            Cause::TailProbe => Kind::TailProbe,
        }
    }
}
