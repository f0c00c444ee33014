//! The same scenario and seed give the same bytes, however the run is cut up.

use crate::common::{MS, PERCENT, Path, Run, bits, chain, find, probe, simulation};
use sawtooth_net::tables::Column;
use sawtooth_units::Time;
use serde_json::{Value, json};

/// Random loss, replacement, BBR's phases and probes: everything that draws.
fn mixed(seed: u64) -> Value {
    let mut scenario = Path { loss_ppb: PERCENT, seed, ..Path::default() }.json();
    let mut bbr = scenario["flows"][0].clone();
    (bbr["cc"], bbr["count"]) = (json!("bbr"), json!(3));
    let mut short = scenario["flows"][0].clone();
    (short["count"], short["lifetime_ns"]) = (json!(4), json!([50 * MS, 300 * MS]));
    scenario["flows"] = json!([scenario["flows"][0], bbr, short]);
    scenario["probes"] = json!([probe(10 * MS, 50)]);
    scenario
}

#[test]
fn the_same_scenario_and_seed_give_identical_tables() {
    assert_eq!(bits(&Run::of(&mixed(7)).tables), bits(&Run::of(&mixed(7)).tables));
}

#[test]
fn another_seed_gives_other_tables() {
    assert_ne!(bits(&Run::of(&mixed(7)).tables), bits(&Run::of(&mixed(8)).tables));
}

#[test]
fn small_steps_give_the_same_tables_as_one() {
    let whole = Run::of(&mixed(7));
    let mut stepped = simulation(&mixed(7));
    let mut until = 0;
    while !stepped.advance(Time::from_nanos(until), u64::MAX) {
        until += 777_777;
    }
    assert_eq!(bits(&stepped.take()), bits(&whole.tables));
    assert_eq!(stepped.events(), whole.simulation.events());
}

#[test]
fn a_limit_of_events_interrupts_without_changing_anything() {
    let whole = Run::of(&mixed(7));
    let mut stepped = simulation(&mixed(7));
    let mut calls = 0;
    while !stepped.advance(Time::NEVER, 1_000) {
        calls += 1;
    }
    assert!(calls > 10);
    assert_eq!(bits(&stepped.take()), bits(&whole.tables));
    assert_eq!(stepped.delivered_packets(), whole.simulation.delivered_packets());
}

#[test]
fn rows_taken_in_batches_are_those_taken_at_once() {
    let whole = Run::of(&mixed(7));
    let mut stepped = simulation(&mixed(7));
    let mut goodput: Vec<f64> = Vec::new();
    let mut until = 0;
    loop {
        until += 150 * MS;
        let end = stepped.advance(Time::from_nanos(until), u64::MAX);
        match find(&stepped.take(), "intervals", "goodput_bps") {
            Column::Float(values) => goodput.extend(values),
            Column::Integer(_) => panic!("goodput is a float"),
        }
        if end {
            break;
        }
    }
    assert_eq!(goodput, whole.floats("intervals", "goodput_bps"));
}

#[test]
fn a_link_draws_its_losses_whatever_else_there_is() {
    // An unused host, transmitter and link at the end change nothing.
    let plain = Path { loss_ppb: PERCENT, ..Path::default() }.json();
    let mut wider = plain.clone();
    let unused = wider["links"][1].clone();
    wider["links"].as_array_mut().expect("links are a list").push(unused);
    let tables = |scenario: &Value| {
        let run = Run::of(scenario);
        (run.floats("intervals", "goodput_bps"), run.integers("intervals", "retransmits"))
    };
    assert_eq!(tables(&plain), tables(&wider));
}

#[test]
fn to_advance_after_the_end_changes_nothing() {
    let mut run = Run::of(&mixed(7));
    let delivered = run.simulation.delivered_packets();
    assert!(run.simulation.advance(Time::NEVER, u64::MAX));
    assert_eq!(run.simulation.delivered_packets(), delivered);
    assert!(bits(&run.simulation.take()).iter().all(|(_, _, cells)| cells.is_empty()), "rows were reported twice");
}

#[test]
fn what_is_kept_does_not_grow_with_the_simulated_time() {
    let kept = |seconds: u64| {
        let mut simulation = simulation(&chain("cubic", 100_000_000, 4 * MS, PERCENT / 10, seconds * 1_000 * MS));
        let (mut most_packets, mut most_rows, mut until) = (0, 0, 0);
        loop {
            until += 500 * MS;
            let end = simulation.advance(Time::from_nanos(until), u64::MAX);
            most_packets = most_packets.max(simulation.in_transit());
            let rows: usize = bits(&simulation.take()).iter().map(|(_, _, cells)| cells.len()).sum();
            most_rows = most_rows.max(rows);
            if end {
                return (most_packets, most_rows);
            }
        }
    };
    let ((short_packets, short_rows), (long_packets, long_rows)) = (kept(2), kept(20));
    // The ends of connections come once.
    assert!(long_rows <= short_rows + 11, "{long_rows} cells a batch, {short_rows} in the short run");
    // A full queue, and what is on the wire.
    assert!(short_packets < 2_500 && long_packets < 2_500, "{short_packets} and {long_packets} packets");
}
