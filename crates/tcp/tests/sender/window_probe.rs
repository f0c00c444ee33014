//! A closed receive window is probed at growing intervals until it opens (RFC 9293 section 3.8.6.1).

use crate::common::{Driver, MSS, Setup, segments};
use sawtooth_tcp::packet::Burst;

/// Ten segments are acknowledged at 100 ms, and the window is then closed.
fn closed() -> Driver {
    let mut driver = Setup::default().open();
    driver.window = 0;
    assert!(driver.at_ms(100).ack(10).is_empty());
    driver
}

#[test]
fn zero_window_probes_back_off_up_to_two_minutes() {
    let mut driver = closed();
    let (start, mut times) = (driver.elapsed_ms(), Vec::new());
    for _ in 0..12 {
        let sent = driver.fire();
        assert!(matches!(sent[..], [Burst { start, bytes: 0, count: 0, .. }] if start == 10 * MSS), "{sent:?}");
        times.push(driver.elapsed_ms() - start);
    }
    let waits: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(times[0] / 10, 30, "a timeout first: {times:?}");
    for (n, &wait) in waits.iter().enumerate() {
        // The wheel's grain is an eighth at most.
        let expected = (300 << (n + 1)).min(120_000);
        assert!((expected..=expected + expected / 7 + 8).contains(&wait), "{waits:?}");
    }
    assert_eq!(driver.sender.stats.window_probes, 12);
    assert_eq!((driver.una(), driver.nxt(), driver.sender.stats.segments_out), (10, 10, 10));
}

#[test]
fn answer_with_zero_window_keeps_probe_backoff() {
    let mut driver = closed();
    driver.fire();
    driver.fire();
    let second = driver.elapsed_ms();
    driver.at_ms(second + 100).ack(10);
    driver.fire();
    // 1.2 s after the answer: twice doubled.
    let wait = driver.elapsed_ms() - second - 100;
    assert!((1_200..1_400).contains(&wait), "{wait} ms");
}

#[test]
fn window_opening_resets_probe_backoff() {
    let mut driver = closed();
    (0..3).for_each(|_| drop(driver.fire()));
    driver.window = 4 * MSS;
    let opened = driver.elapsed_ms() + 5;
    assert_eq!(segments(&driver.at_ms(opened).ack(10)), 4);
    driver.window = 0;
    driver.at_ms(opened + 100).ack(14);
    driver.fire();
    let wait = driver.elapsed_ms() - opened - 100;
    assert!((300..350).contains(&wait), "{wait} ms");
}

#[test]
fn a_window_less_than_a_segment_is_filled_after_a_timeout() {
    let mut driver = closed();
    driver.window = MSS / 2;
    assert!(driver.at_ms(150).ack(10).is_empty());
    let sent = driver.fire();
    assert!(matches!(sent[..], [Burst { bytes: 724, count: 1, .. }]), "{sent:?}");
    assert_eq!(driver.sender.stats.window_probes, 0);
}

#[test]
fn zero_window_time_counts_as_rwnd_limited() {
    let mut driver = closed();
    driver.at_ms(1_100);
    let (rwnd_ns, _) = driver.sender.limited_ns(driver.clock());
    assert_eq!(rwnd_ns, 1_000_000_000);
}
