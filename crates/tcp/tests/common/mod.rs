//! Drives a [`Sender`] by hand: feeds acknowledgements at stated times and collects what it sends.

use sawtooth_tcp::cc::Algorithm;
use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::options::HostOptions;
use sawtooth_tcp::packet::{Ack, Block, Burst, Sack};
use sawtooth_tcp::sender::{Sender, Start};
use sawtooth_units::{Span, Time};

/// More than any test sends: the receive window is no limit.
pub const WIDE: u64 = 1 << 30;
pub const MSS: u64 = 1448;

/// Bytes of `segments` full segments; `u64::MAX` stays what it is.
pub fn bytes(segments: u64) -> u64 {
    segments.saturating_mul(MSS)
}

/// How a driven connection begins.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub algorithm: Algorithm,
    pub options: HostOptions,
    /// Segments in all; `u64::MAX`: endless.
    pub total: u64,
    pub rtt: Span,
    /// The receive window in bytes.
    pub window: u64,
    /// The host has its own queue.
    pub host_queued: bool,
    /// The application may write more once all is written.
    pub stays_open: bool,
    /// Both ends agreed on ECN.
    pub ecn: bool,
}

impl Default for Setup {
    /// Reno over 100 ms without timestamps, so that only SACK tells originals from retransmissions; a tick is 1 ms.
    fn default() -> Self {
        Setup {
            algorithm: Algorithm::Reno,
            options: HostOptions { hz: 1000, timestamps: false, ..HostOptions::default() },
            total: u64::MAX,
            rtt: Span::from_millis(100),
            window: WIDE,
            host_queued: false,
            stays_open: false,
            ecn: false,
        }
    }
}

impl Setup {
    pub fn hz(self, hz: u32) -> Self {
        Setup { options: HostOptions { hz, ..self.options }, ..self }
    }
    pub fn total(self, total: u64) -> Self {
        Setup { total, ..self }
    }
    pub fn rtt(self, rtt: Span) -> Self {
        Setup { rtt, ..self }
    }
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        Setup { algorithm, ..self }
    }
    pub fn window(self, window: u64) -> Self {
        Setup { window, ..self }
    }
    pub fn sack(self, sack: bool) -> Self {
        Setup { options: HostOptions { sack, ..self.options }, ..self }
    }
    pub fn timestamps(self) -> Self {
        Setup { options: HostOptions { timestamps: true, ..self.options }, ..self }
    }

    pub fn ecn(self) -> Self {
        Setup { ecn: true, ..self }
    }

    /// Opens the connection at 1 s and lets it send its first window.
    pub fn open(self) -> Driver {
        let now = Driver::START;
        let clock = Clock::new(now, self.options.hz);
        let start = Start {
            handshake_us: self.rtt.micros(),
            send_window: self.window,
            host_queued: self.host_queued,
            stays_open: self.stays_open,
            ecn: self.ecn,
            ..Start::default()
        };
        let sender = Sender::new(self.algorithm, self.options, self.options.sack, bytes(self.total), start, clock);
        let mut driver = Driver {
            sender,
            now,
            hz: self.options.hz,
            window: self.window,
            first: Vec::new(),
            holds_host_queue: false,
        };
        driver.first = driver.act(|sender, clock, out| sender.start(clock, out));
        driver
    }
}

pub struct Driver {
    pub sender: Sender,
    pub now: Time,
    /// The window that the next acknowledgements offer, in bytes.
    pub window: u64,
    /// What left at the start.
    pub first: Vec<Burst>,
    /// Packets stay in the host's own queue; otherwise they leave it at once.
    pub holds_host_queue: bool,
    hz: u32,
}

impl Driver {
    pub const START: Time = Time::from_nanos(1_000_000_000);

    pub fn clock(&self) -> Clock {
        Clock::new(self.now, self.hz)
    }
    /// Goes to a time after the start.
    pub fn at(&mut self, since_start: Span) -> &mut Self {
        let then = Self::START + since_start;
        assert!(then >= self.now, "time only moves on");
        self.now = then;
        self
    }
    pub fn at_ms(&mut self, millis: u64) -> &mut Self {
        self.at(Span::from_millis(millis))
    }
    /// Goes on by two milliseconds: the sender no longer waits for a fuller super-packet (`tcp_tso_should_defer`).
    pub fn soon(&mut self) -> &mut Self {
        self.now += Span::from_millis(2);
        self
    }
    /// Whole milliseconds since the start.
    pub fn elapsed_ms(&self) -> u64 {
        self.now.since(Self::START).micros() / 1_000
    }

    pub fn act(&mut self, act: impl FnOnce(&mut Sender, Clock, &mut Vec<Burst>)) -> Vec<Burst> {
        let mut out = Vec::new();
        let clock = self.clock();
        act(&mut self.sender, clock, &mut out);
        while !self.holds_host_queue {
            self.sender.host_queue = 0;
            if !self.sender.throttled {
                break;
            }
            self.sender.on_room(clock, &mut out);
        }
        self.check();
        out
    }

    /// What must hold after every step.
    pub fn check(&self) {
        let f = &self.sender.flight;
        assert!(f.sacked_out + f.lost_out <= f.packets_out, "{f:?}");
        assert!(f.retrans_out <= f.lost_out.max(1), "{f:?}");
        assert!(bytes(f.packets_out.into()) >= f.snd_nxt - f.snd_una, "{f:?}");
        assert_eq!(f.packets_out == 0, f.snd_nxt == f.snd_una, "{f:?}");
        assert!(self.sender.window.cwnd >= 1, "{f:?}");
    }

    /// How many segments are acknowledged, and were sent for the first time.
    pub fn una(&self) -> u64 {
        self.sender.flight.snd_una / MSS
    }
    pub fn nxt(&self) -> u64 {
        self.sender.flight.snd_nxt / MSS
    }

    /// A cumulative acknowledgement. Here and below numbers are those of full segments.
    pub fn ack(&mut self, next: u64) -> Vec<Burst> {
        self.sack(next, &[])
    }
    /// An acknowledgement with SACK blocks `[start, end)`.
    pub fn sack(&mut self, next: u64, blocks: &[(u64, u64)]) -> Vec<Burst> {
        self.tell(next, blocks, false, 0)
    }
    /// An acknowledgement whose first block is a DSACK.
    pub fn dsack(&mut self, next: u64, blocks: &[(u64, u64)]) -> Vec<Burst> {
        self.tell(next, blocks, true, 0)
    }
    /// An acknowledgement that echoes the timestamp `tsecr`.
    pub fn echo(&mut self, next: u64, blocks: &[(u64, u64)], tsecr: u32) -> Vec<Burst> {
        self.tell(next, blocks, false, tsecr)
    }

    /// A cumulative acknowledgement with ECE.
    pub fn ece(&mut self, next: u64) -> Vec<Burst> {
        let ack = Ack { next: bytes(next), window: self.window, ece: true, ..Ack::default() };
        self.act(|sender, clock, out| sender.on_ack(&ack, clock, out))
    }

    fn tell(&mut self, next: u64, blocks: &[(u64, u64)], duplicate: bool, tsecr: u32) -> Vec<Burst> {
        let mut sack = Sack { duplicate, count: blocks.len() as u8, ..Sack::default() };
        for (slot, &(start, end)) in sack.blocks.iter_mut().zip(blocks) {
            *slot = Block { start: bytes(start), end: bytes(end) };
        }
        let tsval = if tsecr > 0 { self.clock().timestamp() } else { 0 };
        let ack = Ack { next: bytes(next), window: self.window, tsval, tsecr, sack, ..Ack::default() };
        self.act(|sender, clock, out| sender.on_ack(&ack, clock, out))
    }

    /// Goes to the sender's timer and lets it act, again and again until it has changed something.
    pub fn fire(&mut self) -> Vec<Burst> {
        for _ in 0..10 {
            let due = self.sender.timer();
            assert_ne!(due, Time::NEVER, "no timer is set");
            assert!(due >= self.now, "a timer is never in the past");
            self.now = due;
            let before = (self.sender.stats, self.sender.flight.lost);
            let sent = self.act(|sender, clock, out| sender.on_timer(clock, out));
            if !sent.is_empty() || before != (self.sender.stats, self.sender.flight.lost) {
                return sent;
            }
        }
        panic!("the timer came up ten times and nothing happened");
    }
}

/// Runs of segments as `(start, count)`.
pub fn runs(bursts: &[Burst]) -> Vec<(u64, u32)> {
    bursts.iter().map(|b| (b.start / MSS, b.count)).collect()
}
/// Segments in all.
pub fn segments(bursts: &[Burst]) -> u32 {
    bursts.iter().map(|b| b.count).sum()
}
