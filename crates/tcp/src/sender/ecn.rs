//! Explicit congestion notification (RFC 3168 section 6.1.2): an echoed mark reduces the window as a loss does, at most
//! once per round trip, without a retransmission.

use super::Sender;
use crate::cc::Congestion;
use crate::clock::Clock;
use crate::flight::CaState;
use crate::packet::{ACE_START, Ecn};

/// The ECN fields of new data and of retransmissions. The latter are never markable (section 6.1.5), unless the
/// algorithm depends on marks. ECT(1) says that it is scalable (RFC 9331 section 4.1).
pub(super) fn of_packets(agreed: bool, congestion: &Congestion) -> [Ecn; 2] {
    let ect = if congestion.needs_accurate_ecn() { Ecn::Ect1 } else { Ecn::Ect0 };
    let may = |one: bool| if agreed && one { ect } else { Ecn::NotEct };
    [may(true), may(congestion.heeds_each_mark())]
}

/// The growth of a three-bit counter while this many packets were delivered. Beyond seven it may have wrapped; then the
/// largest possible value is used, as without the option that counts bytes (RFC 9768, appendix A.2).
fn growth(ace: u8, before: u64, delivered: u64) -> u64 {
    let least = (u64::from(ace) + 8 - u64::from(ACE_START) + 7 * before) % 8;
    if delivered < 8 { least } else { delivered - (delivered - least) % 8 }
}

impl Sender {
    /// A mark was echoed (`tcp_enter_cwr`). There is no undo, because the network reported it.
    #[cold]
    pub(super) fn enter_cwr(&mut self, clock: Clock) {
        self.flight.prior_ssthresh = 0;
        if self.flight.ca_state < CaState::Cwr {
            self.undo = None;
            self.init_cwnd_reduction(true, clock);
            self.set_state(CaState::Cwr, clock);
        }
    }

    /// The window is reduced: the next new data tells the receiver, which then stops echoing.
    pub(super) fn queue_cwr(&mut self) {
        self.queues_cwr = self.flight.ecn && !self.accurate_ecn;
    }

    /// Processes an accurate-ECN acknowledgement that delivered this many segments; returns whether it reports marks.
    #[cold]
    pub(super) fn count_ace(&mut self, ace: u8, delivered: u64) -> bool {
        let marked = growth(ace, self.flight.delivered_ce, delivered);
        self.flight.delivered_ce += marked;
        marked > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ace_counts_marks_unless_it_may_have_wrapped() {
        assert_eq!(growth(ACE_START, 0, 2), 0);
        assert_eq!(growth(7, 0, 2), 2);
        assert_eq!(growth(0, 0, 4), 3);
        assert_eq!(growth(ACE_START, 16, 2), 0);
        assert_eq!(growth(ACE_START, 15, 2), 1);
        assert_eq!([8, 10, 16].map(|delivered| growth(6, 0, delivered)), [1, 9, 9]);
    }
}
