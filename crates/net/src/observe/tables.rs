//! Reported rows in columns, taken in batches so that memory does not grow with the simulated time.

use sawtooth_units::Time;

/// A column of one of the three types in tables.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    Float(Vec<f64>),
    Integer(Vec<i64>),
}

/// Declares a table: a struct of typed columns, a `push` of one row, and its columns by name.
macro_rules! table {
    ($(#[$doc:meta])* $name:ident, $row:ident { $($(#[$field_doc:meta])* $field:ident: $type:ident),+ $(,)? }) => {
        #[doc = concat!("A row of [`", stringify!($name), "`].")]
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $row { $($(#[$field_doc])* pub $field: $type),+ }

        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $name { $($field: Vec<$type>),+ }

        impl $name {
            pub fn push(&mut self, row: $row) {
                $(self.$field.push(row.$field);)+
            }
            /// Takes the rows since the last call, as columns by name.
            pub fn take(&mut self) -> Vec<(&'static str, Column)> {
                vec![$((stringify!($field), column(std::mem::take(&mut self.$field)))),+]
            }
        }
    };
}

trait Cell {
    fn column(values: Vec<Self>) -> Column
    where
        Self: Sized;
}
impl Cell for f64 {
    fn column(values: Vec<f64>) -> Column {
        Column::Float(values)
    }
}
impl Cell for i64 {
    fn column(values: Vec<i64>) -> Column {
        Column::Integer(values)
    }
}
fn column<T: Cell>(values: Vec<T>) -> Column {
    T::column(values)
}

table! {
    /// Each flow in each interval.
    Intervals, Interval {
        t_s: f64, flow: i64, goodput_bps: f64, segments_out: i64, retransmits: i64, timeouts: i64, tail_probes: i64,
        window_probes: i64,
    }
}
table! {
    /// Senders at the end of each interval.
    TcpInfos, TcpInfo {
        t_s: f64, flow: i64, connection: i64, cwnd_segments: i64,
        /// -1: not set yet.
        ssthresh_segments: i64,
        srtt_s: f64, min_rtt_s: f64, rto_s: f64, in_flight_segments: i64,
        /// NaN: not limited.
        pacing_bps: f64,
        /// NaN: no sample yet.
        delivery_bps: f64,
        delivered_segments: i64, delivered_ce_segments: i64, lost_segments: i64, state: i64, rwnd_limited_s: f64, sndbuf_limited_s: f64,
    }
}
table! {
    /// Transmitters in each interval.
    Queues, Queue {
        t_s: f64, transmitter: i64, packets: i64, bytes: i64, mean_packets: f64, drops: i64, sent_packets: i64, sent_bytes: i64,
        early_drops: i64, marks: i64,
        /// NaN, like the others: none left, or departures are known on arrival.
        delay_mean_s: f64, delay_p50_s: f64, delay_p95_s: f64, delay_p99_s: f64,
        /// NaN, like the flows: tc reports none there, or it is unknown.
        overlimits: f64, new_flow_count: f64, new_flows: f64, old_flows: f64,
    }
}
table! {
    /// Losses by the loss model, and drops by the policer, in each interval, for links that have one of them.
    Losses, Loss { t_s: f64, link: i64, lost: i64, policed: i64 }
}
table! {
    /// Probes, when answered or given up.
    Probes, Probe { t_s: f64, probe: i64, rtt_s: f64 }
}
table! {
    /// Connections, when they end.
    Flows, FlowEnd {
        flow: i64, connection: i64, generation: i64, start_s: f64, end_s: f64,
        /// 0: endless.
        asked_bytes: i64,
        delivered_bytes: i64, segments_out: i64, retransmits: i64, timeouts: i64, tail_probes: i64, completed: i64,
        window_probes: i64,
    }
}
table! {
    /// What readers requested, once it is complete.
    Responses, Response {
        t_s: f64, flow: i64, connection: i64, generation: i64, number: i64, bytes: i64, response_s: f64,
    }
}
table! {
    /// Pages, once all of their objects are complete.
    Pages, Page { t_s: f64, flow: i64, reader: i64, number: i64, objects: i64, bytes: i64, load_s: f64 }
}
table! {
    /// Segments of videos, once complete.
    Segments, Segment {
        t_s: f64, flow: i64, connection: i64, number: i64, rate_bps: i64, bytes: i64, download_s: f64, buffer_s: f64,
        /// Since the previous one; for the first, until the video begins.
        stalled_s: f64,
    }
}

table! {
    /// Datagrams of a flow in each interval, as their receiver counts them (RFC 3550): lost are sequence numbers passed
    /// over minus those that arrived; out of order are those that arrived after a higher number.
    DatagramsTable, Datagrams {
        t_s: f64, flow: i64, sent: i64, received: i64, lost: i64, out_of_order: i64,
        /// One way, of received datagrams; NaN, like the others: none.
        delay_mean_s: f64, delay_p50_s: f64, delay_p95_s: f64, delay_p99_s: f64, delay_max_s: f64,
        jitter_s: f64,
    }
}

table! {
    /// What happened to senders, and to their packets in the network.
    Events, Event {
        t_s: f64, flow: i64, connection: i64,
        /// Its index in [`crate::event_names`].
        event: i64,
        /// How many were lost, marked or dropped.
        segments: i64,
        /// Before the event and after it; 0 for events in the network.
        cwnd_before_segments: i64, cwnd_segments: i64,
        /// -1: not set yet, or an event in the network.
        ssthresh_segments: i64,
        /// NaN: not paced, or an event in the network.
        pacing_bps: f64,
    }
}
table! {
    /// Packets as their hosts send them.
    SentPackets, Sent {
        t_s: f64, packet: i64, connection: i64, host: i64,
        /// 0: data, 1: an acknowledgement, 2: another packet.
        kind: i64,
        /// For data the first byte, for an acknowledgement the next expected byte.
        seq: i64,
        /// Payload bytes.
        bytes: i64,
        /// 1 for a retransmission.
        again: i64,
    }
}
table! {
    /// Where packets arrived, or where they were lost or dropped.
    Hops, Hop { t_s: f64, packet: i64, host: i64, fate: i64, marked: i64 }
}

/// What is reported at the end of each interval.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    pub intervals: Intervals,
    pub tcp_info: TcpInfos,
    pub queues: Queues,
    pub links: Losses,
    /// Present if flows send datagrams.
    pub datagrams: Option<DatagramsTable>,
}

/// Reports of hosts, which are not simulated in global time order: each row has its time.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// When they were answered or given up.
    pub probes: Vec<(Time, Probe)>,
    /// When they ended.
    pub flows: Vec<(Time, FlowEnd)>,
    /// What readers have received, if there are readers.
    pub responses: Option<Vec<(Time, Response)>>,
    pub pages: Option<Vec<(Time, Page)>>,
    pub segments: Option<Vec<(Time, Segment)>>,
    /// Events, if they are watched.
    pub events: Option<Vec<(Time, Event)>>,
}

/// A table as handed out: its name and its named columns.
pub type Table = (&'static str, Vec<(&'static str, Column)>);

impl Tables {
    /// Takes the rows since the last call.
    pub fn take(&mut self) -> Vec<Table> {
        let datagrams = self.datagrams.as_mut().map(|table| ("datagrams", table.take()));
        let mut tables = vec![
            ("intervals", self.intervals.take()),
            ("tcp_info", self.tcp_info.take()),
            ("queues", self.queues.take()),
            ("links", self.links.take()),
        ];
        tables.extend(datagrams);
        tables
    }
}

impl Reports {
    /// Takes the rows since the last call, in order of time. Rows from `before` on are kept, because others may still
    /// come before them.
    pub fn take(&mut self, before: Option<Time>) -> Vec<Table> {
        let (mut probes, mut flows) = (Probes::default(), Flows::default());
        self.probes.sort_by_key(|&(time, row)| (time, row.probe));
        settled(&mut self.probes, before).for_each(|row| probes.push(row));
        self.flows.sort_by_key(|&(time, row)| (time, row.flow, row.connection, row.generation));
        settled(&mut self.flows, before).for_each(|row| flows.push(row));
        let mut tables = vec![("probes", probes.take()), ("flows", flows.take())];
        if let Some(rows) = &mut self.responses {
            let mut table = Responses::default();
            rows.sort_by_key(|&(time, row)| (time, row.flow, row.connection));
            settled(rows, before).for_each(|row| table.push(row));
            tables.push(("responses", table.take()));
        }
        if let Some(rows) = &mut self.pages {
            let mut table = Pages::default();
            rows.sort_by_key(|&(time, row)| (time, row.flow, row.reader));
            settled(rows, before).for_each(|row| table.push(row));
            tables.push(("pages", table.take()));
        }
        if let Some(rows) = &mut self.segments {
            let mut table = Segments::default();
            rows.sort_by_key(|&(time, row)| (time, row.flow, row.connection));
            settled(rows, before).for_each(|row| table.push(row));
            tables.push(("segments", table.take()));
        }
        if let Some(rows) = &mut self.events {
            let mut table = Events::default();
            // At one instant, the sender's actions come first, in their order: only they have a window.
            let order = |row: Event| if row.cwnd_segments > 0 { 0 } else { 1 + row.event };
            rows.sort_by_key(|&(time, row)| (time, row.flow, row.connection, order(row)));
            settled(rows, before).for_each(|row| table.push(row));
            tables.push(("events", table.take()));
        }
        tables
    }
}

/// Removes the rows before `before` from `rows`, which are in order of time; without it, all rows.
fn settled<R>(rows: &mut Vec<(Time, R)>, before: Option<Time>) -> impl Iterator<Item = R> + '_ {
    let count = before.map_or(rows.len(), |before| rows.partition_point(|&(time, _)| time < before));
    rows.drain(..count).map(|(_, row)| row)
}
