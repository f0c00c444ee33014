//! The IPv4 identification field, which many stacks increment. It shows the order in which packets were sent, whether a
//! packet is a copy, and how many are missing if the counter belongs to the connection.
//!
//! Linux counts per connection, Windows and others per host. A host's counter shows the order, too, but its jumps are
//! packets to other hosts. So missing packets are counted only if jumps come with equally large gaps in the sequence
//! numbers, or if the end is recognized as Linux: its SYN-ACK, sent before there is a connection, has identification 0.

/// A packet's position among those of its sender, by its identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// It has none, or this sender does not increment it.
    Unknown,
    /// It was sent after all packets seen so far.
    After,
    /// It was sent before the latest packet seen.
    Late,
    /// It has the number of the latest packet.
    Again,
}

/// A packet's position by its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequencePosition {
    /// It has no data.
    Empty,
    /// Its data follows what was captured.
    Next,
    /// Its data follows a gap of this many packets.
    AfterHole(u64),
    /// Its data is below what was captured.
    Below,
}

/// A larger jump is not missing packets: the counter serves other connections too, or there is none.
const MAX_JUMP: u16 = 4096;

/// Steps after which the counter is judged, and the share of them that must be small.
const TRUSTED_AFTER: (u32, f64) = (8, 0.95);

/// In a counter of the connection, jumps with a gap per jump without one: lost retransmissions and acknowledgements
/// leave no gap.
const EXPLAINED_RATIO: u32 = 4;

#[derive(Clone, Copy, Debug, Default)]
pub struct Identification {
    next: Option<u16>,
    latest: u16,
    steps: u32,
    implausible: u32,
    /// Packets with new data that have the previous packet's identification, and those with another.
    same: u16,
    changed: u16,
    /// Jumps over packets that a gap shows to be missing, and other jumps.
    explained: u16,
    unexplained: u16,
    missing: u32,
    /// The SYN-ACK had 0 and other packets do not.
    zero_at_first: bool,
}

impl Identification {
    /// Takes a packet that represents `packets` on the wire (more than one if offload joined them). Linux increments by
    /// that number (`__ip_select_ident`, `ip_select_ident_segs`).
    pub fn order(&mut self, identification: Option<u16>, packets: u16, position: SequencePosition) -> Order {
        // 0 with "don't fragment" has no meaning (RFC 6864 section 4.1); a counter passes it.
        let Some(id) = identification.filter(|&id| id != 0 || self.counts_up()) else { return Order::Unknown };
        let Some(next) = self.next else {
            (self.next, self.latest) = (Some(id.wrapping_add(packets)), id);
            return Order::Unknown;
        };
        if matches!(position, SequencePosition::Next | SequencePosition::AfterHole(_)) {
            let same = id == self.latest;
            self.same = self.same.saturating_add(u16::from(same));
            self.changed = self.changed.saturating_add(u16::from(!same));
        }
        self.latest = id;
        self.steps = self.steps.saturating_add(1);
        let ahead = id.wrapping_sub(next);
        if ahead < MAX_JUMP {
            self.next = Some(id.wrapping_add(packets));
            self.missing = self.missing.saturating_add(u32::from(ahead));
            match position {
                _ if ahead == 0 => (),
                SequencePosition::AfterHole(packets) if (packets..=2 * packets).contains(&u64::from(ahead)) => {
                    self.explained = self.explained.saturating_add(1);
                }
                _ => self.unexplained = self.unexplained.saturating_add(1),
            }
            return self.if_trusted(Order::After);
        }
        let behind = next.wrapping_sub(id);
        // Data that follows everything captured was not sent before it.
        if behind <= MAX_JUMP && !matches!(position, SequencePosition::Next | SequencePosition::AfterHole(_)) {
            if behind > packets {
                self.missing = self.missing.saturating_sub(u32::from(packets));
                return self.if_trusted(Order::Late);
            }
            return self.if_trusted(Order::Again);
        }
        self.implausible = self.implausible.saturating_add(1);
        self.next = Some(id.wrapping_add(packets));
        Order::Unknown
    }

    /// Takes the identification of a SYN-ACK.
    pub fn of_syn_ack(&mut self, identification: Option<u16>) {
        self.zero_at_first = identification == Some(0);
    }

    /// Packets that were sent but never captured, if the counter is known to belong to this connection; at most `seen`,
    /// the number of captured ones.
    pub fn missing(&self, seen: u64) -> Option<u64> {
        let own = u32::from(self.unexplained) * EXPLAINED_RATIO <= u32::from(self.explained) || self.zero_at_first;
        let missing = u64::from(self.missing);
        (self.counts_up() && own && missing <= seen).then_some(missing)
    }

    /// Whether this sender gives each packet a distinct identification, counted or random.
    pub fn is_unique_per_packet(&self) -> bool {
        u32::from(self.changed) > 4 * u32::from(self.same)
    }

    fn counts_up(&self) -> bool {
        self.steps >= TRUSTED_AFTER.0
            && f64::from(self.steps - self.implausible) >= TRUSTED_AFTER.1 * f64::from(self.steps)
    }

    fn if_trusted(&self, order: Order) -> Order {
        if self.counts_up() { order } else { Order::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting() -> Identification {
        let mut identification = Identification::default();
        for id in 65_520..=65_535_u16 {
            identification.order(Some(id), 1, SequencePosition::Next);
        }
        for id in 0..5_u16 {
            identification.order(Some(id), 1, SequencePosition::Next);
        }
        identification
    }

    #[test]
    fn ip_id_jump_over_hole_counts_missing_packets() {
        let mut counter = counting();
        assert_eq!(counter.order(Some(8), 1, SequencePosition::AfterHole(3)), Order::After);
        assert_eq!(counter.missing(100), Some(3));
        assert_eq!(counter.order(Some(6), 1, SequencePosition::Below), Order::Late);
        assert_eq!(counter.missing(100), Some(2));
        assert_eq!(counter.order(Some(8), 1, SequencePosition::Below), Order::Again);
    }

    #[test]
    fn offloaded_packet_counts_for_its_segments() {
        let mut counter = counting();
        assert_eq!(counter.order(Some(5), 10, SequencePosition::Next), Order::After);
        assert_eq!(counter.order(Some(15), 1, SequencePosition::Next), Order::After);
        assert_eq!(counter.missing(100), Some(0));
    }

    #[test]
    fn ip_id_jump_without_hole_keeps_only_the_order() {
        let mut counter = counting();
        assert_eq!(counter.order(Some(9), 1, SequencePosition::Next), Order::After);
        assert_eq!(counter.missing(100), None);
        assert_eq!(counter.order(Some(7), 1, SequencePosition::Below), Order::Late);
    }

    #[test]
    fn ip_id_jump_larger_than_its_hole_is_unexplained() {
        let mut counter = counting();
        counter.order(Some(15), 1, SequencePosition::AfterHole(3));
        assert_eq!(counter.missing(100), None);
    }

    #[test]
    fn zero_ip_id_in_syn_ack_means_per_connection_counter() {
        let mut counter = counting();
        counter.of_syn_ack(Some(0));
        counter.order(Some(9), 1, SequencePosition::Empty);
        assert_eq!(counter.missing(100), Some(4));
        assert_eq!(counter.missing(3), None);
    }

    #[test]
    fn random_and_constant_ip_ids_are_not_trusted() {
        let mut random = Identification::default();
        let mut id = 1_u16;
        for _ in 0..100 {
            id = id.wrapping_mul(25_173).wrapping_add(13_849);
            random.order(Some(id), 1, SequencePosition::Next);
        }
        assert_eq!(random.missing(100), None);
        assert!(random.is_unique_per_packet());
        for id in [0, 7] {
            let mut constant = Identification::default();
            for _ in 0..100 {
                assert_eq!(constant.order(Some(id), 1, SequencePosition::Next), Order::Unknown);
            }
            assert_eq!((constant.missing(100), constant.is_unique_per_packet()), (None, false));
        }
    }
}
