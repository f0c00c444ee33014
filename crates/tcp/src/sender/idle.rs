//! What follows when the application is the limit: delivery rates are marked as application-limited, and after idle
//! time the window is reduced (RFC 2861, RFC 5681 section 4.1).

use super::Sender;
use crate::cc::Event;
use crate::clock::Clock;
use sawtooth_units::width::Low;

impl Sender {
    /// The window has room and no data waits: the flight is less than the path might carry
    /// (`tcp_rate_check_app_limited`).
    pub(super) fn note_app_limit(&mut self) {
        let flight = &self.flight;
        let has_room = flight.in_flight() < self.window.cwnd && flight.lost_out <= flight.retrans_out;
        if self.unsent() < u64::from(flight.mss) && self.host_queue == 0 && has_room {
            self.window.app_limited = (flight.delivered + u64::from(flight.in_flight())).max(1);
        }
    }

    /// The application begins a buffer, or the receiver's window opens. If nothing is in flight and nothing was sent
    /// for a timeout, the window is halved per elapsed timeout, down to the initial one (`tcp_slow_start_after_idle`);
    /// the threshold remembers it.
    pub(super) fn restart_after_idle(&mut self, clock: Clock) {
        if self.flight.packets_out > 0 || self.has_cong_control {
            return;
        }
        let idle = u64::from(clock.jiffies().wrapping_sub(self.last_send_jiffies));
        if idle > self.rto && !self.keeps_window_when_idle {
            self.restart(idle, clock);
        }
    }

    #[cold]
    fn restart(&mut self, idle: u64, clock: Clock) {
        self.congestion.event(&self.flight, &mut self.window, Event::CwndRestart, clock);
        self.window.ssthresh = self.current_ssthresh();
        let least = self.options.initial_window.min(self.window.cwnd);
        // The first timeout only begins the idle time.
        let halvings = (idle.div_ceil(self.rto) - 1).min(u64::from(u32::BITS - 1)).low_u32();
        self.window.cwnd = (self.window.cwnd >> halvings).max(least);
    }
}
