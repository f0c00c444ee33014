//! Computes the window that a congestion control would have allowed, from what a capture shows of its sender.
//!
//! A capture shows when each data segment was sent, which data was acknowledged at that time, and when that
//! acknowledgement arrived. [`replay`] gives exactly this to an algorithm, in the same order, and notes its window and
//! pacing rate before each segment. The algorithm is the simulator's. The segments in flight are those of the capture,
//! so an algorithm other than the sender's own still stays close to what was sent.
//!
//! Assumptions replace what a capture does not show. Without SACK, data received out of order counts as delivered when
//! it is acknowledged. A loss is detected when it is retransmitted. At that moment, the window is taken to be the data
//! in flight, so errors do not carry over to the next epoch.

#![cfg_attr(
    not(test),
    warn(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        clippy::expect_used,
        clippy::unwrap_used
    )
)]

mod sender;

use sawtooth_tcp::cc::Algorithm;
use sawtooth_tcp::window::INFINITE_SSTHRESH;
use sender::Sender;

/// A data segment at the time it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Nanoseconds since the first segment; never decreases.
    pub t_ns: u64,
    /// `end`: the sequence number after the segment's last byte. `known`: the acknowledged bytes. Both count from the
    /// first data byte. `known` never decreases.
    pub end: u64,
    pub known: u64,
    /// When the acknowledgement for `known` arrived, on the same clock; never later than `t_ns`, never decreases.
    pub known_ns: u64,
    /// Whether its bytes had been sent before.
    pub again: bool,
}

/// What an algorithm allowed when a segment was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Segments.
    pub cwnd: u32,
    /// Bytes per second; `u64::MAX` without pacing.
    pub pacing_rate: u64,
}

/// State of the sender at the first segment, which the capture does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Segments.
    pub window: u32,
    /// Slow start ends at this window, in segments. For a capture that begins in the middle of a connection, slow start
    /// may already be over.
    pub ssthresh: u32,
}

impl Start {
    /// The state of a connection that was captured from its first segment on.
    pub fn of(window: u32) -> Self {
        Start { window, ssthresh: INFINITE_SSTHRESH }
    }
}

/// The window and pacing rate that `algorithm` would have allowed before each of `sent`. `mss`: bytes of a full
/// segment. `start`: the sender's initial state. `seed`: for the algorithm's random numbers.
pub fn replay(algorithm: Algorithm, sent: &[Sent], mss: u32, start: Start, seed: u64) -> Vec<Allowed> {
    let mut sender = Sender::new(algorithm, mss.max(1), start, seed);
    sent.iter().map(|one| sender.send(one)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;
    const RTT_NS: u64 = 50_000_000;

    /// In round n, sends `windows[n]` segments at once, when the previous round is acknowledged.
    fn rounds(windows: &[u64]) -> Vec<Sent> {
        let (mut sent, mut known) = (Vec::new(), 0);
        for (round, &window) in (0..).zip(windows) {
            sent.extend((1..=window).map(|number| Sent {
                t_ns: round * RTT_NS + number * 1_000_000,
                end: known + number * u64::from(MSS),
                known,
                known_ns: round * RTT_NS,
                again: false,
            }));
            known += window * u64::from(MSS);
        }
        sent
    }

    #[test]
    fn reno_and_cubic_begin_in_slow_start() {
        let sent = rounds(&[10, 20, 40]);
        for algorithm in [Algorithm::Reno, Algorithm::Cubic] {
            let allowed = replay(algorithm, &sent, MSS, Start::of(10), 1);
            assert_eq!((allowed[0].cwnd, allowed[10].cwnd, allowed[30].cwnd), (10, 20, 40));
        }
    }

    #[test]
    fn reno_adds_one_segment_per_rtt_above_ssthresh() {
        let sent = rounds(&[20, 21, 22]);
        let allowed = replay(Algorithm::Reno, &sent, MSS, Start { window: 20, ssthresh: 20 }, 1);
        assert_eq!((allowed[0].cwnd, allowed[20].cwnd, allowed[41].cwnd), (20, 21, 22));
    }

    #[test]
    fn loss_leaves_reno_half_and_cubic_seventy_percent() {
        let mut sent = rounds(&[10, 20, 40]);
        let end = 70 * u64::from(MSS);
        // The first segment of the last round is retransmitted, and then everything is acknowledged.
        sent.push(Sent {
            t_ns: 3 * RTT_NS,
            end: 31 * u64::from(MSS),
            known: 30 * u64::from(MSS),
            known_ns: 3 * RTT_NS,
            again: true,
        });
        sent.push(Sent { t_ns: 4 * RTT_NS, end: end + u64::from(MSS), known: end, known_ns: 4 * RTT_NS, again: false });
        let left = |algorithm| replay(algorithm, &sent, MSS, Start::of(10), 1)[71].cwnd;
        assert_eq!((left(Algorithm::Reno), left(Algorithm::Cubic)), (20, 28));
    }

    #[test]
    fn bbr_paces_at_the_delivery_rate() {
        // 1000 segments per second, 50 per RTT.
        let sent: Vec<Sent> = (0..5_000)
            .map(|number: u64| Sent {
                t_ns: number * 1_000_000,
                end: (number + 1) * u64::from(MSS),
                known: number.saturating_sub(50) * u64::from(MSS),
                known_ns: number * 1_000_000,
                again: false,
            })
            .collect();
        let allowed = replay(Algorithm::Bbr, &sent, MSS, Start::of(10), 1);
        let last = allowed[4_999];
        assert!((700_000..1_300_000).contains(&last.pacing_rate), "{last:?}");
        assert!((90..=125).contains(&last.cwnd), "{last:?}");
    }

    #[test]
    fn inconsistent_input_does_not_panic() {
        let strange = [
            Sent { t_ns: 5, end: 0, known: 9_000, known_ns: 9, again: true },
            Sent { t_ns: 5, end: u64::MAX, known: u64::MAX, known_ns: 0, again: false },
            Sent { t_ns: u64::MAX, end: 7, known: u64::MAX, known_ns: 3, again: true },
        ];
        for &algorithm in Algorithm::ALL {
            assert_eq!(replay(algorithm, &strange, 0, Start { window: 0, ssthresh: 0 }, 1).len(), 3);
        }
    }
}
