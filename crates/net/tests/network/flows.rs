//! Flows begin, end and are replaced as the scenario says.

use crate::common::{MS, MSS, PERCENT, Path, Run, SECOND, chain};
use serde_json::{Value, json};

fn with_flow(path: Path, fields: &[(&str, Value)]) -> Run {
    let mut scenario = path.json();
    for (name, value) in fields {
        scenario["flows"][0][*name] = value.clone();
    }
    Run::of(&scenario)
}

#[test]
fn a_finite_flow_delivers_exactly_its_bytes() {
    for bytes in [1, MSS - 1, MSS, MSS + 1, 1_000_000, 5_000_001] {
        let path = Path { loss_ppb: PERCENT, duration_ns: 20 * SECOND, ..Path::default() };
        let run = with_flow(path, &[("bytes", json!(bytes))]);
        assert_eq!(run.integers("flows", "delivered_bytes"), [bytes as i64]);
        assert_eq!(run.integers("flows", "completed"), [1]);
        let bits: f64 = run.floats("intervals", "goodput_bps").iter().sum::<f64>() * 0.1;
        assert_eq!(bits.round() as u64, 8 * bytes);
        assert_eq!(run.simulation.in_transit(), 0);
    }
}

#[test]
fn a_short_flow_takes_a_handshake_and_a_round_trip_for_each_doubling() {
    // 10 + 20 segments: the handshake, two round trips, and less than a tick for the frames.
    let run = with_flow(Path::default(), &[("bytes", json!(30 * MSS))]);
    let (start_s, end_s) = (run.floats("flows", "start_s")[0], run.floats("flows", "end_s")[0]);
    assert!((end_s - start_s - 3.0 * 0.020).abs() < 0.004, "{} s", end_s - start_s);
}

#[test]
fn syn_ack_is_retransmitted_by_its_own_timer() {
    let mut scenario = Path::default().json();
    scenario["links"][2]["losses"] = json!([[0, 1_000_000_000], [500 * MS, 0]]);
    scenario["links"][1]["losses"] = json!([[500 * MS, 1_000_000_000], [1_500 * MS, 0]]);
    let run = Run::of(&scenario);
    let sent = run.integers("intervals", "segments_out");
    // The timer of a second goes by the wheel of ticks.
    assert_eq!((sent[..10].iter().sum::<i64>(), sent[10] > 0), (0, true), "{sent:?}");
}

/// A flow of `segments` segments over a link that loses everything for a time.
fn beginning(segments: u64, link: usize, lost_for: u64) -> Run {
    let mut scenario = Path { duration_ns: 6 * SECOND, ..Path::default() }.json();
    scenario["links"][link]["losses"] = json!([[0, 1_000_000_000], [lost_for, 0]]);
    scenario["flows"][0]["bytes"] = json!(segments * MSS);
    Run::of(&scenario)
}

#[test]
fn two_lost_syns_reduce_initial_window_to_one() {
    // Three segments are one round trip more than one only where they do not leave at once.
    let took = |link, lost_for| [1, 3].map(|segments| beginning(segments, link, lost_for).floats("flows", "end_s")[0]);
    let rounds = |[one, three]: [f64; 2]| ((three - one) / 0.020).round();
    assert_eq!([500 * MS, 1_500 * MS].map(|lost_for| rounds(took(1, lost_for))), [0.0, 1.0]);
    // The answer echoes the first SYN: none of them was lost.
    assert_eq!(rounds(took(2, 1_500 * MS)), 0.0);
}

#[test]
fn timestamp_echo_of_repeated_syn_gives_first_rtt() {
    // All data is lost: the first probe of it comes after two round trips, which count from the first SYN that came.
    let silence = |link| {
        let answered_s = beginning(1, link, 500 * MS).floats("flows", "end_s")[0] - 0.020;
        let mut scenario = Path { duration_ns: 6 * SECOND, ..Path::default() }.json();
        let from = ((answered_s - 0.010) * 1e9) as u64;
        let mut losses = [json!([]), json!([[0, 0], [from, 1_000_000_000]]), json!([])];
        losses[link] = json!([[0, 1_000_000_000], [500 * MS, 0]]);
        if link == 1 {
            losses[1] = json!([[0, 1_000_000_000], [500 * MS, 0], [from, 1_000_000_000]]);
        }
        for (link, losses) in losses.iter().enumerate().skip(1) {
            scenario["links"][link]["losses"] = losses.clone();
        }
        let probed = Run::of(&scenario).integers("intervals", "tail_probes");
        0.1 * probed.iter().position(|&probes| probes > 0).expect("it is probed") as f64 - answered_s
    };
    let (syn, answer) = (silence(1), silence(2));
    assert!((-0.1..0.1).contains(&syn) && (2.0..2.4).contains(&answer), "{syn} s, {answer} s");
}

#[test]
fn receiver_fin_is_retransmitted_until_acked() {
    // No acknowledgement of ten segments gets through, nor that of their probe; the receiver's FIN comes again before
    // the sender's timeout.
    let mut scenario = Path::default().json();
    scenario["links"][2]["losses"] = json!([[0, 0], [25 * MS, 1_000_000_000], [200 * MS, 0]]);
    scenario["flows"][0]["bytes"] = json!(10 * MSS);
    let run = Run::of(&scenario);
    assert_eq!((run.integers("flows", "tail_probes"), run.integers("flows", "timeouts")), (vec![1], vec![0]));
    let end_s = run.floats("flows", "end_s")[0];
    assert!((0.25..0.30).contains(&end_s), "{end_s} s");
}

#[test]
fn slow_card_limits_host_queue_and_splits_buffers() {
    // In slow start: two super-packets of 16 segments are allowed for, and then a third. With 832 bytes for each
    // segment that is 21 and 16; Linux has at most 37 of this flow.
    let run = Run::of(&chain("reno", 51_900_000, 110 * MS, 0, 2_200 * MS));
    let rows = run.integers("queues", "transmitter").into_iter().zip(run.integers("queues", "packets"));
    let most = rows.filter(|&(transmitter, _)| transmitter == 0).map(|(_, packets)| packets).max();
    assert!((34..=37).contains(&most.unwrap_or(0)), "{most:?}");
}

#[test]
fn every_connection_of_a_flow_is_reported_once() {
    let run = with_flow(Path { count: 7, ..Path::default() }, &[]);
    let mut connections = run.integers("flows", "connection");
    connections.sort_unstable();
    assert_eq!(connections, (0..7).collect::<Vec<_>>());
    assert_eq!(run.integers("flows", "completed"), [0; 7]);
    assert_eq!(run.floats("flows", "end_s"), [2.0; 7]);
}

#[test]
fn a_flow_starts_and_stops_on_time() {
    let run = with_flow(Path::default(), &[("start_ns", json!(500 * MS)), ("duration_ns", json!(SECOND))]);
    assert_eq!((run.floats("flows", "start_s"), run.floats("flows", "end_s")), (vec![0.5], vec![1.5]));
    let goodput = run.floats("intervals", "goodput_bps");
    assert!(goodput[..5].iter().all(|&bps| bps == 0.0));
    assert!(goodput[6..15].iter().all(|&bps| bps > 0.0));
    assert!(goodput[16..].iter().all(|&bps| bps == 0.0), "{goodput:?}");
}

#[test]
fn a_flow_after_the_end_of_the_run_never_starts() {
    let run = with_flow(Path::default(), &[("start_ns", json!(5 * SECOND))]);
    assert_eq!(run.simulation.delivered_packets(), 0);
    assert!(run.integers("flows", "flow").is_empty());
}

#[test]
fn replaced_flows_keep_their_count_alive() {
    let count = 6;
    let path = Path { count, duration_ns: 5 * SECOND, ..Path::default() };
    let run = with_flow(path, &[("lifetime_ns", json!([100 * MS, 400 * MS]))]);
    let (connection, generation) = (run.integers("flows", "connection"), run.integers("flows", "generation"));
    let (start_s, end_s) = (run.floats("flows", "start_s"), run.floats("flows", "end_s"));
    for slot in 0..count as i64 {
        let rows: Vec<usize> = (0..connection.len()).filter(|&row| connection[row] == slot).collect();
        assert!((12..=50).contains(&rows.len()), "{} lives in 5 s", rows.len());
        assert_eq!(start_s[rows[0]], 0.0);
        assert_eq!(end_s[rows[rows.len() - 1]], 5.0);
        for (life, &row) in rows.iter().enumerate() {
            assert_eq!(generation[row], life as i64);
            let lived_s = end_s[row] - start_s[row];
            assert!(lived_s <= 0.4 + 1e-9 && (lived_s >= 0.1 - 1e-9 || end_s[row] == 5.0), "{lived_s} s");
        }
        for pair in rows.windows(2) {
            assert_eq!(end_s[pair[0]], start_s[pair[1]], "the next one starts at once");
        }
    }
}

#[test]
fn a_replaced_flow_starts_over() {
    let path = Path { duration_ns: 5 * SECOND, ..Path::default() };
    let run = with_flow(path, &[("lifetime_ns", json!([400 * MS, 400 * MS]))]);
    let delivered = run.integers("flows", "delivered_bytes");
    // Without loss each life of the same length does the same.
    assert!(delivered.len() >= 12);
    let first = delivered[0] as f64;
    assert!(delivered[1..11].iter().all(|&bytes| (bytes as f64 - first).abs() < 0.2 * first), "{delivered:?}");
}

#[test]
fn a_finite_replaced_flow_begins_again_when_it_is_done() {
    let path = Path { duration_ns: 2 * SECOND, ..Path::default() };
    let run = with_flow(path, &[("bytes", json!(10 * MSS)), ("lifetime_ns", json!([SECOND, SECOND]))]);
    let completed = run.integers("flows", "completed");
    assert!(completed.len() > 20 && completed[..completed.len() - 1].iter().all(|&done| done == 1), "{completed:?}");
}

#[test]
fn equal_flows_share_a_bottleneck() {
    let path = Path { count: 4, duration_ns: 20 * SECOND, queue_packets: 100, ..Path::default() };
    let delivered = with_flow(path, &[]).integers("flows", "delivered_bytes");
    let (sum, squares) =
        delivered.iter().fold((0.0, 0.0), |(sum, squares), &b| (sum + b as f64, squares + (b as f64).powi(2)));
    // Jain's index: 1 is equal, 1/4 one that takes all.
    let fairness = sum * sum / (4.0 * squares);
    assert!(fairness > 0.8, "{fairness}: {delivered:?}");
}

#[test]
fn offload_loses_whole_super_packets() {
    let path = Path { loss_ppb: 0, duration_ns: 5 * SECOND, ..Path::default() };
    let lost_events = |offload: bool| {
        let mut scenario = path.json();
        scenario["links"][0]["loss_ppb"] = json!(PERCENT);
        scenario["hosts"][0]["offload"] = json!(offload);
        let run = Run::of(&scenario);
        (run.sum("links", "lost"), run.sum("flows", "retransmits"))
    };
    let (lost, retransmits) = lost_events(false);
    assert!(retransmits.abs_diff(lost) <= lost / 5 + 5, "{retransmits} retransmissions for {lost} losses");
    // One draw takes two or more segments.
    let (lost, retransmits) = lost_events(true);
    assert!(retransmits * 2 > lost * 3, "{retransmits} retransmissions for {lost} losses");
}

#[test]
fn closed_end_answers_data_with_reset() {
    let mut scenario = Path { duration_ns: 3 * SECOND, ..Path::default() }.json();
    scenario["flows"][0]["duration_ns"] = json!(SECOND);
    let run = Run::of(&scenario);
    let handshake = 2;
    let resets = run.sum("queues", "sent_packets") - handshake - run.sum("flows", "segments_out");
    // One when it closes, and one for each acknowledgement of what was on its way then.
    let in_flight = run.sum("flows", "segments_out") - run.sum("flows", "delivered_bytes") / MSS;
    assert!(resets > 1 && resets <= 1 + in_flight, "{resets} resets, {in_flight} segments on their way");
}

/// What was delivered in each interval of 100 ms, in bytes.
fn delivered(run: &Run) -> Vec<u64> {
    run.floats("intervals", "goodput_bps").iter().map(|bps| (bps * 0.1 / 8.0).round() as u64).collect()
}

#[test]
fn an_application_with_a_rate_delivers_it_and_its_connection_stays_open() {
    for cc in ["reno", "cubic", "bbr"] {
        let path = Path { cc, duration_ns: 10 * SECOND, ..Path::default() };
        let run = with_flow(path, &[("writes", json!({"bytes": 16_000, "rate_bps": 5_000_000}))]);
        // A write each 25.6 ms from the handshake on; the last one may be on its way.
        let wrote = ((10_000.0 - 20.0) / 25.6_f64).floor() as u64 + 1;
        let bytes = delivered(&run).iter().sum::<u64>();
        assert!((wrote - 1) * 16_000 <= bytes && bytes <= wrote * 16_000, "{cc}: {bytes} of {wrote} writes");
        assert_eq!(run.integers("flows", "completed"), [0]);
        assert_eq!(run.integers("flows", "retransmits"), [0]);
    }
}

#[test]
fn an_application_that_is_off_is_silent() {
    let writes = json!({"bytes": 16_000, "rate_bps": 5_000_000, "on_off_ns": [SECOND, 500 * MS]});
    let run = with_flow(Path { duration_ns: 6 * SECOND, ..Path::default() }, &[("writes", writes)]);
    let delivered = delivered(&run);
    // 40 writes in a second: from the handshake on, 20 ms after the start.
    for (cycle, intervals) in delivered.chunks(15).enumerate() {
        assert_eq!(intervals.iter().sum::<u64>(), 40 * 16_000, "cycle {cycle}");
        assert!(intervals[..10].iter().all(|&bytes| bytes > 0), "{intervals:?}");
        assert!(intervals[11..].iter().all(|&bytes| bytes == 0), "{intervals:?}");
    }
}

#[test]
fn path_slower_than_application_is_full() {
    let path = Path { rate_bps: 4_000_000, duration_ns: 10 * SECOND, ..Path::default() };
    let slow = with_flow(path, &[("writes", json!({"bytes": 16_000, "rate_bps": 5_000_000}))]);
    let endless = path.run();
    let sum = |run: &Run| delivered(run).iter().sum::<u64>() as f64;
    assert!((sum(&slow) / sum(&endless) - 1.0).abs() < 0.02, "{} and {}", sum(&slow), sum(&endless));
}

#[test]
fn connections_that_are_replaced_write_again() {
    let writes = json!({"bytes": 100, "rate_bps": 800});
    let run = with_flow(Path::default(), &[("writes", writes), ("lifetime_ns", json!([500 * MS, 500 * MS]))]);
    // The fifth begins as the run ends.
    assert_eq!(run.integers("flows", "delivered_bytes"), [100, 100, 100, 100, 0]);
}
