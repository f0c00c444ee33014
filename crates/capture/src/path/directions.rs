//! Splits the rows of one connection into the data of one direction and the acknowledgements of the other.

use std::borrow::Cow;

use super::statistics::{before, highest};
use crate::analysis::kind::Kind;

/// Kinds of data segments that show the loss of an earlier copy.
pub const RETRANSMITTED: [u8; 3] = [Kind::FastRetransmission as u8, Kind::Timeout as u8, Kind::TailProbe as u8];

/// Every segment of one connection, in capture order: columns of the tables `segments` and `sacks`, as the reference of
/// captures defines them. `tsval` and `tsecr` are -1 for a segment without timestamps.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    pub t_s: &'a [f64],
    pub direction: &'a [u8],
    pub seq: &'a [i64],
    pub length: &'a [u32],
    pub ack: &'a [i64],
    pub kind: &'a [u8],
    pub tsval: Cow<'a, [i64]>,
    pub tsecr: Cow<'a, [i64]>,
    pub sack_segment: &'a [u64],
    pub sack_start: &'a [i64],
    pub sack_end: &'a [i64],
    pub sack_dsack: &'a [bool],
}

impl Rows<'_> {
    /// Whether the columns have equal length and every block belongs to an existing segment.
    pub fn is_consistent(&self) -> bool {
        let rows = self.t_s.len();
        let blocks = self.sack_segment.len();
        let columns = [self.direction.len(), self.seq.len(), self.length.len(), self.ack.len(), self.kind.len()];
        columns.iter().chain(&[self.tsval.len(), self.tsecr.len()]).all(|&length| length == rows)
            && [self.sack_start.len(), self.sack_end.len(), self.sack_dsack.len()].iter().all(|&one| one == blocks)
            && self.sack_segment.iter().all(|&row| usize::try_from(row).is_ok_and(|row| row < rows))
    }
}

/// The data segments of one direction; `end` is exclusive.
#[derive(Clone, Debug, Default)]
pub struct Data {
    pub t_s: Vec<f64>,
    pub seq: Vec<i64>,
    pub end: Vec<i64>,
    pub kind: Vec<u8>,
    pub tsval: Vec<i64>,
    pub tsecr: Vec<i64>,
}

/// The other end's acknowledgements: `newest` is the highest byte reported by SACK or acknowledgement; `opens` marks
/// those that report a new gap, `blind` those in a recovery in which not all arrivals were reported.
#[derive(Clone, Debug, Default)]
pub struct Acks {
    pub t_s: Vec<f64>,
    pub ack: Vec<i64>,
    pub newest: Vec<i64>,
    pub opens: Vec<bool>,
    pub tsval: Vec<i64>,
    pub blind: Vec<bool>,
}

/// The data of `direction` and its acknowledgements.
pub fn split(rows: &Rows<'_>, direction: u8) -> (Data, Acks) {
    let mut data = Data::default();
    let mut acks = Acks::default();
    // RFC 2018, section 4: the first block contains the segment that triggered the acknowledgement.
    let mut blocks = vec![(-1, -1); rows.t_s.len()];
    for at in 0..rows.sack_segment.len() {
        let Ok(row) = usize::try_from(rows.sack_segment[at]) else { continue };
        if !rows.sack_dsack[at] && blocks[row] == (-1, -1) {
            blocks[row] = (rows.sack_start[at], rows.sack_end[at]);
        }
    }
    let mut mute = Vec::new();
    let mut most = 0;
    for (row, &(start, end)) in blocks.iter().enumerate() {
        if rows.direction[row] != direction {
            let ack = rows.ack[row];
            let newest = ack.max(end);
            let repeats = acks.ack.last() == Some(&ack) && rows.length[row] == 0;
            acks.t_s.push(rows.t_s[row]);
            acks.ack.push(ack);
            acks.newest.push(newest);
            acks.opens.push(end > most && start > most);
            acks.tsval.push(rows.tsval[row]);
            mute.push(repeats && end < 0);
            most = most.max(newest);
        } else if rows.length[row] > 0 && rows.kind[row] != Kind::Copy as u8 {
            data.t_s.push(rows.t_s[row]);
            data.seq.push(rows.seq[row]);
            data.end.push(rows.seq[row] + i64::from(rows.length[row]));
            data.kind.push(rows.kind[row]);
            data.tsval.push(rows.tsval[row]);
            data.tsecr.push(rows.tsecr[row]);
        }
    }
    acks.blind = blind(&data, &acks, &mute);
    (data, acks)
}

/// Marks recoveries with incomplete reports: from a retransmission followed by repeated acknowledgements without SACK
/// blocks (unsupported, or cut off by the capture) until everything sent by then is acknowledged. What those
/// acknowledgements cover may have arrived long before.
fn blind(data: &Data, acks: &Acks, mute: &[bool]) -> Vec<bool> {
    let mut blind = vec![false; acks.ack.len()];
    let (acked, high) = (highest(&acks.ack), highest(&data.end));
    let silent = super::statistics::counts(mute.iter().map(|&one| u64::from(one)));
    let mut until = 0;
    for ((&kind, &t_s), &high) in data.kind.iter().zip(&data.t_s).zip(&high) {
        if !RETRANSMITTED.contains(&kind) && kind != Kind::FillsHole as u8 {
            continue;
        }
        let at = before(&acks.t_s, t_s);
        if at < until {
            continue;
        }
        let end = (before(&acked, high) + 1).min(blind.len());
        if end > at && silent[end] > silent[at] {
            blind[at..end].fill(true);
            until = end;
        }
    }
    blind
}
