//! Delivered data packets for each CPU second, over the topologies and loads that users run.
//!
//! `cargo run --release -p sawtooth-net --example bench [FILTER]`

use sawtooth_net::Simulation;
use sawtooth_net::scenario::Scenario;
use sawtooth_units::Time;
use std::time::Duration;

struct Case {
    name: &'static str,
    /// Data packets a CPU second that must be reached; 0: for the record.
    bar: f64,
    scenario: String,
}

fn host(name: &str) -> String {
    format!(
        r#"{{"name": "{name}", "hz": 250, "mss": 1448, "initial_window": 10, "receive_buffer": 67108864,
        "send_buffer": 67108864, "delayed_ack": true, "sack": true, "timestamps": true, "offload": false}}"#
    )
}

fn flow(cc: &str, count: usize, forward: &str, backward: &str) -> String {
    format!(
        r#"{{"name": "{cc}", "cc": "{cc}", "count": {count}, "start_ns": 0, "duration_ns": null, "bytes": null,
        "lifetime_ns": null, "forward": {forward}, "backward": {backward}}}"#
    )
}

fn scenario(seconds: u64, hosts: usize, transmitters: &[String], links: &[String], flows: &str) -> String {
    let hosts: Vec<String> = (0..hosts).map(|i| host(&format!("h{i}"))).collect();
    format!(
        r#"{{"duration_ns": {}, "interval_ns": 1000000000, "seed": 1, "hosts": [{}], "transmitters": [{}],
        "links": [{}], "flows": [{flows}], "probes": []}}"#,
        seconds * 1_000_000_000,
        hosts.join(","),
        transmitters.join(","),
        links.join(",")
    )
}

fn transmitter(name: &str, rate_bps: u64, queue_packets: u64) -> String {
    format!(r#"{{"name": "{name}", "rate_bps": {rate_bps}, "queue_packets": {queue_packets}, "queue_bytes": null}}"#)
}

fn link(from: usize, to: usize, transmitter: Option<usize>, delay_ns: u64, loss_ppb: u64) -> String {
    let transmitter = transmitter.map_or("null".into(), |t| t.to_string());
    format!(
        r#"{{"name": "{from}>{to}", "from": {from}, "to": {to}, "transmitter": {transmitter}, "delay_ns": {delay_ns},
        "loss_ppb": {loss_ppb}, "overhead_bytes": 0}}"#
    )
}

/// A chain of hosts with one card each, shared by what goes on and what comes back; loss on the third link.
fn chain(hosts: usize, rate_bps: u64, loss_ppb: u64, cc: &str, seconds: u64) -> String {
    let hops = hosts - 1;
    let cards: Vec<String> = (0..hosts).map(|i| transmitter(&format!("h{i}"), rate_bps, 1_000)).collect();
    let delay = 440_000 / (2 * hops as u64);
    let forth = (0..hops).map(|i| link(i, i + 1, Some(i), delay, if i == 2 { loss_ppb } else { 0 }));
    let back = (0..hops).map(|i| link(hops - i, hops - i - 1, Some(hops - i), delay, 0));
    let links: Vec<String> = forth.chain(back).collect();
    let forward: Vec<usize> = (0..hops).collect();
    let backward: Vec<usize> = (hops..2 * hops).collect();
    scenario(seconds, hosts, &cards, &links, &flow(cc, 1, &format!("{forward:?}"), &format!("{backward:?}")))
}

/// Many flows over one bottleneck of 1 Gbit/s with 48 ms of queue and 20 ms of delay.
fn bottleneck(flows: usize, cc: &str, seconds: u64) -> String {
    let transmitters = [transmitter("b", 1_000_000_000, 4_000)];
    let links = [link(0, 1, Some(0), 10_000_000, 0), link(1, 0, None, 10_000_000, 0)];
    scenario(seconds, 2, &transmitters, &links, &flow(cc, flows, "[0]", "[1]"))
}

/// CPU time of this process so far, user and system.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux tells CPU time in /proc");
    let nanos = stat.split_whitespace().next().and_then(|field| field.parse().ok()).expect("nanoseconds come first");
    Duration::from_nanos(nanos)
}

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let case = |name, bar, scenario| Case { name, bar, scenario };
    let gigabit = 1_000_000_000;
    let percent = 10_000_000;
    let cases = [
        case("chain of 5, cubic, 1 Gbit/s, no loss", 3e6, chain(5, gigabit, 0, "cubic", 30)),
        case("chain of 5, cubic, 1 Gbit/s, 1%", 0.0, chain(5, gigabit, percent, "cubic", 60)),
        case("chain of 5, reno, 1 Gbit/s, no loss", 0.0, chain(5, gigabit, 0, "reno", 30)),
        case("chain of 5, bbr, 1 Gbit/s, no loss", 0.0, chain(5, gigabit, 0, "bbr", 30)),
        case("chain of 5, bbr, 1 Gbit/s, 1%", 0.0, chain(5, gigabit, percent, "bbr", 30)),
        case("chain of 5, cubic, 10 Gbit/s, no loss", 0.0, chain(5, 10 * gigabit, 0, "cubic", 5)),
        case("chain of 21, cubic, 1 Gbit/s, no loss", 0.0, chain(21, gigabit, 0, "cubic", 15)),
        case("bottleneck, 1 cubic", 0.0, bottleneck(1, "cubic", 30)),
        case("bottleneck, 100 cubic", 0.0, bottleneck(100, "cubic", 30)),
        case("bottleneck, 1,000 cubic", 1.5e6, bottleneck(1_000, "cubic", 30)),
        case("bottleneck, 1,000 bbr", 0.0, bottleneck(1_000, "bbr", 30)),
    ];
    println!("{:42} {:>12} {:>10} {:>16} {:>10}", "case", "packets", "CPU s", "packets/CPU s", "bar");
    let mut missed = false;
    for case in cases.iter().filter(|case| case.name.contains(&filter)) {
        let mut simulation = Simulation::new(Scenario::parse(&case.scenario).expect("the cases are valid"));
        let start = cpu_time();
        while !simulation.advance(Time::NEVER, u64::MAX) {}
        let seconds = (cpu_time() - start).as_secs_f64();
        let packets = simulation.delivered_packets();
        let speed = packets as f64 / seconds;
        missed |= speed < case.bar;
        let bar = if case.bar > 0.0 { format!("{:.1}M", case.bar / 1e6) } else { String::new() };
        println!("{:42} {packets:>12} {seconds:>10.2} {:>15.2}M {bar:>10}", case.name, speed / 1e6);
    }
    if missed {
        eprintln!("a bar was missed");
        std::process::exit(1);
    }
}
