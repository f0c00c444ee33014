//! Congestion control: the interface between the sender and its algorithm.
//!
//! The sender owns the flight, loss detection, recovery and the pacer. An algorithm reads its [`Flight`] and returns a
//! [`Window`]: how much may be in flight and, if it paces, how fast. A new algorithm is one file or folder here, named
//! in this file and in [`list`], and a record in [`records`], which Python, pages and the documentation read.

use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::window::Window;

mod abe;
pub mod agent;
mod bbr;
mod bbr3;
mod cubic;
mod dctcp;
mod growth;
pub(crate) mod gso;
mod jiffies;
mod list;
#[cfg(test)]
mod model_fuzz;
pub mod module;
mod prague;
mod prague2020;
mod records;
mod reno;
#[cfg(test)]
mod testing;

#[cfg(test)]
pub(crate) use bbr::random::Random;
pub use list::{Algorithm, Chosen, Congestion};
pub use records::{RECORDS, Record};

/// The delivery facts from one ACK (`struct rate_sample`).
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
    /// Segments lost since the sampled segment was sent, and those in flight after its buffer was sent.
    pub lost: u32,
    pub tx_in_flight: u32,
    /// Segments newly acknowledged or SACKed by this ACK.
    pub acked_sacked: u32,
    pub prior_in_flight: u32,
    pub is_app_limited: bool,
    pub is_retrans: bool,
    pub is_ack_delayed: bool,
    /// It acknowledges up to a tail loss probe's retransmission: it is not known yet whether original or copy arrived.
    pub is_acking_tlp_retrans_seq: bool,
    /// Marked segments among those delivered over the interval; and whether this ACK echoes a mark.
    pub delivered_ce: u32,
    pub is_ece: bool,
    /// The application has written what has never been sent (not `tcp_write_queue_empty`).
    pub has_unsent: bool,
}

/// The phase of an algorithm, if it has such phases. Used only by observers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Other,
    /// HyStart has ended slow start.
    HyStartFound,
    /// BBR's states; those of PROBE_BW by their effect on the rate.
    Startup,
    Drain,
    Cruise,
    Refill,
    Up,
    Down,
    ProbeRtt,
}

/// The argument of `skb_marked_lost`: segments of one buffer that are marked lost.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    pub segments: u32,
    /// Segments lost since they were sent, including themselves.
    pub lost: u32,
    /// Segments in flight after they were sent.
    pub tx_in_flight: u32,
    pub is_app_limited: bool,
}

/// The argument of `pkts_acked` (`struct ack_sample`).
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    pub pkts_acked: u32,
    /// Microseconds; -1 without a sample.
    pub rtt_us: i64,
    pub in_flight: u32,
}

/// `enum tcp_ca_event`: the events that an algorithm here uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// First transmission after idle time (`CA_EVENT_TX_START`), with the start of the idle time in jiffies
    /// (`lsndtime`).
    TxStart { last_send_jiffies: u32 },
    /// The window is about to be reduced because nothing was sent for a timeout (`CA_EVENT_CWND_RESTART`).
    CwndRestart,
    /// A retransmission timeout entered Loss (`CA_EVENT_LOSS`).
    Loss,
    /// A recovery by window reduction ended (`CA_EVENT_COMPLETE_CWR`).
    CompleteCwr,
    /// A tail loss probe repaired a loss (`CA_EVENT_TLP_RECOVERY`, added by BBR v3), of a segment that was
    /// application-limited when sent, or not.
    TlpRecovery { is_app_limited: bool },
}

/// The smallest super-packet by default, in segments (`sysctl_tcp_min_tso_segs`).
pub const MIN_TSO_SEGS: u32 = 2;
/// Windows that the send buffer holds (`tcp_sndbuf_expand`).
pub const SNDBUF_EXPAND: u32 = 2;

/// The hooks of an algorithm. Each method mirrors the named hook of Linux's `struct tcp_congestion_ops`. Hooks that
/// return a value are required; pure notifications are optional, as in Linux.
pub trait Control: Sized {
    /// The name in Linux's `net.ipv4.tcp_congestion_control`.
    const NAME: &'static str;
    /// Set if it differs from Linux's version under that name.
    const VARIANT: Option<&'static str> = None;
    /// Whether it sets window and pacing rate itself on each ACK (`cong_control` is set). Then proportional rate
    /// reduction, [`Self::cong_avoid`] and the generic pacing rate do not apply.
    const HAS_CONG_CONTROL: bool;
    /// Whether the algorithm implements [`Self::skb_marked_lost`].
    const HEARS_OF_LOSSES: bool = false;
    /// Whether the algorithm implements [`Self::in_ack_event`].
    const HEARS_OF_ACKS: bool = false;
    /// `TCP_CONG_NEEDS_ECN`: a connection with it requests ECN, and all its packets can be marked.
    const NEEDS_ECN: bool = false;
    /// `TCP_CONG_NEEDS_ACCECN` of newer kernels: it requests accurate ECN (RFC 9768), without which it is Reno, and
    /// sends ECT(1).
    const NEEDS_ACCURATE_ECN: bool = false;
    /// If ECN was agreed on, all its packets except the handshake's can be marked, and its receiver reports each change
    /// between marked and unmarked.
    const HEEDS_EACH_MARK: bool = Self::NEEDS_ECN;
    /// Whether each ACK and timer checks if the application is the limit, as Linux with BBR v3 does; otherwise this
    /// happens only on writes.
    const NOTES_APP_LIMIT_ON_ACK: bool = false;

    /// `init`: called when the connection is established. `seed` is an algorithm's only source of randomness.
    fn new(flight: &Flight, window: &mut Window, clock: Clock, seed: u64) -> Self;

    /// `ssthresh`: the slow-start threshold after a loss, in segments.
    fn ssthresh(&mut self, flight: &Flight, window: &Window) -> u32;

    /// The same after an echoed mark. Linux has no separate hook for it.
    fn ssthresh_marked(&mut self, flight: &Flight, window: &Window) -> u32 {
        self.ssthresh(flight, window)
    }

    /// `undo_cwnd`: the window to return to after a spurious recovery, in segments.
    fn undo_cwnd(&mut self, flight: &Flight, window: &Window) -> u32;

    /// `min_tso_segs`: the smallest super-packet that auto-sizing may make; [`Window::min_tso_segs`] where Linux's hook
    /// is not set.
    fn min_tso_segs(&self, flight: &Flight, window: &Window) -> u32;

    /// `tso_segs`, which replaces `min_tso_segs` in BBR v3: the segments of a super-packet. `None`: the sender's own
    /// auto-sizing.
    fn tso_segs(&self, _flight: &Flight, _window: &Window) -> Option<u32> {
        None
    }

    /// `sndbuf_expand`: by how many windows the send buffer grows; [`SNDBUF_EXPAND`] where Linux's hook is not set.
    fn sndbuf_expand(&self) -> u32;

    /// See [`Phase`].
    fn current_phase(&self) -> Phase {
        Phase::Other
    }

    /// Whether what it keeps stays as it is while the same packets repeat, however time and rounds go on (see
    /// [`crate::steady`]).
    fn is_settled(&self, _window: &Window, _clock: Clock) -> bool {
        false
    }

    /// `in_ack_event`: acknowledged segments are removed and deliveries counted. Called only if
    /// [`Self::HEARS_OF_ACKS`].
    fn in_ack_event(&mut self, _flight: &Flight) {}

    /// `cong_avoid`: grow the window by `acked` newly delivered segments. Not called if [`Self::HAS_CONG_CONTROL`].
    fn cong_avoid(&mut self, _flight: &Flight, _window: &mut Window, _acked: u32, _clock: Clock) {}

    /// `cong_control`. Called only if [`Self::HAS_CONG_CONTROL`].
    fn cong_control(&mut self, _flight: &Flight, _window: &mut Window, _sample: &RateSample, _clock: Clock) {}

    /// `pkts_acked`.
    fn pkts_acked(&mut self, _flight: &Flight, _window: &mut Window, _sample: AckSample, _clock: Clock) {}

    /// `skb_marked_lost`, added by BBR v3. Called only if [`Self::HEARS_OF_LOSSES`].
    fn skb_marked_lost(&mut self, _flight: &Flight, _window: &Window, _loss: &Loss, _clock: Clock) {}

    /// `set_state`: called *before* `flight.ca_state` changes to `new`.
    fn set_state(&mut self, _flight: &Flight, _window: &mut Window, _new: CaState, _clock: Clock) {}

    /// `cwnd_event`.
    fn event(&mut self, _flight: &Flight, _window: &mut Window, _event: Event, _clock: Clock) {}
}
