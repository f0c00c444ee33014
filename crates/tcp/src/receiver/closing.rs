//! The application has read everything and closes. Its FIN acknowledges everything, and is repeated until its arrival
//! is known (RFC 9293 section 3.6), which replaces a lost final acknowledgement.

use super::{READ, RTO_MIN_US, Receiver};
use crate::clock::Clock;
use crate::packet::Ack;
use sawtooth_units::Time;

/// `TCP_RTO_MAX` in microseconds.
const RTO_MAX_US: u64 = 120_000_000;

impl Receiver {
    /// The application closes, once.
    #[cold]
    pub fn close(&mut self, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        if self.closings == 0 {
            if self.acked < self.next {
                self.send(READ, clock, emit);
            }
            self.wait_for_end(clock);
        }
    }

    /// The sender's FIN has arrived in order after everything else. It counts as one byte, and is acknowledged like
    /// data, except that an answer is expected from now on (`tcp_fin`); `at_once`: this end has closed already.
    pub fn take_end(&mut self, at_once: bool, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        let unread = self.queue.unread();
        self.answers = true;
        if at_once || self.buffer.is_exceeded(self.held(unread)) || self.next + 1 - self.acked > self.full {
            self.send(unread, clock, emit);
        } else {
            self.delay(unread, clock, emit);
        }
    }

    /// When its FIN is repeated.
    pub fn closes_at(&self) -> Time {
        self.closes_at
    }

    /// The sender has received it.
    pub fn heard(&mut self) {
        self.closes_at = Time::NEVER;
    }

    #[cold]
    pub(super) fn close_again(&mut self, clock: Clock, emit: &mut impl FnMut(&Ack)) {
        self.send(READ, clock, emit);
        self.wait_for_end(clock);
    }

    /// A tail loss probe (RFC 8985 section 7.2, with Linux's allowance for one segment), then timeouts that double.
    fn wait_for_end(&mut self, clock: Clock) {
        let rto_us = self.rto_us();
        let probes = u32::from(self.sack);
        let wait_us = match self.closings {
            0 if self.sack => rto_us.min(2 * self.handshake_us + RTO_MIN_US),
            timeouts => (rto_us << (timeouts - probes).min(10)).min(RTO_MAX_US),
        };
        self.closings += 1;
        self.closes_at = clock.wheel_time(clock.jiffies64() + clock.jiffies_from_micros(wait_us));
    }
}
