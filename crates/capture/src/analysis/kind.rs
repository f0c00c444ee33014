//! The kind of a segment, numbered as in the table `segments`.

/// Kinds 0 to 7 and 11 are of segments with data; the others are of pure acknowledgements and control segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    InOrder = 0,
    FastRetransmission = 1,
    Timeout = 2,
    TailProbe = 3,
    /// Retransmitted although the receiver had it.
    Spurious = 4,
    /// Sent before segments that were captured earlier.
    OutOfOrder = 5,
    /// A retransmission whose first copy was not captured.
    FillsHole = 6,
    /// Zero-window probe or keep-alive.
    Probe = 7,
    Plain = 8,
    DuplicateAck = 9,
    WindowUpdate = 10,
    /// The same packet with data, captured once more.
    Copy = 11,
}

/// What caused a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Duplicate acknowledgements or SACK (RFC 5681, 6675, RACK of RFC 8985).
    Fast,
    /// The retransmission timer (RFC 6298).
    Timer,
    /// The recovery after a timeout.
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
