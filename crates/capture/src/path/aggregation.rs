//! Deliveries that leave the bottleneck in groups, as on cellular lines, Wi-Fi and mahimahi. Packets sent over some
//! time arrive at once; the pace within a group is that of a later link, not the bottleneck's.

use super::statistics::{after, before, counts, quantile, sorted};
use super::trace::{Delivery, Trace};
use sawtooth_units::width::Approx;

/// Neighbors that arrive within this share of the time between their sending have waited for each other. A bottleneck
/// that serves packets one by one spreads them and never brings them together.
const COMPRESSED: f64 = 0.25;
/// A link gathers packets if this share of its deliveries is brought together.
const MIN_COMPRESSED_SHARE: f64 = 0.5;
const MIN_KNOWN: usize = 40;

/// The times since the delivery before, and between the sending of both, which may be NaN.
fn steps(trace: &Trace) -> Vec<(f64, f64)> {
    trace.delivered.windows(2).map(|two| (two[1].t_s - two[0].t_s, two[1].sent_s - two[0].sent_s)).collect()
}

fn brought_together(trace: &Trace, &(since, sent): &(f64, f64)) -> bool {
    !sent.is_nan() && since < COMPRESSED * (sent - 2.0 * trace.grain_s)
}

/// For each delivery, whether it was brought together with the one before.
pub fn compressed(trace: &Trace) -> Vec<bool> {
    std::iter::once(false).chain(steps(trace).iter().map(|step| brought_together(trace, step))).collect()
}

/// Each group of deliveries as one, at the time of its first; None if the link does not gather.
pub fn group_deliveries(trace: &Trace) -> Option<Vec<Delivery>> {
    let steps = steps(trace);
    let together = |step: &(f64, f64)| brought_together(trace, step);
    let known = steps.iter().filter(|(_, sent)| !sent.is_nan()).count();
    let near = sorted(steps.iter().filter(|&one| together(one)).map(|one| one.0).collect());
    if known < MIN_KNOWN || near.len().approx() < MIN_COMPRESSED_SHARE * known.approx() || near.is_empty() {
        return None;
    }
    // Deliveries equally near, without known sending times, also belong to the group.
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

/// For each loss, whether more was sent in the round trip around it than the bottleneck carries (one segment per
/// `frame_s`).
pub fn overloaded(trace: &Trace, frame_s: f64, trip_s: f64) -> Vec<bool> {
    let total = counts(trace.sent_segments.iter().copied());
    let around = |&t: &f64| {
        let low = total[before(&trace.sent_t_s, t - trip_s / 2.0)];
        let high = total[after(&trace.sent_t_s, t + trip_s / 2.0)];
        (high - low).approx() * frame_s > trip_s
    };
    trace.lost.t_s.iter().map(around).collect()
}
