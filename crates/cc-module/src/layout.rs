//! The structures of `include/sawtooth/tcp.h`, field by field. [`OFFSETS`] is compared with the offsets in the compiled
//! library.

use std::ffi::{c_char, c_int, c_long, c_ulong, c_void};
use std::mem::offset_of;

/// Guard word after the memory that a module may write, and at the end of the structure.
const GUARD: u64 = 0x6775_6172_6467_7561;
/// `icsk_ca_priv`, in words of eight bytes.
const PRIVATE_WORDS: usize = 104 / 8;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Sock {
    pub pacing_rate: c_ulong,
    pub max_pacing_rate: c_ulong,
    pub pacing_status: u32,
    pub gso_max_size: u32,
    pub pacing_shift: u8,
    pub state: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ConnectionSock {
    pub sock: Sock,
    pub ops: *const Operations,
    pub private: [u64; PRIVATE_WORDS],
    pub guard: u64,
    pub ack_pending: u8,
    pub ca_state: u8,
    pub ca_initialized: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MinMaxSample {
    pub at: u32,
    pub value: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct OptionsReceived {
    pub rcv_tsval: u32,
    pub rcv_tsecr: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TcpSock {
    pub connection: ConnectionSock,
    pub tcp_mstamp: u64,
    pub tcp_clock_cache: u64,
    pub tcp_wstamp_ns: u64,
    pub delivered_mstamp: u64,
    pub bytes_acked: u64,
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub rcv_nxt: u32,
    pub mss_cache: u32,
    pub advmss: u32,
    pub srtt_us: u32,
    pub rtt_min: [MinMaxSample; 3],
    pub snd_cwnd: u32,
    pub snd_cwnd_cnt: u32,
    pub snd_cwnd_clamp: u32,
    pub snd_ssthresh: u32,
    pub prior_cwnd: u32,
    pub prior_ssthresh: u32,
    pub app_limited: u32,
    pub packets_out: u32,
    pub sacked_out: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
    pub max_packets_out: u32,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub lost: u32,
    pub lsndtime: u32,
    pub rx_opt: OptionsReceived,
    pub is_cwnd_limited: u8,
    pub ecn_flags: u8,
    pub entered_cwr: u8,
    pub timestamp: u32,
    pub random: u64,
    pub guard: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    pub pkts_acked: u32,
    pub rtt_us: i32,
    pub in_flight: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    pub prior_delivered: u32,
    pub delivered: i32,
    pub interval_us: c_long,
    pub rtt_us: c_long,
    pub losses: c_int,
    pub acked_sacked: u32,
    pub prior_in_flight: u32,
    pub is_app_limited: bool,
    pub is_retrans: bool,
    pub is_ack_delayed: bool,
}

/// `struct tcp_congestion_ops`. A hook that is not set is null.
#[repr(C)]
#[derive(Debug)]
pub struct Operations {
    pub ssthresh: Option<unsafe extern "C" fn(*mut TcpSock) -> u32>,
    pub cong_avoid: Option<unsafe extern "C" fn(*mut TcpSock, u32, u32)>,
    pub set_state: Option<unsafe extern "C" fn(*mut TcpSock, u8)>,
    pub cwnd_event: Option<unsafe extern "C" fn(*mut TcpSock, c_int)>,
    pub in_ack_event: Option<unsafe extern "C" fn(*mut TcpSock, u32)>,
    pub pkts_acked: Option<unsafe extern "C" fn(*mut TcpSock, *const AckSample)>,
    pub min_tso_segs: Option<unsafe extern "C" fn(*mut TcpSock) -> u32>,
    pub cong_control: Option<unsafe extern "C" fn(*mut TcpSock, u32, c_int, *const RateSample)>,
    pub undo_cwnd: Option<unsafe extern "C" fn(*mut TcpSock) -> u32>,
    pub sndbuf_expand: Option<unsafe extern "C" fn(*mut TcpSock) -> u32>,
    pub get_info: Option<unsafe extern "C" fn()>,
    pub init: Option<unsafe extern "C" fn(*mut TcpSock)>,
    pub release: Option<unsafe extern "C" fn(*mut TcpSock)>,
    pub name: [c_char; 16],
    pub owner: *const c_void,
    pub key: u32,
    pub flags: u32,
}

/// `sawtooth_layout` in `runtime.c`, in the same order.
pub const OFFSETS: [usize; 18] = [
    size_of::<TcpSock>(),
    size_of::<Operations>(),
    size_of::<RateSample>(),
    size_of::<AckSample>(),
    offset_of!(TcpSock, connection.ops),
    offset_of!(TcpSock, connection.private),
    offset_of!(TcpSock, connection.ca_state),
    offset_of!(TcpSock, tcp_mstamp),
    offset_of!(TcpSock, snd_una),
    offset_of!(TcpSock, snd_cwnd),
    offset_of!(TcpSock, delivered),
    offset_of!(TcpSock, rx_opt),
    offset_of!(TcpSock, random),
    offset_of!(Operations, undo_cwnd),
    offset_of!(Operations, name),
    offset_of!(Operations, flags),
    offset_of!(RateSample, rtt_us),
    offset_of!(RateSample, is_ack_delayed),
];

impl TcpSock {
    /// Whether the guard words are unchanged: nothing was written beyond the private memory or the end.
    pub fn is_whole(&self) -> bool {
        self.connection.guard == GUARD && self.guard == GUARD
    }

    /// A connection with empty state.
    pub fn new(ops: *const Operations) -> Self {
        let sock = Sock { max_pacing_rate: c_ulong::MAX, pacing_shift: 10, state: 1, ..Sock::default() };
        TcpSock {
            connection: ConnectionSock {
                sock,
                ops,
                private: [0; PRIVATE_WORDS],
                guard: GUARD,
                ack_pending: 0,
                ca_state: 0,
                ca_initialized: 0,
            },
            tcp_mstamp: 0,
            tcp_clock_cache: 0,
            tcp_wstamp_ns: 0,
            delivered_mstamp: 0,
            bytes_acked: 0,
            snd_una: 0,
            snd_nxt: 0,
            rcv_nxt: 1,
            mss_cache: 0,
            advmss: 0,
            srtt_us: 0,
            rtt_min: [MinMaxSample::default(); 3],
            snd_cwnd: 0,
            snd_cwnd_cnt: 0,
            snd_cwnd_clamp: 0,
            snd_ssthresh: 0,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            app_limited: 0,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            max_packets_out: 0,
            delivered: 0,
            delivered_ce: 0,
            lost: 0,
            lsndtime: 0,
            rx_opt: OptionsReceived::default(),
            is_cwnd_limited: 0,
            ecn_flags: 0,
            entered_cwr: 0,
            timestamp: 0,
            random: 0,
            guard: GUARD,
        }
    }
}
