//! One connection: handshake, sender, receiver, and what waits in the sending host's own queue.

use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::options::HostOptions;
use sawtooth_tcp::receiver::Receiver;
use sawtooth_tcp::sender::{Sender, SenderStats};
use sawtooth_units::Time;
use std::collections::VecDeque;

/// Where a connection is in its life.
#[derive(Clone, Debug)]
pub enum Phase {
    /// Before its start, or after its end.
    Idle,
    /// A SYN is out; when it was sent last and how often.
    Connecting {
        sent: Time,
        tries: u32,
    },
    Established(Box<Sender>),
    Done,
}

#[derive(Clone, Debug)]
pub struct Connection {
    pub flow: u32,
    /// Among those of its flow.
    pub number: u32,
    /// Counts the connections that used this slot.
    pub generation: u32,
    pub phase: Phase,
    pub receiver: Option<Box<Receiver>>,
    /// Which connection the receiving end serves: it learns of a new one by its SYN.
    pub receiver_generation: u32,
    pub synack_sent: Time,
    pub started: Time,
    /// When it is closed, whatever it has delivered.
    pub ends: Time,
    pub forward_at: u32,
    pub backward_at: u32,
    pub from: HostOptions,
    pub to: HostOptions,
    /// SYNs sent.
    pub handshake: SenderStats,
    /// The sending host keeps packets in a queue of its own: when each leaves it, and how much memory it holds.
    pub host_queue: VecDeque<(Time, u32)>,
    pub host_queued: bool,
    /// Loss on the first link takes whole super-packets.
    pub offload: bool,
    /// Segments in all, and payload bytes of the last one.
    pub total: u64,
    pub last_size: u32,
}

impl Connection {
    /// Both ends agreed on SACK.
    pub fn sack(&self) -> bool {
        self.from.sack && self.to.sack
    }
    pub fn timestamps(&self) -> bool {
        self.from.timestamps && self.to.timestamps
    }
    pub fn sender(&mut self) -> Option<&mut Sender> {
        match &mut self.phase {
            Phase::Established(sender) => Some(sender),
            _ => None,
        }
    }
    /// The sender's counters, the handshake's SYNs included (as Linux counts them).
    pub fn stats(&self) -> SenderStats {
        match &self.phase {
            Phase::Established(sender) => sender.stats + self.handshake,
            _ => self.handshake,
        }
    }
    /// Payload bytes of the first `segments` segments.
    pub fn bytes(&self, segments: u64) -> u64 {
        if segments == self.total && segments > 0 {
            (segments - 1) * u64::from(self.from.mss) + u64::from(self.last_size)
        } else {
            segments * u64::from(self.from.mss)
        }
    }
    /// Payload bytes that the sender knows to have been delivered.
    pub fn acknowledged_bytes(&self) -> u64 {
        match &self.phase {
            Phase::Established(sender) => self.bytes(sender.window.snd_una),
            _ => 0,
        }
    }
    pub fn sender_clock(&self, now: Time) -> Clock {
        Clock { now, hz: self.from.hz }
    }
    pub fn receiver_clock(&self, now: Time) -> Clock {
        Clock { now, hz: self.to.hz }
    }

    /// Lets go of what has left the host's queue by `now`.
    pub fn settle_host_queue(&mut self, now: Time) {
        let mut freed = 0;
        while let Some(&(departure, memory)) = self.host_queue.front()
            && departure <= now
        {
            freed += u64::from(memory);
            self.host_queue.pop_front();
        }
        if self.host_queue.is_empty() {
            // Back to the first slot, which is in the cache.
            self.host_queue.clear();
        }
        if let Some(sender) = self.sender() {
            sender.host_queue -= freed;
        }
    }
}
