//! Seeded random numbers and segments.

use sawtooth_capture::{Endpoint, Options, Segment};
use std::net::IpAddr;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn endpoint(&mut self, six: bool) -> Endpoint {
        let address = match six {
            true => {
                IpAddr::from([self.next().to_le_bytes(), self.next().to_le_bytes()].concat().as_chunks::<16>().0[0])
            }
            false => IpAddr::from((self.next() as u32).to_le_bytes()),
        };
        Endpoint { address, port: self.next() as u16 }
    }

    fn options(&mut self) -> Options {
        let mut options = Options::default();
        options.mss = self.coin().then(|| self.next() as u16);
        options.window_scale = self.coin().then(|| self.below(15) as u8);
        options.sack_permitted = self.coin();
        options.timestamps = self.coin().then(|| (self.next() as u32, self.next() as u32));
        let used = 4 * usize::from(options.mss.is_some())
            + 4 * usize::from(options.window_scale.is_some())
            + match (options.sack_permitted, options.timestamps.is_some()) {
                (_, true) => 12,
                (true, false) => 4,
                (false, false) => 0,
            };
        let room = (40 - used).saturating_sub(4) / 8;
        for _ in 0..self.below(room + 1) {
            options.add_sack(self.next() as u32, self.next() as u32);
        }
        options
    }

    /// Any segment that a header has room for, in a packet of at most 65,535 bytes.
    pub fn segment(&mut self, frame: u64) -> Segment {
        let six = self.coin();
        Segment {
            frame,
            time_ns: self.next() % (u64::from(u32::MAX) * 1_000_000_000),
            source: self.endpoint(six),
            target: self.endpoint(six),
            seq: self.next() as u32,
            ack: self.next() as u32,
            flags: self.next() as u8,
            window: self.next() as u16,
            payload: self.below(65_400) as u32,
            options: self.options(),
            ip_id: (!six).then(|| self.next() as u16),
            ttl: self.next() as u8,
            ecn: self.below(4) as u8,
            via: 0,
            cut: false,
        }
    }
}
