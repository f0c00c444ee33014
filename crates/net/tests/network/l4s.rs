//! Prague beside a classic control over DualPI2 (RFC 9330, RFC 9332): what each gets, and how long its packets wait.

use crate::common::{LONG, MS, Path, Run, link};
use serde_json::{Value, json};

fn over_dualpi2(ccs: &[&'static str], ecn: u8, rtt_ns: u64) -> Value {
    let mut scenario = Path { cc: ccs[0], count: 1, rtt_ns, queue_packets: 10_000, ..LONG }.json();
    let half = rtt_ns / 2;
    scenario["links"] = json!([link(0, 1, None, 0, 0), link(1, 2, Some(0), half, 0), link(2, 0, None, half, 0)]);
    scenario["transmitters"][0]["discipline"] = json!({"dualpi2": {"target_ns": 15 * MS, "tupdate_ns": 16 * MS,
        "alpha_256": 41, "beta_256": 819, "coupling_factor": 2, "step_thresh_ns": MS, "min_qlen_step": 0,
        "classic_protection": 10, "drop_on_overload": true, "drop_enqueue": false, "any_ect": false}});
    for host in 0..3 {
        scenario["hosts"][host]["ecn"] = json!(ecn);
    }
    let first = scenario["flows"][0].clone();
    let flow = |cc: &&str| {
        let mut flow = first.clone();
        (flow["cc"], flow["name"]) = (json!(cc), json!(cc));
        flow
    };
    scenario["flows"] = ccs.iter().map(flow).collect();
    scenario
}

/// Each flow's bytes, and the mean round trip of the second half.
fn shares(scenario: &Value, count: usize) -> Vec<(f64, f64)> {
    let run = Run::of(scenario);
    let (flows, bytes) = (run.integers("flows", "flow"), run.integers("flows", "delivered_bytes"));
    let (of, rtts) = (run.integers("tcp_info", "flow"), run.floats("tcp_info", "srtt_s"));
    let rtt = |flow: i64| {
        let all: Vec<f64> = of.iter().zip(&rtts).filter(|row| *row.0 == flow).map(|row| *row.1).collect();
        let late = &all[all.len() / 2..];
        late.iter().sum::<f64>() / late.len() as f64
    };
    (0..count as i64)
        .map(|flow| (flows.iter().zip(&bytes).filter(|row| *row.0 == flow).map(|row| *row.1 as f64).sum(), rtt(flow)))
        .collect()
}

#[test]
fn prague_alone_keeps_the_link_busy_and_its_queue_below_the_step() {
    let (bytes, rtt) = shares(&over_dualpi2(&["prague"], 2, 20 * MS), 1)[0];
    assert!(bytes > 0.9 * 20e6 / 8.0 * 20.0 * 1448.0 / 1514.0, "{bytes}");
    assert!(rtt < 0.0225, "{rtt}");
}

#[test]
fn prague_and_cubic_share_dualpi2_with_low_prague_delay() {
    let found = shares(&over_dualpi2(&["prague", "cubic"], 2, 20 * MS), 2);
    let ratio = found[0].0 / found[1].0;
    assert!((0.5..2.0).contains(&ratio), "{found:?}");
    assert!(found[0].1 < 0.024 && found[1].1 > 0.028, "{found:?}");
}

#[test]
fn prague_without_peer_ecn_is_reno() {
    let [prague, reno] = ["prague", "reno"].map(|cc| shares(&over_dualpi2(&[cc], 0, 20 * MS), 1)[0]);
    assert_eq!(prague, reno);
}
