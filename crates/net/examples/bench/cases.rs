//! The cases: topologies and loads that users run.

use sawtooth_tcp::cc::Algorithm;

/// What is measured.
pub struct Case {
    pub name: String,
    /// Data packets a CPU second that must be reached.
    pub bar: f64,
    scenario: Box<dyn Fn(u64) -> String>,
    seconds: u64,
}

impl Case {
    /// The compiled scenario, of a `part`-th of the usual length, but at least one second.
    pub fn scenario(&self, part: u64) -> String {
        (self.scenario)((self.seconds / part).max(1))
    }
}

const GIGABIT: u64 = 1_000_000_000;
/// Parts per billion.
const PERCENT: u64 = 10_000_000;

pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: String, bar: f64, seconds: u64, scenario: Box<dyn Fn(u64) -> String>| {
        cases.push(Case { name, bar, scenario, seconds });
    };
    // Where nothing is marked DCTCP is Reno.
    for cc in Algorithm::names().filter(|&cc| cc != "dctcp") {
        for gigabits in [1, 10] {
            for percent in [0, 1] {
                let bar = match (percent, cc) {
                    (_, "bbr3") => 3e6,
                    (0, "bbr") => 2.5e6,
                    (0, _) => 5e6,
                    _ => 1e6,
                };
                let name = format!("chain of 5, {cc}, {gigabits} Gbit/s, {percent}% loss");
                let run = move |seconds| chain(5, gigabits * GIGABIT, percent * PERCENT, cc, seconds);
                // Where loss is the limit the rate does not matter.
                let seconds = if percent == 0 || cc.starts_with("bbr") { 30 / gigabits } else { 60 };
                add(name, bar, seconds, Box::new(run));
            }
        }
    }
    add("chain of 21, cubic, 1 Gbit/s, 0% loss".into(), 1e6, 15, Box::new(|s| chain(21, GIGABIT, 0, "cubic", s)));
    for cc in ["cubic", "bbr"] {
        for (flows, count, bar) in [(1, "1", 1e6), (100, "100", 1e6), (1_000, "1,000", 2.5e6)] {
            add(format!("bottleneck, {count} {cc}"), bar, 30, Box::new(move |s| bottleneck(flows, cc, s)));
        }
    }
    add("bottleneck, 1 cubic, CoDel and ECN".into(), 4e6, 30, Box::new(|s| held(1, CODEL, s)));
    add("bottleneck, 100 cubic, fq_codel".into(), 2e6, 30, Box::new(|s| held(100, FQ_CODEL, s)));
    add("bottleneck, 100 cubic, cake".into(), 1e6, 30, Box::new(|s| held(100, CAKE, s)));
    add("bottleneck, 1 cubic, a trace".into(), 4e6, 300, Box::new(traced));
    add("bottleneck, 10,000 transfers a second".into(), 1e6, 30, Box::new(transfers));
    cases
}

const CODEL: &str = r#"{"codel": {"target_ns": 5000000, "interval_ns": 100000000, "ecn": true}}"#;
const FQ_CODEL: &str = r#"{"fq_codel": {"target_ns": 5000000, "interval_ns": 100000000, "flows": 1024, "ecn": true}}"#;
const CAKE: &str = r#"{"cake": {"target_ns": 5000000, "interval_ns": 100000000, "isolation": "triple-isolate",
    "memory_bytes": 4194304}}"#;

/// Flows of hosts with ECN over the bottleneck, whose queue holds its packets.
fn held(flows: usize, discipline: &str, seconds: u64) -> String {
    bottleneck(flows, "cubic", seconds)
        .replace(r#""offload": false"#, r#""offload": false, "ecn": 1"#)
        .replace(r#""queue_bytes": null"#, &format!(r#""queue_bytes": null, "discipline": {discipline}"#))
}

/// One flow over a bottleneck whose rate is a trace's: between 0 and 12 packets a millisecond, a second long.
fn traced(seconds: u64) -> String {
    let times: Vec<u64> =
        (1..=1_000).flat_map(|ms: u64| std::iter::repeat_n(ms, (ms * ms / 5 % 13) as usize)).collect();
    let pace = format!(r#"{{"trace": {{"times_ms": {times:?}, "period_ms": 1000, "bytes": 1514}}}}"#);
    bottleneck(1, "cubic", seconds)
        .replace(r#""queue_bytes": null"#, &format!(r#""queue_bytes": null, "pace": {pace}"#))
}

/// Transfers of 10 kB each that come at random.
fn transfers(seconds: u64) -> String {
    let arrivals = r#"{"times": {"poisson_ns": 100000}, "sizes": {"fixed": 10000}, "open": 10000}"#;
    bottleneck(1, "cubic", seconds).replace(r#""bytes": null,"#, &format!(r#""bytes": null, "arrivals": {arrivals},"#))
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

/// A chain of hosts with one card each, shared by both directions; loss on the third link.
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

/// One flow for an hour over 20 ms, whose own card is the bottleneck.
pub fn hour() -> String {
    let transmitters = [transmitter("b", 10 * GIGABIT, 4_000)];
    let links = [link(0, 1, Some(0), 10_000_000, 0), link(1, 0, None, 10_000_000, 0)];
    scenario(3_600, 2, &transmitters, &links, &flow("cubic", 1, "[0]", "[1]"))
}

/// Many flows over one bottleneck of 1 Gbit/s with 48 ms of queue and 20 ms of delay.
fn bottleneck(flows: usize, cc: &str, seconds: u64) -> String {
    let transmitters = [transmitter("b", 1_000_000_000, 4_000)];
    let links = [link(0, 1, Some(0), 10_000_000, 0), link(1, 0, None, 10_000_000, 0)];
    scenario(seconds, 2, &transmitters, &links, &flow(cc, flows, "[0]", "[1]"))
}
