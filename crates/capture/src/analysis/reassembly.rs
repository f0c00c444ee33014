//! Joins segments as they were first sent from the pieces into which later copies, with other boundaries, and
//! acknowledgements split them.

use crate::analysis::losses::SegmentGroup;

/// The pieces of one direction, in sequence order.
#[derive(Debug, Default)]
pub struct Reassembly {
    /// The segment that is not complete yet.
    part: Option<SegmentGroup>,
}

impl Reassembly {
    /// Takes a piece of `first`, which was sent in segments of `mss` bytes; passes on each range of complete segments.
    /// Sets the `segments` of `piece`.
    pub fn take(&mut self, piece: SegmentGroup, first: (i64, i64), mss: u32, mut whole: impl FnMut(SegmentGroup)) {
        let mss = i64::from(mss.max(1));
        // The last boundary not after `at`, and the first not before it.
        let below = |at: i64| if at >= first.1 { first.1 } else { at - (at - first.0) % mss };
        let above = |at: i64| if at == below(at) { at } else { (below(at) + mss).min(first.1) };
        let mut start = piece.start;
        if above(start) > start {
            let end = above(start).min(piece.end);
            self.join(SegmentGroup { end, segments: 1, ..piece }, &mut whole);
            if end < above(start) {
                return;
            }
            start = end;
        }
        if let Some(part) = self.part.take() {
            whole(part);
        }
        let end = below(piece.end);
        if end > start {
            let segments = u32::try_from((end - start + mss - 1) / mss).unwrap_or(u32::MAX);
            whole(SegmentGroup { start, end, segments, ..piece });
            start = end;
        }
        if piece.end > start {
            self.part = Some(SegmentGroup { start, segments: 1, ..piece });
        }
    }

    /// A segment arrives as a whole: its copies were lost only as far as all its pieces had to be sent again.
    fn join(&mut self, piece: SegmentGroup, whole: &mut impl FnMut(SegmentGroup)) {
        match &mut self.part {
            Some(part) if part.end == piece.start => {
                part.end = piece.end;
                part.lost = part.lost.min(piece.lost);
                part.acknowledged_ns = piece.acknowledged_ns;
            }
            // Its beginning was dropped.
            _ => {
                if let Some(part) = self.part.replace(piece) {
                    whole(part);
                }
            }
        }
    }

    /// The receiver got `start..end` twice: one copy fewer was lost.
    pub fn duplicated(&mut self, start: i64, end: i64) {
        if let Some(part) = self.part.as_mut().filter(|part| part.start < end && part.end > start) {
            part.lost = part.lost.saturating_sub(1);
        }
    }

    /// The rest of a segment that was only partly acknowledged at the capture's end.
    pub fn rest(&mut self) -> Option<SegmentGroup> {
        self.part.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::losses::LossSide;

    /// Start, end, segments and lost copies of the result for pieces `(start, end, lost)` of `first`, in segments of
    /// 100.
    fn whole(first: (i64, i64), pieces: &[(i64, i64, u8)]) -> Vec<(i64, i64, u32, u8)> {
        let mut segments = Vec::new();
        let mut all = Reassembly::default();
        for &(start, end, lost) in pieces {
            let at = LossSide::AfterCapture;
            let piece = SegmentGroup { start, end, segments: 0, lost, at, sent_ns: 0, acknowledged_ns: 0 };
            all.take(piece, first, 100, |one| segments.push((one.start, one.end, one.segments, one.lost)));
        }
        segments.extend(all.rest().map(|one| (one.start, one.end, one.segments, one.lost)));
        segments
    }

    #[test]
    fn uncut_data_has_its_original_segments() {
        assert_eq!(whole((50, 380), &[(50, 380, 1)]), [(50, 380, 4, 1)]);
        assert_eq!(whole((50, 380), &[(50, 150, 0), (150, 380, 1)]), [(50, 150, 1, 0), (150, 380, 3, 1)]);
    }

    #[test]
    fn pieces_of_a_segment_are_joined() {
        assert_eq!(whole((0, 100), &[(0, 22, 1), (22, 90, 1), (90, 100, 2)]), [(0, 100, 1, 1)]);
    }

    #[test]
    fn partly_retransmitted_segment_had_arrived() {
        assert_eq!(whole((0, 100), &[(0, 22, 1), (22, 100, 0)]), [(0, 100, 1, 0)]);
    }

    #[test]
    fn cuts_inside_offloaded_segments_split_none() {
        let segments = whole((0, 400), &[(0, 130, 1), (130, 350, 1), (350, 400, 0)]);
        assert_eq!(segments, [(0, 100, 1, 1), (100, 200, 1, 1), (200, 300, 1, 1), (300, 400, 1, 0)]);
    }

    #[test]
    fn partially_acknowledged_last_segment_counts() {
        assert_eq!(whole((0, 100), &[(0, 22, 0)]), [(0, 22, 1, 0)]);
    }
}
