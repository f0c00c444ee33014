//! Counters of the data of one end, as the facts of a direction tell them.

use serde::{Serialize, Serializer};

/// Data as it was sent, in packets and bytes.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Volume {
    pub data_packets: u64,
    pub super_packets: u64,
    pub payload_bytes: u64,
    pub new_bytes: u64,
    pub acknowledged_bytes: u64,
}

/// What happened to it, in bytes, segments and nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Counts {
    pub retransmits: u64,
    pub retransmitted_bytes: u64,
    pub fast: u64,
    pub timeouts: u64,
    pub timeout_retransmits: u64,
    pub tail_probes: u64,
    /// Tail loss probes that carried new data.
    pub new_data_probes: u64,
    /// Reported by DSACK, or already acknowledged when seen.
    pub spurious: u64,
    pub reported_spurious: u64,
    pub filled_holes: u64,
    pub out_of_order: u64,
    pub reordering_bytes: u64,
    #[serde(rename = "reordering_s", serialize_with = "in_seconds")]
    pub reordering_ns: u64,
    pub duplicated_packets: u64,
    pub keep_alives: u64,
    pub zero_window_probes: u64,
    pub acks: u64,
    pub duplicate_acks: u64,
    pub window_updates: u64,
    pub sack_blocks: u64,
    pub dsacks: u64,
    pub zero_windows: u64,
    #[serde(rename = "zero_window_s", serialize_with = "in_seconds")]
    pub zero_window_ns: u64,
    pub window_min_bytes: Option<u64>,
    pub window_max_bytes: u64,
    pub in_flight_max_bytes: u64,
}

/// What the capture does not show.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Unseen {
    /// Acknowledged without having been captured.
    pub unseen_bytes: u64,
    pub given_up: u64,
}

fn in_seconds<S: Serializer>(ns: &u64, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(crate::output::facts::seconds(*ns))
}
