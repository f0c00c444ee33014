//! The delivery rate as `ss` shows it.

use crate::common::{Driver, MSS, Setup};

/// Writes `segments` segments, which are acknowledged after 100 ms; the rate in segments per second.
fn rate_of(driver: &mut Driver, segments: u64) -> Option<f64> {
    let next = driver.nxt() + segments;
    let sent = driver.act(|sender, clock, out| sender.extend(segments * MSS, clock, out));
    assert_eq!(sent.iter().map(|burst| u64::from(burst.count)).sum::<u64>(), segments);
    driver.at_ms(driver.elapsed_ms() + 100).ack(next);
    let mss = f64::from(driver.sender.flight.mss);
    driver.sender.delivery_rate().map(|bytes| bytes / mss)
}

#[test]
fn the_rate_is_what_was_delivered_over_the_longer_of_sending_and_acknowledging() {
    let mut driver = Setup::default().open();
    assert_eq!(driver.sender.delivery_rate(), None);
    let mss = f64::from(driver.sender.flight.mss);
    // Ten segments left at once. Half of them are acknowledged after 100 ms, the others 25 ms later.
    driver.at_ms(100).ack(5);
    assert_eq!(driver.sender.delivery_rate(), Some(5.0 * mss / 0.1));
    driver.at_ms(125).ack(10);
    assert_eq!(driver.sender.delivery_rate(), Some(10.0 * mss / 0.125));
}

#[test]
fn a_rate_that_the_application_limits_is_kept_only_if_it_is_not_lower() {
    let mut driver = Setup { stays_open: true, ..Setup::default().total(0) }.open();
    assert_eq!(rate_of(&mut driver, 10), Some(100.0));
    assert_eq!(rate_of(&mut driver, 2), Some(100.0));
    assert_eq!(rate_of(&mut driver, 15), Some(150.0));
}
