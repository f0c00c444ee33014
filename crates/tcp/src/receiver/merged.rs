//! Segments merged by a card before TCP sees them (GRO): one acknowledgement decision for all.

use super::{ALL, Data, Read, Receiver, Unread};
use crate::clock::Clock;
use crate::options::Device;
use crate::packet::{Ack, Block, CWR, PUSH};
use sawtooth_units::width::Fit;

impl Receiver {
    /// Takes data that arrived in segments of `unit` bytes (the last may be shorter). It is handled like one long
    /// segment (`tcp_data_queue` of an `sk_buff` whose `gso_size` is `unit`), except that `unit` determines the size of
    /// full segments.
    pub fn on_merged(&mut self, data: Data, unit: u32, clock: Clock, emit: &mut impl FnMut(&Ack)) -> Read {
        let length = u64::from(data.length);
        let (end, count) = (data.seq + length, u64::from(data.length.div_ceil(unit)));
        if count == 1 || end <= self.next {
            return self.on_data(data, clock, emit);
        }
        if data.seq < self.next {
            // Part of a retransmission is new.
            return split(data, unit).map(|one| self.on_data(one, clock, emit)).fold(Read::default(), |all, read| {
                Read { bytes: all.bytes + read.bytes, segments: all.segments + read.segments }
            });
        }
        if self.refuses(data.seq, data.length, data.tsval) {
            return self.discard(data, clock, emit);
        }
        self.pushed |= data.has(PUSH);
        if data.has(CWR) {
            self.take_cwr();
        }
        if data.seq > self.next {
            if self.exceeds_window(end) {
                return self.discard(data, clock, emit);
            }
            return self.keep(data, unit, clock, emit);
        }
        let unit = u64::from(unit);
        if self.asked != ALL {
            return self.enqueue(data, unit, count, clock, emit);
        }
        self.next = end;
        let come = Unread { bytes: length, buffers: self.buffer.buffers(count) };
        if unit != self.full || self.last_short > 0 {
            self.measure_segment(unit, come, data.has(PUSH));
        }
        self.receive_event(data, come, clock, emit);
        let read = if self.reassembly.is_empty() {
            self.decide(come, false, clock, emit);
            self.buffer.adjust(self.next, 0, clock);
            Read { bytes: length, segments: count }
        } else {
            self.fill(length, count, clock, emit)
        };
        self.segments += read.segments;
        self.has_read(clock, emit);
        read
    }

    /// Data beyond a gap.
    fn keep(&mut self, data: Data, unit: u32, clock: Clock, emit: &mut impl FnMut(&Ack)) -> Read {
        self.see_mark(data.ecn(), clock, emit);
        let end = data.seq + u64::from(data.length);
        let unread = self.queue.unread();
        if self.sack && self.reassembly.crowds(Block { start: data.seq, end }) && self.compressed > 0 {
            self.send(unread, clock, emit);
        }
        let buffers = self.buffer.buffers(data.length.div_ceil(unit).into());
        self.measure_segment(unit.into(), Unread { bytes: data.length.into(), buffers }, data.has(PUSH));
        let whole = if self.options.device == Device::Tun { data.length } else { unit };
        for one in split(data, whole) {
            self.reassembly.insert(Block { start: one.seq, end: one.seq + u64::from(one.length) });
        }
        if self.sack && self.buffer.grow(u64::from(data.length), self.held(unread)) {
            self.quick |= 1;
        }
        self.decide(unread, false, clock, emit);
        Read::default()
    }
}

/// The segments as they arrived.
fn split(data: Data, unit: u32) -> impl Iterator<Item = Data> {
    let end = data.seq + u64::from(data.length);
    (0..data.length.div_ceil(unit)).map(move |number| {
        let seq = data.seq + u64::from(number) * u64::from(unit);
        let length = (end - seq).min(u64::from(unit)).fit_u32();
        let mut flags = data.flags;
        flags &= if number > 0 { !CWR } else { !0 };
        flags &= if seq + u64::from(length) < end { !PUSH } else { !0 };
        Data { seq, length, flags, ..data }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::HostOptions;
    use crate::receiver::Echo;
    use sawtooth_units::Time;

    const MSS: u32 = 1448;

    fn clock(ms: u64) -> Clock {
        Clock::new(Time::from_nanos(ms * 1_000_000), 250)
    }

    fn receiver() -> Receiver {
        let mut receiver = Receiver::new(HostOptions::default(), true, Echo::default(), clock(0));
        receiver.note_handshake(20_000, clock(0));
        receiver
    }

    fn data(first: u64, segments: u32) -> Data {
        let (seq, length) = (first * u64::from(MSS), segments * MSS);
        Data { seq, length, flags: 0, tsval: 1, tsecr: 1 }
    }

    fn acks(receiver: &mut Receiver, given: &[(u64, u32)]) -> Vec<u64> {
        let mut found = Vec::new();
        for (turn, &(first, segments)) in given.iter().enumerate() {
            receiver.on_merged(data(first, segments), MSS, clock(turn as u64), &mut |ack| {
                found.push(ack.next / u64::from(MSS));
            });
        }
        found
    }

    #[test]
    fn many_segments_that_were_merged_have_one_acknowledgement() {
        let mut receiver = receiver();
        assert_eq!(acks(&mut receiver, &[(0, 10), (10, 44), (54, 2)]), [10, 54, 56]);
        assert_eq!((receiver.delivered_segments(), receiver.delivered()), (56, 56 * u64::from(MSS)));
    }

    #[test]
    fn a_full_segment_is_as_long_as_those_that_were_merged() {
        let mut receiver = receiver();
        acks(&mut receiver, &[(0, 10)]);
        assert_eq!(receiver.full, u64::from(MSS));
    }

    #[test]
    fn merged_segments_share_a_buffer_so_more_of_its_memory_is_payload() {
        let window = |segments: u32| {
            let mut receiver = receiver();
            let mut window = 0;
            for turn in 0..400 {
                let first = turn * u64::from(segments);
                receiver.on_merged(data(first, segments), MSS, clock(turn), &mut |ack| window = ack.window);
            }
            window
        };
        // 1,448 of 2,280 bytes, and 14,480 of 15,312.
        assert!(window(10) > window(1) * 14 / 10, "{} {}", window(10), window(1));
    }

    #[test]
    fn beyond_a_gap_there_is_one_acknowledgement_too_with_all_of_it_as_a_block() {
        let mut receiver = receiver();
        let mut sacks = Vec::new();
        let _ = receiver.on_merged(data(4, 8), MSS, clock(1), &mut |ack| sacks.push(ack.sack));
        let [sack] = sacks[..] else { panic!("{sacks:?}") };
        assert_eq!(sack.blocks(), [Block { start: 4 * u64::from(MSS), end: 12 * u64::from(MSS) }]);
        assert_eq!(acks(&mut receiver, &[(0, 4)]), [12]);
        assert_eq!(receiver.delivered_segments(), 12);
    }

    #[test]
    fn of_what_was_sent_again_the_new_part_counts() {
        let mut receiver = receiver();
        acks(&mut receiver, &[(0, 3), (1, 4)]);
        assert_eq!(receiver.delivered_segments(), 5);
    }
}
