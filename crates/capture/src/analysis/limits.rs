//! What limits a sender, over time.

use crate::analysis::series::Series;
use sawtooth_units::width::Approx;

/// Numbered as in the table `series`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Limit {
    /// No round trip is known yet.
    Unknown = 0,
    /// The application had nothing more to send: the last segment was not full.
    Sender = 1,
    /// Another segment would not have fitted into the receiver's window.
    ReceiverWindow = 2,
    /// None of the others: the sender limits itself.
    CongestionWindow = 3,
    /// There is a standing queue at the bottleneck; more data in flight would only wait there.
    Path = 4,
    /// Nothing was in flight.
    Idle = 5,
}

/// A queue stands if the shortest round trip of the latest one is longer than the shortest of all by this share …
const STANDING_SHARE: f64 = 0.25;
/// … and by this much, which exceeds timer jitter.
const STANDING_NS: f64 = 1e6;

/// The moment at which a segment with data was captured.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now_ns: u64,
    /// The sender knew of nothing in flight before this segment.
    pub emptied: bool,
    /// Bytes that it knew to be in flight afterwards.
    pub flight_after: u64,
    /// The receiver's window, as far as it is known.
    pub window: u64,
    /// The smallest window since the previous segment.
    pub least_window: u64,
    pub mss: u32,
    /// The segment, or the last part of a joined one, has full length.
    pub full: bool,
    /// When it learned that nothing was in flight, as seen from the capture point.
    pub emptied_ns: u64,
    pub base_ns: Option<f64>,
}

/// Time between segments with data, by what limited it.
#[derive(Debug, Default)]
pub struct Limits {
    /// Indexed by [`Limit`].
    pub totals_ns: [u64; 6],
    last: Option<Moment>,
    /// Shortest samples in the previous round trip and in the current one.
    trips: [Option<u64>; 2],
    turn_ns: u64,
}

impl Limits {
    /// Takes a sample of the whole round trip.
    pub fn trip(&mut self, ns: u64, now_ns: u64, base_ns: f64) {
        if now_ns.saturating_sub(self.turn_ns).approx() > base_ns {
            self.trips = [self.trips[1], None];
            self.turn_ns = now_ns;
        }
        let least = &mut self.trips[1];
        *least = Some(least.map_or(ns, |least| least.min(ns)));
    }

    /// Takes a segment with data and attributes the time since the previous one to a limit. `series_ns` is the start of
    /// the series' time.
    pub fn sent(&mut self, moment: Moment, series: &mut Series, series_ns: u64) {
        if let Some(last) = self.last {
            let end_ns = moment.now_ns.max(last.now_ns);
            let idle_from = self.idle_from(&last, &moment).unwrap_or(end_ns).clamp(last.now_ns, end_ns);
            let limit = self.between(&last, &moment);
            self.account(limit, last.now_ns, idle_from, series, series_ns);
            self.account(Limit::Idle, idle_from, end_ns, series, series_ns);
        }
        self.last = Some(moment);
    }

    /// Since when nothing was in flight, if that is too long to be the sender's reaction to an acknowledgement.
    fn idle_from(&self, last: &Moment, moment: &Moment) -> Option<u64> {
        let idle_ns = moment.now_ns.saturating_sub(moment.emptied_ns.max(last.now_ns)).approx();
        let enough_ns = (moment.base_ns.unwrap_or(0.0) / 8.0).max(1e6);
        // The receiver may have closed its window in between, which is not idleness.
        let open = moment.least_window.min(last.window) >= u64::from(last.mss);
        (moment.emptied && open && idle_ns > enough_ns).then_some(moment.emptied_ns)
    }

    fn between(&self, last: &Moment, moment: &Moment) -> Limit {
        let Some(base_ns) = moment.base_ns else { return Limit::Unknown };
        let mss = u64::from(last.mss);
        if last.flight_after + mss > last.window || moment.least_window < mss {
            return Limit::ReceiverWindow;
        }
        if !last.full {
            return Limit::Sender;
        }
        let latest = self.trips.iter().flatten().min();
        let standing_ns = (base_ns * STANDING_SHARE).max(STANDING_NS);
        match latest {
            Some(&trip) if trip.approx() > base_ns + standing_ns => Limit::Path,
            _ => Limit::CongestionWindow,
        }
    }

    fn account(&mut self, limit: Limit, from_ns: u64, to_ns: u64, series: &mut Series, series_ns: u64) {
        self.totals_ns[limit as usize] += to_ns.saturating_sub(from_ns);
        let length_ns = series.length_ns();
        let mut at_ns = from_ns.saturating_sub(series_ns);
        let end_ns = to_ns.saturating_sub(series_ns);
        while at_ns < end_ns {
            let next_ns = ((at_ns / length_ns + 1).saturating_mul(length_ns)).min(end_ns);
            let us = u32::try_from((next_ns - at_ns).div_ceil(1000)).unwrap_or(u32::MAX);
            if let Some(interval) = series.existing(at_ns) {
                interval.limit(limit as u8, us);
            }
            at_ns = next_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::series::MOST;

    const MS: u64 = 1_000_000;

    fn moment(ms: u64) -> Moment {
        Moment {
            now_ns: ms * MS,
            emptied: false,
            flight_after: 11_000,
            window: 100_000,
            least_window: 100_000,
            mss: 1000,
            full: true,
            emptied_ns: 0,
            base_ns: Some(20.0 * MS as f64),
        }
    }

    /// Milliseconds by limit, and the limit of each interval of 10 ms.
    fn judged(moments: &[Moment], trip_ms: u64) -> ([u64; 6], Vec<u8>) {
        let (mut limits, mut series) = (Limits::default(), Series::default());
        for &one in moments {
            limits.trip(trip_ms * MS, one.now_ns, 20.0 * MS as f64);
            series.at(one.now_ns, MOST);
            limits.sent(one, &mut series, 0);
        }
        let intervals = series.iter().map(|(_, one)| one.limit).collect();
        (limits.totals_ns.map(|ns| ns / MS), intervals)
    }

    #[test]
    fn window_below_a_segment_is_receiver_window_limited() {
        let full = Moment { flight_after: 99_500, ..moment(0) };
        assert_eq!(judged(&[full, moment(20)], 20).0[Limit::ReceiverWindow as usize], 20);
    }

    #[test]
    fn short_segment_with_room_is_sender_limited() {
        assert_eq!(judged(&[Moment { full: false, ..moment(0) }, moment(20)], 20).0[Limit::Sender as usize], 20);
    }

    #[test]
    fn full_segments_with_short_rtt_are_cwnd_limited() {
        assert_eq!(judged(&[moment(0), moment(20)], 20).0[Limit::CongestionWindow as usize], 20);
    }

    #[test]
    fn longer_rtt_is_path_limited() {
        assert_eq!(judged(&[moment(0), moment(20)], 40).0[Limit::Path as usize], 20);
    }

    #[test]
    fn idle_begins_when_the_sender_learns_of_the_ack() {
        let after = Moment { emptied: true, emptied_ns: 20 * MS, ..moment(100) };
        let (totals, intervals) = judged(&[moment(0), after], 20);
        assert_eq!((totals[Limit::CongestionWindow as usize], totals[Limit::Idle as usize]), (20, 80));
        assert_eq!(intervals[..10], [3, 3, 5, 5, 5, 5, 5, 5, 5, 5]);
    }

    #[test]
    fn zero_window_is_not_idle() {
        let after = Moment { emptied: true, emptied_ns: 20 * MS, least_window: 0, ..moment(100) };
        assert_eq!(judged(&[moment(0), after], 20).0[Limit::ReceiverWindow as usize], 100);
    }
}
