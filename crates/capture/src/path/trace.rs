//! A transfer, segment by segment, as seen at one point of the path: either end or between them.
//!
//! At the sender, acknowledgements report deliveries, and the round trip of data shows waiting. At the receiver,
//! arrivals are deliveries, and waiting shows in how late a segment arrives relative to its timestamp.

use super::directions::{Acks, Data};
use super::loss_runs::{self, LossRuns};
use super::rtt_samples::{FirstCopies, lateness, round_trips, sent};
use super::statistics::least;
use sawtooth_units::width::Approx;

/// An event that concerns packets of the transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivery {
    pub t_s: f64,
    /// Newly delivered payload; NaN if the event says nothing about the pace of deliveries (a gap was filled).
    pub bytes: f64,
    /// When the newest of it was sent, in s; NaN if unknown.
    pub sent_s: f64,
}

/// Columns in order of time, in s since the capture's start. A delay is a round trip or a one-way delay with any
/// origin: only its changes matter.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub delivered: Vec<Delivery>,
    pub delay_t_s: Vec<f64>,
    pub delay_s: Vec<f64>,
    pub sent_t_s: Vec<f64>,
    pub sent_segments: Vec<u64>,
    /// When lost packets were sent; if that was not captured, when their neighbors passed.
    pub lost: LossRuns,
    pub segments_an_ack: Vec<f64>,
    pub sender_side: bool,
    /// The resolution of delays.
    pub grain_s: f64,
    /// The delay without any wait, if something other than the delays shows it; else infinite.
    pub floor_s: f64,
}

impl Trace {
    /// For a capture before the path; `handshake_s` is the SYN's round trip from here, or infinite.
    pub fn at_sender(data: &Data, acks: &Acks, mss: u32, handshake_s: f64) -> Self {
        let first = FirstCopies::of(data);
        let mut delivered = Vec::new();
        let (mut most, mut held) = (0, false);
        for at in 0..acks.ack.len() {
            let newest = acks.newest[at];
            let gained = newest - most;
            // An acknowledgement that fills or opens a gap jumps by more than what arrived.
            let jumps = acks.blind[at] || acks.opens[at] || (acks.ack[at] == newest && held);
            if gained > 0 {
                let bytes = if jumps { f64::NAN } else { gained.unsigned_abs().approx() };
                delivered.push(Delivery { t_s: acks.t_s[at], bytes, sent_s: sent(&first, newest) });
            }
            most = most.max(newest);
            held = newest > acks.ack[at];
        }
        let (times, trips) = round_trips(&first, acks);
        let mut delays: Vec<(f64, f64)> = times.into_iter().zip(trips).collect();
        delays.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (delay_t_s, delay_s) = delays.into_iter().unzip();
        Trace {
            delivered,
            delay_t_s,
            delay_s,
            sent_t_s: data.t_s.clone(),
            sent_segments: sizes(data, mss),
            lost: loss_runs::at_sender(data),
            segments_an_ack: stretch(acks, mss),
            sender_side: true,
            grain_s: 0.0,
            floor_s: handshake_s,
        }
    }

    /// For a capture after the path.
    pub fn at_receiver(data: &Data, acks: &Acks, mss: u32) -> Self {
        let (late, grain_s) = lateness(data);
        let lost = loss_runs::at_receiver(data, mss);
        let delivery = |at: usize| Delivery {
            t_s: data.t_s[at],
            bytes: (data.end[at] - data.seq[at]).unsigned_abs().approx(),
            sent_s: late.get(at).map_or(f64::NAN, |late| data.t_s[at] - late),
        };
        let arrived = data.t_s.iter().copied().zip(sizes(data, mss));
        let mut sent: Vec<(f64, u64)> =
            arrived.chain(lost.t_s.iter().copied().zip(lost.segments.iter().copied())).collect();
        sent.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (sent_t_s, sent_segments) = sent.into_iter().unzip();
        Trace {
            delivered: (0..data.t_s.len()).map(delivery).collect(),
            delay_t_s: if late.is_empty() { Vec::new() } else { data.t_s.clone() },
            delay_s: late,
            sent_t_s,
            sent_segments,
            lost,
            segments_an_ack: stretch(acks, mss),
            sender_side: false,
            grain_s,
            floor_s: f64::INFINITY,
        }
    }

    /// The delay without any wait, in s; None if there is no delay.
    pub fn min_delay_s(&self) -> Option<f64> {
        least(&self.delay_s).map(|one| one.min(self.floor_s))
    }

    pub fn sent(&self) -> u64 {
        self.sent_segments.iter().sum()
    }

    pub fn lost(&self) -> u64 {
        self.lost.segments.iter().sum()
    }
}

/// Super-packets count as the segments into which they are split.
fn sizes(data: &Data, mss: u32) -> Vec<u64> {
    data.seq.iter().zip(&data.end).map(|(seq, end)| loss_runs::segments(end - seq, mss)).collect()
}

/// Segments newly covered by each in-order acknowledgement.
fn stretch(acks: &Acks, mss: u32) -> Vec<f64> {
    let plain = |at: usize| acks.newest[at] == acks.ack[at];
    (1..acks.ack.len())
        .filter(|&at| plain(at) && plain(at - 1) && acks.ack[at] > acks.ack[at - 1])
        .map(|at| (acks.ack[at] - acks.ack[at - 1]).unsigned_abs().approx() / f64::from(mss))
        .collect()
}
