//! The host under test: both halves of the simulated endpoint, in virtual time. Its interface counts in bytes, as
//! scripts do. FIN and its acknowledgement are this file's, since the simulated sender ends without one.

use crate::script::{Mark, Packet, TcpOption};
use crate::settings::Settings;
use crate::wire::{Sent, Stamps};
use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::options::HostOptions;
use sawtooth_tcp::packet::{Ack, Block, Burst, CWR, Ecn, PUSH};
use sawtooth_tcp::receiver::{Data, Echo, Receiver};
use sawtooth_tcp::sender::{Sender, Start};
use sawtooth_units::Time;
use std::collections::VecDeque;

/// Virtual time of a script's start in microseconds: large enough that no clock reads 0.
const ORIGIN_US: i64 = 10_000_000;
/// The MSS that this host announces, in bytes: for Ethernet frames.
const LOCAL_MSS: u64 = 1_460;
/// The timestamp option in every segment, in bytes.
const TIMESTAMP_OPTION: u64 = 12;
/// RFC 9293 section 3.7.1, in bytes.
const DEFAULT_MSS: u64 = 536;
/// Largest window scale in a SYN that is used (RFC 7323 section 2.3).
const MAX_WINDOW_SCALE: u32 = 14;
/// No IP packet holds more bytes.
const LARGEST_PAYLOAD: u64 = 65_535;
/// The largest value of the window field.
const LARGEST_FIELD: u64 = 65_535;

/// The options that both ends agreed on in the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Payload bytes of a full segment.
    pub mss: u64,
    /// The scales of the peer's windows and of this host's.
    pub window_scale: u32,
    pub own_scale: u32,
    scales: bool,
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
    /// The timestamp in the peer's SYN.
    pub ts_recent: u32,
}

impl Agreement {
    /// The options that follow from the peer's SYN or SYN-ACK.
    ///
    /// # Errors
    ///
    /// An option that the simulated endpoint does not have.
    pub fn with(peer: &Packet, settings: &Settings) -> Result<Self, String> {
        let mut agreement = Agreement { mss: DEFAULT_MSS, ..Agreement::default() };
        for option in &peer.options {
            match option {
                TcpOption::Mss(mss) => agreement.mss = (*mss).clamp(1, LOCAL_MSS),
                TcpOption::WindowScale(shift) => {
                    agreement.scales = true;
                    agreement.window_scale = (*shift).min(MAX_WINDOW_SCALE);
                    agreement.own_scale = settings.host_options(LOCAL_MSS).window_scale();
                }
                TcpOption::SackPermitted => agreement.sack = settings.sack,
                TcpOption::Timestamps(value, _) => {
                    agreement.timestamps = settings.timestamps;
                    agreement.ts_recent = *value;
                }
                TcpOption::Other(name) => return Err(format!("TCP option {name}")),
                TcpOption::Sack(_) | TcpOption::Nothing => {}
            }
        }
        // A client asks with ECE and CWR, and a server agrees with ECE (RFC 3168 section 6.1.1).
        agreement.ecn = match peer.has('.') {
            false => peer.has('E') && peer.has('W') && settings.ecn > 0,
            true => peer.has('E') && !peer.has('W') && settings.ecn == 1,
        };
        if agreement.timestamps {
            agreement.mss = agreement.mss.saturating_sub(TIMESTAMP_OPTION).max(1);
        } else {
            agreement.ts_recent = 0;
        }
        Ok(agreement)
    }

    fn local_options(&self, settings: &Settings) -> HostOptions {
        let mss = LOCAL_MSS - if self.timestamps { TIMESTAMP_OPTION } else { 0 };
        HostOptions { sack: self.sack, timestamps: self.timestamps, ..settings.host_options(mss) }
    }

    /// The receiver, which exists as soon as the peer's SYN has arrived.
    pub fn receiver(&self, settings: &Settings, now_us: i64) -> Receiver {
        let echo = if self.ecn { Echo::Classic } else { Echo::Nothing };
        let mut receiver =
            Receiver::new(self.local_options(settings), self.sack, echo, Clock::new(time(now_us), settings.hz));
        receiver.wait_for_reads();
        receiver
    }
}

/// This host's SYN, or its answer to the peer's.
pub fn syn(settings: &Settings, answers: Option<&Agreement>, now_us: i64) -> Sent {
    let clock = Clock::new(time(now_us), settings.hz);
    let options = settings.host_options(LOCAL_MSS);
    let agreed = |wish: bool, agreed: fn(&Agreement) -> bool| answers.map_or(wish, agreed);
    let mut list = vec![TcpOption::Mss(LOCAL_MSS)];
    if agreed(settings.sack, |one| one.sack) {
        list.push(TcpOption::SackPermitted);
    }
    if agreed(settings.timestamps, |one| one.timestamps) {
        let echo = answers.map_or(0, |one| one.ts_recent);
        list.push(TcpOption::Timestamps(clock.timestamp(), echo));
    }
    if answers.is_none_or(|one| one.scales) {
        list.push(TcpOption::WindowScale(options.window_scale()));
    }
    Sent {
        at_us: now_us,
        syn: true,
        ece: answers.map_or(settings.ecn == 1, |one| one.ecn),
        cwr: answers.is_none() && settings.ecn == 1,
        ack: answers.map(|_| 1),
        window: options.first_window(LOCAL_MSS as u32),
        options: list,
        ..Sent::default()
    }
}

/// What happened before the connection was established.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// The peer's window in bytes.
    pub window: u64,
    pub handshake_us: i64,
    pub now_us: i64,
}

pub struct Host {
    sender: Sender,
    receiver: Receiver,
    hz: u32,
    agreement: Agreement,
    /// Whether packets leave as super-packets.
    offload: bool,
    /// Size of the segments of which a longer inbound packet consists (`--mss`).
    unit: Option<u32>,
    /// The largest window that the peer has offered, in bytes.
    largest_window: u64,
    pub now_us: i64,
    pub sent: VecDeque<Sent>,
    /// Bytes that the application has written.
    written: u64,
    /// It has closed; and its FIN was sent.
    closed: bool,
    fin_sent: bool,
    reset: bool,
    /// Everything up to the peer's FIN has arrived.
    ended: bool,
    /// The newest timestamp of the peer in a packet without data, and in any.
    ts_recent: u32,
    ts_newest: u32,
    /// When data last arrived, and since when data is unacknowledged or unsent; the sum of such times before.
    received_us: i64,
    busy_since_us: Option<i64>,
    busy_us: i64,
}

impl Host {
    /// An established connection.
    pub fn open(settings: &Settings, agreement: Agreement, mut receiver: Receiver, opened: Opened) -> Self {
        let Opened { window, handshake_us, now_us } = opened;
        let hz = settings.hz;
        let options = HostOptions { mss: agreement.mss as u32, ..agreement.local_options(settings) };
        // A real handshake always takes some time.
        let handshake_us = handshake_us.max(1) as u64;
        let start = Start {
            handshake_us,
            send_window: window,
            ts_recent: agreement.ts_recent,
            ecn: agreement.ecn,
            stays_open: true,
            ..Start::default()
        };
        let clock = Clock::new(time(now_us), hz);
        let mut sender = Sender::new(settings.algorithm, options, agreement.sack, 0, start, clock);
        // On a real host, the queue discipline paces the packets; here only the sender's own pacer can do it.
        sender.window.pacing |= settings.paced;
        sender.window.min_tso_segs = settings.min_tso_segs;
        sender.keeps_window_when_idle = !settings.slow_start_after_idle;
        sender.no_delay = settings.no_delay;
        let (buffer, is_fixed) = settings.send_buffer();
        sender.set_send_buffer(buffer, is_fixed);
        receiver.note_handshake(handshake_us, clock);
        Host {
            sender,
            receiver,
            hz,
            agreement,
            offload: settings.offload,
            unit: settings.peer_mss,
            largest_window: window,
            now_us,
            sent: VecDeque::new(),
            written: 0,
            closed: false,
            fin_sent: false,
            reset: false,
            ended: false,
            ts_recent: agreement.ts_recent,
            ts_newest: agreement.ts_recent,
            received_us: now_us,
            busy_since_us: None,
            busy_us: 0,
        }
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

    /// The application sets `SO_SNDBUF`.
    pub fn fix_send_buffer(&mut self, bytes: u64) {
        self.sender.set_send_buffer(bytes, true);
    }

    /// The application sets `SO_RCVBUF`.
    pub fn fix_receive_buffer(&mut self, bytes: u64) {
        self.receiver.fix_buffer(bytes);
    }

    /// Bytes that arrived in order and are unread.
    pub fn unread(&self) -> u64 {
        self.receiver.expects() - self.receiver.delivered()
    }

    /// The application reads.
    pub fn read(&mut self, bytes: u64) {
        let clock = self.clock();
        let mut acks = Vec::new();
        self.receiver.read(bytes, Time::NEVER, clock, &mut |ack| acks.push(*ack));
        self.acknowledge(&acks);
    }

    /// The application closes: what is unsent follows, then a FIN. With unread data the connection is reset.
    pub fn close(&mut self) {
        if self.closed {
            return;
        }
        self.closed = true;
        if self.unread() > 0 {
            let sent = Sent { reset: true, ..self.pure_ack(1 + self.sender.flight.snd_nxt) };
            self.sent.push_back(sent);
            (self.reset, self.fin_sent) = (true, true);
            return;
        }
        self.step(Sender::close);
        self.send_fin();
    }

    /// A FIN follows everything that was written.
    fn send_fin(&mut self) {
        if self.closed && !self.fin_sent && self.sender.flight.snd_nxt == self.written {
            self.fin_sent = true;
            let ack = self.current_ack();
            let sent = Sent { fin: true, ..self.packet_with_ack(&ack, 1 + self.written) };
            self.sent.push_back(sent);
        }
    }

    /// Whether it was reset by this host.
    pub fn is_reset(&self) -> bool {
        self.reset
    }

    /// Whether a FIN was sent.
    pub fn is_ending(&self) -> bool {
        self.fin_sent
    }

    /// The peer's packet arrives.
    ///
    /// # Errors
    ///
    /// What the simulated endpoint does not have.
    pub fn take(&mut self, packet: &Packet, stamps: &Stamps) -> Result<(), String> {
        if packet.length > LARGEST_PAYLOAD {
            return Err("a packet of more than 64 KiB".to_owned());
        }
        let next = packet.ack.unwrap_or(1);
        let most = 1 + self.sender.flight.snd_nxt + u64::from(self.fin_sent);
        if next > most {
            // It acknowledges what was never sent. Linux 6.12 does not answer.
            return Ok(());
        }
        if next + self.largest_window < 1 + self.sender.flight.snd_una {
            // It acknowledges what was sent long ago (RFC 5961 section 5.2).
            let challenge = self.pure_ack(self.next_sequence());
            self.sent.push_back(challenge);
            return Ok(());
        }
        let (tsval, tsecr) = match packet.timestamps().filter(|_| self.agreement.timestamps) {
            Some((value, echo)) => (value, stamps.echo(echo)),
            None => (self.ts_newest, 0),
        };
        let window = packet.window.unwrap_or(0) << self.agreement.window_scale;
        self.largest_window = self.largest_window.max(window);
        let ack = Ack {
            next: Self::byte(next, "acknowledgement")?.min(self.sender.flight.snd_nxt),
            window,
            tsval,
            tsecr,
            ece: packet.has('E'),
            ..Self::sack_of(packet)?
        };
        let first = Self::byte(packet.start, "data")?;
        // The receiver takes the timestamps of data, as long as it waits for the oldest that is not yet acknowledged.
        let is_next = packet.length == 0 && first <= self.receiver.expects() && self.receiver.tick() == Time::NEVER;
        if is_next && tsval.wrapping_sub(self.ts_recent).cast_signed() > 0 {
            self.ts_recent = tsval;
        }
        self.ts_newest = self.ts_newest.max(tsval);
        let acks = self.receive(packet, first, [tsval, tsecr])?;
        let carries = self.sent.len();
        // Data with an acknowledgement that says nothing new is no duplicate acknowledgement.
        let is_bare = packet.length == 0 && !packet.has('F');
        if is_bare || ack.next > self.sender.flight.snd_una || ack.sack.count > 0 || ack.ece {
            self.step(|sender, clock, out| sender.on_ack(&ack, clock, out));
        }
        self.send_fin();
        if self.sent.len() == carries {
            self.acknowledge(&acks);
        }
        Ok(())
    }

    /// Takes the packet's data and FIN; returns the acknowledgements to send, unless new data carries them.
    fn receive(&mut self, packet: &Packet, first: u64, [tsval, tsecr]: [u32; 2]) -> Result<Vec<Ack>, String> {
        let (clock, mut acks) = (self.clock(), Vec::new());
        let mut emit = |ack: &Ack| acks.push(*ack);
        // A FIN ends what blocks would tell, such as that its data had arrived before (`tcp_fin`).
        let repeats = packet.has('F') && first + packet.length == self.receiver.expects();
        if packet.length > 0 && !repeats {
            let ecn = match packet.mark {
                Some(Mark::Is(ecn)) => ecn,
                Some(Mark::Ect) => Ecn::Ect0,
                None => Ecn::NotEct,
            };
            let flags = ecn as u8 | if packet.has('P') { PUSH } else { 0 } | if packet.has('W') { CWR } else { 0 };
            let length = packet.length as u32;
            let data = Data { seq: first, length, flags, tsval, tsecr };
            match self.unit.filter(|&unit| length > unit) {
                Some(unit) => self.receiver.on_merged(data, unit, clock, &mut emit),
                None => self.receiver.on_data(data, clock, &mut emit),
            };
            self.received_us = self.now_us;
        } else if !repeats && first < self.receiver.expects() {
            // A probe of the window, or a keep-alive: it is answered.
            self.receiver.on_window_probe(clock, &mut emit);
        }
        if packet.has('F') && !self.ended {
            if first + packet.length != self.receiver.expects() {
                return Err("a FIN out of order".to_owned());
            }
            self.ended = true;
            // Data and FIN have one acknowledgement.
            if acks.is_empty() {
                self.receiver.take_end(self.closed, clock, &mut |ack| acks.push(*ack));
            }
        }
        Ok(acks)
    }

    fn sack_of(packet: &Packet) -> Result<Ack, String> {
        let mut ack = Ack::default();
        let blocks = packet.sack();
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
            let (receiving, next) = (self.receiver.timer(), timer.min(pacing).min(self.receiver.timer()));
            if next > time(until_us) {
                break;
            }
            self.now_us = self.now_us.max(next.nanos().div_ceil(1_000) as i64 - ORIGIN_US);
            if receiving <= timer.min(pacing) {
                let (clock, mut acks) = (self.clock(), Vec::new());
                self.receiver.on_timer(clock, &mut |ack| acks.push(*ack));
                self.acknowledge(&acks);
            } else if timer <= pacing {
                self.step(|sender, clock, out| sender.on_timer(clock, out));
            } else {
                self.step(|sender, clock, out| sender.on_room(clock, out));
            }
            self.send_fin();
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
        for burst in out {
            self.send(&burst);
        }
        let is_busy = self.sender.flight.snd_una < self.written;
        match self.busy_since_us {
            None if is_busy => self.busy_since_us = Some(self.now_us),
            Some(since_us) if !is_busy => {
                self.busy_us += self.now_us - since_us;
                self.busy_since_us = None;
            }
            _ => {}
        }
    }

    /// Sends data, or a probe of the window; without offload in segments.
    fn send(&mut self, burst: &Burst) {
        let mss = if self.offload { u64::from(burst.bytes).max(1) } else { self.agreement.mss };
        let mut start = burst.start;
        loop {
            let length = mss.min(burst.end() - start);
            let ack = self.current_ack();
            let is_last = start + length == burst.end();
            // A FIN that waits for the last data leaves with it.
            let fin = self.closed && !self.fin_sent && is_last && burst.bytes > 0 && burst.end() == self.written;
            self.fin_sent |= fin;
            let first = if burst.is_window_probe() { start } else { 1 + start };
            let sent = Sent {
                length,
                fin,
                ecn: burst.ecn,
                cwr: burst.cwr && start == burst.start,
                ..self.packet_with_ack(&ack, first)
            };
            self.sent.push_back(sent);
            start += length;
            if is_last {
                return;
            }
        }
    }

    /// The acknowledgement that a packet sent now carries.
    fn current_ack(&mut self) -> Ack {
        let (clock, mut ack) = (self.clock(), Ack::default());
        self.receiver.answer(clock, &mut |latest| ack = *latest);
        ack
    }

    fn acknowledge(&mut self, acks: &[Ack]) {
        for ack in acks {
            let sent = self.packet_with_ack(ack, self.next_sequence());
            self.sent.push_back(sent);
        }
    }

    fn next_sequence(&self) -> u64 {
        1 + self.sender.flight.snd_nxt + u64::from(self.fin_sent)
    }

    /// A packet without data that carries `ack`.
    fn packet_with_ack(&self, ack: &Ack, start: u64) -> Sent {
        let mut options = Vec::new();
        if self.agreement.timestamps {
            let newer = self.ts_recent.wrapping_sub(ack.tsecr).cast_signed() > 0;
            let echo = if newer { self.ts_recent } else { ack.tsecr };
            options.push(TcpOption::Timestamps(self.clock().timestamp(), echo));
        }
        if ack.sack.count > 0 {
            let blocks = ack.sack.blocks().iter().map(|block| (1 + block.start, 1 + block.end)).collect();
            options.push(TcpOption::Sack(blocks));
        }
        Sent {
            at_us: self.now_us,
            start,
            ack: Some(1 + ack.next + u64::from(self.ended)),
            window: (ack.window >> self.agreement.own_scale).min(LARGEST_FIELD),
            ece: ack.ece,
            options,
            ..Sent::default()
        }
    }

    /// A packet that only acknowledges, at sequence number `start`.
    fn pure_ack(&mut self, start: u64) -> Sent {
        let ack = self.current_ack();
        self.packet_with_ack(&ack, start)
    }

    /// The client's answer to the SYN-ACK.
    pub fn confirm(&mut self) {
        let sent = self.pure_ack(1);
        self.sent.push_back(sent);
    }

    fn clock(&self) -> Clock {
        Clock::new(time(self.now_us), self.hz)
    }

    /// A field of `struct tcp_info`, or a constant for `tcpi_ca_state`, by name.
    pub fn read_info(&self, name: &str) -> Option<i64> {
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
            "tcpi_advmss" => LOCAL_MSS as i64,
            "tcpi_busy_time" => self.busy_us + self.busy_since_us.map_or(0, |since_us| self.now_us - since_us),
            "tcpi_ca_state" => flight.ca_state as i64,
            "tcpi_delivered" => flight.delivered as i64,
            "tcpi_delivered_ce" => flight.delivered_ce as i64,
            "tcpi_last_data_recv" => (self.now_us - self.received_us) / 1_000,
            "tcpi_lost" => i64::from(flight.lost_out),
            "tcpi_min_rtt" => i64::from(flight.min_rtt_us),
            "tcpi_notsent_bytes" => self.written as i64 - flight.snd_nxt as i64,
            "tcpi_rcv_mss" => self.receiver.full_segment() as i64,
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
