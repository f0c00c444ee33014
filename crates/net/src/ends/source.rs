//! What applications write, and when: without end or a number of bytes, in connections that last as long as they are told to,
//! once or again and again.

use crate::rng::{Purpose, Rng};
use crate::scenario::Scenario;
use sawtooth_units::{Span, Time};

/// The applications of a flow.
#[derive(Clone, Debug)]
pub struct Source {
    pub start: Time,
    lasts: Lasts,
    rng: Rng,
}

/// How long a connection is open at most.
#[derive(Clone, Copy, Debug)]
enum Lasts {
    Forever,
    /// There is one.
    Once(Span),
    /// Nanoseconds, drawn between these; the next one follows at once.
    Replaced(u64, u64),
}

impl Source {
    pub fn new(scenario: &Scenario, flow: usize) -> Self {
        let config = &scenario.flows[flow];
        let lasts = match (config.lifetime_ns, config.duration_ns) {
            (Some([low, high]), _) => Lasts::Replaced(low, high),
            (None, Some(ns)) => Lasts::Once(Span::from_nanos(ns)),
            (None, None) => Lasts::Forever,
        };
        let rng = Rng::new(scenario.seed, Purpose::Lifetime, flow as u64);
        Source { start: Time::from_nanos(config.start_ns), lasts, rng }
    }

    /// When a connection that opens at `now` is closed, whatever it has delivered.
    pub fn closes(&mut self, now: Time) -> Time {
        match self.lasts {
            Lasts::Forever => Time::NEVER,
            Lasts::Once(span) => now + span,
            Lasts::Replaced(low, high) => now + Span::from_nanos(self.rng.between(low, high)),
        }
    }

    /// When the next connection opens where one has ended at `now`; [`Time::NEVER`]: there is none.
    pub fn reopens(&self, now: Time) -> Time {
        match self.lasts {
            Lasts::Forever | Lasts::Once(_) => Time::NEVER,
            Lasts::Replaced(..) => now,
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
    fn a_connection_closes_after_its_duration_or_a_drawn_lifetime_or_never() {
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
}
