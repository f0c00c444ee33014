//! Deliveries that leave the bottleneck together, as of cellular lines, Wi-Fi and mahimahi: what was sent over a while arrives
//! at once, and the pace within such a group is not the bottleneck's but that of what comes behind it.

use super::numbers::{after, before, counts, quantile, sorted};
use super::trace::{Delivery, Trace};
use sawtooth_units::width::Approx;

/// Neighbours that arrive within this part of the time that lay between them when they were sent have waited for each other: a
/// bottleneck that serves one after the other spreads what it delays, and never brings it together.
const COMPRESSED: f64 = 0.25;
/// A link gathers packets where so large a share of its deliveries is brought together.
const USUAL: f64 = 0.5;
const FEWEST: usize = 40;

/// Each group of deliveries as one, at its first one's time; None where the link gathers none.
pub fn gathered(trace: &Trace) -> Option<Vec<Delivery>> {
    let steps: Vec<(f64, f64)> =
        trace.delivered.windows(2).map(|two| (two[1].t_s - two[0].t_s, two[1].sent_s - two[0].sent_s)).collect();
    let together = |&(since, sent): &(f64, f64)| !sent.is_nan() && since < COMPRESSED * (sent - 2.0 * trace.grain_s);
    let known = steps.iter().filter(|(_, sent)| !sent.is_nan()).count();
    let near = sorted(steps.iter().filter(|&one| together(one)).map(|one| one.0).collect());
    if known < FEWEST || near.len().approx() < USUAL * known.approx() || near.is_empty() {
        return None;
    }
    // What is as near without being known to have been sent apart is of the group as well.
    let near_s = quantile(&near, 0.95) * 2.0;
    let mut groups = vec![trace.delivered[0]];
    for (step, one) in steps.iter().zip(&trace.delivered[1..]) {
        match groups.last_mut() {
            Some(group) if together(step) || step.0 <= near_s => group.bytes += one.bytes,
            _ => groups.push(*one),
        }
    }
    Some(groups)
}

/// Of each loss, whether more was sent in the round trip around it than the bottleneck takes, a segment in `frame_s`.
pub fn overloaded(trace: &Trace, frame_s: f64, trip_s: f64) -> Vec<bool> {
    let total = counts(trace.sent_segments.iter().copied());
    let around = |&t: &f64| {
        let low = total[before(&trace.sent_t_s, t - trip_s / 2.0)];
        let high = total[after(&trace.sent_t_s, t + trip_s / 2.0)];
        (high - low).approx() * frame_s > trip_s
    };
    trace.lost.t_s.iter().map(around).collect()
}
