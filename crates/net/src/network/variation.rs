//! What a link does to packets beyond a constant delay, as tc-netem does: changing delay, jitter, reordering,
//! duplication, corruption, aggregation. And its policer, which comes before.

use crate::network::policer::Policer;
use crate::rng::{Purpose, Rng};
use crate::scenario;
use sawtooth_units::width::Fit;
use sawtooth_units::{Span, Time};

const BILLION: u64 = 1_000_000_000;
/// Unit of a deviation table: one standard deviation.
const TABLE_SCALE: i128 = 8_192;

/// What a link does beyond a constant delay.
#[derive(Clone, Debug, Default)]
pub struct Special {
    /// It varies.
    pub variation: Option<Variation>,
    /// Its transmitter cuts super-packets that it queued as one.
    pub cuts: bool,
}

#[derive(Clone, Debug)]
pub struct Variation {
    policer: Option<Policer>,
    /// Delays with their start times, in order.
    delays: Vec<(Time, Span)>,
    /// How many of them have begun.
    come: usize,
    delay: Span,
    jitter: Option<Jitter>,
    /// Packets do not overtake.
    ordered: bool,
    reorder: Option<Reorder>,
    duplicate: Correlated,
    corrupt: Correlated,
    together: Span,
    /// The latest arrival.
    last: Time,
    rng: Rng,
}

#[derive(Clone, Debug)]
struct Jitter {
    nanos: u64,
    /// Deviations in [`TABLE_SCALE`]s; empty: uniform.
    table: Vec<i16>,
    draw: Correlated,
}

#[derive(Clone, Debug)]
struct Reorder {
    gap: u64,
    counted: u64,
    chance: Correlated,
}

/// A probability or number that is drawn near the last one.
#[derive(Clone, Copy, Debug, Default)]
struct Correlated {
    ppb: u64,
    correlation_ppb: u64,
    last: u64,
}

impl Correlated {
    /// Draws 32 bits.
    fn draw(&mut self, rng: &mut Rng) -> u64 {
        let fresh = rng.next() >> 32;
        if self.correlation_ppb == 0 {
            return fresh;
        }
        let mixed = u128::from(fresh) * u128::from(BILLION - self.correlation_ppb)
            + u128::from(self.last) * u128::from(self.correlation_ppb);
        self.last = (mixed / u128::from(BILLION)).fit_u64();
        self.last
    }

    fn hits(&mut self, rng: &mut Rng) -> bool {
        self.ppb > 0 && u128::from(self.draw(rng)) * u128::from(BILLION) < u128::from(self.ppb) << 32
    }
}

/// The outcome for a packet that has left the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Arrives(Time),
    /// Its checksum is wrong: the receiver discards it.
    Broken,
    /// It exceeded the policer's rate.
    Policed,
}

impl Variation {
    /// `None`: the link only has a constant delay.
    pub fn new(config: &scenario::Link, seed: u64, index: usize) -> Option<Self> {
        if !config.varies() {
            return None;
        }
        let correlated = |(ppb, correlation_ppb): (u64, u64)| Correlated { ppb, correlation_ppb, last: 0 };
        let jitter = config.jitter.as_ref().map(|jitter| Jitter {
            nanos: jitter.ns,
            table: jitter.table.clone(),
            draw: correlated((0, jitter.correlation_ppb)),
        });
        let reorder = config.reorder.as_ref().map(|reorder| Reorder {
            gap: reorder.gap,
            counted: 0,
            chance: correlated((reorder.ppb, reorder.correlation_ppb)),
        });
        let delays = config.delays.iter().map(|&(at, ns)| (Time::from_nanos(at), Span::from_nanos(ns)));
        Some(Variation {
            policer: config.policer.map(Policer::new),
            delays: delays.collect(),
            come: 0,
            delay: Span::from_nanos(config.delay_ns),
            ordered: config.jitter.as_ref().is_none_or(|jitter| jitter.ordered),
            jitter,
            reorder,
            duplicate: correlated(config.duplicate.unwrap_or_default()),
            corrupt: correlated(config.corrupt.unwrap_or_default()),
            together: Span::from_nanos(config.aggregation_ns),
            last: Time::ZERO,
            rng: Rng::new(seed, Purpose::Variation, index as u64),
        })
    }

    /// Whether the next packet is duplicated.
    pub fn doubles(&mut self) -> bool {
        self.duplicate.hits(&mut self.rng)
    }

    /// The outcome for a packet of `size` bytes that left the transmitter at `departure`, no earlier than the previous
    /// one.
    pub fn fate(&mut self, size: u32, departure: Time) -> Fate {
        if let Some(policer) = &mut self.policer
            && !policer.passes(size, departure)
        {
            return Fate::Policed;
        }
        while let Some(&(at, delay)) = self.delays.get(self.come)
            && at <= departure
        {
            self.delay = delay;
            self.come += 1;
        }
        if self.corrupt.hits(&mut self.rng) {
            return Fate::Broken;
        }
        if let Some(reorder) = &mut self.reorder {
            if reorder.counted + 1 >= reorder.gap && reorder.chance.hits(&mut self.rng) {
                reorder.counted = 0;
                return Fate::Arrives(departure);
            }
            reorder.counted += 1;
        }
        let delay = match &mut self.jitter {
            Some(jitter) => jitter.around(self.delay, &mut self.rng),
            None => self.delay,
        };
        let mut arrival = departure + delay;
        if self.together > Span::ZERO {
            // Packets that are due by the next release leave with it. A release follows the previous one after the
            // given time or, if there was none, the arrival of the first packet (netem's slots). After a longer
            // silence, a packet waits too.
            let next = self.last.max(departure) + self.together;
            arrival = match arrival {
                due if due <= self.last => self.last,
                due if due <= next => next,
                due => due + self.together,
            };
        } else if self.ordered {
            arrival = arrival.max(self.last);
        }
        self.last = arrival;
        Fate::Arrives(arrival)
    }
}

impl Jitter {
    fn around(&mut self, delay: Span, rng: &mut Rng) -> Span {
        let drawn = self.draw.draw(rng);
        let deviation = if self.table.is_empty() {
            // Uniform from -jitter up to, but excluding, +jitter.
            let offset = (u128::from(drawn) * 2 * u128::from(self.nanos)) >> 32;
            i128::from(offset.fit_u64()) - i128::from(self.nanos)
        } else {
            let offset = (drawn % self.table.len() as u64).fit_usize();
            i128::from(self.nanos) * i128::from(self.table[offset]) / TABLE_SCALE
        };
        let nanos = (i128::from(delay.nanos()) + deviation).max(0);
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variation(more: &str) -> Variation {
        let delay = if more.contains("delay_ns") { "" } else { r#""delay_ns": 1000000,"# };
        let json = format!(
            r#"{{"name": "", "from": 0, "to": 1, "transmitter": null, {delay} "loss_ppb": 0,
            "overhead_bytes": 0, {more}}}"#
        );
        Variation::new(&serde_json::from_str(&json).unwrap(), 1, 0).unwrap()
    }

    /// The arrival times of packets that leave one microsecond apart.
    fn arrivals(variation: &mut Variation, count: u64) -> Vec<u64> {
        let fate = |n| match variation.fate(1_514, Time::from_nanos(n * 1_000)) {
            Fate::Arrives(time) => time.nanos(),
            Fate::Broken | Fate::Policed => 0,
        };
        (0..count).map(fate).collect()
    }

    #[test]
    fn shrinking_delay_keeps_order() {
        let mut variation = variation(r#""delays": [[2000, 500000], [600000, 700000]]"#);
        let arrivals = arrivals(&mut variation, 601);
        assert_eq!(
            [arrivals[0], arrivals[1], arrivals[2], arrivals[501]],
            [1_000_000, 1_001_000, 1_001_000, 1_001_000]
        );
        assert_eq!([arrivals[502], arrivals[600]], [1_002_000, 1_300_000]);
    }

    #[test]
    fn even_jitter_stays_within_its_bounds_around_the_delay() {
        let mut variation = variation(r#""jitter": {"ns": 200000}"#);
        let delays: Vec<u64> =
            arrivals(&mut variation, 100_000).iter().zip(0..).map(|(at, n)| at - n * 1_000).collect();
        let mean = delays.iter().sum::<u64>() as f64 / delays.len() as f64;
        assert!(delays.iter().all(|delay| (800_000..1_200_000).contains(delay)) && (mean - 1e6).abs() < 2e3, "{mean}");
    }

    #[test]
    fn ordered_jitter_keeps_the_order() {
        assert!(arrivals(&mut variation(r#""jitter": {"ns": 200000, "ordered": true}"#), 10_000).is_sorted());
        assert!(!arrivals(&mut variation(r#""jitter": {"ns": 200000}"#), 10_000).is_sorted());
    }

    #[test]
    fn a_packet_that_overtakes_has_no_delay_and_comes_after_a_gap() {
        let mut variation = variation(r#""reorder": {"ppb": 1000000000, "gap": 5}"#);
        let overtook: Vec<bool> =
            arrivals(&mut variation, 20).iter().zip(0..).map(|(&at, n)| at == n * 1_000).collect();
        assert!(overtook.iter().zip(1..).all(|(&overtook, number)| overtook == (number % 5 == 0)), "{overtook:?}");
    }

    #[test]
    fn loss_share_matches_config_with_correlation() {
        let mut variation = variation(r#""corrupt": [100000000, 0], "duplicate": [50000000, 0]"#);
        let broken = arrivals(&mut variation, 100_000).iter().filter(|&&at| at == 0).count();
        let twice = (0..100_000).filter(|_| variation.doubles()).count();
        assert!((9_500..10_500).contains(&broken) && (4_750..5_250).contains(&twice), "{broken} {twice}");
    }

    #[test]
    fn aggregation_wait_begins_at_first_packet_after_release() {
        let mut variation = variation(r#""delay_ns": 0, "aggregation_ns": 100000"#);
        let mut arrival = |us: u64| match variation.fate(1_514, Time::from_nanos(us * 1_000)) {
            Fate::Arrives(time) => time.nanos() / 1_000,
            Fate::Broken | Fate::Policed => 0,
        };
        assert_eq!([30, 60, 90, 120, 150, 240, 270].map(&mut arrival), [130, 130, 130, 130, 250, 250, 370]);
    }

    #[test]
    fn aggregated_packets_leave_together_at_the_interval() {
        let arrivals = arrivals(&mut variation(r#""aggregation_ns": 100000"#), 1_000);
        let mut times = arrivals.clone();
        times.dedup();
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] == 100_000), "{times:?}");
        assert!((8..12).contains(&times.len()));
    }
}
