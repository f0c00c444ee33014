//! The sender's state that an algorithm sees. Data in flight is taken from the capture.

use crate::{Allowed, Sent, Start};
use sawtooth_tcp::cc::{AckSample, Algorithm, Congestion, Event, Loss, RateSample};
use sawtooth_tcp::clock::Clock;
use sawtooth_tcp::flight::{CaState, Flight};
use sawtooth_tcp::window::Window;
use sawtooth_units::Time;
use sawtooth_units::width::{Fit, Low};
use std::collections::VecDeque;

/// The tick rate of Debian's and Ubuntu's kernels. A capture does not show the sender's.
const HZ: u32 = 250;
/// Maximum number of segments in flight. Larger values only come from damaged captures.
const MOST: u64 = 1 << 20;
/// A retransmission this long after everything else, and after more than two RTTs, counts as one by timeout
/// (`TCP_RTO_MIN`).
const RTO_MIN_US: u64 = 200_000;

/// Segments in flight that were sent together, and what was acknowledged then.
#[derive(Clone, Copy, Debug)]
struct Departure {
    /// Number of segments sent since the first data, including these.
    end: u64,
    sent_us: u64,
    again: bool,
    delivered: u64,
    delivered_us: u64,
    first_tx_us: u64,
    lost: u64,
    in_flight: u32,
}

pub struct Sender {
    algorithm: Algorithm,
    seed: u64,
    mss: u64,
    flight: Flight,
    window: Window,
    /// Set from the first RTT sample on: algorithms start when the connection is established, and the handshake
    /// measures the RTT.
    congestion: Option<Congestion>,
    departures: VecDeque<Departure>,
    first_tx_us: u64,
    last_sent_us: u64,
    /// Recovery ends when this is acknowledged; in segments.
    high_seq: u64,
}

impl Sender {
    pub fn new(algorithm: Algorithm, mss: u32, start: Start, seed: u64) -> Self {
        let mut flight = Flight::new(mss, 0);
        flight.is_cwnd_limited = true;
        let mut window = Window::new(start.window.max(1));
        window.ssthresh = start.ssthresh.max(2);
        Sender {
            algorithm,
            seed,
            mss: u64::from(mss),
            flight,
            window,
            congestion: None,
            departures: VecDeque::new(),
            first_tx_us: 0,
            last_sent_us: 0,
            high_seq: 0,
        }
    }

    /// Processes the acknowledgements that arrived before `sent`, and then the sending of it.
    pub fn send(&mut self, sent: &Sent) -> Allowed {
        let at = |nanos| Clock::new(Time::from_nanos(nanos), HZ);
        let clock = at(sent.t_ns);
        let known = self.segments(sent.known).min(self.flight.snd_nxt);
        if known > self.flight.snd_una {
            self.acknowledge(known, at(sent.known_ns));
        }
        if sent.again {
            self.repair(clock);
        }
        let allowed = Allowed { cwnd: self.window.cwnd, pacing_rate: self.window.pacing_rate };
        let end = self.segments(sent.end).min(self.flight.snd_una + MOST);
        self.depart(end, sent.again, clock);
        allowed
    }

    fn segments(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.mss)
    }

    fn depart(&mut self, end: u64, again: bool, clock: Clock) {
        let now_us = clock.micros();
        let flight = &mut self.flight;
        if flight.packets_out == 0 {
            (self.first_tx_us, flight.delivered_us) = (now_us, now_us);
        }
        if end > flight.snd_nxt {
            flight.packets_out = flight.packets_out.saturating_add((end - flight.snd_nxt).low_u32());
            flight.snd_nxt = end;
        } else if again {
            flight.retrans_out = (flight.retrans_out + 1).min(flight.lost_out);
        }
        flight.max_packets_out = flight.packets_out;
        self.last_sent_us = now_us;
        self.departures.push_back(Departure {
            end,
            sent_us: now_us,
            again,
            delivered: flight.delivered,
            delivered_us: flight.delivered_us,
            first_tx_us: self.first_tx_us,
            lost: flight.lost,
            in_flight: flight.in_flight(),
        });
    }

    /// Everything up to `known` is acknowledged.
    fn acknowledge(&mut self, known: u64, clock: Clock) {
        let now_us = clock.micros();
        // No segment waits for its pacing time: a queue before the capture point would look the same.
        self.flight.wstamp_ns = clock.now.nanos();
        let acked = (known - self.flight.snd_una).low_u32();
        let prior_in_flight = self.flight.in_flight();
        let newest = self.take_out(known);
        self.flight.snd_una = known;
        self.flight.packets_out = self.flight.packets_out.saturating_sub(acked);
        let repaired = self.flight.lost_out.min(acked);
        self.flight.lost_out -= repaired;
        self.flight.retrans_out = self.flight.retrans_out.saturating_sub(repaired).min(self.flight.lost_out);
        self.flight.delivered += u64::from(acked);
        self.flight.delivered_us = now_us;
        let rtt_us = newest.filter(|one| !one.again).map(|one| now_us.saturating_sub(one.sent_us).max(1).low_u32());
        if let Some(rtt_us) = rtt_us {
            self.measure(rtt_us, clock);
        }
        let Some(mut congestion) = self.congestion.take() else { return };
        let rtt_us = rtt_us.map_or(-1, i64::from);
        let in_flight = newest.map_or(acked, |one| self.delivered_since(&one));
        let sample = AckSample { pkts_acked: acked, rtt_us, in_flight };
        congestion.pkts_acked(&self.flight, &mut self.window, sample, clock);
        let state = self.flight.ca_state;
        if state != CaState::Open && known >= self.high_seq {
            self.recovered(&mut congestion, clock);
        }
        if congestion.has_cong_control() {
            let sample = self.sample(newest, acked, prior_in_flight, rtt_us, now_us);
            congestion.cong_control(&self.flight, &mut self.window, &sample, clock);
        } else if matches!(state, CaState::Open | CaState::Loss) {
            congestion.cong_avoid(&self.flight, &mut self.window, acked, clock);
        }
        self.congestion = Some(congestion);
    }

    fn delivered_since(&self, one: &Departure) -> u32 {
        (self.flight.delivered - one.delivered).min(MOST).fit_u32()
    }

    /// Removes the sent segments that `known` covers. Returns the latest.
    fn take_out(&mut self, known: u64) -> Option<Departure> {
        let mut newest = None;
        while let Some(one) = self.departures.front().filter(|one| one.end <= known) {
            newest = Some(*one);
            self.departures.pop_front();
        }
        if let Some(one) = newest {
            self.first_tx_us = one.sent_us;
        }
        newest
    }

    /// RTT estimation by RFC 6298, in the units of `Flight`. The first sample starts the algorithm.
    fn measure(&mut self, rtt_us: u32, clock: Clock) {
        let flight = &mut self.flight;
        flight.min_rtt_us = flight.min_rtt_us.min(rtt_us);
        flight.srtt_us = match flight.srtt_us {
            0 => rtt_us.saturating_mul(8),
            srtt => (srtt - srtt / 8).saturating_add(rtt_us),
        };
        if self.congestion.is_none() {
            let begun = Congestion::new(&self.algorithm.into(), flight, &mut self.window, clock, self.seed);
            self.congestion = Some(begun);
        }
    }

    fn sample(
        &self,
        newest: Option<Departure>,
        acked: u32,
        prior_in_flight: u32,
        rtt_us: i64,
        now_us: u64,
    ) -> RateSample {
        let (delivered, interval_us) = newest.map_or((-1, -1), |one| {
            let sending = one.sent_us.saturating_sub(one.first_tx_us);
            let interval_us = now_us.saturating_sub(one.delivered_us).max(sending);
            let plausible = interval_us >= u64::from(self.flight.min_rtt_us);
            let delivered = i64::from(self.delivered_since(&one));
            (delivered, if plausible { interval_us.cast_signed() } else { -1 })
        });
        RateSample {
            delivered,
            interval_us,
            prior_delivered: newest.map_or(0, |one| one.delivered),
            rtt_us,
            losses: 0,
            lost: newest.map_or(0, |one| (self.flight.lost - one.lost).low_u32()),
            tx_in_flight: newest.map_or(0, |one| one.in_flight),
            acked_sacked: acked,
            prior_in_flight,
            is_app_limited: false,
            is_retrans: newest.is_some_and(|one| one.again),
            is_ack_delayed: false,
            is_acking_tlp_retrans_seq: false,
            // ECN marks in captures are not used here.
            delivered_ce: 0,
            is_ece: false,
            has_unsent: true,
        }
    }

    /// Data is retransmitted: a loss was detected or a timeout fired.
    fn repair(&mut self, clock: Clock) {
        let waited_us = clock.micros().saturating_sub(self.last_sent_us);
        let srtt_us = u64::from(self.flight.srtt_us / 8);
        let timeout = waited_us >= RTO_MIN_US.max(2 * srtt_us) && self.flight.ca_state != CaState::Loss;
        self.flight.lost_out = (self.flight.lost_out + 1).min(self.flight.packets_out);
        self.flight.lost += 1;
        let Some(mut congestion) = self.congestion.take() else { return };
        if congestion.hears_of_losses() {
            let oldest = self.departures.front();
            let loss = Loss {
                segments: 1,
                lost: oldest.map_or(1, |one| (self.flight.lost - one.lost).low_u32()),
                tx_in_flight: oldest.map_or(self.flight.in_flight(), |one| one.in_flight),
                is_app_limited: false,
            };
            congestion.skb_marked_lost(&self.flight, &self.window, &loss, clock);
        }
        if timeout || self.flight.ca_state == CaState::Open {
            self.reduce(&mut congestion, timeout, clock);
        }
        self.congestion = Some(congestion);
    }

    /// Recovery starts, with the data in flight as window.
    fn reduce(&mut self, congestion: &mut Congestion, timeout: bool, clock: Clock) {
        if !congestion.has_cong_control() && self.flight.ca_state == CaState::Open {
            self.window.cwnd = self.flight.packets_out.max(2);
        }
        self.flight.prior_cwnd = self.window.cwnd;
        self.window.ssthresh = congestion.ssthresh(&self.flight, &mut self.window, clock);
        self.window.cwnd_cnt = 0;
        self.high_seq = self.flight.snd_nxt;
        let state = if timeout { CaState::Loss } else { CaState::Recovery };
        if timeout {
            congestion.event(&self.flight, &mut self.window, Event::Loss, clock);
            self.window.cwnd = 1;
        }
        congestion.set_state(&self.flight, &mut self.window, state, clock);
        self.flight.ca_state = state;
    }

    fn recovered(&mut self, congestion: &mut Congestion, clock: Clock) {
        if self.flight.ca_state == CaState::Recovery && !congestion.has_cong_control() {
            self.window.cwnd = self.window.ssthresh;
            congestion.event(&self.flight, &mut self.window, Event::CompleteCwr, clock);
        }
        (self.flight.lost_out, self.flight.retrans_out) = (0, 0);
        congestion.set_state(&self.flight, &mut self.window, CaState::Open, clock);
        self.flight.ca_state = CaState::Open;
    }
}
