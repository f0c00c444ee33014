//! The topologies by name, each built into a `Network` from its table of the scenario file.
//!
//! ```text
//! path              sender – router – loss – delay – receiver; the bottleneck is router – loss
//! chain             h1 – h2 – h3 – h4 – h5, one card a host, loss on h3 → h4
//! chain-asymmetric  the same, but acknowledgements go from h5 straight to h1
//! parking-lot       a – n0 – n1 – … – b, a bottleneck between routers, each also crossed from cK to dK
//! home              server – line – router – device; an access line with a long queue, and Wi-Fi
//! dumbbell          s1 … sN – left – right – r1 … rN; the bottleneck is left – right
//! custom            hosts, cards, links and routes as the file gives them (`custom.rs`)
//! ```

use crate::custom::{custom, trace, traced_rate};
use crate::files::Files;
use crate::loss::LossModel;
use crate::network::Network;
use crate::parts::{Chain, Dumbbell, Home, ParkingLot, Path};
use crate::problem::Problem;
use crate::queue_model::QueueModel;
use crate::scenario::Scenario;
use crate::words::suggestion;

/// The network of the scenario's topology.
pub fn build(scenario: &Scenario, files: &dyn Files) -> Result<Network, Problem> {
    fn table<A: Clone + Default>(given: &Option<A>) -> A {
        given.clone().unwrap_or_default()
    }
    let network = match scenario.topology.as_str() {
        "path" => path(&table(&scenario.path), files)?,
        "dumbbell" => dumbbell(&table(&scenario.dumbbell)),
        "parking-lot" => parking_lot(&table(&scenario.parking_lot)),
        "home" => home(&table(&scenario.home)),
        "chain" => chain(&table(&scenario.chain)),
        "chain-asymmetric" => chain_asymmetric(&table(&scenario.chain)),
        _ => return custom(scenario, files),
    };
    if let Some((name, _)) = scenario.hosts.iter().find(|(name, _)| network.host(name).is_none()) {
        let message = format!("topology \"{}\" has no host \"{name}\"", scenario.topology);
        let fix = suggestion(name, network.hosts.iter().map(String::as_str));
        return Err(Problem::new("unknown-name", message, fix).of(format!("hosts.{name}")));
    }
    Ok(network)
}

fn hosts(names: &[&str], ends: (&str, &str)) -> Network {
    let mut network = Network::of(names.iter().map(|name| name.to_string()));
    network.ends = Some((ends.0.into(), ends.1.into()));
    network
}

fn or_none(loss: &Option<LossModel>) -> LossModel {
    loss.clone().unwrap_or(LossModel::NONE)
}

/// One bottleneck: the link between router and loss, with a rate and a queue; also in the reverse direction if that has
/// a rate. All other transmitters are unlimited.
///
/// Loss comes after the bottleneck, and half the RTT after that. The reverse path has the opposite order.
fn path(given: &Path, files: &dyn Files) -> Result<Network, Problem> {
    let mut network = hosts(&["sender", "router", "loss", "delay", "receiver"], ("sender", "receiver"));
    let back_ns = given.rtt.ns / 2;
    let traced = trace(given.trace.as_deref(), "path.trace", files)?;
    let rate_bps = traced_rate(traced.as_ref()).unwrap_or(given.rate.bps);
    network.transmit("router>loss", rate_bps, &given.queue, "path.queue");
    let reverse = given.reverse_rate.map(|rate| network.transmit("loss>router", rate.bps, &given.queue, "path.queue"));
    network.join("sender", "router", None);
    let bottleneck = network.join("router", "loss", Some(0));
    let lossy = network.join_with("loss", "delay", None, 0, given.loss.clone());
    let long = network.join_with("delay", "receiver", None, given.rtt.ns - back_ns, LossModel::NONE);
    for (number, changing) in
        [(bottleneck, [true, false, false]), (lossy, [false, false, true]), (long, [false, true, false])]
    {
        let wire = &mut network.wires[number];
        wire.changes = given.changes.clone().unwrap_or_default();
        (wire.changing, wire.trace, wire.field) = (changing, traced.clone(), "path".into());
    }
    network.wires[lossy].policer = given.policer.clone();
    let wire = &mut network.wires[long];
    wire.jitter = given.jitter.clone().map(|one| one.0);
    wire.reorder = given.reorder.clone().map(|one| one.0);
    wire.duplicate = given.duplicate.clone().map(|one| one.0);
    wire.corrupt = given.corrupt.clone().map(|one| one.0);
    network.join_with("receiver", "delay", None, back_ns, LossModel::NONE);
    network.join_with("delay", "loss", None, 0, given.ack_loss.clone());
    network.join("loss", "router", reverse);
    network.join("router", "sender", None);
    Ok(network)
}

const CHAIN: [&str; 5] = ["h1", "h2", "h3", "h4", "h5"];

/// All hosts with their cards and the forward path. Returns which of h1's cards the reverse path uses.
fn chain_out(given: &Chain) -> (Network, usize) {
    let mut network = hosts(&CHAIN, ("h1", "h5"));
    for host in CHAIN {
        network.transmit(host, given.rate.bps, &given.queue, "chain.queue");
    }
    let mut first = 0;
    if let Some(rate) = given.reverse_rate {
        first = network.transmitters.len();
        for host in CHAIN {
            network.transmit(format!("{host}-back"), rate.bps, &given.queue, "chain.queue");
        }
    }
    for (at, part) in shares(given.rtt.ns - given.rtt.ns / 2, 4).into_iter().enumerate() {
        let loss = if at == 2 { given.loss.clone() } else { LossModel::NONE };
        network.join_with(CHAIN[at], CHAIN[at + 1], Some(at), part, loss);
    }
    (network, first)
}

/// Five hosts that forward: the published study's symmetric network. Data and acknowledgements use the same links.
///
/// Each host has one card, so forwarded data and returning packets share a transmitter. The RTT is divided equally
/// among the eight directions.
fn chain(given: &Chain) -> Network {
    let (mut network, first) = chain_out(given);
    for (at, part) in (1..=4).rev().zip(shares(given.rtt.ns / 2, 4)) {
        let loss = if at == 3 { or_none(&given.ack_loss) } else { LossModel::NONE };
        network.join_with(CHAIN[at], CHAIN[at - 1], Some(first + at), part, loss);
    }
    network
}

/// The chain with a different reverse path: the published study's asymmetric network.
///
/// In the study, the reverse path uses other VLANs, but the text does not say which hosts it passes. Here h5 sends
/// directly to h1 from its own card. That link's delay is half the RTT, so the base RTT equals that of the symmetric
/// network.
fn chain_asymmetric(given: &Chain) -> Network {
    let (mut network, first) = chain_out(given);
    network.join_with("h5", "h1", Some(first + 4), given.rtt.ns / 2, or_none(&given.ack_loss));
    network
}

/// Divides `total` into integers that differ by at most one.
fn shares(total: u64, parts: u64) -> Vec<u64> {
    (0..parts).map(|at| total * (at + 1) / parts - total * at / parts).collect()
}

/// Pairs around one bottleneck, which has the rate and queue in both directions, and the loss towards the receivers.
///
/// The shortest RTT is on the bottleneck link; the rest of a pair's RTT is on its receiver's access link. Access links
/// are unlimited, unless `access_rate` is given: then each has a queue of 1000 packets.
fn dumbbell(given: &Dumbbell) -> Network {
    let pairs = given.number();
    let ends = ["s", "r"].into_iter().flat_map(|side| (1..=pairs).map(move |number| format!("{side}{number}")));
    let mut network = Network::of(["left".to_string(), "right".to_string()].into_iter().chain(ends));
    network.ends = Some(("s*".into(), "r*".into()));
    let shortest = given.rtt.0.iter().map(|time| time.ns).min().expect("there is one at least");
    let reverse = given.reverse_rate.unwrap_or(given.rate);
    network.transmit("left>right", given.rate.bps, &given.queue, "dumbbell.queue");
    network.transmit("right>left", reverse.bps, &given.queue, "dumbbell.queue");
    let back_ns = shortest / 2;
    network.join_with("left", "right", Some(0), shortest - back_ns, given.loss.clone());
    network.join_with("right", "left", Some(1), back_ns, or_none(&given.ack_loss));
    let access = |network: &mut Network, source: &str, target: &str, delay_ns: u64| {
        let transmitter = given.access_rate.map(|rate| {
            network.transmit(format!("{source}>{target}"), rate.bps, &QueueModel::USUAL, "dumbbell.access_rate")
        });
        network.join_with(source, target, transmitter, delay_ns, LossModel::NONE)
    };
    for number in 0..pairs {
        let (sender, receiver) = (format!("s{}", number + 1), format!("r{}", number + 1));
        let more = given.rtt.0[number % given.rtt.0.len()].ns - shortest;
        let there = vec![
            access(&mut network, &sender, "left", 0),
            0,
            access(&mut network, "right", &receiver, more - more / 2),
        ];
        let back =
            vec![access(&mut network, &receiver, "right", more / 2), 1, access(&mut network, "left", &sender, 0)];
        let ends = (network.host(&sender).expect("drawn"), network.host(&receiver).expect("drawn"));
        network.routes.insert(ends, there);
        network.routes.insert((ends.1, ends.0), back);
    }
    network
}

/// Routers in a row with a bottleneck between neighbours; a and b are at the ends, cK and dK on both sides of
/// bottleneck K.
fn parking_lot(given: &ParkingLot) -> Network {
    let hops = given.hops as usize;
    let router = |at: usize| format!("n{at}");
    let around = (1..=hops).flat_map(|number| [format!("c{number}"), format!("d{number}")]);
    let names = ["a".to_string(), "b".to_string()].into_iter().chain((0..=hops).map(router)).chain(around);
    let mut network = Network::of(names);
    network.ends = Some(("a".into(), "b".into()));
    let reverse = given.reverse_rate.unwrap_or(given.rate);
    let out = (0..hops).map(|at| (router(at), router(at + 1), given.rate));
    let back = (0..hops).map(|at| (router(at + 1), router(at), reverse));
    let ways: Vec<_> = out.chain(back).collect();
    for (here, there, rate) in &ways {
        network.transmit(format!("{here}>{there}"), rate.bps, &given.queue, "parking-lot.queue");
    }
    let mut delays = shares(given.rtt.ns - given.rtt.ns / 2, given.hops);
    delays.extend(shares(given.rtt.ns / 2, given.hops));
    for (at, (here, there, _)) in ways.iter().enumerate() {
        let loss = match at {
            0 => given.loss.clone(),
            at if at == hops => or_none(&given.ack_loss),
            _ => LossModel::NONE,
        };
        network.join_with(here, there, Some(at), delays[at], loss);
    }
    let mut ends = vec![("a".to_string(), router(0)), (router(hops), "b".to_string())];
    for number in 1..=hops {
        ends.push((format!("c{number}"), router(number - 1)));
        ends.push((router(number), format!("d{number}")));
    }
    for (here, there) in &ends {
        network.join(here, there, None);
        network.join(there, here, None);
    }
    network
}

/// server – line – router – device: the first link has all delay, then follow the access line with its rates and queue,
/// and Wi-Fi, which aggregates frames.
fn home(given: &Home) -> Network {
    let mut network = hosts(&["server", "line", "router", "device"], ("server", "device"));
    network.transmit("line>router", given.down.bps, &given.queue, "home.queue");
    network.transmit("router>line", given.up.bps, &given.queue, "home.queue");
    network.transmit("router>device", given.wifi.bps, &QueueModel::USUAL, "home.wifi");
    network.transmit("device>router", given.wifi.bps, &QueueModel::USUAL, "home.wifi");
    network.join_with("server", "line", None, given.rtt.ns - given.rtt.ns / 2, LossModel::NONE);
    network.join("line", "router", Some(0));
    for (source, target, transmitter, loss) in
        [("router", "device", 2, given.loss.clone()), ("device", "router", 3, or_none(&given.ack_loss))]
    {
        let number = network.join_with(source, target, Some(transmitter), 0, loss);
        network.wires[number].aggregation_ns = given.aggregation.ns;
    }
    network.join("router", "line", Some(1));
    network.join_with("line", "server", None, given.rtt.ns / 2, LossModel::NONE);
    network
}
