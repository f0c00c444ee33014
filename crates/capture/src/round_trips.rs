//! The round-trip time of one direction's data, in the two halves that the capture point sees.

use crate::spread::Spread;

/// Samples in nanoseconds. The receiver's half is from the capture point to the receiver and back, the sender's half
/// from the capture point to the sender and back.
#[derive(Debug, Default)]
pub struct RoundTrips {
    /// From data to the acknowledgement of its last byte, or to its SACK; never of what was retransmitted (Karn's rule,
    /// RFC 6298 section 3).
    pub sequence: Spread,
    /// From a TSval of the sender to its first echo (RFC 7323).
    pub receiver_echo: Spread,
    /// From a TSval of the receiver to its first echo on data.
    pub sender_echo: Spread,
    smoothed_ns: f64,
    variation_ns: f64,
    /// Latest samples of the sender's half; the lowest of them is free of the sender's pauses.
    senders: [u64; 8],
    sender_count: usize,
}

impl RoundTrips {
    /// A sample of the receiver's half; smoothed as RFC 6298 section 2 says.
    pub fn by_sequence(&mut self, ns: u64) {
        self.sequence.add(ns);
        let sample = ns as f64;
        if self.sequence.count() == 1 {
            self.smoothed_ns = sample;
            self.variation_ns = sample / 2.0;
        } else {
            self.variation_ns += ((self.smoothed_ns - sample).abs() - self.variation_ns) / 4.0;
            self.smoothed_ns += (sample - self.smoothed_ns) / 8.0;
        }
    }

    pub fn by_sender_echo(&mut self, ns: u64) {
        self.sender_echo.add(ns);
        self.senders[self.sender_count % self.senders.len()] = ns;
        self.sender_count += 1;
    }

    /// The sender's half of late, the lowest of eight samples; 0 where it is not known.
    pub fn sender_ns(&self) -> f64 {
        let known = self.sender_count.min(self.senders.len());
        self.senders[..known].iter().min().map_or(0.0, |&ns| ns as f64)
    }

    /// Both halves, smoothed; None before the first sample.
    pub fn smoothed_ns(&self) -> Option<f64> {
        (self.sequence.count() > 0).then(|| self.smoothed_ns + self.sender_ns())
    }

    /// Both halves at their shortest.
    pub fn base_ns(&self) -> Option<f64> {
        let receiver = self.sequence.min_ns()?;
        Some(receiver as f64 + self.sender_echo.min_ns().unwrap_or(0) as f64)
    }

    /// What the sender's retransmission timer is at least: Linux adds four deviations, 200 ms or more, to the smoothed
    /// round trip (`__tcp_set_rto`, `tcp_rto_min`); others wait longer.
    pub fn timeout_ns(&self) -> f64 {
        match self.smoothed_ns() {
            Some(smoothed) => smoothed + (4.0 * self.variation_ns).max(200e6),
            // RFC 6298 section 2.1, before the first sample.
            None => 1e9,
        }
    }
}
