//! Applications that are the limit: a window that is not used does not grow, and comes down after idle time.

use crate::common::{Driver, MSS, Setup};
use sawtooth_tcp::cc::Algorithm;

/// An application that has written nothing yet.
fn silent(algorithm: Algorithm) -> Driver {
    Setup { stays_open: true, ..Setup::default().total(0).algorithm(algorithm) }.open()
}

/// The application writes `segments` segments.
fn write(driver: &mut Driver, segments: u64) -> u32 {
    let sent = driver.act(|sender, clock, out| sender.extend(segments * MSS, clock, out));
    sent.iter().map(|burst| burst.count).sum()
}

/// Has sent 40 segments when the window was 40, at 200 ms, which are acknowledged; the window is 80 and the threshold
/// 50.
fn grown(algorithm: Algorithm) -> Driver {
    let mut driver = silent(algorithm);
    assert_eq!(write(&mut driver, 10), 10);
    driver.at_ms(100).ack(10);
    assert_eq!(write(&mut driver, 20), 20);
    driver.at_ms(200).ack(30);
    assert_eq!(write(&mut driver, 40), 40);
    driver.at_ms(300).ack(70);
    assert_eq!(driver.sender.window.cwnd, 80);
    driver.sender.window.ssthresh = 50;
    driver
}

#[test]
fn open_connection_is_not_done_when_all_is_acked() {
    let mut driver = silent(Algorithm::Reno);
    write(&mut driver, 3);
    driver.at_ms(100).ack(3);
    assert_eq!((driver.una(), driver.sender.is_done()), (3, false));
}

#[test]
fn after_idle_time_the_window_is_halved_for_each_timeout_down_to_the_initial_one() {
    // Sent last at 200 ms; the timeout is 300 ms: 100 of the round trip and 200 at least.
    for (at_ms, cwnd, ssthresh) in [(450, 80, 50), (750, 40, 60), (1_050, 20, 60), (9_000, 10, 60)] {
        let mut driver = grown(Algorithm::Reno);
        let rto_ms = driver.sender.rto_us(driver.clock()) / 1_000;
        assert!((300..310).contains(&rto_ms), "{rto_ms} ms");
        driver.at_ms(at_ms + (rto_ms - 300) * 3);
        assert_eq!(write(&mut driver, 100), cwnd);
        let window = &driver.sender.window;
        assert_eq!((window.cwnd, window.ssthresh), (cwnd, ssthresh));
    }
}

#[test]
fn algorithm_with_own_window_does_not_restart_after_idle() {
    let mut driver = silent(Algorithm::Bbr);
    write(&mut driver, 10);
    driver.at_ms(100).ack(10);
    let cwnd = driver.sender.window.cwnd;
    driver.at_ms(9_000);
    write(&mut driver, 1);
    assert_eq!(driver.sender.window.cwnd, cwnd);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut driver = silent(Algorithm::Reno);
    for round in 1..=10 {
        assert_eq!(write(&mut driver, 4), 4);
        driver.at_ms(100 * round).ack(4 * round);
    }
    assert_eq!(driver.sender.window.cwnd, 10);
}

#[test]
fn a_window_that_is_used_in_part_stays_while_acknowledgements_come() {
    let mut driver = grown(Algorithm::Reno);
    for round in 0..20 {
        assert_eq!(write(&mut driver, 20), 20);
        driver.at_ms(400 + 100 * round).ack(90 + 20 * round);
    }
    assert_eq!((driver.sender.window.cwnd, driver.sender.window.ssthresh), (80, 50));
}

#[test]
fn application_limited_packets_are_marked() {
    let mut driver = grown(Algorithm::Reno);
    driver.sender.window.app_limited = 0;
    write(&mut driver, 1);
    assert!(driver.sender.window.app_limited > 0);
}

#[test]
fn the_last_segment_of_a_write_is_pushed() {
    let mut driver = silent(Algorithm::Reno);
    let sent = driver.act(|sender, clock, out| sender.extend(100, clock, out));
    assert_eq!(sent.iter().map(|burst| (burst.count, burst.push)).collect::<Vec<_>>(), [(1, true)]);
}
