//! Finds losses in segments: when, and how many consecutive packets.

use std::collections::BTreeMap;

use super::directions::{Data, RETRANSMITTED};
use super::statistics::{before, highest};
use crate::analysis::kind::Kind;

/// Runs of losses in order of time: when (s), and how many segments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LossRuns {
    pub t_s: Vec<f64>,
    pub segments: Vec<u64>,
}

impl LossRuns {
    fn of(mut runs: Vec<(f64, u64)>) -> Self {
        runs.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (t_s, segments) = runs.into_iter().unzip();
        LossRuns { t_s, segments }
    }
}

/// The number of segments for this many bytes, at least one.
pub fn segments(bytes: i64, mss: u32) -> u64 {
    bytes.unsigned_abs().div_ceil(u64::from(mss.max(1))).max(1)
}

/// Losses seen at the sender: for each retransmission the time at which its lost copy was sent. A run is of
/// consecutively sent segments. Needless retransmissions do not count.
pub fn at_sender(data: &Data) -> LossRuns {
    let mut last = BTreeMap::new();
    let mut lost = Vec::new();
    let mut starts = data.seq.clone();
    starts.sort_unstable();
    for (at, &start) in data.seq.iter().enumerate() {
        if RETRANSMITTED.contains(&data.kind[at]) {
            // Part of a super-packet: the one that starts before it.
            let below = || last.get(&starts[before(&starts, start).saturating_sub(1)]);
            lost.extend(last.get(&start).or_else(below).copied());
        }
        last.insert(start, at);
    }
    lost.sort_unstable();
    let mut runs: Vec<(f64, u64)> = Vec::new();
    let mut previous = None;
    for &at in &lost {
        match runs.last_mut() {
            Some((_, length)) if previous.is_some_and(|one| at <= one + 1) => *length += 1,
            _ => runs.push((data.t_s[at], 1)),
        }
        previous = Some(at);
    }
    LossRuns::of(runs)
}

/// Losses seen after the loss: for each gap the time at which the first segment beyond it passed, and its length.
pub fn at_receiver(data: &Data, mss: u32) -> LossRuns {
    let high = highest(&data.end);
    let mut fills: Vec<(usize, i64, usize)> = (0..data.kind.len())
        .filter(|&at| data.kind[at] == Kind::FillsHole as u8)
        // Filled by the very last segment: nothing passed beyond it, as after the loss of a tail.
        .map(|at| (before(&high, data.end[at]).min(at), data.seq[at], at))
        .collect();
    fills.sort_unstable();
    let mut runs: Vec<(f64, u64)> = Vec::new();
    let mut previous: Option<(usize, i64)> = None;
    for (beyond, start, at) in fills {
        let length = segments(data.end[at] - data.seq[at], mss);
        match runs.last_mut() {
            Some((_, run)) if previous == Some((beyond, start)) => *run += length,
            _ => runs.push((data.t_s[beyond], length)),
        }
        previous = Some((beyond, data.end[at]));
    }
    LossRuns::of(runs)
}
