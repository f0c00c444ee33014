//! ECN from end to end: who agrees on it, and what marks do (RFC 3168).

use crate::common::{LONG, MS, Path, Run, SECOND, link};
use serde_json::{Value, json};

/// CoDel that marks; the sending, forwarding and receiving hosts have these values of `tcp_ecn`.
fn marking(cc: &'static str, ecn: [u8; 3]) -> Value {
    let (mut scenario, half) = (Path { cc, ..LONG }.json(), LONG.rtt_ns / 2);
    scenario["links"] = json!([link(0, 1, None, 0, 0), link(1, 2, Some(0), half, 0), link(2, 0, None, half, 0)]);
    scenario["transmitters"][0]["discipline"] =
        json!({"codel": {"target_ns": 5 * MS, "interval_ns": 100 * MS, "ecn": true}});
    for (host, ecn) in ecn.into_iter().enumerate() {
        scenario["hosts"][host]["ecn"] = json!(ecn);
    }
    scenario
}

fn marks_and_drops(scenario: &Value) -> [u64; 2] {
    let run = Run::of(scenario);
    ["marks", "drops"].map(|column| run.sum("queues", column))
}

#[test]
fn marks_replace_drops_without_retransmissions() {
    for cc in ["reno", "cubic"] {
        let run = Run::of(&marking(cc, [1, 0, 1]));
        assert_eq!((run.sum("queues", "drops"), run.sum("intervals", "retransmits")), (0, 0), "{cc}");
        assert!(run.sum("queues", "marks") > 10, "{cc}");
        let ce_segments = run.integers("tcp_info", "delivered_ce_segments").iter().max().copied();
        assert!(ce_segments >= Some(10), "{cc}: {ce_segments:?}");
        let delivered = run.sum("queues", "sent_bytes") as f64 / (20e6 / 8.0 * 20.0);
        assert!(delivered > 0.9, "{cc}: {delivered}");
        let delays = &run.floats("queues", "delay_p50_s")[50..];
        assert!(delays.iter().sum::<f64>() / (delays.len() as f64) < 0.01, "{cc}: the queue is controlled");
    }
}

#[test]
fn ecn_is_negotiated_if_requested_and_not_refused() {
    for (ecn, agreed) in
        [([1, 0, 1], true), ([1, 0, 2], true), ([1, 0, 0], false), ([2, 0, 2], false), ([0, 0, 1], false)]
    {
        let [marks, drops] = marks_and_drops(&marking("reno", ecn));
        assert_eq!((marks > 0, drops > 0), (agreed, !agreed), "{ecn:?}: {marks} {drops}");
    }
}

#[test]
fn ecn_based_control_requests_ecn() {
    for (ecn, agreed) in [([0, 0, 2], true), ([0, 0, 0], false)] {
        let [marks, drops] = marks_and_drops(&marking("dctcp", ecn));
        assert_eq!((marks > 0, drops > 0), (agreed, !agreed), "{ecn:?}");
    }
}

#[test]
fn second_syn_requests_no_ecn_unless_configured() {
    for (insists, agreed) in [(false, false), (true, true)] {
        let mut scenario = marking("reno", [1, 0, 1]);
        scenario["hosts"][0]["ecn_insists"] = json!(insists);
        // The first SYN is lost.
        scenario["links"][0]["losses"] = json!([[0, 1_000_000_000], [500 * MS, 0]]);
        let [marks, drops] = marks_and_drops(&scenario);
        assert_eq!((marks > 0, drops > 0), (agreed, !agreed), "{insists}");
    }
}

#[test]
fn bbr3_low_latency_ecn_counts_each_mark() {
    for (ecn, agreed) in [([1, 0, 1], true), ([0, 0, 1], false)] {
        let mut scenario = marking("bbr3", ecn);
        scenario["flows"][0]["variant"] = json!("ecn");
        scenario["transmitters"][0]["discipline"] =
            json!({"codel": {"target_ns": SECOND, "interval_ns": SECOND, "ce_threshold_ns": MS}});
        let run = Run::of(&scenario);
        let marks = run.sum("queues", "marks");
        assert_eq!(marks > 0, agreed);
        // Beside those of the last round trip, and the acknowledgement that reported a change of marks: all of it
        // counts.
        let ce_segments: i64 = run.integers("tcp_info", "delivered_ce_segments").iter().rev().take(2).sum();
        assert!((ce_segments as u64).abs_diff(marks) * 10 <= marks, "{ce_segments} {marks}");
    }
}

/// RFC 8257 section 3.4: the window swings by little about what the threshold lets wait.
#[test]
fn dctcp_keeps_queue_at_step_threshold_and_link_busy() {
    let mut scenario = marking("dctcp", [1, 0, 1]);
    scenario["transmitters"][0]["discipline"] =
        json!({"codel": {"target_ns": SECOND, "interval_ns": SECOND, "ce_threshold_ns": 10 * MS}});
    let run = Run::of(&scenario);
    let delays = &run.floats("queues", "delay_p50_s")[20..];
    assert!(delays.iter().all(|delay| (0.004..0.02).contains(delay)), "{delays:?}");
    let busy = &run.floats("intervals", "goodput_bps")[2 * 20..];
    assert!(busy.iter().sum::<f64>() / busy.len() as f64 > 0.95 * 20e6 * 1448.0 / 1514.0 / 2.0, "{busy:?}");
}
