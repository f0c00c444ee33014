//! The host under test: the simulated sender in virtual time. Its interface counts in bytes, as scripts do.

use crate::script::{Packet, TcpOption};
use crate::settings::Settings;
use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::options::HostOptions;
use sawtooth_tcp::packet::{Ack, Block, Burst};
use sawtooth_tcp::sender::{Sender, Start};
use sawtooth_units::Time;
use std::collections::VecDeque;

/// The kernel's ticks per second, if not given.
pub const HZ: u32 = 1_000;
/// Virtual time of a script's start in microseconds: large enough that no clock reads 0.
const ORIGIN_US: i64 = 10_000_000;
/// The MSS that this host announces, in bytes: for Ethernet frames.
const LOCAL_MSS: u64 = 1_460;
/// RFC 9293 section 3.7.1, in bytes.
const DEFAULT_MSS: u64 = 536;
/// Largest window scale in a SYN that is used (RFC 7323 section 2.3).
const MAX_WINDOW_SCALE: u32 = 14;
/// `TCP_INIT_CWND`.
const INITIAL_WINDOW: u32 = 10;

/// A data packet that was sent, in bytes. With offload it may contain several segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Microseconds since the script's start.
    pub at_us: i64,
    pub start: u64,
    pub length: u64,
}

/// The options that both ends agreed on in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    pub mss: u64,
    pub window_scale: u32,
    pub sack: bool,
}

impl Agreement {
    /// The options that follow from the peer's SYN or SYN-ACK.
    ///
    /// # Errors
    ///
    /// An option that the simulated sender does not support.
    pub fn with(peer: &Packet, settings: &Settings) -> Result<Self, String> {
        let mut agreement = Agreement { mss: DEFAULT_MSS, window_scale: 0, sack: false };
        for option in &peer.options {
            match option {
                TcpOption::Mss(mss) => agreement.mss = (*mss).clamp(1, LOCAL_MSS),
                TcpOption::WindowScale(shift) => agreement.window_scale = (*shift).min(MAX_WINDOW_SCALE),
                TcpOption::SackPermitted => agreement.sack = settings.sack,
                TcpOption::Timestamps if settings.timestamps => return Err("timestamps".to_owned()),
                TcpOption::Other(name) => return Err(format!("TCP option {name}")),
                TcpOption::Timestamps | TcpOption::Sack(_) | TcpOption::Nothing => {}
            }
        }
        Ok(agreement)
    }
}

pub struct Host {
    sender: Sender,
    hz: u32,
    agreement: Agreement,
    pub now_us: i64,
    pub sent: VecDeque<Sent>,
    /// Bytes that the application has written.
    written: u64,
}

impl Host {
    /// A connection opened at `now_us` by a handshake that took `handshake_us`; `window` is the peer's receive window
    /// in bytes.
    pub fn open(settings: &Settings, agreement: Agreement, window: u64, handshake_us: i64, now_us: i64) -> Self {
        let hz = settings.hz;
        let options = HostOptions {
            hz,
            mss: agreement.mss as u32,
            initial_window: INITIAL_WINDOW,
            sack: agreement.sack,
            timestamps: false,
            ..HostOptions::default()
        };
        // A real handshake always takes some time.
        let start = Start {
            handshake_us: handshake_us.max(1) as u64,
            send_window: window,
            stays_open: true,
            ..Start::default()
        };
        let clock = Clock { now: time(now_us), hz };
        let mut sender = Sender::new(settings.algorithm, options, agreement.sack, 0, start, clock);
        // On a real host, the queue discipline paces the packets; here only the sender's own pacer can do it.
        sender.window.pacing |= settings.paced;
        Host { sender, hz, agreement, now_us, sent: VecDeque::new(), written: 0 }
    }

    /// The application writes.
    pub fn write(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
        self.step(|sender, clock, out| sender.extend(bytes, clock, out));
    }

    /// The application sets `TCP_NODELAY`.
    pub fn set_no_delay(&mut self) {
        self.sender.no_delay = true;
    }

    /// The peer's acknowledgement arrives.
    ///
    /// # Errors
    ///
    /// A statement about byte 0.
    pub fn acknowledge(&mut self, packet: &Packet) -> Result<(), String> {
        let ack = Ack {
            next: Self::byte(packet.ack.unwrap_or(1), "acknowledgement")?,
            window: packet.window.unwrap_or(0) << self.agreement.window_scale,
            ..Self::sack_of(packet)?
        };
        self.step(|sender, clock, out| sender.on_ack(&ack, clock, out));
        Ok(())
    }

    fn sack_of(packet: &Packet) -> Result<Ack, String> {
        let mut ack = Ack::default();
        let blocks = packet.options.iter().find_map(|option| match option {
            TcpOption::Sack(blocks) => Some(blocks.as_slice()),
            _ => None,
        });
        let blocks = blocks.unwrap_or_default();
        for (slot, &(start, end)) in ack.sack.blocks.iter_mut().zip(blocks) {
            *slot = Block { start: Self::byte(start, "SACK")?, end: Self::byte(end, "SACK")? };
            ack.sack.count += 1;
        }
        // D-SACK by RFC 2883 section 4: the block is below the acknowledgement, or inside the next block.
        if let Some(&(start, end)) = blocks.first() {
            let inside = blocks.get(1).is_some_and(|&(low, high)| low <= start && end <= high);
            ack.sack.duplicate = start < packet.ack.unwrap_or(1) || inside;
        }
        Ok(ack)
    }

    /// The byte at a sequence number `edge`; scripts count from the SYN.
    fn byte(edge: u64, what: &str) -> Result<u64, String> {
        edge.checked_sub(1).ok_or_else(|| format!("{what} of byte 0"))
    }

    /// Runs timers up to and including `until_us`; with `sending`, only until something is sent.
    pub fn run(&mut self, until_us: i64, sending: bool) {
        while !sending || self.sent.is_empty() {
            let (timer, pacing) = (self.sender.timer(), self.sender.next_room(|_| Time::NEVER));
            let next = timer.min(pacing);
            if next > time(until_us) {
                break;
            }
            self.now_us = self.now_us.max(next.nanos().div_ceil(1_000) as i64 - ORIGIN_US);
            if timer <= pacing {
                self.step(|sender, clock, out| sender.on_timer(clock, out));
            } else {
                self.step(|sender, clock, out| sender.on_room(clock, out));
            }
        }
        if !sending || self.sent.is_empty() {
            self.now_us = self.now_us.max(until_us);
        }
    }

    /// Lets the sender act. The device takes its packets at once.
    fn step(&mut self, act: impl FnOnce(&mut Sender, Clock, &mut Vec<Burst>)) {
        let mut out = Vec::new();
        let clock = self.clock();
        act(&mut self.sender, clock, &mut out);
        self.sender.host_queue = 0;
        while self.sender.throttled {
            self.sender.on_room(clock, &mut out);
            self.sender.host_queue = 0;
        }
        // A window probe has no data; scripts are not compared with it.
        self.sent.extend(out.iter().filter(|burst| !burst.is_window_probe()).map(|burst| Sent {
            at_us: self.now_us,
            start: 1 + burst.start,
            length: u64::from(burst.bytes),
        }));
    }

    fn clock(&self) -> Clock {
        Clock { now: time(self.now_us), hz: self.hz }
    }

    /// Whether byte `start` was already acknowledged.
    pub fn acknowledged(&self, start: u64) -> bool {
        start < 1 + self.sender.flight.snd_una
    }

    /// A field of `struct tcp_info`, or a constant for `tcpi_ca_state`, by name.
    pub fn read(&self, name: &str) -> Option<i64> {
        let (flight, window) = (&self.sender.flight, &self.sender.window);
        let stats = &self.sender.stats;
        let clock = self.clock();
        let (rwnd_limited_ns, sndbuf_limited_ns) = self.sender.limited_ns(clock);
        Some(match name {
            "TCP_CA_Open" => 0,
            "TCP_CA_Disorder" => 1,
            "TCP_CA_CWR" => 2,
            "TCP_CA_Recovery" => 3,
            "TCP_CA_Loss" => 4,
            "tcpi_ca_state" => flight.ca_state as i64,
            "tcpi_delivered" => flight.delivered as i64,
            "tcpi_lost" => i64::from(flight.lost_out),
            "tcpi_min_rtt" => i64::from(flight.min_rtt_us),
            "tcpi_notsent_bytes" => self.written as i64 - flight.snd_nxt as i64,
            "tcpi_reordering" => i64::from(self.sender.reordering()),
            "tcpi_retrans" => i64::from(flight.retrans_out),
            "tcpi_rto" => self.sender.rto_us(clock) as i64,
            "tcpi_rtt" => i64::from(flight.srtt_us >> 3),
            "tcpi_rwnd_limited" => (rwnd_limited_ns / 1_000) as i64,
            "tcpi_sacked" => i64::from(flight.sacked_out),
            "tcpi_snd_cwnd" => i64::from(window.cwnd),
            "tcpi_snd_mss" => i64::from(flight.mss),
            "tcpi_snd_ssthresh" => i64::from(window.ssthresh),
            "tcpi_sndbuf_limited" => (sndbuf_limited_ns / 1_000) as i64,
            "tcpi_total_retrans" => stats.retransmits as i64,
            "tcpi_unacked" => i64::from(flight.packets_out),
            _ => return None,
        })
    }
}

fn time(us: i64) -> Time {
    Time::from_nanos((us + ORIGIN_US) as u64 * 1_000)
}
