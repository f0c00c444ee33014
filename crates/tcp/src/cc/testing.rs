//! Shared by the tests of several algorithms: a fresh sender and a clock.

use crate::clock::Clock;
use crate::flight::Flight;
use crate::window::Window;
use sawtooth_units::Time;

/// A sender just after the handshake: ten segments of 1448 bytes, no sample of the round-trip time.
pub(super) fn flight() -> Flight {
    Flight { is_cwnd_limited: true, max_packets_out: 10, delivered: 0, ..Flight::new(1448, 0) }
}

/// Its window, which the application fills.
pub(super) fn window() -> Window {
    Window { app_limited: 0, ..Window::new(10) }
}

/// The clock at `micros` microseconds with a tick rate of `hz`.
pub(super) fn clock(micros: u64, hz: u32) -> Clock {
    Clock::new(Time::from_nanos(micros * 1_000), hz)
}
