//! New data: windows, super-packets, pacing, buffers.

use crate::common::{Driver, MSS, Setup, runs, segments};
use sawtooth_tcp::cc::Algorithm;
use sawtooth_tcp::options::HostOptions;
use sawtooth_tcp::packet::{Ack, Block, Burst, Sack};
use sawtooth_tcp::window::UNPACED;
use sawtooth_units::{Span, Time};

#[test]
fn the_initial_window_is_ten_segments() {
    for &algorithm in Algorithm::ALL {
        let driver = Setup::default().algorithm(algorithm).open();
        assert_eq!(segments(&driver.first), 10, "{algorithm:?}");
        assert_eq!(driver.sender.flight.in_flight(), 10);
    }
}

#[test]
fn the_initial_window_is_an_option() {
    let mut setup = Setup::default();
    setup.options.initial_window = 3;
    assert_eq!(segments(&setup.open().first), 3);
}

#[test]
fn the_first_window_leaves_in_super_packets_sized_by_the_handshake_s_round_trip() {
    // 200% of 10 segments a round trip of 100 ms, in 1/1024 of a second: less than the least, two segments.
    assert_eq!(runs(&Setup::default().open().first), [(0, 2), (2, 2), (4, 2), (6, 2), (8, 2)]);
}

#[test]
fn slow_start_doubles_the_window_every_round_trip() {
    let mut driver = Setup::default().open();
    let mut acked = 0;
    let mut windows = Vec::new();
    for round in 1..=4 {
        driver.at_ms(100 * round);
        let flight_end = driver.nxt();
        while acked < flight_end {
            acked = (acked + 2).min(flight_end);
            driver.ack(acked);
        }
        windows.push(driver.sender.window.cwnd);
    }
    assert_eq!(windows, [20, 40, 80, 160]);
    assert_eq!(driver.sender.stats.segments_out, 10 + 20 + 40 + 80 + 160);
}

#[test]
fn above_the_threshold_reno_adds_one_segment_a_round_trip() {
    let mut driver = Setup::default().open();
    driver.sender.window.ssthresh = 10;
    let mut acked = 0;
    let mut windows = Vec::new();
    for round in 1..=3 {
        driver.at_ms(100 * round);
        let flight_end = driver.nxt();
        while acked < flight_end {
            acked += 1;
            driver.ack(acked);
        }
        windows.push(driver.sender.window.cwnd);
    }
    assert_eq!(windows, [11, 12, 13]);
}

#[test]
fn a_super_packet_ends_with_psh_and_a_single_segment_does_not() {
    let mut driver = Setup::default().open();
    assert!(driver.first.iter().all(|burst| burst.count > 1 && burst.push));
    driver.sender.window.ssthresh = 10;
    driver.at_ms(100);
    // Congestion avoidance: one acknowledged segment lets one out, once waiting for more has no use.
    let singles: Vec<_> = (1..=10).flat_map(|next| driver.ack(next)).filter(|burst| burst.count == 1).collect();
    assert!(!singles.is_empty());
    assert!(singles.iter().all(|burst| !burst.push));
}

#[test]
fn ack_of_unsent_data_is_ignored() {
    let mut driver = Setup::default().open();
    assert!(driver.at_ms(100).ack(11).is_empty());
    assert_eq!(driver.una(), 0);
}

#[test]
fn an_acknowledgement_below_the_edge_changes_nothing() {
    let mut driver = Setup::default().open();
    driver.at_ms(100).ack(6);
    let before = format!("{:?}", driver.sender.window);
    assert!(driver.ack(3).is_empty());
    assert_eq!(format!("{:?}", driver.sender.window), before);
}

#[test]
fn finite_flow_sends_exactly_its_bytes_and_stops_timers() {
    let mut driver = Setup::default().total(25).open();
    driver.at_ms(100).ack(10);
    assert_eq!(driver.nxt(), 25);
    assert!(!driver.sender.is_done());
    assert!(driver.at_ms(200).ack(25).is_empty());
    assert!(driver.sender.is_done());
    assert_eq!(driver.sender.timer(), Time::NEVER);
    assert_eq!(driver.sender.stats.segments_out, 25);
    assert_eq!(driver.sender.limited_ns(driver.clock()), (0, 0));
}

#[test]
fn rwnd_limited_time_is_counted() {
    let mut driver = Setup::default().window(7 * MSS).open();
    assert_eq!(segments(&driver.first), 7);
    driver.at_ms(40);
    assert_eq!(driver.sender.limited_ns(driver.clock()), (40_000_000, 0));
    driver.at_ms(100);
    driver.window = 100 * MSS;
    assert!(segments(&driver.ack(7)) > 7);
    driver.at_ms(150);
    assert_eq!(driver.sender.limited_ns(driver.clock()), (100_000_000, 0));
}

#[test]
fn window_update_resumes_sending() {
    let mut driver = Setup::default().window(7 * MSS).open();
    driver.at_ms(100);
    driver.window = 9 * MSS;
    assert_eq!(runs(&driver.ack(0)), [(7, 2)]);
}

#[test]
fn sndbuf_limited_time_is_counted() {
    let mut setup = Setup { host_queued: true, ..Setup::default() };
    // The application fills a whole buffer of 64 kB while there is any room, and then sleeps.
    setup.options.send_buffer = 4 * MSS;
    setup.options.initial_window = 100;
    let mut driver = setup.open();
    let sent = u64::from(segments(&driver.first));
    assert!((45..100).contains(&sent), "{sent} of the 100 segments that the window allows");
    driver.at_ms(100);
    assert_eq!(driver.sender.limited_ns(driver.clock()), (0, 100_000_000));
    // Nothing before two thirds of the send buffer are enough for what is queued.
    assert_eq!(segments(&driver.ack(sent - 3)), 0);
    assert!(segments(&driver.ack(sent - 1)) >= 45);
}

#[test]
fn awake_application_refills_buffer_being_sent() {
    let mut setup = Setup::default();
    setup.options.send_buffer = 4 * MSS;
    setup.options.initial_window = 100;
    let mut driver = setup.open();
    assert_eq!(segments(&driver.first), 100);
    // Asleep, it writes again when a third of the send buffer is free: then there is a whole window to send.
    driver.at_ms(100);
    let asleep: u32 = (1..50).map(|next| segments(&driver.ack(next))).sum();
    assert!(asleep < 50, "{asleep} segments, which were written before");
    let end = driver.nxt();
    assert_eq!(segments(&driver.ack(end - 3)), 0);
    assert!(segments(&driver.ack(end)) > 50);
}

#[test]
fn the_send_buffer_grows_to_twice_the_window() {
    let mut driver = Setup::default().open();
    let mut acked = 0;
    for round in 1..=6 {
        driver.at_ms(100 * round);
        let flight_end = driver.nxt();
        while acked < flight_end {
            acked += 1;
            driver.ack(acked);
        }
        assert!(driver.sender.flight.in_flight() + 1 >= driver.sender.window.cwnd, "round {round}");
    }
    assert_eq!(driver.sender.limited_ns(driver.clock()).1, 0);
}

#[test]
fn only_bbr_is_paced_in_each_version() {
    for &algorithm in Algorithm::ALL {
        let mut driver = Setup::default().algorithm(algorithm).open();
        driver.at_ms(100).ack(2);
        assert_eq!(driver.sender.window.pacing, algorithm.name().starts_with("bbr"), "{algorithm:?}");
        assert_ne!(driver.sender.window.pacing_rate, UNPACED, "{algorithm:?}: it also sizes super-packets");
    }
}

/// Follows the pacing timer until it is no longer set: when how many segments left.
fn pace(driver: &mut Driver) -> Vec<(Time, u32)> {
    let mut sent = Vec::new();
    while driver.sender.next_room(|_| Time::NEVER) != Time::NEVER {
        assert!(driver.sender.next_room(|_| Time::NEVER) > driver.now);
        driver.now = driver.sender.next_room(|_| Time::NEVER);
        let bursts = driver.act(|sender, clock, out| sender.on_room(clock, out));
        sent.extend(bursts.iter().map(|b| (driver.now, b.count)));
    }
    sent
}

#[test]
fn bbr_sends_at_its_pacing_rate() {
    let mut driver = Setup::default().algorithm(Algorithm::Bbr).open();
    pace(&mut driver);
    driver.at_ms(100);
    let mut sent = driver.ack(10).iter().map(|b| (driver.now, b.count)).collect::<Vec<_>>();
    let rate = driver.sender.window.pacing_rate;
    sent.extend(pace(&mut driver));
    assert_eq!(driver.sender.flight.in_flight(), driver.sender.window.cwnd);
    assert!(sent.len() > 3, "{sent:?}");
    // The first may use half of what the idle time saved up; from then on each waits for the one before.
    for pair in sent[1..].windows(2) {
        let bytes = u64::from(pair[0].1) * MSS;
        assert_eq!(pair[1].0.since(pair[0].0).nanos(), bytes * 1_000_000_000 / rate);
    }
}

#[test]
fn without_pacing_the_rate_is_twice_the_window_a_round_trip_in_slow_start() {
    let mut driver = Setup::default().open();
    driver.at_ms(100).ack(10);
    // cwnd is 20, the smoothed round-trip time 100 ms.
    assert_eq!(driver.sender.window.pacing_rate, 20 * MSS * 10 * 2);
    driver.sender.window.ssthresh = 20;
    driver.at_ms(200).ack(20);
    let cwnd = u64::from(driver.sender.window.cwnd);
    assert_eq!(driver.sender.window.pacing_rate, cwnd * MSS * 10 * 12 / 10);
}

#[test]
fn a_full_host_queue_throttles_the_sender_until_it_drains() {
    let mut driver = Setup { host_queued: true, ..Setup::default() }.open();
    driver.holds_host_queue = true;
    driver.sender.host_queue = 0;
    driver.at_ms(100);
    let sent = segments(&driver.ack(10));
    assert!(driver.sender.throttled);
    assert!(sent < 20, "{sent} segments left although the host's queue holds them");
    assert_eq!(driver.sender.host_queue, u64::from(sent) * (MSS + 832), "every segment takes more than its payload");
    // The sender says how many packets are before the one with which there is room.
    let before = driver.sender.next_room(|place| Time::from_nanos(place as u64)).nanos();
    let (room, segment) = (driver.sender.host_queue - before * (MSS + 832), MSS + 832);
    driver.sender.host_queue = room;
    assert!(driver.act(|sender, clock, out| sender.on_room(clock, out)).is_empty());
    driver.sender.host_queue = room - segment;
    assert!(!driver.act(|sender, clock, out| sender.on_room(clock, out)).is_empty());
    driver.sender.host_queue = 0;
    let more = driver.act(|sender, clock, out| sender.on_room(clock, out));
    assert!(!more.is_empty());
}

#[test]
fn a_window_that_was_never_full_does_not_grow() {
    let mut driver = Setup::default().window(4 * MSS).open();
    driver.sender.window.ssthresh = 10;
    for round in 1..=5 {
        driver.at_ms(100 * round).ack(4 * round);
    }
    assert_eq!(driver.sender.window.cwnd, 10);
}

#[test]
fn the_host_s_timestamps_are_milliseconds_and_echo_the_peer_s() {
    let mut driver = Setup::default().timestamps().open();
    assert!(driver.first.iter().all(|burst| burst.tsval == driver.clock().timestamp()));
    driver.at_ms(100);
    let ack = Ack { next: 10 * MSS, window: driver.window, tsval: 77, tsecr: driver.first[0].tsval, ..Ack::default() };
    let sent = driver.act(|sender, clock, out| sender.on_ack(&ack, clock, out));
    assert!(sent.iter().all(|burst| burst.tsecr == 77 && burst.tsval == driver.first[0].tsval + 100));
}

#[test]
fn ack_with_old_timestamp_is_discarded() {
    for (tsval, sacked) in [(99, 2), (98, 0)] {
        let mut driver = Setup::default().timestamps().open();
        let blocks = [Block { start: 7 * MSS, end: 9 * MSS }, Block::default(), Block::default(), Block::default()];
        let newer = Ack { next: 5 * MSS, window: driver.window, tsval: 100, ..Ack::default() };
        let sack = Sack { blocks, count: 1, ..Sack::default() };
        let older = Ack { next: 4 * MSS, tsval, sack, ..newer };
        for ack in [newer, older] {
            driver.at_ms(100).act(|sender, clock, out| sender.on_ack(&ack, clock, out));
        }
        assert_eq!(driver.sender.flight.sacked_out, sacked);
    }
}

#[test]
fn without_timestamps_none_are_sent() {
    let driver: Driver =
        Setup { options: HostOptions { timestamps: false, ..HostOptions::default() }, ..Setup::default() }
            .rtt(Span::from_millis(10))
            .open();
    assert!(driver.first.iter().all(|burst| burst.tsval == 0));
}

/// An application that has written nothing yet.
fn silent() -> Driver {
    Setup { stays_open: true, ..Setup::default().total(0) }.open()
}

/// First byte and length of what leaves.
fn pieces(bursts: &[Burst]) -> Vec<(u64, u32)> {
    bursts.iter().map(|burst| (burst.start, burst.bytes)).collect()
}

#[test]
fn a_window_that_ends_inside_a_segment_is_filled_by_a_short_one() {
    let driver = Setup::default().window(6 * MSS + 500).open();
    let last = driver.first.last().expect("a window is sent");
    assert_eq!((last.end(), last.bytes, last.count), (6 * MSS + 500, MSS as u32 + 500, 2));
    assert_eq!(driver.sender.flight.packets_out, 7);
}

#[test]
fn another_short_segment_waits_until_the_first_is_acknowledged() {
    let mut driver = Setup::default().window(6 * MSS + 500).open();
    driver.window = 6 * MSS + 1_000;
    let start = 6 * MSS + 500;
    assert_eq!(pieces(&driver.at_ms(100).soon().ack(1)), [(start, MSS as u32)]);
    // Room for two, and a part of a third.
    driver.window = 10 * MSS;
    let ack = Ack { next: start, window: 2 * MSS + 1_200, ..Ack::default() };
    let sent = driver.at_ms(200).act(|sender, clock, out| sender.on_ack(&ack, clock, out));
    assert_eq!(pieces(&sent), [(start + MSS, MSS as u32 + 1_200)]);
}

#[test]
fn a_window_smaller_than_a_segment_is_filled_after_a_timeout() {
    let mut driver = Setup::default().window(500).open();
    assert!(driver.first.is_empty());
    assert_eq!(pieces(&driver.fire()), [(0, 500)]);
    assert!(driver.elapsed_ms() >= 200);
    let ack = Ack { next: 500, window: 10 * MSS, ..Ack::default() };
    let sent = driver.act(|sender, clock, out| sender.on_ack(&ack, clock, out));
    assert!(segments(&sent) > 1 && sent[0].start == 500, "{sent:?}");
}

#[test]
fn nagle_delays_second_short_segment() {
    for (no_delay, second) in [(false, vec![]), (true, vec![(100, 200)])] {
        let mut driver = silent();
        driver.sender.no_delay = no_delay;
        let mut write = |bytes| pieces(&driver.act(|sender, clock, out| sender.extend(bytes, clock, out)));
        assert_eq!(write(100), [(0, 100)]);
        assert_eq!(write(200), second);
        assert_eq!(
            write(2 * MSS - 200),
            if no_delay { [(300, 2 * MSS as u32 - 200)] } else { [(100, 2 * MSS as u32)] }
        );
    }
}

#[test]
fn delayed_short_segment_leaves_with_later_writes() {
    let mut driver = silent();
    for bytes in [100, 200, 300] {
        driver.act(|sender, clock, out| sender.extend(bytes, clock, out));
    }
    let ack = Ack { next: 100, window: driver.window, ..Ack::default() };
    let sent = driver.at_ms(100).act(|sender, clock, out| sender.on_ack(&ack, clock, out));
    assert_eq!(pieces(&sent), [(100, 500)]);
}
