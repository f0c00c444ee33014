//! What is known of each segment in flight: a ring indexed by segment number, with the list in order of transmission time
//! (`tsorted_sent_queue`) threaded through it while that order is not the one of numbers.

use sawtooth_units::width::{Fit, Low};

/// Received out of order, told by SACK.
pub const SACKED: u8 = 1;
/// Declared lost.
pub const LOST: u8 = 2;
/// A retransmission of it is in flight (`TCPCB_SACKED_RETRANS`).
pub const RETRANS: u8 = 4;
/// Was ever retransmitted (`TCPCB_EVER_RETRANS`).
pub const EVER_RETRANS: u8 = 8;
/// Sent while the application limited the connection.
pub const APP_LIMITED: u8 = 16;
/// In one buffer with the segment before it, so both are sent, declared lost and sent again together.
pub const JOINED: u8 = 32;
const LINKED: u8 = 64;

/// The rate sample of this segment is used up (`tx.delivered_mstamp == 0`).
pub const CONSUMED: u32 = u32::MAX;

/// One segment. The two times of the snapshot are kept as distances back from the time of transmission, to stay at 40 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    /// Microseconds at the last (re)transmission.
    pub sent_us: u64,
    /// `sent_us` minus the connection's `first_tx_mstamp` then.
    pub first_tx_ago_us: u32,
    /// `sent_us` minus the connection's `delivered_mstamp` then, or [`CONSUMED`].
    pub delivered_ago_us: u32,
    /// The low halves of the connection's counts of segments delivered and lost then.
    pub delivered: u32,
    pub lost: u32,
    /// Segments in the network once its buffer was sent, that buffer's own included (`tx.in_flight`).
    pub in_flight: u32,
    /// Segments of its buffer that followed it then.
    pub after: u16,
    pub flags: u8,
    prev: u32,
    next: u32,
}

/// Slots of the smallest ring.
const SMALLEST: usize = 16;
/// A ring so many times longer than what is in flight is made shorter: with many connections it would only crowd the cache.
const SLACK: usize = 8;

#[derive(Clone, Debug)]
#[repr(C)]
pub struct Scoreboard {
    ring: Vec<Segment>,
    una: u64,
    nxt: u64,
    /// Once everything below is acknowledged, what is in flight was sent in order and is all in the list: no links are kept.
    linked_to: u64,
    /// Ends of the list in order of transmission time, where there are links; a link to itself ends it.
    oldest: Option<u64>,
    newest: Option<u64>,
}

impl Segment {
    pub fn new(sent_us: u64, first_tx_ago_us: u32, delivered_ago_us: u32, delivered: u32, flags: u8) -> Self {
        Segment { sent_us, first_tx_ago_us, delivered_ago_us, delivered, flags, ..Segment::default() }
    }

    /// Segments in the network had its buffer ended with it.
    pub fn in_flight_alone(&self) -> u32 {
        self.in_flight.saturating_sub(u32::from(self.after))
    }
}

impl Scoreboard {
    pub fn new() -> Self {
        let ring = vec![Segment::default(); SMALLEST];
        Scoreboard { ring, una: 0, nxt: 0, linked_to: 0, oldest: None, newest: None }
    }

    fn slot(&self, seq: u64) -> usize {
        debug_assert!(seq >= self.una && seq < self.nxt, "segment {seq} not in {}..{}", self.una, self.nxt);
        seq.fit_usize() & (self.ring.len() - 1)
    }
    pub fn get(&self, seq: u64) -> &Segment {
        let slot = self.slot(seq);
        &self.ring[slot]
    }
    pub fn get_mut(&mut self, seq: u64) -> &mut Segment {
        let slot = self.slot(seq);
        &mut self.ring[slot]
    }
    /// Puts `segment` in the place of `seq`, which keeps its place in the order of transmission.
    pub fn replace(&mut self, seq: u64, segment: Segment) {
        let old = self.get_mut(seq);
        *old =
            Segment { prev: old.prev, next: old.next, flags: segment.flags & !LINKED | old.flags & LINKED, ..segment };
    }
    pub fn is_empty(&self) -> bool {
        self.una == self.nxt
    }

    /// Appends the segment after the last one as the newest sent.
    pub fn push(&mut self, segment: Segment) {
        if self.nxt - self.una == self.ring.len() as u64 {
            self.resize(2 * self.ring.len());
        }
        let seq = self.nxt;
        self.nxt += 1;
        *self.get_mut(seq) = segment;
        if self.linked() {
            self.append(seq);
        }
    }

    /// The oldest segment.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// Removes the segments before `una`.
    pub fn pop_to(&mut self, una: u64) {
        while self.linked() && self.una < una {
            self.take_out(self.una);
            self.una += 1;
        }
        self.una = una;
        if self.ring.len() > SMALLEST && (self.nxt - self.una).fit_usize() * SLACK < self.ring.len() {
            self.resize(self.ring.len() / 4);
        }
    }

    #[cold]
    fn resize(&mut self, slots: usize) {
        let mut ring = vec![Segment::default(); slots.max(SMALLEST)];
        let mask = ring.len() - 1;
        for seq in self.una..self.nxt {
            ring[seq.fit_usize() & mask] = *self.get(seq);
        }
        self.ring = ring;
    }

    fn widen(&self, low: u32) -> u64 {
        self.una + u64::from(low.wrapping_sub(self.una.low_u32()))
    }

    fn linked(&self) -> bool {
        self.una < self.linked_to
    }

    /// The order of transmission is about to differ from that of numbers: from here on links tell it.
    fn link(&mut self) {
        if !self.linked() {
            (self.oldest, self.newest) = (None, None);
            for seq in self.una..self.nxt {
                self.get_mut(seq).flags &= !LINKED;
                self.append(seq);
            }
        }
        self.linked_to = self.nxt;
    }

    /// The segment transmitted longest ago among those in the order of transmission.
    pub fn oldest_sent(&self) -> Option<u64> {
        if self.linked() { self.oldest } else { (!self.is_empty()).then_some(self.una) }
    }
    /// The segment transmitted next after `seq`.
    pub fn sent_after(&self, seq: u64) -> Option<u64> {
        if !self.linked() {
            return (seq + 1 < self.nxt).then_some(seq + 1);
        }
        let next = self.get(seq).next;
        (next != seq.low_u32()).then(|| self.widen(next))
    }

    /// Takes `seq` out of the order of transmission; nothing happens if it is not in it.
    pub fn unlink(&mut self, seq: u64) {
        self.link();
        self.take_out(seq);
    }

    /// Makes `seq` the newest transmitted.
    pub fn link_newest(&mut self, seq: u64) {
        self.link();
        self.take_out(seq);
        self.append(seq);
    }

    fn take_out(&mut self, seq: u64) {
        let segment = self.get_mut(seq);
        if segment.flags & LINKED == 0 {
            return;
        }
        segment.flags &= !LINKED;
        let (prev, next) = (segment.prev, segment.next);
        let prev = (prev != seq.low_u32()).then(|| self.widen(prev));
        let next = (next != seq.low_u32()).then(|| self.widen(next));
        match prev {
            Some(p) => self.get_mut(p).next = next.map_or(p.low_u32(), |n| n.low_u32()),
            None => self.oldest = next,
        }
        match next {
            Some(n) => self.get_mut(n).prev = prev.map_or(n.low_u32(), |p| p.low_u32()),
            None => self.newest = prev,
        }
    }

    /// Links `seq`, which is in no list, as the newest.
    fn append(&mut self, seq: u64) {
        let newest = self.newest;
        let segment = self.get_mut(seq);
        segment.flags |= LINKED;
        segment.next = seq.low_u32();
        segment.prev = newest.unwrap_or(seq).low_u32();
        match newest {
            Some(n) => self.get_mut(n).next = seq.low_u32(),
            None => self.oldest = Some(seq),
        }
        self.newest = Some(seq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(board: &Scoreboard) -> Vec<u64> {
        let mut seen = vec![];
        let mut at = board.oldest_sent();
        while let Some(seq) = at {
            seen.push(seq);
            at = board.sent_after(seq);
        }
        seen
    }

    #[test]
    fn a_retransmission_moves_to_the_end_of_the_order() {
        let mut board = Scoreboard::new();
        (0..5).for_each(|_| board.push(Segment::default()));
        board.link_newest(1);
        assert_eq!(order(&board), [0, 2, 3, 4, 1]);
        board.unlink(4);
        board.unlink(0);
        assert_eq!(order(&board), [2, 3, 1]);
        board.pop_to(2);
        assert_eq!(order(&board), [2, 3]);
    }

    #[test]
    fn once_what_was_moved_is_acknowledged_the_order_is_that_of_numbers() {
        let mut board = Scoreboard::new();
        (0..3).for_each(|_| board.push(Segment::default()));
        assert_eq!(order(&board), [0, 1, 2]);
        board.link_newest(0);
        (3..5).for_each(|_| board.push(Segment::default()));
        assert_eq!(order(&board), [1, 2, 0, 3, 4]);
        board.pop_to(2);
        assert_eq!(order(&board), [2, 3, 4]);
        board.pop_to(3);
        assert!(!board.linked());
        assert_eq!(order(&board), [3, 4]);
        board.push(Segment::default());
        board.unlink(4);
        assert_eq!(order(&board), [3, 5]);
    }

    #[test]
    fn the_order_survives_growth_and_wrapped_links() {
        let mut board = Scoreboard::new();
        (board.una, board.nxt) = (u64::from(u32::MAX) - 10, u64::from(u32::MAX) - 10);
        let first = board.una;
        (0..200).for_each(|_| board.push(Segment::default()));
        board.link_newest(first + 3);
        let order = order(&board);
        assert_eq!(order.len(), 200);
        assert_eq!(order[0], first);
        assert_eq!(order[199], first + 3);
        (0..190).for_each(|count| board.pop_to(first + count + 1));
        assert_eq!(board.ring.len(), 64);
        assert_eq!(self::order(&board)[..2], [first + 190, first + 191]);
    }
}
