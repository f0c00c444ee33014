//! Makes data segments from arbitrary bytes, and replays them with every congestion control.

use sawtooth_replay::{Sent, Start, replay};
use sawtooth_tcp::cc::Algorithm;

/// Bytes per segment: the step in time, in the last byte's number and in the acknowledged bytes, and whether it is a
/// retransmission.
const BYTES: usize = 8;

pub fn check(bytes: &[u8]) {
    let Some((&[kind, window], rest)) = bytes.split_first_chunk() else { return };
    let mss = 1 + 97 * u32::from(kind);
    let mut last = Sent { t_ns: 0, end: 0, known: 0, known_ns: 0, again: false };
    let mut sent = Vec::new();
    for chunk in rest.chunks_exact(BYTES) {
        last = step(last, chunk);
        sent.push(last);
    }
    let ssthresh = if kind & 1 == 0 { u32::MAX } else { u32::from(kind) };
    let start = Start { window: u32::from(window), ssthresh };
    for &algorithm in Algorithm::ALL {
        let allowed = replay(algorithm, &sent, mss, start, u64::from(kind));
        assert_eq!(allowed.len(), sent.len());
        assert!(allowed.iter().all(|one| one.cwnd >= 1), "{}: a window of nothing", algorithm.name());
    }
}

/// Steps are small, or, with a high exponent, as large as the number type allows.
fn step(before: Sent, chunk: &[u8]) -> Sent {
    let number = |at: usize| u64::from(chunk[at]) << (chunk[at + 1] % 56);
    let t_ns = before.t_ns.saturating_add(number(0));
    Sent {
        t_ns,
        known_ns: if chunk[7] & 4 == 0 { t_ns } else { before.t_ns },
        end: if chunk[7] & 2 == 0 {
            before.end.saturating_add(number(2))
        } else {
            before.end.saturating_sub(number(2))
        },
        known: before.known.saturating_add(number(4)),
        again: chunk[7] & 1 == 1,
    }
}
