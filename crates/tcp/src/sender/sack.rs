//! Tagging the scoreboard from SACK blocks (`tcp_sacktag_write_queue`) and its imitation without SACK.

use super::Sender;
use super::ack::{Acking, DATA_SACKED, DSACK_TLP, DSACKING_ACK, ORIG_SACK_ACKED};
use super::scoreboard::{EVER_RETRANS, LOST, RETRANS, SACKED};
use crate::clock::Clock;
use crate::flight::CaState;
use crate::packet::{Ack, Block};
use sawtooth_units::width::Fit;

impl Sender {
    /// `tcp_sacktag_write_queue`.
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

    /// `tcp_sacktag_one` for a segment that a block covers.
    fn tag(&mut self, seq: u64, reordered: &mut u64, acking: &mut Acking, clock: Clock) {
        let segment = *self.board.get(seq);
        let flags = segment.flags;
        if flags & SACKED != 0 {
            return;
        }
        self.rack_advance(flags, seq + 1, segment.sent_us, clock);
        let mut cleared = 0;
        if flags & RETRANS != 0 {
            // Not marked lost: the retransmission may still be on its way.
            if flags & LOST != 0 {
                cleared = LOST | RETRANS;
                self.flight.lost_out -= 1;
                self.flight.retrans_out -= 1;
            }
        } else {
            if flags & EVER_RETRANS == 0 {
                if seq < self.highest_sack() {
                    *reordered = (*reordered).min(seq);
                }
                if seq < self.high_seq {
                    acking.flags |= ORIG_SACK_ACKED;
                }
                acking.first_sacked_us.get_or_insert(segment.sent_us);
                acking.last_sacked_us = segment.sent_us;
            }
            if flags & LOST != 0 {
                cleared = LOST;
                self.flight.lost_out -= 1;
            }
        }
        let tagged = self.board.get_mut(seq);
        tagged.flags = (flags & !cleared) | SACKED;
        acking.flags |= DATA_SACKED;
        acking.sack_delivered += 1;
        self.flight.sacked_out += 1;
        self.highest_sack = self.highest_sack.max(seq + 1);
        self.rate_delivered(seq, &mut acking.sampling);
        self.board.unlink(seq);
    }

    /// `tcp_sacktag_one` for a segment reported as received twice.
    fn tag_duplicate(&mut self, seq: u64, reordered: &mut u64) {
        let flags = self.board.get(seq).flags;
        if flags & (EVER_RETRANS | RETRANS) != 0 {
            if self.undo_retrans > 0 && self.undo_marker.is_some_and(|marker| seq + 1 > marker) {
                self.undo_retrans -= 1;
            }
            if flags & SACKED != 0 {
                *reordered = (*reordered).min(seq);
            }
        }
        if flags & SACKED != 0 && flags & RETRANS != 0 {
            self.board.get_mut(seq).flags &= !RETRANS;
            self.flight.retrans_out -= 1;
        }
    }

    /// `tcp_dsack_seen` and the counting in `tcp_check_dsack`.
    fn see_dsack(&mut self, block: Block, prior_una: u64, acking: &mut Acking) {
        if block.is_empty() {
            return;
        }
        let repeated = block.len();
        if repeated == 1 && self.tlp_high_seq == Some(block.end) {
            acking.flags |= DSACK_TLP;
        }
        self.dsack_dups += repeated;
        if self.dsack_dups > self.stats.retransmits {
            return;
        }
        if self.reordering_seen && acking.flags & DSACK_TLP == 0 {
            self.rack.dsack_seen = true;
        }
        acking.flags |= DSACKING_ACK;
        acking.sack_delivered += repeated.fit_u32();
        if let Some(marker) = self.undo_marker
            && self.undo_retrans > 0
            && block.end <= prior_una
            && block.end > marker
        {
            self.undo_retrans = (self.undo_retrans - repeated.cast_signed()).max(0);
        }
    }

    /// `tcp_add_reno_sack`: a duplicate ACK stands for one segment received out of order.
    pub(super) fn add_reno_sack(&mut self, duplicates: u32) {
        if duplicates == 0 {
            return;
        }
        let before = self.flight.sacked_out;
        self.flight.sacked_out += duplicates;
        self.check_reno_reordering(0);
        self.flight.delivered += u64::from(self.flight.sacked_out.saturating_sub(before));
    }

    /// `tcp_remove_reno_sacks`: `acked` segments were acknowledged cumulatively.
    pub(super) fn remove_reno_sacks(&mut self, acked: u32) {
        if acked > 0 {
            let sacked = self.flight.sacked_out;
            self.flight.delivered += u64::from(acked.saturating_sub(sacked).max(1));
            self.flight.sacked_out = sacked.saturating_sub(acked - 1);
        }
        self.check_reno_reordering(acked);
    }

    /// `tcp_check_reno_reordering` with `tcp_limit_reno_sacked`: more duplicates than holes can explain.
    fn check_reno_reordering(&mut self, addend: u32) {
        let flight = &mut self.flight;
        let holes = flight.lost_out.max(1).min(flight.packets_out);
        if flight.sacked_out + holes > flight.packets_out {
            flight.sacked_out = flight.packets_out - holes;
            self.reordering = (flight.packets_out + addend).min(super::MAX_REORDERING);
            self.reordering_seen = true;
        }
    }
}
