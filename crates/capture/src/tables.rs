//! The tables of an analysis, column by column.

use crate::connections::Connections;
use crate::series::Interval;

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
    /// Rows.
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

/// Tables by name: `series`, `losses`, and `segments` and `sacks` where a connection's details were wanted.
pub fn tables(connections: &mut Connections) -> Vec<(&'static str, Table)> {
    let mut all = vec![("series", series(connections)), ("losses", losses(connections))];
    if let Some(details) = connections.take_details() {
        let segments = vec![
            ("t_s", Column::Float(details.t_s)),
            ("direction", Column::Small(details.direction)),
            ("seq", Column::Integer(details.seq)),
            ("length", Column::Medium(details.length)),
            ("ack", Column::Integer(details.ack)),
            ("window", Column::Unsigned(details.window)),
            ("flags", Column::Small(details.flags)),
            ("kind", Column::Small(details.kind)),
            ("tsval", Column::Integer(details.tsval)),
            ("tsecr", Column::Integer(details.tsecr)),
            ("rtt_s", Column::Float(details.rtt_s)),
            ("frame", Column::Unsigned(details.frame)),
        ];
        let sacks = vec![
            ("segment", Column::Unsigned(details.sack_segment)),
            ("start", Column::Integer(details.sack_start)),
            ("end", Column::Integer(details.sack_end)),
            ("dsack", Column::Flag(details.sack_dsack)),
        ];
        all.extend([("segments", segments), ("sacks", sacks)]);
    }
    all
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
            let length_s = flow.series.length_ns() as f64 / 1e9;
            let acknowledged = flow.counts.acks > 0;
            for (end_ns, interval) in flow.series.iter() {
                let bytes = if acknowledged { interval.acknowledged } else { interval.sent };
                let (mean, least) = rtt(interval);
                connection.push(one.index);
                direction.push(side as u8);
                t_s.push(end_ns as f64 / 1e9);
                goodput_bps.push(bytes as f64 * 8.0 / length_s);
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

/// Both halves of the round trip, as far as they are known: mean and least, in seconds. The sender's alone is no round trip.
fn rtt(interval: &Interval) -> (f64, f64) {
    if interval.rtt_count == 0 {
        return (f64::NAN, f64::NAN);
    }
    let sender = f64::from(interval.sender_min);
    let mean = f64::from(interval.rtt_sum) / f64::from(interval.rtt_count);
    (mean + sender, f64::from(interval.rtt_min) + sender)
}

fn losses(connections: &Connections) -> Table {
    let rows = &connections.shared.losses;
    let since = |ns: u64| connections.shared.since_start(ns) as f64 / 1e9;
    vec![
        ("connection", Column::Medium(rows.iter().map(|row| row.connection).collect())),
        ("direction", Column::Small(rows.iter().map(|row| row.direction).collect())),
        ("t_s", Column::Float(rows.iter().map(|row| since(row.run.time_ns)).collect())),
        ("run", Column::Medium(rows.iter().map(|row| row.run.segments).collect())),
        ("where", Column::Small(rows.iter().map(|row| row.run.at as u8).collect())),
    ]
}
