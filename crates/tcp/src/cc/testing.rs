//! What the tests of several algorithms share: a fresh sender and a clock.

use crate::clock::Clock;
use crate::window::{CaState, INFINITE_SSTHRESH, UNPACED, Window};
use sawtooth_units::Time;

/// A sender just after the handshake: ten segments of 1448 bytes, no sample of the round-trip time.
pub(super) fn window() -> Window {
    Window {
        mss: 1448,
        cwnd: 10,
        cwnd_cnt: 0,
        cwnd_clamp: u32::MAX,
        ssthresh: INFINITE_SSTHRESH,
        prior_cwnd: 0,
        prior_ssthresh: 0,
        srtt_us: 0,
        min_rtt_us: u32::MAX,
        ca_state: CaState::Open,
        snd_una: 0,
        snd_nxt: 0,
        packets_out: 0,
        sacked_out: 0,
        lost_out: 0,
        retrans_out: 0,
        is_cwnd_limited: true,
        max_packets_out: 10,
        delivered: 0,
        delivered_us: 0,
        lost: 0,
        app_limited: 0,
        pacing_rate: UNPACED,
        pacing: false,
        wstamp_ns: 0,
    }
}

/// The clock at `micros` microseconds with a tick rate of `hz`.
pub(super) fn clock(micros: u64, hz: u32) -> Clock {
    Clock { now: Time::from_nanos(micros * 1_000), hz }
}
