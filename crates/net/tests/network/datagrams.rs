//! Datagrams: sent at their times whatever becomes of them, counted by their receivers.

use crate::common::{MS, PERCENT, Path, Run, SECOND, bits};
use serde_json::{Value, json};

fn sending(path: &Path, datagrams: Value) -> Value {
    let mut scenario = path.json();
    (scenario["flows"][0]["datagrams"], scenario["flows"][0]["cc"]) = (datagrams, json!("udp"));
    scenario
}

const CALL: [u64; 2] = [172, 68_800];

fn call() -> Value {
    json!({"bytes": CALL[0], "rate_bps": CALL[1]})
}

#[test]
fn a_call_is_fifty_datagrams_a_second_with_the_delay_of_their_path() {
    let run = Run::of(&sending(&Path { rate_bps: 1_000_000, ..Path::default() }, call()));
    assert_eq!(run.integers("datagrams", "sent"), [5; 20]);
    assert_eq!(run.sum("datagrams", "received"), 100);
    assert_eq!([run.sum("datagrams", "lost"), run.sum("datagrams", "out_of_order")], [0, 0]);
    // 172 bytes of payload in a frame of 214, on 1 Mbit/s and then 10 ms.
    let delay = 0.010 + 214.0 * 8.0 / 1e6;
    for column in ["delay_mean_s", "delay_max_s"] {
        assert!(run.floats("datagrams", column).iter().all(|&s| (s - delay).abs() < 1e-8), "{column}");
    }
    assert!(run.floats("datagrams", "delay_p99_s").iter().all(|&s| (s / delay - 1.0).abs() < 1.0 / 32.0));
    assert!(run.floats("datagrams", "jitter_s").iter().all(|&s| s.abs() < 1e-9));
    assert!(run.floats("intervals", "goodput_bps").iter().all(|&bps| (bps - 68_800.0).abs() < 1e-6));
    assert_eq!([run.sum("flows", "segments_out"), run.sum("flows", "delivered_bytes")], [100, 17_200]);
}

#[test]
fn datagrams_sent_equal_received_plus_lost() {
    // Twice the rate of the bottleneck.
    let path = Path { rate_bps: 10_000_000, queue_packets: 20, ..Path::default() };
    let run = Run::of(&sending(&path, json!({"bytes": 1_208, "rate_bps": 19_328_000})));
    let drops = run.sum("queues", "drops");
    assert!(drops > 900, "{drops}");
    let (sent, received, lost) =
        (run.sum("datagrams", "sent"), run.sum("datagrams", "received"), run.sum("datagrams", "lost"));
    assert!((received + lost..received + lost + 80).contains(&sent), "{sent} {received} {lost}: the rest travels");
    assert!((lost..lost + 60).contains(&drops), "{lost} {drops}");
    let goodput = run.goodput_bps(0.5);
    assert!((goodput / (1e7 * 1_208.0 / 1_250.0) - 1.0).abs() < 0.01, "{goodput}");
    let queue = 20.0 * 1_250.0 * 8.0 / 1e7;
    let longest = run.floats("datagrams", "delay_max_s")[10];
    assert!((longest - 0.010 - queue - 0.001).abs() < 0.0011, "{longest}");
}

#[test]
fn on_off_datagrams_keep_their_mean_rate() {
    let path = Path { duration_ns: 10 * SECOND, ..Path::default() };
    let turns = json!({"bytes": 1_000, "rate_bps": 8_000_000, "on_off_ns": [300 * MS, 700 * MS]});
    let sent = Run::of(&sending(&path, turns)).integers("datagrams", "sent");
    assert_eq!(sent[..10], [100, 100, 100, 0, 0, 0, 0, 0, 0, 0], "a tenth of a second each");
    let scenario = sending(&path, json!({"bytes": 1_000, "rate_bps": 8_000_000, "poisson": true}));
    let run = Run::of(&scenario);
    let sent = run.integers("datagrams", "sent");
    let (mean, all) = (sent.iter().sum::<i64>() as f64 / 100.0, sent.iter());
    let variance = all.map(|&sent| (sent as f64 - mean).powi(2)).sum::<f64>() / 100.0;
    assert!((mean / 100.0 - 1.0).abs() < 0.03 && (60.0..150.0).contains(&variance), "{mean} {variance}");
    assert_eq!(bits(&run.tables), bits(&Run::of(&scenario).tables));
}

#[test]
fn several_streams_alternate_until_flow_end() {
    let mut scenario = sending(&Path::default(), call());
    (scenario["flows"][0]["count"], scenario["flows"][0]["duration_ns"]) = (json!(4), json!(SECOND));
    let run = Run::of(&scenario);
    assert_eq!(run.integers("datagrams", "sent"), [[20; 10], [0; 10]].concat());
    let starts = run.floats("flows", "start_s");
    assert_eq!(starts, [0.0, 0.005, 0.010, 0.015]);
    assert_eq!(run.integers("flows", "segments_out"), [50; 4]);
    let delays = run.floats("datagrams", "delay_mean_s");
    assert!(delays[0] > 0.0 && delays[19].is_nan());
}

#[test]
fn datagram_jitter_and_reordering_match_the_path() {
    let mut scenario = sending(&Path { duration_ns: 20 * SECOND, ..Path::default() }, call());
    scenario["links"][1]["jitter"] = json!({"ns": 8 * MS, "table": [], "correlation_ppb": 0, "ordered": false});
    let run = Run::of(&scenario);
    // Evenly within 8 ms of the delay: two differ by a third of 16 ms on average.
    let jitter = run.floats("datagrams", "jitter_s");
    let mean = jitter[20..].iter().sum::<f64>() / (jitter.len() - 20) as f64;
    assert!((mean / (0.016 / 3.0) - 1.0).abs() < 0.1, "{mean}");
    scenario["flows"][0]["datagrams"] = json!({"bytes": 172, "rate_bps": 688_000});
    let run = Run::of(&scenario);
    assert!(run.sum("datagrams", "out_of_order") > 1_000);
    assert_eq!(
        run.integers("datagrams", "lost").iter().sum::<i64>().abs() / 20,
        0,
        "what overtook made good in the end"
    );
}

#[test]
fn receiver_counts_link_losses() {
    let path = Path { duration_ns: 20 * SECOND, loss_ppb: 5 * PERCENT, ..Path::default() };
    let run = Run::of(&sending(&path, call()));
    let (lost, by_link) = (run.sum("datagrams", "lost"), run.sum("links", "lost"));
    assert!(by_link - lost <= 1 && (20..90).contains(&lost), "{lost} {by_link}");
}

#[test]
fn interval_counts_only_its_own_queue_and_departures() {
    // Six times the rate for a second, then nothing: 1,000 packets wait for up to ten seconds.
    let path = Path { rate_bps: 1_000_000, queue_packets: 1_000, duration_ns: 8 * SECOND, ..Path::default() };
    let mut scenario = sending(&path, json!({"bytes": 1_208, "rate_bps": 5_798_400}));
    scenario["flows"][0]["duration_ns"] = json!(SECOND);
    let run = |discipline: Option<Value>| {
        let mut scenario = scenario.clone();
        if let Some(one) = discipline {
            scenario["transmitters"][0]["discipline"] = one;
        }
        Run::of(&scenario)
    };
    let [steady, held] = [None, Some(json!({"fifo": {}}))].map(run);
    for run in [&steady, &held] {
        let (ends, means) = (run.integers("queues", "packets"), run.floats("queues", "mean_packets"));
        for (at, pair) in ends.windows(2).enumerate().skip(10) {
            let between = (pair[0] + pair[1]) as f64 / 2.0;
            assert!((means[at + 1] - between).abs() < 1.0, "{} {between}", means[at + 1]);
        }
        // A hundred frames of 1,250 bytes a second.
        let sent = run.integers("queues", "sent_packets");
        let busy = sent.iter().zip(&ends).filter(|(_, waiting)| **waiting > 0);
        assert!(busy.clone().count() > 40 && busy.clone().all(|(packets, _)| (10..=11).contains(packets)), "{sent:?}");
        let bytes = run.integers("queues", "sent_bytes");
        assert!(bytes.iter().zip(&sent).all(|(bytes, packets)| *bytes == 1_250 * packets));
    }
    // One leaves at the end of each interval: before it, or after.
    let both = steady.integers("queues", "packets").into_iter().zip(held.integers("queues", "packets"));
    assert!(both.clone().all(|(steady, held)| steady.abs_diff(held) <= 1), "{:?}", both.collect::<Vec<_>>());
}

#[test]
fn losses_that_begin_later_are_counted_from_then_on() {
    let mut scenario = sending(&Path::default(), call());
    scenario["links"][1]["losses"] = json!([[SECOND, 1_000_000_000]]);
    let run = Run::of(&scenario);
    assert_eq!(run.sum("links", "lost"), run.sum("datagrams", "sent") - run.sum("datagrams", "received"));
    assert!((48..=50).contains(&run.sum("links", "lost")), "{}", run.sum("links", "lost"));
}
