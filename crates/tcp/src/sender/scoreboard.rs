//! The state of data in flight, in runs: segments that left together in one buffer and have had the same fate since.
//! Each run is in two lists: by sequence number, and, while it may still be declared lost, by time of transmission
//! (`tsorted_sent_queue`). It is split where a SACK block, an acknowledgement or a retransmission ends inside it, as
//! Linux splits an `sk_buff` (`tcp_fragment`); both parts keep their history. One file,
//! because only it may see both lists.

use crate::steady::Visit;
use sawtooth_units::width::Fit;

/// Received out of order, reported by SACK.
pub const SACKED: u8 = 1;
/// Declared lost.
pub const LOST: u8 = 2;
/// A retransmission of it is in flight (`TCPCB_SACKED_RETRANS`).
pub const RETRANS: u8 = 4;
/// Was ever retransmitted (`TCPCB_EVER_RETRANS`).
pub const EVER_RETRANS: u8 = 8;
/// Sent while the application limited the connection.
pub const APP_LIMITED: u8 = 16;
/// This run belongs to the same socket buffer (skb) as the run before it.
pub const JOINED: u8 = 32;
/// In the list by time of transmission.
const LINKED: u8 = 64;

/// The rate sample of this run is used up (`tx.delivered_mstamp == 0`).
pub const CONSUMED: u32 = u32::MAX;

/// Initial number of places; more are added as needed.
const FIRST_PLACES: usize = 16;

/// No place: the end of a list.
const NONE: u32 = u32::MAX;

/// Bytes in segments that are full except the last. The snapshot's two times are stored as distances before the time of
/// transmission, and the end as a length, to keep it at 48 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// Its first byte.
    pub start: u64,
    /// Microseconds at the last (re)transmission.
    pub sent_us: u64,
    /// `sent_us` minus the value that the connection's `first_tx_mstamp` had at that transmission.
    pub first_tx_ago_us: u32,
    /// `sent_us` minus the value that the connection's `delivered_mstamp` had at that transmission, or [`CONSUMED`].
    pub delivered_ago_us: u32,
    /// The low halves of the connection's delivered and lost counts at that time.
    pub delivered: u32,
    pub lost: u32,
    /// Segments in the network after its buffer was sent, including the buffer (`tx.in_flight`).
    pub in_flight: u32,
    pub bytes: u32,
    pub segments: u16,
    /// Segments of its buffer after it at that time.
    pub after: u16,
    /// The low bits of the connection's count of marked segments at that time.
    pub delivered_ce: u16,
    pub flags: u8,
}

/// A run and its neighbors in both lists: one cache line.
#[derive(Clone, Debug)]
struct Node {
    run: Run,
    prev: u32,
    next: u32,
    older: u32,
    newer: u32,
}

impl Run {
    /// After its last byte.
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.bytes)
    }
    pub fn segments(&self) -> u32 {
        u32::from(self.segments)
    }
    /// Whether any of these flags is set.
    pub fn is(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }
    /// Segments in the network as if its buffer had ended with it.
    pub fn in_flight_alone(&self) -> u32 {
        self.in_flight.saturating_sub(u32::from(self.after))
    }
}

/// A run's place does not change while it is in flight.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Scoreboard {
    nodes: Vec<Node>,
    /// The first of the unused places, which [`Node::next`] links.
    unused: u32,
    first: u32,
    last: u32,
    oldest: u32,
    newest: u32,
    /// The last result of a search: the next one tends to be near.
    found: u32,
    /// Bytes of a full segment.
    mss: u32,
}

fn place(at: u32) -> Option<u32> {
    (at != NONE).then_some(at)
}

impl Scoreboard {
    pub fn new(mss: u32) -> Self {
        let nodes = Vec::with_capacity(FIRST_PLACES);
        Scoreboard { nodes, unused: NONE, first: NONE, last: NONE, oldest: NONE, newest: NONE, found: NONE, mss }
    }

    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }
    pub fn run(&self, at: u32) -> &Run {
        &self.node(at).run
    }
    pub fn run_mut(&mut self, at: u32) -> &mut Run {
        &mut self.node_mut(at).run
    }
    fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }
    fn node_mut(&mut self, at: u32) -> &mut Node {
        &mut self.nodes[at as usize]
    }
    /// The places of the runs with the lowest and the highest numbers.
    pub fn first(&self) -> Option<u32> {
        place(self.first)
    }
    pub fn last(&self) -> Option<u32> {
        place(self.last)
    }
    /// The place of the run after that at `at`, by number.
    pub fn after(&self, at: u32) -> Option<u32> {
        place(self.node(at).next)
    }
    /// The run with the lowest numbers.
    pub fn front(&self) -> Option<&Run> {
        self.first().map(|at| self.run(at))
    }

    fn put(&mut self, node: Node) -> u32 {
        match place(self.unused) {
            Some(at) => {
                self.unused = self.node(at).next;
                *self.node_mut(at) = node;
                at
            }
            None => {
                self.nodes.push(node);
                self.nodes.len().fit_u32() - 1
            }
        }
    }

    /// Appends a run, which was sent last.
    pub fn push(&mut self, run: Run) {
        let (last, newest) = (self.last, self.newest);
        let run = Run { flags: run.flags | LINKED, ..run };
        let at = self.put(Node { run, prev: last, next: NONE, older: newest, newer: NONE });
        match place(last) {
            Some(last) => self.node_mut(last).next = at,
            None => self.first = at,
        }
        match place(newest) {
            Some(newest) => self.node_mut(newest).newer = at,
            None => self.oldest = at,
        }
        (self.last, self.newest) = (at, at);
    }

    /// The data before byte `seq` in the first run is acknowledged. Returns how many segments fewer the rest has.
    pub fn cut_first(&mut self, seq: u64) -> u32 {
        let mss = self.mss;
        let run = self.run_mut(self.first);
        let left = run.end() - seq;
        let before = run.segments();
        (run.start, run.bytes) = (seq, left.fit_u32());
        run.segments = run.bytes.div_ceil(mss).fit_u16();
        before - run.segments()
    }

    /// Removes the first run, which is fully acknowledged.
    pub fn pop_first(&mut self) {
        let at = self.first;
        self.unlink(at);
        let next = self.node(at).next;
        self.first = next;
        match place(next) {
            Some(next) => self.node_mut(next).prev = NONE,
            None => self.last = NONE,
        }
        self.forget(at);
    }

    /// Removes a run that is not in the list by time of transmission.
    fn remove(&mut self, at: u32) {
        let &Node { prev, next, .. } = self.node(at);
        match place(prev) {
            Some(prev) => self.node_mut(prev).next = next,
            None => self.first = next,
        }
        match place(next) {
            Some(next) => self.node_mut(next).prev = prev,
            None => self.last = prev,
        }
        self.forget(at);
    }

    fn forget(&mut self, at: u32) {
        if self.found == at {
            self.found = NONE;
        }
        self.node_mut(at).next = self.unused;
        self.unused = at;
    }

    /// Splits the run at `at` after `segments` of its segments; returns the place of the second part.
    pub fn split(&mut self, at: u32, segments: u32) -> u32 {
        let &Node { run: whole, next, newer, .. } = self.node(at);
        debug_assert!(0 < segments && segments < whole.segments(), "{segments} is not inside {whole:?}");
        let bytes = segments * self.mss;
        let run = Run {
            start: whole.start + u64::from(bytes),
            bytes: whole.bytes - bytes,
            segments: whole.segments - segments.fit_u16(),
            flags: whole.flags | JOINED,
            ..whole
        };
        let after = self.put(Node { run, prev: at, next, older: at, newer });
        let before = self.node_mut(at);
        (before.run.bytes, before.run.segments, before.next) = (bytes, segments.fit_u16(), after);
        before.run.after += run.segments;
        match place(next) {
            Some(next) => self.node_mut(next).prev = after,
            None => self.last = after,
        }
        if whole.is(LINKED) {
            self.node_mut(at).newer = after;
            match place(newer) {
                Some(newer) => self.node_mut(newer).older = after,
                None => self.newest = after,
            }
        }
        after
    }

    /// Splits the first segment of a run from the rest.
    pub fn part_segment(&mut self, at: u32) {
        if self.run(at).segments > 1 {
            self.split(at, 1);
        }
    }

    /// Merges the run at `at` with the previous one, if they belong to one buffer and both are SACKed
    /// (`tcp_shift_skb_data`). Returns the resulting place.
    pub fn join_sacked(&mut self, at: u32) -> u32 {
        let &Node { run: Run { bytes, segments, flags, .. }, prev, .. } = self.node(at);
        let Some(prev) = place(prev) else { return at };
        if flags & (SACKED | JOINED) != SACKED | JOINED || self.run(prev).flags | JOINED != flags {
            return at;
        }
        self.remove(at);
        let joined = self.run_mut(prev);
        joined.bytes += bytes;
        joined.segments += segments;
        prev
    }

    /// The place of the run in flight that contains byte `seq`.
    pub fn find(&mut self, seq: u64) -> u32 {
        let (first, last) = (self.run(self.first), self.run(self.last));
        debug_assert!(first.start <= seq && seq < last.end(), "{seq} is not in {}..{}", first.start, last.end());
        let start = place(self.found).map_or(first.start, |found| self.run(found).start);
        // Starts from the nearest known place.
        let mut at = match place(self.found) {
            Some(found) if seq < start && start - seq <= seq - first.start => found,
            Some(found) if seq >= start && seq - start <= last.end() - seq => found,
            _ if seq < start || last.start > seq && seq - first.start <= last.end() - seq => self.first,
            _ => self.last,
        };
        while self.run(at).start > seq {
            at = self.node(at).prev;
        }
        while self.run(at).end() <= seq {
            at = self.node(at).next;
        }
        self.found = at;
        at
    }

    /// The place of the run transmitted longest ago among those in the order of transmission.
    pub fn oldest_sent(&self) -> Option<u32> {
        place(self.oldest)
    }
    /// The place of the run transmitted next after that at `at`.
    pub fn sent_after(&self, at: u32) -> Option<u32> {
        place(self.node(at).newer)
    }

    /// Removes a run from the order of transmission; does nothing if it is not in it.
    pub fn unlink(&mut self, at: u32) {
        let node = self.node_mut(at);
        if !node.run.is(LINKED) {
            return;
        }
        node.run.flags &= !LINKED;
        let (older, newer) = (node.older, node.newer);
        match place(older) {
            Some(older) => self.node_mut(older).newer = newer,
            None => self.oldest = newer,
        }
        match place(newer) {
            Some(newer) => self.node_mut(newer).older = older,
            None => self.newest = older,
        }
    }

    /// The run at `at` was retransmitted, last of all, with the state `sent`.
    pub fn send_again(&mut self, at: u32, sent: Run) {
        self.unlink(at);
        let newest = self.newest;
        let node = self.node_mut(at);
        node.run = Run { flags: sent.flags | LINKED, ..sent };
        (node.older, node.newer) = (newest, NONE);
        match place(newest) {
            Some(newest) => self.node_mut(newest).newer = at,
            None => self.oldest = at,
        }
        self.newest = at;
    }

    /// See [`crate::steady`]. Places do not matter.
    pub fn visit(&mut self, visit: &mut Visit) {
        let mut next = self.first();
        while let Some(at) = next {
            let Node { run, next: after, newer, .. } = self.node_mut(at);
            visit.needs(after == newer);
            next = place(*after);
            run.visit(visit);
        }
    }
}

impl Run {
    fn visit(&mut self, visit: &mut Visit) {
        let Run {
            start,
            sent_us,
            first_tx_ago_us,
            delivered_ago_us,
            delivered,
            lost,
            in_flight,
            bytes,
            segments,
            after,
            delivered_ce,
            flags,
        } = self;
        visit.sequence(start);
        visit.micros(sent_us);
        visit.deliveries(delivered);
        [*first_tx_ago_us, *delivered_ago_us, *lost, *in_flight, *bytes].into_iter().for_each(|word| visit.same(word));
        [*segments, *after, *delivered_ce, (*flags).into()].into_iter().for_each(|word| visit.same(word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Random;

    const MSS: u32 = 10;
    const FULL: u64 = MSS as u64;

    /// Segments of [`MSS`] bytes.
    fn run(start: u64, end: u64) -> Run {
        let segments = end - start;
        Run { start: start * FULL, bytes: (segments * FULL) as u32, segments: segments as u16, ..Run::default() }
    }

    fn board(runs: &[(u64, u64)]) -> Scoreboard {
        let mut board = Scoreboard::new(MSS);
        runs.iter().for_each(|&(start, end)| board.push(run(start, end)));
        board
    }

    fn chain(
        board: &Scoreboard,
        first: Option<u32>,
        next: impl Fn(&Scoreboard, u32) -> Option<u32>,
    ) -> Vec<(u64, u64)> {
        let places = std::iter::successors(first, |&at| next(board, at));
        places.map(|at| (board.run(at).start / FULL, board.run(at).end() / FULL)).collect()
    }
    fn by_number(board: &Scoreboard) -> Vec<(u64, u64)> {
        chain(board, board.first(), Scoreboard::after)
    }
    fn by_transmission(board: &Scoreboard) -> Vec<(u64, u64)> {
        chain(board, board.oldest_sent(), Scoreboard::sent_after)
    }

    #[test]
    fn a_retransmission_moves_to_the_end_of_the_order_and_what_was_before_it_stays() {
        let mut board = board(&[(0, 3), (3, 6), (6, 9)]);
        let at = board.find(4 * FULL);
        let rest = board.split(at, 1);
        board.send_again(at, *board.run(at));
        assert_eq!(by_number(&board), [(0, 3), (3, 4), (4, 6), (6, 9)]);
        assert_eq!(by_transmission(&board), [(0, 3), (4, 6), (6, 9), (3, 4)]);
        board.unlink(rest);
        board.unlink(rest);
        assert_eq!(by_transmission(&board), [(0, 3), (6, 9), (3, 4)]);
        board.pop_first();
        board.pop_first();
        assert_eq!(by_transmission(&board), [(6, 9)]);
        assert_eq!(by_number(&board), [(4, 6), (6, 9)]);
    }

    #[test]
    fn both_parts_of_a_split_run_keep_what_was_known_and_the_latter_is_joined() {
        let mut board = Scoreboard::new(MSS);
        board.push(Run { sent_us: 7, in_flight: 30, flags: LOST, ..run(10, 20) });
        let at = board.find(15 * FULL);
        let after = board.split(at, 4);
        let (before, after) = (*board.run(at), *board.run(after));
        assert_eq!([before.sent_us, after.sent_us], [7, 7]);
        assert_eq!([before, after].map(|run| (run.is(LOST), run.is(JOINED))), [(true, false), (true, true)]);
        assert_eq!([before, after].map(|run| run.in_flight_alone()), [24, 30]);
        assert_eq!([before, after].map(|run| run.segments()), [4, 6]);
    }

    #[test]
    fn neighbours_of_one_buffer_become_one_once_both_are_sacked() {
        let mut board = board(&[(0, 9), (9, 12)]);
        let at = board.find(3 * FULL);
        let middle = board.split(at, 3);
        let last = board.split(middle, 3);
        let next = board.find(9 * FULL);
        for place in [middle, last, next] {
            board.run_mut(place).flags |= SACKED;
            board.unlink(place);
        }
        assert_eq!(board.join_sacked(middle), middle);
        assert_eq!(board.join_sacked(last), middle);
        assert_eq!(board.join_sacked(next), next);
        assert_eq!(by_number(&board), [(0, 3), (3, 9), (9, 12)]);
        assert_eq!(by_transmission(&board), [(0, 3)]);
    }

    #[test]
    fn a_run_is_found_from_wherever_something_was_found_before() {
        let runs: Vec<(u64, u64)> = (0..40).map(|i| (100 + 3 * i, 103 + 3 * i)).collect();
        let mut board = board(&runs);
        for step in 0..120 {
            let seq = (100 + step * 77 % 120) * FULL + step % FULL;
            let at = board.find(seq);
            assert!((board.run(at).start..board.run(at).end()).contains(&seq), "{seq}");
            let again = board.find(seq);
            assert_eq!(at, again);
        }
        (0..39).for_each(|_| board.pop_first());
        let at = board.find(219 * FULL);
        assert_eq!(board.run(at).start, 217 * FULL);
    }

    /// Compared with a list of single segments, each with the number of its last transmission while it is in the order.
    #[test]
    fn both_orders_are_those_of_segments_that_are_kept_one_by_one() {
        let mut random = Random::new(3);
        let (mut board, mut model) = (Scoreboard::new(MSS), Vec::<(u64, Option<u64>)>::new());
        let (mut nxt, mut sent) = (0u64, 0u64);
        for _ in 0..20_000 {
            let choice = random.below(if model.len() > 60 { 4 } else { 6 });
            let picked = model.get(random.below(model.len().max(1) as u32) as usize).map(|&(seq, _)| seq);
            match (choice, picked) {
                (0 | 1, Some(una)) => {
                    while board.front().is_some_and(|run| run.end() <= una * FULL) {
                        board.pop_first();
                    }
                    board.cut_first(una * FULL);
                    model.retain(|&(seq, _)| seq >= una);
                }
                (2 | 3, Some(seq)) => {
                    let at = board.find(seq * FULL);
                    let before = (seq - board.run(at).start / FULL) as u32;
                    let at = if before > 0 { board.split(at, before) } else { at };
                    if random.below(2) == 0 {
                        board.part_segment(at);
                    }
                    let run = *board.run(at);
                    sent += 1;
                    let of_run = model.iter_mut().filter(|(seq, _)| (run.start..run.end()).contains(&(seq * FULL)));
                    if choice == 2 {
                        board.send_again(at, run);
                        of_run.for_each(|segment| segment.1 = Some(sent));
                    } else {
                        board.unlink(at);
                        of_run.for_each(|segment| segment.1 = None);
                    }
                }
                _ => {
                    let (start, end) = (nxt, nxt + 1 + u64::from(random.below(9)));
                    board.push(run(start, end));
                    sent += 1;
                    model.extend((start..end).map(|seq| (seq, Some(sent))));
                    nxt = end;
                }
            }
            let segments =
                |runs: Vec<(u64, u64)>| runs.into_iter().flat_map(|(start, end)| start..end).collect::<Vec<_>>();
            assert_eq!(segments(by_number(&board)), model.iter().map(|&(seq, _)| seq).collect::<Vec<_>>());
            let mut order: Vec<_> = model.iter().filter_map(|&(seq, sent)| Some((sent?, seq))).collect();
            order.sort_unstable();
            assert_eq!(segments(by_transmission(&board)), order.into_iter().map(|(_, seq)| seq).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_places_of_what_was_acknowledged_are_used_again() {
        let mut board = board(&[(0, 1), (1, 2)]);
        for seq in 2..1_000 {
            board.pop_first();
            board.push(run(seq, seq + 1));
        }
        assert_eq!(board.nodes.len(), 2);
        board.pop_first();
        board.pop_first();
        assert!(board.is_empty() && board.last().is_none() && board.oldest_sent().is_none());
    }
}
