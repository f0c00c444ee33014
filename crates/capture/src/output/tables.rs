//! The tables of an analysis, column by column.

use crate::analysis::connections::Connections;
use crate::analysis::round_trips::FartherHalf;
use crate::analysis::series::Interval;
use crate::analysis::shared::LossRow;
use sawtooth_units::width::{Approx, Fit};

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    Float(Vec<f64>),
    Integer(Vec<i64>),
    Unsigned(Vec<u64>),
    Medium(Vec<u32>),
    Small(Vec<u8>),
    Flag(Vec<bool>),
}

impl Column {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Column::Float(values) => values.len(),
            Column::Integer(values) => values.len(),
            Column::Unsigned(values) => values.len(),
            Column::Medium(values) => values.len(),
            Column::Small(values) => values.len(),
            Column::Flag(values) => values.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Columns by name.
pub type Table = Vec<(&'static str, Column)>;

/// Tables by name: `series` and `losses`.
pub fn tables(connections: &Connections) -> Vec<(&'static str, Table)> {
    vec![("series", series(connections)), ("losses", losses(connections))]
}

fn series(connections: &Connections) -> Table {
    let mut connection = Vec::new();
    let mut direction = Vec::new();
    let mut t_s = Vec::new();
    let mut goodput_bps = Vec::new();
    let mut packets = Vec::new();
    let mut retransmits = Vec::new();
    let mut rtt_s = Vec::new();
    let mut rtt_min_s = Vec::new();
    let mut in_flight_bytes = Vec::new();
    let mut window_bytes = Vec::new();
    let mut limit = Vec::new();
    for one in &connections.all {
        for (side, flow) in one.flows.iter().enumerate() {
            let Some(flow) = flow else { continue };
            let length_s = flow.series.length_ns().approx() / 1e9;
            let acknowledged = flow.counts.acks > 0;
            let far = flow.trips.far();
            for (end_ns, interval) in flow.series.iter() {
                let bytes = if acknowledged { interval.acknowledged } else { interval.sent };
                let (mean, least) = rtt(interval, far);
                connection.push(one.index);
                direction.push(side.fit_u8());
                t_s.push(end_ns.approx() / 1e9);
                goodput_bps.push(bytes.approx() * 8.0 / length_s);
                packets.push(interval.packets);
                retransmits.push(interval.retransmits);
                rtt_s.push(mean);
                rtt_min_s.push(least);
                in_flight_bytes.push(if interval.packets == 0 { f64::NAN } else { f64::from(interval.in_flight) });
                window_bytes.push(if interval.window == 0 { f64::NAN } else { f64::from(interval.window - 1) });
                limit.push(interval.limit);
            }
        }
    }
    vec![
        ("connection", Column::Medium(connection)),
        ("direction", Column::Small(direction)),
        ("t_s", Column::Float(t_s)),
        ("goodput_bps", Column::Float(goodput_bps)),
        ("packets", Column::Medium(packets)),
        ("retransmits", Column::Medium(retransmits)),
        ("rtt_s", Column::Float(rtt_s)),
        ("rtt_min_s", Column::Float(rtt_min_s)),
        ("in_flight_bytes", Column::Float(in_flight_bytes)),
        ("window_bytes", Column::Float(window_bytes)),
        ("limit", Column::Small(limit)),
    ]
}

/// The whole round trip in an interval, mean and smallest, in seconds: the farther half, plus the other at its
/// shortest. None if the farther half has no sample.
fn rtt(interval: &Interval, far: Option<FartherHalf>) -> (f64, f64) {
    let (sum, count, least) = match far {
        None => return (f64::NAN, f64::NAN),
        Some(FartherHalf::Receiver { .. }) => (interval.rtt_sum, interval.rtt_count, interval.rtt_min),
        Some(FartherHalf::Sender { .. }) => (interval.sender_sum, interval.sender_count, interval.sender_min),
    };
    let near_s = far.map_or(0.0, |far| far.near_ns().approx() / 1e9);
    if count == 0 {
        return (f64::NAN, f64::NAN);
    }
    (f64::from(sum) / f64::from(count) + near_s, f64::from(least) + near_s)
}

fn losses(connections: &Connections) -> Table {
    let rows = &connections.shared.losses;
    let since = |ns: u64| connections.shared.since_start(ns).approx() / 1e9;
    vec![
        ("connection", Column::Medium(rows.iter().map(|row| row.connection).collect())),
        ("direction", Column::Small(rows.iter().map(|row| row.direction).collect())),
        ("t_s", Column::Float(rows.iter().map(|row| since(row.run.time_ns)).collect())),
        ("run", Column::Medium(rows.iter().map(|row| row.run.segments).collect())),
        ("burst", Column::Medium(bursts(connections))),
        ("where", Column::Small(rows.iter().map(|row| row.run.at as u8).collect())),
    ]
}

/// The number of each row's burst within its direction.
fn bursts(connections: &Connections) -> Vec<u32> {
    let mut latest: Vec<[Option<(u32, u64, u64)>; 2]> = vec![[None; 2]; connections.all.len()];
    let number = |row: &LossRow| {
        let (connection, direction) = (row.connection as usize, usize::from(row.direction));
        let near_ns = || connections.all[connection].flows[direction].as_ref().map_or(0, |flow| flow.bursts().near_ns);
        let last = &mut latest[connection][direction];
        let (burst, last_ns, near_ns) = last.unwrap_or_else(|| (0, row.run.time_ns, near_ns()));
        let burst = burst + u32::from(row.run.time_ns.saturating_sub(last_ns) > near_ns);
        *last = Some((burst, last_ns.max(row.run.time_ns), near_ns));
        burst
    };
    connections.shared.losses.iter().map(number).collect()
}
