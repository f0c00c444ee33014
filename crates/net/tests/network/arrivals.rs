//! Transfers that come by themselves: each is a connection with a row, and places are used again.

use crate::common::{MS, Path, Run, SECOND, bits};
use serde_json::{Value, json};

fn arriving(times: Value, sizes: Value, open: usize) -> Value {
    let mut scenario = Path { duration_ns: 5 * SECOND, ..Path::default() }.json();
    scenario["flows"][0]["arrivals"] = json!({"times": times, "sizes": sizes, "open": open});
    scenario
}

#[test]
fn each_transfer_has_a_row_with_its_number_its_time_and_all_its_bytes() {
    let run = Run::of(&arriving(
        json!({"at_ns": [0, 100 * MS, 100 * MS, SECOND]}),
        json!({"each": [1, 1_448, 50_000, 7]}),
        10,
    ));
    let mut rows: Vec<_> =
        run.integers("flows", "generation").into_iter().zip(run.floats("flows", "start_s")).collect();
    rows.sort_by_key(|&(number, _)| number);
    assert_eq!(rows, [(0, 0.0), (1, 0.1), (2, 0.1), (3, 1.0)]);
    assert_eq!(run.integers("flows", "completed"), [1; 4]);
    assert_eq!(run.integers("flows", "asked_bytes"), run.integers("flows", "delivered_bytes"));
    let goodput: f64 = run.floats("intervals", "goodput_bps").iter().sum();
    assert!((goodput / 80.0 - 51_456.0).abs() < 1e-3, "bytes that were read, by intervals of 0.1 s: {goodput}");
}

#[test]
fn a_transfer_takes_the_handshake_and_one_round_trip_more() {
    let run = Run::of(&arriving(json!({"at_ns": [0]}), json!({"fixed": 1_000}), 1));
    let took = run.floats("flows", "end_s")[0];
    assert!((0.040..0.0405).contains(&took), "two round trips of 20 ms: {took}");
}

#[test]
fn connection_slots_are_reused() {
    let every: Vec<u64> = (0..40).map(|number| number * 100 * MS).collect();
    let run = Run::of(&arriving(json!({"at_ns": every}), json!({"fixed": 1_000}), 10));
    assert_eq!(run.integers("flows", "connection"), [0; 40], "one has ended when the next one comes");
    let run = Run::of(&arriving(json!({"at_ns": vec![0; 40]}), json!({"fixed": 1_000}), 100));
    let mut places = run.integers("flows", "connection");
    places.sort_unstable();
    assert_eq!(places, (0..40).collect::<Vec<_>>());
}

#[test]
fn transfers_beyond_the_slots_wait_in_order() {
    let run = Run::of(&arriving(json!({"at_ns": vec![0; 6]}), json!({"fixed": 1_000}), 2));
    let starts = run.floats("flows", "start_s");
    assert_eq!(run.integers("flows", "connection").iter().max(), Some(&1));
    assert_eq!((starts.len(), starts[0], starts[1]), (6, 0.0, 0.0));
    assert!(starts.is_sorted() && starts[2] > 0.039 && starts[4] > 0.079, "{starts:?}");
}

#[test]
fn arrival_rate_matches_its_mean_until_flow_end() {
    let mut scenario = arriving(json!({"poisson_ns": 2 * MS}), json!({"fixed": 500}), 1_000);
    (scenario["flows"][0]["start_ns"], scenario["flows"][0]["duration_ns"]) = (json!(SECOND), json!(3 * SECOND));
    let run = Run::of(&scenario);
    let starts = run.floats("flows", "start_s");
    assert!((1_380..1_620).contains(&starts.len()), "{}: 1,500 and three deviations", starts.len());
    assert!(starts.iter().all(|&at| (1.0..4.0).contains(&at)));
    assert!(run.integers("flows", "completed").iter().all(|&done| done == 1));
}

#[test]
fn arrivals_depend_only_on_seed_and_flow() {
    let scenario = arriving(
        json!({"poisson_ns": 20 * MS}),
        json!({"lognormal": {"mean_bytes": 20_000, "sigma_ppb": 1_000_000_000}}),
        100,
    );
    let (run, again) = (Run::of(&scenario), Run::of(&scenario));
    assert_eq!(bits(&run.tables), bits(&again.tables));
    let drawn = |run: &Run| {
        let flows = run.integers("flows", "flow");
        let rows = run.integers("flows", "generation").into_iter().zip(run.integers("flows", "asked_bytes"));
        let mut rows: Vec<_> = rows.zip(flows).filter_map(|(row, flow)| (flow == 0).then_some(row)).collect();
        rows.sort_unstable();
        rows
    };
    let mut two = scenario.clone();
    let mut bulk = scenario["flows"][0].clone();
    bulk.as_object_mut().unwrap().remove("arrivals");
    two["flows"] = json!([scenario["flows"][0], bulk]);
    assert_eq!(drawn(&Run::of(&two)), drawn(&run));
    let mut other = scenario;
    other["seed"] = json!(2);
    assert_ne!(drawn(&Run::of(&other)), drawn(&run));
}
