//! Queues that scenarios name, by the clauses of their documents.

use crate::common::{MS, Path, Run, SECOND, bits, link, probe, simulation};
use sawtooth_units::Time;
use serde_json::{Value, json};

/// The bottleneck is behind the sender, whose host knows nothing of it.
fn path(discipline: &Value, path: Path) -> Value {
    let (mut scenario, half) = (path.json(), path.rtt_ns / 2);
    scenario["links"] = json!([link(0, 1, None, 0, 0), link(1, 2, Some(0), half, 0), link(2, 0, None, half, 0)]);
    scenario["transmitters"][0]["discipline"] = discipline.clone();
    scenario["probes"] = json!([probe(10 * MS, path.duration_ns / (10 * MS))]);
    scenario
}

fn codel() -> Value {
    json!({"codel": {"target_ns": 5 * MS, "interval_ns": 100 * MS}})
}

fn all() -> Vec<Value> {
    vec![json!({"fifo": {}}), codel()]
}

/// The median of a column, but for its first rows.
fn median(run: &Run, table: &str, column: &str) -> f64 {
    let mut values: Vec<f64> = run.floats(table, column).iter().copied().filter(|value| !value.is_nan()).collect();
    values.drain(..values.len() / 2);
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const LONG: Path = Path {
    cc: "reno",
    count: 2,
    rate_bps: 20_000_000,
    rtt_ns: 40 * MS,
    queue_packets: 1000,
    loss_ppb: 0,
    duration_ns: 20 * SECOND,
    seed: 1,
};

#[test]
fn codel_keeps_the_standing_queue_near_its_target_where_tail_drop_fills_it() {
    let [fifo, controlled] = [json!({"fifo": {}}), codel()].map(|kind| Run::of(&path(&kind, LONG)));
    assert!(median(&fifo, "queues", "delay_p50_s") > 0.1);
    let delay = median(&controlled, "queues", "delay_p50_s");
    assert!((0.001..0.008).contains(&delay), "{delay}");
    assert_eq!(controlled.sum("queues", "drops"), controlled.sum("queues", "early_drops"));
    let delivered = controlled.sum("queues", "sent_bytes") as f64 / (20e6 / 8.0 * 20.0);
    assert!(delivered > 0.9, "{delivered}");
}

#[test]
fn codel_drops_nothing_of_a_queue_that_empties_within_an_interval() {
    // 64 kB at 20 Mbit/s are gone after 26 ms: longer than the target, shorter than the interval.
    let mut scenario = path(&codel(), Path { count: 1, ..LONG });
    (scenario["flows"][0]["bytes"], scenario["hosts"][0]["initial_window"]) = (json!(64_000), json!(50));
    let run = Run::of(&scenario);
    assert_eq!(run.sum("queues", "drops"), 0);
    assert!(run.floats("queues", "delay_p99_s")[0] > 0.015);
}

#[test]
fn of_a_queue_that_is_told_delays_are_those_that_probes_see() {
    for kind in all() {
        let run = Run::of(&path(&kind, LONG));
        let probed = median(&run, "probes", "rtt_s") - 0.04;
        let told = median(&run, "queues", "delay_p50_s");
        assert!((probed - told).abs() < 0.1 * told + 0.001, "{kind}: {probed} {told}");
    }
}

#[test]
fn a_queue_is_never_longer_than_its_limit() {
    for kind in all() {
        let limited = Path { queue_packets: 20, ..LONG };
        let run = Run::of(&path(&kind, limited));
        assert!(run.integers("queues", "packets").iter().all(|&packets| packets <= 20), "{kind}");
        assert!(run.sum("queues", "drops") > 0, "{kind}");
    }
}

#[test]
fn where_a_run_pauses_changes_no_table() {
    for kind in all() {
        let scenario = path(&kind, Path { duration_ns: 5 * SECOND, ..LONG });
        let tables = |step| {
            let mut run = simulation(&scenario);
            while !run.advance(Time::NEVER, step) {}
            bits(&run.take())
        };
        assert_eq!(tables(u64::MAX), tables(997), "{kind}");
    }
}

#[test]
fn what_came_has_left_was_dropped_or_waits() {
    for kind in all() {
        let run = Run::of(&path(&kind, LONG));
        let out = run.sum("queues", "sent_packets") + run.sum("queues", "drops");
        let waiting = *run.integers("queues", "packets").last().unwrap() as u64;
        // Data, probes, and of each connection two packets of the handshake.
        assert_eq!(out + waiting, run.sum("flows", "segments_out") + 2_000 + 4, "{kind}");
    }
}

#[test]
fn nonsense_is_refused_by_its_name() {
    let mut scenario = path(&codel(), LONG);
    scenario["transmitters"][0]["discipline"]["codel"]["target_ns"] = json!(0);
    let refused = sawtooth_net::scenario::Scenario::parse(&scenario.to_string()).unwrap_err();
    assert!(refused.starts_with("transmitters[0].discipline: target_ns = 0"), "{refused}");
}
