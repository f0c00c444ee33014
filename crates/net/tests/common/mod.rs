//! Compiled scenarios for the tests, and their tables as plain vectors.
#![allow(dead_code, reason = "each test program uses a part")]

use sawtooth_net::Simulation;
use sawtooth_net::scenario::Scenario;
use sawtooth_net::tables::{Column, Table};
use sawtooth_units::Time;
use serde_json::{Value, json};

pub const GIGABIT: u64 = 1_000_000_000;
pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;
/// Parts per billion in a percent.
pub const PERCENT: u64 = 10_000_000;
/// Payload and frame of a full segment in bytes.
pub const MSS: u64 = 1_448;
pub const FRAME: u64 = 1_514;

pub fn host(name: &str) -> Value {
    json!({"name": name, "hz": 250, "mss": MSS, "initial_window": 10, "receive_buffer": 64 << 20,
        "send_buffer": 64 << 20, "delayed_ack": true, "sack": true, "timestamps": true, "offload": false})
}
pub fn transmitter(name: &str, rate_bps: u64, queue_packets: u64) -> Value {
    json!({"name": name, "rate_bps": rate_bps, "queue_packets": queue_packets, "queue_bytes": null})
}
pub fn link(from: usize, to: usize, transmitter: Option<usize>, delay_ns: u64, loss_ppb: u64) -> Value {
    json!({"name": format!("{from}>{to}"), "from": from, "to": to, "transmitter": transmitter, "delay_ns": delay_ns,
        "loss_ppb": loss_ppb, "overhead_bytes": 0})
}
pub fn flow(cc: &str, count: usize, forward: &[usize], backward: &[usize]) -> Value {
    json!({"name": cc, "cc": cc, "count": count, "start_ns": 0, "duration_ns": null, "bytes": null, "lifetime_ns": null,
        "forward": forward, "backward": backward})
}

/// Probes over the whole of a [`Path`].
pub fn probe(interval_ns: u64, count: u64) -> Value {
    json!({"name": "ping", "start_ns": 0, "interval_ns": interval_ns, "count": count, "forward": [0, 1],
        "backward": [2]})
}

/// One bottleneck: `sender → router` has the rate and the queue, `router → receiver` the loss and half of the round
/// trip; the return path is unlimited.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub cc: &'static str,
    pub count: usize,
    pub rate_bps: u64,
    pub rtt_ns: u64,
    pub queue_packets: u64,
    pub loss_ppb: u64,
    pub duration_ns: u64,
    pub seed: u64,
}

/// Two flows of Reno, long enough for queues to stand.
pub const LONG: Path = Path {
    cc: "reno",
    count: 2,
    rate_bps: 20_000_000,
    rtt_ns: 40 * MS,
    queue_packets: 1000,
    loss_ppb: 0,
    duration_ns: 20 * SECOND,
    seed: 1,
};

impl Default for Path {
    fn default() -> Self {
        Path {
            cc: "cubic",
            count: 1,
            rate_bps: 100_000_000,
            rtt_ns: 20 * MS,
            queue_packets: 200,
            loss_ppb: 0,
            duration_ns: 2 * SECOND,
            seed: 1,
        }
    }
}

impl Path {
    pub fn json(&self) -> Value {
        let half = self.rtt_ns / 2;
        json!({"duration_ns": self.duration_ns, "interval_ns": 100 * MS, "seed": self.seed,
            "hosts": [host("sender"), host("router"), host("receiver")],
            "transmitters": [transmitter("bottleneck", self.rate_bps, self.queue_packets)],
            "links": [link(0, 1, Some(0), 0, 0), link(1, 2, None, half, self.loss_ppb), link(2, 0, None, half, 0)],
            "flows": [flow(self.cc, self.count, &[0, 1], &[2])], "probes": []})
    }
    pub fn simulation(&self) -> Simulation {
        simulation(&self.json())
    }
    pub fn run(&self) -> Run {
        Run::of(&self.json())
    }
}

/// Five hosts in a row, each with one card that everything which leaves the host shares.
pub fn chain(cc: &str, rate_bps: u64, rtt_ns: u64, loss_ppb: u64, duration_ns: u64) -> Value {
    let names = ["h1", "h2", "h3", "h4", "h5"];
    let delay = rtt_ns / 8;
    let forth = (0..4).map(|i| link(i, i + 1, Some(i), delay, if i == 2 { loss_ppb } else { 0 }));
    let back = (0..4).map(|i| link(4 - i, 3 - i, Some(4 - i), delay, 0));
    json!({"duration_ns": duration_ns, "interval_ns": 100 * MS, "seed": 1, "hosts": names.map(host),
        "transmitters": names.map(|name| transmitter(name, rate_bps, 1_000)),
        "links": forth.chain(back).collect::<Vec<_>>(),
        "flows": [flow(cc, 1, &[0, 1, 2, 3], &[4, 5, 6, 7])], "probes": []})
}

pub fn simulation(scenario: &Value) -> Simulation {
    Simulation::new(Scenario::parse(&scenario.to_string()).expect("the scenario is valid"))
}

/// A finished run and all its tables.
pub struct Run {
    pub simulation: Simulation,
    pub tables: Vec<Table>,
}

impl Run {
    pub fn of(scenario: &Value) -> Self {
        let mut simulation = simulation(scenario);
        while !simulation.advance(Time::NEVER, u64::MAX) {}
        let tables = simulation.take();
        Run { simulation, tables }
    }
    pub fn integers(&self, table: &str, column: &str) -> Vec<i64> {
        match find(&self.tables, table, column) {
            Column::Integer(values) => values.clone(),
            Column::Float(_) => panic!("{table}.{column} is a float"),
        }
    }
    pub fn floats(&self, table: &str, column: &str) -> Vec<f64> {
        match find(&self.tables, table, column) {
            Column::Float(values) => values.clone(),
            Column::Integer(_) => panic!("{table}.{column} is an integer"),
        }
    }
    /// Sum of an integer column.
    pub fn sum(&self, table: &str, column: &str) -> u64 {
        self.integers(table, column).iter().sum::<i64>() as u64
    }
    /// Mean goodput of the intervals after `warmup_s` in bit/s.
    pub fn goodput_bps(&self, warmup_s: f64) -> f64 {
        let rows = self.floats("intervals", "t_s").into_iter().zip(self.floats("intervals", "goodput_bps"));
        let kept: Vec<f64> = rows.filter(|&(t_s, _)| t_s > warmup_s + 1e-9).map(|(_, bps)| bps).collect();
        kept.iter().sum::<f64>() / kept.len() as f64
    }
}

pub fn find<'a>(tables: &'a [Table], table: &str, column: &str) -> &'a Column {
    let (_, columns) = tables.iter().find(|(name, _)| *name == table).expect("the table exists");
    &columns.iter().find(|(name, _)| *name == column).expect("the column exists").1
}

/// All bits of all tables, so that missing values compare equal.
pub fn bits(tables: &[Table]) -> Vec<(&'static str, &'static str, Vec<u64>)> {
    let cells = |column: &Column| match column {
        Column::Float(values) => values.iter().map(|value| value.to_bits()).collect(),
        Column::Integer(values) => values.iter().map(|&value| value as u64).collect(),
    };
    tables
        .iter()
        .flat_map(|(table, columns)| columns.iter().map(|(name, column)| (*table, *name, cells(column))))
        .collect()
}
