//! Why packets were lost: at a full queue, or by the path regardless of its queue.

use super::aggregation::overloaded;
use super::poisson::at_least;
use super::statistics::{after, before, counts, quantile, sorted};
use super::trace::Trace;
use sawtooth_units::width::Approx;

/// A queue counts as nearly full above this share of the largest delay.
const NEAR_FULL: f64 = 0.8;
/// Frames of waiting below which there was no relevant queue.
pub const LEAST_FRAMES: f64 = 2.0;
/// A wait farther away than this many frames, and than a round trip, says nothing about the queue.
const FAR_FRAMES: f64 = 8.0;
/// Units of the delays below which a full queue cannot be distinguished from an empty one.
const MIN_GRAINS: f64 = 3.0;
const SPARSE: f64 = 0.5;
pub const CHANCE: f64 = 1e-3;
/// Losses within this share of the mean time between them are near each other.
const NEAR: f64 = 0.25;
/// Runs per burst from which on bursts exceed chance: within a quarter of the mean time, 1.28 belong together at
/// random.
const BURSTY: f64 = 1.5;
/// Losses within bursts are this many times as dense as all losses; at random it would be four times or slightly more.
const DENSER: f64 = 20.0;

/// Losses by how long packets waited around them. Delays are in s above the smallest; counts are of segments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Causes {
    /// There are delays, with sufficient resolution.
    pub known: bool,
    /// Some packets were lost at a full queue.
    pub full: bool,
    /// The delay of a full queue: between the median and the largest wait next to its losses; without such losses, the
    /// largest delay seen.
    pub full_s: f64,
    pub full_low_s: f64,
    pub full_high_s: f64,
    /// Lost by the path itself, among those sent while the queue was not nearly full.
    pub random: u64,
    pub random_runs: u64,
    pub random_sent: u64,
    /// Losses while the queue was not nearly full. Set only if losses were denser near the longest wait but nothing
    /// shows a full queue: the others may be its drops.
    pub below_full: Option<BelowFull>,
    /// Lost at a full queue.
    pub congestive: u64,
    /// Which of the trace's runs of losses are random; empty: all.
    pub random_at: Vec<bool>,
    /// The number of bursts in time that the random losses form; together they span `burst_span` segments. 0: unknown.
    pub bursts: u64,
    pub burst_span: u64,
}

/// Segments lost, in how many runs, and sent while the queue was not nearly full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BelowFull {
    pub lost: u64,
    pub runs: u64,
    pub sent: u64,
}

impl Causes {
    /// Attributes losses at a nearly full queue to congestion, if they clearly outnumber the others.
    ///
    /// The loss share of packets that met a queue not nearly full is the path's own. The same share is expected near
    /// the full queue; a Poisson test decides whether the excess there is chance. Where no wait is known within a round
    /// trip of `trip_s`, as while all is sent again, neither losses nor segments count. `used` is the share of the
    /// bottleneck's rate that the transfer got: controls that lose only at a full queue get more than half.
    pub fn of(trace: &Trace, frame_s: f64, trip_s: f64, used: f64) -> Self {
        let (sent, lost) = (trace.sent(), trace.lost());
        let all = |known: bool, span: f64| Causes {
            known,
            full_s: span,
            full_low_s: span,
            full_high_s: span,
            random: lost,
            random_runs: trace.lost.t_s.len() as u64,
            random_sent: sent,
            ..Causes::default()
        };
        let Some(least) = trace.min_delay_s() else { return all(false, 0.0) };
        let span = quantile(&sorted(trace.delay_s.clone()), 0.9995) - least;
        let grains = MIN_GRAINS * trace.grain_s;
        if 0.0 < span && span < grains && lost > 0 && used > SPARSE {
            return all(false, span);
        }
        if span < grains.max(LEAST_FRAMES * frame_s) {
            return all(true, span);
        }
        let near = NEAR_FULL * span - trace.grain_s;
        let far = trip_s.max(FAR_FRAMES * frame_s);
        let waited = |t: f64| delay_at(trace, t, far) - least;
        let at_loss: Vec<f64> = trace.lost.t_s.iter().map(|&t| waited(t)).collect();
        let at_sent: Vec<f64> = trace.sent_t_s.iter().map(|&t| waited(t)).collect();
        let count = |waits: &[f64], segments: &[u64], holds: fn(&f64, &f64) -> bool| {
            waits.iter().zip(segments).filter(|(wait, _)| holds(wait, &near)).map(|(_, count)| count).sum::<u64>()
        };
        let [top_lost, low_lost] = [f64::ge, f64::lt].map(|holds| count(&at_loss, &trace.lost.segments, holds));
        let [top_sent, low_sent] = [f64::ge, f64::lt].map(|holds| count(&at_sent, &trace.sent_segments, holds));
        let low_sent = low_sent.max(1);
        // Runs, not segments: a burst is one event.
        let full_waits = sorted(at_loss.iter().copied().filter(|&wait| wait >= near).collect());
        let apart = at_loss.iter().filter(|&&wait| wait < near).count();
        let expected = apart.max(1).approx() / low_sent.approx() * top_sent.approx();
        let full = top_lost >= 2 && !full_waits.is_empty() && at_least(full_waits.len() as u64, expected) < CHANCE;
        if !full {
            let denser = u128::from(top_lost) * u128::from(low_sent) > u128::from(low_lost) * u128::from(top_sent);
            let below_full = denser.then_some(BelowFull { lost: low_lost, runs: apart as u64, sent: low_sent });
            return Causes { below_full, ..all(true, span) };
        }
        // A full queue is never longer; neighbors that waited less were not directly next to the loss.
        let (low, high) = (quantile(&full_waits, 0.5), quantile(&full_waits, 1.0));
        Causes {
            known: true,
            full: true,
            full_s: low.max(span.min(high)),
            full_low_s: low,
            full_high_s: high,
            random: low_lost,
            random_runs: apart as u64,
            random_sent: low_sent,
            congestive: top_lost,
            random_at: at_loss.iter().map(|&wait| wait < near).collect(),
            ..Causes::default()
        }
    }

    /// If packets leave in groups, their wait does not measure the queue. Then a loss is congestion if more was sent
    /// around it than the bottleneck carries.
    pub fn by_load(self, trace: &Trace, frame_s: f64, trip_s: f64) -> Self {
        let random: Vec<bool> = overloaded(trace, frame_s, trip_s).into_iter().map(|one| !one).collect();
        let apart: u64 =
            random.iter().zip(&trace.lost.segments).filter(|(random, _)| **random).map(|(_, count)| count).sum();
        let lost = trace.lost();
        if apart == lost {
            return self;
        }
        let longest_s = self.full_high_s;
        Causes {
            known: true,
            full: true,
            full_s: longest_s,
            full_low_s: longest_s / 2.0,
            full_high_s: longest_s,
            random: apart,
            random_runs: random.iter().filter(|&&one| one).count() as u64,
            random_sent: trace.sent(),
            congestive: lost - apart,
            random_at: random,
            ..Causes::default()
        }
    }

    /// Adds the bursts in time of the random losses: within a round trip of the previous one, and within a quarter of
    /// the mean time between them, so that evenly spaced losses are not a burst (as in docs/reference/capture.md).
    pub fn by_time(self, trace: &Trace, trip_s: f64) -> Self {
        let lost = &trace.lost;
        let chosen: Vec<usize> =
            (0..lost.t_s.len()).filter(|&at| self.random_at.get(at).copied().unwrap_or(true)).collect();
        let ([begin, .., end], true) = (&trace.sent_t_s[..], self.known && chosen.len() >= 2) else { return self };
        let near_s = trip_s.min(NEAR * (end - begin) / chosen.len().approx());
        let total = counts(trace.sent_segments.iter().copied());
        let passed = |t: f64| total[before(&trace.sent_t_s, t)];
        // For each burst: its first loss, its last, and how many segments were lost.
        let mut bursts: Vec<(usize, usize, u64)> = Vec::new();
        for at in chosen {
            match bursts.last_mut() {
                Some((_, last, segments)) if lost.t_s[at] - lost.t_s[*last] <= near_s => {
                    *last = at;
                    *segments += lost.segments[at];
                }
                _ => bursts.push((at, at, lost.segments[at])),
            }
        }
        let span = |&(first, last, segments): &(usize, usize, u64)| {
            (passed(lost.t_s[last]) - passed(lost.t_s[first]) + lost.segments[last]).max(segments)
        };
        Causes { bursts: bursts.len() as u64, burst_span: bursts.iter().map(span).sum(), ..self }
    }

    /// The most segments that the path itself lost in a row.
    pub fn longest_run(&self, trace: &Trace) -> u64 {
        let own = |&(at, _): &(usize, &u64)| self.random_at.get(at).copied().unwrap_or(true);
        trace.lost.segments.iter().enumerate().filter(own).map(|(_, &count)| count).max().unwrap_or(0)
    }

    /// Whether the path's own losses cluster in time more than chance explains.
    pub fn in_bursts(&self) -> bool {
        let known = self.known && self.random_sent > 0 && self.bursts >= 2 && self.burst_span > 0;
        known
            && self.random_runs.approx() > BURSTY * self.bursts.approx()
            && self.random_sent.approx() > DENSER * self.burst_span.approx()
    }
}

/// The delay when something was sent at `t`: the longer one of what passed just before and just after. A full queue
/// drops the end of a burst, and what follows a pause finds it empty. NaN if neither passed within `far`.
fn delay_at(trace: &Trace, t: f64, far: f64) -> f64 {
    let (times, delays) = (&trace.delay_t_s, &trace.delay_s);
    let sides = [after(times, t).checked_sub(1), Some(before(times, t)).filter(|&at| at < times.len())];
    let near = sides.into_iter().flatten().filter(|&at| (times[at] - t).abs() <= far);
    near.map(|at| delays[at]).fold(f64::NAN, f64::max)
}
