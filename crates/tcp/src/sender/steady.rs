//! The sender's part of a visit (see [`crate::steady`]).

use super::{Scoreboard, Sender};
use crate::clock::Clock;
use crate::flight::{CaState, Flight};
use crate::steady::Visit;
use sawtooth_units::Time;

/// What a sender notes once a round, which does not repeat with the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    /// A new round of the timeout's variance begins after this byte.
    pub variance_end: u64,
    /// A new one of the window's validation begins at this byte; and the most segments in flight in it.
    pub usage_end: u64,
    pub most_in_flight: u32,
}

impl Sender {
    pub fn rounds(&self) -> Rounds {
        let most_in_flight = self.flight.max_packets_out;
        Rounds { variance_end: self.rtt.round_end, usage_end: self.cwnd_usage_seq, most_in_flight }
    }
    pub fn set_rounds(&mut self, rounds: Rounds) {
        self.rtt.round_end = rounds.variance_end;
        (self.cwnd_usage_seq, self.flight.max_packets_out) = (rounds.usage_end, rounds.most_in_flight);
    }
    pub fn set_ts_recent(&mut self, stamp: u32) {
        self.ts_recent = stamp;
    }

    /// A few values that tell most states apart.
    pub fn glimpse(&self, now: Time) -> [u64; 5] {
        let Flight { snd_una, snd_nxt, delivered_us, srtt_us, .. } = self.flight;
        [
            snd_nxt - snd_una,
            self.written - snd_nxt,
            self.window_end - snd_una,
            now.micros().wrapping_sub(delivered_us),
            srtt_us.into(),
        ]
    }

    /// The window would not grow with this many segments in flight.
    pub fn is_content(&self, most: u32) -> bool {
        !self.window.in_slow_start() || self.window.cwnd >= most.saturating_mul(2)
    }
    /// Whether its timer cannot fire now, wherever ticks begin: it fires a tick late at least.
    pub fn is_before_timeout(&self, clock: Clock) -> bool {
        self.timeout > clock.jiffies64()
    }

    /// The data in flight, which is visited apart: where it is stored does not matter.
    pub fn swap_board(&mut self, board: &mut Scoreboard) {
        std::mem::swap(&mut self.board, board);
    }

    pub fn visit(&mut self, clock: Clock, visit: &mut Visit) {
        let (hz, flight) = (clock.hz(), &mut self.flight);
        visit.connection(flight.snd_una, flight.delivered);
        let is_whole = [flight.sacked_out, flight.lost_out, flight.retrans_out] == [0; 3];
        visit.needs(is_whole && flight.ca_state == CaState::Open && !flight.is_cwnd_limited && flight.packets_out > 0);
        visit.needs(
            !self.has_cong_control && self.congestion.is_settled(&self.window, clock) && self.window.app_limited == 0,
        );
        visit.needs(self.tlp_high_seq.is_none() && self.waiting.is_none() && !self.accurate_ecn);
        visit.ends(self.total, self.written);
        let sequences = [&mut flight.snd_una, &mut flight.snd_nxt, &mut self.written, &mut self.window_end];
        sequences
            .into_iter()
            .chain([&mut self.pushed])
            .chain(&mut self.buffer_ends)
            .for_each(|seq| visit.sequence(seq));
        [&mut self.small_end, &mut self.high_seq, &mut self.highest_sack].into_iter().for_each(|seq| visit.mark(seq));
        visit.count(&mut flight.delivered);
        let stats = [&mut self.stats.segments_out, &mut self.stats.rwnd_limited_ns, &mut self.stats.sndbuf_limited_ns];
        stats.into_iter().for_each(|count| visit.count(count));
        [&mut flight.delivered_us, &mut self.first_tx_us].into_iter().for_each(|micros| visit.micros(micros));
        visit.nanos(&mut flight.wstamp_ns);
        visit.time(&mut self.pacing_timer);
        self.limited_since.iter_mut().for_each(|(_, since)| visit.since(since));
        visit.ticks(&mut self.timeout, hz);
        visit.fires(&mut self.timer, self.timeout, hz);
        visit.ticks32(&mut self.last_send_jiffies, hz);
        visit.stamp(&mut self.ts_recent);
        visit.round(&mut self.cwnd_usage_seq);
        visit.round_count(&mut flight.max_packets_out);
        self.rtt.visit(clock, visit);
        self.rack.visit(visit);
    }
}
