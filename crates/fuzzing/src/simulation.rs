//! Runs a compiled scenario in the simulator for a limited number of events.

use sawtooth_net::Simulation;
use sawtooth_net::scenario::Scenario;
use sawtooth_net::tables::{Column, Table};
use sawtooth_units::Time;

/// Number of events simulated for each scenario.
const EVENTS: u64 = 3_000;
/// Number of events in each step.
const STEP: u64 = 150;
/// Maximum number of connections. The core allows more, but they would only need memory here.
const CONNECTIONS: usize = 500;

/// Runs in small steps, and then twice more to the same time with other pauses. The results must be equal.
pub fn check(json: &str) {
    let Ok(scenario) = Scenario::parse(json) else { return };
    if scenario.flows.iter().map(|flow| flow.count).sum::<usize>() > CONNECTIONS {
        return;
    }
    let end = Time::from_nanos(scenario.duration_ns);
    let mut first = Simulation::new(scenario.clone());
    let (mut calls, mut before) = (0, first.now());
    while calls * STEP < EVENTS && !first.advance(end, STEP) {
        calls += 1;
        assert!(first.events() <= calls * (STEP + 1), "{} events in {calls} calls", first.events());
        assert!(before <= first.now() && first.now() <= end, "time goes on");
        before = first.now();
        first.take();
    }
    let until = first.now();
    let (mut one, mut other) = (Simulation::new(scenario.clone()), Simulation::new(scenario));
    let mut rows = vec![one.take()];
    while !advance_to(&mut one, until, 97) {
        rows.push(one.take());
    }
    rows.push(one.take());
    while !advance_to(&mut other, until, 1 << 24) {}
    assert_eq!((one.now(), one.events(), one.in_transit()), (other.now(), other.events(), other.in_transit()));
    assert_eq!(one.delivered_packets(), other.delivered_packets());
    assert!(one.delivered_packets() <= one.totals().segments_out, "more arrived than was sent");
    let whole = [other.take()];
    for (table, column, cells) in columns(&whole) {
        let pieces = columns(&rows).into_iter().filter(|piece| (piece.0, piece.1) == (table, column));
        let joined: Vec<u64> = pieces.flat_map(|piece| piece.2).collect();
        assert!(joined == cells, "{table}.{column} depends on where the run paused");
    }
}

/// Runs up to `max_events` more events until `until`. Returns whether it got there.
fn advance_to(simulation: &mut Simulation, until: Time, max_events: u64) -> bool {
    let before = (simulation.events(), simulation.now());
    simulation.advance(until, max_events) || (simulation.events(), simulation.now()) == before
}

/// All cells of each column as bits, so that missing values (NaN) are equal.
fn columns(batches: &[Vec<Table>]) -> Vec<(&'static str, &'static str, Vec<u64>)> {
    let bits = |column: &Column| -> Vec<u64> {
        match column {
            Column::Float(values) => values.iter().map(|value| value.to_bits()).collect(),
            Column::Integer(values) => values.iter().map(|value| value.cast_unsigned()).collect(),
        }
    };
    let tables = batches.iter().flatten();
    tables.flat_map(|(table, columns)| columns.iter().map(|(name, column)| (*table, *name, bits(column)))).collect()
}
