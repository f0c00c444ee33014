//! A watched run reports its events, agrees with the counters, and has the same results.

use crate::common::{LONG, MS, PERCENT, Path, Run, bits};
use sawtooth_net::scenario::Scenario;
use sawtooth_net::{Fate, Simulation, event_names};
use sawtooth_units::Time;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const DATA: i64 = 0;

fn begun(scenario: &Value) -> Simulation {
    Simulation::watched(Scenario::parse(&scenario.to_string()).expect("the scenario is valid"))
}

fn watched(scenario: &Value) -> Run {
    let mut simulation = begun(scenario);
    while !simulation.advance(Time::NEVER, u64::MAX) {}
    let tables = simulation.take();
    Run { simulation, tables }
}

/// The rows of events with that name: place in the table.
fn rows(run: &Run, name: &str) -> Vec<usize> {
    let number = event_names().position(|one| one == name).expect("there is such an event");
    let events = run.integers("events", "event");
    (0..events.len()).filter(|&row| usize::try_from(events[row]) == Ok(number)).collect()
}

fn segments(run: &Run, name: &str) -> u64 {
    let all = run.integers("events", "segments");
    rows(run, name).into_iter().map(|row| all[row].cast_unsigned()).sum()
}

fn lossy(cc: &str) -> Value {
    let mut scenario = Path { count: 1, loss_ppb: PERCENT, ..LONG }.json();
    scenario["flows"][0]["cc"] = json!(cc);
    scenario
}

#[test]
fn watching_changes_nothing() {
    for cc in ["cubic", "bbr", "bbr3", "reno"] {
        let (plain, watched) = (Run::of(&lossy(cc)), watched(&lossy(cc)));
        let own = ["events", "packets", "hops"];
        let others = bits(&watched.tables).into_iter().filter(|(table, ..)| !own.contains(table)).collect::<Vec<_>>();
        assert_eq!(others, bits(&plain.tables), "{cc}");
        assert_eq!(watched.simulation.totals(), plain.simulation.totals());
        assert!(plain.tables.iter().all(|(table, _)| !own.contains(table)));
    }
}

#[test]
fn events_match_counters() {
    for cc in ["cubic", "bbr", "bbr3", "reno"] {
        let run = watched(&lossy(cc));
        assert_eq!(segments(&run, "data-lost"), run.sum("links", "lost"), "{cc}");
        assert_eq!(segments(&run, "data-dropped"), run.sum("queues", "drops"), "{cc}");
        assert_eq!(rows(&run, "timeout").len() as u64, run.sum("intervals", "timeouts"), "{cc}");
        assert_eq!(rows(&run, "tail-probe").len() as u64, run.sum("intervals", "tail_probes"), "{cc}");
        assert!(segments(&run, "lost-by-sack") > 20, "{cc}");
        assert_eq!(rows(&run, "start").len(), 1);
    }
}

#[test]
fn recovery_event_has_cubic_ssthresh_and_none_for_bbr() {
    let run = watched(&lossy("cubic"));
    let [before, threshold] = ["cwnd_before_segments", "ssthresh_segments"].map(|name| run.integers("events", name));
    let cut = rows(&run, "recovery");
    assert!(cut.len() > 10);
    for row in cut {
        assert_eq!(threshold[row], (before[row] * 717 / 1024).max(2));
    }
    let run = watched(&lossy("bbr"));
    let threshold = run.integers("events", "ssthresh_segments");
    let kept = rows(&run, "recovery");
    assert!(kept.len() > 10);
    let thresholds: BTreeSet<_> = kept.into_iter().map(|row| threshold[row]).collect();
    assert!(thresholds.len() <= 2, "none before startup is over, and one from then on");
    assert!(!rows(&run, "bbr-up").is_empty() && rows(&run, "hystart").is_empty());
}

#[test]
fn recorded_hops_are_the_packet_path() {
    let mut simulation = begun(&lossy("cubic"));
    simulation.advance(Time::from_nanos(500 * MS), u64::MAX);
    simulation.take();
    simulation.record(true);
    simulation.advance(Time::from_nanos(900 * MS), u64::MAX);
    let tables = simulation.take();
    let run = Run { simulation, tables };
    let hosts = {
        let mut ways: BTreeMap<i64, Vec<(f64, i64, i64)>> = BTreeMap::new();
        let [packet, host, fate] = ["packet", "host", "fate"].map(|name| run.integers("hops", name));
        for (row, &t_s) in run.floats("hops", "t_s").iter().enumerate() {
            ways.entry(packet[row]).or_default().push((t_s, host[row], fate[row]));
        }
        ways
    };
    let sent_s = run.floats("packets", "t_s");
    let [packet, kind, from] = ["packet", "kind", "host"].map(|name| run.integers("packets", name));
    assert!(packet.len() > 100 && packet.is_sorted());
    let mut lost = 0;
    for (row, number) in packet.iter().enumerate() {
        let Some(way) = hosts.get(number) else { continue };
        let is_data = kind[row] == DATA;
        let mut host = from[row];
        let mut time = sent_s[row];
        for &(t_s, at, fate) in way {
            assert!(t_s >= time);
            time = t_s;
            if fate == Fate::Arrived as i64 {
                assert_eq!(at, if is_data { host + 1 } else { 0 }, "each hop leads to the next host");
                host = at;
            } else {
                lost += 1;
                assert_eq!(at, host, "it ends where it was");
            }
        }
        assert!(way.iter().rev().skip(1).all(|&(_, _, fate)| fate == Fate::Arrived as i64), "nothing follows the end");
    }
    assert!(lost > 0);
}

#[test]
fn packets_in_transit_at_recording_start_are_skipped() {
    let mut simulation = begun(&lossy("cubic"));
    simulation.advance(Time::from_nanos(500 * MS), u64::MAX);
    simulation.record(true);
    simulation.advance(Time::from_nanos(900 * MS), u64::MAX);
    simulation.record(false);
    simulation.take();
    simulation.advance(Time::from_nanos(1_000 * MS), u64::MAX);
    let tables = simulation.take();
    let run = Run { simulation, tables };
    assert!(run.integers("hops", "packet").is_empty() && run.integers("packets", "packet").is_empty());
}
