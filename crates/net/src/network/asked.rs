//! Counts how often a token bucket (tc-tbf) was asked for a packet without enough tokens: tc's `overlimits`.
//!
//! Linux asks when a packet arrives, whether there is room or not, and when one has moved on to the line, if others
//! wait. It does not ask while a packet with its tokens waits for the line.

use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub struct Asked {
    waits: VecDeque<Wait>,
    overlimits: u64,
}

/// The first packet waits for its tokens (picoseconds).
#[derive(Clone, Copy, Debug)]
struct Wait {
    from: u64,
    until: u64,
    /// It was asked for when its wait began.
    asked: bool,
}

impl Asked {
    /// A packet arrives.
    pub fn comes(&mut self, now: u64) {
        self.settle(now);
        self.overlimits += u64::from(self.waits.front().is_some_and(|wait| wait.from <= now));
    }

    /// A packet that is first from `from` on has its tokens at `until`. Packets come in the order of these times.
    pub fn waits(&mut self, from: u64, until: u64) {
        if until > from {
            self.waits.push_back(Wait { from, until, asked: false });
        }
    }

    /// The count up to `now`.
    pub fn overlimits(&mut self, now: u64) -> u64 {
        self.settle(now);
        self.overlimits
    }

    /// Counts waits that began, and forgets packets that have their tokens.
    fn settle(&mut self, now: u64) {
        while let Some(wait) = self.waits.front_mut()
            && wait.from <= now
        {
            self.overlimits += u64::from(!std::mem::replace(&mut wait.asked, true));
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
    fn a_packet_is_asked_for_when_it_becomes_the_first_and_when_others_come() {
        let mut asked = Asked::default();
        asked.comes(10);
        // It waits from 10 to 20; the next one from then to 30, when the line has taken the previous one.
        asked.waits(10, 20);
        assert_eq!(asked.overlimits(10), 1);
        asked.comes(10);
        asked.waits(21, 30);
        assert_eq!(asked.overlimits(20), 2);
        // One has its tokens and waits for the line.
        asked.comes(20);
        assert_eq!(asked.overlimits(20), 2);
        assert_eq!(asked.overlimits(21), 3);
        asked.comes(29);
        asked.comes(30);
        assert_eq!(asked.overlimits(100), 4);
    }

    #[test]
    fn what_finds_its_tokens_is_over_no_limit() {
        let mut asked = Asked::default();
        asked.comes(10);
        asked.waits(10, 10);
        asked.comes(10);
        assert_eq!(asked.overlimits(10), 0);
    }
}
