//! The latest packets with data of one end, to recognize a packet that is captured again.
//!
//! A copy has the same header as the first. A retransmission may have it, too, if the sender does not increment its
//! identifications or keeps them, as some load balancers do. But a retransmission takes the same path as the first
//! copy, and does not come before a loss is found or a timer expires.

use crate::decode::segment::Segment;

/// Packets remembered: a mirror of a busy port may have this many between a packet and its copy.
const MOST: usize = 32;

/// Most time between copies, for packets with and without an identification: some senders have timers of 30 ms (BSD).
const SOON_NS: u64 = 20_000_000;
const AT_ONCE_NS: u64 = 1_000_000;

/// A packet by its header, when it passed, and its encapsulation.
#[derive(Clone, Copy, Debug, Default)]
struct Packet {
    header: u64,
    time_ns: u64,
    way: u64,
}

#[derive(Debug, Default)]
pub struct DuplicateFilter {
    packets: [Packet; MOST],
    next: usize,
}

impl DuplicateFilter {
    pub fn keep(&mut self, segment: &Segment) {
        self.packets[self.next] = Packet { header: header(segment), time_ns: segment.time_ns, way: way(segment) };
        self.next = (self.next + 1) % MOST;
    }

    /// Whether a packet is one of those remembered. `identified`: the sender gives each packet a distinct
    /// identification. What comes within `soon_ns` is not a retransmission.
    pub fn knows(&self, segment: &Segment, identified: bool, soon_ns: u64) -> bool {
        let identified = identified && segment.ip_id.is_some_and(|id| id != 0);
        let soon_ns = soon_ns.min(if identified { SOON_NS } else { AT_ONCE_NS });
        let header = header(segment);
        self.packets.iter().any(|packet| {
            packet.header == header
                && (segment.time_ns.saturating_sub(packet.time_ns) < soon_ns
                    || identified && packet.way != way(segment))
        })
    }
}

/// Everything that the sender wrote into TCP's header, and the identification; never 0.
fn header(segment: &Segment) -> u64 {
    let (tsval, tsecr) = segment.options.timestamps.unwrap_or_default();
    let id = segment.ip_id.map_or(1 << 16, u32::from);
    let words = [segment.seq, segment.ack, segment.payload, tsval, tsecr, id];
    let last = u64::from(segment.window) << 8 | u64::from(segment.flags) | 1 << 32;
    words
        .iter()
        .fold(last, |mixed, &word| (mixed.rotate_left(23) ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn way(segment: &Segment) -> u64 {
    u64::from(segment.via) << 8 | u64::from(segment.ttl)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::segment::{ACK, Endpoint, Options};

    fn packet(ip_id: Option<u16>) -> Segment {
        let end = Endpoint { address: [10, 0, 0, 1].into(), port: 1 };
        Segment {
            frame: 1,
            time_ns: 0,
            source: end,
            target: end,
            seq: 5,
            ack: 6,
            flags: ACK,
            window: 7,
            payload: 8,
            options: Options::default(),
            ip_id,
            ttl: 64,
            ecn: 0,
            via: 0,
            cut: false,
        }
    }

    #[test]
    fn duplicate_filter_compares_header_and_time() {
        let mut recent = DuplicateFilter::default();
        let first = packet(Some(3));
        recent.keep(&first);
        let known = |changed: Segment| recent.knows(&changed, true, 5_000);
        assert!(
            known(first)
                && known(Segment { time_ns: 4_999, ..first })
                && known(Segment { ttl: 63, time_ns: 9_000, ..first })
        );
        for other in [
            Segment { time_ns: 5_000, ..first },
            Segment { seq: 4, ..first },
            Segment { ack: 4, ..first },
            Segment { window: 4, ..first },
            Segment { flags: 0, ..first },
            Segment { payload: 4, ..first },
            Segment { ip_id: Some(4), ..first },
        ] {
            assert!(!known(other), "{other:?}");
        }
    }

    #[test]
    fn copies_without_ip_id_come_within_a_millisecond() {
        let mut recent = DuplicateFilter::default();
        recent.keep(&packet(None));
        assert!(recent.knows(&Segment { time_ns: AT_ONCE_NS - 1, ..packet(None) }, true, u64::MAX));
        assert!(!recent.knows(&Segment { time_ns: AT_ONCE_NS, ..packet(None) }, true, u64::MAX));
        assert!(!recent.knows(&Segment { time_ns: 0, ttl: 3, ..packet(None) }, true, 0));
    }
}
