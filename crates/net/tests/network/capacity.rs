//! Rates, queues and delays are what the scenario says.

use crate::common::{FRAME, GIGABIT, MS, MSS, PERCENT, Path, Run, SECOND, chain, probe};
use sawtooth_tcp::cc::Algorithm;
use serde_json::{Value, json};

fn probed(path: Path, flows: bool) -> Value {
    let mut scenario = path.json();
    if !flows {
        scenario["flows"] = json!([]);
    }
    scenario["probes"] = json!([probe(MS, 1_500)]);
    scenario
}

#[test]
fn a_clean_gigabit_path_carries_956_megabits_of_payload() {
    let path = Path { rate_bps: GIGABIT, rtt_ns: MS, queue_packets: 1_000, duration_ns: 3 * SECOND, ..Path::default() };
    for cc in ["reno", "cubic"] {
        let megabits = Path { cc, ..path }.run().goodput_bps(1.0) / 1e6;
        assert!((956.0..956.5).contains(&megabits), "{cc}: {megabits} Mbit/s");
    }
    // BBR drains the queue and paces 1% below its estimate.
    let megabits = Path { cc: "bbr", ..path }.run().goodput_bps(1.0) / 1e6;
    assert!((930.0..956.5).contains(&megabits), "bbr: {megabits} Mbit/s");
}

#[test]
fn a_shared_card_costs_the_acknowledgements_share() {
    // One acknowledgement of 66 bytes for two frames: 2 × 1448 of 2 × 1514 + 66 bytes.
    let expected = 1_000.0 * (2 * MSS) as f64 / (2 * FRAME + 66) as f64;
    let run = Run::of(&chain("cubic", GIGABIT, 440_000, 0, 3 * SECOND));
    let megabits = run.goodput_bps(1.0) / 1e6;
    assert!((megabits - expected).abs() < 0.005 * expected, "{megabits} Mbit/s instead of {expected}");
}

#[test]
fn goodput_never_exceeds_the_line_rate() {
    for cc in Algorithm::names() {
        let run = Path { cc, count: 5, ..Path::default() }.run();
        let mut per_interval = std::collections::BTreeMap::new();
        for (t_s, bytes) in run.floats("queues", "t_s").iter().zip(run.integers("queues", "sent_bytes")) {
            per_interval.insert((t_s * 1e3) as u64, bytes as f64 * 8.0 / 0.1);
        }
        assert_eq!(per_interval.len(), 20);
        let most = 100e6 * MSS as f64 / FRAME as f64;
        assert!(run.goodput_bps(0.0) <= most, "{cc}");
        // Accepted in an interval is at most what the line carries and what the queue holds.
        let queue = (200 + 1) as f64 * FRAME as f64 * 8.0 / 0.1;
        assert!(per_interval.values().all(|&bps| bps <= 100e6 + queue), "{cc}");
    }
}

#[test]
fn without_loss_no_interval_exceeds_the_line_rate() {
    let run = Path { queue_packets: 100_000, ..Path::default() }.run();
    let most = 100e6 * MSS as f64 / FRAME as f64 + MSS as f64 * 8.0 / 0.1;
    assert!(run.floats("intervals", "goodput_bps").iter().all(|&bps| bps <= most));
    assert_eq!(run.sum("intervals", "retransmits"), 0);
}

#[test]
fn a_queue_never_holds_more_packets_than_its_limit() {
    for limit in [1, 10, 50] {
        let path = Path { queue_packets: limit, count: 4, ..Path::default() };
        let run = Run::of(&probed(path, true));
        let held = run.integers("queues", "packets");
        assert!(held.iter().all(|&packets| packets <= limit as i64), "{held:?}");
        assert!(run.floats("queues", "mean_packets").iter().all(|&mean| mean <= limit as f64));
        assert!(run.sum("queues", "drops") > 0);
        // A probe waits for at most the limit and the frame on the wire.
        let longest = run.floats("probes", "rtt_s").into_iter().fold(0.0, f64::max);
        let wait = (limit + 1) as f64 * FRAME as f64 * 8.0 / 100e6;
        assert!(longest <= 0.020 + wait + 98.0 * 8.0 / 100e6 + 1e-9, "{longest} s behind {limit} packets");
    }
}

#[test]
fn a_queue_in_bytes_never_holds_more_bytes() {
    let mut scenario = Path { count: 16, ..Path::default() }.json();
    (scenario["transmitters"][0]["queue_packets"], scenario["transmitters"][0]["queue_bytes"]) =
        (json!(null), json!(30_000));
    let run = Run::of(&scenario);
    let held = run.integers("queues", "bytes");
    assert!(held.iter().all(|&bytes| bytes <= 30_000), "{held:?}");
    assert!(held.iter().any(|&bytes| bytes > 20_000), "{held:?}");
    assert!(run.sum("queues", "drops") > 0);
}

#[test]
fn a_queue_without_a_limit_drops_nothing() {
    let mut scenario = Path::default().json();
    scenario["transmitters"][0]["queue_packets"] = json!(null);
    assert_eq!(Run::of(&scenario).sum("queues", "drops"), 0);
}

#[test]
fn probes_of_an_idle_path_measure_its_round_trip_time() {
    let run = Run::of(&probed(Path::default(), false));
    let rtts = run.floats("probes", "rtt_s");
    assert_eq!(rtts.len(), 1_500);
    // 20 ms, and 98 bytes at 100 Mbit/s once.
    assert!(rtts.iter().all(|rtt| (rtt - 0.020_007_840).abs() < 2e-9), "{}", rtts[0]);
}

#[test]
fn probes_of_a_busy_path_wait_in_its_queue() {
    let run = Run::of(&probed(Path { queue_packets: 100, count: 5, ..Path::default() }, true));
    let rtts = run.floats("probes", "rtt_s");
    let (least, most) = rtts.iter().fold((f64::MAX, 0.0), |(low, high), &rtt| (rtt.min(low), rtt.max(high)));
    assert!(least >= 0.020_007);
    assert!(most > 0.028, "a full queue adds 12 ms: {most}");
}

#[test]
fn lost_probes_are_reported_as_missing() {
    let run = Run::of(&probed(Path { loss_ppb: 10 * PERCENT, ..Path::default() }, false));
    let rtts = run.floats("probes", "rtt_s");
    let missing = rtts.iter().filter(|rtt| rtt.is_nan()).count();
    assert_eq!(rtts.len(), 1_500);
    assert!((104..=196).contains(&missing), "{missing} of 1,500 at 10%");
    assert_eq!(missing as u64, run.sum("links", "lost"));
}

#[test]
fn the_sender_s_minimum_round_trip_time_is_the_path_s() {
    let run = Path::default().run();
    let least = run.floats("tcp_info", "min_rtt_s").into_iter().fold(f64::MAX, f64::min);
    // The SYN's: 74 bytes at 100 Mbit/s.
    assert!((0.020_005..0.020_010).contains(&least), "{least} s");
}
