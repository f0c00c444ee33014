//! The bottleneck's rate: from trains of deliveries, and from deliveries while packets waited.

use std::collections::BTreeMap;

use super::estimated::Estimated;
use super::numbers::{after, before, counts, percent, quantile, sorted, sums};
use super::seen::Seen;
use super::trace::Trace;
use sawtooth_units::width::Approx;

/// Numbers of consecutive deliveries over which a rate is taken. Packets that left the bottleneck back to back keep its
/// spacing. Short trains show it even with a window of a few segments; in long trains the jitter of clocks and
/// acknowledgements averages out.
const SHORT: [usize; 6] = [2, 3, 4, 6, 8, 16];
const LONG: [usize; 2] = [64, 32];
const TIGHT: f64 = 0.02;
/// A rate that this share of short trains agrees on, to 2%, is the bottleneck's: nothing else spaces packets so evenly.
const COMMON: f64 = 0.05;
/// There must be this many times as many trains at that rate as at rates 4% faster and slower; otherwise it is a broad
/// peak by chance.
const SHARP: f64 = 2.5;
/// The share of long trains at one rate above which the bottleneck was busy most of the time.
const STEADY: f64 = 0.5;
pub const FEWEST_TRAINS: usize = 12;
const SLOWER: f64 = 0.1;
const FEWEST_BUSY: usize = 20;
/// Trains faster than the busy bottleneck by more than this factor were compressed after it.
const APART: f64 = 1.4;
const JITTER: f64 = 0.005;
/// A sender limited by the receive window for this share of its time that also paces (BBR: 1.25 times its delivery
/// rate) spaces packets as evenly as a bottleneck does.
const WINDOWED: f64 = 0.3;
const NEAR_GOODPUT: f64 = 1.5;
/// How far above a lower bound a replay tries, as a factor.
pub const FASTER: f64 = 5.0;
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
            let whole = broken[last + 1] == broken[at + 1] && took > 0.0;
            whole.then(|| (total[last + 1] - total[at + 1]) * 8.0 / took)
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
    stands_out: f64,
}

impl Cluster {
    fn of(rates: Vec<f64>) -> Self {
        if rates.len() < FEWEST_TRAINS {
            return Cluster::default();
        }
        let all = rates.len();
        let rates = sorted(rates);
        let fast = &rates[after(&rates, quantile(&rates, 0.99) / 2.0)..];
        let wide = |by: f64| libm::exp(by * TIGHT);
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
        let share = if inside >= FEWEST_TRAINS { inside.approx() / all.approx() } else { 0.0 };
        Cluster { bps: middle, half: quantile(&off, 0.9), share, stands_out: inside.approx() / beside.max(1.0) }
    }
}

/// The bottleneck's rate in bit/s of full Ethernet frames.
pub fn bottleneck(trace: &Trace, seen: &Seen, base_s: f64) -> Estimated {
    let wire = seen.wire();
    let found: BTreeMap<usize, Cluster> =
        SHORT.into_iter().chain(LONG).map(|length| (length, Cluster::of(train_rates(trace, length)))).collect();
    let sharp = |length: &usize| found[length].share >= COMMON && found[length].stands_out >= SHARP;
    let faster = |one: usize, other: usize| if found[&other].bps > found[&one].bps { other } else { one };
    let short = SHORT.into_iter().filter(sharp).reduce(faster);
    let long = LONG.into_iter().find(|length| found[length].share >= STEADY);
    let chosen = match (short, long) {
        // Evenly spaced by a window or a pacer, not by a bottleneck: bursts passed faster.
        (Some(one), Some(other))
            if found[&one].bps > found[&other].bps * (1.0 + SLOWER) && !stands(trace, found[&other].bps) =>
        {
            short
        }
        _ => long.or(short),
    };
    let busy = sorted(busy_rates(trace, base_s, chosen.map_or(0.0, |length| found[&length].bps)));
    if busy.len() >= FEWEST_BUSY {
        let [low, middle, high] = [0.1, 0.5, 0.9].map(|part| quantile(&busy, part));
        let apart = |bps: f64| middle > bps * APART || bps > middle * APART;
        if chosen.is_none_or(|length| apart(found[&length].bps)) {
            let how = format!("deliveries while packets were queued, {} samples; the rate is not steady", busy.len());
            return Estimated::new(middle * wire, low * wire, high * wire, how);
        }
    }
    let place = if trace.sender_side { "acknowledged at the sender" } else { "arriving at the receiver" };
    if let Some(length) = chosen {
        let Cluster { bps, half, share, .. } = found[&length];
        let (value, half) = (bps * wire, half.max(JITTER));
        if seen.receive_window >= WINDOWED && value < NEAR_GOODPUT * seen.got_bps() && !stands(trace, bps) {
            let how =
                format!("segments {place} have the rate that the receive window allows, and the path has no queue");
            return Estimated::at_least(
                value,
                value,
                value * FASTER,
                format!("{how}, so the bottleneck may be faster"),
            );
        }
        let how = format!(
            "{} of the trains of {} segments {place} have this rate within {}",
            percent(share, 0),
            length + 1,
            percent(TIGHT, 0)
        );
        return Estimated::new(value, value * (1.0 - half), value * (1.0 + half), how);
    }
    let fastest = LONG.iter().map(|length| found[length].bps).fold(seen.goodput_bps.unwrap_or(0.0), f64::max) * wire;
    let how =
        format!("the fastest long trains of segments {place}; their rates differ, so the bottleneck may be faster");
    Estimated::at_least(fastest, fastest, fastest * FASTER, how)
}

/// Payload bit/s of deliveries over the time that a packet had waited, taken when it was delivered: the bottleneck had
/// no pause then.
///
/// Only if it waited for a quarter of the base round trip and for eight packets (at `bps`, unless 0); one sample per
/// base round trip.
pub fn busy_rates(trace: &Trace, base_s: f64, bps: f64) -> Vec<f64> {
    let Some(least) = trace.least_s() else { return Vec::new() };
    if trace.delivered.len() < FEWEST_TRAINS {
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
fn stands(trace: &Trace, bps: f64) -> bool {
    let usual = || quantile(&sorted(trace.delay_s.clone()), 0.5);
    trace.least_s().is_some_and(|least| usual() - least > 4.0 * FRAME_BITS / bps)
}
