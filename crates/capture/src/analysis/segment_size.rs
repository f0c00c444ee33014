//! The payload of a sender's full segments, inferred from its segments; needed if the handshake was not captured.
//!
//! On all stacks, what an application writes at once ends with PSH. So a segment without PSH was cut by TCP because it
//! was full. Offload joins several: their lengths are multiples.

/// The smallest size that Linux uses (`tcp_min_snd_mss`), and the size that every host accepts (RFC 9293 section
/// 3.7.1).
const SMALLEST: u32 = 48;
const ANY_HOST: u32 = 536;

/// The largest payload that fits into Ethernet's 1500 bytes.
const ETHERNET: u32 = 1460;

/// Segments of one length from which on it is not chance.
const ENOUGH: u32 = 3;

/// … for a length that is a multiple of what every host accepts.
const MANY: u32 = 24;

#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentSize {
    /// The apparent payload of full segments, and how many had exactly that.
    full: u32,
    times: u32,
    largest: u32,
}

impl SegmentSize {
    /// Takes a segment with data; `cut`: it is not the end of a write.
    pub fn see(&mut self, payload: u32, cut: bool) {
        self.largest = self.largest.max(payload);
        if !cut || payload < SMALLEST {
            return;
        }
        if payload == self.full {
            self.times = self.times.saturating_add(1);
            return;
        }
        let known = self.full;
        let common = divisor(known, payload);
        let size = if known == 0 || known.is_multiple_of(payload) {
            payload
        } else if (payload.is_multiple_of(known) && (known >= ANY_HOST || self.times >= MANY))
            || (payload > ETHERNET && self.times >= ENOUGH)
        {
            return;
        } else if common >= ANY_HOST {
            common
        } else if known > ETHERNET && payload >= ANY_HOST {
            payload
        } else {
            known.max(payload)
        };
        if size != known {
            (self.full, self.times) = (size, u32::from(size == payload));
        }
    }

    /// The payload of a full segment; None if none was seen.
    pub fn full(&self) -> Option<u32> {
        (self.full >= ANY_HOST || self.times >= ENOUGH).then_some(self.full)
    }

    /// The longest payload seen; 0 before the first.
    pub fn largest(&self) -> u32 {
        self.largest
    }
}

fn divisor(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(payloads: &[(u32, bool)]) -> Option<u32> {
        let mut size = SegmentSize::default();
        payloads.iter().for_each(|&(payload, cut)| size.see(payload, cut));
        size.full()
    }

    #[test]
    fn application_writes_do_not_show_the_mss() {
        assert_eq!(full(&[(7, false); 100]), None);
        assert_eq!(full(&[(1400, false); 100]), None);
    }

    #[test]
    fn segment_cut_by_tcp_is_full() {
        assert_eq!(full(&[(16, false), (1448, true), (100, false)]), Some(1448));
        assert_eq!(full(&[(48, true), (48, true), (30, false)]), None);
        assert_eq!(full(&[(48, true), (48, true), (48, true)]), Some(48));
    }

    #[test]
    fn offloaded_segments_are_multiples_of_the_mss() {
        assert_eq!(full(&[(65_160, true), (2896, true)]), Some(1448));
        assert_eq!(full(&[(2896, true), (4344, true)]), Some(1448));
        assert_eq!(full(&[(1448, true), (1448, true), (1448, true), (65_160, true), (5000, true)]), Some(1448));
        assert_eq!(full(&[(8948, true), (8948, true)]), Some(8948));
        assert_eq!(full(&[[(48, true); 24].as_slice(), &[(96, true)]].concat()), Some(48));
        assert_eq!(full(&[(100, true), (100, true), (100, true), (1400, true)]), Some(1400));
    }

    #[test]
    fn segments_with_more_options_are_shorter() {
        assert_eq!(full(&[(1448, true), (1436, true), (1448, true)]), Some(1448));
        assert_eq!(full(&[(1436, true), (1448, true)]), Some(1448));
    }
}
