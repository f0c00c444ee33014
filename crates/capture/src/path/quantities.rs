//! The other quantities of a path: base round trip, queue, losses, acknowledgements, the receiver's window.

use super::causes::{CHANCE, Causes, LEAST_FRAMES};
use super::estimate::{Bound, Estimated};
use super::poisson::{Z90, at_least, compound_interval, poisson_interval};
use super::rate::{LOWER_BOUND_RANGE, MIN_TRAINS};
use super::statistics::{percent, quantile, sorted, three};
use super::trace::Trace;
use super::transfer::Transfer;
use sawtooth_units::width::Approx;

/// Queue lengths tried if no queue was seen, in bandwidth-delay products: smallest, middle, largest.
const UNKNOWN_QUEUE_BDP: [f64; 3] = [0.2, 1.0, 4.0];
pub const SYN_BYTES: f64 = 74.0;
/// If data shows a round trip that is shorter by a larger share, the rate is wrong.
const MOST_EARLIER: f64 = 0.1;
/// Shares of the time: above the first, a window may have limited the transfer; above the second, it did.
const LIMITED: [f64; 2] = [0.1, 0.3];
/// The fewest losses in a row that are a burst where runs are few. Two may be one dropped frame of merged segments.
const LONG: u64 = 3;

/// Propagation only: in a scenario, the frame's time at the bottleneck belongs to the transmitter.
///
/// A round trip also has the time that both hosts take to answer. The near one's is measured, and the far one may take
/// as long, so the interval reaches down by both. It also reaches down to what data shows, if its time to send makes
/// that less: a rate that others leave is too low, so the handshake's round trip stays the middle.
pub fn base_rtt(transfer: &Transfer, rate: &Estimated) -> Option<Estimated> {
    let full = transfer.rtt_full_s.filter(|&one| one > 0.0).or(transfer.rtt_min_s);
    let sizes =
        [transfer.rtt_handshake_s.map(|trip| (trip, SYN_BYTES)), full.map(|trip| (trip, transfer.frame_bytes()))];
    let without_sending = |(trip, bytes): (f64, f64)| (trip - bytes * 8.0 / rate.value).max(trip * 0.05);
    let shorter = |one: (f64, f64), other: (f64, f64)| if other.0 < one.0 { other } else { one };
    let base = without_sending(sizes.into_iter().flatten().reduce(shorter)?);
    let jitter = (base * 0.01).max(2e-5);
    let earlier = sizes.into_iter().flatten().map(|one| base - without_sending(one)).fold(0.0, f64::max);
    let spread = if earlier < MOST_EARLIER * base { earlier } else { 0.0 } + 2.0 * transfer.host_s;
    let how = "the minimum RTT minus the time to send a frame at the bottleneck";
    Some(if transfer.from_start {
        let low = (base - jitter - spread).max(base * 0.5);
        Estimated::new(base, low, base + jitter, format!("{how}; the capture has the start, with an empty queue"))
    } else {
        let how = format!("{how}; the capture lacks the start, so it may include queue delay");
        Estimated::new(base, base * 0.8, base + jitter, how)
    })
}

/// The queue's limit in packets.
pub fn queue_limit(causes: &Causes, rate: &Estimated, rtt: &Estimated, transfer: &Transfer) -> Estimated {
    let bdp = transfer.bdp(rate.value, rtt.value);
    let packets = rate.value / 8.0 / transfer.frame_bytes();
    let waited = three(causes.full_s * 1e3);
    // Clocks and hosts that answer late make a wait up to this much longer.
    let surely = |most: f64| (most * 0.95).min(most - 1.0).max(1.0);
    if causes.full {
        let middle = (causes.full_s * packets).max(1.0);
        let low = (causes.full_low_s * packets).min(surely(middle)).max(1.0);
        let high = (causes.full_high_s * packets).max(middle * 1.05).max(middle + 1.0);
        let how = format!("packets waited {waited} ms when others were dropped, times the bottleneck's rate");
        if rate.bound == Bound::AtLeast {
            return Estimated::at_least(middle, low, high * rate.high / rate.value, how);
        }
        return Estimated::new(middle, low, high, how);
    }
    let most = (causes.full_s * packets).max(1.0);
    if !causes.known || most < LEAST_FRAMES {
        let [low, middle, high] = UNKNOWN_QUEUE_BDP.map(|part| (part * bdp).max(2.0));
        let how = "unknown, because no packet waited; 0.2 to 4 bandwidth-delay products are tried";
        return Estimated::at_least(middle, low, high, how);
    }
    let how = format!("packets waited up to {waited} ms; no drop shows that the queue was full");
    Estimated::at_least((most * 1.5).max(bdp), surely(most), (most * 4.0).max(bdp * 2.0), how)
}

/// The share that the path loses regardless of its queue.
pub fn random_loss(causes: &Causes) -> Estimated {
    let (count, of) = (causes.random, causes.random_sent.max(1));
    let sent = of.approx();
    if !causes.known {
        let high = poisson_interval(count).1 / sent;
        let how = format!("{count} of {of} segments lost; any part of them may be drops of a full queue");
        return Estimated::at_most(high / 2.0, 0.0, high, how);
    }
    // Simultaneous losses are one event, whose number is uncertain: a burst, or else a run.
    let events = if causes.in_bursts() { causes.bursts } else { causes.random_runs };
    let (mut low, high) = compound_interval(count, events);
    low /= sent;
    if let Some(below) = causes.below_full {
        low = low.min(compound_interval(below.lost, below.runs.min(events)).0 / below.sent.approx());
    }
    let mut how = format!("{count} of {of} segments lost while the queue was not nearly full");
    if causes.congestive > 0 {
        how += &format!("; {} drops of a full queue are not counted", causes.congestive);
    }
    Estimated::new(count.approx() / sent, low, high / sent, how)
}

/// The share of packets lost in a burst, from its first loss to its last; 1 if only runs are known.
pub fn burst_loss(causes: &Causes) -> f64 {
    if causes.in_bursts() { causes.random.approx() / causes.burst_span.approx() } else { 1.0 }
}

/// Mean length in packets of a burst of the path's own losses: from the first lost to the last.
pub fn runs(causes: &Causes, trace: &Trace) -> Estimated {
    if causes.in_bursts() {
        let (bursts, span) = (causes.bursts.approx(), causes.burst_span.approx());
        let (few, many) = poisson_interval(causes.bursts);
        let each = three(causes.random.approx() / bursts);
        let how = format!("{} bursts, on average {each} losses within that many packets", causes.bursts);
        return Estimated::new(span / bursts, (span / many).max(1.0), span / few, how);
    }
    let runs = causes.random_runs.approx();
    let mean = causes.random.approx() / runs.max(1.0);
    let share = causes.random.approx() / causes.random_sent.max(1).approx();
    // Of fewer than ten runs only a long one counts, unless independent losses would be adjacent as often.
    let adjacent = causes.random.saturating_sub(causes.random_runs);
    let long = causes.longest_run(trace) >= LONG && at_least(adjacent, causes.random.approx() * share) < CHANCE;
    if !causes.known || (causes.random_runs < 10 && !long) {
        return Estimated::exact(1.0, "each packet lost independently, assumed because there are few losses");
    }
    // Independent losses are adjacent now and then: 1 / (1 - p) on average.
    if mean <= 1.0 / (1.0 - share) * 1.15 {
        return Estimated::exact(
            1.0,
            format!("mean run of {mean:.2} segments, as if each packet were lost independently"),
        );
    }
    let half = Z90 * (mean * (mean - 1.0) / runs).sqrt();
    let how = format!("mean run of {mean:.2} segments, longer than if each packet were lost independently");
    Estimated::new(mean, (mean - half).max(1.0), mean + half, how)
}

/// Whether the receiver acknowledges every second segment, or each one.
pub fn delayed_acks(trace: &Trace) -> (bool, String) {
    let steps = &trace.segments_an_ack;
    if steps.len() < MIN_TRAINS {
        return (true, "assumed: too few acknowledgements in order".to_owned());
    }
    let count = steps.len().approx();
    let single = steps.iter().filter(|&&one| one <= 1.01).count().approx() / count;
    let mean = steps.iter().sum::<f64>() / count;
    (single < 0.8, format!("{} of acknowledgements cover one segment; the mean is {mean:.2}", percent(single, 0)))
}

/// A lost acknowledgement makes the next one cover more; so do receivers that merge segments.
pub fn ack_loss(trace: &Trace) -> Estimated {
    let none = |how: &str| Estimated::exact(0.0, how);
    let steps = &trace.segments_an_ack;
    if !trace.sender_side {
        return none("not visible at this capture point");
    }
    if steps.len() < MIN_TRAINS {
        return none("too few acknowledgements in order");
    }
    let usual = quantile(&sorted(steps.clone()), 0.5).max(1.0);
    if usual > 2.5 {
        return none("unknown: the receiver's GRO hides lost acknowledgements");
    }
    let missing: f64 = steps.iter().map(|step| ((step / usual).round_ties_even() - 1.0).max(0.0)).sum();
    let share = missing / (missing + steps.len().approx());
    if share < 0.002 {
        return none("nearly every acknowledgement covers the usual number of segments");
    }
    let how = format!(
        "{} of acknowledgements seem to be missing, which GRO at the receiver may also cause",
        percent(share, 1)
    );
    Estimated::at_most(share / 2.0, 0.0, share, how)
}

/// The data in bytes that a receive window or send buffer allowed in flight, if the transfer waited for it for this
/// share of its time. Between the two `LIMITED` shares it is a lower bound: the less it waited, the higher it may be.
pub fn host_limit(bytes: f64, share: f64, what: &str) -> Option<Estimated> {
    let [from, to] = LIMITED;
    if share <= from {
        return None;
    }
    let sure = ((share - from) / (to - from)).min(1.0);
    let how = format!("{what} was the limit {} of the time", percent(share, 0));
    if sure >= 1.0 {
        return Some(Estimated::exact(bytes, how));
    }
    let most = bytes * libm::pow(LOWER_BOUND_RANGE, 1.0 - sure);
    Some(Estimated::at_least((bytes * most).sqrt(), bytes, most, how))
}

/// What stays unknown because a host, not the path, limited the transfer.
pub fn beyond_host(share: f64, limit: &str, host: &str) -> Option<String> {
    (share > LIMITED[0]).then(|| {
        format!(
            "the {limit} limited the transfer {} of the time: what the path gives with a larger one cannot be told from \
             this; the answers are for this {host} as it is",
            percent(share, 0)
        )
    })
}
