//! Marks the scoreboard from SACK blocks (RFC 2018, RFC 2883, RFC 6675), and emulates this without SACK.

use super::Sender;
use super::ack::Acking;
use super::scoreboard::{CONSUMED, EVER_RETRANS, LOST, RETRANS, SACKED};
use crate::clock::Clock;
use crate::flight::CaState;
use crate::packet::{Ack, Block};
use sawtooth_units::width::Fit;

impl Sender {
    /// Takes an ACK's blocks and marks what they newly cover.
    pub(super) fn sack_tag(&mut self, ack: &Ack, prior_una: u64, acking: &mut Acking, clock: Clock) {
        let mut reordered = self.flight.snd_nxt;
        let mut blocks = [Block::default(); 4];
        let mut count = 0;
        let mut duplicate = None;
        for (i, &block) in ack.sack.blocks().iter().enumerate() {
            if i == 0 && ack.sack.duplicate {
                self.see_dsack(block, prior_una, acking);
                duplicate = Some(block);
            }
            if !block.is_empty() && block.end <= self.flight.snd_nxt && block.end > self.flight.snd_una {
                blocks[count] = Block { start: block.start.max(self.flight.snd_una), end: block.end };
                count += 1;
            }
        }
        if let Some(block) = duplicate {
            let (start, end) = (block.start.max(self.flight.snd_una), block.end.min(self.flight.snd_nxt));
            let block = Block { start, end };
            self.for_runs(start, end, |sender, at| sender.tag_duplicate(at, block, &mut reordered));
        }
        let blocks = &mut blocks[..count];
        blocks.sort_unstable_by_key(|b| b.start);
        let seen = self.sack_cache;
        for &block in blocks.iter() {
            let mut start = block.start;
            // What the previous ACK already reported is skipped.
            for known in seen {
                if known.start <= start && start < known.end {
                    start = known.end;
                } else if start < known.start && known.start < block.end {
                    let before = Block { end: known.start, ..block };
                    self.tag_range(start, before, &mut reordered, acking, clock);
                    start = known.end;
                }
            }
            self.tag_range(start, block, &mut reordered, acking, clock);
        }
        self.sack_cache = [Block::default(); 4];
        self.sack_cache[..blocks.len()].copy_from_slice(blocks);
        if self.flight.ca_state != CaState::Loss || self.undo.is_some() {
            self.check_sack_reordering(reordered);
        }
    }

    /// Marks what `block` covers; everything before `start` was already processed.
    fn tag_range(&mut self, start: u64, block: Block, reordered: &mut u64, acking: &mut Acking, clock: Clock) {
        self.for_runs(start, block.end, |sender, at| sender.tag(at, block, reordered, acking, clock));
    }

    /// Calls `act` for each run that overlaps bytes `start` to `end`; it may split the run, and returns the place of
    /// the overlapping part.
    fn for_runs(&mut self, start: u64, end: u64, mut act: impl FnMut(&mut Self, u32) -> u32) {
        if start >= end {
            return;
        }
        let mut at = Some(self.board.find(start));
        while let Some(place) = at
            && self.board.run(place).start < end
        {
            let place = act(self, place);
            at = self.board.after(place);
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
            if run.is(RETRANS) {
                self.board.run_mut(at).flags &= !RETRANS;
                self.flight.retrans_out -= run.segments();
            }
        }
        at
    }

    /// A DSACK reports as many needless retransmissions as it has segments, at most as many as there were.
    fn see_dsack(&mut self, block: Block, prior_una: u64, acking: &mut Acking) {
        if block.is_empty() {
            return;
        }
        let mss = u64::from(self.flight.mss);
        let repeated = if block.len() > mss { block.len().div_ceil(mss) } else { 1 };
        acking.dsacked_probe |= block.len() <= mss && self.tlp_high_seq == Some(block.end);
        self.dsack_dups += repeated;
        if self.dsack_dups > self.stats.retransmits {
            return;
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
