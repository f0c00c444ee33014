//! Data that arrived out of order, and the SACK blocks that report it (`tcp_data_queue_ofo`, `tcp_sack_new_ofo_skb`).

use crate::packet::{Block, Sack};
use std::collections::VecDeque;

/// Blocks remembered (`TCP_NUM_SACKS`).
const REMEMBERED: usize = 4;

/// `MAX_SKB_FRAGS`: most segments in one buffer.
pub const BUFFER_FRAGMENTS: u64 = 17;

/// Contiguous data after a gap: bytes, and the number of segments.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    end: u64,
    segments: u64,
    /// Its first buffer: the number of segments, and its end.
    first: u64,
    first_end: u64,
}

/// The outcome for a segment that arrived out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It was already present.
    Duplicate,
    /// It shares the previous segment's buffer.
    Joined,
    Alone,
}

#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Reassembly {
    /// Disjoint, not adjacent, ascending.
    runs: VecDeque<Run>,
    segments: u64,
    bytes: u64,
    recent_count: usize,
    /// To be reported as a DSACK in the next acknowledgement.
    duplicate: Option<Block>,
    /// Most recently changed first (RFC 2018 section 4).
    recent: [Block; REMEMBERED],
}

impl Reassembly {
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// The approximate number of buffers: neighbors share one of up to [`BUFFER_FRAGMENTS`] segments
    /// (`tcp_ooo_try_coalesce`).
    pub fn buffers(&self) -> u64 {
        self.runs.len() as u64 + self.segments / BUFFER_FRAGMENTS
    }
    pub fn note_duplicate(&mut self, block: Block) {
        self.duplicate = Some(block);
    }

    /// Takes a segment above the next expected byte. If part of it is present, all of it is: what was sent together is
    /// retransmitted together.
    pub fn insert(&mut self, block: Block) -> Kept {
        let Block { start, end } = block;
        let mut kept = Kept::Alone;
        // The usual case: it extends the last run or starts one after it.
        let at = match self.runs.back() {
            Some(last) if start > last.end => self.runs.len(),
            Some(last) if start == last.end => self.runs.len() - 1,
            None => 0,
            _ => self.runs.partition_point(|run| run.end < start),
        };
        match self.runs.get_mut(at) {
            Some(run) if run.start < end && start < run.end => {
                self.note_duplicate(block);
                self.remember(block);
                return Kept::Duplicate;
            }
            Some(run) if run.end == start => {
                if !run.segments.is_multiple_of(BUFFER_FRAGMENTS) {
                    kept = Kept::Joined;
                }
                if run.first == run.segments && run.first < BUFFER_FRAGMENTS {
                    (run.first, run.first_end) = (run.first + 1, end);
                }
                (run.end, run.segments) = (end, run.segments + 1);
                if let Some(next) = self.runs.get(at + 1).copied()
                    && next.start == end
                {
                    let run = &mut self.runs[at];
                    (run.end, run.segments) = (next.end, run.segments + next.segments);
                    self.runs.remove(at + 1);
                }
            }
            Some(run) if run.start == end => {
                (run.start, run.segments) = (start, run.segments + 1);
                (run.first, run.first_end) = (1, end);
            }
            _ => self.runs.insert(at, Run { start, end, segments: 1, first: 1, first_end: end }),
        }
        self.segments += 1;
        self.bytes += block.len();
        self.remember(block);
        kept
    }

    /// Whether the next SACK would displace a block that has not been reported three times
    /// (`TCP_SACK_BLOCKS_EXPECTED`).
    pub fn crowds(&self, block: Block) -> bool {
        let touched = |b: &Block| b.start <= block.end && block.start <= b.end;
        let position = self.recent[..self.recent_count].iter().position(touched).unwrap_or(self.recent_count);
        self.recent_count > 0 && position >= 2
    }

    /// `tcp_sack_new_ofo_skb` and `tcp_sack_maybe_coalesce`.
    fn remember(&mut self, block: Block) {
        let recent = &mut self.recent[..self.recent_count];
        let touches = |a: Block, b: Block| a.start <= b.end && b.start <= a.end;
        if let Some(at) = recent.iter().position(|&known| touches(known, block)) {
            recent[at].start = recent[at].start.min(block.start);
            recent[at].end = recent[at].end.max(block.end);
            recent[..=at].rotate_right(1);
            let mut i = 1;
            while i < self.recent_count {
                if touches(self.recent[0], self.recent[i]) {
                    self.recent[0].start = self.recent[0].start.min(self.recent[i].start);
                    self.recent[0].end = self.recent[0].end.max(self.recent[i].end);
                    self.recent.copy_within(i + 1..self.recent_count, i);
                    self.recent_count -= 1;
                } else {
                    i += 1;
                }
            }
            return;
        }
        self.recent_count = (self.recent_count + 1).min(REMEMBERED);
        self.recent[..self.recent_count].rotate_right(1);
        self.recent[0] = block;
    }

    /// How far data is read at once when the segment before `next` arrives: data beyond it is merged as far as a buffer
    /// has room (`tcp_try_coalesce`).
    pub fn first_buffer(&self, next: u64) -> u64 {
        let Some(run) = self.runs.front().filter(|run| run.start == next) else { return next };
        if run.segments < BUFFER_FRAGMENTS {
            run.end
        } else if run.first < BUFFER_FRAGMENTS {
            run.first_end
        } else {
            next
        }
    }

    /// `tcp_ofo_queue` and `tcp_sack_remove`: everything up to `next` has arrived. Returns the new next expected byte,
    /// and the number of segments from `next` up to it.
    pub fn advance(&mut self, mut next: u64) -> (u64, u64) {
        let (held, new_until) = (self.segments, next);
        while let Some(run) = self.runs.front().copied()
            && run.start <= next
        {
            if run.start < new_until {
                self.extend_duplicate(Block { start: run.start, end: run.end.min(new_until) });
            }
            self.segments -= run.segments;
            self.bytes -= run.end - run.start;
            next = next.max(run.end);
            self.runs.pop_front();
        }
        if self.runs.is_empty() {
            // Back to the first slot, which is in the cache.
            self.runs.clear();
        }
        let mut kept = 0;
        for i in 0..self.recent_count {
            if self.recent[i].start > next {
                self.recent[kept] = self.recent[i];
                kept += 1;
            }
        }
        self.recent_count = if self.runs.is_empty() { 0 } else { kept };
        (next, held - self.segments)
    }

    /// What has just arrived repeats `block` (`tcp_dsack_extend`).
    #[cold]
    fn extend_duplicate(&mut self, block: Block) {
        match &mut self.duplicate {
            None => self.duplicate = Some(block),
            Some(known) if known.start <= block.end && block.start <= known.end => {
                (known.start, known.end) = (known.start.min(block.start), known.end.max(block.end));
            }
            Some(_) => {}
        }
    }

    /// Whether [`Self::sack`] has anything to report.
    #[inline]
    pub fn reports(&self) -> bool {
        self.recent_count > 0 || self.duplicate.is_some()
    }

    /// The option for an acknowledgement with room for `room` blocks; a DSACK is reported once.
    pub fn sack(&mut self, room: usize) -> Sack {
        let mut sack = Sack::default();
        let mut add = |block| {
            if usize::from(sack.count) < room {
                sack.blocks[usize::from(sack.count)] = block;
                sack.count += 1;
            }
        };
        let duplicate = self.duplicate.take();
        duplicate.into_iter().for_each(&mut add);
        self.recent[..self.recent_count].iter().copied().for_each(&mut add);
        sack.duplicate = duplicate.is_some();
        sack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a full segment.
    const MSS: u64 = 10;

    /// Whole segments.
    fn block(start: u64, end: u64) -> Block {
        Block { start: start * MSS, end: end * MSS }
    }

    fn insert(r: &mut Reassembly, segment: u64) -> bool {
        r.insert(block(segment, segment + 1)) != Kept::Duplicate
    }

    #[test]
    fn first_sack_block_has_the_newest_segment() {
        let mut r = Reassembly::default();
        for segment in [5, 7, 9, 8] {
            assert!(insert(&mut r, segment));
        }
        assert_eq!(r.sack(3).blocks(), [block(7, 10), block(5, 6)]);
        assert_eq!((r.bytes(), r.segments), (4 * MSS, 4));
    }

    #[test]
    fn out_of_order_data_coalesces_within_a_buffer() {
        let mut r = Reassembly::default();
        // Two buffers, of 10 and 9 segments: the segment between them arrived last.
        (6..15).chain(16..25).chain([15]).for_each(|segment| assert!(insert(&mut r, segment)));
        assert_eq!([6, 5].map(|next| r.first_buffer(next * MSS)), [16 * MSS, 5 * MSS]);
        let mut full = Reassembly::default();
        (6..30).for_each(|segment| assert!(insert(&mut full, segment)));
        assert_eq!(full.first_buffer(6 * MSS), 6 * MSS);
        let mut few = Reassembly::default();
        (6..9).for_each(|segment| assert!(insert(&mut few, segment)));
        assert_eq!(few.first_buffer(6 * MSS), 9 * MSS);
    }

    #[test]
    fn segment_shares_previous_buffer_while_it_has_room() {
        let mut r = Reassembly::default();
        let kept: Vec<Kept> = (5..23).chain([4, 22]).map(|segment| r.insert(block(segment, segment + 1))).collect();
        let mut expected = vec![Kept::Joined; 20];
        for (at, kept) in [(0, Kept::Alone), (17, Kept::Alone), (18, Kept::Alone), (19, Kept::Duplicate)] {
            expected[at] = kept;
        }
        assert_eq!(kept, expected);
    }

    #[test]
    fn filled_hole_removes_its_sack_blocks() {
        let mut r = Reassembly::default();
        for segment in [5, 6, 9] {
            insert(&mut r, segment);
        }
        assert_eq!(r.advance(5 * MSS), (7 * MSS, 2));
        assert_eq!(r.sack(3).blocks(), [block(9, 10)]);
        assert_eq!(r.advance(9 * MSS), (10 * MSS, 1));
        assert!(r.is_empty());
        assert_eq!(r.bytes(), 0);
        assert_eq!(r.sack(3).count, 0);
    }

    #[test]
    fn dsack_is_reported_once_and_first() {
        let mut r = Reassembly::default();
        insert(&mut r, 5);
        assert!(!insert(&mut r, 5));
        let sack = r.sack(3);
        assert!(sack.duplicate);
        assert_eq!(sack.blocks(), [block(5, 6), block(5, 6)]);
        assert!(!r.sack(3).duplicate);
    }

    #[test]
    fn three_sack_blocks_fit_beside_timestamps() {
        let mut r = Reassembly::default();
        for segment in [2, 4, 6, 8, 10] {
            insert(&mut r, segment);
        }
        assert_eq!(r.sack(3).blocks(), [block(10, 11), block(8, 9), block(6, 7)]);
    }
}
