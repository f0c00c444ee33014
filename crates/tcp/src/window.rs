//! What an algorithm may read and set of its sender: the part of Linux's `tcp_sock` that congestion control sees.

/// `icsk_ca_state`: where the sender is in loss recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaState {
    #[default]
    Open,
    Disorder,
    Cwr,
    Recovery,
    Loss,
}

/// An unset slow-start threshold (`TCP_INFINITE_SSTHRESH`).
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// A pacing rate that means "not limited".
pub const UNPACED: u64 = u64::MAX;

/// The window and the counters around it. Windows and counts are in segments, as in Linux; sequence numbers count
/// segments from 0 and never wrap. Names are the kernel's without their prefix.
#[derive(Clone, Debug)]
pub struct Window {
    /// Payload bytes of a full segment (`mss_cache`).
    pub mss: u32,
    pub cwnd: u32,
    pub cwnd_cnt: u32,
    pub cwnd_clamp: u32,
    pub ssthresh: u32,
    /// The window before the last reduction (`prior_cwnd`).
    pub prior_cwnd: u32,
    pub prior_ssthresh: u32,
    /// Smoothed round-trip time in microseconds, times eight (`srtt_us`); 0 before the first sample.
    pub srtt_us: u32,
    /// Windowed minimum round-trip time in microseconds (`tcp_min_rtt`); `u32::MAX` before the first sample.
    pub min_rtt_us: u32,
    pub ca_state: CaState,
    pub snd_una: u64,
    pub snd_nxt: u64,
    pub packets_out: u32,
    pub sacked_out: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
    pub is_cwnd_limited: bool,
    pub max_packets_out: u32,
    /// Segments delivered so far, SACKed ones included (`delivered`).
    pub delivered: u64,
    /// Microseconds at the last delivery (`delivered_mstamp`).
    pub delivered_us: u64,
    /// Segments marked lost so far (`lost`).
    pub lost: u64,
    /// 0, or the delivered count at which the application-limited bubble ends (`app_limited`).
    pub app_limited: u64,
    /// Bytes per second, [`UNPACED`] when not limited (`sk_pacing_rate`).
    pub pacing_rate: u64,
    /// Whether the pacer holds packets back (`sk_pacing_status != NONE`); otherwise the rate only sizes super-packets.
    pub pacing: bool,
    /// Departure time of the next paced packet in nanoseconds (`tcp_wstamp_ns`).
    pub wstamp_ns: u64,
}

impl Window {
    /// `tcp_packets_in_flight`.
    pub fn in_flight(&self) -> u32 {
        self.packets_out + self.retrans_out - self.sacked_out - self.lost_out
    }
    /// `tcp_in_slow_start`.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}
