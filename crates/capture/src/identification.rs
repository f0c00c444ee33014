//! The identification field of IPv4, which many stacks count up for each packet of a connection: it tells the order in
//! which packets were sent, and how many are missing.

/// Where a packet stands among those of its sender, by its identification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// There is none, or this sender's does not count up.
    Unknown,
    /// It was sent after all that were seen, with so many unseen ones between.
    After(u16),
    /// It was sent before the latest one seen.
    Late,
    /// It has the number of the latest one: the same packet once more.
    Again,
}

/// A jump that is not missing packets: a counter that serves other connections too, or none at all.
const WILD: u16 = 4096;

/// Steps after which the counter is judged, and how many of them must be small.
const TRUST: (u32, f64) = (8, 0.95);

#[derive(Clone, Copy, Debug, Default)]
pub struct Identification {
    next: Option<u16>,
    steps: u32,
    wild: u32,
    missing: u64,
}

impl Identification {
    /// Takes a packet that stands for `packets` on the wire (more than one where offload has joined them).
    /// Linux counts by that number (`__ip_select_ident`, `ip_select_ident_segs`).
    pub fn order(&mut self, identification: Option<u16>, packets: u16) -> Order {
        // 0 with "don't fragment" says nothing (RFC 6864 section 4.1), and a SYN-ACK of Linux has it; a counter passes it.
        let Some(id) = identification.filter(|&id| id != 0 || self.counts_up()) else { return Order::Unknown };
        let Some(next) = self.next else {
            self.next = Some(id.wrapping_add(packets));
            return Order::Unknown;
        };
        self.steps = self.steps.saturating_add(1);
        let ahead = id.wrapping_sub(next);
        if ahead < WILD {
            self.next = Some(id.wrapping_add(packets));
            self.missing += u64::from(ahead);
            return self.trusted(Order::After(ahead));
        }
        let behind = next.wrapping_sub(id);
        if behind <= WILD {
            if behind > packets {
                self.missing = self.missing.saturating_sub(u64::from(packets));
                return self.trusted(Order::Late);
            }
            return self.trusted(Order::Again);
        }
        self.wild = self.wild.saturating_add(1);
        self.next = Some(id.wrapping_add(packets));
        Order::Unknown
    }

    /// Packets that were sent and never came by here, where the counter can be trusted.
    pub fn missing(&self) -> Option<u64> {
        self.counts_up().then_some(self.missing)
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
            identification.order(Some(id), 1);
        }
        for id in 0..5_u16 {
            identification.order(Some(id), 1);
        }
        identification
    }

    #[test]
    fn a_gap_is_so_many_packets_missing_and_a_late_one_fills_it() {
        let mut counter = counting();
        let before = counter.missing().unwrap();
        assert_eq!(counter.order(Some(8), 1), Order::After(3));
        assert_eq!(counter.missing(), Some(before + 3));
        assert_eq!(counter.order(Some(6), 1), Order::Late);
        assert_eq!(counter.missing(), Some(before + 2));
        assert_eq!(counter.order(Some(8), 1), Order::Again);
    }

    #[test]
    fn a_joined_packet_counts_for_its_parts() {
        let mut counter = counting();
        let before = counter.missing();
        assert_eq!(counter.order(Some(5), 10), Order::After(0));
        assert_eq!(counter.order(Some(15), 1), Order::After(0));
        assert_eq!(counter.missing(), before);
    }

    #[test]
    fn random_and_constant_numbers_are_not_trusted() {
        let mut random = Identification::default();
        let mut id = 1_u16;
        for _ in 0..100 {
            id = id.wrapping_mul(25_173).wrapping_add(13_849);
            random.order(Some(id), 1);
        }
        assert_eq!(random.missing(), None);
        let mut constant = Identification::default();
        for _ in 0..100 {
            assert_eq!(constant.order(Some(0), 1), Order::Unknown);
        }
        assert_eq!(constant.missing(), None);
    }
}
