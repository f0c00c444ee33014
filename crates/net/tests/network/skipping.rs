//! What repeats is skipped, and every table is the same to the bit: in scenarios drawn at random.

use crate::common::{FRAME, MS, SECOND, bits, flow, host, link, transmitter};
use sawtooth_net::Simulation;
use sawtooth_net::scenario::Scenario;
use sawtooth_units::Time;
use serde_json::{Value, json};

/// A flow whose own card is the bottleneck, of 100 Mbit/s.
fn own_card(cc: &str, delay_ns: u64) -> Value {
    json!({"duration_ns": 30 * SECOND, "interval_ns": SECOND, "seed": 1, "hosts": [host("a"), host("b")],
        "transmitters": [transmitter("a", 100_000_000, 400)],
        "links": [link(0, 1, Some(0), delay_ns, 0), link(1, 0, None, delay_ns, 0)],
        "flows": [flow(cc, 1, &[0], &[1])], "probes": []})
}

fn run(scenario: &Value, skips: bool, max_events: u64) -> Simulation {
    let mut simulation = Simulation::new(Scenario::parse(&scenario.to_string()).expect("it is valid"));
    if skips {
        simulation.skip_repeated();
    }
    while !simulation.advance(Time::NEVER, max_events) {}
    simulation
}

/// The share of the packets that was skipped; `None`: something is not the same without skipping.
fn skipped(scenario: &Value, max_events: u64) -> Option<f64> {
    let [mut with, mut without] =
        [(true, max_events), (false, u64::MAX)].map(|(skips, most)| run(scenario, skips, most));
    let is_same = bits(&with.take()) == bits(&without.take())
        && with.delivered_packets() == without.delivered_packets()
        && with.totals() == without.totals()
        && without.skipped_packets() == 0;
    is_same.then_some(with.skipped_packets() as f64 / with.delivered_packets().max(1) as f64)
}

#[test]
fn most_of_a_flow_without_loss_is_skipped_whenever_it_ends_and_rows_come() {
    let mut ends = own_card("cubic", MS);
    (ends["flows"][0]["bytes"], ends["interval_ns"]) = (json!(250_000_123), json!(77_777_777));
    for scenario in [own_card("cubic", MS), own_card("reno", MS), own_card("cubic", 10 * MS), ends] {
        let share = skipped(&scenario, u64::MAX).expect("the same tables");
        assert!(share > 0.3, "{share}: {scenario}");
    }
    assert!(run(&own_card("cubic", MS), true, u64::MAX).delivered_packets() > 27 * 100_000_000 / 8 / FRAME);
}

#[test]
fn where_it_pauses_changes_nothing() {
    let [whole, parts @ ..] = [u64::MAX, 100_000, 777].map(|most| {
        let share = skipped(&own_card("cubic", MS), most).expect("the same tables");
        (share, run(&own_card("cubic", MS), true, most).events())
    });
    assert_eq!(parts, [whole; 2]);
}

/// The smallest round trip comes 50 times in a period of 9.3 s, and is forgotten 300 s after it was last seen.
#[test]
fn a_smallest_round_trip_that_comes_rarely_is_forgotten_when_it_should_be() {
    let mut scenario = own_card("cubic", 2 * MS);
    (scenario["duration_ns"], scenario["interval_ns"]) = (json!(865_605 * MS), json!(10 * MS));
    scenario["transmitters"] = json!([transmitter("a", 50_000_000, 400)]);
    let starts_ms = [0.0, 488.0, 563_105.3, 563_105.3, 563_105.3];
    scenario["flows"] = starts_ms
        .iter()
        .zip(["cubic", "reno", "reno", "reno", "reno"])
        .enumerate()
        .map(|(index, (start, cc))| {
            let mut one = flow(cc, 1, &[0], &[1]);
            (one["name"], one["start_ns"]) = (json!(index.to_string()), json!((start * 1e6) as u64));
            one
        })
        .collect();
    for host in scenario["hosts"].as_array_mut().expect("hosts") {
        (host["hz"], host["mss"]) = (json!(100), json!(1_000));
    }
    assert!(skipped(&scenario, u64::MAX).expect("the same tables") > 0.3);
}

/// Draws for one scenario.
struct Draw(u64);

impl Draw {
    /// SplitMix64 (Steele, Lea and Flood 2014).
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % end
    }
    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }
    fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

fn drawn(seed: u64) -> Value {
    let mut draw = Draw(seed);
    let rate_mbps = draw.of(&[5, 10, 20, 37, 50, 100, 123, 200, 500, 1_000]);
    let packets = draw.of(&[60_000, 200_000, 200_000, 600_000]) + draw.below(100_000);
    let duration_ns = (packets * 12_000_000 / rate_mbps).clamp(2 * SECOND, 700 * SECOND);
    let delay_ns = draw.of(&[0, 10_000, 100_000, MS, 2 * MS, 5 * MS, 7_654_321, 10 * MS, 25 * MS]);
    let queue = draw.of(&[20, 100, 400, 1_000, 4_000]);
    let mut transmitters = vec![transmitter("a", rate_mbps * 1_000_000, queue)];
    let mut links = vec![link(0, 1, Some(0), delay_ns, 0), link(1, 0, None, delay_ns, 0)];
    let (mut forward, mut backward) = (vec![0], vec![1]);
    match draw.below(7) {
        // Another card behind it, faster, slower or as fast; and on the return path.
        0 | 1 => {
            let other = draw.of(&[rate_mbps, rate_mbps * 2, rate_mbps * 9 / 10]) * 1_000_000;
            transmitters.extend([transmitter("b", other, queue), transmitter("c", other, queue)]);
            links[1] = link(1, 2, Some(1), delay_ns, 0);
            links.push(link(2, 0, Some(2), delay_ns, 0));
            (forward, backward) = (vec![0, 1], vec![2]);
        }
        // A bottleneck that hosts do not see.
        2 => {
            links = vec![link(0, 1, None, 0, 0), link(1, 2, Some(0), delay_ns, 0), link(2, 0, None, delay_ns, 0)];
            (forward, backward) = (vec![0, 1], vec![2]);
        }
        _ => {}
    }
    // Half of them have little that prevents repetition.
    let is_calm = draw.once_in(2);
    if !is_calm && draw.once_in(4) {
        let lossy = draw.below(links.len() as u64) as usize;
        links[lossy]["loss_ppb"] = json!(draw.of(&[100, 1_000, 100_000, 10_000_000]));
    }
    let mut hosts = ["a", "b", "c"].map(host);
    let hz = draw.of(&[100, 250, 250, 250, 300, 1_000]);
    let buffer = draw.of(&[64 << 20, 64 << 20, 6 << 20, 1 << 20, 300_000, 70_000]);
    let sends = draw.of(&[64 << 20, 64 << 20, 4 << 20, 500_000]);
    let mss = draw.of(&[1_448, 1_448, 1_448, 1_448, 1_460, 1_000, 8_948]);
    let (stamps, delayed, sack) = (!draw.once_in(4), !draw.once_in(5), !draw.once_in(8));
    let unpaced = draw.once_in(6);
    let [gro, offload, ecn] = [12, 16, 6].map(|n| !is_calm && draw.once_in(n));
    for host in &mut hosts {
        host["hz"] = json!(if draw.once_in(8) { 1_000 } else { hz });
        (host["receive_buffer"], host["send_buffer"], host["mss"]) = (json!(buffer), json!(sends), json!(mss));
        (host["timestamps"], host["delayed_ack"], host["sack"]) = (json!(stamps), json!(delayed), json!(sack));
        (host["offload"], host["unpaced"], host["ecn"]) = (json!(offload), json!(unpaced), json!(u8::from(ecn)));
        if gro {
            host["gro_ns"] = json!(draw.of(&[0, 20_000]));
        }
    }
    let most = if is_calm { 4 } else { 6 };
    let flows = (0..draw.of(&[1, 1, 1, 2, 2, 3][..most])).map(|index| {
        let cc = draw.of(&["cubic", "cubic", "cubic", "reno", "reno", "bbr", "dctcp"][..most + 1]);
        let mut one = flow(cc, 1, &forward, &backward);
        one["name"] = json!(format!("{index}"));
        if transmitters.len() == 3 && draw.once_in(6) {
            (one["forward"], one["backward"]) = (json!(backward), json!(forward));
        }
        if index > 0 || draw.once_in(5) {
            one["start_ns"] = json!(draw.below(duration_ns * 3 / 4));
        }
        let on_off_ns = [draw.of(&[1, 10, 100]) * SECOND, draw.of(&[200 * MS, 2 * SECOND])];
        let rate_bps = rate_mbps * draw.of(&[300_000, 1_400_000]);
        let paced = json!({"bytes": 1 + draw.below(100_000), "rate_bps": rate_bps, "on_off_ns": on_off_ns});
        match draw.below(if is_calm { 40 } else { 12 }) {
            0 => one["bytes"] = json!(1 + draw.below(packets * 1_448)),
            1 => one["duration_ns"] = json!(1 + draw.below(duration_ns)),
            2 => one["writes"] = paced,
            3 => one["reads"] = paced,
            _ => {}
        }
        one
    });
    let flows: Vec<Value> = flows.collect();
    let interval_ns = draw.of(&[100 * MS, SECOND, 20 * SECOND]);
    let probe = json!({"name": "p", "start_ns": draw.below(duration_ns), "interval_ns": interval_ns,
        "count": 1 + draw.below(20), "forward": forward, "backward": backward});
    let probes = if draw.once_in(5) { vec![probe] } else { vec![] };
    if !is_calm && draw.once_in(6) {
        transmitters[0]["discipline"] = json!({"codel": {"target_ns": 5 * MS, "interval_ns": 100 * MS}});
    }
    let interval_ns = draw.of(&[10 * MS, 100 * MS, 77_777_777, SECOND, SECOND, 10 * SECOND, 7 * SECOND + 1]);
    json!({"duration_ns": duration_ns, "interval_ns": interval_ns.max(duration_ns / 20_000), "seed": seed,
        "hosts": hosts, "transmitters": transmitters, "links": links, "flows": flows, "probes": probes})
}

fn compare(seeds: std::ops::Range<u64>) {
    let total = seeds.end - seeds.start;
    let shares: Vec<(u64, Option<f64>)> = seeds.map(|seed| (seed, skipped(&drawn(seed), u64::MAX))).collect();
    let wrong: Vec<u64> = shares.iter().filter(|(_, share)| share.is_none()).map(|(seed, _)| *seed).collect();
    let skipping = shares.iter().filter(|(_, share)| share.is_some_and(|share| share > 0.0)).count();
    println!("{total} scenarios, {skipping} skip");
    assert!(wrong.is_empty() && skipping > 0, "not the same: {wrong:?}");
}

#[test]
fn drawn_scenarios_are_the_same() {
    compare(2_000..2_030);
}

#[test]
#[ignore = "takes minutes"]
fn a_thousand_are_the_same() {
    compare(5_000..6_000);
}
