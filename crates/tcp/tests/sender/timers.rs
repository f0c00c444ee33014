//! Retransmission timeout and tail loss probe. One tick is 1 ms unless a test says otherwise; a timer comes up on the
//! tick after the one that it was set for, and past 63 ticks on a coarser grain (kernel/time/timer.c).

use crate::common::{MSS, Setup, runs};
use sawtooth_tcp::flight::CaState;
use sawtooth_units::{Span, Time};

#[test]
fn rto_is_at_least_srtt_plus_200_ms() {
    for (rtt_ms, rto_ms) in [(1, 201), (10, 210), (60, 260)] {
        let driver = Setup::default().rtt(Span::from_millis(rtt_ms)).open();
        assert_eq!(driver.sender.rto_us(driver.clock()), rto_ms * 1_000);
    }
}

#[test]
fn rto_is_rounded_up_to_ticks() {
    for (hz, rto_us) in [(100, 210_000), (250, 204_000), (1000, 201_000)] {
        let driver = Setup::default().hz(hz).rtt(Span::from_micros(200)).open();
        assert_eq!(driver.sender.rto_us(driver.clock()), rto_us, "HZ {hz}");
    }
}

#[test]
fn a_first_timeout_without_a_sample_from_the_handshake_is_three_seconds() {
    let driver = Setup::default().rtt(Span::ZERO).open();
    assert_eq!(driver.sender.rto_us(driver.clock()), 3_000_000);
}

#[test]
fn rto_backs_off_exponentially_up_to_two_minutes() {
    let mut driver = Setup::default().rtt(Span::from_millis(10)).open();
    let mut gaps = Vec::new();
    let mut last = Time::ZERO;
    while driver.sender.stats.timeouts < 14 {
        let timeouts = driver.sender.stats.timeouts;
        driver.fire();
        if driver.sender.stats.timeouts > timeouts {
            gaps.push(driver.now.since(last).micros() / 1_000);
            last = driver.now;
        }
    }
    for (i, &gap) in gaps[1..].iter().enumerate() {
        let rto = (210 << (i + 1)).min(120_000);
        assert!((rto..=rto * 9 / 8 + 2).contains(&gap), "timeout {i}: {gap} ms instead of {rto} ms");
    }
    assert_eq!(driver.sender.rto_us(driver.clock()), 120_000_000);
}

#[test]
fn new_rtt_sample_ends_backoff() {
    let mut driver = Setup::default().total(10).open();
    while driver.sender.stats.timeouts < 3 {
        driver.fire();
    }
    assert_eq!(driver.sender.rto_us(driver.clock()), 300_000 << 3);
    // Segment 1 was never retransmitted, so it gives a sample, of seconds.
    driver.sack(1, &[(2, 3)]);
    assert_ne!(driver.sender.rto_us(driver.clock()), 300_000 << 3);
}

#[test]
fn ack_restarts_rto_timer() {
    let mut driver = Setup::default().sack(false).open();
    driver.at_ms(250).ack(1);
    let rto_ms = driver.sender.rto_us(driver.clock()) / 1_000;
    driver.fire();
    assert_eq!(driver.sender.stats.timeouts, 1);
    // The late sample raised it; past 256 ticks the wheel's grain is 64.
    let due_ms = 250 + rto_ms;
    assert!((due_ms..=due_ms + 64).contains(&driver.elapsed_ms()), "{}", driver.elapsed_ms());
}

#[test]
fn rto_sets_cwnd_one_and_halves_ssthresh() {
    let mut driver = Setup::default().sack(false).open();
    let sent = driver.fire();
    assert_eq!(runs(&sent), [(0, 1)]);
    assert_eq!(driver.sender.flight.ca_state, CaState::Loss);
    assert_eq!((driver.sender.window.cwnd, driver.sender.window.ssthresh), (1, 5));
    assert_eq!((driver.sender.flight.lost_out, driver.sender.flight.retrans_out), (10, 1));
}

#[test]
fn repeated_rto_holds_ssthresh() {
    let mut driver = Setup::default().sack(false).open();
    for _ in 0..3 {
        driver.fire();
    }
    assert_eq!((driver.sender.stats.timeouts, driver.sender.window.ssthresh), (3, 5));
}

#[test]
fn the_tail_loss_probe_comes_after_two_round_trips_and_two_milliseconds() {
    // 202 ms are 51 ticks of 4 ms, and the wheel adds one; at HZ 1000 its grain is 64 ms / 8 beyond 63 ticks.
    let mut driver = Setup::default().hz(250).open();
    driver.fire();
    assert_eq!(driver.elapsed_ms(), 52 * 4);
    assert_eq!((driver.sender.stats.tail_probes, driver.sender.stats.timeouts), (1, 0));
}

#[test]
fn the_tail_loss_probe_of_a_short_path_keeps_the_two_milliseconds() {
    let mut driver = Setup::default().rtt(Span::from_micros(400)).open();
    driver.fire();
    // 2 × 0.4 ms + 2 ms, rounded up to 3 ticks, and the wheel's one.
    assert_eq!(driver.elapsed_ms(), 4);
    assert_eq!(driver.sender.stats.tail_probes, 1);
}

#[test]
fn a_single_segment_in_flight_waits_another_200_ms_for_its_delayed_acknowledgement() {
    let mut driver = Setup::default().total(1).rtt(Span::from_millis(2)).open();
    driver.fire();
    // 2 × 2 ms + 200 ms would come after the timeout of 202 ms, which limits it.
    assert_eq!(driver.sender.stats.tail_probes, 1);
    assert!((202..=202 + 8).contains(&driver.elapsed_ms()), "{}", driver.elapsed_ms());
}

#[test]
fn a_tail_loss_probe_is_new_data_if_there_is_some() {
    let mut driver = Setup::default().open();
    let sent = driver.fire();
    assert_eq!(runs(&sent), [(10, 1)]);
    assert_eq!(driver.sender.stats.retransmits, 0);
    assert_eq!(driver.sender.flight.in_flight(), 11, "it may exceed the window");
}

#[test]
fn a_tail_loss_probe_repeats_the_last_segment_otherwise() {
    let mut driver = Setup::default().total(10).open();
    assert_eq!(runs(&driver.fire()), [(9, 1)]);
    assert_eq!((driver.sender.stats.tail_probes, driver.sender.stats.retransmits), (1, 1));
}

#[test]
fn second_timer_after_probe_is_rto() {
    let mut driver = Setup::default().total(10).open();
    driver.fire();
    let probed_ms = driver.elapsed_ms();
    driver.fire();
    assert_eq!((driver.sender.stats.tail_probes, driver.sender.stats.timeouts), (1, 1));
    assert!(driver.elapsed_ms() >= probed_ms + 300);
}

#[test]
fn the_probe_s_sack_repairs_a_lost_tail_without_a_timeout() {
    let mut driver = Setup::default().total(10).open();
    driver.at_ms(100).ack(6);
    driver.fire();
    // 6, 7 and 8 are lost, and 9 too; the probe repeats 9.
    driver.at_ms(driver.elapsed_ms() + 100);
    let sent = driver.sack(6, &[(9, 10)]);
    assert_eq!(driver.sender.flight.lost, 3);
    assert_eq!(sent[0].start, 6 * MSS);
    let answered_ms = driver.elapsed_ms();
    driver.at_ms(answered_ms + 100).ack(10);
    assert!(driver.sender.is_done());
    assert_eq!(driver.sender.stats.timeouts, 0);
}

#[test]
fn without_sack_there_is_no_tail_loss_probe() {
    let mut driver = Setup::default().sack(false).open();
    driver.fire();
    assert_eq!((driver.sender.stats.tail_probes, driver.sender.stats.timeouts), (0, 1));
}

/// Ten segments fill the receive window; the last is repeated by a probe.
fn probed() -> crate::common::Driver {
    let mut driver = Setup::default().window(10 * MSS).open();
    driver.at_ms(100);
    driver.window = 0;
    driver.ack(9);
    driver.window = MSS;
    driver.ack(9);
    assert_eq!(runs(&driver.fire()), [(9, 1)]);
    driver.at_ms(driver.elapsed_ms() + 100);
    driver.window = 100 * MSS;
    driver
}

#[test]
fn tail_loss_probe_that_repaired_a_loss_reduces_window_once() {
    let mut driver = probed();
    driver.ack(10);
    let before = driver.sender.window.cwnd;
    driver.at_ms(driver.elapsed_ms() + 100).ack(12);
    assert_eq!(driver.sender.window.ssthresh, before / 2);
    assert_eq!(driver.sender.flight.ca_state, CaState::Open);
    assert_eq!(driver.sender.stats.timeouts, 0);
}

#[test]
fn needless_tail_loss_probe_does_not_reduce_window() {
    for told_by_dsack in [true, false] {
        let mut driver = probed();
        driver.ack(10);
        // The repeated segment is reported as a duplicate: by a DSACK, be it on an acknowledgement of new data, or by
        // a bare duplicate acknowledgement.
        if told_by_dsack {
            driver.at_ms(driver.elapsed_ms() + 100).dsack(12, &[(9, 10)]);
        } else {
            driver.ack(10);
            driver.at_ms(driver.elapsed_ms() + 100).ack(12);
        }
        assert_eq!(driver.sender.window.ssthresh, sawtooth_tcp::window::INFINITE_SSTHRESH, "DSACK: {told_by_dsack}");
    }
}
