//! How a receiver reports packets that arrived marked (RFC 3168 section 6.1.3).

use super::Receiver;
use crate::clock::Clock;
use crate::packet::{ACE_START, Ack, Ecn};

/// How a receiver reports marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Echo {
    /// Not at all: the ends did not agree on ECN.
    #[default]
    Nothing,
    /// With each acknowledgement, until the sender reports that it reduced its window.
    Classic,
    /// Each change at once (RFC 8257 section 3.2), as DCTCP's receiver.
    Exact,
    /// With each acknowledgement, the number of marked packets (RFC 9768); each change at once.
    Accurate,
}

/// A few acknowledgements at once, for a sender that may have little in flight.
const FEW: u64 = 2;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    pub echo: Echo,
    /// Acknowledgements echo a mark (`TCP_ECN_DEMAND_CWR`).
    pub told: bool,
    /// The next one leaves at once (`ICSK_ACK_NOW`).
    pub at_once: bool,
    /// Packets arrived that could be marked.
    seen: bool,
    /// Exact: whether the last packet was marked; the next byte expected at that time.
    marked: bool,
    next: u64,
    /// Accurate: three bits of the number of marked packets, and the last packet's ECN field.
    ace: u8,
    last: Ecn,
}

impl Marks {
    pub fn new(echo: Echo) -> Self {
        let accurate = echo == Echo::Accurate;
        let (ace, last) = if accurate { (ACE_START, Ecn::Ect1) } else { (0, Ecn::NotEct) };
        Marks { echo, ace, last, ..Marks::default() }
    }

    /// The ECE and ACE fields of acknowledgements, and whether they can be marked themselves.
    pub fn tells(&self) -> (bool, u8, Ecn) {
        let ecn = match self.echo {
            Echo::Nothing | Echo::Classic => Ecn::NotEct,
            Echo::Exact => Ecn::Ect0,
            Echo::Accurate => Ecn::Ect1,
        };
        (self.told, self.ace, ecn)
    }
}

impl Receiver {
    /// The sender reduced its window, perhaps to a single segment.
    #[cold]
    pub(super) fn take_cwr(&mut self) {
        if self.marks.echo != Echo::Nothing {
            (self.marks.told, self.marks.at_once) = (false, true);
        }
    }

    /// Evaluates whether a segment that was just processed arrived marked.
    #[inline]
    pub(super) fn see_mark(&mut self, ecn: Ecn, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        if self.marks.echo != Echo::Nothing {
            self.note_mark(ecn, clock, emit);
        }
    }

    #[inline(never)]
    fn note_mark(&mut self, ecn: Ecn, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        if self.marks.echo == Echo::Accurate {
            self.marks.ace = (self.marks.ace + u8::from(ecn == Ecn::Ce)) & 7;
            self.marks.at_once |= ecn != self.marks.last;
            self.marks.last = ecn;
            return;
        }
        if ecn == Ecn::NotEct {
            // An unmarkable packet among markable ones is probably a retransmission.
            if self.marks.seen {
                self.enter_quick_mode(FEW, clock);
            }
            return;
        }
        self.marks.seen = true;
        if self.marks.echo == Echo::Exact {
            self.tell_change(ecn == Ecn::Ce, clock, emit);
        } else if ecn == Ecn::Ce && !self.marks.told {
            self.enter_quick_mode(FEW, clock);
            self.marks.told = true;
        }
    }

    /// When the CE state of arriving data changes, sends a delayed acknowledgement at once, with the previous state.
    fn tell_change(&mut self, marked: bool, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        if marked != self.marks.marked {
            if self.delayed_until.is_some() {
                self.marks.told = self.marks.marked;
                self.emit_ack(self.marks.next, self.queue.unread(), clock, emit);
            }
            self.marks.at_once = true;
        }
        (self.marks.marked, self.marks.told, self.marks.next) = (marked, marked, self.next);
    }
}
