//! Which segments of a direction were lost, in the order in which they were first sent.

use std::collections::VecDeque;

/// Runs of one direction that are kept to fit a loss model.
const KEPT_RUNS: usize = 4096;

/// Most ranges that wait for a report from the receiver.
const MOST_WAITING: usize = 8192;

/// Where a segment was lost on the path from sender to receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LossSide {
    Unknown = 0,
    BeforeCapture = 1,
    AfterCapture = 2,
}

/// Segments acknowledged together whose copies had the same fate. A loss is final only after the receiver had time to
/// report a copy as a duplicate (RFC 2883).
#[derive(Clone, Copy, Debug)]
pub struct SegmentGroup {
    pub start: i64,
    pub end: i64,
    pub segments: u32,
    /// Lost copies of each.
    pub lost: u8,
    pub at: LossSide,
    /// When the first copy was captured, or found missing.
    pub sent_ns: u64,
    pub acknowledged_ns: u64,
}

/// Consecutive lost segments.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub time_ns: u64,
    pub segments: u32,
    pub at: LossSide,
}

/// A run, as kept to fit a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossRun {
    /// Segments that arrived between it and the previous run.
    pub gap: u32,
    /// Consecutive lost segments.
    pub run: u32,
    /// When the first of them was sent.
    pub time_ns: u64,
}

#[derive(Debug, Default)]
pub struct Losses {
    waiting: VecDeque<SegmentGroup>,
    /// Segments that arrived since the last run.
    gap: u64,
    run: Option<Run>,
    /// Runs in sequence order.
    pub runs: Vec<LossRun>,
    pub segments: u64,
    pub first_copies: u64,
    pub copies: u64,
    pub before: u64,
    pub after: u64,
    pub run_count: u64,
    pub longest: u32,
}

impl Losses {
    /// Takes acknowledged segments in sequence order. A loss becomes final `hold_ns` later.
    pub fn pass(&mut self, passed: SegmentGroup, hold_ns: u64, ended: &mut Vec<Run>) {
        match self.waiting.back_mut() {
            None if passed.lost == 0 => self.settle(passed, ended),
            Some(last) if last.lost == 0 && passed.lost == 0 => {
                last.end = passed.end;
                last.segments = last.segments.saturating_add(passed.segments);
                last.acknowledged_ns = passed.acknowledged_ns;
            }
            _ => self.waiting.push_back(passed),
        }
        while let Some(first) = self.waiting.front() {
            let due = first.acknowledged_ns.saturating_add(hold_ns) <= passed.acknowledged_ns;
            if !due && self.waiting.len() <= MOST_WAITING {
                break;
            }
            let first = *first;
            self.waiting.pop_front();
            self.settle(first, ended);
        }
    }

    /// The receiver got `start..end` twice: one copy fewer was lost.
    pub fn duplicated(&mut self, start: i64, end: i64) {
        for passed in &mut self.waiting {
            if passed.lost > 0 && passed.start < end && passed.end > start {
                passed.lost -= 1;
            }
        }
    }

    /// Makes all losses final at the capture's end.
    pub fn finish(&mut self, ended: &mut Vec<Run>) {
        while let Some(first) = self.waiting.pop_front() {
            self.settle(first, ended);
        }
        self.end_run(ended);
    }

    /// Segments that arrived after the last run.
    pub fn last_gap(&self) -> u64 {
        self.gap
    }

    fn settle(&mut self, passed: SegmentGroup, ended: &mut Vec<Run>) {
        let segments = u64::from(passed.segments);
        self.segments += segments;
        if passed.lost == 0 {
            self.end_run(ended);
            self.gap += segments;
            return;
        }
        self.first_copies += segments;
        self.copies += segments * u64::from(passed.lost);
        match passed.at {
            // Further copies of a segment that was lost before the capture point were captured, and lost after it.
            LossSide::BeforeCapture => {
                self.before += segments;
                self.after += segments * u64::from(passed.lost - 1);
            }
            LossSide::AfterCapture => self.after += segments * u64::from(passed.lost),
            LossSide::Unknown => (),
        }
        match &mut self.run {
            Some(run) => run.segments = run.segments.saturating_add(passed.segments),
            none => *none = Some(Run { time_ns: passed.sent_ns, segments: passed.segments, at: passed.at }),
        }
    }

    fn end_run(&mut self, ended: &mut Vec<Run>) {
        let Some(run) = self.run.take() else { return };
        if self.runs.len() < KEPT_RUNS {
            let gap = u32::try_from(self.gap).unwrap_or(u32::MAX);
            self.runs.push(LossRun { gap, run: run.segments, time_ns: run.time_ns });
        }
        self.gap = 0;
        self.run_count += 1;
        self.longest = self.longest.max(run.segments);
        ended.push(run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(number: i64, lost: u8) -> SegmentGroup {
        SegmentGroup {
            start: number,
            end: number + 1,
            segments: 1,
            lost,
            at: LossSide::AfterCapture,
            sent_ns: 0,
            acknowledged_ns: number as u64,
        }
    }

    fn runs(pattern: &[u8], duplicated: &[i64]) -> (Losses, Vec<u32>) {
        let mut losses = Losses::default();
        let mut ended = Vec::new();
        for (number, &lost) in pattern.iter().enumerate() {
            losses.pass(passed(number as i64, lost), 1000, &mut ended);
        }
        for &number in duplicated {
            losses.duplicated(number, number + 1);
        }
        losses.finish(&mut ended);
        let lengths = ended.iter().map(|run| run.segments).collect();
        (losses, lengths)
    }

    #[test]
    fn adjacent_losses_are_one_run() {
        let (losses, lengths) = runs(&[0, 1, 1, 0, 0, 1, 0], &[]);
        assert_eq!(lengths, [2, 1]);
        let runs: Vec<(u32, u32)> = losses.runs.iter().map(|lost| (lost.gap, lost.run)).collect();
        assert_eq!(runs, [(1, 2), (2, 1)]);
        assert_eq!((losses.segments, losses.first_copies, losses.last_gap()), (7, 3, 1));
    }

    #[test]
    fn dsacked_copy_was_not_lost() {
        let (losses, lengths) = runs(&[0, 1, 1, 1, 0], &[2]);
        assert_eq!(lengths, [1, 1]);
        assert_eq!(losses.first_copies, 2);
    }

    #[test]
    fn lost_retransmission_counts_as_another_copy() {
        let (losses, lengths) = runs(&[0, 2, 0], &[]);
        assert_eq!((lengths, losses.copies, losses.first_copies), (vec![1], 2, 1));
    }
}
