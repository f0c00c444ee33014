//! Transfers that arrive on their own: the time and size of the next one, drawn on demand.

use crate::rng::{Purpose, Rng};
use crate::scenario::{Arrivals, Scenario, Sizes, Times, Traffic};
use sawtooth_units::Time;
use sawtooth_units::width::{Approx, Fit};
use std::collections::VecDeque;

/// A transfer: its arrival time and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub at: Time,
    pub bytes: u64,
}

/// The transfers of a flow, in order; the same for every engine.
#[derive(Clone, Debug)]
pub struct Transfers {
    config: Arrivals,
    start: Time,
    until: Time,
    /// How many were drawn, and when the last of them arrives.
    drawn: usize,
    last: Time,
    /// Sizes and times use separate generators, so another arrival rate leaves the sizes unchanged.
    times: Rng,
    sizes: Rng,
}

impl Transfers {
    /// The transfers of a flow, or the datagrams of one of its streams. `None`: they do not arrive at random or listed
    /// times.
    pub fn of(scenario: &Scenario, flow: usize, stream: usize) -> Option<Self> {
        let given = &scenario.flows[flow];
        let config = match &given.traffic {
            Traffic::Arrivals(arrivals) => arrivals.clone(),
            Traffic::Datagrams(datagrams) if datagrams.poisson => datagrams.arrivals(),
            _ => return None,
        };
        let ends = given.duration_ns.map_or(u64::MAX, |ns| given.start_ns.saturating_add(ns));
        let [start, until] = [given.start_ns, ends.min(scenario.duration_ns)].map(Time::from_nanos);
        let index = flow as u64 | (stream as u64) << 32;
        let [times, sizes] = [Purpose::Arrival, Purpose::Size].map(|purpose| Rng::new(scenario.seed, purpose, index));
        Some(Transfers { config, start, until, drawn: 0, last: start, times, sizes })
    }
}

impl Iterator for Transfers {
    type Item = Transfer;

    fn next(&mut self) -> Option<Transfer> {
        let at = match self.config.times {
            Times::PoissonNs(mean) => {
                let gap = (-mean.approx() * libm::log(unit(&mut self.times))).round();
                Time::from_nanos(self.last.nanos().saturating_add(whole(gap)))
            }
            Times::AtNs(ref times) => Time::from_nanos(self.start.nanos().saturating_add(*times.get(self.drawn)?)),
        };
        if at >= self.until {
            return None;
        }
        let bytes = size(&self.config.sizes, self.drawn, &mut self.sizes);
        self.drawn += 1;
        self.last = at;
        Some(Transfer { at, bytes })
    }
}

/// Uniform in the interval from 0 (excluded) to 1.
pub fn unit(rng: &mut Rng) -> f64 {
    ((rng.next() >> 11) + 1).approx() / (1u64 << 53).approx()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float's cast saturates")]
fn whole(value: f64) -> u64 {
    value as u64
}

/// Draws a size; listed sizes use the `number`-th. Logarithms and powers are `libm`'s, not the machine's, so a seed
/// draws the same sizes everywhere.
pub fn size(sizes: &Sizes, number: usize, rng: &mut Rng) -> u64 {
    match *sizes {
        Sizes::Fixed(bytes) => bytes,
        Sizes::Each(ref all) => all[number],
        Sizes::Lognormal { mean_bytes, sigma_ppb } => {
            let sigma = sigma_ppb.approx() / 1e9;
            // Box and Muller (1958), one of the pair.
            let normal = (-2.0 * libm::log(unit(rng))).sqrt() * libm::cos(std::f64::consts::TAU * unit(rng));
            let log = libm::log(mean_bytes.approx()) - sigma * sigma / 2.0 + sigma * normal;
            whole(libm::exp(log).round()).clamp(1, LARGEST)
        }
        Sizes::Pareto { least_bytes, most_bytes, shape_ppb } => {
            let (least, most, shape) = (least_bytes.approx(), most_bytes.approx(), shape_ppb.approx() / 1e9);
            let cut = 1.0 - libm::pow(least / most, shape);
            let bytes = least * libm::pow(1.0 - (1.0 - unit(rng)) * cut, -1.0 / shape);
            whole(bytes.round()).clamp(least_bytes, most_bytes)
        }
        Sizes::Cdf(ref points) => of_points(points, unit(rng) * 1e9),
    }
}

/// Most bytes of a lognormal transfer.
const LARGEST: u64 = 1_000_000_000_000_000;

/// The size up to which the distribution has the share `ppb`.
fn of_points(points: &[[u64; 2]], ppb: f64) -> u64 {
    let next = points.partition_point(|&[_, share]| share.approx() < ppb).min(points.len() - 1);
    let [high, to] = points[next];
    let Some([low, from]) = next.checked_sub(1).map(|before| points[before]) else {
        return high.max(1);
    };
    let part = (ppb - from.approx()) / (to - from).max(1).approx();
    whole((low.approx() + (high - low).approx() * part).round()).clamp(1, high.max(1))
}

/// The arrivals of one flow in a simulation: the next one, free places, and what waits for one.
#[derive(Clone, Debug)]
pub struct Arriving {
    pub flow: u32,
    /// Where its routes there and back begin.
    pub ways: [u32; 2],
    transfers: Transfers,
    next: Option<Transfer>,
    /// How many have opened, and how many places there are.
    opened: u32,
    places: usize,
    most: usize,
    free: Vec<u32>,
    waiting: VecDeque<Transfer>,
}

impl Arriving {
    /// `None`: the flow's connections do not arrive on their own.
    pub fn new(scenario: &Scenario, flow: usize, ways: [u32; 2]) -> Option<Self> {
        let Traffic::Arrivals(Arrivals { open: most, .. }) = scenario.flows[flow].traffic else { return None };
        let mut transfers = Transfers::of(scenario, flow, 0)?;
        let next = transfers.next();
        let (free, waiting) = (Vec::new(), VecDeque::new());
        Some(Arriving { flow: flow.fit_u32(), ways, transfers, next, opened: 0, places: 0, most, free, waiting })
    }

    /// When the next one arrives.
    pub fn due(&self) -> Time {
        self.next.map_or(Time::NEVER, |transfer| transfer.at)
    }

    /// Queues the transfers that have arrived by `now`.
    pub fn come(&mut self, now: Time) {
        while let Some(transfer) = self.next
            && transfer.at <= now
        {
            self.waiting.push_back(transfer);
            self.next = self.transfers.next();
        }
    }

    /// The next waiting transfer, if there is a place: its number, its bytes, and the connection whose place it takes;
    /// without one it gets a new place.
    pub fn opens(&mut self) -> Option<(u32, u64, Option<u32>)> {
        if self.waiting.is_empty() || (self.free.is_empty() && self.places == self.most) {
            return None;
        }
        let transfer = self.waiting.pop_front()?;
        let place = self.free.pop();
        self.places += usize::from(place.is_none());
        self.opened += 1;
        Some((self.opened - 1, transfer.bytes, place))
    }

    /// The number of places: slots for connections, which later transfers reuse.
    pub fn places(&self) -> usize {
        self.places
    }

    /// A connection has ended.
    pub fn ended(&mut self, connection: u32) {
        self.free.push(connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(sizes: &Sizes, count: usize) -> Vec<u64> {
        let mut rng = Rng::new(1, Purpose::Size, 0);
        let mut drawn: Vec<u64> = (0..count).map(|number| size(sizes, number, &mut rng)).collect();
        drawn.sort_unstable();
        drawn
    }

    fn mean(drawn: &[u64]) -> f64 {
        drawn.iter().map(|&bytes| bytes.approx()).sum::<f64>() / drawn.len() as f64
    }

    #[test]
    fn a_lognormal_size_has_its_mean_and_its_median() {
        let drawn = draws(&Sizes::Lognormal { mean_bytes: 100_000, sigma_ppb: 1_000_000_000 }, 200_000);
        let median = drawn[drawn.len() / 2] as f64;
        assert!((mean(&drawn) / 1e5 - 1.0).abs() < 0.02, "{}", mean(&drawn));
        assert!((median / (1e5 * libm::exp(-0.5)) - 1.0).abs() < 0.02, "{median}");
        assert!(draws(&Sizes::Lognormal { mean_bytes: 7, sigma_ppb: 0 }, 10) == [7; 10]);
    }

    #[test]
    fn a_pareto_size_is_within_its_bounds_and_has_its_median() {
        let drawn =
            draws(&Sizes::Pareto { least_bytes: 1_000, most_bytes: 1_000_000, shape_ppb: 1_200_000_000 }, 100_000);
        assert!(drawn[0] >= 1_000 && drawn[drawn.len() - 1] <= 1_000_000);
        // L (1 - u (1 - (L / H)^a))^(-1 / a) at one half.
        let expected = 1_000.0 * libm::pow(1.0 - 0.5 * (1.0 - libm::pow(0.001, 1.2)), -1.0 / 1.2);
        let median = drawn[drawn.len() / 2] as f64;
        assert!((median / expected - 1.0).abs() < 0.02, "{median} {expected}");
    }

    #[test]
    fn between_points_of_a_distribution_sizes_are_even() {
        let points = [[0, 0], [1_000, 500_000_000], [11_000, 900_000_000], [11_000, 1_000_000_000]];
        assert_eq!(
            [0.1, 2.5e8, 5e8, 7e8, 9.5e8, 1e9].map(|ppb| of_points(&points, ppb)),
            [1, 500, 1_000, 6_000, 11_000, 11_000]
        );
        assert_eq!(of_points(&[[10, 500_000_000], [20, 1_000_000_000]], 1.0), 10, "a share at the first size");
        assert_eq!(of_points(&[[10, 1_000_000_000]], 1.0), 10);
    }
}
