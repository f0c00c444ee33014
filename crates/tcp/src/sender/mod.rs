//! The sending half of a Linux TCP connection: flight, loss detection, recovery, pacing, timers.
//!
//! Mirrors the behaviour of Linux 6.12 (net/ipv4/tcp_input.c, tcp_output.c, tcp_recovery.c, tcp_rate.c, tcp_timer.c)
//! for a sender. What is simpler than Linux:
//!
//! - SACK reneging, urgent data, path-MTU probing and the metrics cache do not exist.

mod ack;
mod ecn;
mod events;
mod idle;
mod output;
mod rack;
mod rate;
mod recovery;
mod reduction;
mod rtt;
mod sack;
mod scoreboard;
mod steady;
mod timers;
mod undo;
mod window_probe;
mod writer;

use crate::cc::{Algorithm, Chosen, Congestion};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::options::HostOptions;
use crate::packet::{Block, Burst, Ecn};
use crate::window::Window;
use ack::Recover;
pub use events::{SenderEvent, Snapshot};
pub use output::SEGMENT_OVERHEAD;
use rack::Rack;
use rtt::Rtt;
use sawtooth_units::Time;
pub use scoreboard::Scoreboard;
use std::collections::VecDeque;
pub use steady::Rounds;
use timers::Pending;
use undo::Undo;
use writer::Writer;

/// `sysctl_tcp_reordering`.
const REORDERING: u32 = 3;
/// `sysctl_tcp_max_reordering`.
const MAX_REORDERING: u32 = 300;
/// The first window after a SYN that was lost more than once (RFC 5681 section 3.1: after one loss;
/// `tcp_init_transfer`).
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
    /// Probes of a closed window (`TCPWinProbe`).
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

/// One connection's sender. With many connections each packet finds its sender outside the cache, so the fields are
/// grouped in lines of 64 bytes: first what every acknowledgement and departure needs.
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
    segment_memory: u64,
    /// Bytes of this connection in the sending host's queue (`sk_wmem_alloc`), from which the network removes them.
    pub host_queue: u64,
    host_room: u64,
    /// Bytes of a new buffer, in whole segments; and how far the application asked to send at once (`pushed_seq`).
    buffer_bytes: u64,
    pushed: u64,
    /// Buffers (`sk_buff`s) that the data in flight fills.
    super_packets: u32,
    writer: Writer,
    /// The send queue waits until `host_queue` falls (`TSQ_THROTTLED`) below `host_room`.
    pub throttled: bool,
    /// The application may write more after everything is written.
    stays_open: bool,
    /// New data must report the reduced window (`TCP_ECN_QUEUE_CWR`); the ECN fields of new data and of
    /// retransmissions.
    queues_cwr: bool,
    ecn: [Ecn; 2],
    /// Acknowledgements count marks (RFC 9768) instead of echoing them.
    accurate_ecn: bool,
    /// `TCP_NODELAY`: a short segment never waits for another's acknowledgement.
    pub no_delay: bool,
    /// Sent data waits in a queue of the sending host.
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
    /// The largest window ever offered, from which the buffers' size follows; and where each unsent buffer ends.
    widest_window: u64,
    buffer_ends: VecDeque<u64>,
    cwnd_usage_seq: u64,
    /// The end of the last segment that was short when first sent (`snd_sml`).
    small_end: u64,
    /// Bytes to send in total.
    total: u64,
    limited_since: Option<(Limit, Time)>,
    first_tx_us: u64,
    /// The newest delivery rate: segments, and the microseconds that they took (`rate_delivered`, `rate_interval_us`).
    rate: [u64; 2],
    last_send_jiffies: u32,
    /// The last timestamp value received, echoed in data.
    ts_recent: u32,

    // Loss detection and recovery: what is read even without losses.
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
    undo: Option<Undo>,
    prr_delivered: u32,
    prr_out: u32,
    reordering_seen: bool,
    frto: bool,
    tlp_retrans: bool,
    /// The segment that the probe retransmitted had been sent application-limited.
    tlp_orig_data_app_limited: bool,
    /// Probes of the window that is closed now.
    window_probes: u32,
    /// `net.ipv4.tcp_slow_start_after_idle = 0`.
    pub keeps_window_when_idle: bool,
    /// What the last ACK lets it retransmit, once an agent has decided.
    waiting: Option<Recover>,
}

/// What keeps the sender from sending more, other than congestion control (`tcp_chrono`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    ReceiveWindow,
    SendBuffer,
}

impl Sender {
    /// A sender whose handshake took `handshake_us` microseconds (0: unknown) and whose peer offers `send_window`
    /// bytes. `total` is how many bytes it has to send (`u64::MAX`: endless), `sack` whether both ends agreed on SACK.
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
            // As in Linux, it falls back to Reno.
            chosen = Algorithm::Reno.into();
        }
        let congestion = Congestion::new(&chosen, &flight, &mut window, clock, start.seed);
        window.pacing &= !options.unpaced;
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
            segment_memory: writer::segment_memory(options.mss, options.timestamps),
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
            undo: None,
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
            keeps_window_when_idle: false,
            waiting: None,
            prr_delivered: 0,
            prr_out: 0,
            retransmit_hint: None,
            first_tx_us: now_us,
            rate: [0; 2],
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
        // The first window leaves in super-packets sized by the handshake's round trip.
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
        self.settle_timer(clock);
    }

    /// The application writes `bytes` more; sends what may be sent.
    pub fn extend(&mut self, bytes: u64, clock: Clock, out: &mut Vec<Burst>) {
        if self.written == self.total {
            self.note_app_limit();
        }
        self.total = self.total.saturating_add(bytes);
        self.write(clock, out);
        self.settle_timer(clock);
    }

    /// The application closes: a short last segment no longer waits for more.
    pub fn close(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        self.stays_open = false;
        self.xmit(output::Push::All, clock, out);
        self.settle_timer(clock);
    }

    /// The send buffer has this many bytes from now on (`tcp_wmem[1]`, `SO_SNDBUF`); it does not grow if `is_fixed`.
    pub fn set_send_buffer(&mut self, bytes: u64, is_fixed: bool) {
        self.send_buffer = bytes;
        if is_fixed {
            self.options.send_buffer = bytes;
        }
    }

    /// Bytes that the application has written so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether everything was acknowledged and nothing will follow.
    pub fn is_done(&self) -> bool {
        self.flight.snd_una >= self.total && !self.stays_open
    }
    /// When [`Self::on_timer`] must be called next.
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

/// The results of the handshake.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// Round-trip time of the SYN in microseconds; 0 if none was measured.
    pub handshake_us: u64,
    /// How often the SYN or its answer was repeated after a timeout; 0 if the first one arrived, which makes the
    /// repetitions needless.
    pub syn_repeats: u32,
    /// The window that the SYN-ACK offered, in bytes.
    pub send_window: u64,
    /// The timestamp value of the SYN-ACK.
    pub ts_recent: u32,
    /// Both ends agreed on ECN.
    pub ecn: bool,
    /// The sending host has a separate queue (a card with a rate).
    pub host_queued: bool,
    /// The application may write more after everything is written; otherwise it closes then, and nothing waits for
    /// more.
    pub stays_open: bool,
    /// Seed for an algorithm's random draws.
    pub seed: u64,
}
