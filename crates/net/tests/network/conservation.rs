//! Every packet is delivered, dropped, lost, on its way or a duplicate.

use crate::common::{FRAME, MS, MSS, PERCENT, Path, Run, SECOND, host, link, transmitter};
use sawtooth_tcp::cc::Algorithm;
use sawtooth_units::Time;
use serde_json::{Value, json};

/// Packets of a handshake on the way of the data: SYN (74 bytes) and ACK (66 bytes).
const HANDSHAKE: u64 = 2;
const HANDSHAKE_BYTES: u64 = 74 + 66;

/// `path` with a second, faster transmitter behind the loss, which counts what reaches the receiver.
fn counted(path: Path, bytes: Option<u64>) -> Value {
    let mut scenario = path.json();
    scenario["transmitters"] = json!([
        transmitter("bottleneck", path.rate_bps, path.queue_packets),
        {"name": "last", "rate_bps": 100 * path.rate_bps, "queue_packets": null, "queue_bytes": null}
    ]);
    scenario["hosts"] = json!(["sender", "router", "door", "receiver"].map(host));
    let half = path.rtt_ns / 2;
    scenario["links"] = json!([
        link(0, 1, Some(0), 0, 0),
        link(1, 2, None, half, path.loss_ppb),
        link(2, 3, Some(1), 0, 0),
        link(3, 0, None, half, 0)
    ]);
    let mut flow = scenario["flows"][0].clone();
    (flow["forward"], flow["backward"], flow["bytes"]) = (json!([0, 1, 2]), json!([3]), json!(bytes));
    scenario["flows"] = json!([flow]);
    scenario
}

/// What a transmitter took in all.
fn through(run: &Run, index: i64) -> u64 {
    let rows = run.integers("queues", "transmitter").into_iter().zip(run.integers("queues", "sent_packets"));
    rows.filter(|&(transmitter, _)| transmitter == index).map(|(_, packets)| packets as u64).sum()
}

#[test]
fn every_thousandth_packet_is_lost() {
    for cc in ["reno", "cubic"] {
        let mut scenario = counted(Path { cc, duration_ns: 30 * SECOND, ..Path::default() }, Some(100_000 * MSS));
        (scenario["links"][1]["loss_ppb"], scenario["links"][1]["loss_pattern"]) =
            (json!(1_000_000), json!({"every": 1_000}));
        let run = Run::of(&scenario);
        let (arrived, lost) = (through(&run, 1), run.sum("links", "lost"));
        assert!(lost > 50, "{cc}: {lost}");
        assert_eq!(lost, (arrived + lost) / 1_000, "{cc}");
        assert!(run.sum("flows", "retransmits") >= lost - 1, "{cc}");
    }
}

#[test]
fn without_loss_sent_equals_delivered_plus_in_transit() {
    // Acknowledgements arrive at once, so only data is ever on its way.
    let mut scenario = Path { queue_packets: 1_000_000, ..Path::default() }.json();
    scenario["links"][2]["delay_ns"] = json!(0);
    let mut simulation = crate::common::simulation(&scenario);
    for step in 1..=200 {
        simulation.advance(Time::from_nanos(step * 10 * MS), u64::MAX);
        let on_way = simulation.in_transit() as u64;
        let sent = simulation.totals().segments_out + [1, HANDSHAKE][usize::from(step > 1)];
        // The SYN arrived after 10 ms, the ACK after 20 ms.
        let arrived = simulation.delivered_packets() + u64::from(step > 1) + u64::from(step > 2);
        assert_eq!(sent, arrived + on_way, "after {} ms", step * 10);
    }
    assert!(simulation.delivered_packets() > 10_000);
}

#[test]
fn sent_equals_arrived_plus_lost_plus_dropped() {
    for cc in Algorithm::names() {
        for (loss_ppb, queue_packets) in [(0, 20), (PERCENT, 20), (5 * PERCENT, 5)] {
            let path = Path { cc, loss_ppb, queue_packets, duration_ns: 20 * SECOND, ..Path::default() };
            let run = Run::of(&counted(path, Some(2_000 * MSS)));
            assert_eq!(run.integers("flows", "completed"), [1], "{cc}, {loss_ppb} ppb");
            assert_eq!(run.simulation.in_transit(), 0);
            let (sent, retransmits) = (run.sum("flows", "segments_out"), run.sum("flows", "retransmits"));
            let (lost, dropped) = (run.sum("links", "lost"), run.sum("queues", "drops"));
            let arrived = through(&run, 1);
            assert_eq!(sent + HANDSHAKE, through(&run, 0) + dropped, "{cc}, {loss_ppb} ppb");
            assert_eq!(sent + HANDSHAKE, arrived + lost + dropped, "{cc}, {loss_ppb} ppb");
            // Each segment once, and again for each loss; what is more arrived twice. A receiver's window that ends
            // inside one of the first made two of it.
            let segments = sent - retransmits;
            assert!((2_000..2_010).contains(&segments), "{cc}, {loss_ppb} ppb: {segments}");
            let twice = (arrived - HANDSHAKE).checked_sub(segments).expect("everything arrived at least once");
            assert!(twice * 20 <= sent, "{cc}, {loss_ppb} ppb: {twice} duplicates of {sent}");
            assert_eq!(run.simulation.delivered_packets(), segments);
        }
    }
}

#[test]
fn the_intervals_add_up_to_the_run() {
    let run = Path { loss_ppb: PERCENT, count: 3, ..Path::default() }.run();
    for column in ["segments_out", "retransmits", "timeouts", "tail_probes"] {
        assert_eq!(run.sum("intervals", column), run.sum("flows", column), "{column}");
    }
    let bits: f64 = run.floats("intervals", "goodput_bps").iter().sum::<f64>() * 0.1;
    let read = run.simulation.delivered_packets() * MSS;
    assert_eq!(bits.round() as u64, 8 * read);
    // What was read and not yet acknowledged is at most what was on its way.
    let acknowledged = run.sum("flows", "delivered_bytes");
    let in_flight = run.sum("flows", "segments_out") * MSS - acknowledged;
    assert!(acknowledged <= read && read <= acknowledged + in_flight);
    assert_eq!(run.simulation.totals().segments_out, run.sum("flows", "segments_out"));
}

#[test]
fn a_transmitter_s_bytes_are_its_packets_frames() {
    let run = Path { duration_ns: SECOND, ..Path::default() }.run();
    let packets = run.sum("queues", "sent_packets");
    // All but the handshake are full frames.
    assert_eq!(run.sum("queues", "sent_bytes"), (packets - HANDSHAKE) * FRAME + HANDSHAKE_BYTES);
}

#[test]
fn overhead_counts_on_the_wire() {
    let mut scenario = Path { duration_ns: SECOND, ..Path::default() }.json();
    scenario["links"][0]["overhead_bytes"] = json!(24);
    let run = Run::of(&scenario);
    let packets = run.sum("queues", "sent_packets");
    assert_eq!(
        run.sum("queues", "sent_bytes"),
        (packets - HANDSHAKE) * (FRAME + 24) + HANDSHAKE_BYTES + HANDSHAKE * 24
    );
}

#[test]
fn the_loss_rate_is_within_four_sigma() {
    for percent in [1, 3, 10] {
        let path = Path { cc: "bbr", loss_ppb: percent * PERCENT, duration_ns: 10 * SECOND, ..Path::default() };
        let run = path.run();
        let (n, p) = (run.sum("queues", "sent_packets") as f64, percent as f64 / 100.0);
        assert!(n > 20_000.0, "{n} packets");
        let sigma = (n * p * (1.0 - p)).sqrt();
        let lost = run.sum("links", "lost") as f64;
        assert!((lost - n * p).abs() < 4.0 * sigma, "{lost} of {n} lost at {percent}%");
    }
}

#[test]
fn a_link_that_loses_everything_delivers_nothing() {
    let run = Path { loss_ppb: 100 * PERCENT, duration_ns: 10 * SECOND, ..Path::default() }.run();
    assert_eq!(run.simulation.delivered_packets(), 0);
    // SYNs at 0, 1, 2, 3, 4, 5 and 7 s (tcp_syn_linear_timeouts).
    assert_eq!(run.sum("links", "lost"), 7);
}
