//! Tagging the scoreboard from SACK blocks (RFC 2018, RFC 2883, RFC 6675), and its imitation without SACK.

use super::Sender;
use super::ack::Acking;
use super::scoreboard::{EVER_RETRANS, LOST, RETRANS, SACKED, Segment};
use crate::clock::Clock;
use crate::flight::CaState;
use crate::packet::{Ack, Block};
use sawtooth_units::width::Fit;

impl Sender {
    /// Takes an ACK's blocks: tags what they newly cover.
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
            for seq in block.start.max(self.flight.snd_una)..block.end.min(self.flight.snd_nxt) {
                self.tag_duplicate(seq, &mut reordered);
            }
        }
        let blocks = &mut blocks[..count];
        blocks.sort_unstable_by_key(|b| b.start);
        let seen = self.sack_cache;
        for &block in blocks.iter() {
            let mut start = block.start;
            // What the previous ACK told already needs no second look.
            for known in seen {
                if known.start <= start && start < known.end {
                    start = known.end;
                } else if start < known.start && known.start < block.end {
                    self.tag_range(start, known.start, &mut reordered, acking, clock);
                    start = known.end;
                }
            }
            self.tag_range(start, block.end, &mut reordered, acking, clock);
        }
        self.sack_cache = [Block::default(); 4];
        self.sack_cache[..blocks.len()].copy_from_slice(blocks);
        if self.flight.ca_state != CaState::Loss || self.undo_marker.is_some() {
            self.check_sack_reordering(reordered);
        }
    }

    fn tag_range(&mut self, start: u64, end: u64, reordered: &mut u64, acking: &mut Acking, clock: Clock) {
        for seq in start..end {
            self.tag(seq, reordered, acking, clock);
        }
    }

    /// Segment `seq` was received: by a block that covers it. `reordered`: the lowest segment that came after a higher one.
    fn tag(&mut self, seq: u64, reordered: &mut u64, acking: &mut Acking, clock: Clock) {
        let &Segment { flags: before, sent_us, .. } = self.board.get(seq);
        let is = |flags: u8| before & flags != 0;
        if is(SACKED) {
            return;
        }
        self.rack_advance(before, seq + 1, sent_us, clock);
        if !is(RETRANS | EVER_RETRANS) {
            self.tag_original(seq, sent_us, reordered, acking);
        }
        // A retransmission counts as on its way still, unless it was sent for a loss.
        let settled = if is(LOST) { LOST | RETRANS } else { 0 };
        self.flight.lost_out -= u32::from(is(LOST));
        self.flight.retrans_out -= u32::from(is(LOST) && is(RETRANS));
        self.board.get_mut(seq).flags = before & !settled | SACKED;
        self.flight.sacked_out += 1;
        self.highest_sack = self.highest_sack.max(seq + 1);
        acking.sacked = true;
        acking.sack_delivered += 1;
        self.rate_delivered(seq, &mut acking.sampling);
        self.board.unlink(seq);
    }

    /// It was sent but once, at `sent_us`: what its arrival says of reordering, of a timeout, of the round trip.
    fn tag_original(&mut self, seq: u64, sent_us: u64, reordered: &mut u64, acking: &mut Acking) {
        if seq < self.highest_sack() {
            *reordered = seq.min(*reordered);
        }
        acking.delivered_original |= seq < self.high_seq;
        let (first_us, _) = acking.sacked_us.unwrap_or((sent_us, 0));
        acking.sacked_us = Some((first_us, sent_us));
    }

    /// Segment `seq` was received twice. If it was sent again, that was needless; if it was SACKed, too, it came late.
    fn tag_duplicate(&mut self, seq: u64, reordered: &mut u64) {
        let flags = self.board.get(seq).flags;
        let is_counted = self.undo_marker.is_some_and(|marker| seq >= marker) && self.undo_retrans > 0;
        if flags & (RETRANS | EVER_RETRANS) == 0 {
            return;
        }
        self.undo_retrans -= i64::from(is_counted);
        if flags & SACKED == 0 {
            return;
        }
        *reordered = seq.min(*reordered);
        if flags & RETRANS != 0 {
            self.board.get_mut(seq).flags &= !RETRANS;
            self.flight.retrans_out -= 1;
        }
    }

    /// A DSACK tells of as many needless retransmissions as it has segments; more than there were are not believed.
    fn see_dsack(&mut self, block: Block, prior_una: u64, acking: &mut Acking) {
        if block.is_empty() {
            return;
        }
        let repeated = block.len();
        acking.dsacked_probe |= repeated == 1 && self.tlp_high_seq == Some(block.end);
        self.dsack_dups += repeated;
        if self.dsack_dups > self.stats.retransmits {
            return;
        }
        acking.dsacked = true;
        acking.sack_delivered += repeated.fit_u32();
        // A probe is sent by the clock: reordering did not cause it.
        if self.reordering_seen && !acking.dsacked_probe {
            self.rack.see_dsack();
        }
        // What it tells of may be acknowledged, and no longer on the scoreboard.
        let is_of_this_recovery = self.undo_marker.is_some_and(|marker| marker < block.end && block.end <= prior_una);
        if is_of_this_recovery && self.undo_retrans > 0 {
            self.undo_retrans = (self.undo_retrans - repeated.cast_signed()).max(0);
        }
    }

    /// Without SACK a duplicate ACK stands for one segment received out of order (RFC 5681 section 3.2).
    pub(super) fn add_reno_sack(&mut self, duplicates: u32) {
        if duplicates > 0 {
            let before = self.flight.sacked_out;
            self.flight.sacked_out += duplicates;
            self.limit_reno_sacks(0);
            self.flight.delivered += u64::from(self.flight.sacked_out.saturating_sub(before));
        }
    }

    /// `acked` segments were acknowledged: the first filled a hole, the others are what the duplicates stood for.
    pub(super) fn remove_reno_sacks(&mut self, acked: u32) {
        if acked > 0 {
            let known = self.flight.sacked_out;
            self.flight.delivered += u64::from(acked.saturating_sub(known).max(1));
            self.flight.sacked_out = (known + 1).saturating_sub(acked);
        }
        self.limit_reno_sacks(acked);
    }

    /// There is a hole, and room for no more duplicates than beside it: more of them are reordering. `acked` were just taken out.
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
