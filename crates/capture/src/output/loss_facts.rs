//! How much of a direction's data was lost, in what pattern, and where.

use serde::Serialize;

use crate::analysis::connection::Connection;
use crate::analysis::flow::Flow;
use crate::analysis::gilbert::{self, GilbertElliott, Sequence};
use sawtooth_units::width::Approx;

/// Losses of the data that one end sends; lost acknowledgements are its peer's.
#[derive(Debug, Default, Serialize)]
pub struct LossFacts {
    /// Segments sent for the first time and acknowledged.
    pub segments: u64,
    /// How many of these were lost at least once.
    pub lost: u64,
    /// Lost copies, retransmissions included.
    pub lost_copies: u64,
    pub rate: Option<f64>,
    pub runs: u64,
    pub longest_run: u32,
    pub mean_run: Option<f64>,
    /// Number of loss bursts, the largest, and the longest.
    pub bursts: u64,
    pub largest_burst: u64,
    pub largest_burst_s: f64,
    pub longest_burst_s: f64,
    pub gilbert_elliott: Option<GilbertElliott>,
    /// In the syntax of a scenario.
    pub scenario: Option<String>,
    /// Copies lost between the sender and the capture point, and between that and the receiver.
    pub before: u64,
    pub after: u64,
    /// Packets of any kind missing by IP identification: from the sender (data lost before the capture point) and from
    /// the receiver (acknowledgements lost before it); None if that end does not increment it.
    pub missing: Option<u64>,
    pub acks_missing: Option<u64>,
    /// "data before", "data after", "data both", "acknowledgements", or "none".
    #[serde(rename = "where")]
    pub place: &'static str,
    /// Certainty of `where`: "exact", "likely" or "guess".
    pub sure: &'static str,
}

impl LossFacts {
    pub fn of(connection: &Connection, side: usize, flow: &Flow) -> Self {
        let losses = &flow.losses;
        let rate = (losses.segments > 0).then(|| losses.first_copies.approx() / losses.segments.approx());
        let bursts = flow.bursts();
        let largest = bursts.largest().unwrap_or_default();
        let model = Sequence { runs: &losses.runs, bursts: &bursts.all, last_gap: losses.last_gap() }.fit();
        let missing = never_seen(connection, side);
        // A retransmission lost before the capture point leaves no gap, but its identification is missing. If nothing
        // was lost or retransmitted, missing packets did arrive: the capture lacks them.
        let repaired = losses.first_copies > 0 || flow.counts.retransmits > 0;
        let before = missing.filter(|_| repaired).unwrap_or(0).max(losses.before);
        let acks_missing = never_seen(connection, 1 - side);
        LossFacts {
            segments: losses.segments,
            lost: losses.first_copies,
            lost_copies: losses.copies + before - losses.before,
            rate,
            runs: losses.run_count,
            longest_run: losses.longest,
            mean_run: (losses.run_count > 0).then(|| losses.first_copies.approx() / losses.run_count.approx()),
            bursts: bursts.all.len() as u64,
            largest_burst: largest.lost,
            largest_burst_s: (largest.last_ns - largest.first_ns).approx() / 1e9,
            longest_burst_s: bursts.longest_ns().approx() / 1e9,
            gilbert_elliott: model,
            scenario: rate.map(|rate| gilbert::scenario(model, rate)),
            before,
            after: losses.after,
            missing,
            acks_missing,
            place: lost_where(flow, before, acks_missing),
            sure: sure(flow, missing),
        }
    }
}

/// Packets of an end that were never captured, by identification; never more than those captured.
fn never_seen(connection: &Connection, side: usize) -> Option<u64> {
    let end = &connection.ends[side];
    let data = connection.flows[side].as_ref().map_or(0, |flow| flow.volume.data_packets);
    end.identification.missing(end.packets.max(data))
}

/// From nine in ten on it is one side; below that both.
fn lost_where(flow: &Flow, before: u64, acks_missing: Option<u64>) -> &'static str {
    let (before, after) = (before.approx(), flow.losses.after.approx());
    let all = before + after;
    if all == 0.0 {
        // A needless retransmission that no probe explains: an acknowledgement was lost.
        let unneeded = flow.counts.spurious > flow.counts.tail_probes;
        return if unneeded || acks_missing.unwrap_or(0) > 0 { "acknowledgements" } else { "none" };
    }
    match before / all {
        share if share > 0.9 => "data before",
        share if share < 0.1 => "data after",
        _ => "data both",
    }
}

/// The identification counts what is missing before the capture point. Without it, and with SACK, only time
/// distinguishes a loss from reordering.
fn sure(flow: &Flow, missing: Option<u64>) -> &'static str {
    let before = flow.losses.before;
    match missing {
        // Gaps that only the capture has are not losses; identification and sequence numbers then disagree.
        Some(missing) if missing + 2 + before / 20 >= before => "exact",
        Some(_) => "likely",
        None if flow.counts.sack_blocks > 0 || flow.trips.sender_echo.count() > 0 => "likely",
        None => "guess",
    }
}
