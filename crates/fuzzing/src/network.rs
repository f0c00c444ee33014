//! Makes compiled scenarios from arbitrary bytes. The core accepts most of them, and they use its extreme values.

use sawtooth_tcp::cc::Algorithm;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const HOUR: u64 = 3_600 * SECOND;
const MONTH: u64 = 720 * HOUR;

const DURATIONS: [u64; 8] = [20 * MS, SECOND, 1, MS, 300 * MS, 60 * SECOND, HOUR, MONTH];
const INTERVALS: [u64; 4] = [MS, 100 * MS, 7 * MS, MONTH];
const HZ: [u64; 6] = [250, 100, 300, 1_000, 10, 10_000];
const MSS: [u64; 8] = [1_448, 48, 1, 536, 537, 8_948, 65_400, 100];
const WINDOWS: [u64; 5] = [10, 1, 2, 3, 1_000];
const BUFFERS: [u64; 8] = [64 << 20, 4_096, 6_000, 1_024, 65_536, 6 << 20, 1 << 30, 1 << 40];
const RATES: [u64; 8] =
    [100_000_000, 1_000_000_000, 1, 9_600, 1_000_000, 10_000_000, 10_000_000_000_000, 100_000_000_000_000];
const QUEUES: [u64; 8] = [1_000, 1, 0, 2, 10, 100, 1_000_000_000, u64::MAX];
const DELAYS: [u64; 12] = [MS, 0, 1, 999, 1_000, 1_001, 50_000, 400_000, 10 * MS, 70 * MS, HOUR, MONTH];
const LOSSES: [u64; 6] = [0, 1, 10_000_000, 100_000_000, 500_000_000, 1_000_000_000];
const OVERHEADS: [u64; 4] = [0, 38, 1_000, 65_535];
const SPANS: [u64; 8] = [MS, 1, 2 * MS, 17 * MS, 300 * MS, SECOND, HOUR, MONTH];
const SIZES: [u64; 6] = [1_000_000, 1, 1_448, 1_449, 10_000, 1_000_000_000_000_000];
const STARTS: [u64; 6] = [0, 1, 999_999, MS, 10 * MS, HOUR];
const COUNTS: [u64; 6] = [1, 2, 3, 7, 40, 0];

/// Bytes that are read one after the other; zeros after the end.
struct Draw<'a>(&'a [u8]);

impl Draw<'_> {
    fn byte(&mut self) -> usize {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        usize::from(*first)
    }
    fn of<const N: usize>(&mut self, values: &[u64; N]) -> u64 {
        values[self.byte() % N]
    }
    /// None in most cases.
    fn optional<const N: usize>(&mut self, values: &[u64; N]) -> Option<u64> {
        let which = self.byte();
        (which >= 192).then(|| values[which % N])
    }
}

/// A ring of hosts, each connected to the next by one or two links, so that every host reaches every other; and
/// additional links.
pub fn scenario(bytes: &[u8]) -> Value {
    let mut draw = Draw(bytes);
    let (duration_ns, interval_ns, seed) = (draw.of(&DURATIONS), draw.of(&INTERVALS), draw.byte());
    let count = 2 + draw.byte() % 4;
    let hosts: Vec<Value> = (0..count).map(|_| host(&mut draw)).collect();
    let mut transmitters = Vec::new();
    let mut links = Vec::new();
    let mut cards = vec![None; count];
    for from in 0..count {
        links.push(link(&mut draw, from, (from + 1) % count, &mut transmitters, &mut cards));
    }
    for _ in 0..draw.byte() % 4 {
        let (from, to) = (draw.byte() % count, draw.byte() % count);
        links.push(link(&mut draw, from, to, &mut transmitters, &mut cards));
    }
    let flows: Vec<Value> = (0..1 + draw.byte() % 3).map(|_| flow(&mut draw, &links, count)).collect();
    let probes: Vec<Value> = (0..draw.byte() % 3).map(|_| probe(&mut draw, &links, count)).collect();
    json!({"duration_ns": duration_ns, "interval_ns": interval_ns, "seed": seed, "hosts": hosts,
        "transmitters": transmitters, "links": links, "flows": flows, "probes": probes})
}

fn host(draw: &mut Draw) -> Value {
    let set = draw.byte();
    let gro_ns = (set & 48 == 48).then_some(50_000);
    json!({"name": "h", "gro_ns": gro_ns, "hz": draw.of(&HZ), "mss": draw.of(&MSS), "initial_window": draw.of(&WINDOWS),
        "receive_buffer": draw.of(&BUFFERS), "send_buffer": draw.of(&BUFFERS), "delayed_ack": set & 1 == 0,
        "sack": set & 2 == 0, "timestamps": set & 4 == 0, "offload": set & 8 != 0})
}

fn link(draw: &mut Draw, from: usize, to: usize, transmitters: &mut Vec<Value>, cards: &mut [Option<usize>]) -> Value {
    let transmitter = match draw.byte() % 4 {
        0 => None,
        // The host's card.
        1 if cards[from].is_some() => cards[from],
        _ => {
            let (rate_bps, limit, in_bytes) = (draw.of(&RATES), draw.of(&QUEUES), draw.byte());
            let (packets, bytes) = match in_bytes % 4 {
                0 => (None, Some(limit)),
                1 => (None, None),
                _ => (Some(limit), None),
            };
            transmitters
                .push(json!({"name": "t", "rate_bps": rate_bps, "queue_packets": packets, "queue_bytes": bytes}));
            cards[from] = Some(transmitters.len() - 1);
            cards[from]
        }
    };
    let loss_ppb = draw.optional(&LOSSES).unwrap_or(0);
    let pattern = match draw.byte() {
        0..192 => Value::Null,
        many @ 192..216 => json!({"every": many - 191}),
        first @ 216..224 => json!({"packets": [first - 215, first - 214, first - 200]}),
        _ => json!({"gilbert_elliott": {"p_ppb": draw.of(&LOSSES), "r_ppb": draw.of(&LOSSES),
            "bad_ppb": draw.of(&LOSSES), "good_ppb": draw.of(&LOSSES)}}),
    };
    json!({"name": "l", "from": from, "to": to, "transmitter": transmitter, "delay_ns": draw.of(&DELAYS),
        "loss_ppb": loss_ppb, "loss_pattern": pattern, "overhead_bytes": draw.optional(&OVERHEADS).unwrap_or(0)})
}

/// A route along the ring, choosing at each step one of the links that lead forward.
fn route(draw: &mut Draw, links: &[Value], count: usize, from: usize, to: usize) -> Vec<usize> {
    let mut way = Vec::new();
    let mut here = from;
    while here != to {
        let next = (here + 1) % count;
        let leads = |link: &Value| link["from"] == json!(here) && link["to"] == json!(next);
        let all: Vec<usize> = (0..links.len()).filter(|&index| leads(&links[index])).collect();
        way.push(all[draw.byte() % all.len()]);
        here = next;
    }
    way
}

fn ends(draw: &mut Draw, count: usize) -> (usize, usize) {
    let from = draw.byte() % count;
    (from, (from + 1 + draw.byte() % (count - 1)) % count)
}

fn flow(draw: &mut Draw, links: &[Value], count: usize) -> Value {
    let cc = Algorithm::ALL[draw.byte() % Algorithm::ALL.len()].name();
    let (from, to) = ends(draw, count);
    let lifetime = draw.optional(&SPANS).map(|low| [low, low.max(draw.of(&SPANS))]);
    let mut flow = json!({"name": cc, "cc": cc, "count": draw.of(&COUNTS), "start_ns": draw.of(&STARTS),
        "duration_ns": draw.optional(&SPANS), "bytes": draw.optional(&SIZES), "lifetime_ns": lifetime,
        "forward": route(draw, links, count, from, to), "backward": route(draw, links, count, to, from)});
    let kind = draw.byte();
    if kind >= 192 {
        (flow["bytes"], flow["lifetime_ns"]) = (Value::Null, Value::Null);
    }
    match kind {
        0..192 => {}
        192..224 => {
            flow["count"] = json!(1);
            flow["arrivals"] = arrivals(draw);
        }
        _ => {
            flow["datagrams"] = json!({"bytes": draw.of(&SIZES), "rate_bps": draw.of(&RATES), "poisson": kind > 240});
        }
    }
    if let Some(requests) = requests(draw) {
        flow["asks"] = requests;
        flow["bytes"] = Value::Null;
        flow["lifetime_ns"] = Value::Null;
    }
    flow
}

/// Transfers that start at random times, at most a few thousand per second.
fn arrivals(draw: &mut Draw) -> Value {
    let sizes = match draw.byte() % 4 {
        0 => json!({"fixed": draw.of(&SIZES)}),
        1 => json!({"lognormal": {"mean_bytes": draw.of(&SIZES), "sigma_ppb": draw.of(&LOSSES)}}),
        2 => json!({"pareto": {"least_bytes": 1, "most_bytes": draw.of(&SIZES), "shape_ppb": 1_200_000_000}}),
        _ => json!({"cdf": [[draw.of(&SIZES), 0], [draw.of(&SIZES), 1_000_000_000]]}),
    };
    json!({"times": {"poisson_ns": MS.max(draw.of(&SPANS))}, "sizes": sizes, "open": 1 + draw.byte()})
}

/// Requests of the receiving host; none in most cases.
fn requests(draw: &mut Draw) -> Option<Value> {
    let bytes = draw.optional(&SIZES)?;
    let sizes = match draw.byte() % 3 {
        0 => json!({"fixed": bytes}),
        1 => json!({"lognormal": {"mean_bytes": bytes, "sigma_ppb": draw.of(&LOSSES)}}),
        _ => json!({"pareto": {"least_bytes": 1, "most_bytes": bytes, "shape_ppb": 1 + draw.of(&LOSSES)}}),
    };
    let span = draw.of(&SPANS);
    let think =
        if draw.byte().is_multiple_of(2) { json!({"fixed_ns": span - 1}) } else { json!({"exponential_ns": span}) };
    Some(match draw.byte() % 3 {
        0 => json!({"requests": {"sizes": sizes, "think": think}}),
        1 => {
            json!({"pages": {"objects": 1 + draw.byte(), "sizes": sizes, "think": think, "connections": draw.of(&COUNTS),
            "keep": draw.byte().is_multiple_of(2)}})
        }
        _ => {
            let rate = draw.of(&RATES);
            let rule = ["buffer", "throughput"][draw.byte() % 2];
            json!({"video": {"rates_bps": [rate, rate + 1_000], "segment_ns": span, "buffer_ns": span + draw.of(&SPANS),
                "rule": rule}})
        }
    })
}

fn probe(draw: &mut Draw, links: &[Value], count: usize) -> Value {
    let (from, to) = ends(draw, count);
    json!({"name": "p", "start_ns": draw.of(&STARTS), "interval_ns": 1_000.max(draw.of(&SPANS)),
        "count": 1 + draw.byte() * 100, "forward": route(draw, links, count, from, to),
        "backward": route(draw, links, count, to, from)})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::input;
    use sawtooth_net::scenario::Scenario;

    #[test]
    fn most_networks_are_valid() {
        // Every eighth input is made of random bytes only.
        let taken = (0..400).filter(|number| {
            let bytes = input(&[], 1, 8 * number + 7);
            Scenario::parse(&scenario(&bytes).to_string()).is_ok()
        });
        let taken = taken.count();
        assert!(taken > 200, "{taken} of 400");
    }
}
