//! A sender and one bottleneck, for tests of whole algorithms. Each segment has an ACK or is lost for good. A loss is
//! known with the next ACK, and a recovery ends with data sent after it began.

use crate::cc::testing::{clock, flight, window};
use crate::cc::{Control, Event, Loss, Random, RateSample};
use crate::flight::{CaState, Flight};
use crate::window::Window;
use std::collections::VecDeque;

const HZ: u32 = 250;
const NANOS_PER_MS: u64 = 1_000_000;

/// What may change while the path is in use.
#[derive(Clone, Copy, Debug)]
pub(in crate::cc) struct Shape {
    pub(in crate::cc) segments_per_ms: u64,
    pub(in crate::cc) rtt_us: u64,
    /// Segments that may wait at the bottleneck.
    pub(in crate::cc) queue: u64,
    /// Segments lost at random, out of 1024.
    pub(in crate::cc) lost_of_1024: u32,
    /// ACKs arrive in batches of this many milliseconds; 0: individually.
    pub(in crate::cc) batch_ms: u64,
    /// The application keeps no more segments in flight than this.
    pub(in crate::cc) written: u32,
    /// A segment that finds more than this many waiting is marked.
    pub(in crate::cc) marks_above: Option<u64>,
}

impl Shape {
    pub(in crate::cc) const PLAIN: Shape = Shape {
        segments_per_ms: 10,
        rtt_us: 20_000,
        queue: 400,
        lost_of_1024: 0,
        batch_ms: 0,
        written: u32::MAX,
        marks_above: None,
    };
}

impl Default for Shape {
    fn default() -> Self {
        Shape::PLAIN
    }
}

struct Packet {
    back_ns: u64,
    sent_ns: u64,
    first_sent_us: u64,
    delivered: u64,
    delivered_us: u64,
    lost: u64,
    in_flight: u32,
    is_app_limited: bool,
    is_lost: bool,
    is_marked: bool,
    delivered_ce: u64,
    number: u64,
}

pub(in crate::cc) struct Path<C> {
    pub(in crate::cc) cc: C,
    pub(in crate::cc) f: Flight,
    pub(in crate::cc) w: Window,
    pub(in crate::cc) shape: Shape,
    flying: VecDeque<Packet>,
    now_ns: u64,
    link_free_ns: u64,
    first_sent_us: u64,
    sent: u64,
    recovers_until: u64,
    random: Random,
    /// The largest number of segments that waited at the bottleneck.
    pub(in crate::cc) most_waiting: u64,
    /// An echo changes no state, as if nobody listened.
    pub(in crate::cc) keeps_state_open: bool,
}

impl<C: Control> Path<C> {
    pub(in crate::cc) fn new(shape: Shape) -> Self {
        let now_ns = 1_000 * NANOS_PER_MS;
        let (mut f, mut w) = (flight(), window());
        (f.delivered, f.delivered_us) = (1, now_ns / 1_000);
        let cc = C::new(&f, &mut w, clock(now_ns / 1_000, HZ), 1);
        let first_sent_us = now_ns / 1_000;
        let random = Random::new(7);
        let flying = VecDeque::new();
        Path {
            cc,
            f,
            w,
            shape,
            flying,
            now_ns,
            link_free_ns: 0,
            first_sent_us,
            sent: 0,
            recovers_until: 0,
            random,
            most_waiting: 0,
            keeps_state_open: false,
        }
    }

    pub(in crate::cc) fn now_ms(&self) -> u64 {
        self.now_ns / NANOS_PER_MS
    }

    fn clock(&self) -> crate::clock::Clock {
        clock(self.now_ns / 1_000, HZ)
    }

    pub(in crate::cc) fn event(&mut self, event: Event) {
        let now = self.clock();
        self.cc.event(&self.f, &mut self.w, event, now);
    }

    /// The next event: a segment leaves or an ACK arrives.
    pub(in crate::cc) fn step(&mut self) {
        let has_room = self.f.packets_out < self.w.cwnd.min(self.shape.written);
        let send_ns = if has_room { self.f.wstamp_ns.max(self.now_ns) } else { u64::MAX };
        let back_ns = self.flying.front().map_or(u64::MAX, |packet| packet.back_ns.max(self.now_ns));
        self.now_ns = send_ns.min(back_ns);
        if send_ns < back_ns { self.send() } else { self.hear() }
    }

    fn send(&mut self) {
        let now_us = self.now_ns / 1_000;
        if self.f.packets_out == 0 {
            (self.first_sent_us, self.f.delivered_us) = (now_us, now_us);
            self.event(Event::TxStart { last_send_jiffies: 0 });
        }
        let segment_ns = NANOS_PER_MS / self.shape.segments_per_ms;
        let waiting_ns = self.link_free_ns.saturating_sub(self.now_ns);
        let is_lost = waiting_ns > self.shape.queue * segment_ns || self.random.below(1_024) < self.shape.lost_of_1024;
        let is_marked = self.shape.marks_above.is_some_and(|most| waiting_ns > most * segment_ns);
        self.most_waiting = self.most_waiting.max(waiting_ns / segment_ns);
        if waiting_ns <= self.shape.queue * segment_ns {
            self.link_free_ns = self.link_free_ns.max(self.now_ns) + segment_ns;
        }
        let mut back_ns = self.link_free_ns.max(self.now_ns) + self.shape.rtt_us * 1_000 - segment_ns;
        if self.shape.batch_ms > 0 {
            back_ns = back_ns.next_multiple_of(self.shape.batch_ms * NANOS_PER_MS);
        }
        self.f.packets_out += 1;
        self.sent += 1;
        self.f.snd_nxt = self.sent;
        self.flying.push_back(Packet {
            back_ns,
            sent_ns: self.now_ns,
            first_sent_us: self.first_sent_us,
            delivered: self.f.delivered,
            delivered_us: self.f.delivered_us,
            lost: self.f.lost,
            in_flight: self.f.in_flight(),
            is_app_limited: self.w.app_limited > 0,
            is_lost,
            is_marked,
            delivered_ce: self.f.delivered_ce,
            number: self.sent,
        });
        self.f.wstamp_ns = self.now_ns + u64::from(self.f.mss) * 1_000_000_000 / self.w.pacing_rate;
        self.f.is_cwnd_limited = self.f.packets_out >= self.w.cwnd;
        if self.f.packets_out >= self.shape.written && self.f.packets_out < self.w.cwnd {
            self.w.app_limited = self.f.delivered + u64::from(self.f.in_flight());
        }
    }

    fn hear(&mut self) {
        let prior_in_flight = self.f.in_flight();
        let Some(packet) = self.flying.pop_front() else { panic!("nothing is in flight, and nothing may be sent") };
        self.f.packets_out -= 1;
        if packet.is_lost {
            self.lose(&packet);
        } else {
            self.acknowledge(&packet, prior_in_flight);
        }
    }

    fn lose(&mut self, packet: &Packet) {
        let now = self.clock();
        self.f.lost += 1;
        let loss = Loss {
            segments: 1,
            lost: (self.f.lost - packet.lost) as u32,
            tx_in_flight: packet.in_flight,
            is_app_limited: packet.is_app_limited,
        };
        self.cc.skb_marked_lost(&self.f, &self.w, &loss, now);
        if self.f.ca_state == CaState::Open {
            self.w.ssthresh = self.cc.ssthresh(&self.f, &self.w);
            self.cc.set_state(&self.f, &mut self.w, CaState::Recovery, now);
            self.f.ca_state = CaState::Recovery;
            self.recovers_until = self.sent;
        }
    }

    fn acknowledge(&mut self, packet: &Packet, prior_in_flight: u32) {
        let (now, now_us) = (self.clock(), self.now_ns / 1_000);
        if self.f.ca_state >= CaState::Cwr && packet.number > self.recovers_until {
            self.cc.set_state(&self.f, &mut self.w, CaState::Open, now);
            self.f.ca_state = CaState::Open;
        }
        self.f.delivered += 1;
        self.f.delivered_ce += u64::from(packet.is_marked);
        if packet.is_marked && self.f.ca_state == CaState::Open && !self.keeps_state_open {
            self.cc.set_state(&self.f, &mut self.w, CaState::Cwr, now);
            self.f.ca_state = CaState::Cwr;
            self.recovers_until = self.sent;
        }
        self.f.delivered_us = now_us;
        self.first_sent_us = packet.sent_ns / 1_000;
        if self.w.app_limited > 0 && self.f.delivered > self.w.app_limited {
            self.w.app_limited = 0;
        }
        let rtt_us = (self.now_ns - packet.sent_ns) / 1_000;
        self.f.srtt_us = rtt_us as u32 * 8;
        let interval_us = (now_us - packet.delivered_us).max(packet.sent_ns / 1_000 - packet.first_sent_us);
        let sample = RateSample {
            delivered: (self.f.delivered - packet.delivered) as i64,
            interval_us: interval_us as i64,
            prior_delivered: packet.delivered,
            rtt_us: rtt_us as i64,
            losses: self.lost_before(packet),
            lost: (self.f.lost - packet.lost) as u32,
            tx_in_flight: packet.in_flight,
            acked_sacked: 1,
            prior_in_flight,
            is_app_limited: packet.is_app_limited,
            is_retrans: false,
            is_ack_delayed: false,
            is_acking_tlp_retrans_seq: false,
            delivered_ce: (self.f.delivered_ce - packet.delivered_ce) as u32,
            is_ece: packet.is_marked,
            has_unsent: true,
        };
        self.cc.cong_control(&self.f, &mut self.w, &sample, now);
    }

    /// Segments lost between the last one that arrived and this one.
    fn lost_before(&mut self, packet: &Packet) -> u32 {
        let gap = packet.number - self.f.snd_una - 1;
        self.f.snd_una = packet.number;
        gap as u32
    }

    /// Segments waiting at the bottleneck leave at the new rate too.
    pub(in crate::cc) fn change_rate(&mut self, segments_per_ms: u64) {
        let now_ns = self.now_ns;
        let (before, rest_ns) = (self.shape.segments_per_ms, self.shape.rtt_us * 1_000);
        let stretch = |ns: u64| match ns.checked_sub(now_ns) {
            Some(ahead_ns) => now_ns + ahead_ns * before / segments_per_ms,
            None => ns,
        };
        for packet in &mut self.flying {
            packet.back_ns = stretch(packet.back_ns.saturating_sub(rest_ns)) + rest_ns;
        }
        self.link_free_ns = stretch(self.link_free_ns);
        self.shape.segments_per_ms = segments_per_ms;
    }

    /// The application writes nothing for this time.
    pub(in crate::cc) fn fall_silent(&mut self, ms: u64) {
        self.w.app_limited = self.f.delivered + u64::from(self.f.in_flight());
        while !self.flying.is_empty() {
            self.hear_next();
        }
        self.w.app_limited = self.f.delivered + 1;
        self.now_ns += ms * NANOS_PER_MS;
    }

    fn hear_next(&mut self) {
        self.now_ns = self.flying.front().map_or(self.now_ns, |packet| packet.back_ns.max(self.now_ns));
        self.hear();
    }

    /// A twentieth of the flight is declared lost, by a timeout or not, and then turns out not to be.
    pub(in crate::cc) fn misjudge(&mut self, timeout: bool) {
        let now = self.clock();
        let in_flight = self.f.in_flight();
        self.w.ssthresh = self.cc.ssthresh(&self.f, &self.w);
        for lost in 1..=in_flight / 20 {
            self.f.lost += 1;
            let loss = Loss { segments: 1, lost, tx_in_flight: in_flight, is_app_limited: false };
            self.cc.skb_marked_lost(&self.f, &self.w, &loss, now);
        }
        let state = if timeout { CaState::Loss } else { CaState::Recovery };
        self.cc.set_state(&self.f, &mut self.w, state, now);
        self.f.ca_state = state;
        self.w.cwnd = self.cc.undo_cwnd(&self.f, &self.w);
        self.cc.set_state(&self.f, &mut self.w, CaState::Open, now);
        self.f.ca_state = CaState::Open;
    }

    pub(in crate::cc) fn run_until_ms(&mut self, ms: u64) {
        while self.now_ms() < ms {
            self.step();
        }
    }
}
