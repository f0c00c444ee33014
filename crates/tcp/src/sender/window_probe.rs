//! Nothing is in flight, and the receiver's window is closed or too small for the next data: the sender probes it at
//! growing intervals (RFC 9293 section 3.8.6.1; `tcp_send_probe0`).

use super::Sender;
use super::output::Piece;
use super::rtt::{RTO_MIN_US, Rtt};
use super::timers::Pending;
use crate::clock::Clock;
use crate::packet::Burst;
use sawtooth_units::width::Fit;

/// Most doublings of the interval between probes (`TCP_RTO_MAX` over `TCP_RTO_MIN`, as a power of two, plus one).
const DOUBLINGS: u32 = 10;

impl Sender {
    #[cold]
    pub(super) fn wait_for_window(&mut self, clock: Clock) {
        if self.pending == Pending::None {
            self.window_probes = 0;
            self.set_timer(Pending::Window, self.probe_interval(clock), clock);
        }
    }

    /// The interval after the last probe, in ticks.
    fn probe_interval(&self, clock: Clock) -> u64 {
        let first = self.rto.max(clock.jiffies_from_micros(u64::from(RTO_MIN_US)));
        (first << self.window_probes.min(DOUBLINGS)).min(Rtt::rto_max(clock))
    }

    /// The timer of [`Self::wait_for_window`] is due. Sends what fits the window; otherwise a packet that repeats the
    /// previous byte and thus asks for an acknowledgement.
    pub(super) fn probe_window(&mut self, clock: Clock, out: &mut Vec<Burst>) {
        self.pending = Pending::None;
        if self.flight.packets_out > 0 || self.unsent() == 0 {
            return;
        }
        let room = self.window_end.saturating_sub(self.flight.snd_nxt);
        let bytes = room.min(self.head_buffer(0)).min(u64::from(self.flight.mss));
        if bytes > 0 {
            return self.transmit_new(Piece { bytes: bytes.fit_u32(), segments: 1 }, clock, out);
        }
        let tsval = if self.options.timestamps { clock.timestamp() } else { 0 };
        out.push(Burst::window_probe(self.flight.snd_una, tsval, self.ts_recent));
        self.stats.window_probes += 1;
        self.window_probes += 1;
        self.set_timer(Pending::Window, self.probe_interval(clock), clock);
    }

    /// An acknowledgement arrived while nothing is in flight (`tcp_ack_probe`). If it opens the window, idle time ends
    /// (`tcp_ack_update_window`).
    #[cold]
    pub(super) fn take_window(&mut self, is_window_update: bool, clock: Clock) {
        if self.unsent() == 0 {
            return;
        }
        if is_window_update && self.send_window > 0 {
            self.restart_after_idle(clock);
        }
        if self.flight.snd_nxt + self.head_buffer(0) > self.window_end {
            self.set_timer(Pending::Window, self.probe_interval(clock), clock);
        } else if self.pending == Pending::Window {
            self.clear_timer();
        }
    }
}
