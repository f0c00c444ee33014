//! A control that decides rarely: once for each ACK, round trip or stretch of time it takes an [`Observation`] and sets
//! the window or the pacing rate. A [`Network`] decides, or whoever runs the simulation, which then stops for it.
//!
//! Between two decisions window and rate stay as they are. Only a retransmission timeout changes the window, as for
//! every control, and the next ACK brings a decision.

use super::module::{Connected, Module};
use super::{AckSample, Event, MIN_TSO_SEGS, RateSample, SNDBUF_EXPAND};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::packet::Ack;
use crate::window::Window;
use sawtooth_units::width::{Approx, Fit, Whole};
use std::sync::Arc;

/// The pacing rate with a set window, in percent of the window's rate (`sysctl_tcp_pacing_ca_ratio`): it only sizes
/// super-packets.
const PACING_PERCENT: u64 = 120;
/// With a set rate, the window holds this many round trips of it, and at least [`LEAST_PACED`] segments.
const PACED_ROUNDS: f64 = 2.0;
const LEAST_PACED: f64 = 4.0;
/// The bounds of an action.
pub const CWND: [f64; 2] = [1.0, 1_000_000.0];
pub const RATE: [f64; 2] = [1e4, 1e12];
pub const CHANGE: [f64; 2] = [-1.0, 1.0];

/// What an agent sees: names, units and meanings, in the order of [`Observation`].
pub const OBSERVED: [(&str, &str, &str); 20] = [
    ("time", "s", "since the connection was established"),
    ("interval", "s", "since the last decision; of the first one, since the connection was established"),
    ("acked", "packets", "delivered since the last decision, by ACK or SACK"),
    ("lost", "packets", "marked lost since the last decision"),
    ("marked", "packets", "delivered since the last decision with an ECN mark"),
    ("delivery_rate", "bit/s", "the newest valid sample of Linux's delivery rate; 0 before"),
    ("rtt", "s", "the newest round-trip time; 0 before"),
    ("srtt", "s", "the smoothed round-trip time; 0 before"),
    ("min_rtt", "s", "the shortest round-trip time of the last 5 minutes; 0 before"),
    ("in_flight", "packets", "sent, and neither delivered nor lost as far as the sender knows"),
    ("cwnd", "packets", "the window until now"),
    ("pacing_rate", "bit/s", "the rate at which the pacer sends; 0 without pacing"),
    ("state", "0 to 4", "Linux's state: open, disorder, CWR, recovery, loss"),
    ("cwnd_limited", "0 or 1", "the window was what held the sender back"),
    ("peak_flight", "packets", "most packets out in the last window"),
    ("log2_cwnd", "", "the window's logarithm to base 2"),
    ("rtt_ratio", "", "the newest round-trip time over the shortest, less 1"),
    ("loss_share", "", "lost over lost and delivered, since the last decision"),
    ("marked_share", "", "marked over delivered, since the last decision"),
    ("full", "", "delivery_rate · min_rtt over the window: 1 without a queue"),
];

/// The values of [`OBSERVED`].
pub type Observation = [f64; OBSERVED.len()];

/// When an agent decides: at the first ACK, and then
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// at each one,
    Ack,
    /// at the first one of each round trip,
    RoundTrip,
    /// or at the first one when so many microseconds have passed.
    Micros(u64),
}

/// What an agent sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sets {
    /// The window, in packets.
    Cwnd,
    /// The pacing rate, in bit/s.
    Rate,
    /// The window, by a factor of two to this power.
    Change,
}

impl Sets {
    /// The least and the greatest action.
    pub fn bounds(self) -> [f64; 2] {
        match self {
            Sets::Cwnd => CWND,
            Sets::Rate => RATE,
            Sets::Change => CHANGE,
        }
    }
}

/// One layer: a row of weights for each output, and its bias.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    pub weights: Vec<Vec<f64>>,
    pub biases: Vec<f64>,
}

/// What is applied to the outputs of a layer that another one follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    Tanh,
    Relu,
}

impl Activation {
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "tanh" => Some(Activation::Tanh),
            "relu" => Some(Activation::Relu),
            _ => None,
        }
    }

    fn of(self, sum: f64) -> f64 {
        match self {
            Activation::Tanh => libm::tanh(sum),
            Activation::Relu => sum.max(0.0),
        }
    }
}

/// Layers with an activation between them; the last one's only output is the action.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Positions in [`OBSERVED`].
    pub inputs: Vec<usize>,
    pub layers: Vec<Layer>,
    pub activation: Activation,
}

impl Network {
    /// None: the sizes of the layers do not match.
    pub fn new(inputs: Vec<usize>, layers: Vec<Layer>, activation: Activation) -> Option<Network> {
        let mut size = inputs.len();
        for layer in &layers {
            let is_whole =
                layer.weights.iter().all(|row| row.len() == size) && layer.weights.len() == layer.biases.len();
            if !is_whole {
                return None;
            }
            size = layer.biases.len();
        }
        let known = inputs.iter().all(|&input| input < OBSERVED.len());
        (known && size == 1 && !layers.is_empty()).then_some(Network { inputs, layers, activation })
    }

    /// The sums are in the order of the inputs, so that they are the same everywhere.
    pub fn decide(&self, seen: &Observation) -> f64 {
        let mut values: Vec<f64> = self.inputs.iter().map(|&input| seen[input]).collect();
        for (place, layer) in self.layers.iter().enumerate() {
            let sums = layer.weights.iter().zip(&layer.biases);
            let sums = sums.map(|(row, bias)| row.iter().zip(&values).fold(*bias, |sum, (w, x)| sum + w * x));
            let is_last = place + 1 == self.layers.len();
            values = sums.map(|sum| if is_last { sum } else { self.activation.of(sum) }).collect();
        }
        values[0]
    }
}

/// A control of this kind, for any number of connections.
#[derive(Clone, Debug)]
pub struct Agent {
    pub name: String,
    pub every: Every,
    pub sets: Sets,
    /// None: the simulation stops for each decision.
    pub network: Option<Arc<Network>>,
}

impl Module for Agent {
    fn name(&self) -> &str {
        &self.name
    }

    fn needs_ecn(&self) -> bool {
        false
    }

    fn asks(&self) -> bool {
        self.network.is_none()
    }

    fn connect(&self, flight: &Flight, _: &mut Window, clock: Clock, _: u64) -> Box<dyn Connected> {
        let now_us = clock.micros();
        Box::new(ConnectionState {
            agent: self.clone(),
            begun_us: now_us,
            last: Last { us: now_us, delivered: flight.delivered, lost: flight.lost, marked: flight.delivered_ce },
            next_delivered: 0,
            due: true,
            rtt_us: 0,
            rate: 0.0,
            set: None,
        })
    }
}

/// Counters at the last decision.
#[derive(Clone, Copy, Debug)]
struct Last {
    us: u64,
    delivered: u64,
    lost: u64,
    marked: u64,
}

/// One connection's.
#[derive(Debug)]
struct ConnectionState {
    agent: Agent,
    begun_us: u64,
    last: Last,
    /// The delivered count at which the next round trip begins.
    next_delivered: u64,
    /// The next ACK brings a decision.
    due: bool,
    rtt_us: u64,
    /// Bits per second.
    rate: f64,
    /// The last action, applied.
    set: Option<Choice>,
}

#[derive(Clone, Copy, Debug)]
enum Choice {
    Cwnd(u32),
    Rate(f64),
}

fn seconds(micros: u64) -> f64 {
    micros.approx() / 1e6
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl ConnectionState {
    /// Whether this ACK brings a decision.
    fn decides(&mut self, flight: &Flight, sample: &RateSample, clock: Clock) -> bool {
        let begins_round = sample.prior_delivered >= self.next_delivered;
        let is_over = match self.agent.every {
            Every::Ack => true,
            Every::RoundTrip => begins_round,
            Every::Micros(micros) => clock.micros() - self.last.us >= micros,
        };
        if begins_round {
            self.next_delivered = flight.delivered;
        }
        std::mem::take(&mut self.due) || is_over
    }

    /// Sets what was chosen.
    fn apply(&self, flight: &Flight, window: &mut Window) {
        match self.set {
            Some(Choice::Cwnd(cwnd)) => {
                window.cwnd = cwnd.min(window.clamp);
                if flight.srtt_us > 0 {
                    let per_round = u64::from(flight.mss) * 8_000_000 * u64::from(window.cwnd.max(flight.packets_out));
                    window.pacing_rate = per_round.saturating_mul(PACING_PERCENT) / 100 / u64::from(flight.srtt_us);
                }
            }
            Some(Choice::Rate(bps)) => {
                window.pacing = true;
                window.pacing_rate = (bps / 8.0).whole();
                let srtt_s = seconds(u64::from(flight.srtt_us / 8));
                let segments = PACED_ROUNDS * srtt_s * bps / 8.0 / f64::from(flight.mss);
                window.cwnd = segments.clamp(LEAST_PACED, CWND[1]).whole().fit_u32().min(window.clamp);
            }
            None => {}
        }
    }
}

impl Connected for ConnectionState {
    fn has_cong_control(&self) -> bool {
        true
    }

    fn needs_ecn(&self) -> bool {
        false
    }

    fn ssthresh(&mut self, _: &Flight, window: &mut Window, _: Clock) -> u32 {
        window.ssthresh
    }

    fn undo_cwnd(&mut self, _: &Flight, window: &mut Window, _: Clock) -> u32 {
        window.cwnd
    }

    fn cong_avoid(&mut self, _: &Flight, _: &mut Window, _: u32, _: Clock) {}

    fn cong_control(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample, clock: Clock) -> bool {
        if let Ok(rtt_us) = u64::try_from(sample.rtt_us) {
            self.rtt_us = rtt_us;
        }
        if sample.delivered > 0 && sample.interval_us > 0 {
            let bits = sample.delivered.cast_unsigned().approx() * f64::from(flight.mss) * 8.0;
            self.rate = bits * 1e6 / sample.interval_us.cast_unsigned().approx();
        }
        if self.decides(flight, sample, clock) {
            let Some(network) = self.agent.network.clone() else { return true };
            let action = network.decide(&self.observe(flight, window, clock));
            self.choose(action, flight, window, clock);
        } else {
            self.apply(flight, window);
        }
        false
    }

    fn pkts_acked(&mut self, _: &Flight, _: &mut Window, _: AckSample, _: Clock) {}

    fn set_state(&mut self, _: &Flight, _: &mut Window, new: CaState, _: Clock) {
        self.due |= new == CaState::Loss;
    }

    fn event(&mut self, _: &Flight, _: &mut Window, _: Event, _: Clock) {}

    fn ack_arrives(&mut self, _: &Ack, _: bool) {}

    fn in_ack_event(&mut self, _: &Flight, _: &mut Window, _: bool, _: Clock) {}

    fn min_tso_segs(&self, _: &Flight, _: &Window) -> u32 {
        MIN_TSO_SEGS
    }

    fn sndbuf_expand(&self, _: &Flight, _: &Window) -> u32 {
        SNDBUF_EXPAND
    }

    fn observe(&self, flight: &Flight, window: &Window, clock: Clock) -> Observation {
        let Last { us, delivered, lost, marked } = self.last;
        let acked = (flight.delivered - delivered).approx();
        let lost = (flight.lost - lost).approx();
        let marked = (flight.delivered_ce - marked).approx();
        let min_rtt_us = if flight.min_rtt_us == u32::MAX { 0 } else { u64::from(flight.min_rtt_us) };
        let (rtt_s, min_rtt_s) = (seconds(self.rtt_us), seconds(min_rtt_us));
        let cwnd = f64::from(window.cwnd);
        [
            seconds(clock.micros() - self.begun_us),
            seconds(clock.micros() - us),
            acked,
            lost,
            marked,
            self.rate,
            rtt_s,
            seconds(u64::from(flight.srtt_us)) / 8.0,
            min_rtt_s,
            f64::from(flight.in_flight()),
            cwnd,
            if window.pacing { window.pacing_rate.approx() * 8.0 } else { 0.0 },
            f64::from(flight.ca_state as u8),
            f64::from(u8::from(flight.is_cwnd_limited)),
            f64::from(flight.max_packets_out),
            libm::log2(cwnd.max(1.0)),
            (share(rtt_s, min_rtt_s) - 1.0).max(0.0),
            share(lost, acked + lost),
            share(marked, acked),
            share(self.rate * min_rtt_s, cwnd * f64::from(flight.mss) * 8.0),
        ]
    }

    fn choose(&mut self, action: f64, flight: &Flight, window: &mut Window, clock: Clock) {
        let [least, most] = self.agent.sets.bounds();
        let action = if action.is_nan() { least } else { action.clamp(least, most) };
        let whole = |cwnd: f64| Choice::Cwnd(cwnd.clamp(CWND[0], CWND[1]).round().whole().fit_u32());
        self.set = Some(match self.agent.sets {
            Sets::Cwnd => whole(action),
            Sets::Rate => Choice::Rate(action),
            Sets::Change => whole(f64::from(window.cwnd) * libm::exp2(action)),
        });
        self.last =
            Last { us: clock.micros(), delivered: flight.delivered, lost: flight.lost, marked: flight.delivered_ce };
        self.apply(flight, window);
    }
}
