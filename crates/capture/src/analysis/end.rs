//! One end of a connection: the facts from its segments' headers.

use crate::analysis::echo::Echo;
use crate::analysis::identification::Identification;
use crate::analysis::segment_size::SegmentSize;
use crate::analysis::sequence::Sequence;
use crate::decode::segment::{self, Segment};

/// A SYN is retransmitted after one second (RFC 6298 section 2.1), by some systems after a quarter of that. Sooner, it
/// is a copy.
const SYN_AGAIN_NS: u64 = 200_000_000;

/// What a SYN or SYN-ACK offers.
#[derive(Clone, Copy, Debug)]
pub struct Syn {
    pub time_ns: u64,
    /// How often it was sent.
    pub copies: u16,
    /// 0: none.
    ip_id: u16,
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack: bool,
    pub timestamps: bool,
    /// ECE and CWR in a SYN, ECE alone in a SYN-ACK (RFC 3168 section 6.1.1).
    pub ecn: bool,
    pub window: u16,
    /// Time until its answer passed; `trip_ns` is unknown if it was sent twice and nothing shows which copy was
    /// answered.
    pub answered: bool,
    pub trip_ns: Option<u64>,
}

impl Syn {
    fn new(segment: &Segment) -> Self {
        let answer = segment.flags & segment::ACK != 0;
        let bits = segment.flags & (segment::ECE | segment::CWR);
        Syn {
            time_ns: segment.time_ns,
            copies: 1,
            ip_id: segment.ip_id.unwrap_or(0),
            mss: segment.options.mss,
            window_scale: segment.options.window_scale,
            sack: segment.options.sack_permitted,
            timestamps: segment.options.timestamps.is_some(),
            ecn: bits == if answer { segment::ECE } else { segment::ECE | segment::CWR },
            window: segment.window,
            answered: false,
            trip_ns: None,
        }
    }

    /// Takes a repeated SYN; the same packet captured twice counts once.
    fn again(&mut self, segment: &Segment) {
        let same = self.ip_id != 0 && segment.ip_id == Some(self.ip_id);
        if !same || segment.time_ns.saturating_sub(self.time_ns) > SYN_AGAIN_NS {
            self.copies = self.copies.saturating_add(1);
        }
    }

    /// Takes the answer, which echoes a TSval that was first seen `echoed_ns` ago.
    pub fn answer(&mut self, now_ns: u64, echoed_ns: Option<u64>) {
        if !self.answered {
            self.answered = true;
            let once = (self.copies == 1).then(|| now_ns.saturating_sub(self.time_ns));
            self.trip_ns = once.or(echoed_ns);
        }
    }
}

#[derive(Debug)]
pub struct End {
    pub sequence: Option<Sequence>,
    pub syn: Option<Syn>,
    pub packets: u64,
    /// Everything below was sent, as its segments show, with the time of that evidence; [`NONE`] before the first.
    sent: i64,
    sent_ns: u64,
    /// The highest of the peer's sequence numbers that it acknowledged.
    acked: i64,
    pub fin: bool,
    /// Repeated FINs without data from an end that sends no data.
    pub fins_again: u16,
    fin_id: u16,
    pub reset: bool,
    /// As in the header, unscaled.
    pub window: u16,
    /// The window of a SYN is never shifted (RFC 7323 section 2.2).
    pub window_of_syn: bool,
    /// Inferred shift of the windows without a handshake: the smallest for which the data in flight fits.
    pub inferred_scale: u8,
    pub echo: Echo,
    pub identification: Identification,
    /// Packets with a congestion mark from a router.
    pub marked: u64,
    pub echoes: u64,
    pub reduced: u64,
    pub size: SegmentSize,
}

/// No number yet.
const NONE: i64 = i64::MIN;

impl Default for End {
    fn default() -> Self {
        End {
            sequence: None,
            syn: None,
            packets: 0,
            sent: NONE,
            sent_ns: 0,
            acked: NONE,
            fin: false,
            fins_again: 0,
            fin_id: 0,
            reset: false,
            window: 0,
            window_of_syn: false,
            inferred_scale: 0,
            echo: Echo::default(),
            identification: Identification::default(),
            marked: 0,
            echoes: 0,
            reduced: 0,
            size: SegmentSize::default(),
        }
    }
}

impl End {
    /// Takes the header's facts; sequence numbers are relative to the first segment.
    pub fn see(&mut self, segment: &Segment) {
        self.packets += 1;
        self.marked += u64::from(segment.ecn == 3);
        let has = |flag: u8| segment.flags & flag != 0;
        if has(segment::SYN) {
            match &mut self.syn {
                Some(syn) => syn.again(segment),
                none => *none = Some(Syn::new(segment)),
            }
            self.sequence.get_or_insert(Sequence::of_syn(segment.seq));
            if has(segment::ACK) {
                self.identification.of_syn_ack(segment.ip_id);
            }
        } else {
            self.echoes += u64::from(has(segment::ECE));
            self.reduced += u64::from(has(segment::CWR));
            self.sequence.get_or_insert(Sequence::joined(segment.seq));
        }
        if !has(segment::RST) {
            self.window = segment.window;
            self.window_of_syn = has(segment::SYN);
        }
        if segment.payload > 0 {
            self.size.see(segment.payload, !has(segment::PSH | segment::FIN | segment::SYN | segment::URG));
        }
    }

    /// Whether a SYN has another number than the previous one, as with an answer made without state (SYN cookies, RFC
    /// 4987 section 3.6). Sequence numbers are then counted from it.
    pub fn begins_anew(&mut self, segment: &Segment) -> bool {
        let other = self.syn.is_some() && self.sequence.is_some_and(|sequence| !sequence.is_origin(segment.seq));
        if other {
            self.sequence = Some(Sequence::of_syn(segment.seq));
            self.sent = NONE;
        }
        other
    }

    /// Forgets what it acknowledged, because its peer started new sequence numbers.
    pub fn forget_acked(&mut self) {
        self.acked = NONE;
    }

    /// Takes a FIN without data from an end that sends none.
    pub fn lone_fin(&mut self, segment: &Segment) {
        let id = segment.ip_id.unwrap_or(0);
        if self.fin && (id == 0 || id != self.fin_id) {
            self.fins_again += 1;
        }
        self.fin_id = id;
    }

    /// Everything below was sent, as its segments show, with the time of that evidence.
    pub fn sent(&self) -> Option<(i64, u64)> {
        (self.sent != NONE).then_some((self.sent, self.sent_ns))
    }

    pub fn has_sent(&mut self, end: i64, now_ns: u64) {
        if self.sent < end {
            (self.sent, self.sent_ns) = (end, now_ns);
        }
    }

    /// The highest of its peer's sequence numbers that it acknowledged.
    pub fn acked(&self) -> Option<i64> {
        (self.acked != NONE).then_some(self.acked)
    }

    pub fn acknowledges(&mut self, ack: i64) {
        self.acked = self.acked.max(ack);
    }

    /// From the capture point to the peer and back, measured on the answer to its SYN.
    pub fn handshake_ns(&self) -> Option<u64> {
        self.syn.as_ref()?.trip_ns
    }
}
