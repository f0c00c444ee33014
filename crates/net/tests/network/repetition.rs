//! The same scenario and seed give the same bytes, however the run is cut up.

use crate::common::{MS, PERCENT, Path, Run, SECOND, bits, chain, find, link, probe, simulation};
use sawtooth_net::Simulation;
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

/// All rows, taken at every pause, as the bits of each table's columns.
fn taken_in_pauses(scenario: &Value, max_events: u64) -> Vec<(&'static str, &'static str, Vec<u64>)> {
    let mut simulation = simulation(scenario);
    let mut all: Vec<(&'static str, &'static str, Vec<u64>)> = Vec::new();
    loop {
        let end = simulation.advance(Time::NEVER, max_events);
        let rows = bits(&simulation.take());
        if all.is_empty() {
            all = rows;
        } else {
            all.iter_mut().zip(rows).for_each(|(column, more)| column.2.extend(more.2));
        }
        if end {
            return all;
        }
    }
}

/// Several cells and links that packets only pass through, short connections at both ends and probes.
fn cells() -> Value {
    let mut scenario = chain("cubic", 10_000_000, 40 * MS, PERCENT / 2, 1_500 * MS);
    let mut short = scenario["flows"][0].clone();
    (short["count"], short["lifetime_ns"]) = (json!(3), json!([2 * MS, 9 * MS]));
    let mut back = short.clone();
    (back["forward"], back["backward"]) = (short["backward"].clone(), short["forward"].clone());
    scenario["flows"] = json!([scenario["flows"][0], short, back]);
    scenario["probes"] = json!([{"name": "ping", "start_ns": 0, "interval_ns": 3 * MS, "count": 300,
        "forward": [0, 1, 2, 3], "backward": [4, 5, 6, 7]}]);
    scenario
}

/// 50 Mbit/s over a link on which packets go together every 2 ms.
fn together() -> Value {
    let mut scenario = Path { rate_bps: 50_000_000, count: 2, ..Path::default() }.json();
    scenario["links"][1]["aggregation_ns"] = json!(2 * MS);
    scenario
}

#[test]
fn event_limit_pauses_without_side_effects() {
    for scenario in [mixed(7), cells(), together()] {
        let whole = Run::of(&scenario);
        for max_events in [1, 7, 1_000, 54_321] {
            assert!(taken_in_pauses(&scenario, max_events) == bits(&whole.tables), "{max_events} events at a time");
        }
    }
}

#[test]
fn a_pause_comes_within_one_event_of_the_limit() {
    // One cell and one interval: nothing else would end what is taken at a time.
    let mut scenario = Path { count: 40, rtt_ns: 0, duration_ns: SECOND, ..Path::default() }.json();
    scenario["interval_ns"] = json!(SECOND);
    for scenario in [scenario, cells()] {
        let mut simulation = simulation(&scenario);
        loop {
            let before = simulation.events();
            let end = simulation.advance(Time::NEVER, 100);
            let taken = simulation.events() - before;
            assert!(taken <= 101, "{taken} events");
            if end {
                break;
            }
            assert!(taken >= 50, "{taken} events");
        }
        assert!(simulation.events() > 10_000);
    }
}

#[test]
fn samples_of_an_idle_network_count_towards_the_limit() {
    let mut scenario = Path { duration_ns: 3_600 * SECOND, ..Path::default() }.json();
    (scenario["interval_ns"], scenario["flows"][0]["start_ns"]) = (json!(MS), json!(3_599 * SECOND));
    let mut simulation = simulation(&scenario);
    assert!(!simulation.advance(Time::NEVER, 1_000));
    assert_eq!(simulation.events(), 0);
    assert!(simulation.now() < Time::from_nanos(2 * SECOND), "{}", simulation.now());
}

#[test]
#[should_panic(expected = "time does not advance at 0.000000000 s")]
fn endless_events_at_one_instant_are_an_error() {
    // The parser would refuse it. One segment at a time: what comes together is read a moment later.
    let mut scenario = Path::default().json();
    scenario["hosts"][2]["receive_buffer"] = json!(4_096);
    (scenario["transmitters"], scenario["links"]) =
        (json!([]), json!([link(0, 1, None, 0, 0), link(1, 2, None, 0, 0), link(2, 0, None, 0, 0)]));
    let mut simulation = Simulation::new(serde_json::from_value(scenario).expect("it has the form of a scenario"));
    simulation.advance(Time::NEVER, u64::MAX);
}

#[test]
fn batched_rows_equal_rows_taken_at_once() {
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
fn link_losses_are_independent_of_other_flows() {
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
fn advance_after_the_end_is_a_no_op() {
    let mut run = Run::of(&mixed(7));
    let delivered = run.simulation.delivered_packets();
    assert!(run.simulation.advance(Time::NEVER, u64::MAX));
    assert_eq!(run.simulation.delivered_packets(), delivered);
    assert!(bits(&run.simulation.take()).iter().all(|(_, _, cells)| cells.is_empty()), "rows were reported twice");
}

#[test]
fn memory_does_not_grow_with_simulated_time() {
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
