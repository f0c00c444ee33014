//! Super-packets that a forwarding host queues as one.

use crate::common::{FRAME, MS, MSS, Path, Run, SECOND, host, link, transmitter};
use serde_json::{Value, json};

const QUEUE_BYTES: u64 = 60_000;

/// `sender → router` is unlimited; `router → receiver` has the rate and a queue in bytes.
fn forwarded(offload: bool, path: Path) -> Value {
    let mut scenario = path.json();
    let half = path.rtt_ns / 2;
    scenario["hosts"] = json!(["sender", "router", "receiver"].map(host));
    for host in [0, 1] {
        scenario["hosts"][host]["offload"] = json!(offload);
    }
    let mut queue = transmitter("bottleneck", path.rate_bps, path.queue_packets);
    (queue["queue_packets"], queue["queue_bytes"]) = (json!(null), json!(QUEUE_BYTES));
    scenario["transmitters"] = json!([queue]);
    scenario["links"] = json!([link(0, 1, None, 0, 0), link(1, 2, Some(0), half, 0), link(2, 0, None, half, 0)]);
    scenario
}

fn with(mut scenario: Value, discipline: Value) -> Value {
    scenario["transmitters"][0]["discipline"] = discipline;
    scenario
}

/// Retransmissions and drops.
fn lost(run: &Run) -> [u64; 2] {
    [run.sum("flows", "retransmits"), run.sum("queues", "drops")]
}

#[test]
fn a_queue_drops_a_super_packet_as_one_and_counts_the_segments_that_leave() {
    let path = Path { duration_ns: 60 * SECOND, ..Path::default() };
    let fq_codel = json!({"fq_codel": {"target_ns": 5 * MS, "interval_ns": 100 * MS, "flows": 1024}});
    for discipline in [json!("tail_drop"), json!({"fifo": {}}), fq_codel] {
        let run = |offload| {
            let mut scenario = with(forwarded(offload, path), discipline.clone());
            scenario["flows"][0]["bytes"] = json!(100_000 * MSS);
            Run::of(&scenario)
        };
        let (single, whole) = (run(false), run(true));
        let [[again, drops], [whole_again, whole_drops]] = [lost(&single), lost(&whole)];
        assert!(again <= drops, "{discipline}: {again} retransmissions for {drops} drops");
        assert!(whole_drops > 5 && whole_again > 3 * whole_drops, "{discipline}: {whole_again}, {whole_drops} drops");
        // Every segment that was not dropped left, and none stayed anywhere.
        let (sent, left) = (whole.sum("flows", "segments_out"), whole.sum("queues", "sent_packets"));
        assert_eq!(whole.integers("flows", "completed"), [1], "{discipline}");
        assert_eq!(whole.simulation.in_transit(), 0, "{discipline}");
        // With the handshake's two packets.
        assert!(sent + 2 >= left + whole_drops && sent + 2 <= left + 45 * whole_drops, "{discipline}: {sent}, {left}");
    }
}

#[test]
fn ordered_jitter_delays_super_packet_as_one() {
    let mut scenario = forwarded(true, Path { duration_ns: 60 * SECOND, ..Path::default() });
    scenario["flows"][0]["bytes"] = json!(100_000 * MSS);
    for link in [0, 1] {
        scenario["links"][link]["jitter"] = json!({"ns": 25_000, "ordered": true});
    }
    scenario["links"][0]["delay_ns"] = json!(25_000);
    let run = Run::of(&scenario);
    let [again, drops] = lost(&run);
    assert!(drops > 5 && again > 3 * drops, "{again} retransmissions for {drops} drops");
    assert_eq!((run.integers("flows", "completed"), run.simulation.in_transit()), (vec![1], 0));
}

#[test]
fn super_packet_takes_serialization_time_of_its_segments() {
    let path = Path { duration_ns: 20 * SECOND, ..Path::default() };
    let mut goodput = [false, true].map(|offload| {
        let mut scenario = forwarded(offload, path);
        scenario["transmitters"][0]["queue_bytes"] = json!(10_000_000);
        Run::of(&scenario).goodput_bps(5.0)
    });
    goodput.sort_by(f64::total_cmp);
    let wire = path.rate_bps as f64 * MSS as f64 / FRAME as f64;
    assert!(goodput[0] > 0.999 * wire && goodput[1] <= wire * 1.000_1, "{goodput:?} of {wire}");
}

#[test]
fn all_segments_of_marked_super_packet_are_marked() {
    let path = Path { duration_ns: 10 * SECOND, cc: "dctcp", ..Path::default() };
    let codel = json!({"codel": {"target_ns": 5 * MS, "interval_ns": 100 * MS, "ecn": true}});
    let mut scenario = with(forwarded(true, path), codel);
    scenario["transmitters"][0]["queue_bytes"] = json!(10_000_000);
    for host in 0..3 {
        scenario["hosts"][host]["ecn"] = json!(1);
    }
    let run = Run::of(&scenario);
    let marks = run.sum("queues", "marks");
    let ce_segments = run.integers("tcp_info", "delivered_ce_segments").into_iter().max();
    assert!(marks > 10 && ce_segments > Some(2 * marks as i64), "{marks} marks, {ce_segments:?} segments");
}

#[test]
fn cake_dualpi2_and_varying_links_split_super_packets() {
    let path = Path { duration_ns: 10 * SECOND, ..Path::default() };
    let tables = |scenario: &Value| crate::common::bits(&Run::of(scenario).tables);
    let without = |scenario: Value, host: usize| {
        let mut scenario = scenario;
        scenario["hosts"][host]["offload"] = json!(false);
        scenario
    };
    let mut paced = forwarded(true, path);
    paced["transmitters"][0]["pace"] = json!({"steps": [[0, 50_000_000], [SECOND, 100_000_000]]});
    let mut jittered = forwarded(true, path);
    jittered["links"][0]["delays"] = json!([[0, MS]]);
    let whole = forwarded(true, path);
    assert_ne!(tables(&whole), tables(&without(whole.clone(), 1)));
    assert_eq!(tables(&without(whole.clone(), 0)), tables(&without(without(whole, 0), 1)));
    let cake = json!({"cake": {"interval_ns": 100 * MS, "target_ns": 5 * MS, "isolation": "flows",
        "memory_bytes": 4_000_000}});
    let dualpi2 = json!({"dualpi2": {"target_ns": 15 * MS, "tupdate_ns": 16 * MS, "alpha_256": 41, "beta_256": 819,
        "coupling_factor": 2, "step_thresh_ns": MS, "min_qlen_step": 0, "classic_protection": 10,
        "drop_on_overload": true, "drop_enqueue": false, "any_ect": false}});
    let [cake, dualpi2] = [cake, dualpi2].map(|discipline| with(forwarded(true, path), discipline));
    for scenario in [cake, dualpi2, paced, jittered] {
        assert_eq!(tables(&scenario), tables(&without(scenario.clone(), 1)), "{scenario}");
    }
}
