//! Marks the scoreboard from SACK blocks (RFC 2018, RFC 2883, RFC 6675), and emulates this without SACK.

use super::Sender;
use super::ack::Acking;
use super::scoreboard::{CONSUMED, EVER_RETRANS, LOST, RETRANS, SACKED};
use crate::clock::Clock;
use crate::flight::CaState;
use crate::packet::{Ack, Block};
use sawtooth_units::width::Fit;

/// Where the marking of one ACK's blocks stands.
struct Walk {
    /// The lowest byte that arrived after a higher one.
    reordered: u64,
    /// Linux goes through its queue in one direction: nothing before this byte is examined again.
    passed: u64,
}

impl Sender {
    /// Takes an ACK's blocks and marks what they newly cover (`tcp_sacktag_write_queue`).
    pub(super) fn sack_tag(&mut self, ack: &Ack, prior_una: u64, acking: &mut Acking, clock: Clock) {
        let mut walk = Walk { reordered: self.flight.snd_nxt, passed: 0 };
        // What the ACK reports as received twice, if that is still on the scoreboard.
        let mut twice = None;
        let mut blocks = [Block::default(); 4];
        let mut count = 0;
        for (i, &block) in ack.sack.blocks().iter().enumerate() {
            if i == 0 && ack.sack.duplicate && self.see_dsack(block, prior_una, acking) {
                twice = Some(block).filter(|&block| self.is_on_board(block, prior_una));
            }
            if self.is_above(block) || i == 0 && twice.is_some() {
                blocks[count] = block;
                count += 1;
            }
        }
        let blocks = &mut blocks[..count];
        // A stable sort, as Linux's: what was received twice comes before a block that begins with it.
        blocks.sort_by_key(|block| block.start);
        let twice_at = twice.and_then(|twice| blocks.iter().position(|&block| block == twice));
        let seen = self.sack_cache;
        for (i, &block) in blocks.iter().enumerate() {
            if twice_at == Some(i) {
                self.tag_twice(block, &mut walk, acking, clock);
                continue;
            }
            // It is marked with the block before it, and again by itself if nothing was sent after that block.
            let twice = twice.filter(|_| twice_at == Some(i + 1));
            let mut start = block.start;
            // What the previous ACK already reported is skipped.
            for known in seen.iter().filter(|known| block.start < known.end && known.start < block.end) {
                self.tag_range(start, Block { end: known.start, ..block }, twice, &mut walk, acking, clock);
                start = start.max(known.end);
                if let Some(twice) = twice.filter(|twice| twice.start < start && start < block.end) {
                    self.tag_twice(twice, &mut walk, acking, clock);
                }
            }
            self.tag_range(start, block, twice, &mut walk, acking, clock);
        }
        self.sack_cache = [Block::default(); 4];
        self.sack_cache[..blocks.len()].copy_from_slice(blocks);
        if self.flight.ca_state != CaState::Loss || self.undo.is_some() {
            self.check_sack_reordering(walk.reordered);
        }
    }

    /// Whether what a DSACK reports is still on the scoreboard: it is above the acknowledgement, or this ACK
    /// acknowledges it (`tcp_is_sackblock_valid`).
    fn is_on_board(&self, block: Block, prior_una: u64) -> bool {
        let is_just_acked = prior_una <= block.start && block.end <= self.flight.snd_una;
        self.is_above(block) || is_just_acked && self.undo.is_some_and(|undo| undo.from < block.end)
    }

    /// A block that begins below the acknowledgement is of an old ACK and is ignored.
    fn is_above(&self, block: Block) -> bool {
        self.flight.snd_una < block.start && block.start < block.end && block.end <= self.flight.snd_nxt
    }

    /// Marks what `block` covers; everything before `start` was already processed. `twice`: what the same ACK reports
    /// as received twice.
    fn tag_range(
        &mut self,
        start: u64,
        block: Block,
        twice: Option<Block>,
        walk: &mut Walk,
        acking: &mut Acking,
        clock: Clock,
    ) {
        self.for_runs(start, block.end, walk, |sender, mut at, reordered| {
            if let Some(twice) = twice {
                let run = sender.board.run(at);
                if twice.start <= run.start && run.start < twice.end {
                    at = sender.tag_duplicate(at, twice, reordered);
                } else if run.start < twice.start && twice.start < run.end() {
                    sender.split_before(at, twice.start);
                }
            }
            sender.tag(at, block, reordered, acking, clock)
        });
    }

    /// Marks what was received twice, unless that was passed.
    fn tag_twice(&mut self, block: Block, walk: &mut Walk, acking: &mut Acking, clock: Clock) {
        if walk.passed > block.start {
            return;
        }
        self.for_runs(block.start, block.end, walk, |sender, at, reordered| {
            let at = sender.tag_duplicate(at, block, reordered);
            if sender.is_above(block) { sender.tag(at, block, reordered, acking, clock) } else { at }
        });
    }

    /// Calls `act` for each run that overlaps bytes `start` to `end`; it may split the run, and returns the place of
    /// the overlapping part.
    fn for_runs(
        &mut self,
        start: u64,
        end: u64,
        walk: &mut Walk,
        mut act: impl FnMut(&mut Self, u32, &mut u64) -> u32,
    ) {
        if start >= end {
            return;
        }
        let mut at = Some(self.board.find(start));
        while let Some(place) = at
            && self.board.run(place).start < end
        {
            let place = act(self, place, &mut walk.reordered);
            at = self.board.after(place);
        }
        walk.passed = if at.is_some() { end } else { 0 };
    }

    /// Splits the run at `at` before the first segment from `seq` on.
    fn split_before(&mut self, at: u32, seq: u64) {
        let run = self.board.run(at);
        let before = (seq - run.start).div_ceil(u64::from(self.flight.mss));
        if before < u64::from(run.segments) {
            self.board.split(at, before.fit_u32());
        }
    }

    /// Splits the part outside `block` from the run at `at`, at segment boundaries, since a segment is SACKed entirely
    /// or not at all. Returns the place of the rest; an error, with the last place processed, if nothing is left.
    fn within(&mut self, at: u32, block: Block) -> Result<u32, u32> {
        let run = self.board.run(at);
        if block.start <= run.start && run.end() <= block.end { Ok(at) } else { self.part_within(at, block) }
    }

    fn part_within(&mut self, mut at: u32, block: Block) -> Result<u32, u32> {
        let mss = u64::from(self.flight.mss);
        let run = self.board.run(at);
        let before = block.start.saturating_sub(run.start).div_ceil(mss);
        if before >= u64::from(run.segments) {
            return Err(at);
        }
        if before > 0 {
            at = self.board.split(at, before.fit_u32());
        }
        let run = self.board.run(at);
        if block.end < run.end() {
            match block.end.saturating_sub(run.start) / mss {
                0 => return Err(at),
                inside => self.board.split(at, inside.fit_u32()),
            };
        }
        Ok(at)
    }

    /// The part of the run at `at` that `block` covers was received. `reordered`: the lowest byte that arrived after a
    /// higher one.
    fn tag(&mut self, at: u32, block: Block, reordered: &mut u64, acking: &mut Acking, clock: Clock) -> u32 {
        if self.board.run(at).is(SACKED) {
            return at;
        }
        let at = match self.within(at, block) {
            Ok(at) => at,
            Err(at) => return at,
        };
        let run = *self.board.run(at);
        self.rack_advance(run.flags, run.end(), run.sent_us, clock);
        if !run.is(RETRANS | EVER_RETRANS) {
            self.tag_original(run.start, run.sent_us, reordered, acking);
        }
        // A retransmission still counts as in flight, unless it was sent for a loss.
        let (count, was_lost) = (run.segments(), run.is(LOST));
        self.flight.lost_out -= if was_lost { count } else { 0 };
        self.flight.retrans_out -= if was_lost && run.is(RETRANS) { count } else { 0 };
        self.flight.sacked_out += count;
        self.highest_sack = self.highest_sack.max(run.end());
        acking.sacked = true;
        acking.sack_delivered += count;
        self.rate_delivered(at, run.end(), &mut acking.sampling);
        self.board.unlink(at);
        let tagged = self.board.run_mut(at);
        tagged.flags = tagged.flags & !if was_lost { LOST | RETRANS } else { 0 } | SACKED;
        tagged.delivered_ago_us = CONSUMED;
        self.board.join_sacked(at)
    }

    /// It was sent only once, at `sent_us`: its arrival shows reordering, a spurious timeout, and the round trip.
    fn tag_original(&mut self, seq: u64, sent_us: u64, reordered: &mut u64, acking: &mut Acking) {
        if seq < self.highest_sack() {
            *reordered = seq.min(*reordered);
        }
        acking.delivered_original |= seq < self.high_seq;
        let (first_us, _) = acking.sacked_us.unwrap_or((sent_us, 0));
        acking.sacked_us = Some((first_us, sent_us));
    }

    /// The part of the run at `at` that `block` covers was received twice. If it was retransmitted, that was needless;
    /// if it was also SACKed, it arrived late.
    fn tag_duplicate(&mut self, at: u32, block: Block, reordered: &mut u64) -> u32 {
        if !self.board.run(at).is(RETRANS | EVER_RETRANS) {
            return at;
        }
        let at = match self.within(at, block) {
            Ok(at) => at,
            Err(at) => return at,
        };
        let run = *self.board.run(at);
        if let Some(undo) = self.undo.as_mut().filter(|undo| undo.from < run.end()) {
            undo.needless(run.segments());
        }
        if run.is(SACKED) {
            *reordered = run.start.min(*reordered);
        }
        // One that was sent for a loss no longer counts once it is SACKed.
        if run.end() > self.flight.snd_una && run.is(RETRANS) && !run.is(LOST) {
            self.board.run_mut(at).flags &= !RETRANS;
            self.flight.retrans_out -= run.segments();
        }
        at
    }

    /// A DSACK reports as many needless retransmissions as it has segments, at most as many as there were.
    /// False: more than there were.
    fn see_dsack(&mut self, block: Block, prior_una: u64, acking: &mut Acking) -> bool {
        if block.is_empty() {
            return false;
        }
        let mss = u64::from(self.flight.mss);
        let repeated = if block.len() > mss { block.len().div_ceil(mss) } else { 1 };
        acking.dsacked_probe |= block.len() <= mss && self.tlp_high_seq == Some(block.end);
        self.dsack_dups += repeated;
        if self.dsack_dups > self.stats.retransmits {
            return false;
        }
        acking.dsacked = true;
        acking.sack_delivered += repeated.fit_u32();
        // A probe is sent by a timer, so reordering did not cause it.
        if self.reordering_seen && !acking.dsacked_probe {
            self.rack.see_dsack();
        }
        // The reported data may be acknowledged and no longer on the scoreboard.
        if let Some(undo) = self.undo.as_mut().filter(|undo| undo.from < block.end && block.end <= prior_una) {
            undo.needless(repeated.fit_u32());
        }
        true
    }

    /// Without SACK a duplicate ACK means one segment received out of order (RFC 5681 section 3.2).
    pub(super) fn add_reno_sack(&mut self, duplicates: u32) {
        if duplicates > 0 {
            let before = self.flight.sacked_out;
            self.flight.sacked_out += duplicates;
            self.limit_reno_sacks(0);
            self.flight.delivered += u64::from(self.flight.sacked_out.saturating_sub(before));
        }
    }

    /// `acked` segments were acknowledged: the first filled a gap, the others are those behind the duplicates.
    pub(super) fn remove_reno_sacks(&mut self, acked: u32) {
        if acked > 0 {
            let known = self.flight.sacked_out;
            self.flight.delivered += u64::from(acked.saturating_sub(known).max(1));
            self.flight.sacked_out = (known + 1).saturating_sub(acked);
        }
        self.limit_reno_sacks(acked);
    }

    /// There is a gap, and only as many duplicates as segments after it; more mean reordering. `acked` segments were
    /// just removed.
    fn limit_reno_sacks(&mut self, acked: u32) {
        let holes = self.flight.lost_out.max(1).min(self.flight.packets_out);
        let most = self.flight.packets_out - holes;
        if self.flight.sacked_out > most {
            self.flight.sacked_out = most;
            self.reordering = (self.flight.packets_out + acked).min(super::MAX_REORDERING);
            self.reordering_seen = true;
        }
    }
}
