//! The receiver's part of a visit (see [`crate::steady`]).

use super::buffer::Buffer;
use super::{ALL, Receiver};
use crate::clock::Clock;
use crate::steady::Visit;

impl Receiver {
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }
    pub fn set_buffer(&mut self, buffer: Buffer) {
        self.buffer = buffer;
    }

    /// What the last acknowledgement offered.
    pub fn offered(&self) -> u64 {
        self.right_edge.saturating_sub(self.acked)
    }
    pub fn delays(&self) -> bool {
        self.delayed_until.is_some()
    }
    /// After a pause of fewer ticks than this between segments, acknowledgements are delayed no longer than before.
    pub fn keeps_delay(clock: Clock) -> u64 {
        super::shortest_delay(clock) / 2
    }

    pub fn visit(&mut self, clock: Clock, visit: &mut Visit) {
        let hz = clock.hz();
        visit.needs(self.asked == ALL && self.quick == 0 && self.handshake_us > 0 && self.reassembly.is_empty());
        [&mut self.next, &mut self.acked, &mut self.right_edge].into_iter().for_each(|seq| visit.sequence(seq));
        visit.mark(&mut self.compressed_next);
        visit.count(&mut self.segments);
        visit.time(&mut self.compress_until);
        visit.ticks(&mut self.last_received, hz);
        if let Some(until) = &mut self.delayed_until {
            visit.ticks(until, hz);
            visit.fires(&mut self.timer, *until, hz);
        }
        visit.stamp(&mut self.ts_recent);
        self.buffer.visit(visit);
    }
}
