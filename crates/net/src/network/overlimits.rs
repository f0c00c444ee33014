//! Counts how often Linux asks a token bucket (tc-tbf) for a packet and there are not enough tokens: tc's `overlimits`.
//!
//! Linux asks when a packet arrives, whether there is room or not, and when one has moved on to the line, if others
//! wait. It does not ask while a packet with its tokens waits for the line.

use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub struct Overlimits {
    waits: VecDeque<Wait>,
    count: u64,
}

/// The first packet waits for its tokens (picoseconds).
#[derive(Clone, Copy, Debug)]
struct Wait {
    from: u64,
    until: u64,
    /// Counted when its wait began.
    counted: bool,
}

impl Overlimits {
    /// A packet arrives.
    pub fn packet_arrives(&mut self, now: u64) {
        self.settle(now);
        self.count += u64::from(self.waits.front().is_some_and(|wait| wait.from <= now));
    }

    /// A packet that is first from `from` on has its tokens at `until`. Packets come in the order of these times.
    pub fn packet_waits(&mut self, from: u64, until: u64) {
        if until > from {
            self.waits.push_back(Wait { from, until, counted: false });
        }
    }

    /// The count up to `now`.
    pub fn count(&mut self, now: u64) -> u64 {
        self.settle(now);
        self.count
    }

    /// Counts waits that began, and forgets packets that have their tokens.
    fn settle(&mut self, now: u64) {
        while let Some(wait) = self.waits.front_mut()
            && wait.from <= now
        {
            self.count += u64::from(!std::mem::replace(&mut wait.counted, true));
            if wait.until > now {
                return;
            }
            self.waits.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_counts_when_it_becomes_first_and_when_others_arrive() {
        let mut overlimits = Overlimits::default();
        overlimits.packet_arrives(10);
        // It waits from 10 to 20; the next one from then to 30, when the line has taken the previous one.
        overlimits.packet_waits(10, 20);
        assert_eq!(overlimits.count(10), 1);
        overlimits.packet_arrives(10);
        overlimits.packet_waits(21, 30);
        assert_eq!(overlimits.count(20), 2);
        // One has its tokens and waits for the line.
        overlimits.packet_arrives(20);
        assert_eq!(overlimits.count(20), 2);
        assert_eq!(overlimits.count(21), 3);
        overlimits.packet_arrives(29);
        overlimits.packet_arrives(30);
        assert_eq!(overlimits.count(100), 4);
    }

    #[test]
    fn packet_with_tokens_is_not_over_limit() {
        let mut overlimits = Overlimits::default();
        overlimits.packet_arrives(10);
        overlimits.packet_waits(10, 10);
        overlimits.packet_arrives(10);
        assert_eq!(overlimits.count(10), 0);
    }
}
