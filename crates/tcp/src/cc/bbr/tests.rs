//! BBR as a whole: its modes on an ideal path, and what the sender's events do.

use super::pacing::BW_UNIT;
use super::*;
use crate::cc::testing::{clock, flight, window};
use std::collections::VecDeque;

const HZ: u32 = 250;

/// BBR in its first mode on `window`, at 1 s.
pub(super) fn startup(flight: Flight, mut window: Window) -> (Bbr, Flight, Window) {
    let bbr = Bbr::new(&flight, &mut window, clock(1_000_000, HZ), 1);
    (bbr, flight, window)
}

/// BBR at 2 s in the last phase of PROBE_BW on a path of 10 segments a millisecond and 10 ms, with a window of 200
/// segments, 100 of them in flight.
pub(super) fn full() -> (Bbr, Flight, Window) {
    let (mut bbr, mut f, mut w) = startup(flight(), window());
    bbr.full_pipe.reached = true;
    bbr.mode = Mode::ProbeBw;
    bbr.cycle.phase = 7;
    bbr.max_bandwidth = WindowedMax::new(0, (10 * BW_UNIT / 1_000) as u32);
    bbr.min_rtt = MinRtt::new(10_000, clock(2_000_000, HZ).jiffies());
    bbr.has_seen_rtt = true;
    bbr.update_gains();
    (w.cwnd, f.packets_out, f.srtt_us, f.delivered_us) = (200, 100, 80_000, 2_000_000);
    bbr.pace_at_bandwidth(&f, &mut w);
    (bbr, f, w)
}

/// Ten segments in a millisecond, and nothing remarkable.
pub(in crate::cc) fn sample() -> RateSample {
    RateSample {
        delivered: 10,
        interval_us: 1_000,
        prior_delivered: 0,
        rtt_us: -1,
        losses: 0,
        lost: 0,
        tx_in_flight: 10,
        acked_sacked: 1,
        prior_in_flight: 10,
        is_app_limited: false,
        is_retrans: false,
        is_ack_delayed: false,
        is_acking_tlp_retrans_seq: false,
        delivered_ce: 0,
        is_ece: false,
        has_unsent: true,
    }
}

struct Packet {
    back_ns: u64,
    sent_ns: u64,
    delivered: u64,
    delivered_us: u64,
    app_limited: bool,
}

/// A sender with endless data, one bottleneck with an endless queue, and an ACK per segment.
struct Path {
    bbr: Bbr,
    f: Flight,
    w: Window,
    flying: VecDeque<Packet>,
    now_ns: u64,
    link_free_ns: u64,
    segment_ns: u64,
    rtt_ns: u64,
}

impl Path {
    fn new(segments_per_ms: u64, rtt_us: u64) -> Self {
        let (bbr, mut f, w) = startup(flight(), window());
        let now_ns = 1_000_000_000;
        f.delivered_us = now_ns / 1_000;
        let segment_ns = 1_000_000 / segments_per_ms;
        Path { bbr, f, w, flying: VecDeque::new(), now_ns, link_free_ns: 0, segment_ns, rtt_ns: rtt_us * 1_000 }
    }

    /// The next event: a segment leaves or an ACK arrives.
    fn step(&mut self) {
        let send_ns = if self.f.packets_out < self.w.cwnd { self.f.wstamp_ns.max(self.now_ns) } else { u64::MAX };
        let back_ns = self.flying.front().map_or(u64::MAX, |p| p.back_ns);
        self.now_ns = send_ns.min(back_ns);
        if send_ns < back_ns { self.send() } else { self.ack() }
    }

    fn send(&mut self) {
        let (f, w) = (&mut self.f, &mut self.w);
        if f.packets_out == 0 {
            f.delivered_us = self.now_ns / 1_000;
        }
        self.link_free_ns = self.link_free_ns.max(self.now_ns) + self.segment_ns;
        self.flying.push_back(Packet {
            back_ns: self.link_free_ns + self.rtt_ns - self.segment_ns,
            sent_ns: self.now_ns,
            delivered: f.delivered,
            delivered_us: f.delivered_us,
            app_limited: w.app_limited > 0,
        });
        f.packets_out += 1;
        f.wstamp_ns = self.now_ns + u64::from(f.mss) * 1_000_000_000 / w.pacing_rate;
    }

    fn ack(&mut self) {
        let packet = self.flying.pop_front().expect("an ACK is for a segment");
        let (f, w) = (&mut self.f, &mut self.w);
        let prior_in_flight = f.in_flight();
        f.packets_out -= 1;
        f.delivered += 1;
        f.delivered_us = self.now_ns / 1_000;
        if w.app_limited > 0 && f.delivered > w.app_limited {
            w.app_limited = 0;
        }
        let rtt_us = (self.now_ns - packet.sent_ns) / 1_000;
        f.srtt_us = rtt_us as u32 * 8;
        let sample = RateSample {
            delivered: (f.delivered - packet.delivered) as i64,
            interval_us: (f.delivered_us - packet.delivered_us) as i64,
            prior_delivered: packet.delivered,
            rtt_us: rtt_us as i64,
            prior_in_flight,
            is_app_limited: packet.app_limited,
            ..sample()
        };
        self.bbr.cong_control(f, w, &sample, clock(self.now_ns / 1_000, HZ));
    }

    fn run_until_ms(&mut self, ms: u64) {
        while self.now_ns < ms * 1_000_000 {
            self.step();
        }
    }

    /// The modes from now to `ms`, and the millisecond at which each began.
    fn modes_until_ms(&mut self, ms: u64) -> Vec<(Mode, u64)> {
        let mut seen = vec![(self.bbr.mode, self.now_ns / 1_000_000)];
        while self.now_ns < ms * 1_000_000 {
            self.step();
            if seen.last().is_some_and(|last| last.0 != self.bbr.mode) {
                seen.push((self.bbr.mode, self.now_ns / 1_000_000));
            }
        }
        seen
    }
}

#[test]
fn phases_are_startup_drain_and_probe() {
    let mut path = Path::new(10, 20_000);
    let modes = path.modes_until_ms(3_000);
    assert_eq!(modes.iter().map(|m| m.0).collect::<Vec<_>>(), [Mode::Startup, Mode::Drain, Mode::ProbeBw]);
    // The pipe is full after four to five doublings of 20 ms; three rounds, longer by the queue, show that it is.
    assert!((1_200..1_400).contains(&modes[1].1), "{modes:?}");
    assert_eq!(path.bbr.min_rtt.us, 20_000);
    assert_eq!(path.w.ssthresh, 282, "200 in flight, three super-packets of 27, even");
}

#[test]
fn bandwidth_estimate_is_the_path_rate() {
    let mut path = Path::new(10, 20_000);
    path.run_until_ms(5_000);
    let exact = 10 * BW_UNIT / 1_000;
    let estimate = u64::from(path.bbr.bandwidth());
    assert!(estimate.abs_diff(exact) * 100 <= exact, "{estimate} for {exact}");
}

#[test]
fn in_probe_bw_the_rate_is_the_paths_and_the_queue_short() {
    let mut path = Path::new(10, 20_000);
    path.run_until_ms(3_000);
    let before = path.f.delivered;
    let mut most_in_flight = 0;
    while path.now_ns < 9_000_000_000 {
        path.step();
        most_in_flight = most_in_flight.max(path.f.in_flight());
    }
    let share = (path.f.delivered - before) * 100 / 60_000;
    assert!((98..=100).contains(&share), "{share}% of 6 s at 10 segments a millisecond");
    assert!((225..300).contains(&most_in_flight), "a quarter more than 200 while probing: {most_in_flight}");
}

#[test]
fn after_ten_seconds_the_pipe_is_emptied_for_200_ms() {
    let mut path = Path::new(10, 20_000);
    path.run_until_ms(5_000);
    // Startup's queue hides the smallest delay until draining and probing have emptied it.
    let modes = path.modes_until_ms(20_000);
    let probe = modes.iter().position(|m| m.0 == Mode::ProbeRtt).expect("ten seconds have passed");
    let (start, end) = (modes[probe].1, modes[probe + 1].1);
    assert_eq!(modes[probe + 1].0, Mode::ProbeBw);
    assert!((200..=250).contains(&(end - start)), "{modes:?}");
    assert_eq!(path.bbr.min_rtt.us, 20_000);
}

#[test]
fn another_seed_gives_another_phase() {
    let phases: std::collections::BTreeSet<usize> = (0..20)
        .map(|seed| {
            let (f, mut w) = (flight(), window());
            let mut bbr = Bbr::new(&f, &mut w, clock(1_000_000, HZ), seed);
            bbr.enter_probe_bw(&f);
            bbr.cycle.phase
        })
        .collect();
    assert!(phases.len() > 3, "{phases:?}");
}

#[test]
fn a_loss_changes_no_threshold_and_saves_the_window() {
    let (mut bbr, f, mut w) = full();
    w.ssthresh = 77;
    assert_eq!(bbr.ssthresh(&f, &w), 77);
    assert_eq!(bbr.prior_cwnd, 200);
}

#[test]
fn a_timeout_starts_a_round_and_the_detection_of_a_full_pipe() {
    let (mut bbr, mut f, mut w) = full();
    bbr.full_pipe.bandwidth = 100;
    bbr.ssthresh(&f, &w);
    bbr.set_state(&f, &mut w, CaState::Recovery, clock(2_000_000, HZ));
    assert!(!bbr.rounds.started);
    bbr.set_state(&f, &mut w, CaState::Loss, clock(2_000_000, HZ));
    assert!(bbr.rounds.started);
    assert_eq!((bbr.full_pipe.bandwidth, bbr.prev_ca_state), (0, CaState::Loss));

    // The sender goes back to one segment; when the recovery ends, the window is restored.
    (w.cwnd, f.packets_out, f.ca_state) = (1, 0, CaState::Open);
    bbr.cong_control(&f, &mut w, &sample(), clock(2_000_000, HZ));
    assert_eq!(w.cwnd, 201);
}

#[test]
fn a_restart_from_idle_paces_at_the_bandwidth() {
    let (mut bbr, f, mut w) = full();
    let at_bandwidth = w.pacing_rate;
    let restart = Event::TxStart { last_send_jiffies: 0 };
    w.pacing_rate = 1;
    bbr.event(&f, &mut w, restart, clock(3_000_000, HZ));
    assert_eq!((w.pacing_rate, bbr.idle_restart), (1, false), "only where the application was the limit");
    w.app_limited = 5;
    bbr.event(&f, &mut w, Event::Loss, clock(3_000_000, HZ));
    assert!(!bbr.idle_restart);
    bbr.event(&f, &mut w, restart, clock(3_000_000, HZ));
    assert_eq!((w.pacing_rate, bbr.idle_restart), (at_bandwidth, true));
}

#[test]
fn idle_time_counts_as_emptying_the_pipe() {
    let (mut bbr, mut f, mut w) = full();
    let expired = clock(12_100_000, HZ);
    bbr.update_min_rtt(&f, &mut w, &sample(), expired);
    f.packets_out = 3;
    bbr.update_min_rtt(&f, &mut w, &sample(), expired);
    w.cwnd = 4;
    bbr.event(&f, &mut w, Event::TxStart { last_send_jiffies: 0 }, clock(12_400_000, HZ));
    assert_eq!((bbr.mode, w.cwnd), (Mode::ProbeBw, 200));
}

#[test]
fn undo_restarts_full_pipe_detection_and_keeps_window() {
    let (mut bbr, f, w) = full();
    (bbr.full_pipe.bandwidth, bbr.full_pipe.rounds) = (100, 2);
    assert_eq!(bbr.undo_cwnd(&f, &w), 200);
    assert_eq!((bbr.full_pipe.bandwidth, bbr.full_pipe.rounds), (0, 0));
}
