//! The sending half of a Linux TCP connection: flight, loss detection, recovery, pacing, timers.
//!
//! Mirrors the behaviour of Linux 6.12 (net/ipv4/tcp_input.c, tcp_output.c, tcp_recovery.c, tcp_rate.c, tcp_timer.c) for a
//! sender. What is simpler than Linux:
//!
//! - SACK reneging, urgent data, path-MTU probing and the metrics cache do not exist.

mod ack;
mod ecn;
mod idle;
mod output;
mod rack;
mod rate;
mod recovery;
mod reduction;
mod rtt;
mod sack;
mod scoreboard;
mod timers;
mod undo;
mod window_probe;
mod witness;
mod writer;

use crate::cc::{Algorithm, Chosen, Congestion};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::options::HostOptions;
use crate::packet::{Block, Burst, Ecn};
use crate::window::Window;
pub use output::SEGMENT_OVERHEAD;
use rack::Rack;
use rtt::Rtt;
use sawtooth_units::Time;
use scoreboard::Scoreboard;
use std::collections::VecDeque;
use timers::Pending;
pub use witness::{Glance, Happening};
use writer::Writer;

/// `sysctl_tcp_reordering`.
const REORDERING: u32 = 3;
/// `sysctl_tcp_max_reordering`.
const MAX_REORDERING: u32 = 300;
/// The first window after a SYN that was lost more than once (RFC 5681 section 3.1 has it after one; `tcp_init_transfer`).
const WINDOW_AFTER_SYNS: u32 = 1;

/// Counters of one connection since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Segments sent, retransmissions included.
    pub segments_out: u64,
    pub retransmits: u64,
    /// Retransmission timeouts (`TCPTimeouts`).
    pub timeouts: u64,
    /// `TCPLossProbes`.
    pub tail_probes: u64,
    /// Probes of a window that is closed (`TCPWinProbe`).
    pub window_probes: u64,
    /// Nanoseconds in which the receiver's window was the limit (`tcpi_rwnd_limited`).
    pub rwnd_limited_ns: u64,
    /// Nanoseconds in which the send buffer was the limit (`tcpi_sndbuf_limited`).
    pub sndbuf_limited_ns: u64,
}

impl std::ops::Add for SenderStats {
    type Output = SenderStats;
    fn add(self, other: SenderStats) -> SenderStats {
        SenderStats {
            segments_out: self.segments_out + other.segments_out,
            retransmits: self.retransmits + other.retransmits,
            timeouts: self.timeouts + other.timeouts,
            tail_probes: self.tail_probes + other.tail_probes,
            window_probes: self.window_probes + other.window_probes,
            rwnd_limited_ns: self.rwnd_limited_ns + other.rwnd_limited_ns,
            sndbuf_limited_ns: self.sndbuf_limited_ns + other.sndbuf_limited_ns,
        }
    }
}

/// One connection's sender. With many of them each packet finds its own out of the cache: the fields lie in lines of 64 bytes,
/// what every acknowledgement and departure needs first.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Sender {
    pub flight: Flight,
    pub window: Window,

    // Timers, in ticks and as the time at which the wheel fires.
    rto: u64,
    timeout: u64,
    timer: Time,
    pacing_timer: Time,

    /// Bytes that the application has written.
    written: u64,
    send_buffer: u64,
    /// Bytes of this connection in the sending host's own queue (`sk_wmem_alloc`), which the network takes out again.
    pub host_queue: u64,
    host_room: u64,
    /// How many bytes a new buffer takes, in whole segments; up to which the application has told to send at once (`pushed_seq`).
    buffer_bytes: u64,
    pushed: u64,
    /// Buffers (`sk_buff`s) that what is in flight fills.
    super_packets: u32,
    writer: Writer,
    /// The send queue waits for `host_queue` to fall (`TSQ_THROTTLED`), below `host_room`.
    pub throttled: bool,
    /// The application may write more when all is written.
    stays_open: bool,
    /// New data is to tell that the window came down (`TCP_ECN_QUEUE_CWR`); what packets are of new data, and of what is sent again.
    queues_cwr: bool,
    ecn: [Ecn; 2],
    /// Acknowledgements count marks (RFC 9768), and do not echo them.
    accurate_ecn: bool,
    /// `TCP_NODELAY`: a short segment never waits for others' acknowledgement.
    pub no_delay: bool,
    /// What is sent waits in a queue of the sending host's own.
    host_queued: bool,
    pending: Pending,
    /// Both ends agreed on SACK.
    sack: bool,
    // What the algorithm has, asked once.
    has_cong_control: bool,
    hears_of_acks: bool,
    notes_app_limit_on_ack: bool,

    // Flow control and delivery rate.
    window_end: u64,
    send_window: u64,
    /// The widest ever offered, which the buffers' size follows from; and where each unsent buffer ends.
    widest_window: u64,
    buffer_ends: VecDeque<u64>,
    cwnd_usage_seq: u64,
    /// The end of the last segment that was shorter than others when it was first sent (`snd_sml`).
    small_end: u64,
    /// Bytes to send in all.
    total: u64,
    limited_since: Option<(Limit, Time)>,
    first_tx_us: u64,
    last_send_jiffies: u32,
    /// The last timestamp value received, echoed in data.
    ts_recent: u32,

    // Loss detection and recovery: what is looked at without any loss, too.
    tlp_high_seq: Option<u64>,
    retransmit_hint: Option<u64>,
    high_seq: u64,
    highest_sack: u64,
    reordering: u32,
    retransmits: u32,
    retrans_stamp: u32,

    rtt: Rtt,
    rack: Rack,
    board: Scoreboard,
    congestion: Congestion,
    options: HostOptions,
    pub stats: SenderStats,

    // The rest of recovery.
    sack_cache: [Block; 4],
    dsack_dups: u64,
    undo_marker: Option<u64>,
    /// -1: nothing retransmitted yet; 0: everything retransmitted was unnecessary.
    undo_retrans: i64,
    prr_delivered: u32,
    prr_out: u32,
    reordering_seen: bool,
    frto: bool,
    tlp_retrans: bool,
    /// The segment that the probe sent again had left while the application was the limit.
    tlp_orig_data_app_limited: bool,
    /// Probes of the window that is closed now.
    window_probes: u32,
}

/// What keeps the sender from sending more, other than congestion control (`tcp_chrono`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    ReceiveWindow,
    SendBuffer,
}

impl Sender {
    /// A sender whose handshake took `handshake_us` microseconds (0: unknown) and whose peer offers `send_window` bytes.
    /// `total` is how many bytes it has to send (`u64::MAX`: endless), `sack` whether both ends agreed on SACK.
    pub fn new(
        chosen: impl Into<Chosen>,
        options: HostOptions,
        sack: bool,
        total: u64,
        start: Start,
        clock: Clock,
    ) -> Self {
        let now_us = clock.micros();
        let mut flight = Flight::new(options.mss, clock.now.nanos());
        flight.ecn = start.ecn;
        let mut window = Window::new(if start.syn_repeats > 1 { WINDOW_AFTER_SYNS } else { options.initial_window });
        let rtt = Rtt::new(&mut flight, start.handshake_us, clock);
        let rto = rtt.rto(&flight, clock);
        let mut chosen = chosen.into();
        if chosen.needs_accurate_ecn() && !start.ecn {
            // As Linux has it, it lets another do the work.
            chosen = Algorithm::Reno.into();
        }
        let congestion = Congestion::new(&chosen, &flight, &mut window, clock, start.seed);
        let mut sender = Sender {
            stats: SenderStats::default(),
            has_cong_control: congestion.has_cong_control(),
            hears_of_acks: congestion.hears_of_acks(),
            notes_app_limit_on_ack: congestion.notes_app_limit_on_ack(),
            ecn: ecn::of_packets(start.ecn, &congestion),
            accurate_ecn: congestion.needs_accurate_ecn(),
            queues_cwr: false,
            congestion,
            board: Scoreboard::new(options.mss),
            sack,
            total,
            rtt,
            window_end: start.send_window,
            send_window: start.send_window,
            send_buffer: 0,
            cwnd_usage_seq: 0,
            small_end: 0,
            stays_open: start.stays_open,
            no_delay: false,
            limited_since: None,
            rto,
            retransmits: 0,
            pending: Pending::None,
            timeout: 0,
            timer: Time::NEVER,
            pacing_timer: Time::NEVER,
            rack: Rack::new(),
            reordering: REORDERING,
            reordering_seen: false,
            highest_sack: 0,
            sack_cache: [Block::default(); 4],
            dsack_dups: 0,
            undo_marker: None,
            undo_retrans: -1,
            super_packets: 0,
            written: 0,
            writer: Writer::Awake,
            pushed: 0,
            buffer_ends: VecDeque::new(),
            buffer_bytes: u64::from(options.mss),
            widest_window: 0,
            retrans_stamp: 0,
            high_seq: 0,
            frto: false,
            tlp_high_seq: None,
            tlp_retrans: false,
            tlp_orig_data_app_limited: false,
            window_probes: 0,
            prr_delivered: 0,
            prr_out: 0,
            retransmit_hint: None,
            first_tx_us: now_us,
            last_send_jiffies: clock.jiffies(),
            host_queued: start.host_queued,
            host_queue: 0,
            host_room: 0,
            throttled: false,
            ts_recent: start.ts_recent,
            flight,
            window,
            options,
        };
        sender.expand_send_buffer();
        sender.note_window(start.send_window);
        // The first window leaves in super-packets of a size that follows from the handshake's round trip.
        if !sender.has_cong_control {
            sender.update_pacing_rate();
        }
        sender
    }

    /// The degree of reordering in segments (`tcpi_reordering`).
    pub fn reordering(&self) -> u32 {
        self.reordering
    }

    /// Sends what may be sent. Called once when the connection is established.
    pub fn start(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        self.write(clock, out);
    }

    /// The application writes so many `bytes` more; sends what may be sent.
    pub fn extend(&mut self, bytes: u64, clock: Clock, out: &mut Vec<Burst>) {
        if self.written == self.total {
            self.note_app_limit();
        }
        self.total = self.total.saturating_add(bytes);
        self.write(clock, out);
    }

    /// Bytes that the application has asked to be sent so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether everything was acknowledged, and nothing will follow.
    pub fn is_done(&self) -> bool {
        self.flight.snd_una >= self.total && !self.stays_open
    }
    /// When [`Self::on_timer`] wants to be called next.
    pub fn timer(&self) -> Time {
        self.timer
    }
    /// The retransmission timeout in microseconds.
    pub fn rto_us(&self, clock: Clock) -> u64 {
        clock.micros_from_jiffies(self.rto)
    }
    /// Nanoseconds limited by the receive window and by the send buffer, the current episode included.
    pub fn limited_ns(&self, clock: Clock) -> (u64, u64) {
        let (mut rwnd, mut sndbuf) = (self.stats.rwnd_limited_ns, self.stats.sndbuf_limited_ns);
        match self.limited_since {
            Some((Limit::ReceiveWindow, since)) => rwnd += clock.now.since(since).nanos(),
            Some((Limit::SendBuffer, since)) => sndbuf += clock.now.since(since).nanos(),
            None => {}
        }
        (rwnd, sndbuf)
    }

    fn set_state(&mut self, state: CaState, clock: Clock) {
        self.congestion.set_state(&self.flight, &mut self.window, state, clock);
        self.flight.ca_state = state;
    }

    fn loss_probe_pending(&self) -> bool {
        self.pending == Pending::LossProbe
    }

    /// `tcp_left_out`.
    fn left_out(&self) -> u32 {
        self.flight.sacked_out + self.flight.lost_out
    }
}

/// What the handshake left behind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// Round-trip time of the SYN in microseconds; 0 where none was measured.
    pub handshake_us: u64,
    /// How often the SYN, or what answers it, was sent again after a timeout, but for nothing: 0 where the first got through.
    pub syn_repeats: u32,
    /// The window that the SYN-ACK offered, in bytes.
    pub send_window: u64,
    /// The timestamp value of the SYN-ACK.
    pub ts_recent: u32,
    /// Both ends agreed on ECN.
    pub ecn: bool,
    /// The sending host has a queue of its own (a card with a rate).
    pub host_queued: bool,
    /// The application may write more when all is written; otherwise it closes then, and nothing waits for more.
    pub stays_open: bool,
    /// For what an algorithm draws by chance.
    pub seed: u64,
}
