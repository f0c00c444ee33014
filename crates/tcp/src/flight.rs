//! What an algorithm may read of its sender but never writes: flight, deliveries, round-trip times.

/// The sender's loss-recovery state (`icsk_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaState {
    #[default]
    Open,
    Disorder,
    Cwr,
    Recovery,
    Loss,
}

/// The sender's state as Linux's `tcp_sock` exposes it to congestion control. Counts are in segments; sequence numbers
/// count bytes from 0 and never wrap. Names are the kernel's without their prefix.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Payload bytes of a full segment (`mss_cache`).
    pub mss: u32,
    /// The window before the last reduction (`prior_cwnd`).
    pub prior_cwnd: u32,
    pub prior_ssthresh: u32,
    /// Smoothed round-trip time in microseconds, times eight (`srtt_us`); 0 before the first sample.
    pub srtt_us: u32,
    /// Windowed minimum round-trip time in microseconds (`tcp_min_rtt`); `u32::MAX` before the first sample.
    pub min_rtt_us: u32,
    pub ca_state: CaState,
    pub is_cwnd_limited: bool,
    pub max_packets_out: u32,
    pub snd_una: u64,
    pub snd_nxt: u64,
    pub packets_out: u32,
    pub sacked_out: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
    /// Segments delivered so far, SACKed ones included (`delivered`).
    pub delivered: u64,
    /// Microseconds at the last delivery (`delivered_mstamp`).
    pub delivered_us: u64,
    /// Segments marked lost so far (`lost`).
    pub lost: u64,
    /// Both ends agreed on ECN.
    pub ecn: bool,
    /// Delivered segments whose acknowledgement echoed a mark (`delivered_ce`).
    pub delivered_ce: u64,
    /// Departure time of the next paced packet in nanoseconds (`tcp_wstamp_ns`).
    pub wstamp_ns: u64,
}

impl Flight {
    /// The flight of a connection established at `now_ns`: the handshake counts as one delivery.
    pub fn new(mss: u32, now_ns: u64) -> Self {
        Flight {
            mss,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            srtt_us: 0,
            min_rtt_us: u32::MAX,
            ca_state: CaState::Open,
            is_cwnd_limited: false,
            max_packets_out: 0,
            snd_una: 0,
            snd_nxt: 0,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            delivered: 1,
            delivered_us: now_ns / 1_000,
            lost: 0,
            ecn: false,
            delivered_ce: 0,
            wstamp_ns: now_ns,
        }
    }

    /// Segments in the network, as far as the sender knows (`tcp_packets_in_flight`).
    pub fn in_flight(&self) -> u32 {
        self.packets_out + self.retrans_out - self.sacked_out - self.lost_out
    }
}
