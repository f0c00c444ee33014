//! Round trips and delays from segments.

use std::cmp::Ordering;

use super::directions::{Acks, Data};
use super::statistics::{after, least};
use sawtooth_units::width::{Approx, Whole};

/// Common units of TCP timestamps in s: Linux's first (`TCP_TS_HZ`), then others'.
const TICKS_S: [f64; 5] = [1e-3, 1e-2, 4e-3, 1e-6, 1e-4];
const SMOOTHED_TICKS: f64 = 2.0;
const MAX_SMOOTHED: u64 = 33;
/// An older echo does not measure a round trip.
const LONGEST_ECHO_S: f64 = 10.0;

/// First copies of segments, in sequence order.
#[derive(Debug, Default)]
pub struct FirstCopies {
    /// Sent only once.
    pub once: Vec<bool>,
    pub end: Vec<i64>,
    pub bytes: Vec<i64>,
    /// Time of the first copy.
    pub t_s: Vec<f64>,
}

impl FirstCopies {
    pub fn of(data: &Data) -> Self {
        let mut order: Vec<usize> = (0..data.end.len()).collect();
        order.sort_by(|&one, &other| {
            data.end[one]
                .cmp(&data.end[other])
                .then(data.t_s[one].partial_cmp(&data.t_s[other]).unwrap_or(Ordering::Equal))
        });
        let mut first = FirstCopies::default();
        for at in order {
            if first.end.last() == Some(&data.end[at]) {
                if let Some(once) = first.once.last_mut() {
                    *once = false;
                }
            } else {
                first.once.push(true);
                first.end.push(data.end[at]);
                first.bytes.push(data.end[at] - data.seq[at]);
                first.t_s.push(data.t_s[at]);
            }
        }
        first
    }

    /// The index of the segment that ends there, if it was sent only once.
    pub fn once_at(&self, end: i64) -> Option<usize> {
        self.end.binary_search(&end).ok().filter(|&at| self.once[at])
    }
}

/// Times at which segments passed, and how long until the far end's answer did. Only segments that were sent once
/// (Karn) and whose arrival was reported at once: by an acknowledgement for two segments, or by a SACK.
///
/// An acknowledgement for more is late: a receiver acknowledges at least every second segment (RFC 9293, section
/// 3.8.6.3). Linux breaks that rule while its application does not read, and waits for the timer. Receivers that merge
/// segments always acknowledge more.
pub fn round_trips(first: &FirstCopies, acks: &Acks) -> (Vec<f64>, Vec<f64>) {
    let (mut times, mut trips) = (Vec::new(), Vec::new());
    let mut most = 0;
    let prompt = if merges(first, acks) { usize::MAX } else { 2 };
    for at in 0..acks.ack.len() {
        let (newest, known) = (acks.newest[at], most);
        most = most.max(newest);
        if newest <= known || acks.blind[at] {
            continue;
        }
        let Some(segment) = first.once_at(newest) else { continue };
        // The acknowledgement of a single segment may have waited for the delayed-ACK timer.
        let at_once = (2..=prompt).contains(&(after(&first.end, newest) - after(&first.end, known)));
        if (at_once || newest > acks.ack[at]) && acks.t_s[at] >= first.t_s[segment] {
            times.push(first.t_s[segment]);
            trips.push(acks.t_s[at] - first.t_s[segment]);
        }
    }
    (times, trips)
}

/// The shortest time in s until a full segment was acknowledged. Any acknowledgement counts: those that wait only take
/// longer, and the newest of two segments waits until the first is sent.
pub fn shortest_of_full(first: &FirstCopies, acks: &Acks, mss: u32) -> Option<f64> {
    let mut most = 0;
    let mut trips = Vec::new();
    for at in 0..acks.ack.len() {
        let (newest, known) = (acks.newest[at], most);
        most = most.max(newest);
        let segment = first.once_at(newest).filter(|&one| first.bytes[one] == i64::from(mss));
        if let Some(segment) = segment.filter(|_| newest > known && !acks.blind[at]) {
            let trip_s = acks.t_s[at] - first.t_s[segment];
            // A capture's clock may have been set back.
            if trip_s > 0.0 {
                trips.push(trip_s);
            }
        }
    }
    least(&trips)
}

/// Whether most acknowledgements cover more than two segments, as of a receiver with GRO.
fn merges(first: &FirstCopies, acks: &Acks) -> bool {
    let covered = acks.ack.windows(2).filter(|two| two[1] > two[0]);
    let (more, all) = covered.fold((0_usize, 0_usize), |(more, all), two| {
        let several = after(&first.end, two[1]) - after(&first.end, two[0]) > 2;
        (more + usize::from(several), all + 1)
    });
    2 * more > all
}

/// Times in s from a passing acknowledgement to the first data that echoes its timestamp: to the sender and back, plus
/// the sender's wait.
pub fn echoes(data: &Data, acks: &Acks) -> Vec<f64> {
    let firsts = |values: &[i64]| {
        let mut found: Vec<(i64, usize)> = values.iter().copied().zip(0..).filter(|&(value, _)| value > 0).collect();
        found.sort_unstable();
        found.dedup_by_key(|&mut (value, _)| value);
        found
    };
    let sent = firsts(&acks.tsval);
    let trip = |(value, at): (i64, usize)| {
        let found = sent.binary_search_by_key(&value, |&(value, _)| value).ok()?;
        Some(data.t_s[at] - acks.t_s[sent[found].1])
    };
    firsts(&data.tsecr).into_iter().filter_map(trip).filter(|&s| s > 0.0 && s < LONGEST_ECHO_S).collect()
}

/// How late each data segment passes relative to its timestamp, in s above the smallest, and the timestamps' unit.
///
/// Empty without timestamps. The capture's own clock determines the unit. Within one unit a segment's time is unknown;
/// the smallest value of the neighbors within two units comes close, of those sent at most a unit apart.
pub fn lateness(data: &Data) -> (Vec<f64>, f64) {
    let none = (Vec::new(), 0.0);
    let ([begin, .., end], [zero, .., last]) = (&data.t_s[..], &data.tsval[..]) else { return none };
    let ticks = |tsval: i64| (tsval - zero + (1 << 31)).rem_euclid(1 << 32) - (1 << 31);
    let (span, passed) = (end - begin, ticks(*last));
    if span <= 0.0 || passed <= 0 || data.tsval.iter().all(|&one| one <= 0) {
        return none;
    }
    let passed = passed.unsigned_abs().approx();
    let off = |unit: f64| libm::log(passed * unit / span).abs();
    let tick = TICKS_S.into_iter().reduce(|one, other| if off(other) < off(one) { other } else { one }).unwrap_or(1e-3);
    if (passed * tick / span - 1.0).abs() > 0.02 {
        return none;
    }
    let float = |ticks: i64| if ticks < 0 { -ticks.unsigned_abs().approx() } else { ticks.unsigned_abs().approx() };
    let late: Vec<f64> =
        data.t_s.iter().zip(&data.tsval).map(|(t, &tsval)| t - begin - float(ticks(tsval)) * tick).collect();
    let width = (SMOOTHED_TICKS * tick * late.len().approx() / span).whole().clamp(1, MAX_SMOOTHED);
    let width = usize::try_from(width).unwrap_or(1);
    let smoothed: Vec<f64> = (0..late.len())
        .map(|at| {
            let from = at.saturating_sub(width / 2);
            let until = (at + width - width / 2).min(late.len());
            let with = (from..until).filter(|&one| ticks(data.tsval[one]).abs_diff(ticks(data.tsval[at])) <= 1);
            with.map(|one| late[one]).fold(f64::INFINITY, f64::min)
        })
        .collect();
    let zero_s = least(&smoothed).unwrap_or(0.0);
    (smoothed.into_iter().map(|one| one - zero_s).collect(), tick)
}

/// When the segments that end at `newest` were sent, in s; NaN if sent twice, or if none ends there.
pub fn sent(first: &FirstCopies, newest: i64) -> f64 {
    first.once_at(newest).map_or(f64::NAN, |at| first.t_s[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_from_before_its_segment_does_not_hide_the_others() {
        let first = FirstCopies {
            once: vec![true; 3],
            end: vec![1000, 2000, 3000],
            bytes: vec![1000; 3],
            t_s: vec![1.0, 2.0, 3.0],
        };
        let mut acks = Acks {
            t_s: vec![1.03, 1.5, 3.02],
            ack: first.end.clone(),
            newest: first.end.clone(),
            blind: vec![false; 3],
            ..Acks::default()
        };
        let shortest_s = shortest_of_full(&first, &acks, 1000).unwrap();
        assert!((shortest_s - 0.02).abs() < 1e-9, "{shortest_s}");
        acks.t_s = vec![0.5, 1.5, 2.5];
        assert_eq!(shortest_of_full(&first, &acks, 1000), None);
    }
}
