//! Explicit congestion notification (RFC 3168 section 6.1.2): an echoed mark brings the window down as a loss does, at most once a
//! round trip, and nothing is sent again.

use super::Sender;
use crate::clock::Clock;
use crate::flight::CaState;
use crate::packet::Ecn;

/// The ECN field of new data, and of what is sent again: that is never marked (section 6.1.5), unless the algorithm lives on marks.
pub(super) fn of_packets(agreed: bool, needs_ecn: bool) -> [Ecn; 2] {
    let may = |one: bool| if agreed && one { Ecn::Ect0 } else { Ecn::NotEct };
    [may(true), may(needs_ecn)]
}

impl Sender {
    /// A mark was echoed (`tcp_enter_cwr`). No undo: the network has said it.
    #[cold]
    pub(super) fn enter_cwr(&mut self, clock: Clock) {
        self.flight.prior_ssthresh = 0;
        if self.flight.ca_state < CaState::Cwr {
            self.undo_marker = None;
            self.init_cwnd_reduction(clock);
            self.set_state(CaState::Cwr, clock);
        }
    }

    /// The window comes down: the next new data tells the receiver, which then echoes no more.
    pub(super) fn queue_cwr(&mut self) {
        self.queues_cwr = self.flight.ecn;
    }
}
