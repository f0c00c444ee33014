//! Which connections' segments are kept while a capture is read, and the memory bound for them.

use crate::output::details::Details;
use crate::output::tables::Table;
use crate::path::{self, Facts, PathEstimate, Refused};

/// The connections whose segments are kept as rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetentionPolicy {
    None,
    /// This connection, with all columns and without a bound.
    One(u32),
    /// As many as fit into this many rows (segments and SACK blocks), none with more than half of them, with the
    /// columns for a picture and an estimate. If not all fit, the longest ones stay.
    Longest {
        rows: usize,
    },
}

/// Cost of a connection beyond its rows, in rows, so that a flood of short ones is bounded too.
const ROWS_PER_CONNECTION: usize = 16;

/// The rows of the kept connections.
#[derive(Debug)]
pub struct Retention {
    policy: RetentionPolicy,
    /// By the connection's index; None: not selected, dropped, or borrowed.
    all: Vec<Option<Box<Details>>>,
    /// Rows of all kept connections.
    rows: usize,
    /// Rows of the borrowed connection before it was borrowed.
    borrowed: usize,
}

impl Retention {
    pub fn new(policy: RetentionPolicy) -> Self {
        Retention { policy, all: Vec::new(), rows: 0, borrowed: 0 }
    }

    /// Registers the next connection.
    pub fn begin(&mut self) {
        let details = match self.policy {
            RetentionPolicy::None => return,
            RetentionPolicy::One(one) => (one as usize == self.all.len()).then(|| Details::new(true)),
            RetentionPolicy::Longest { .. } => Some(Details::new(false)),
        };
        self.rows += details.as_ref().map_or(0, |_| ROWS_PER_CONNECTION);
        self.all.push(details.map(Box::new));
    }

    /// The rows of a connection, while one of its segments is processed.
    #[inline]
    pub fn borrow(&mut self, index: u32) -> Option<Box<Details>> {
        if self.policy == RetentionPolicy::None {
            return None;
        }
        let details = self.all[index as usize].take()?;
        self.borrowed = details.rows();
        Some(details)
    }

    /// Takes back the borrowed rows, unless there are too many now.
    #[inline]
    pub fn give_back(&mut self, index: u32, details: Box<Details>) {
        let most = if let RetentionPolicy::Longest { rows } = self.policy { rows } else { usize::MAX };
        if details.rows() + ROWS_PER_CONNECTION > most / 2 {
            self.rows -= self.borrowed + ROWS_PER_CONNECTION;
            return;
        }
        self.rows += details.rows() - self.borrowed;
        self.all[index as usize] = Some(details);
        if self.rows > most {
            self.keep_longest(most / 2);
        }
    }

    /// The estimate of a connection's path, if its rows are kept; `facts` are the connection's.
    pub fn path(&self, index: u32, facts: &Facts) -> Option<Result<PathEstimate, Refused>> {
        let details = self.all.get(index as usize)?.as_ref()?;
        Some(path::estimate_path(facts, &details.as_rows()))
    }

    /// Hands out the tables `segments` and `sacks` of a connection, once; None if its rows are not kept.
    pub fn take(&mut self, index: u32) -> Option<Vec<(&'static str, Table)>> {
        let details = self.all.get_mut(index as usize)?.take()?;
        self.rows -= details.rows() + ROWS_PER_CONNECTION;
        Some(details.tables())
    }

    /// The tables of the single selected connection; without rows if there is no such connection.
    pub fn only(&mut self) -> Option<Vec<(&'static str, Table)>> {
        let RetentionPolicy::One(index) = self.policy else { return None };
        Some(self.take(index).unwrap_or_else(|| Details::new(true).tables()))
    }

    /// Keeps the longest connections that have at most `most` rows together. This is half the limit, so it rarely
    /// happens.
    fn keep_longest(&mut self, most: usize) {
        let size = |details: &Option<Box<Details>>| details.as_ref().map(|one| one.rows() + ROWS_PER_CONNECTION);
        let mut sizes: Vec<(usize, usize)> =
            self.all.iter().enumerate().filter_map(|(index, one)| Some((size(one)?, index))).collect();
        sizes.sort_unstable_by(|one, other| other.cmp(one));
        self.rows = 0;
        for (size, index) in sizes {
            if self.rows + size <= most {
                self.rows += size;
            } else {
                self.all[index] = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::kind::Kind;
    use crate::decode::segment::{Endpoint, Options, Segment};
    use crate::output::details::Row;

    fn segment() -> Segment {
        let end = Endpoint { address: [10, 0, 0, 1].into(), port: 1 };
        Segment {
            frame: 1,
            time_ns: 0,
            source: end,
            target: end,
            seq: 0,
            ack: 0,
            flags: 0,
            window: 0,
            payload: 1,
            options: Options::default(),
            ip_id: None,
            ttl: 64,
            ecn: 0,
            via: 0,
            cut: false,
        }
    }

    /// Adds this many segments of a connection.
    fn give(kept: &mut Retention, index: u32, segments: usize) {
        for _ in 0..segments {
            let Some(mut details) = kept.borrow(index) else { return };
            let row = Row { t_s: 0.0, direction: 0, seq: 0, ack: 0, window: 0, kind: Kind::InOrder, rtt_s: 0.0 };
            details.push(&segment(), row);
            kept.give_back(index, details);
        }
    }

    fn begun(policy: RetentionPolicy, connections: usize) -> Retention {
        let mut kept = Retention::new(policy);
        (0..connections).for_each(|_| kept.begin());
        kept
    }

    fn rows(kept: &mut Retention, index: u32) -> Option<usize> {
        let tables = kept.take(index)?;
        Some(tables[0].1[0].1.len())
    }

    #[test]
    fn connections_that_fit_are_kept_and_handed_out_once() {
        let mut kept = begun(RetentionPolicy::Longest { rows: 1_000 }, 3);
        give(&mut kept, 0, 100);
        give(&mut kept, 2, 300);
        assert_eq!([0, 1, 2, 2, 3].map(|index| rows(&mut kept, index)), [Some(100), Some(0), Some(300), None, None]);
        assert_eq!(kept.rows, 0);
    }

    #[test]
    fn longest_connections_are_kept_whole_beyond_the_bound() {
        let mut kept = begun(RetentionPolicy::Longest { rows: 1_000 }, 5);
        for (index, segments) in [(0, 200), (1, 350), (2, 90), (3, 250), (4, 60)] {
            give(&mut kept, index, segments);
        }
        assert!(kept.rows <= 1_000);
        give(&mut kept, 0, 50);
        assert_eq!([0, 1, 2, 3, 4].map(|index| rows(&mut kept, index)), [None, Some(350), Some(90), None, None]);
    }

    #[test]
    fn connection_over_half_the_bound_is_dropped() {
        let mut kept = begun(RetentionPolicy::Longest { rows: 1_000 }, 2);
        give(&mut kept, 0, 600);
        give(&mut kept, 1, 400);
        assert_eq!([0, 1].map(|index| rows(&mut kept, index)), [None, Some(400)]);
        assert_eq!(kept.rows, 0);
    }

    #[test]
    fn many_short_connections_are_bounded() {
        let mut kept = Retention::new(RetentionPolicy::Longest { rows: 1_000 });
        for index in 0..10_000 {
            kept.begin();
            give(&mut kept, index, 1);
            assert!(kept.rows <= 1_000);
        }
        assert!(kept.all.iter().flatten().count() * (ROWS_PER_CONNECTION + 1) <= 1_000);
    }

    #[test]
    fn policy_one_keeps_no_other_connection() {
        let mut kept = begun(RetentionPolicy::One(1), 3);
        (0..3).for_each(|index| give(&mut kept, index, 10));
        assert_eq!([0, 2].map(|index| rows(&mut kept, index)), [None, None]);
        let tables = kept.only().expect("it is selected");
        assert_eq!((tables[0].1.len(), tables[0].1[0].1.len()), (12, 10));
        assert!(begun(RetentionPolicy::None, 1).only().is_none());
    }
}
