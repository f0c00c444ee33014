//! Marks: which packets may be marked, what an echo does to the window, and what is echoed (RFC 3168 section 6.1).

use crate::common::{Driver, Setup};
use sawtooth_tcp::cc::Algorithm;
use sawtooth_tcp::flight::CaState;
use sawtooth_tcp::packet::{Burst, Ecn};

/// Ten segments were acknowledged one by one, and twenty are in flight.
fn twenty(setup: Setup) -> Driver {
    let mut driver = setup.ecn().open();
    driver.at_ms(100);
    (1..=10).for_each(|next| drop(driver.soon().ack(next)));
    assert_eq!((driver.sender.window.cwnd, driver.sender.flight.in_flight()), (20, 20));
    driver
}

#[test]
fn only_new_data_of_ecn_connections_is_ect() {
    let mut driver = Setup::default().ecn().open();
    assert!(driver.first.iter().all(|burst| burst.ecn == Ecn::Ect0));
    driver.at_ms(100);
    let sent: Vec<_> = (2..=10).flat_map(|end| driver.soon().sack(0, &[(1, end)])).collect();
    let (again, new): (Vec<Burst>, Vec<Burst>) = sent.into_iter().partition(|burst| burst.start == 0);
    assert!(again.len() == 1 && again[0].ecn == Ecn::NotEct, "what is sent again is not");
    assert!(!new.is_empty() && new.iter().all(|burst| burst.ecn == Ecn::Ect0));
    let without = Setup::default().open();
    assert!(without.first.iter().all(|burst| burst.ecn == Ecn::NotEct));
}

#[test]
fn ece_halves_window_gradually_without_retransmission() {
    let mut driver = twenty(Setup::default());
    driver.at_ms(200).ece(11);
    assert_eq!((driver.sender.flight.ca_state, driver.sender.window.ssthresh), (CaState::Cwr, 10));
    let mut windows = Vec::new();
    for next in 12..=30 {
        driver.soon().ack(next);
        windows.push(driver.sender.window.cwnd);
    }
    assert!(windows.windows(2).all(|pair| pair[1] <= pair[0]), "{windows:?}");
    assert!(windows.iter().all(|&cwnd| (10..=20).contains(&cwnd)), "{windows:?}");
    // It ends with the acknowledgement of what was sent after the echo.
    driver.soon().ack(31);
    assert_eq!((driver.sender.flight.ca_state, driver.sender.window.cwnd), (CaState::Open, 10));
    assert_eq!(driver.sender.stats.retransmits, 0);
}

#[test]
fn echoes_within_an_rtt_reduce_window_once() {
    let mut driver = twenty(Setup::default());
    driver.at_ms(200);
    (11..=30).for_each(|next| drop(driver.soon().ece(next)));
    assert_eq!((driver.sender.flight.ca_state, driver.sender.window.ssthresh), (CaState::Cwr, 10));
    driver.soon().ece(31);
    assert_eq!(driver.sender.window.ssthresh, 5, "those of the next do so again");
    assert_eq!(driver.sender.flight.delivered_ce, 21, "each of them covers a segment");
}

#[test]
fn next_new_data_carries_cwr_once() {
    let mut driver = twenty(Setup::default());
    driver.at_ms(200);
    let mut sent = driver.ece(11);
    (12..=25).for_each(|next| sent.extend(driver.soon().ece(next)));
    let cwr: Vec<_> = sent.iter().map(|burst| burst.cwr).collect();
    assert!(cwr.len() > 2 && cwr[0] && !cwr[1..].contains(&true), "{cwr:?}");
}

#[test]
fn cwr_is_sent_after_a_loss_too() {
    let mut driver = twenty(Setup::default());
    driver.at_ms(200);
    let sent: Vec<_> = (12..=25).flat_map(|end| driver.soon().sack(10, &[(11, end)])).collect();
    let position = |which: fn(&Burst) -> bool| sent.iter().position(which).unwrap();
    assert!(position(|burst| burst.cwr) > position(|burst| burst.ecn == Ecn::NotEct), "after what is sent again");
    assert_eq!(sent.iter().filter(|burst| burst.cwr).count(), 1);
}

#[test]
fn a_reduction_for_a_mark_is_never_undone() {
    let mut driver = twenty(Setup::default());
    driver.at_ms(200).ece(11);
    let ssthresh = driver.sender.window.ssthresh;
    driver.soon().dsack(11, &[(0, 1)]);
    assert_eq!((driver.sender.flight.prior_ssthresh, driver.sender.window.ssthresh), (0, ssthresh));
}

#[test]
fn ece_without_negotiation_is_ignored() {
    let mut driver = Setup::default().open();
    driver.at_ms(100).ece(5);
    assert_eq!((driver.sender.flight.ca_state, driver.sender.flight.delivered_ce), (CaState::Open, 0));
}

#[test]
fn ece_reduces_cubic_by_thirty_percent_and_not_bbr() {
    let cubic = {
        let mut driver = twenty(Setup::default().algorithm(Algorithm::Cubic));
        driver.at_ms(200).ece(11);
        driver.sender.window.ssthresh
    };
    assert_eq!(cubic, 14);
    let mut driver = Setup::default().algorithm(Algorithm::Bbr).ecn().open();
    driver.at_ms(100);
    (1..=5).for_each(|next| drop(driver.soon().ack(next)));
    let before = driver.sender.window.cwnd;
    driver.soon().ece(6);
    assert_eq!(driver.sender.flight.ca_state, CaState::Cwr);
    assert!(driver.sender.window.cwnd >= before);
}

#[test]
fn dctcp_sends_ect_on_all_and_reduces_by_half_alpha() {
    let mut driver = Setup::default().algorithm(Algorithm::Dctcp).ecn().open();
    driver.at_ms(100);
    let sent: Vec<_> = (2..=10).flat_map(|end| driver.soon().sack(0, &[(1, end)])).collect();
    assert!(sent.iter().any(|burst| burst.start == 0) && sent.iter().all(|burst| burst.ecn == Ecn::Ect0));
    let mut driver = twenty(Setup::default().algorithm(Algorithm::Dctcp));
    // Two windows of data ended without a mark, with the first acknowledgement and the tenth: 15/16 of 15/16 are left
    // of the share.
    driver.at_ms(200).ece(11);
    assert_eq!(driver.sender.window.ssthresh, 20 - 20 * 900 / 2048);
}
