//! Round trips from the timestamp option (RFC 7323): when a TSval passed, and when its echo did.

use std::collections::VecDeque;

/// TSvals remembered: those of at least a second if the clock ticks in milliseconds.
const MOST: usize = 1024;

/// A TSval, when it was first seen, and the last acknowledgement that carried it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    tsval: u32,
    seen_ns: u64,
    ack: i64,
}

/// The TSvals of one end that its peer has not echoed yet, each with the time at which it was first seen.
#[derive(Debug, Default)]
pub struct Echo {
    waiting: VecDeque<Stamp>,
    latest: Option<u32>,
}

impl Echo {
    /// Takes a segment that carries `tsval` and acknowledges up to `ack`.
    pub fn sent(&mut self, tsval: u32, ack: i64, now_ns: u64) {
        if self.latest == Some(tsval) {
            if let Some(last) = self.waiting.back_mut() {
                last.ack = last.ack.max(ack);
            }
        } else if self.latest.is_none_or(|latest| (tsval.wrapping_sub(latest).cast_signed()) > 0) {
            self.latest = Some(tsval);
            if self.waiting.len() == MOST {
                self.waiting.pop_front();
            }
            self.waiting.push_back(Stamp { tsval, seen_ns: now_ns, ack });
        }
    }

    /// Nanoseconds since `tsecr` was first seen as a TSval, if this is its first echo, and the acknowledgement number
    /// sent with it.
    pub fn echoed(&mut self, tsecr: u32, now_ns: u64) -> Option<(u64, i64)> {
        while let Some(&stamp) = self.waiting.front() {
            let age = tsecr.wrapping_sub(stamp.tsval).cast_signed();
            if age < 0 {
                return None;
            }
            self.waiting.pop_front();
            if age == 0 {
                return Some((now_ns.saturating_sub(stamp.seen_ns), stamp.ack));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_of_equal_tsvals_pairs_with_first_echo() {
        let mut echo = Echo::default();
        echo.sent(7, 1, 1_000);
        echo.sent(7, 2, 2_000);
        echo.sent(8, 3, 3_000);
        assert_eq!(echo.echoed(7, 11_000), Some((10_000, 2)));
        assert_eq!(echo.echoed(7, 12_000), None);
        assert_eq!(echo.echoed(8, 13_000), Some((10_000, 3)));
    }

    #[test]
    fn echo_of_unseen_tsval_gives_no_sample() {
        let mut echo = Echo::default();
        assert_eq!(echo.echoed(5, 10), None);
        echo.sent(u32::MAX, 0, 0);
        echo.sent(3, 0, 5);
        assert_eq!(echo.echoed(2, 10), None);
        assert_eq!(echo.echoed(3, 10), Some((5, 0)));
    }
}
