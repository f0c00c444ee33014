//! The facts of a capture and of each connection, as JSON; the reference of captures defines every field.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::analysis::capture_point::CapturePoint;
use crate::analysis::connection::Connection;
use crate::analysis::counts::{Counts, Unseen, Volume};
use crate::analysis::end::End;
use crate::analysis::flow::Flow;
use crate::analysis::limits::Limit;
use crate::analysis::quantiles::Summary;
use crate::analysis::round_trips::FartherHalf;
use crate::decode::segment::Endpoint;
use crate::output::loss_facts::LossFacts;
use crate::output::verdict::verdict;
use sawtooth_units::width::Approx;

#[derive(Debug, Serialize)]
pub struct Facts {
    pub file: String,
    pub packets: u64,
    pub bytes: u64,
    pub first_s: f64,
    pub last_s: f64,
    pub link_types: Vec<String>,
    pub truncated_packets: u64,
    pub not_tcp: u64,
    pub not_looked_into: BTreeMap<&'static str, u64>,
    pub fragments: u64,
    pub unreadable: u64,
    pub copies: u64,
    pub problems: Vec<String>,
    pub connections: Vec<ConnectionFacts>,
}

#[derive(Debug, Serialize)]
pub struct ConnectionFacts {
    pub index: u32,
    pub client: String,
    pub server: String,
    pub start_s: f64,
    pub end_s: f64,
    pub closed: &'static str,
    pub handshake: Handshake,
    pub capture_point: CapturePoint,
    pub directions: Vec<DirectionFacts>,
}

#[derive(Debug, Serialize)]
pub struct Handshake {
    pub seen: bool,
    pub rtt_client_s: Option<f64>,
    pub rtt_server_s: Option<f64>,
    pub ecn: Option<bool>,
    pub sack: Option<bool>,
    pub timestamps: Option<bool>,
    pub client: Option<SynOptions>,
    pub server: Option<SynOptions>,
}

/// The offers of a SYN or SYN-ACK.
#[derive(Debug, Serialize)]
pub struct SynOptions {
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
    pub window_bytes: u16,
    pub retransmits: u16,
}

#[derive(Debug, Serialize)]
pub struct DirectionFacts {
    pub from: &'static str,
    pub packets: u64,
    /// Repeated FINs, for an end that sends no data.
    #[serde(rename = "retransmits", skip_serializing_if = "Option::is_none")]
    pub fins_again: Option<u16>,
    #[serde(flatten)]
    pub data: Option<DataFacts>,
}

#[derive(Debug, Default, Serialize)]
pub struct DataFacts {
    pub mss: u32,
    #[serde(flatten)]
    pub volume: Volume,
    pub first_data_s: f64,
    pub last_data_s: f64,
    pub duration_s: f64,
    pub goodput_bps: Option<f64>,
    #[serde(flatten)]
    pub counts: Counts,
    pub ce_marks: u64,
    pub ecn_echoes: u64,
    pub window_reductions: u64,
    pub rtt: Trips,
    pub limits: LimitTimes,
    pub loss: LossFacts,
    #[serde(flatten)]
    pub unseen: Unseen,
    /// Pairs of a question and its answer in a sentence.
    pub verdict: [(&'static str, String); 3],
}

#[derive(Debug, Default, Serialize)]
pub struct Trips {
    pub base_s: Option<f64>,
    pub whole: Option<Summary>,
    /// "receiver" or "sender": the half that `whole` measures, plus the other half at its shortest.
    pub far: Option<&'static str>,
    pub near_s: Option<f64>,
    pub sequence: Option<Summary>,
    pub receiver_timestamps: Option<Summary>,
    pub sender_timestamps: Option<Summary>,
}

/// Seconds from the first to the last segment with data, by what limited the sender.
#[derive(Debug, Default, Serialize)]
pub struct LimitTimes {
    pub unknown_s: f64,
    pub sender_s: f64,
    pub receiver_window_s: f64,
    pub congestion_window_s: f64,
    pub path_s: f64,
    pub idle_s: f64,
}

impl LimitTimes {
    fn of(flow: &Flow) -> Self {
        let of = |limit: Limit| seconds(flow.limits.totals_ns[limit as usize]);
        LimitTimes {
            unknown_s: of(Limit::Unknown),
            sender_s: of(Limit::Sender),
            receiver_window_s: of(Limit::ReceiverWindow),
            congestion_window_s: of(Limit::CongestionWindow),
            path_s: of(Limit::Path),
            idle_s: of(Limit::Idle),
        }
    }
}

impl ConnectionFacts {
    /// `start_ns` is the capture's start.
    pub fn of(connection: &Connection, start_ns: u64) -> Self {
        let since = |ns: u64| ns.saturating_sub(start_ns).approx() / 1e9;
        let [client, server] = connection.endpoints;
        ConnectionFacts {
            index: connection.index,
            client: text(client),
            server: text(server),
            start_s: since(connection.start_ns),
            end_s: since(connection.end_ns),
            closed: closed(&connection.ends),
            handshake: Handshake::of(connection),
            capture_point: CapturePoint::of(connection),
            directions: (0..2).map(|side| DirectionFacts::of(connection, side, start_ns)).collect(),
        }
    }
}

fn text(end: Endpoint) -> String {
    std::net::SocketAddr::new(end.address, end.port).to_string()
}

fn closed(ends: &[End; 2]) -> &'static str {
    if ends.iter().all(|end| end.fin) {
        "fin"
    } else if ends.iter().any(|end| end.reset) {
        "reset"
    } else {
        "open"
    }
}

impl Handshake {
    fn of(connection: &Connection) -> Self {
        let (server_ns, client_ns) = connection.handshake_trips_ns();
        let offer = |side: usize| connection.ends[side].syn.as_ref().map(SynOptions::of);
        Handshake {
            seen: connection.handshake_seen(),
            rtt_client_s: client_ns.map(seconds),
            rtt_server_s: server_ns.map(seconds),
            ecn: connection.offered(|syn| syn.ecn),
            sack: connection.sack(),
            timestamps: connection.offered(|syn| syn.timestamps),
            client: offer(0),
            server: offer(1),
        }
    }
}

impl SynOptions {
    fn of(syn: &crate::analysis::end::Syn) -> Self {
        SynOptions {
            mss: syn.mss,
            window_scale: syn.window_scale,
            sack: syn.sack,
            timestamps: syn.timestamps,
            ecn: syn.ecn,
            window_bytes: syn.window,
            retransmits: syn.copies - 1,
        }
    }
}

impl DirectionFacts {
    fn of(connection: &Connection, side: usize, start_ns: u64) -> Self {
        DirectionFacts {
            from: ["client", "server"][side],
            packets: connection.ends[side].packets,
            fins_again: connection.flows[side].is_none().then_some(connection.ends[side].fins_again),
            data: connection.flows[side].as_ref().map(|flow| DataFacts::of(connection, side, flow, start_ns)),
        }
    }
}

impl DataFacts {
    fn of(connection: &Connection, side: usize, flow: &Flow, start_ns: u64) -> Self {
        let duration_s = seconds(flow.last_ns.saturating_sub(flow.first_ns));
        let bytes = if flow.counts.acks > 0 { flow.volume.acknowledged_bytes } else { flow.volume.new_bytes };
        let since = |ns: u64| seconds(ns.saturating_sub(start_ns));
        let (sender, receiver) = (&connection.ends[side], &connection.ends[1 - side]);
        let rtt = Trips {
            base_s: flow.trips.base_ns().map(|ns| ns / 1e9),
            whole: flow.trips.whole(),
            far: flow
                .trips
                .far()
                .map(|far| if matches!(far, FartherHalf::Sender { .. }) { "sender" } else { "receiver" }),
            near_s: flow.trips.far().map(|far| seconds(far.near_ns())),
            sequence: flow.trips.sequence.summary(),
            receiver_timestamps: flow.trips.receiver_echo.summary(),
            sender_timestamps: flow.trips.sender_echo.summary(),
        };
        let mut facts = DataFacts {
            mss: connection.mss(side),
            volume: flow.volume,
            first_data_s: since(flow.first_ns),
            last_data_s: since(flow.last_ns),
            duration_s,
            goodput_bps: (duration_s > 0.0).then(|| bytes.approx() * 8.0 / duration_s),
            counts: flow.counts,
            ce_marks: sender.marked,
            ecn_echoes: receiver.echoes,
            window_reductions: sender.reduced,
            rtt,
            limits: LimitTimes::of(flow),
            loss: LossFacts::of(connection, side, flow),
            unseen: flow.unseen,
            verdict: Default::default(),
        };
        facts.verdict = verdict(&facts);
        facts
    }
}

pub fn seconds(ns: u64) -> f64 {
    ns.approx() / 1e9
}
