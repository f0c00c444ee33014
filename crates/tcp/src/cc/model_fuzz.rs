//! Every algorithm under random operations: the invariants that a sender relies on.

use super::Random;
use super::testing::{clock, flight, window};
use super::{AckSample, Algorithm, Congestion, Event, RateSample};
use crate::flight::{CaState, Flight};
use crate::window::Window;

const STEPS: usize = 2_000;
const SEEDS: u64 = 60;

#[derive(Debug)]
enum Operation {
    Ack { acked: u32, rtt_us: Option<u32>, interval_us: u32, losses: u32 },
    EnterRecovery,
    Timeout,
    Undo,
    Recover,
    Idle,
    Limit,
}

fn operation(random: &mut Random) -> Operation {
    let interval_bits = 4 + random.below(17);
    match random.below(200) {
        0..=3 => Operation::EnterRecovery,
        4 => Operation::Timeout,
        5 => Operation::Undo,
        6..=16 => Operation::Recover,
        17..=18 => Operation::Idle,
        19..=22 => Operation::Limit,
        other => Operation::Ack {
            acked: if other < 40 { random.below(60) } else { 1 + random.below(2) },
            rtt_us: (random.below(10) > 0).then(|| 200 + random.below(40_000)),
            interval_us: 1 + random.below(1 << interval_bits),
            losses: if other < 60 { random.below(5) } else { 0 },
        },
    }
}

/// A sender without a network, which keeps the counters of the window consistent.
struct Model {
    cc: Congestion,
    f: Flight,
    w: Window,
    random: Random,
    now_us: u64,
    hz: u32,
    last_send: u32,
}

impl Model {
    fn new(algorithm: Algorithm, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let hz = [100, 250, 300, 1_000][random.below(4) as usize];
        let (mut f, mut w) = (flight(), window());
        // More than a path holds, and small enough for the counters of a whole run.
        w.clamp = 100_000;
        f.mss = [100, 536, 1_448, 8_960][random.below(4) as usize];
        let cc = Congestion::new(&algorithm.into(), &f, &mut w, clock(0, hz), seed);
        Model { cc, f, w, random, now_us: 0, hz, last_send: 0 }
    }

    fn step(&mut self) -> Operation {
        self.now_us += match self.random.below(500) {
            0 => u64::from(self.random.below(12_000_000)),
            1..=50 => u64::from(self.random.below(50_000)),
            _ => u64::from(self.random.below(1_000)),
        };
        self.fill_flight();
        let operation = operation(&mut self.random);
        let now = clock(self.now_us, self.hz);
        match operation {
            Operation::Ack { acked, rtt_us, interval_us, losses } => self.ack(acked, rtt_us, interval_us, losses),
            Operation::EnterRecovery if self.f.ca_state < CaState::Recovery => self.reduce(CaState::Recovery),
            Operation::EnterRecovery => {}
            Operation::Timeout => {
                self.reduce(CaState::Loss);
                self.w.cwnd = self.f.in_flight() + 1;
                self.cc.event(&self.f, &mut self.w, Event::Loss, now);
            }
            // A reduction must come before an undo.
            Operation::Undo if self.f.prior_cwnd == 0 => {}
            Operation::Undo => self.w.cwnd = self.cc.undo_cwnd(&self.f, &mut self.w, now),
            Operation::Recover => {
                self.cc.set_state(&self.f, &mut self.w, CaState::Open, now);
                self.f.ca_state = CaState::Open;
            }
            Operation::Idle => {
                self.now_us += u64::from(self.random.below(3_000_000));
                let event = Event::TxStart { last_send_jiffies: self.last_send };
                self.cc.event(&self.f, &mut self.w, event, clock(self.now_us, self.hz));
            }
            Operation::Limit => {
                self.f.is_cwnd_limited = !self.f.is_cwnd_limited;
                self.w.app_limited = if self.w.app_limited > 0 { 0 } else { self.f.delivered + 3 };
            }
        }
        self.last_send = clock(self.now_us, self.hz).jiffies();
        operation
    }

    fn fill_flight(&mut self) {
        let (f, w) = (&mut self.f, &mut self.w);
        f.packets_out = if self.random.below(20) == 0 { self.random.below(5) } else { w.cwnd };
        f.max_packets_out = f.packets_out;
        f.snd_nxt = f.snd_una + u64::from(f.packets_out);
        f.sacked_out = self.random.below(f.packets_out / 2 + 1);
        f.lost_out = self.random.below(f.packets_out / 2 + 1);
        f.retrans_out = self.random.below(f.lost_out + 1);
        f.wstamp_ns = (self.now_us + u64::from(self.random.below(5_000))) * 1_000;
    }

    /// A sender's steps around `ssthresh` when it reduces its window.
    fn reduce(&mut self, to: CaState) {
        let now = clock(self.now_us, self.hz);
        self.f.prior_cwnd = self.w.cwnd;
        self.w.ssthresh = self.cc.ssthresh(&self.f, &mut self.w, now);
        assert!(self.w.ssthresh >= 2);
        self.cc.set_state(&self.f, &mut self.w, to, now);
        self.f.ca_state = to;
        if !self.cc.has_cong_control() {
            self.w.cwnd = self.w.ssthresh;
        }
        self.w.cwnd_cnt = 0;
    }

    fn ack(&mut self, acked: u32, rtt_us: Option<u32>, interval_us: u32, losses: u32) {
        let now = clock(self.now_us, self.hz);
        let (f, w) = (&mut self.f, &mut self.w);
        let prior_delivered = f.delivered.saturating_sub(u64::from(self.random.below(w.cwnd)));
        f.delivered += u64::from(acked);
        f.delivered_us = self.now_us;
        f.snd_una += u64::from(acked);
        f.snd_nxt = f.snd_nxt.max(f.snd_una);
        f.lost += u64::from(losses);
        if let Some(rtt_us) = rtt_us {
            f.srtt_us = rtt_us << 3;
            f.min_rtt_us = f.min_rtt_us.min(rtt_us);
        }
        let rtt_us = rtt_us.map_or(-1, i64::from);
        self.cc.pkts_acked(f, w, AckSample { pkts_acked: acked, rtt_us, in_flight: f.in_flight() }, now);
        if self.cc.has_cong_control() {
            let valid = acked > 0;
            let sample = RateSample {
                delivered: if valid { (f.delivered - prior_delivered) as i64 } else { -1 },
                interval_us: if valid { i64::from(interval_us) } else { -1 },
                prior_delivered,
                rtt_us,
                losses,
                lost: losses + self.random.below(3),
                tx_in_flight: if valid { f.in_flight() + acked } else { 0 },
                acked_sacked: acked,
                prior_in_flight: f.in_flight() + acked,
                is_app_limited: w.app_limited > 0,
                is_retrans: false,
                is_ack_delayed: self.random.below(4) == 0,
                is_acking_tlp_retrans_seq: self.random.below(50) == 0,
                delivered_ce: self.random.below(3),
                is_ece: self.random.below(20) == 0,
                has_unsent: self.random.below(5) > 0,
            };
            self.cc.cong_control(f, w, &sample, now);
        } else if acked > 0 && f.ca_state <= CaState::Disorder {
            self.cc.cong_avoid(f, w, acked, now);
            w.pacing_rate = u64::from(f.mss) * u64::from(w.cwnd) * 1_000;
        }
    }
}

#[test]
fn random_events_keep_cwnd_ssthresh_and_rate_valid() {
    for &algorithm in Algorithm::ALL {
        let mut windows = std::collections::BTreeSet::new();
        for seed in 0..SEEDS {
            let mut model = Model::new(algorithm, seed);
            for step in 0..STEPS {
                let operation = model.step();
                let (f, w) = (&model.f, &model.w);
                let context = (algorithm, seed, step, &operation);
                assert!(w.cwnd >= 1, "{context:?}: an empty window");
                assert!(w.cwnd <= w.clamp, "{context:?}: {} segments", w.cwnd);
                assert!(w.ssthresh >= 2, "{context:?}: a threshold of {}", w.ssthresh);
                assert!(w.pacing_rate > 0, "{context:?}: no rate");
                // Either the algorithm sizes super-packets by itself, or auto-sizing does above the algorithm's minimum.
                let [least, most] = [0, 40].map(|auto| model.cc.tso_segs(f, w, auto));
                assert!(least == most && least > 0 || (1..=2).contains(&least) && most == 40, "{context:?}");
                windows.insert(w.cwnd);
            }
        }
        assert!(windows.len() > 50, "{algorithm:?} was hardly exercised: {} windows", windows.len());
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for &algorithm in Algorithm::ALL {
        let run = |seed| {
            let mut model = Model::new(algorithm, seed);
            for _ in 0..STEPS {
                model.step();
            }
            format!("{:?} {:?} {:?}", model.cc, model.f, model.w)
        };
        assert_eq!(run(9), run(9));
        assert_ne!(run(9), run(10));
    }
}
