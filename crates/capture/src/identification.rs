//! The identification field of IPv4, which many stacks count up: it tells the order in which packets were sent, whether a
//! packet is the same one once more, and, where the counter is the connection's own, how many are missing.
//!
//! Linux counts by connection, Windows and others by host. By host the order holds, too, but a jump is what the host sent
//! to others. So what is missing is told only where jumps come with holes in the sequence numbers that are as large, or
//! where the end has shown itself to be Linux: its SYN-ACK, sent before there is a connection, has the number 0.

/// Where a packet stands among those of its sender, by its identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// There is none, or this sender's does not count up.
    Unknown,
    /// It was sent after all that were seen.
    After,
    /// It was sent before the latest one seen.
    Late,
    /// It has the number of the latest one.
    Again,
}

/// Where a packet stands by its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It has no data.
    Empty,
    /// Its data follows what was seen.
    Next,
    /// Its data follows a hole of so many packets.
    AfterHole(u64),
    /// Its data is below what was seen.
    Below,
}

/// A jump that is not missing packets: a counter that serves other connections too, or none at all.
const WILD: u16 = 4096;

/// Steps after which the counter is judged, and how many of them must be small.
const TRUST: (u32, f64) = (8, 0.95);

/// Jumps that come with a hole for each that does not, in a counter of the connection's own: lost retransmissions and
/// acknowledgements leave no hole.
const WITH_HOLES: u32 = 4;

#[derive(Clone, Copy, Debug, Default)]
pub struct Identification {
    next: Option<u16>,
    latest: u16,
    steps: u32,
    wild: u32,
    /// Packets with new data that have the identification of the packet before, and that have another.
    same: u16,
    changed: u16,
    /// Jumps over packets that a hole shows to be missing, and others.
    shown: u16,
    unexplained: u16,
    missing: u32,
    /// The SYN-ACK had 0, and other packets have not.
    zero_at_first: bool,
}

impl Identification {
    /// Takes a packet that stands for `packets` on the wire (more than one where offload has joined them).
    /// Linux counts by that number (`__ip_select_ident`, `ip_select_ident_segs`).
    pub fn order(&mut self, identification: Option<u16>, packets: u16, place: Place) -> Order {
        // 0 with "don't fragment" says nothing (RFC 6864 section 4.1); a counter passes it.
        let Some(id) = identification.filter(|&id| id != 0 || self.counts_up()) else { return Order::Unknown };
        let Some(next) = self.next else {
            (self.next, self.latest) = (Some(id.wrapping_add(packets)), id);
            return Order::Unknown;
        };
        if matches!(place, Place::Next | Place::AfterHole(_)) {
            let same = id == self.latest;
            self.same = self.same.saturating_add(u16::from(same));
            self.changed = self.changed.saturating_add(u16::from(!same));
        }
        self.latest = id;
        self.steps = self.steps.saturating_add(1);
        let ahead = id.wrapping_sub(next);
        if ahead < WILD {
            self.next = Some(id.wrapping_add(packets));
            self.missing = self.missing.saturating_add(u32::from(ahead));
            match place {
                _ if ahead == 0 => (),
                Place::AfterHole(packets) if (packets..=2 * packets).contains(&u64::from(ahead)) => {
                    self.shown = self.shown.saturating_add(1);
                }
                _ => self.unexplained = self.unexplained.saturating_add(1),
            }
            return self.trusted(Order::After);
        }
        let behind = next.wrapping_sub(id);
        // What follows all that was seen was not sent before it.
        if behind <= WILD && !matches!(place, Place::Next | Place::AfterHole(_)) {
            if behind > packets {
                self.missing = self.missing.saturating_sub(u32::from(packets));
                return self.trusted(Order::Late);
            }
            return self.trusted(Order::Again);
        }
        self.wild = self.wild.saturating_add(1);
        self.next = Some(id.wrapping_add(packets));
        Order::Unknown
    }

    /// Takes the identification of a SYN-ACK.
    pub fn of_syn_ack(&mut self, identification: Option<u16>) {
        self.zero_at_first = identification == Some(0);
    }

    /// Packets that were sent and never came by here, where the counter is shown to be this connection's own; `seen` is how
    /// many did: more than that are not missed.
    pub fn missing(&self, seen: u64) -> Option<u64> {
        let own = u32::from(self.unexplained) * WITH_HOLES <= u32::from(self.shown) || self.zero_at_first;
        let missing = u64::from(self.missing);
        (self.counts_up() && own && missing <= seen).then_some(missing)
    }

    /// Whether this sender gives each packet its own, counted or random.
    pub fn is_own_to_each(&self) -> bool {
        u32::from(self.changed) > 4 * u32::from(self.same)
    }

    fn counts_up(&self) -> bool {
        self.steps >= TRUST.0 && f64::from(self.steps - self.wild) >= TRUST.1 * f64::from(self.steps)
    }

    fn trusted(&self, order: Order) -> Order {
        if self.counts_up() { order } else { Order::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting() -> Identification {
        let mut identification = Identification::default();
        for id in 65_520..=65_535_u16 {
            identification.order(Some(id), 1, Place::Next);
        }
        for id in 0..5_u16 {
            identification.order(Some(id), 1, Place::Next);
        }
        identification
    }

    #[test]
    fn a_jump_over_a_hole_is_so_many_packets_missing_and_a_late_one_fills_it() {
        let mut counter = counting();
        assert_eq!(counter.order(Some(8), 1, Place::AfterHole(3)), Order::After);
        assert_eq!(counter.missing(100), Some(3));
        assert_eq!(counter.order(Some(6), 1, Place::Below), Order::Late);
        assert_eq!(counter.missing(100), Some(2));
        assert_eq!(counter.order(Some(8), 1, Place::Below), Order::Again);
    }

    #[test]
    fn a_joined_packet_counts_for_its_parts() {
        let mut counter = counting();
        assert_eq!(counter.order(Some(5), 10, Place::Next), Order::After);
        assert_eq!(counter.order(Some(15), 1, Place::Next), Order::After);
        assert_eq!(counter.missing(100), Some(0));
    }

    #[test]
    fn a_jump_without_a_hole_is_what_the_host_sent_to_others_and_the_order_holds_still() {
        let mut counter = counting();
        assert_eq!(counter.order(Some(9), 1, Place::Next), Order::After);
        assert_eq!(counter.missing(100), None);
        assert_eq!(counter.order(Some(7), 1, Place::Below), Order::Late);
    }

    #[test]
    fn a_jump_that_is_larger_than_its_hole_is_not_only_that() {
        let mut counter = counting();
        counter.order(Some(15), 1, Place::AfterHole(3));
        assert_eq!(counter.missing(100), None);
    }

    #[test]
    fn an_end_whose_syn_ack_had_0_counts_by_connection() {
        let mut counter = counting();
        counter.of_syn_ack(Some(0));
        counter.order(Some(9), 1, Place::Empty);
        assert_eq!(counter.missing(100), Some(4));
        assert_eq!(counter.missing(3), None);
    }

    #[test]
    fn random_and_constant_numbers_are_not_trusted() {
        let mut random = Identification::default();
        let mut id = 1_u16;
        for _ in 0..100 {
            id = id.wrapping_mul(25_173).wrapping_add(13_849);
            random.order(Some(id), 1, Place::Next);
        }
        assert_eq!(random.missing(100), None);
        assert!(random.is_own_to_each());
        for id in [0, 7] {
            let mut constant = Identification::default();
            for _ in 0..100 {
                assert_eq!(constant.order(Some(id), 1, Place::Next), Order::Unknown);
            }
            assert_eq!((constant.missing(100), constant.is_own_to_each()), (None, false));
        }
    }
}
