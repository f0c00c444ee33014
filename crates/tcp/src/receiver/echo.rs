//! What a receiver tells of packets that came marked (RFC 3168 section 6.1.3).

use super::Receiver;
use crate::clock::Clock;
use crate::packet::{Ack, Ecn};

/// How a receiver tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Echo {
    /// Not at all: the ends didn't agree on ECN.
    #[default]
    Nothing,
    /// With each acknowledgement, until the sender says that its window came down.
    Classic,
    /// Each change at once (RFC 8257 section 3.2), as the receiving end of DCTCP.
    Exact,
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
    /// Packets came that could be marked.
    seen: bool,
    /// Exact: the last packet was marked; the next byte expected then.
    marked: bool,
    next: u64,
}

impl Marks {
    pub fn new(echo: Echo) -> Self {
        Marks { echo, ..Marks::default() }
    }
}

impl Receiver {
    /// The sender's window came down, perhaps to a single segment.
    #[cold]
    pub(super) fn take_cwr(&mut self) {
        if self.marks.echo != Echo::Nothing {
            (self.marks.told, self.marks.at_once) = (false, true);
        }
    }

    /// A segment was put where it belongs: whether it came marked.
    #[inline]
    pub(super) fn see_mark(&mut self, ecn: Ecn, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        if self.marks.echo != Echo::Nothing {
            self.note_mark(ecn, clock, emit);
        }
    }

    #[inline(never)]
    fn note_mark(&mut self, ecn: Ecn, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        if ecn == Ecn::NotEct {
            // What can't be marked where others could was probably sent again.
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

    /// An acknowledgement that waits tells first how it was before.
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
