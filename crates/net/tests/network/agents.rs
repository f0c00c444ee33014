//! Decisions from outside and by a network come to the same, and stopping for them changes nothing.

use crate::common::{MS, PERCENT, Path, SECOND, bits, find};
use sawtooth_net::Simulation;
use sawtooth_net::scenario::Scenario;
use sawtooth_net::tables::{Column, Table};
use sawtooth_tcp::cc::agent::{Activation, Agent, Every, Layer, Network, OBSERVED, Observation, Sets};
use sawtooth_tcp::cc::module::Module;
use sawtooth_units::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

const LOSSY: Path = Path {
    cc: "reno",
    count: 2,
    rate_bps: 20_000_000,
    rtt_ns: 30 * MS,
    queue_packets: 30,
    loss_ppb: PERCENT,
    duration_ns: 3 * SECOND,
    seed: 5,
};

fn begun(path: Path, every: Every, sets: Sets, network: Option<Arc<Network>>) -> Simulation {
    let agent: Arc<dyn Module> = Arc::new(Agent { name: "agent".into(), every, sets, network });
    let modules = BTreeMap::from([(0, agent)]);
    Simulation::new(Scenario::with_modules(&path.json().to_string(), &modules).expect("the scenario is valid"))
}

/// The tables, and how many decisions there were.
fn decided(mut simulation: Simulation, events: u64, decide: impl Fn(&Observation) -> f64) -> (Vec<Table>, u64) {
    let mut decisions = 0;
    while !simulation.advance_to_decision(events) {
        if let Some((_, seen)) = simulation.waiting() {
            decisions += 1;
            simulation.choose(decide(&seen));
        }
    }
    (simulation.take(), decisions)
}

/// A window that shrinks with loss and delay.
fn network() -> Arc<Network> {
    let at = |name: &str| OBSERVED.iter().position(|one| one.0 == name).unwrap();
    let inputs = vec![at("loss_share"), at("rtt_ratio"), at("log2_cwnd")];
    let hidden = Layer { weights: vec![vec![-3.0, -0.5, 0.1], vec![2.0, 1.0, -0.3]], biases: vec![0.2, 0.5] };
    let last = Layer { weights: vec![vec![0.7, -0.4]], biases: vec![0.3] };
    Arc::new(Network::new(inputs, vec![hidden, last], Activation::Tanh).expect("the sizes match"))
}

const ALL: [Every; 3] = [Every::Ack, Every::RoundTrip, Every::Micros(20_000)];

#[test]
fn policy_in_core_matches_external_decisions() {
    for every in ALL {
        let network = network();
        let mut inside = begun(LOSSY, every, Sets::Change, Some(network.clone()));
        while !inside.advance(Time::NEVER, u64::MAX) {}
        let outside = begun(LOSSY, every, Sets::Change, None);
        let (tables, decisions) = decided(outside, u64::MAX, |seen| network.decide(seen));
        assert_eq!(bits(&tables), bits(&inside.take()), "{every:?}");
        assert!(decisions > 100, "{decisions}");
    }
}

#[test]
fn repeated_window_equals_fixed_window() {
    let fixed = |every, events| bits(&decided(begun(LOSSY, every, Sets::Cwnd, None), events, |_| 25.0).0);
    for every in ALL {
        assert_eq!(fixed(every, u64::MAX), fixed(Every::Ack, 1), "{every:?}");
    }
}

#[test]
fn a_rate_is_paced_and_a_larger_window_sends_more() {
    let goodput = |sets, action: f64| {
        let path = Path { count: 1, loss_ppb: 0, ..LOSSY };
        let (tables, _) = decided(begun(path, Every::RoundTrip, sets, None), u64::MAX, |_| action);
        let Column::Float(values) = find(&tables, "intervals", "goodput_bps") else { panic!("a float") };
        values[10..].iter().sum::<f64>() / (values.len() - 10) as f64 / 1e6
    };
    // Frames are 4.6% larger than their payload.
    assert!((goodput(Sets::Rate, 5e6) - 5.0).abs() < 0.3, "{}", goodput(Sets::Rate, 5e6));
    // 20 segments of 1448 bytes each 30 ms and the time in the queue.
    assert!((goodput(Sets::Cwnd, 20.0) - 7.6).abs() < 0.3, "{}", goodput(Sets::Cwnd, 20.0));
    assert!(goodput(Sets::Cwnd, 40.0) > 1.8 * goodput(Sets::Cwnd, 20.0));
}

#[test]
fn one_decision_per_rtt() {
    let path = Path { count: 1, loss_ppb: 0, ..LOSSY };
    let count = |every| decided(begun(path, every, Sets::Cwnd, None), u64::MAX, |_| 20.0).1;
    // 3 s of about 30 ms each, and of 20 ms.
    assert!((90..=100).contains(&count(Every::RoundTrip)), "{}", count(Every::RoundTrip));
    assert!((90..=150).contains(&count(Every::Micros(20_000))), "{}", count(Every::Micros(20_000)));
    assert!(count(Every::Ack) > 900, "{}", count(Every::Ack));
}

#[test]
fn layers_whose_sizes_do_not_match_are_refused() {
    let layer = |weights: &[&[f64]]| Layer {
        weights: weights.iter().map(|row| row.to_vec()).collect(),
        biases: vec![0.0; weights.len()],
    };
    let network = |inputs, layers| Network::new(inputs, layers, Activation::Relu);
    assert!(network(vec![0, 1], vec![layer(&[&[1.0, 1.0]])]).is_some());
    assert!(network(vec![0, 1], vec![layer(&[&[1.0]])]).is_none());
    assert!(network(vec![0, 1], vec![layer(&[&[1.0, 1.0], &[1.0, 1.0]])]).is_none());
    assert!(network(vec![OBSERVED.len()], vec![layer(&[&[1.0]])]).is_none());
    assert!(network(vec![0], vec![]).is_none());
}
