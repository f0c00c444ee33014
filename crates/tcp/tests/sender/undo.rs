//! Reductions that turn out to be unnecessary are taken back: DSACK, timestamps (Eifel), F-RTO.

use crate::common::{Driver, MSS, Setup, runs};
use sawtooth_tcp::flight::CaState;
use sawtooth_tcp::window::INFINITE_SSTHRESH;

/// Segment 0 is late, declared lost and retransmitted at 100 ms; 1 to 9 arrived.
fn retransmitted(setup: Setup) -> Driver {
    let mut driver = setup.open();
    driver.at_ms(100);
    (2..=10).for_each(|end| drop(driver.soon().echo(0, &[(1, end)], 0)));
    assert_eq!(driver.sender.flight.ca_state, CaState::Recovery);
    assert_eq!((driver.sender.stats.retransmits, driver.sender.window.ssthresh), (1, 5));
    driver
}

/// All of the first flight times out: a probe with new data, then the timeout that retransmits 0.
fn timed_out(setup: Setup) -> Driver {
    let mut driver = setup.open();
    while driver.sender.stats.timeouts == 0 {
        driver.fire();
    }
    assert_eq!((driver.sender.window.cwnd, driver.sender.window.ssthresh), (1, 5));
    driver
}

#[test]
fn a_dsack_for_every_retransmission_restores_the_window() {
    let mut driver = retransmitted(Setup::default());
    // The original arrives; without timestamps it could be the retransmission.
    driver.at_ms(130).ack(10);
    assert_eq!(driver.sender.window.ssthresh, 5);
    driver.at_ms(200).dsack(10, &[(0, 1)]);
    assert_eq!(driver.sender.window.ssthresh, INFINITE_SSTHRESH);
    assert!(driver.sender.window.cwnd >= 10, "{}", driver.sender.window.cwnd);
    assert_eq!(driver.sender.flight.lost_out, 0);
}

#[test]
fn a_dsack_for_one_of_two_retransmissions_restores_nothing() {
    let mut driver = Setup::default().open();
    driver.at_ms(100);
    driver.sack(0, &[(2, 5)]);
    (6..=10).for_each(|end| drop(driver.sack(0, &[(2, end)])));
    assert_eq!(driver.sender.stats.retransmits, 2);
    driver.at_ms(200);
    driver.dsack(10, &[(0, 1)]);
    assert_eq!(driver.sender.window.ssthresh, 5);
}

#[test]
fn a_dsack_counts_also_if_its_acknowledgement_is_the_first_of_that_data() {
    let mut driver = retransmitted(Setup::default());
    driver.at_ms(130).dsack(10, &[(0, 1)]);
    assert_eq!(driver.sender.window.ssthresh, INFINITE_SSTHRESH);
}

/// Linux looks at the data of a DSACK with the block around it, and again by itself, unless more was sent after that
/// block (`tcp_sacktag_write_queue`).
#[test]
fn a_dsack_inside_the_last_block_counts_for_two_retransmissions() {
    for (before_end, restored) in [(0, true), (1, false)] {
        let mut driver = Setup::default().open();
        driver.at_ms(100);
        driver.sack(0, &[(5, 6), (3, 4), (1, 2)]);
        (7..=10).for_each(|end| drop(driver.sack(0, &[(5, end), (3, 4), (1, 2)])));
        assert_eq!(driver.sender.stats.retransmits, 3);
        let end = driver.nxt();
        driver.at_ms(200).dsack(0, &[(2, 3), (1, end - before_end)]);
        driver.at_ms(220).ack(end);
        assert_eq!(driver.sender.window.ssthresh, 5);
        driver.at_ms(230).dsack(end, &[(0, 1)]);
        assert_eq!(driver.sender.window.ssthresh == INFINITE_SSTHRESH, restored, "{before_end}");
    }
}

#[test]
fn an_echo_older_than_the_retransmission_restores_the_window() {
    let mut driver = retransmitted(Setup::default().timestamps());
    let original = driver.first[0].tsval;
    let end = driver.nxt();
    driver.at_ms(130).echo(end, &[], original);
    assert_eq!(driver.sender.flight.ca_state, CaState::Open);
    assert_eq!(driver.sender.window.ssthresh, INFINITE_SSTHRESH);
    assert!(driver.sender.window.cwnd >= 10, "{}", driver.sender.window.cwnd);
}

#[test]
fn the_retransmission_s_own_echo_restores_nothing() {
    let mut driver = retransmitted(Setup::default().timestamps());
    let retransmission = driver.first[0].tsval + 106;
    driver.at_ms(210).echo(12, &[], retransmission);
    assert_eq!(driver.sender.flight.ca_state, CaState::Open);
    assert_eq!((driver.sender.window.cwnd, driver.sender.window.ssthresh), (5, 5));
}

#[test]
fn a_spurious_timeout_is_undone_when_originals_are_acknowledged() {
    let mut driver = timed_out(Setup::default());
    // The whole flight was only delayed (RFC 5682 section 2.1): first one acknowledgement …
    let end = driver.nxt();
    let sent = driver.ack(1);
    assert!(runs(&sent).iter().all(|&(start, _)| start >= end), "new data leaves, nothing is retransmitted: {sent:?}");
    assert!(!sent.is_empty());
    // … then the next, for a segment that was never retransmitted.
    driver.ack(2);
    assert_eq!(driver.sender.flight.ca_state, CaState::Open);
    assert_eq!(driver.sender.window.ssthresh, INFINITE_SSTHRESH);
    assert!(driver.sender.window.cwnd >= 10, "{}", driver.sender.window.cwnd);
    assert_eq!(driver.sender.flight.lost_out, 0);
    assert_eq!(driver.sender.stats.retransmits, 1);
}

#[test]
fn a_spurious_timeout_is_undone_when_an_original_is_sacked() {
    let mut driver = timed_out(Setup::default());
    driver.sack(0, &[(1, 3)]);
    assert_eq!(driver.sender.window.ssthresh, INFINITE_SSTHRESH);
    assert_ne!(driver.sender.flight.ca_state, CaState::Loss);
}

#[test]
fn a_real_timeout_is_not_undone_and_everything_is_sent_again() {
    let mut driver = timed_out(Setup::default());
    let end = driver.nxt();
    // The retransmission of 0 arrives and new data leaves; it is SACKed above holes: the flight was lost.
    driver.at_ms(driver.elapsed_ms() + 100);
    let new = driver.ack(1);
    let new_end = new.last().map(|b| b.end() / MSS).expect("new data leaves");
    assert_eq!(new[0].start, end * MSS);
    driver.at_ms(driver.elapsed_ms() + 100);
    let mut repeated = runs(&driver.sack(1, &[(end, end + 1)]));
    repeated.extend(runs(&driver.sack(1, &[(end, new_end)])));
    assert_eq!(driver.sender.flight.ca_state, CaState::Loss);
    assert_eq!(driver.sender.window.ssthresh, 5);
    assert_eq!(repeated.first(), Some(&(1, 1)));
    for _ in 0..6 {
        driver.at_ms(driver.elapsed_ms() + 100);
        let una = driver.una();
        let next = (una + u64::from(driver.sender.flight.retrans_out)).min(end);
        repeated.extend(runs(
            &driver.sack(if next == end { new_end } else { next }, &[(end, new_end)][..usize::from(next < end)]),
        ));
        if next == end {
            break;
        }
    }
    let again: Vec<u64> = repeated.iter().flat_map(|&(start, count)| start..start + u64::from(count)).collect();
    assert_eq!(again.into_iter().filter(|&seq| seq < end).collect::<Vec<_>>(), (1..end).collect::<Vec<_>>());
    assert_eq!((driver.sender.flight.ca_state, driver.sender.window.ssthresh), (CaState::Open, 5));
}

#[test]
fn a_timeout_is_undone_by_an_echo_older_than_its_retransmission() {
    let mut driver = timed_out(Setup::default().timestamps());
    let original = driver.first[0].tsval;
    driver.echo(1, &[], original);
    assert_eq!(driver.sender.flight.ca_state, CaState::Open);
    assert_eq!(driver.sender.window.ssthresh, INFINITE_SSTHRESH);
    assert!(driver.sender.window.cwnd >= 10, "{}", driver.sender.window.cwnd);
}

#[test]
fn a_timeout_after_an_undo_counts_no_retransmission_twice() {
    let mut driver = timed_out(Setup::default().timestamps().total(10));
    let original = driver.first[0].tsval;
    // There is no new data, so 1 and 2 are retransmitted; then the original of 1 is acknowledged.
    let retransmission = driver.clock().timestamp();
    assert_eq!(runs(&driver.echo(1, &[], retransmission)), [(1, 1), (2, 1)]);
    driver.echo(2, &[], original);
    assert_eq!((driver.sender.flight.lost_out, driver.sender.flight.retrans_out), (0, 1));
    let timeouts = driver.sender.stats.timeouts;
    while driver.sender.stats.timeouts == timeouts {
        driver.fire();
    }
    assert_eq!(driver.sender.flight.retrans_out, 1, "2 is in flight once more, not twice");
    driver.ack(10);
    assert_eq!(driver.sender.flight.in_flight(), 0);
}
