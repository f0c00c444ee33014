//! What applications write, and when: endless data, a number of bytes, or a burst at a rate; over connections with a
//! given lifetime, once or repeatedly.

use crate::rng::{Purpose, Rng};
use crate::scenario::{Paced, Scenario, Traffic, Writes};
use sawtooth_units::{Span, Time};

/// The applications of a flow.
#[derive(Clone, Debug)]
pub struct Source {
    start: Time,
    lasts: ConnectionDuration,
    /// What each connection writes (with `writes`, the first time); `u64::MAX`: endless.
    bytes: u64,
    writes: Option<Paced>,
    /// Applications at the other end request the data, and open and close the connections.
    is_asked: bool,
    rng: Rng,
}

/// How long a connection is open at most.
#[derive(Clone, Copy, Debug)]
enum ConnectionDuration {
    Forever,
    /// There is only one.
    Once(Span),
    /// Nanoseconds, drawn between these. The next connection follows at once when the last one is closed, if that is
    /// before `until`.
    Replaced {
        low: u64,
        high: u64,
        until: Time,
    },
}

impl Source {
    pub fn new(scenario: &Scenario, flow: usize) -> Self {
        let config = &scenario.flows[flow];
        let start = Time::from_nanos(config.start_ns);
        let lasts = match (&config.traffic, config.duration_ns.map(Span::from_nanos)) {
            (&Traffic::Written { lifetime_ns: Some([low, high]), .. }, span) => {
                ConnectionDuration::Replaced { low, high, until: span.map_or(Time::NEVER, |span| start + span) }
            }
            // The last arrival comes before the duration is over, and has the time that it needs.
            (Traffic::Arrivals(_), _) | (_, None) => ConnectionDuration::Forever,
            (_, Some(span)) => ConnectionDuration::Once(span),
        };
        let rng = Rng::new(scenario.seed, Purpose::Lifetime, flow as u64);
        let (bytes, writes) = match config.traffic {
            Traffic::Written { writes: Writes::Bytes(bytes), .. } => (bytes, None),
            Traffic::Written { writes: Writes::Paced(writes), .. } | Traffic::Read { writes: Some(writes), .. } => {
                (writes.bytes, Some(writes))
            }
            Traffic::Requested(_) => (0, None),
            _ => (u64::MAX, None),
        };
        Source { start, lasts, bytes, writes, is_asked: config.traffic.requested().is_some(), rng }
    }

    /// Bytes that an application writes when its connection is established, and at each later write.
    pub fn write_bytes(&self) -> u64 {
        self.bytes
    }

    pub fn writes_again(&self) -> bool {
        self.writes.is_some() || self.is_asked
    }

    /// When the first connection of each place opens on its own; [`Time::NEVER`]: readers open it.
    pub fn opens(&self) -> Time {
        if self.is_asked { Time::NEVER } else { self.start }
    }

    /// When an application that began at `began` writes next after `now`; [`Time::NEVER`]: not again.
    pub fn writes_next(&self, began: Time, now: Time) -> Time {
        self.writes.map_or(Time::NEVER, |writes| writes.next(began, now))
    }

    /// When a connection that opens at `now` is closed, whatever it has delivered.
    pub fn closes(&mut self, now: Time) -> Time {
        match self.lasts {
            ConnectionDuration::Forever => Time::NEVER,
            ConnectionDuration::Once(span) => now + span,
            ConnectionDuration::Replaced { low, high, until } => {
                until.min(now + Span::from_nanos(self.rng.between(low, high)))
            }
        }
    }

    /// When the next connection opens after one has ended at `now`; [`Time::NEVER`]: there is none.
    pub fn reopens(&self, now: Time) -> Time {
        match self.lasts {
            ConnectionDuration::Replaced { until, .. } if now < until => now,
            ConnectionDuration::Forever | ConnectionDuration::Once(_) | ConnectionDuration::Replaced { .. } => {
                Time::NEVER
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(flow: &str) -> Scenario {
        let host = r#"{"name": "h", "hz": 250, "mss": 1000, "initial_window": 10, "receive_buffer": 65536,
            "send_buffer": 65536, "delayed_ack": true, "sack": true, "timestamps": true, "offload": false}"#;
        let link = |from: u8, to: u8| {
            format!(
                r#"{{"name": "l", "from": {from}, "to": {to}, "transmitter": null, "delay_ns": 1000000, "loss_ppb": 0,
                "overhead_bytes": 0}}"#
            )
        };
        let json = format!(
            r#"{{"duration_ns": 1, "interval_ns": 1000000, "seed": 1, "hosts": [{host}, {host}], "transmitters": [],
            "links": [{}, {}], "flows": [{{"name": "f", "cc": "reno", "count": 1, "start_ns": 5, {flow},
            "forward": [0], "backward": [1]}}]}}"#,
            link(0, 1),
            link(1, 0)
        );
        Scenario::parse(&json).unwrap()
    }

    #[test]
    fn connection_closes_after_duration_lifetime_or_never() {
        let now = Time::from_nanos(100);
        let source = |flow: &str| Source::new(&scenario(flow), 0);
        assert_eq!(source(r#""bytes": 1"#).closes(now), Time::NEVER);
        let mut once = source(r#""duration_ns": 7"#);
        assert_eq!((once.start.nanos(), once.closes(now).nanos()), (5, 107));
        let mut replaced = source(r#""lifetime_ns": [10, 20]"#);
        let closes: Vec<u64> = (0..100).map(|_| replaced.closes(now).nanos()).collect();
        assert!(closes.iter().all(|ns| (110..=120).contains(ns)) && closes[0] != closes[1]);
        assert_eq!([once.reopens(now), replaced.reopens(now)], [Time::NEVER, now]);
    }

    #[test]
    fn a_flow_of_replaced_connections_ends_with_its_duration() {
        let mut source = Source::new(&scenario(r#""lifetime_ns": [10, 20], "duration_ns": 30"#), 0);
        let mut closes = |ns| source.closes(Time::from_nanos(ns)).nanos();
        assert!((15..=25).contains(&closes(5)));
        assert_eq!(closes(30), 35);
        assert_eq!([34, 35].map(|ns| source.reopens(Time::from_nanos(ns)).nanos()), [34, Time::NEVER.nanos()]);
    }

    #[test]
    fn writes_follow_rate_without_rounding_drift() {
        let source = Source::new(&scenario(r#""writes": {"bytes": 1, "rate_bps": 3}"#), 0);
        let began = Time::from_nanos(7);
        let mut now = began;
        let mut times = Vec::new();
        for _ in 0..3 {
            now = source.writes_next(began, now);
            times.push(now.nanos() - 7);
        }
        assert_eq!(times, [2_666_666_667, 5_333_333_334, 8_000_000_000]);
        assert_eq!(Source::new(&scenario(r#""bytes": 1"#), 0).writes_next(began, began), Time::NEVER);
    }

    #[test]
    fn on_period_begins_with_write_and_off_has_none() {
        // One write each 10 µs.
        let flow = r#""writes": {"bytes": 1000, "rate_bps": 800000000, "on_off_ns": [25000, 15000]}"#;
        let source = Source::new(&scenario(flow), 0);
        let next = |ns| source.writes_next(Time::ZERO, Time::from_nanos(ns)).nanos();
        assert_eq!([0, 10_000, 20_000, 39_999, 40_000].map(next), [10_000, 20_000, 40_000, 40_000, 50_000]);
    }
}
