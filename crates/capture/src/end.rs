//! One end of a connection: what its segments' headers say.

use crate::echo::Echo;
use crate::identification::Identification;
use crate::segment::{self, Segment};
use crate::sequence::Sequence;

/// What a SYN or SYN-ACK offers.
#[derive(Clone, Copy, Debug)]
pub struct Syn {
    pub time_ns: u64,
    pub copies: u32,
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack: bool,
    pub timestamps: bool,
    /// ECE and CWR in a SYN, ECE alone in a SYN-ACK (RFC 3168 section 6.1.1).
    pub ecn: bool,
    pub window: u16,
    /// Until its answer, which has come by; `trip_ns` is not known where it was sent twice and nothing tells which copy
    /// was answered.
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

    /// Takes the answer, which echoes a TSval that was first seen `echoed_ns` ago.
    pub fn answer(&mut self, now_ns: u64, echoed_ns: Option<u64>) {
        if !self.answered {
            self.answered = true;
            let once = (self.copies == 1).then(|| now_ns.saturating_sub(self.time_ns));
            self.trip_ns = once.or(echoed_ns);
        }
    }
}

#[derive(Debug, Default)]
pub struct End {
    pub sequence: Option<Sequence>,
    pub syn: Option<Syn>,
    pub packets: u64,
    pub fin: bool,
    pub reset: bool,
    /// As the header has it.
    pub window: u16,
    /// The window of a SYN is never shifted (RFC 7323 section 2.2).
    pub window_of_syn: bool,
    /// Shift of the windows where the handshake was not seen: the least one that the data in flight fitted in.
    pub inferred_scale: u8,
    pub echo: Echo,
    pub identification: Identification,
    /// Packets that a router marked as having met congestion.
    pub marked: u64,
    pub echoes: u64,
    pub reduced: u64,
    /// The payload that comes most often, by majority vote.
    usual: u32,
    usual_lead: u32,
}

impl End {
    /// Takes the header's facts; sequence numbers start with the first segment.
    pub fn see(&mut self, segment: &Segment) {
        self.packets += 1;
        self.marked += u64::from(segment.ecn == 3);
        let has = |flag: u8| segment.flags & flag != 0;
        if has(segment::SYN) {
            match &mut self.syn {
                Some(syn) => syn.copies += 1,
                none => *none = Some(Syn::new(segment)),
            }
            self.sequence.get_or_insert(Sequence::of_syn(segment.seq));
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
            self.vote(segment.payload);
        }
    }

    /// From the capture point to the peer and back, by the answer to its SYN.
    pub fn handshake_ns(&self) -> Option<u64> {
        self.syn.as_ref()?.trip_ns
    }

    /// Payload bytes that most of its segments with data have; 0 before the first.
    pub fn usual_payload(&self) -> u32 {
        self.usual
    }

    fn vote(&mut self, payload: u32) {
        if payload == self.usual {
            self.usual_lead = self.usual_lead.saturating_add(1);
        } else if self.usual_lead == 0 {
            (self.usual, self.usual_lead) = (payload, 1);
        } else {
            self.usual_lead -= 1;
        }
    }
}
