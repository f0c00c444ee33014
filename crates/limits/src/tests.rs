//! Tests of the rule on tables with a known answer: a path of 10 Mbit/s and an interval of 1 s.

use super::{FlowLimit, FlowLimits, Limit};
use serde_json::{Value, json};

fn flow(name: &str, cc: &str) -> Value {
    json!({"name": name, "cc": cc, "count": 1, "start_ns": 0, "duration_ns": null, "bytes": null, "lifetime_ns": null,
           "forward": [0, 1], "backward": [2]})
}

fn limits(flows: Vec<Value>) -> FlowLimits {
    let host = json!({"name": "h", "hz": 250, "mss": 1448, "initial_window": 10, "receive_buffer": 1 << 26,
                      "send_buffer": 1 << 26, "delayed_ack": true, "sack": true, "timestamps": true, "offload": false});
    let link = |from: usize, transmitter: Value| {
        json!({"name": "l", "from": from, "to": 1 - from, "transmitter": transmitter, "delay_ns": 0, "loss_ppb": 0,
               "overhead_bytes": 0})
    };
    let compiled = json!({
        "duration_ns": 10_000_000_000u64, "interval_ns": 1_000_000_000, "seed": 1,
        "hosts": [host, host],
        "transmitters": [{"name": "out", "rate_bps": 10_000_000, "discipline": {"fifo": {}}},
                         {"name": "back", "rate_bps": 1_000_000}],
        "links": [link(0, json!(0)), link(0, Value::Null), link(1, json!(1))],
        "flows": flows,
    });
    FlowLimits::new(&compiled.to_string()).unwrap()
}

/// Ten intervals of a flow.
struct Sent {
    flow: usize,
    mbps: f64,
    segments: f64,
    retransmits: f64,
    receiver_s: f64,
    buffer_s: f64,
}

impl Sent {
    fn new(flow: usize, mbps: f64) -> Sent {
        Sent { flow, mbps, segments: 1000.0, retransmits: 0.0, receiver_s: 0.0, buffer_s: 0.0 }
    }

    fn to(&self, limits: &mut FlowLimits) {
        let flow = self.flow as f64;
        for second in 1..=10 {
            let row = [f64::from(second), flow, self.mbps * 1e6, self.segments / 10.0, self.retransmits / 10.0];
            limits.add("intervals", &row).unwrap();
        }
        limits.add("tcp_info", &[flow, 0.0, 20.0, self.receiver_s, self.buffer_s, 0.0]).unwrap();
    }
}

/// The total rate of frames that the transmitter sent, in Mbit/s, its drops, and the link's losses.
fn traffic(limits: &mut FlowLimits, transmitter: usize, mbps: f64, drops: f64, lost: f64) {
    for second in 1..=10 {
        let bytes = mbps * 1e6 / 8.0;
        let row = [f64::from(second), transmitter as f64, drops / 10.0, bytes / 1514.0, bytes];
        limits.add("queues", &row).unwrap();
        if lost > 0.0 {
            limits.add("links", &[f64::from(second), 1.0, lost / 10.0, 0.0]).unwrap();
        }
    }
}

fn report_of_single_flow(cc: &str, sent: Sent, path: (f64, f64, f64)) -> FlowLimit {
    let mut limits = limits(vec![flow("a", cc)]);
    sent.to(&mut limits);
    traffic(&mut limits, 0, path.0, path.1, path.2);
    limits.report(10.0).remove(0)
}

#[test]
fn full_link_is_limited_by_rate() {
    let report = report_of_single_flow("cubic", Sent::new(0, 9.5), (9.9, 0.0, 0.0));
    assert_eq!((report.limit, report.share, report.words.as_str()), (Limit::Rate, 1.0, "the path's rate"));
}

#[test]
fn largest_share_of_time_decides() {
    let lossy = || Sent { retransmits: 10.0, receiver_s: 4.7, ..Sent::new(0, 5.0) };
    // BBR does not slow down at 1% loss: its receive window limits it for longer.
    assert_eq!(report_of_single_flow("bbr", lossy(), (5.3, 0.0, 44.0)).limit, Limit::ReceiveWindow);
    // CUBIC slows down, and loss limits it for the rest of the time.
    let report = report_of_single_flow("cubic", lossy(), (5.3, 0.0, 44.0));
    assert_eq!((report.limit, report.words.as_str()), (Limit::PathLoss, "loss on the path, taken for congestion"));
    assert!((report.share - 0.53).abs() < 1e-9);
    let shares: Vec<_> = report.shares.iter().map(|&(limit, share)| (limit, (100.0 * share).round())).collect();
    assert_eq!(shares, [(Limit::ReceiveWindow, 47.0), (Limit::PathLoss, 53.0)]);
}

#[test]
fn host_share_below_minimum_is_ignored() {
    let report = report_of_single_flow("cubic", Sent { receiver_s: 0.5, ..Sent::new(0, 5.0) }, (5.3, 0.0, 0.0));
    assert_eq!((report.limit, report.share), (Limit::Growth, 0.0));
}

#[test]
fn application_that_sends_its_whole_offer_is_the_limit() {
    let mut writes = flow("a", "cubic");
    writes["writes"] = json!({"bytes": 1000, "rate_bps": 10_000_000, "on_off_ns": [1_000_000, 1_000_000]});
    let mut limits = limits(vec![writes]);
    Sent::new(0, 5.0).to(&mut limits);
    traffic(&mut limits, 0, 5.3, 0.0, 0.0);
    assert_eq!(limits.report(10.0)[0].limit, Limit::Application);
}

#[test]
fn request_driven_application_gives_unknown() {
    let mut flow_config = flow("a", "cubic");
    flow_config["reads"] = json!({"bytes": 1000, "rate_bps": 1_000_000});
    assert_eq!(limits(vec![flow_config]).report(10.0)[0].limit, Limit::Unknown);
}

#[test]
fn drops_without_link_loss_are_queue_drops() {
    let report = report_of_single_flow("reno", Sent { retransmits: 10.0, ..Sent::new(0, 5.0) }, (5.3, 10.0, 0.0));
    assert_eq!((report.limit, report.share), (Limit::QueueDrops, 1.0));
}

#[test]
fn full_return_path_is_the_limit() {
    let mut limits = limits(vec![flow("a", "cubic")]);
    Sent::new(0, 5.0).to(&mut limits);
    traffic(&mut limits, 0, 5.3, 0.0, 0.0);
    traffic(&mut limits, 1, 0.99, 5.0, 0.0);
    assert_eq!(limits.report(10.0)[0].limit, Limit::ReturnPath);
}

#[test]
fn shared_rate_names_the_other_flows_largest_first() {
    let mut limits = limits(vec![flow("a", "bbr"), flow("b", "cubic"), flow("c", "cubic")]);
    for (at, mbps) in [2.0, 3.0, 4.5].into_iter().enumerate() {
        Sent::new(at, mbps).to(&mut limits);
    }
    traffic(&mut limits, 0, 9.93, 0.0, 0.0);
    let report = limits.report(10.0);
    assert_eq!(report[0].limit, Limit::SharedRate);
    let takers: Vec<_> = report[0].takers.iter().map(|taker| (taker.flow.as_str(), taker.goodput_bps)).collect();
    assert_eq!(takers, [("c", 4.5e6), ("b", 3e6)]);
    assert_eq!(report[0].words, "the rate, which it shares: c takes 4.50 Mbit/s (47%), b takes 3.00 Mbit/s (31%)");
}

#[test]
fn shares_count_only_the_flow_lifetime() {
    let mut first = flow("first", "cubic");
    first["bytes"] = json!(1_000_000);
    let mut late = flow("late", "bbr");
    late["start_ns"] = json!(6_000_000_000u64);
    let mut limits = limits(vec![first, late]);
    limits.add("flows", &[0.0, 0.0, 2.0, 1.0]).unwrap();
    for second in 1..=10 {
        let mbps = match second {
            1..=2 => [4.0, 0.0],
            7.. => [0.0, 9.5],
            _ => [0.0, 0.0],
        };
        for (flow, mbps) in mbps.into_iter().enumerate() {
            limits.add("intervals", &[f64::from(second), flow as f64, mbps * 1e6, 10.0, 0.0]).unwrap();
        }
        limits.add("tcp_info", &[0.0, 0.0, 20.0, 0.0, 0.0, 0.0]).unwrap();
        let bytes = mbps.iter().sum::<f64>() * 1.0456e6 / 8.0;
        limits.add("queues", &[f64::from(second), 0.0, 0.0, bytes / 1514.0, bytes]).unwrap();
    }
    let report = limits.report(10.0);
    assert_eq!((report[0].limit, report[0].completed_s, report[0].goodput_bps), (Limit::Growth, Some(2.0), 4e6));
    assert_eq!((report[1].limit, report[1].start_s, report[1].end_s), (Limit::Rate, 6.0, 10.0));
}

#[test]
fn rows_of_unknown_flows_are_an_error() {
    let mut limits = limits(vec![flow("a", "cubic")]);
    assert!(limits.add("intervals", &[1.0, 1.0, 1e6, 1.0, 0.0]).is_err());
    assert!(limits.add("intervals", &[1.0, f64::NAN, 1e6, 1.0, 0.0]).is_err());
    assert!(limits.add("intervals", &[1.0, 0.0]).is_err());
    assert!(limits.add("probes", &[1.0]).is_err());
    assert!(FlowLimits::new("{}").is_err());
}
