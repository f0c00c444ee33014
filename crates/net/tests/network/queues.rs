//! Queues that scenarios name, by the clauses of their documents.

use crate::common::{LONG, MS, PERCENT, Path, Run, SECOND, bits, flow, host, link, probe, simulation};
use sawtooth_net::scenario::Scenario;
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

fn fq_codel(flows: u32) -> Value {
    json!({"fq_codel": {"target_ns": 5 * MS, "interval_ns": 100 * MS, "flows": flows}})
}

/// Its average may be a tenth of a queue of a second.
fn red(adaptive: bool) -> Value {
    json!({"red": {"min_bytes": 20_000, "max_bytes": 60_000, "weight_log": 7, "probability_ppb": 2 * PERCENT,
        "adaptive": adaptive}})
}

fn pie() -> Value {
    json!({"pie": {"target_ns": 15 * MS, "tupdate_ns": 15 * MS, "alpha": 2, "beta": 20, "bytemode": false}})
}

fn fq_pie() -> Value {
    json!({"fq_pie": {"target_ns": 15 * MS, "tupdate_ns": 15 * MS, "alpha": 2, "beta": 20, "bytemode": false,
        "flows": 1024}})
}

fn fq() -> Value {
    json!({"fq": {"flow_limit": 100, "orphan_mask": 1023, "refill_delay_ns": 40 * MS}})
}

fn sfq() -> Value {
    json!({"sfq": {"perturb_ns": 2 * SECOND, "flows": 128, "divisor": 1024, "depth": 127, "headdrop": false}})
}

fn dualpi2() -> Value {
    json!({"dualpi2": {"target_ns": 15 * MS, "tupdate_ns": 16 * MS, "alpha_256": 41, "beta_256": 819, "coupling_factor": 2,
        "step_thresh_ns": MS, "min_qlen_step": 0, "classic_protection": 10, "drop_on_overload": true,
        "drop_enqueue": false, "any_ect": false}})
}

fn cake(bandwidth_bps: Option<u64>) -> Value {
    json!({"cake": {"bandwidth_bps": bandwidth_bps, "interval_ns": 100 * MS, "target_ns": 5 * MS,
        "isolation": "triple-isolate", "memory_bytes": 15 << 20}})
}

fn all() -> Vec<Value> {
    let mut all = limited();
    all.extend([cake(None), cake(Some(19_000_000)), cake(Some(30_000_000))]);
    all
}

/// Those with a limit in packets.
fn limited() -> Vec<Value> {
    vec![json!({"fifo": {}}), codel(), fq_codel(1024), red(false), red(true), pie(), fq_pie(), fq(), sfq(), dualpi2()]
}

/// Those with one queue for all.
fn of_one_queue() -> Vec<Value> {
    vec![json!({"fifo": {}}), codel(), red(false), red(true), pie(), dualpi2()]
}

/// The median of a column, but for its first rows.
fn median(run: &Run, table: &str, column: &str) -> f64 {
    let mut values: Vec<f64> = run.floats(table, column).iter().copied().filter(|value| !value.is_nan()).collect();
    values.drain(..values.len() / 2);
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

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
fn codel_spares_queue_that_empties_within_interval() {
    // 64 kB at 20 Mbit/s are gone after 26 ms: longer than the target, shorter than the interval.
    let mut scenario = path(&codel(), Path { count: 1, ..LONG });
    (scenario["flows"][0]["bytes"], scenario["hosts"][0]["initial_window"]) = (json!(64_000), json!(50));
    let run = Run::of(&scenario);
    assert_eq!(run.sum("queues", "drops"), 0);
    assert!(run.floats("queues", "delay_p99_s")[0] > 0.015);
}

#[test]
fn recorded_queue_delays_match_probes() {
    for kind in of_one_queue() {
        let run = Run::of(&path(&kind, LONG));
        let probed = median(&run, "probes", "rtt_s") - 0.04;
        let reported = median(&run, "queues", "delay_p50_s");
        assert!((probed - reported).abs() < 0.1 * reported + 0.001, "{kind}: {probed} {reported}");
    }
}

#[test]
fn mean_queue_includes_dropped_packets() {
    for kind in [codel(), cake(None)] {
        let run = Run::of(&path(&kind, Path { count: 20, rate_bps: 10_000_000, rtt_ns: 10 * MS, ..LONG }));
        let seen = run.integers("queues", "packets");
        let seen = seen.iter().sum::<i64>() as f64 / seen.len() as f64;
        let means = run.floats("queues", "mean_packets");
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        assert!((mean - seen).abs() < 0.1 * seen, "{kind}: {mean} {seen}");
    }
}

#[test]
fn a_queue_is_never_longer_than_its_limit() {
    for kind in limited() {
        let limited = Path { queue_packets: 20, ..LONG };
        let run = Run::of(&path(&kind, limited));
        // Of fq's the one that leaves next does not count, nor do the eight that came while no flow waited.
        let limit = if kind.get("fq").is_some() { 29 } else { 20 };
        assert!(run.integers("queues", "packets").iter().all(|&packets| packets <= limit), "{kind}");
        assert!(run.sum("queues", "drops") > 0, "{kind}");
    }
}

#[test]
fn pausing_changes_no_table() {
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
fn queue_conserves_packets() {
    for kind in all() {
        let run = Run::of(&path(&kind, LONG));
        let out = run.sum("queues", "sent_packets") + run.sum("queues", "drops");
        let waiting = *run.integers("queues", "packets").last().unwrap() as u64;
        // Data, probes, and of each connection two packets of the handshake.
        assert_eq!(out + waiting, run.sum("flows", "segments_out") + 2_000 + 4, "{kind}");
    }
}

#[test]
fn red_keeps_the_queue_between_its_thresholds_and_adapts_to_halfway() {
    let many = Path { count: 20, ..LONG };
    let bytes = |adaptive| {
        let run = Run::of(&path(&red(adaptive), many));
        let rows = run.floats("queues", "mean_packets");
        assert!(run.sum("queues", "early_drops") > 100);
        rows[rows.len() / 2..].iter().sum::<f64>() / (rows.len() / 2) as f64 * 1514.0
    };
    let [fixed, adapted] = [false, true].map(bytes);
    // At 2% twenty flows keep the average at the upper threshold; adapting, it is in the middle fifths.
    assert!(fixed > 48_000.0, "{fixed}");
    assert!((30_000.0..48_000.0).contains(&adapted), "{adapted}");
}

#[test]
fn pie_holds_target_delay_and_spares_idle_arrivals() {
    for count in [2, 20] {
        let run = Run::of(&path(&pie(), Path { count, ..LONG }));
        let delay = median(&run, "queues", "delay_p50_s");
        assert!((0.008..0.025).contains(&delay), "{count}: {delay}");
        // At first the queue may fill.
        let [drops, early] = ["drops", "early_drops"].map(|column| run.integers("queues", column)[10..].to_vec());
        assert!(drops == early && early.iter().sum::<i64>() > 10);
    }
    // Shorter than 150 ms at 20 Mbit/s.
    let mut scenario = path(&pie(), Path { count: 1, ..LONG });
    (scenario["flows"][0]["bytes"], scenario["hosts"][0]["initial_window"]) = (json!(200_000), json!(150));
    assert_eq!(Run::of(&scenario).sum("queues", "drops"), 0);
}

/// Bytes of one flow, and of four of another congestion control, and the probes' median delay.
fn beside(kind: &Value) -> ([f64; 2], f64) {
    let mut scenario = path(kind, Path { cc: "cubic", count: 1, ..LONG });
    let mut other = scenario["flows"][0].clone();
    (other["cc"], other["name"], other["count"]) = (json!("bbr"), json!("other"), json!(4));
    scenario["flows"].as_array_mut().unwrap().push(other);
    let run = Run::of(&scenario);
    let (flows, bytes) = (run.integers("flows", "flow"), run.integers("flows", "delivered_bytes"));
    let of = |flow| flows.iter().zip(&bytes).filter(|row| *row.0 == flow).map(|row| *row.1 as f64).sum::<f64>();
    ([of(0), of(1)], median(&run, "probes", "rtt_s") - 0.04)
}

#[test]
fn fair_queues_share_equally_and_spare_sparse_flows() {
    // In sfq, a new flow waits for one turn of each other flow: five frames, 3 ms.
    let kinds = [fq_codel(1024), fq_pie(), cake(None), cake(Some(19_000_000)), fq()].map(|kind| (kind, 0.002));
    for (kind, most) in kinds.into_iter().chain([(sfq(), 0.004)]) {
        let ([alone, four], probes) = beside(&kind);
        assert!((0.85..1.15).contains(&(alone * 4.0 / four)), "{kind}: {alone} {four}");
        assert!(probes < most, "{kind}: {probes}");
    }
    let ([alone, four], _) = beside(&json!({"fifo": {}}));
    assert!(!(0.85..1.15).contains(&(alone * 4.0 / four)), "{alone} {four}");
}

#[test]
fn fq_codel_with_one_queue_is_codel() {
    // But for the flows, of which CoDel tells none.
    let [one, plain] = [fq_codel(1), codel()].map(|kind| {
        let mut cells = bits(&Run::of(&path(&kind, LONG)).tables);
        cells.retain(|(_, column, _)| !["new_flow_count", "new_flows", "old_flows"].contains(column));
        cells
    });
    assert_eq!(one, plain);
}

#[test]
fn cake_shapes_to_its_bandwidth() {
    for (bandwidth, expected) in
        [(None, 20e6), (Some(19_000_000), 19e6), (Some(2_000_000), 2e6), (Some(30_000_000), 20e6)]
    {
        let run = Run::of(&path(&cake(bandwidth), Path { count: 20, ..LONG }));
        let bps = run.sum("queues", "sent_bytes") as f64 * 8.0 / 20.0;
        assert!((0.98 * expected..=1.001 * expected).contains(&bps), "{bandwidth:?}: {bps}");
    }
}

#[test]
fn cake_target_grows_for_slow_shaper() {
    let delay =
        |bandwidth| median(&Run::of(&path(&cake(bandwidth), Path { count: 8, ..LONG })), "queues", "delay_p50_s");
    assert!((0.002..0.012).contains(&delay(None)), "{}", delay(None));
    // Nothing is dropped that waited less than four frames' time, 97 ms.
    assert!((0.08..0.2).contains(&delay(Some(500_000))), "{}", delay(Some(500_000)));
}

/// Bytes of one flow between hosts, and of four between others, through one queue.
fn of_hosts(isolation: &str) -> [f64; 2] {
    let mut kind = cake(Some(19_000_000));
    kind["cake"]["isolation"] = json!(isolation);
    let mut scenario = Path { count: 1, ..LONG }.json();
    scenario["transmitters"][0]["discipline"] = kind;
    scenario["hosts"] = json!(["a", "b", "router", "end", "other"].map(host));
    // a and b send over the router's link to `end`, which passes on what is for `other`.
    let ends = [(0, 2), (1, 2), (2, 3), (3, 4), (3, 0), (4, 1)];
    let (slow, half) = (|from| (from == 2).then_some(0), 20 * MS);
    scenario["links"] = ends.map(|(from, to)| link(from, to, slow(from), if from > 2 { half } else { 0 }, 0)).into();
    scenario["flows"] = json!([flow("cubic", 1, &[0, 2], &[4]), flow("reno", 4, &[1, 2, 3], &[5])]);
    scenario["probes"] = json!([]);
    let run = Run::of(&scenario);
    let (flows, bytes) = (run.integers("flows", "flow"), run.integers("flows", "delivered_bytes"));
    [0, 1].map(|of| flows.iter().zip(&bytes).filter(|row| *row.0 == of).map(|row| *row.1 as f64).sum())
}

#[test]
fn cake_is_fair_per_host_or_per_flow() {
    for isolation in ["triple-isolate", "dual-srchost", "dual-dsthost", "srchost", "dsthost", "hosts"] {
        let [one, four] = of_hosts(isolation);
        assert!((0.8..1.25).contains(&(one / four)), "{isolation}: {one} {four}");
    }
    let [one, four] = of_hosts("flows");
    assert!((0.2..0.35).contains(&(one / four)), "flows: {one} {four}");
}

#[test]
fn cake_memory_limit_drops_from_longest_queue() {
    let mut kind = cake(None);
    // Twenty full frames, with what the kernel needs beside them.
    kind["cake"]["memory_bytes"] = json!(20 * 2_304);
    kind["cake"]["interval_ns"] = json!(10 * SECOND);
    kind["cake"]["target_ns"] = json!(SECOND);
    let run = Run::of(&path(&kind, LONG));
    assert!(run.integers("queues", "packets").iter().all(|&packets| packets <= 24));
    assert!(run.sum("queues", "drops") > run.sum("queues", "early_drops"));
    // Probes wait alone in theirs; the last four are on their way.
    assert_eq!(run.floats("probes", "rtt_s").iter().filter(|rtt| rtt.is_nan()).count(), 4);
}

#[test]
fn invalid_queue_fields_are_refused_by_name() {
    let mut scenario = path(&codel(), LONG);
    scenario["transmitters"][0]["discipline"]["codel"]["target_ns"] = json!(0);
    let refused = |scenario: &Value| Scenario::parse(&scenario.to_string()).unwrap_err();
    let message = refused(&scenario);
    assert!(message.starts_with("transmitters[0].discipline: target_ns = 0"), "{message}");
    for (kind, field, value) in [
        (fq_codel(0), "flows", json!(0)),
        (red(false), "min_bytes", json!(60_000)),
        (red(false), "weight_log", json!(0)),
        (red(false), "probability_ppb", json!(0)),
        (fq_pie(), "quantum_bytes", json!(0)),
        (cake(None), "target_ns", json!(0)),
        (cake(None), "interval_ns", json!(MS)),
        (cake(None), "bandwidth_bps", json!(1)),
        (cake(None), "memory_bytes", json!(0)),
        (fq(), "flow_limit", json!(0)),
        (sfq(), "depth", json!(128)),
        (dualpi2(), "tupdate_ns", json!(1)),
        (dualpi2(), "coupling_factor", json!(0)),
        (dualpi2(), "classic_protection", json!(101)),
        (dualpi2(), "step_thresh_packets", json!(1)),
    ] {
        let mut scenario = path(&kind, LONG);
        let name = kind.as_object().unwrap().keys().next().unwrap();
        scenario["transmitters"][0]["discipline"][name][field] = value;
        let message = refused(&scenario);
        assert!(message.contains(field), "{message}");
    }
}

#[test]
fn fair_queues_report_new_and_old_flows() {
    let run = Run::of(&path(&fq_codel(1024), LONG));
    let [begun, new, old] = ["new_flow_count", "new_flows", "old_flows"].map(|name| run.floats("queues", name));
    assert!(begun.iter().sum::<f64>() >= 2.0, "{begun:?}");
    let most = new.iter().zip(&old).map(|(new, old)| new + old).fold(0.0, f64::max);
    assert!((1.0..=3.0).contains(&most), "{most}");
    let fifo = Run::of(&path(&json!({"fifo": {}}), LONG));
    assert!(fifo.floats("queues", "new_flows").iter().all(|flows| flows.is_nan()));
    assert_eq!(fifo.floats("queues", "overlimits").iter().sum::<f64>(), 0.0);
}

#[test]
fn overlimits_count_red_choices_and_early_dequeues() {
    let chosen = Run::of(&path(&red(false), LONG));
    let overlimits: f64 = chosen.floats("queues", "overlimits").iter().sum();
    assert_eq!(overlimits, chosen.sum("queues", "early_drops") as f64);
    let shaped = Run::of(&path(&cake(Some(10_000_000)), LONG));
    assert!(shaped.floats("queues", "overlimits").iter().sum::<f64>() > 1_000.0);
}

#[test]
fn token_bucket_overlimits_count_packets_without_tokens() {
    let tbf = json!({"tbf": {"rate_bps": 10_000_000, "burst_bytes": 20_000}});
    let mut scenario = path(&tbf, LONG);
    scenario["transmitters"][0]["rate_bps"] = json!(100_000_000);
    let run = Run::of(&scenario);
    let overlimits: f64 = run.floats("queues", "overlimits").iter().sum();
    let [sent, drops] = ["sent_packets", "drops"].map(|name| run.sum("queues", name) as f64);
    // The queue is never empty once it has filled: each packet asks when it comes, also in vain, and again when it is
    // the first.
    let waiting = run.integers("queues", "packets").last().copied().unwrap_or(0) as f64;
    let dequeues = 2.0 * sent + waiting + drops;
    assert!((0.9 * dequeues..=dequeues).contains(&overlimits), "{overlimits} {sent} {drops}");
}

#[test]
fn tail_drop_delays_match_holding_queue() {
    let mut plain = LONG.json();
    let silent = Run::of(&plain);
    plain["queue_delays"] = json!(true);
    let telling = Run::of(&plain);
    let names = ["delay_p50_s", "delay_p95_s", "delay_p99_s"];
    assert!(names.iter().all(|name| silent.floats("queues", name).iter().all(|delay| delay.is_nan())));
    assert_eq!(silent.integers("queues", "sent_bytes"), telling.integers("queues", "sent_bytes"));
    assert_eq!(silent.floats("intervals", "goodput_bps"), telling.floats("intervals", "goodput_bps"));
    let mean = telling.floats("queues", "delay_mean_s");
    let [median, high, highest] = names.map(|name| telling.floats("queues", name));
    for interval in 5..mean.len() {
        let (median, mean, high, highest) = (median[interval], mean[interval], high[interval], highest[interval]);
        assert!(median > 0.0 && median <= high && high <= highest, "{median} {high} {highest}");
        // Half of the packets wait no longer than the median, which is at most 1/32 off.
        assert!(
            mean <= (median / 2.0 + highest / 2.0) * 1.1 && mean >= median / 2.0 * 0.96,
            "{median} {mean} {highest}"
        );
    }
}
