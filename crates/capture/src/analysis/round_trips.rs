//! The round-trip time of one direction's data, in the two halves that the capture point sees.

use crate::analysis::quantiles::{Quantiles, Summary};
use sawtooth_units::width::{Approx, Whole};

/// The retransmission timeout and the probe timeout before the first sample (RFC 6298 section 2.1, RFC 8985 section
/// 7.2).
const UNKNOWN_NS: f64 = 1e9;

/// The least that Linux's timer adds to the round trip (`TCP_RTO_MIN`).
const LEAST_TIMEOUT_NS: f64 = 200e6;

/// Samples in nanoseconds. The receiver's half is from the capture point to the receiver and back, the sender's half
/// from the capture point to the sender and back.
#[derive(Debug, Default)]
pub struct RoundTrips {
    /// From data to the acknowledgement or SACK of its last byte; never for retransmitted data (Karn's rule, RFC 6298
    /// section 3).
    pub sequence: Quantiles,
    /// From a TSval of the sender to its first echo (RFC 7323).
    pub receiver_echo: Quantiles,
    /// From a TSval of the receiver to its first echo on data.
    pub sender_echo: Quantiles,
    /// Smoothed round trip of the receiver's half, and its mean deviation.
    smoothed_ns: Option<f64>,
    variation_ns: f64,
    /// The receiver's half and the sender's.
    handshake: (Option<u64>, Option<u64>),
    /// Latest samples of the sender's half; the smallest is free of the sender's pauses.
    senders: [u64; 8],
    sender_count: usize,
}

/// The farther half of the round trip, and the shortest value of the nearer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FartherHalf {
    Receiver { near_ns: u64 },
    Sender { near_ns: u64 },
}

impl FartherHalf {
    pub fn near_ns(self) -> u64 {
        match self {
            FartherHalf::Receiver { near_ns } | FartherHalf::Sender { near_ns } => near_ns,
        }
    }
}

impl RoundTrips {
    /// For a connection with these handshake times from the capture point to the receiver and back, and to the sender
    /// and back; they are also the sender's first sample.
    pub fn of_handshake(receiver_ns: Option<u64>, sender_ns: Option<u64>) -> Self {
        let mut trips = RoundTrips { handshake: (receiver_ns, sender_ns), ..RoundTrips::default() };
        if let Some(ns) = receiver_ns {
            trips.smooth(ns);
        }
        if let Some(ns) = sender_ns {
            trips.of_sender(ns);
        }
        trips
    }

    /// A sample of the receiver's half.
    pub fn by_sequence(&mut self, ns: u64) {
        self.sequence.add(ns);
        self.smooth(ns);
    }

    /// RFC 6298 section 2.
    fn smooth(&mut self, ns: u64) {
        let sample = ns.approx();
        match &mut self.smoothed_ns {
            Some(smoothed) => {
                self.variation_ns += ((*smoothed - sample).abs() - self.variation_ns) / 4.0;
                *smoothed += (sample - *smoothed) / 8.0;
            }
            none => {
                *none = Some(sample);
                self.variation_ns = sample / 2.0;
            }
        }
    }

    pub fn by_sender_echo(&mut self, ns: u64) {
        self.sender_echo.add(ns);
        self.of_sender(ns);
    }

    fn of_sender(&mut self, ns: u64) {
        self.senders[self.sender_count % self.senders.len()] = ns;
        self.sender_count += 1;
    }

    /// The recent sender's half, the smallest of eight samples; 0 if unknown.
    pub fn sender_ns(&self) -> u64 {
        let known = self.sender_count.min(self.senders.len());
        self.senders[..known].iter().min().copied().unwrap_or(0)
    }

    /// Both halves, smoothed; None before the first sample.
    pub fn smoothed_ns(&self) -> Option<f64> {
        self.smoothed_ns.map(|smoothed| smoothed + self.sender_ns().approx())
    }

    /// Both halves at their shortest, of data; without timestamps the sender's half is the handshake's.
    pub fn base_ns(&self) -> Option<f64> {
        let receiver = self.sequence.min_ns()?;
        Some(receiver.approx() + self.sender_echo.min_ns().or(self.handshake.1).unwrap_or(0).approx())
    }

    /// Which half is farther; None without a sample of the receiver's half.
    pub fn far(&self) -> Option<FartherHalf> {
        let middle = |half: &Quantiles| half.quantile_ns(0.5);
        let receiver = middle(&self.sequence)?;
        let sender_ns = self.sender_echo.min_ns().or(self.handshake.1).unwrap_or(0);
        match middle(&self.sender_echo) {
            Some(sender) if sender > receiver => Some(FartherHalf::Sender { near_ns: self.sequence.min_ns()? }),
            _ => Some(FartherHalf::Receiver { near_ns: sender_ns }),
        }
    }

    /// The whole round trip of data: the farther half, which contains nearly all the waiting, plus the other at its
    /// shortest.
    pub fn whole(&self) -> Option<Summary> {
        let far = self.far()?;
        let half = if matches!(far, FartherHalf::Sender { .. }) { &self.sender_echo } else { &self.sequence };
        half.summary().map(|summary| summary.longer_by(far.near_ns()))
    }

    /// The shortest time to a retransmission: acknowledgements of later data must first show the loss. Four fifths of
    /// the shortest round trip of data or the handshake.
    pub fn soonest_ns(&self) -> Option<u64> {
        let receiver = self.sequence.min_ns().into_iter().chain(self.handshake.0).min()?;
        let sender = self.sender_echo.min_ns().into_iter().chain(self.handshake.1).min().unwrap_or(0);
        Some((0.8 * (receiver + sender).approx()).whole())
    }

    /// The sender's shortest retransmission timeout: Linux adds four deviations, at least 200 ms, to the smoothed round
    /// trip (`__tcp_set_rto`, `tcp_rto_min`); others wait longer.
    pub fn timeout_ns(&self) -> f64 {
        match self.smoothed_ns() {
            Some(smoothed) => smoothed + (4.0 * self.variation_ns).max(LEAST_TIMEOUT_NS),
            None => UNKNOWN_NS,
        }
    }

    /// How long a sender waits before a tail loss probe; `alone` with a single segment in flight (RFC 8985 section
    /// 7.2). Two round trips plus the longest delay of an acknowledgement, which Linux takes as 200 ms
    /// (`tcp_schedule_loss_probe`), but at most the retransmission timeout.
    pub fn probe_ns(&self, alone: bool) -> f64 {
        let delayed_ns = if alone { LEAST_TIMEOUT_NS } else { 0.0 };
        self.smoothed_ns().map_or(UNKNOWN_NS, |smoothed| (2.0 * smoothed + delayed_ns).min(self.timeout_ns()))
    }
}
