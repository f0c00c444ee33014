//! Data that arrived in order and waits for an application that reads late or sleeps (`sk_receive_queue`).

use super::Unread;
use super::reassembly::BUFFER_FRAGMENTS;
use std::collections::VecDeque;

/// A buffer (`sk_buff`), which is freed when all of it is read.
#[derive(Clone, Copy, Debug)]
struct Filled {
    end: u64,
    segments: u64,
}

#[derive(Clone, Debug, Default)]
pub struct ReceiveQueue {
    buffers: VecDeque<Filled>,
    /// Where the first of them begins.
    start: u64,
    /// The end of the last.
    end: u64,
}

impl ReceiveQueue {
    /// Data that takes memory: a partly read buffer takes all of its memory.
    pub fn unread(&self) -> Unread {
        Unread { bytes: self.end - self.start, buffers: self.buffers.len() as u64 }
    }

    /// Everything before byte `at` has been read: nothing waits.
    pub fn begin(&mut self, at: u64) {
        (self.start, self.end) = (at, at);
    }

    /// Appends `segments`, up to byte `end`: to the last buffer as far as it has room (`tcp_try_coalesce`). Several
    /// that came out of order are assumed to have equal lengths.
    pub fn push(&mut self, end: u64, mut segments: u64) {
        while segments > 0 {
            if self.buffers.back().is_none_or(|last| last.segments >= BUFFER_FRAGMENTS) {
                self.buffers.push_back(Filled { end: self.end, segments: 0 });
            }
            let Some(last) = self.buffers.back_mut() else { return };
            let more = segments.min(BUFFER_FRAGMENTS - last.segments);
            self.end += (end - self.end) / segments * more;
            segments -= more;
            if segments == 0 {
                self.end = end;
            }
            (last.segments, last.end) = (last.segments + more, self.end);
        }
    }

    /// The application reads up to byte `to`. Returns where the first part ended, if anything was read from `from` on.
    pub fn read(&mut self, from: u64, to: u64) -> Option<u64> {
        let first = self.buffers.front().filter(|_| to > from).map(|buffer| buffer.end.min(to));
        while let Some(buffer) = self.buffers.front().filter(|buffer| buffer.end <= to) {
            self.start = buffer.end;
            self.buffers.pop_front();
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 10;

    fn held(queue: &ReceiveQueue) -> [u64; 2] {
        [queue.unread().bytes, queue.unread().buffers]
    }

    #[test]
    fn up_to_seventeen_segments_share_a_buffer() {
        let mut queue = ReceiveQueue::default();
        (1..=17).for_each(|segment| queue.push(segment * MSS, 1));
        assert_eq!(held(&queue), [170, 1]);
        queue.push(18 * MSS, 1);
        assert_eq!(held(&queue), [180, 2]);
        queue.push(18 * MSS + 7 * MSS + 3, 8);
        assert_eq!(held(&queue), [253, 2]);
        queue.push(60 * MSS, 35);
        assert_eq!(held(&queue), [600, 4]);
    }

    #[test]
    fn buffer_is_freed_when_fully_read() {
        let mut queue = ReceiveQueue::default();
        (1..=20).for_each(|segment| queue.push(segment * MSS, 1));
        assert_eq!(queue.read(0, 0), None);
        assert_eq!((queue.read(0, 169), held(&queue)), (Some(169), [200, 2]));
        assert_eq!((queue.read(169, 175), held(&queue)), (Some(170), [30, 1]));
        assert_eq!((queue.read(175, 200), held(&queue)), (Some(200), [0, 0]));
    }
}
