//! What one end has sent and the other has not acknowledged yet, as far as the capture shows.

use std::collections::VecDeque;

/// A range of sequence numbers that was sent, or that must have been sent without being captured.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub start: i64,
    pub end: i64,
    /// The segment it belongs to as first captured (or several joined by offload); for an uncaptured range, itself.
    pub first: (i64, i64),
    /// When its first copy was captured; for an uncaptured range, when it was found missing.
    pub first_ns: u64,
    /// When its last copy was captured.
    pub last_ns: u64,
    /// TSval of its first copy; for an uncaptured range, that of the segment that showed the gap.
    pub tsval: u32,
    /// Captured copies.
    pub copies: u8,
    pub sacked: bool,
    /// No copy was captured, but later sequence numbers were.
    pub unseen: bool,
    /// Its first copy was lost before the capture point.
    pub lost_before: bool,
    /// Copies that the receiver reported as duplicates.
    pub duplicated: u8,
}

impl Sent {
    /// Splits it at `at` and returns the rest.
    fn split(&mut self, at: i64) -> Sent {
        let mut rest = *self;
        (self.end, rest.start) = (at, at);
        if self.unseen {
            (self.first.1, rest.first.0) = (at, at);
        }
        rest
    }
}

/// Ranges in sequence order, without gaps or overlaps.
#[derive(Debug, Default)]
pub struct Outstanding {
    ring: VecDeque<Sent>,
    sacked_bytes: i64,
}

impl Outstanding {
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Bytes that the receiver has beyond its cumulative acknowledgement.
    pub fn sacked_bytes(&self) -> i64 {
        self.sacked_bytes
    }

    /// Appends a range that starts where the last one ends.
    pub fn push(&mut self, sent: Sent) {
        debug_assert!(self.ring.back().is_none_or(|last| last.end == sent.start));
        self.ring.push_back(sent);
    }

    pub fn first(&self) -> Option<&Sent> {
        self.ring.front()
    }

    /// The lowest range that the receiver is not known to have.
    pub fn head(&self) -> Option<&Sent> {
        // Between the front and the first unsacked range there are only ranges that were sacked before the
        // acknowledgement reached them.
        self.ring.iter().find(|sent| !sent.sacked)
    }

    /// The ranges within `start..end`, split at both ends if needed.
    pub fn within(&mut self, start: i64, end: i64) -> impl Iterator<Item = &mut Sent> {
        let low = self.cut(start);
        let high = self.cut(end).max(low);
        self.ring.range_mut(low..high)
    }

    /// Marks what a SACK block reports; calls `newly` with each range that was not known to have arrived.
    pub fn sack(&mut self, start: i64, end: i64, mut newly: impl FnMut(&Sent)) {
        let mut bytes = 0;
        for sent in self.within(start, end) {
            if !sent.sacked {
                sent.sacked = true;
                bytes += sent.end - sent.start;
                newly(sent);
            }
        }
        self.sacked_bytes += bytes;
    }

    /// Removes everything below `ack` and passes each range to `passed`.
    pub fn acknowledge(&mut self, ack: i64, mut passed: impl FnMut(Sent)) {
        while let Some(first) = self.ring.front_mut() {
            if first.start >= ack {
                break;
            }
            let mut gone = *first;
            if first.end > ack {
                *first = gone.split(ack);
            } else {
                self.ring.pop_front();
            }
            if gone.sacked {
                self.sacked_bytes -= gone.end - gone.start;
            }
            passed(gone);
        }
        if self.ring.len() * 8 < self.ring.capacity() && self.ring.capacity() > 64 {
            self.ring.shrink_to(self.ring.len() * 2);
        }
    }

    /// Splits at `at`; returns the index of the first range at or after it.
    fn cut(&mut self, at: i64) -> usize {
        let index = self.ring.partition_point(|sent| sent.end <= at);
        match self.ring.get_mut(index) {
            Some(sent) if sent.start < at => {
                let rest = sent.split(at);
                self.ring.insert(index + 1, rest);
                index + 1
            }
            _ => index,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn sent(start: i64, end: i64) -> Sent {
        Sent {
            start,
            end,
            first: (start, end),
            first_ns: 0,
            last_ns: 0,
            tsval: 0,
            copies: 1,
            sacked: false,
            unseen: false,
            lost_before: false,
            duplicated: 0,
        }
    }

    fn ten() -> Outstanding {
        let mut outstanding = Outstanding::default();
        for i in 0..10 {
            outstanding.push(sent(i * 100, (i + 1) * 100));
        }
        outstanding
    }

    #[test]
    fn partial_ack_leaves_rest_of_range() {
        let mut outstanding = ten();
        let mut bytes = 0;
        outstanding.acknowledge(250, |gone| bytes += gone.end - gone.start);
        assert_eq!((bytes, outstanding.len(), outstanding.first().unwrap().start), (250, 8, 250));
    }

    #[test]
    fn sack_block_counts_once_and_splits_range() {
        let mut outstanding = ten();
        outstanding.sack(150, 350, |_| ());
        outstanding.sack(100, 350, |_| ());
        assert_eq!(outstanding.sacked_bytes(), 250);
        outstanding.acknowledge(300, |_| ());
        assert_eq!(outstanding.sacked_bytes(), 50);
        assert_eq!(outstanding.head().unwrap().start, 350);
    }

    #[test]
    fn ranges_outside_are_unchanged() {
        let mut outstanding = ten();
        assert_eq!(outstanding.within(-50, 0).count(), 0);
        assert_eq!(outstanding.within(1000, 2000).count(), 0);
        assert_eq!(outstanding.within(950, 2000).count(), 1);
        assert_eq!(outstanding.len(), 11);
    }
}
