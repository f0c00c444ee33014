//! What an algorithm returns: the part of its sender's state that congestion control may write.

use crate::cc::MIN_TSO_SEGS;

/// An unset slow-start threshold (`TCP_INFINITE_SSTHRESH`).
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// A pacing rate that means "not limited".
pub const UNPACED: u64 = u64::MAX;

/// The window, in segments, and the pacing rate. Names are the kernel's without their prefix.
#[derive(Clone, Debug)]
pub struct Window {
    pub cwnd: u32,
    /// Segments acknowledged since `cwnd` last grew, in congestion avoidance.
    pub cwnd_cnt: u32,
    pub ssthresh: u32,
    /// The largest that is allowed (`snd_cwnd_clamp`).
    pub clamp: u32,
    /// The smallest super-packet, in segments (`sysctl_tcp_min_tso_segs`), for algorithms that do not say it.
    pub min_tso_segs: u32,
    /// Whether the pacer holds packets back (`sk_pacing_status != NONE`); otherwise the rate only sizes super-packets.
    pub pacing: bool,
    /// Bytes per second, [`UNPACED`] when not limited (`sk_pacing_rate`).
    pub pacing_rate: u64,
    /// 0, or the delivered count at which the application-limited period ends (`app_limited`).
    pub app_limited: u64,
    /// The algorithm wants to reduce the window itself (`tcp_enter_cwr`); the sender takes this request and does its
    /// part.
    pub reduces: Option<Reduction>,
}

/// A reduction that an algorithm begins without a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// One was already in progress.
    GoesOn,
    /// The threshold is set and the state is Cwr.
    Begun { prior_cwnd: u32 },
}

impl Window {
    /// A window of `cwnd` segments that nothing has limited yet. The application has not filled the buffer yet.
    pub fn new(cwnd: u32) -> Self {
        Window {
            cwnd,
            cwnd_cnt: 0,
            ssthresh: INFINITE_SSTHRESH,
            clamp: u32::MAX,
            min_tso_segs: MIN_TSO_SEGS,
            pacing: false,
            pacing_rate: UNPACED,
            app_limited: 1,
            reduces: None,
        }
    }

    /// `tcp_in_slow_start`.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}
