//! What arrived out of order, and which SACK blocks tell of it (`tcp_data_queue_ofo`, `tcp_sack_new_ofo_skb`).

use crate::packet::{Block, Sack};
use std::collections::VecDeque;

/// Blocks remembered (`TCP_NUM_SACKS`).
const REMEMBERED: usize = 4;

/// `MAX_SKB_FRAGS`: so many segments at most make one buffer.
pub const BUFFER_FRAGMENTS: u64 = 17;

/// Neighbours that wait for what is missing before them.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    end: u64,
    /// Segments in the first of its buffers.
    first: u64,
}

#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Reassembly {
    /// Disjoint, not adjacent, ascending.
    runs: VecDeque<Run>,
    segments: u64,
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
    /// Segments held.
    pub fn segments(&self) -> u64 {
        self.segments
    }
    /// Buffers that they fill about: neighbours share one of up to [`BUFFER_FRAGMENTS`] (`tcp_ooo_try_coalesce`).
    pub fn buffers(&self) -> u64 {
        self.runs.len() as u64 + self.segments / BUFFER_FRAGMENTS
    }
    pub fn note_duplicate(&mut self, seq: u64) {
        self.duplicate = Some(Block { start: seq, end: seq + 1 });
    }

    /// Takes segment `seq`, which lies above the next expected one. False: it was there already.
    pub fn insert(&mut self, seq: u64) -> bool {
        let block = Block { start: seq, end: seq + 1 };
        // The usual case: it extends the last run or starts one after it.
        let at = match self.runs.back() {
            Some(last) if seq > last.end => self.runs.len(),
            Some(last) if seq == last.end => self.runs.len() - 1,
            None => 0,
            _ => self.runs.partition_point(|run| run.end < seq),
        };
        match self.runs.get_mut(at) {
            Some(run) if run.start <= seq && seq < run.end => {
                self.note_duplicate(seq);
                self.remember(block);
                return false;
            }
            Some(run) if run.end == seq => {
                run.first += u64::from(run.first == run.end - run.start && run.first < BUFFER_FRAGMENTS);
                run.end += 1;
                if let Some(next) = self.runs.get(at + 1).copied()
                    && next.start == seq + 1
                {
                    self.runs[at].end = next.end;
                    self.runs.remove(at + 1);
                }
            }
            Some(run) if run.start == seq + 1 => (run.start, run.first) = (seq, 1),
            _ => self.runs.insert(at, Run { start: seq, end: seq + 1, first: 1 }),
        }
        self.segments += 1;
        self.remember(block);
        true
    }

    /// Whether the next SACK would push a block out that has not been told of three times (`TCP_SACK_BLOCKS_EXPECTED`).
    pub fn crowds(&self, seq: u64) -> bool {
        let touched = |b: &Block| b.start <= seq + 1 && seq <= b.end;
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

    /// How many segments are read at once when the one before `next` has arrived: what lies beyond it merges with it as far
    /// as there is room in a buffer (`tcp_try_coalesce`).
    pub fn first_buffer(&self, next: u64) -> u64 {
        let Some(run) = self.runs.front().filter(|run| run.start == next) else { return 1 };
        let all = 1 + run.end - run.start;
        if all <= BUFFER_FRAGMENTS {
            all
        } else if run.first < BUFFER_FRAGMENTS {
            1 + run.first
        } else {
            1
        }
    }

    /// `tcp_ofo_queue` and `tcp_sack_remove`: everything up to `next` has arrived; returns the new next expected segment.
    pub fn advance(&mut self, mut next: u64) -> u64 {
        while let Some(run) = self.runs.front().copied()
            && run.start <= next
        {
            self.segments -= run.end - run.start;
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
        next
    }

    /// The option for an acknowledgement with room for `room` blocks; a DSACK is told once.
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

    fn block(start: u64, end: u64) -> Block {
        Block { start, end }
    }

    #[test]
    fn the_first_block_tells_of_the_newest_segment() {
        let mut r = Reassembly::default();
        for seq in [5, 7, 9, 8] {
            assert!(r.insert(seq));
        }
        assert_eq!(r.sack(3).blocks(), [block(7, 10), block(5, 6)]);
        assert_eq!(r.segments(), 4);
    }

    #[test]
    fn what_lies_beyond_a_gap_merges_with_what_fills_it_as_far_as_a_buffer_holds() {
        let mut r = Reassembly::default();
        // Two buffers, of 10 and 9: the segment between them came last.
        (6..15).chain(16..25).chain([15]).for_each(|seq| assert!(r.insert(seq)));
        assert_eq!((r.first_buffer(6), r.first_buffer(5)), (1 + 10, 1));
        let mut full = Reassembly::default();
        (6..30).for_each(|seq| assert!(full.insert(seq)));
        assert_eq!(full.first_buffer(6), 1);
    }

    #[test]
    fn a_filled_hole_removes_its_blocks() {
        let mut r = Reassembly::default();
        for seq in [5, 6, 9] {
            r.insert(seq);
        }
        assert_eq!(r.advance(5), 7);
        assert_eq!(r.sack(3).blocks(), [block(9, 10)]);
        assert_eq!(r.advance(9), 10);
        assert!(r.is_empty());
        assert_eq!(r.segments(), 0);
        assert_eq!(r.sack(3).count, 0);
    }

    #[test]
    fn a_duplicate_is_reported_once_and_first() {
        let mut r = Reassembly::default();
        r.insert(5);
        assert!(!r.insert(5));
        let sack = r.sack(3);
        assert!(sack.duplicate);
        assert_eq!(sack.blocks(), [block(5, 6), block(5, 6)]);
        assert!(!r.sack(3).duplicate);
    }

    #[test]
    fn no_more_than_three_blocks_fit_beside_timestamps() {
        let mut r = Reassembly::default();
        for seq in [2, 4, 6, 8, 10] {
            r.insert(seq);
        }
        assert_eq!(r.sack(3).blocks(), [block(10, 11), block(8, 9), block(6, 7)]);
    }
}
