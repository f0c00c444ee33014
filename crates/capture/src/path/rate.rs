//! The bottleneck's rate: from trains of deliveries, and from deliveries while packets waited.

use std::collections::BTreeMap;

use super::aggregation::compressed;
use super::estimate::Estimated;
use super::statistics::{after, before, counts, least, percent, quantile, sorted, sums};
use super::trace::{Delivery, Trace};
use super::transfer::Transfer;
use sawtooth_units::width::Approx;

/// Numbers of consecutive deliveries over which a rate is taken. Packets that left the bottleneck back to back keep its
/// spacing. Short trains show it even with a window of a few segments; in long trains the jitter of clocks and
/// acknowledgements averages out.
const SHORT_TRAINS: [usize; 6] = [2, 3, 4, 6, 8, 16];
const LONG_TRAINS: [usize; 2] = [64, 32];
const RATE_TOLERANCE: f64 = 0.02;
/// A rate that this share of short trains agrees on, to 2%, is the bottleneck's: nothing else spaces packets so evenly.
const MIN_SHORT_SHARE: f64 = 0.05;
/// There must be this many times as many trains at that rate as at rates 4% faster and slower; otherwise it is a broad
/// peak by chance.
const MIN_PROMINENCE: f64 = 2.5;
/// The share of long trains at one rate above which the bottleneck was busy most of the time.
const MIN_LONG_SHARE: f64 = 0.5;
/// A link that gathers packets and was busy for less than this share of the time may be faster than its groups show.
const MIN_BUSY_SHARE: f64 = 0.5;
pub const MIN_TRAINS: usize = 12;
/// Short trains faster than the long ones by more than this share passed the bottleneck as bursts.
const MIN_RATE_DIFFERENCE: f64 = 0.1;
const MIN_BUSY_SAMPLES: usize = 20;
/// Trains faster than the busy bottleneck by more than this factor were compressed after it.
const COMPRESSED_RATIO: f64 = 1.4;
const JITTER: f64 = 0.005;
/// A sender limited by the receive window for this share of its time that also paces (BBR: 1.25 times its delivery
/// rate) spaces packets as evenly as a bottleneck does.
const MIN_WINDOW_SHARE: f64 = 0.3;
const NEAR_GOODPUT: f64 = 1.5;
/// A link gathers packets if more than this share of its deliveries comes too near the one before.
const MAX_SHARE_TOO_CLOSE: f64 = 0.1;
/// How far above a lower bound a replay tries, as a factor.
pub const LOWER_BOUND_RANGE: f64 = 5.0;
/// An Ethernet frame in bits, where the packets' size hardly matters.
const FRAME_BITS: f64 = 1500.0 * 8.0;

/// Payload bit/s of every train of `length` deliveries after a first one, without breaks.
pub fn train_rates(trace: &Trace, length: usize) -> Vec<f64> {
    let delivered = &trace.delivered;
    let total = sums(&delivered.iter().map(|one| one.bytes).collect::<Vec<_>>());
    let broken = counts(delivered.iter().map(|one| u64::from(one.bytes.is_nan())));
    (0..delivered.len().saturating_sub(length))
        .filter_map(|at| {
            let last = at + length;
            let took = delivered[last].t_s - delivered[at].t_s;
            let unbroken = broken[last + 1] == broken[at + 1] && took > 0.0;
            unbroken.then(|| (total[last + 1] - total[at + 1]) * 8.0 / took)
        })
        .collect()
}

/// The densest rate among the faster ones: payload bit/s, half its width as a share, the share of trains there, and the
/// ratio to the number of trains next to it.
#[derive(Clone, Copy, Debug, Default)]
struct Cluster {
    bps: f64,
    half: f64,
    share: f64,
    prominence: f64,
}

impl Cluster {
    fn of(rates: Vec<f64>) -> Self {
        if rates.len() < MIN_TRAINS {
            return Cluster::default();
        }
        let all = rates.len();
        let rates = sorted(rates);
        let fast = &rates[after(&rates, quantile(&rates, 0.99) / 2.0)..];
        let wide = |by: f64| libm::exp(by * RATE_TOLERANCE);
        let (mut at, mut inside, mut end) = (0, 0, 0);
        for (from, rate) in fast.iter().enumerate() {
            while end < fast.len() && fast[end] <= rate * wide(2.0) {
                end += 1;
            }
            if end - from > inside {
                (at, inside) = (from, end - from);
            }
        }
        if inside == 0 {
            return Cluster::default();
        }
        let chosen = &fast[at..at + inside];
        let middle = quantile(chosen, 0.5);
        let off = sorted(chosen.iter().map(|rate| (rate / middle - 1.0).abs()).collect());
        let around = before(fast, fast[at] * wide(4.0)) - before(fast, fast[at] * wide(-2.0));
        let beside = (around.approx() - inside.approx()) / 2.0;
        let share = if inside >= MIN_TRAINS { inside.approx() / all.approx() } else { 0.0 };
        Cluster { bps: middle, half: quantile(&off, 0.9), share, prominence: inside.approx() / beside.max(1.0) }
    }
}

/// The bottleneck's rate in bit/s of full Ethernet frames; `gathers`: each delivery of the trace is a group.
pub fn bottleneck(trace: &Trace, transfer: &Transfer, base_s: f64, gathers: bool) -> Estimated {
    if gathers {
        return grouped_rate(trace, transfer);
    }
    let wire = transfer.wire_ratio();
    let found: BTreeMap<usize, Cluster> = SHORT_TRAINS
        .into_iter()
        .chain(LONG_TRAINS)
        .map(|length| (length, Cluster::of(train_rates(trace, length))))
        .collect();
    let sharp = |length: &usize| found[length].share >= MIN_SHORT_SHARE && found[length].prominence >= MIN_PROMINENCE;
    let faster = |one: usize, other: usize| if found[&other].bps > found[&one].bps { other } else { one };
    let short = SHORT_TRAINS.into_iter().filter(sharp).reduce(faster);
    let long = LONG_TRAINS.into_iter().find(|length| found[length].share >= MIN_LONG_SHARE);
    let chosen = match (short, long) {
        // Evenly spaced by a window or a pacer, not by a bottleneck: bursts passed faster.
        (Some(one), Some(other))
            if found[&one].bps > found[&other].bps * (1.0 + MIN_RATE_DIFFERENCE)
                && !has_standing_queue(trace, found[&other].bps) =>
        {
            short
        }
        _ => long.or(short),
    };
    let busy = sorted(busy_rates(trace, base_s, chosen.map_or(0.0, |length| found[&length].bps)));
    if busy.len() >= MIN_BUSY_SAMPLES {
        let [low, middle, high] = [0.1, 0.5, 0.9].map(|part| quantile(&busy, part));
        let apart = |bps: f64| middle > bps * COMPRESSED_RATIO || bps > middle * COMPRESSED_RATIO;
        if chosen.is_none_or(|length| apart(found[&length].bps)) {
            let how = format!("deliveries while packets were queued, {} samples; the rate is not steady", busy.len());
            return Estimated::new(middle * wire, low * wire, high * wire, how);
        }
    }
    let event = if trace.sender_side { "acknowledged at the sender" } else { "arriving at the receiver" };
    let long_rates = || LONG_TRAINS.iter().map(|length| found[length].bps);
    if let Some(length) = chosen {
        let Cluster { bps, half, share, .. } = found[&length];
        let (value, half) = (bps * wire, half.max(JITTER));
        if share_too_close(trace, transfer, bps) > MAX_SHARE_TOO_CLOSE {
            return grouped_rate(&merge_close_deliveries(trace, transfer, bps), transfer);
        }
        let near = value < NEAR_GOODPUT * transfer.frame_goodput_bps();
        if transfer.receive_window >= MIN_WINDOW_SHARE && near && !has_standing_queue(trace, bps) {
            let how =
                format!("segments {event} have the rate that the receive window allows, and the path has no queue");
            return lower_bound(transfer, long_rates(), format!("{how}, so the bottleneck may be faster"));
        }
        if near && trains_spaced_by_bottleneck(trace, length, bps).is_some_and(|count| count < MIN_TRAINS) {
            let how = format!("segments {event} passed as they were sent and waited for none before them");
            return lower_bound(transfer, long_rates(), format!("{how}, so the bottleneck may be faster"));
        }
        if !near && (unqueued_deliveries_waited(trace, bps) || trains_were_held(trace, length, bps)) {
            let how = format!("segments {event} waited for something else than the ones before them");
            return lower_bound(transfer, long_rates(), format!("{how}, so their spacing may not be the bottleneck's"));
        }
        let how = format!(
            "{} of the trains of {} segments {event} have this rate within {}",
            percent(share, 0),
            length + 1,
            percent(RATE_TOLERANCE, 0)
        );
        return Estimated::new(value, value * (1.0 - half), value * (1.0 + half), how);
    }
    let how =
        format!("the fastest long trains of segments {event}; their rates differ, so the bottleneck may be faster");
    lower_bound(transfer, long_rates(), how)
}

/// How soon after another a delivery is too near for a bottleneck of that rate, which sends one frame at a time.
fn min_spacing_s(transfer: &Transfer, bps: f64) -> f64 {
    f64::from(transfer.mss) * 8.0 / bps / 4.0
}

/// The share of deliveries that come too near the one before.
fn share_too_close(trace: &Trace, transfer: &Transfer, bps: f64) -> f64 {
    let near_s = min_spacing_s(transfer, bps);
    let near = trace.delivered.windows(2).filter(|two| two[1].t_s - two[0].t_s < near_s).count();
    near.approx() / trace.delivered.len().max(1).approx()
}

/// Deliveries that come too near the one before, as groups.
fn merge_close_deliveries(trace: &Trace, transfer: &Transfer, bps: f64) -> Trace {
    let near_s = min_spacing_s(transfer, bps);
    let mut delivered: Vec<Delivery> = Vec::new();
    let mut newest_s = f64::NEG_INFINITY;
    for one in &trace.delivered {
        match delivered.last_mut() {
            Some(group) if one.t_s - newest_s < near_s => group.bytes += one.bytes,
            _ => delivered.push(*one),
        }
        newest_s = one.t_s;
    }
    Trace { delivered, ..trace.clone() }
}

/// Whether deliveries with nothing of this transfer in front usually waited, for more than four packets at that rate:
/// for others, or for a link that gathers packets.
fn unqueued_deliveries_waited(trace: &Trace, bps: f64) -> bool {
    let delivered = &trace.delivered;
    let trips: Vec<f64> = delivered.iter().map(|one| one.t_s - one.sent_s).collect();
    let known: Vec<f64> = trips.iter().copied().filter(|one| !one.is_nan()).collect();
    let Some(empty_s) = least(&known) else { return false };
    let firsts = left_right_behind(trace, -trace.grain_s)
        .into_iter()
        .zip(trips)
        .filter(|(behind, trip)| !behind && !trip.is_nan());
    let waits = sorted(firsts.map(|(_, trip)| trip - empty_s).collect());
    waits.len() >= MIN_TRAINS && quantile(&waits, 0.5) > 4.0 * FRAME_BITS / bps + 3.0 * trace.grain_s
}

/// A lower bound from the rates of trains.
fn lower_bound(transfer: &Transfer, rates: impl Iterator<Item = f64>, how: String) -> Estimated {
    let most = rates.fold(transfer.goodput_bps.unwrap_or(0.0), f64::max) * transfer.wire_ratio();
    Estimated::at_least(most, most, most * LOWER_BOUND_RANGE, how)
}

/// Whether each delivery left right behind the one before: had nothing been in front of it, it would have left earlier,
/// by more than `surely_s`. False if unknown.
fn left_right_behind(trace: &Trace, surely_s: f64) -> Vec<bool> {
    let delivered = &trace.delivered;
    let empty =
        least(&delivered.iter().map(|one| one.t_s - one.sent_s).filter(|one| !one.is_nan()).collect::<Vec<_>>());
    let Some(empty_s) = empty else { return vec![false; delivered.len()] };
    let mut flags = vec![false];
    flags.extend(delivered.windows(2).map(|two| two[1].sent_s + empty_s <= two[0].t_s - surely_s));
    flags
}

/// How many trains at that rate the bottleneck spaced: each of its segments left right behind the one before. None if
/// hardly any sending time is known.
fn trains_spaced_by_bottleneck(trace: &Trace, length: usize, bps: f64) -> Option<usize> {
    if trace.delivered.iter().filter(|one| !one.sent_s.is_nan()).count() < MIN_TRAINS {
        return None;
    }
    let behind = counts(left_right_behind(trace, -trace.grain_s).into_iter().map(u64::from));
    let spaced = |&last: &usize| behind[last + 1] - behind[last + 1 - length] == length as u64;
    Some(trains_at(trace, length, bps).into_iter().filter(spaced).count())
}

/// Whether most trains at that rate have packets that were sent apart and arrive together: whatever held the first let
/// all of them go at once.
fn trains_were_held(trace: &Trace, length: usize, bps: f64) -> bool {
    let together = counts(compressed(trace).into_iter().map(u64::from));
    let trains = trains_at(trace, length, bps);
    let held = trains.iter().filter(|&&last| together[last + 1] > together[last + 1 - length]).count();
    2 * held > trains.len()
}

/// The last deliveries of the trains at that rate.
fn trains_at(trace: &Trace, length: usize, bps: f64) -> Vec<usize> {
    let delivered = &trace.delivered;
    let total = sums(&delivered.iter().map(|one| one.bytes).collect::<Vec<_>>());
    let rate = |last: usize| {
        (total[last + 1] - total[last + 1 - length]) * 8.0 / (delivered[last].t_s - delivered[last - length].t_s)
    };
    (length..delivered.len()).filter(|&last| (rate(last) / bps - 1.0).abs() < RATE_TOLERANCE).collect()
}

/// The rate of a link that gathers packets: groups over the time since the group before, where both this and the next
/// one waited. A group behind which nothing waited may be what was left, and the time before one that did not wait is
/// the sender's.
fn grouped_rate(trace: &Trace, transfer: &Transfer) -> Estimated {
    let (behind, delivered) = (left_right_behind(trace, trace.grain_s), &trace.delivered);
    let held: Vec<(f64, f64)> = (1..delivered.len().saturating_sub(1))
        .filter(|&at| behind[at] && behind[at + 1] && !delivered[at].bytes.is_nan())
        .map(|at| (delivered[at].bytes, delivered[at].t_s - delivered[at - 1].t_s))
        // The times of a capture may go backwards.
        .filter(|one| one.1 > 0.0)
        .collect();
    let rate = |groups: &[(f64, f64)]| {
        let (bytes, took) = groups.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        bytes * 8.0 / took * transfer.wire_ratio()
    };
    let value = if held.is_empty() { 0.0 } else { rate(&held) };
    let busy = held.iter().map(|one| one.1).sum::<f64>() / transfer.duration_s;
    // A link that carried nearly its rate was busy nearly always.
    if held.len() < MIN_TRAINS || (value < NEAR_GOODPUT * transfer.frame_goodput_bps() && busy < MIN_BUSY_SHARE) {
        let how = "packets arrive in groups that waited for no other, so the bottleneck may be faster".to_owned();
        return lower_bound(transfer, std::iter::empty(), how);
    }
    let blocks = sorted(held.chunks(MIN_BUSY_SAMPLES.max(held.len() / MIN_BUSY_SAMPLES)).map(rate).collect());
    let [low, high] = [0.1, 0.9].map(|part| quantile(&blocks, part));
    let how = format!("{} groups of packets that left one right behind the other", held.len());
    Estimated::new(value, low.min(value * (1.0 - JITTER)), high.max(value * (1.0 + JITTER)), how)
}

/// Payload bit/s of deliveries over the time that a packet had waited, taken when it was delivered: the bottleneck had
/// no pause then.
///
/// Only if it waited for a quarter of the base round trip and for eight packets (at `bps`, unless 0); one sample per
/// base round trip.
pub fn busy_rates(trace: &Trace, base_s: f64, bps: f64) -> Vec<f64> {
    let Some(least) = trace.min_delay_s() else { return Vec::new() };
    if trace.delivered.len() < MIN_TRAINS {
        return Vec::new();
    }
    let eight_s = if bps > 0.0 { 8.0 * FRAME_BITS / bps } else { 0.0 };
    let enough = (base_s / 4.0).max(3.0 * trace.grain_s).max(eight_s);
    let mut picked: Vec<(f64, f64, f64)> = trace
        .delay_t_s
        .iter()
        .zip(&trace.delay_s)
        .filter(|&(_, delay)| delay - least >= enough)
        .map(|(t, delay)| {
            let at = t + if trace.sender_side { *delay } else { 0.0 };
            ((at / base_s.max(1e-3)).trunc(), at, delay - least)
        })
        .collect();
    picked.sort_by(|one, other| one.0.total_cmp(&other.0));
    picked.dedup_by(|other, one| one.0.total_cmp(&other.0).is_eq());
    let total = sums(&trace.delivered.iter().map(|one| one.bytes).collect::<Vec<_>>());
    let until = |t: f64| total[trace.delivered.partition_point(|one| one.t_s <= t)];
    let rate = |(_, at, wait): (f64, f64, f64)| (until(at) - until(at - wait)) * 8.0 / wait;
    picked.into_iter().map(rate).filter(|&one| one > 0.0).collect()
}

/// Whether packets usually waited: for more than four packets at this rate.
fn has_standing_queue(trace: &Trace, bps: f64) -> bool {
    let usual = || quantile(&sorted(trace.delay_s.clone()), 0.5);
    trace.min_delay_s().is_some_and(|least| usual() - least > 4.0 * FRAME_BITS / bps)
}
