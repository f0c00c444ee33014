//! Segments whose data was, at least in part, sent before: overtaken on the path, or retransmitted.

use super::{Copy, Data, Flow};
use crate::analysis::kind::{Cause, Kind};
use crate::analysis::shared::Shared;
use sawtooth_units::width::Fit;

/// Retransmissions remembered for a report of duplicates.
const MOST_COPIES: usize = 1024;

impl Flow {
    /// Data below the acknowledgement: either it was captured after its acknowledgement, or it was sent needlessly.
    pub(super) fn had(&mut self, data: &Data, shared: &mut Shared) -> Kind {
        let end = data.end.min(self.highest);
        if let Some(gap) = self.gaps.find(data.start, end) {
            let overtaken = self.was_overtaken(data, gap.found_ns, gap.tsval);
            let filled = self.gaps.fill(data.start, end);
            self.volume.new_bytes += filled;
            self.unseen.unseen_bytes -= filled;
            if overtaken {
                self.overtaken(data, gap.found_ns);
                return Kind::OutOfOrder;
            }
        }
        self.in_vain(data, shared)
    }

    /// Retransmission of acknowledged data; its first copy may not have been captured.
    pub(super) fn in_vain(&mut self, data: &Data, shared: &mut Shared) -> Kind {
        let (segments, _) = data.below(data.end.min(self.highest));
        let cause = self.cause(data, None);
        self.retransmitted(data, cause, true, shared);
        self.counts.spurious += segments;
        Kind::Spurious
    }

    /// Data that is, at least in part, outstanding.
    pub(super) fn again(&mut self, data: &Data, shared: &mut Shared) -> Kind {
        let now_ns = data.segment.time_ns;
        let end = data.end.min(self.highest);
        let before = self.outstanding.len();
        let (mut seen, mut sacked, mut unseen_bytes) = (false, true, 0);
        let mut first = None;
        for sent in self.outstanding.within(data.start, end) {
            seen |= !sent.unseen;
            sacked &= sent.sacked;
            unseen_bytes += if sent.unseen { (sent.end - sent.start).fit_u64() } else { 0 };
            first.get_or_insert(*sent);
        }
        shared.outstanding += self.outstanding.len() - before;
        let Some(first) = first else { return Kind::InOrder };
        self.volume.new_bytes += unseen_bytes;
        if !seen && self.was_overtaken(data, first.first_ns, first.tsval) {
            self.overtaken(data, first.first_ns);
            for sent in self.outstanding.within(data.start, end) {
                (sent.unseen, sent.copies, sent.last_ns) = (false, 1, now_ns);
            }
            return Kind::OutOfOrder;
        }
        let cause = self.cause(data, Some(&first));
        self.retransmitted(data, cause, seen && sacked, shared);
        for sent in self.outstanding.within(data.start, end) {
            if sent.unseen {
                (sent.unseen, sent.lost_before) = (false, true);
            }
            sent.copies = sent.copies.saturating_add(1);
            sent.last_ns = now_ns;
        }
        let (segments, _) = data.below(end);
        if !seen {
            self.counts.filled_holes += segments;
            return Kind::FillsHole;
        }
        if sacked {
            self.counts.spurious += segments;
            for sent in self.outstanding.within(data.start, end) {
                sent.duplicated = sent.duplicated.saturating_add(1);
            }
            return Kind::Spurious;
        }
        cause.kind()
    }

    /// Counts data that was sent before data already seen after it, which passed at `found_ns`.
    fn overtaken(&mut self, data: &Data, found_ns: u64) {
        self.counts.out_of_order += u64::from(data.packets());
        self.counts.reordering_bytes = self.counts.reordering_bytes.max((self.highest - data.end).max(0).fit_u64());
        let by_ns = data.segment.time_ns.saturating_sub(found_ns);
        self.counts.reordering_ns = self.counts.reordering_ns.max(by_ns);
    }

    fn retransmitted(&mut self, data: &Data, cause: Cause, known: bool, shared: &Shared) {
        let end = data.end.min(self.highest);
        let (segments, bytes) = data.below(end);
        self.counts.retransmits += segments;
        self.counts.retransmitted_bytes += bytes;
        self.counts.timeouts += u64::from(cause == Cause::Timer);
        match cause {
            Cause::Fast => self.counts.fast += segments,
            Cause::TailProbe => self.counts.tail_probes += segments,
            Cause::Timer | Cause::AfterTimer => self.counts.timeout_retransmits += segments,
        }
        if self.copies.len() == MOST_COPIES {
            self.copies.pop_front();
        }
        self.copies.push_back(Copy { start: data.start, end, segments, known, row: shared.row() });
    }
}
