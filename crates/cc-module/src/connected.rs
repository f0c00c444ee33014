//! The connection of a flow that has a module. Before each hook, the sender's state is written into the C structures as
//! the kernel would have it. After the hook, the fields that a module may change are read back; its other changes are
//! overwritten before the next hook.

use crate::layout::{self, Operations, TcpSock};
use crate::library::Library;
use sawtooth_tcp::cc::module::Connected;
use sawtooth_tcp::cc::{AckSample, Event, RateSample};
use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::flight::{CaState, Flight};
use sawtooth_tcp::packet::Ack;
use sawtooth_tcp::window::{Reduction, Window};
use sawtooth_units::width::Low;
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;

/// The machine's uptime in seconds at the start of the simulation. It is not 0 because modules treat a time of 0 as
/// "never".
const UPTIME_S: u64 = 1_000;
/// The sequence number before the first byte of data.
const FIRST_BYTE: u32 = 1;
/// `sk_gso_max_size`: 64 KiB less one byte and the room for headers.
const GSO_MAX_SIZE: u32 = 65_536 - 1 - 256;

/// `enum tcp_ca_event`.
const CA_EVENT_TX_START: c_int = 0;
const CA_EVENT_CWND_RESTART: c_int = 1;
const CA_EVENT_COMPLETE_CWR: c_int = 2;
const CA_EVENT_LOSS: c_int = 3;
/// `enum tcp_ca_ack_event_flags`.
const CA_ACK_SLOWPATH: u32 = 1;
const CA_ACK_WIN_UPDATE: u32 = 2;
const CA_ACK_ECE: u32 = 4;
/// `TCP_CONG_NEEDS_ECN`.
pub const NEEDS_ECN: u32 = 2;
/// `TCP_ECN_OK`.
const ECN_OK: u8 = 1;

/// The error for a module that changed a guard word.
pub const OVERRUN: &str = "wrote beyond its private memory: icsk_ca_priv has 104 bytes";

/// Numbers of hooks, as positions in [`crate::watch::HOOKS`].
mod hook {
    pub const INIT: u64 = 2;
    pub const SSTHRESH: u64 = 3;
    pub const UNDO_CWND: u64 = 4;
    pub const CONG_AVOID: u64 = 5;
    pub const CONG_CONTROL: u64 = 6;
    pub const PKTS_ACKED: u64 = 7;
    pub const SET_STATE: u64 = 8;
    pub const CWND_EVENT: u64 = 9;
    pub const IN_ACK_EVENT: u64 = 10;
    pub const MIN_TSO_SEGS: u64 = 11;
    pub const SNDBUF_EXPAND: u64 = 12;
    pub const RELEASE: u64 = 13;
}

pub struct Connection {
    library: Arc<Library>,
    /// The C structure. Its address never changes, because a module may keep pointers into it.
    sock: Box<UnsafeCell<TcpSock>>,
    slow_path: bool,
    /// The acknowledgement has the ECE flag.
    ece: bool,
    /// The offset in the peer's timestamps (`secure_tcp_ts_off`). Linux removes the offset of its own timestamps before
    /// a module sees them.
    stamp_offset: u32,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("library", &self.library.number).finish_non_exhaustive()
    }
}

// SAFETY: the pointers inside point to structures of the library (kept alive with it) and to memory that the module has
// allocated for this connection. A simulation moves between threads as a whole, with all its connections.
unsafe impl Send for Connection {}
// SAFETY: data behind a shared reference is only accessed by the one thread that has entered the library
// (`Library::enter`). The exception is `operations`, which only hooks change.
unsafe impl Sync for Connection {}

impl Connection {
    pub fn new(
        library: Arc<Library>,
        operations: *const Operations,
        flight: &Flight,
        window: &mut Window,
        clock: Clock,
        seed: u64,
    ) -> Self {
        let mut sock = TcpSock::new(operations);
        sock.connection.sock.gso_max_size = GSO_MAX_SIZE;
        sock.random = seed;
        let sock = Box::new(UnsafeCell::new(sock));
        let connection = Connection { library, sock, slow_path: false, ece: false, stamp_offset: scattered(seed) };
        if let Some(init) = connection.operations().init {
            // SAFETY: see `call`.
            connection.call(hook::INIT, flight, window, clock, |sock| unsafe { init(sock) });
        }
        // SAFETY: no hook runs, so there is no other reference.
        unsafe { (*connection.sock.get()).connection.ca_initialized = 1 };
        connection
    }

    /// The connection's operations: the registered ones, or others that the module has set.
    fn operations(&self) -> &Operations {
        // SAFETY: the module registered them, and they stay valid as long as it is loaded.
        unsafe { &*(*self.sock.get()).connection.ops }
    }

    /// Writes the sender's state, calls the hook, and reads the result back.
    fn call<T>(
        &self,
        hook: u64,
        flight: &Flight,
        window: &mut Window,
        clock: Clock,
        function: impl FnOnce(*mut TcpSock) -> T,
    ) -> T {
        let _alone = self.library.enter(hook);
        let sock = self.sock.get();
        // SAFETY: this thread is alone in the library and no hook runs, so this is the only reference.
        let jiffies = time_in(unsafe { &mut *sock }, clock);
        // SAFETY: as above.
        state_in(unsafe { &mut *sock }, flight, window);
        let result = self.run(jiffies, sock, function);
        // SAFETY: the hook has returned.
        state_out(unsafe { &mut *sock }, window, flight.delivered);
        result
    }

    /// The same for a call without a clock that may not change anything.
    fn ask<T>(&self, hook: u64, flight: &Flight, window: &Window, function: impl FnOnce(*mut TcpSock) -> T) -> T {
        let _alone = self.library.enter(hook);
        let sock = self.sock.get();
        // SAFETY: as in `call`.
        state_in(unsafe { &mut *sock }, flight, window);
        // SAFETY: a variable of the library, which only this thread uses now.
        let jiffies = unsafe { *self.library.jiffies };
        self.run(jiffies, sock, function)
    }

    /// Only call this after entering the library.
    fn run<T>(&self, jiffies: u64, sock: *mut TcpSock, function: impl FnOnce(*mut TcpSock) -> T) -> T {
        // SAFETY: variables of the library, which only this thread uses now.
        unsafe {
            *self.library.jiffies = jiffies;
            *self.library.current = sock;
        }
        let result = function(sock);
        // SAFETY: the hook has returned.
        if !unsafe { (*sock).is_whole() } {
            // Without the message of a panic: the caller that catches it prints a better one.
            resume_unwind(Box::new(OVERRUN.to_owned()));
        }
        result
    }
}

/// Spread values without using the module's random numbers (Fibonacci hashing).
fn scattered(seed: u64) -> u32 {
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).low_u32()
}

/// Writes the time to the socket. Returns it in ticks.
fn time_in(sock: &mut TcpSock, clock: Clock) -> u64 {
    sock.tcp_clock_cache = clock.now.nanos() + UPTIME_S * 1_000_000_000;
    sock.tcp_mstamp = micros(clock.micros());
    sock.timestamp = clock.timestamp();
    clock.jiffies64() + UPTIME_S * u64::from(clock.hz())
}

fn micros(since_start: u64) -> u64 {
    since_start + UPTIME_S * 1_000_000
}

/// The sequence number of a byte on the wire; wraps around.
fn number(byte: u64) -> u32 {
    byte.low_u32().wrapping_add(FIRST_BYTE)
}

fn state_in(sock: &mut TcpSock, flight: &Flight, window: &Window) {
    sock.connection.ca_state = flight.ca_state as u8;
    sock.tcp_wstamp_ns = flight.wstamp_ns + UPTIME_S * 1_000_000_000;
    sock.delivered_mstamp = micros(flight.delivered_us);
    sock.bytes_acked = flight.snd_una;
    sock.snd_una = number(flight.snd_una);
    sock.snd_nxt = number(flight.snd_nxt);
    sock.mss_cache = flight.mss;
    sock.advmss = flight.mss;
    sock.srtt_us = flight.srtt_us;
    sock.rtt_min[0].value = flight.min_rtt_us;
    sock.prior_cwnd = flight.prior_cwnd;
    sock.prior_ssthresh = flight.prior_ssthresh;
    sock.packets_out = flight.packets_out;
    sock.sacked_out = flight.sacked_out;
    sock.lost_out = flight.lost_out;
    sock.retrans_out = flight.retrans_out;
    sock.max_packets_out = flight.max_packets_out;
    sock.delivered = flight.delivered.low_u32();
    sock.delivered_ce = flight.delivered_ce.low_u32();
    sock.ecn_flags = if flight.ecn { ECN_OK } else { 0 };
    sock.lost = flight.lost.low_u32();
    sock.is_cwnd_limited = u8::from(flight.is_cwnd_limited);

    sock.snd_cwnd = window.cwnd;
    sock.snd_cwnd_cnt = window.cwnd_cnt;
    sock.snd_cwnd_clamp = window.clamp;
    sock.snd_ssthresh = window.ssthresh;
    sock.app_limited = window.app_limited.low_u32();
    sock.connection.sock.pacing_rate = window.pacing_rate;
    sock.connection.sock.pacing_status = u32::from(window.pacing);
}

/// Reads back the fields that a module may change.
fn state_out(sock: &mut TcpSock, window: &mut Window, delivered: u64) {
    window.cwnd = sock.snd_cwnd;
    window.cwnd_cnt = sock.snd_cwnd_cnt;
    window.clamp = sock.snd_cwnd_clamp;
    window.ssthresh = sock.snd_ssthresh;
    window.pacing_rate = sock.connection.sock.pacing_rate;
    window.pacing = sock.connection.sock.pacing_status != 0;
    if sock.app_limited != window.app_limited.low_u32() {
        // A 32-bit difference from the delivered count.
        let ahead = i64::from(sock.app_limited.wrapping_sub(delivered.low_u32()).cast_signed());
        window.app_limited = if sock.app_limited == 0 { 0 } else { delivered.saturating_add_signed(ahead).max(1) };
    }
    match std::mem::take(&mut sock.entered_cwr) {
        0 => {}
        1 => window.reduces = Some(Reduction::GoesOn),
        _ => window.reduces = Some(Reduction::Begun { prior_cwnd: sock.prior_cwnd }),
    }
}

/// The low 32 bits; -1 means "none".
fn narrow(value: i64) -> i32 {
    value.low_u32().cast_signed()
}

// SAFETY of each call below: the hook belongs to the module. It gets a pointer to its connection, and sometimes to a
// sample, both valid until it returns.
impl Connected for Connection {
    fn has_cong_control(&self) -> bool {
        self.operations().cong_control.is_some()
    }

    fn needs_ecn(&self) -> bool {
        self.operations().flags & NEEDS_ECN != 0
    }

    fn ssthresh(&mut self, flight: &Flight, window: &mut Window, clock: Clock) -> u32 {
        let Some(function) = self.operations().ssthresh else { return window.ssthresh };
        self.call(hook::SSTHRESH, flight, window, clock, |sock| unsafe { function(sock) })
    }

    fn undo_cwnd(&mut self, flight: &Flight, window: &mut Window, clock: Clock) -> u32 {
        let Some(function) = self.operations().undo_cwnd else { return window.cwnd };
        self.call(hook::UNDO_CWND, flight, window, clock, |sock| unsafe { function(sock) })
    }

    fn cong_avoid(&mut self, flight: &Flight, window: &mut Window, acked: u32, clock: Clock) {
        let Some(function) = self.operations().cong_avoid else { return };
        let ack = number(flight.snd_una);
        self.call(hook::CONG_AVOID, flight, window, clock, |sock| unsafe { function(sock, ack, acked) });
    }

    fn cong_control(&mut self, flight: &Flight, window: &mut Window, sample: &RateSample, clock: Clock) -> bool {
        let Some(function) = self.operations().cong_control else { return false };
        let ack = number(flight.snd_una);
        let sample = layout::RateSample {
            prior_delivered: sample.prior_delivered.low_u32(),
            delivered: narrow(sample.delivered),
            interval_us: sample.interval_us,
            rtt_us: sample.rtt_us,
            losses: sample.losses.cast_signed(),
            acked_sacked: sample.acked_sacked,
            prior_in_flight: sample.prior_in_flight,
            is_app_limited: sample.is_app_limited,
            is_retrans: sample.is_retrans,
            is_ack_delayed: sample.is_ack_delayed,
        };
        self.call(hook::CONG_CONTROL, flight, window, clock, |sock| unsafe {
            function(sock, ack, 0, &raw const sample)
        });
        false
    }

    fn pkts_acked(&mut self, flight: &Flight, window: &mut Window, sample: AckSample, clock: Clock) {
        let Some(function) = self.operations().pkts_acked else { return };
        let sample = layout::AckSample {
            pkts_acked: sample.pkts_acked,
            rtt_us: narrow(sample.rtt_us),
            // In bytes, as tcp_clean_rtx_queue passes it.
            in_flight: sample.in_flight.wrapping_mul(flight.mss),
        };
        self.call(hook::PKTS_ACKED, flight, window, clock, |sock| unsafe { function(sock, &raw const sample) });
    }

    fn set_state(&mut self, flight: &Flight, window: &mut Window, new: CaState, clock: Clock) {
        let Some(function) = self.operations().set_state else { return };
        self.call(hook::SET_STATE, flight, window, clock, |sock| unsafe { function(sock, new as u8) });
    }

    fn event(&mut self, flight: &Flight, window: &mut Window, event: Event, clock: Clock) {
        let Some(function) = self.operations().cwnd_event else { return };
        let number = match event {
            Event::TxStart { last_send_jiffies } => {
                let uptime = UPTIME_S * u64::from(clock.hz());
                self.sock.get_mut().lsndtime = last_send_jiffies.wrapping_add(uptime.low_u32());
                CA_EVENT_TX_START
            }
            Event::CwndRestart => CA_EVENT_CWND_RESTART,
            Event::CompleteCwr => CA_EVENT_COMPLETE_CWR,
            Event::Loss => CA_EVENT_LOSS,
            // These events exist only in Linux with the patch of BBR v3.
            Event::TlpRecovery { .. } => return,
        };
        self.call(hook::CWND_EVENT, flight, window, clock, |sock| unsafe { function(sock, number) });
    }

    fn ack_arrives(&mut self, ack: &Ack, repeats_window: bool) {
        let seen = &mut self.sock.get_mut().rx_opt;
        let stamp = if ack.tsval == 0 { 0 } else { ack.tsval.wrapping_add(self.stamp_offset) };
        (seen.rcv_tsval, seen.rcv_tsecr) = (stamp, ack.tsecr);
        // The kernel's fast path (header prediction) requires the same window, flags and options as in the last packet.
        self.slow_path = !repeats_window || ack.sack.count > 0 || ack.ece;
        self.ece = ack.ece;
    }

    fn in_ack_event(&mut self, flight: &Flight, window: &mut Window, is_window_update: bool, clock: Clock) {
        let Some(function) = self.operations().in_ack_event else { return };
        let slow = if self.slow_path { CA_ACK_SLOWPATH } else { 0 } | if self.ece { CA_ACK_ECE } else { 0 };
        let flags = slow | if is_window_update { CA_ACK_WIN_UPDATE } else { 0 };
        self.call(hook::IN_ACK_EVENT, flight, window, clock, |sock| unsafe { function(sock, flags) });
    }

    fn min_tso_segs(&self, flight: &Flight, window: &Window) -> u32 {
        let Some(function) = self.operations().min_tso_segs else { return sawtooth_tcp::cc::MIN_TSO_SEGS };
        self.ask(hook::MIN_TSO_SEGS, flight, window, |sock| unsafe { function(sock) })
    }

    fn sndbuf_expand(&self, flight: &Flight, window: &Window) -> u32 {
        let Some(function) = self.operations().sndbuf_expand else { return sawtooth_tcp::cc::SNDBUF_EXPAND };
        self.ask(hook::SNDBUF_EXPAND, flight, window, |sock| unsafe { function(sock) })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(release) = self.operations().release {
            let _alone = self.library.enter(hook::RELEASE);
            // SAFETY: a variable of the library, which only this thread uses now. The state is that of the last hook.
            let jiffies = unsafe { *self.library.jiffies };
            self.run(jiffies, self.sock.get(), |sock| unsafe { release(sock) });
        }
    }
}
