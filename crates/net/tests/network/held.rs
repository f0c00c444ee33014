//! Queues that hold their packets until they leave, against tail drop, which knows all departures on arrival.

use crate::common::{MS, PERCENT, Path, SECOND, bits, chain, probe};
use sawtooth_net::Simulation;
use sawtooth_net::scenario::{Discipline, Scenario};
use sawtooth_net::tables::{Column, Table};
use sawtooth_units::Time;
use serde_json::{Value, json};

fn simulation(scenario: &Value, discipline: Discipline) -> Simulation {
    let mut scenario = Scenario::parse(&scenario.to_string()).expect("the scenario is valid");
    scenario.transmitters.iter_mut().for_each(|transmitter| transmitter.discipline = discipline);
    Simulation::new(scenario)
}

/// All tables, but of those of queues, who count a packet when its departure is known, only the drops.
fn tables(mut simulation: Simulation, step: u64) -> Vec<Table> {
    while !simulation.advance(Time::NEVER, step) {}
    assert_eq!(simulation.in_transit() > 0, simulation.totals().segments_out > simulation.delivered_packets());
    let mut tables = simulation.take();
    for (_, columns) in tables.iter_mut().filter(|(name, _)| *name == "queues") {
        columns.retain(|(column, _)| ["t_s", "transmitter", "drops"].contains(column));
    }
    tables
}

fn drops(tables: &[Table]) -> i64 {
    match crate::common::find(tables, "queues", "drops") {
        Column::Integer(drops) => drops.iter().sum(),
        Column::Float(_) => unreachable!("drops are counted"),
    }
}

/// Bottlenecks at the sending host itself, whose small queues hold senders back, and behind it; cards that both ways
/// share; flows that come and go; hosts that leave segmentation to the device.
fn scenarios() -> Vec<Value> {
    let mut all = Vec::new();
    for cc in ["reno", "cubic", "bbr"] {
        let path = Path { cc, count: 3, queue_packets: 50, duration_ns: 5 * SECOND, ..Path::default() };
        let mut mixed = Path { loss_ppb: PERCENT / 10, ..path }.json();
        (mixed["flows"][0]["lifetime_ns"], mixed["hosts"][0]["offload"]) = (json!([100 * MS, SECOND]), json!(true));
        mixed["probes"] = json!([probe(10 * MS, 400)]);
        let mut bytes = path.json();
        let limit = json!({"name": "b", "rate_bps": 100_000_000, "queue_packets": null, "queue_bytes": 60_000});
        bytes["transmitters"] = json!([limit]);
        let mut narrow = chain(cc, 100_000_000, 2 * MS, 0, 2 * SECOND);
        for hop in [1, 2] {
            (narrow["transmitters"][hop]["rate_bps"], narrow["transmitters"][hop]["queue_packets"]) =
                (json!(30_000_000 / hop), json!(10));
        }
        all.extend([path.json(), mixed, bytes, narrow, chain(cc, 1_000_000_000, MS, PERCENT, SECOND)]);
    }
    all
}

#[test]
fn held_packets_queue_matches_tail_drop() {
    let mut dropped = 0;
    for scenario in scenarios() {
        let (known, held) =
            [Discipline::TailDrop, Discipline::Fifo {}].map(|d| tables(simulation(&scenario, d), u64::MAX)).into();
        dropped += drops(&known);
        for (known, held) in bits(&known).into_iter().zip(bits(&held)) {
            let differs = known.2.iter().zip(&held.2).position(|(one, other)| one != other);
            assert!(
                differs.is_none() && known.2.len() == held.2.len(),
                "{}.{}[{differs:?}]: {scenario}",
                known.0,
                known.1
            );
        }
    }
    assert!(dropped > 1_000, "{dropped}");
}

#[test]
fn pausing_with_held_packets_changes_no_table() {
    let scenario = &scenarios()[1];
    let whole = tables(simulation(scenario, Discipline::Fifo {}), u64::MAX);
    assert_eq!(bits(&whole), bits(&tables(simulation(scenario, Discipline::Fifo {}), 997)));
}
