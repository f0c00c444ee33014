//! Congestion control: the seam between the sender and its algorithm.
//!
//! The sender owns the flight, loss detection, recovery and the pacer; an algorithm answers with a window and, if it paces,
//! a rate. Dispatch is by enum, so that a call costs a branch. Each method names the hook of Linux's
//! `struct tcp_congestion_ops` that it mirrors.

use crate::clock::Clock;
use crate::window::{CaState, Window};

mod bbr;
mod cubic;
mod growth;
pub(crate) mod gso;
mod jiffies;
#[cfg(test)]
mod model_fuzz;
mod reno;
#[cfg(test)]
mod testing;

pub use bbr::Bbr;
pub use cubic::Cubic;
pub use reno::Reno;

/// What one ACK told about delivery (`struct rate_sample`).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Segments delivered over the interval; -1 when there is no valid sample.
    pub delivered: i64,
    /// Length of the interval in microseconds; -1 when there is no valid sample.
    pub interval_us: i64,
    /// `delivered` of the connection when the sampled segment was sent.
    pub prior_delivered: u64,
    /// Round-trip time of the newest segment that this ACK covers, in microseconds; -1 when unknown.
    pub rtt_us: i64,
    /// Segments newly marked lost on this ACK.
    pub losses: u32,
    /// Segments newly acknowledged or SACKed by this ACK.
    pub acked_sacked: u32,
    pub prior_in_flight: u32,
    pub is_app_limited: bool,
    pub is_retrans: bool,
    pub is_ack_delayed: bool,
}

/// What `pkts_acked` is told (`struct ack_sample`).
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    pub pkts_acked: u32,
    /// Microseconds; -1 when this ACK gave no sample.
    pub rtt_us: i64,
    pub in_flight: u32,
}

/// `enum tcp_ca_event`, those that some algorithm here listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// First transmission after the network was idle (`CA_EVENT_TX_START`); with the idle time's start in jiffies (`lsndtime`).
    TxStart { last_send_jiffies: u32 },
    /// A retransmission timeout entered Loss (`CA_EVENT_LOSS`).
    Loss,
    /// A recovery by window reduction ended (`CA_EVENT_COMPLETE_CWR`).
    CompleteCwr,
}

/// An algorithm by name. The names are those that Linux's `net.ipv4.tcp_congestion_control` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Reno,
    Cubic,
    Bbr,
}

impl Algorithm {
    pub const ALL: [Algorithm; 3] = [Algorithm::Reno, Algorithm::Cubic, Algorithm::Bbr];

    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Reno => "reno",
            Algorithm::Cubic => "cubic",
            Algorithm::Bbr => "bbr",
        }
    }
    pub fn from_name(name: &str) -> Option<Algorithm> {
        Self::ALL.into_iter().find(|a| a.name() == name)
    }
}

/// One connection's congestion control.
#[derive(Clone, Debug)]
pub enum Congestion {
    Reno(Reno),
    Cubic(Cubic),
    Bbr(Box<Bbr>),
}

impl Congestion {
    /// `init`: called once the connection is established. `seed` is the only randomness an algorithm gets.
    pub fn new(algorithm: Algorithm, window: &mut Window, clock: Clock, seed: u64) -> Self {
        match algorithm {
            Algorithm::Reno => Congestion::Reno(Reno),
            Algorithm::Cubic => Congestion::Cubic(Cubic::new(window, clock)),
            Algorithm::Bbr => Congestion::Bbr(Box::new(Bbr::new(window, clock, seed))),
        }
    }

    /// `ssthresh`: the slow-start threshold after a loss, in segments.
    pub fn ssthresh(&mut self, window: &mut Window) -> u32 {
        match self {
            Congestion::Reno(cc) => cc.ssthresh(window),
            Congestion::Cubic(cc) => cc.ssthresh(window),
            Congestion::Bbr(cc) => cc.ssthresh(window),
        }
    }

    /// `cong_avoid`: grow the window by `acked` newly delivered segments. Not called where [`Self::has_cong_control`].
    pub fn cong_avoid(&mut self, window: &mut Window, acked: u32, clock: Clock) {
        match self {
            Congestion::Reno(cc) => cc.cong_avoid(window, acked),
            Congestion::Cubic(cc) => cc.cong_avoid(window, acked, clock),
            Congestion::Bbr(_) => {}
        }
    }

    /// Whether the algorithm sets window and pacing rate by itself on each ACK (`cong_control` is set): then neither PRR nor
    /// `cong_avoid` nor the generic pacing rate apply.
    pub fn has_cong_control(&self) -> bool {
        matches!(self, Congestion::Bbr(_))
    }

    /// `cong_control`.
    pub fn cong_control(&mut self, window: &mut Window, sample: &RateSample, clock: Clock) {
        if let Congestion::Bbr(cc) = self {
            cc.cong_control(window, sample, clock);
        }
    }

    /// `pkts_acked`.
    pub fn pkts_acked(&mut self, window: &mut Window, sample: AckSample, clock: Clock) {
        if let Congestion::Cubic(cc) = self {
            cc.pkts_acked(window, sample, clock);
        }
    }

    /// `set_state`: called *before* `window.ca_state` changes to `new`.
    pub fn set_state(&mut self, window: &mut Window, new: CaState, clock: Clock) {
        match self {
            Congestion::Reno(_) => {}
            Congestion::Cubic(cc) => cc.set_state(window, new, clock),
            Congestion::Bbr(cc) => cc.set_state(window, new),
        }
    }

    /// `cwnd_event`.
    pub fn event(&mut self, window: &mut Window, event: Event, clock: Clock) {
        match self {
            Congestion::Reno(_) => {}
            Congestion::Cubic(cc) => cc.event(event, clock),
            Congestion::Bbr(cc) => cc.event(window, event, clock),
        }
    }

    /// `undo_cwnd`: the window to return to after a spurious recovery, in segments.
    pub fn undo_cwnd(&mut self, window: &mut Window) -> u32 {
        match self {
            Congestion::Reno(_) | Congestion::Cubic(_) => window.cwnd.max(window.prior_cwnd),
            Congestion::Bbr(cc) => cc.undo_cwnd(window),
        }
    }

    /// `min_tso_segs`: the smallest super-packet that auto-sizing may make.
    pub fn min_tso_segs(&self, window: &Window) -> u32 {
        match self {
            Congestion::Bbr(cc) => cc.min_tso_segs(window),
            _ => 2,
        }
    }

    /// `sndbuf_expand`: by how many windows the send buffer grows.
    pub fn sndbuf_expand(&self) -> u32 {
        match self {
            Congestion::Bbr(_) => 3,
            _ => 2,
        }
    }
}
