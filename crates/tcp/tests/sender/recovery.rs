//! Loss detection by RACK and NewReno, and proportional rate reduction.

use crate::common::{MSS, Setup, runs, segments};
use sawtooth_tcp::cc::Algorithm;
use sawtooth_tcp::flight::CaState;
use sawtooth_tcp::packet::{Ack, Block, Sack};

#[test]
fn a_single_loss_is_retransmitted_once_and_the_window_reduced_once() {
    let mut driver = Setup::default().open();
    driver.at_ms(100);
    // Segment 0 is lost. Two new segments leave for the first two that were SACKed (limited transmit, RFC 3042).
    assert_eq!(runs(&driver.sack(0, &[(1, 2)])), [(10, 1)]);
    assert_eq!(runs(&driver.soon().sack(0, &[(1, 3)])), [(11, 1)]);
    assert_eq!(driver.sender.flight.ca_state, CaState::Disorder);
    let mut windows = Vec::new();
    let mut sent = Vec::new();
    for end in 4..=12 {
        sent.extend(runs(&driver.soon().sack(0, &[(1, end)])));
        windows.push(driver.sender.window.cwnd);
    }
    assert_eq!(driver.sender.flight.ca_state, CaState::Recovery);
    assert_eq!((driver.sender.flight.prior_cwnd, driver.sender.window.ssthresh), (10, 5));
    // One segment leaves for two delivered until five are in flight, then one for one (RFC 6937 section 3).
    assert_eq!(windows, [9, 8, 8, 7, 7, 6, 5, 5, 5]);
    assert_eq!(sent, [(0, 1), (12, 1), (13, 1), (14, 1), (15, 1)]);
    driver.at_ms(200).ack(12);
    assert_eq!(driver.sender.flight.ca_state, CaState::Open);
    assert_eq!((driver.sender.window.cwnd, driver.sender.window.ssthresh), (5, 5));
    assert_eq!((driver.sender.stats.retransmits, driver.sender.stats.timeouts), (1, 0));
    assert_eq!(driver.sender.flight.lost, 1);
}

#[test]
fn several_losses_in_one_window_reduce_it_once() {
    let mut driver = Setup::default().open();
    driver.at_ms(100);
    // 0, 2 and 4 are lost.
    let blocks: [&[(u64, u64)]; 4] =
        [&[(1, 2)], &[(3, 4), (1, 2)], &[(5, 6), (3, 4), (1, 2)], &[(5, 7), (3, 4), (1, 2)]];
    blocks.iter().for_each(|blocks| drop(driver.soon().sack(0, blocks)));
    for end in 8..=10 {
        driver.soon().sack(0, &[(5, end), (3, 4), (1, 2)]);
    }
    assert_eq!(driver.sender.flight.lost, 3);
    assert_eq!(driver.sender.window.ssthresh, 5);
    driver.at_ms(200);
    driver.sack(2, &[(3, 4), (5, 12)]);
    driver.sack(4, &[(5, 12)]);
    driver.ack(driver.nxt());
    assert_eq!(driver.sender.stats.retransmits, 3);
    assert_eq!(driver.sender.window.ssthresh, 5);
    assert_eq!(driver.sender.flight.ca_state, CaState::Open);
}

#[test]
fn bbr_keeps_its_window_through_a_single_loss() {
    let mut driver = Setup::default().algorithm(Algorithm::Bbr).open();
    driver.at_ms(100).sack(0, &[(1, 4)]);
    assert_eq!(driver.sender.flight.ca_state, CaState::Recovery);
    for end in 5..=10 {
        driver.sack(0, &[(1, end)]);
    }
    let end = driver.nxt();
    driver.at_ms(200).ack(end);
    assert_eq!(driver.sender.flight.ca_state, CaState::Open);
    assert!(driver.sender.window.cwnd >= 10, "{}", driver.sender.window.cwnd);
}

#[test]
fn only_what_was_sent_before_a_delivered_segment_is_marked_lost() {
    let mut driver = Setup::default().open();
    driver.at_ms(100).ack(4);
    let later = driver.nxt();
    assert!(later > 14);
    // 4 is lost; of the same flight 5, 6, 7 arrived, 8 and 9 are still out, as is all that left at 100 ms.
    driver.at_ms(101);
    let sent = driver.sack(4, &[(5, 8)]);
    assert_eq!(driver.sender.flight.lost_out, 1);
    assert!(runs(&sent).contains(&(4, 1)));
    // A segment of the later flight arrives: 8 and 9 were sent before it and a round trip has passed.
    driver.at_ms(200).sack(4, &[(10, 11), (5, 8)]);
    assert_eq!(driver.sender.flight.lost, 3);
}

#[test]
fn one_sacked_segment_starts_the_reordering_timer() {
    let mut driver = Setup::default().open();
    driver.at_ms(100).sack(0, &[(1, 2)]);
    assert_eq!(driver.sender.flight.lost, 0);
    let sent = driver.fire();
    // A quarter of 100 ms, 2 ms, and the tick after.
    assert_eq!(driver.elapsed_ms(), 100 + 25 + 2 + 1);
    assert_eq!(runs(&sent), [(0, 1)]);
    assert_eq!(driver.sender.flight.ca_state, CaState::Recovery);
    assert_eq!((driver.sender.stats.retransmits, driver.sender.stats.timeouts), (1, 0));
}

#[test]
fn late_segment_within_reordering_window_is_not_retransmitted() {
    let mut driver = Setup::default().open();
    driver.at_ms(100).sack(0, &[(1, 2)]);
    driver.at_ms(120).ack(2);
    driver.at_ms(121).ack(10);
    assert_eq!(driver.sender.stats.retransmits, 0);
    assert_eq!(driver.sender.flight.lost, 0);
    assert_eq!(driver.sender.flight.ca_state, CaState::Open);
    assert_eq!(driver.sender.window.ssthresh, sawtooth_tcp::window::INFINITE_SSTHRESH);
}

#[test]
fn once_reordering_was_seen_three_sacked_segments_no_longer_prove_a_loss() {
    let mut driver = Setup::default().open();
    driver.at_ms(100).sack(0, &[(2, 3)]);
    // 1 was sent once and comes after 2: the path reorders.
    driver.sack(0, &[(1, 3)]);
    driver.sack(0, &[(1, 9)]);
    assert_eq!(driver.sender.flight.sacked_out, 8);
    assert_eq!(driver.sender.flight.lost, 0);
    driver.fire();
    assert_eq!(driver.sender.flight.lost, 1);
    assert_eq!(driver.elapsed_ms(), 128);
}

#[test]
fn a_lost_retransmission_is_detected_and_sent_again() {
    let mut driver = Setup::default().open();
    driver.at_ms(100);
    (2..=10).for_each(|end| drop(driver.soon().sack(0, &[(1, end)])));
    assert_eq!(driver.sender.stats.retransmits, 1);
    // What left after the retransmission of 0 arrives; 0 does not.
    let newest = driver.nxt();
    assert!(newest > 12);
    driver.at_ms(201);
    let sent = driver.sack(0, &[(1, newest)]);
    assert!(runs(&sent).contains(&(0, 1)), "{sent:?}");
    assert_eq!(driver.sender.stats.retransmits, 2);
    assert_eq!(driver.sender.flight.lost, 2);
    assert_eq!((driver.sender.stats.timeouts, driver.sender.window.ssthresh), (0, 5));
}

#[test]
fn a_retransmission_in_flight_is_not_sent_again_by_more_sack() {
    let mut driver = Setup::default().open();
    driver.at_ms(100);
    for end in 2..=10 {
        driver.soon().sack(0, &[(1, end)]);
        driver.sack(0, &[(1, end)]);
    }
    assert_eq!(driver.sender.stats.retransmits, 1);
}

#[test]
fn a_block_of_an_old_ack_that_begins_below_the_acknowledgement_is_ignored() {
    let mut driver = Setup::default().open();
    driver.at_ms(100);
    driver.ack(3);
    for blocks in [[(2, 6)], [(3, 6)]] {
        driver.sack(1, &blocks);
        assert_eq!(driver.sender.flight.sacked_out, 0);
    }
    driver.sack(1, &[(4, 6)]);
    assert_eq!(driver.sender.flight.sacked_out, 2);
}

#[test]
fn a_sack_block_beyond_what_was_sent_is_ignored() {
    let mut driver = Setup::default().open();
    driver.at_ms(100).sack(0, &[(5, 50)]);
    assert_eq!(driver.sender.flight.sacked_out, 0);
}

#[test]
fn without_sack_the_third_duplicate_retransmits_the_first_hole() {
    let mut driver = Setup::default().sack(false).open();
    driver.at_ms(100);
    assert_eq!(segments(&driver.soon().ack(0)), 1);
    assert_eq!(segments(&driver.soon().ack(0)), 1);
    assert_eq!(driver.sender.stats.retransmits, 0);
    let sent = driver.soon().ack(0);
    assert_eq!(runs(&sent), [(0, 1)]);
    assert_eq!(driver.sender.flight.ca_state, CaState::Recovery);
    assert_eq!(driver.sender.window.ssthresh, 5);
}

#[test]
fn without_sack_one_hole_is_repaired_each_round_trip() {
    let mut driver = Setup::default().sack(false).open();
    // 0, 3 and 6 are lost: each partial acknowledgement shows only the next hole (RFC 6582 section 3.2).
    driver.at_ms(100);
    (0..7).for_each(|_| drop(driver.soon().ack(0)));
    assert_eq!(driver.sender.stats.retransmits, 1);
    for (round, hole) in [(2, 3), (3, 6)] {
        // The partial acknowledgement, and duplicates by what left after the retransmission.
        driver.at_ms(100 * round);
        let sent: Vec<_> = (0..4).flat_map(|_| runs(&driver.soon().ack(hole))).collect();
        assert_eq!(sent.into_iter().filter(|&(start, _)| start < 10).collect::<Vec<_>>(), [(hole, 1)]);
        assert_eq!(driver.sender.stats.retransmits, round);
    }
    let end = driver.nxt();
    driver.at_ms(400).ack(end);
    assert_eq!(driver.sender.stats.retransmits, 3);
    assert_eq!(driver.sender.flight.ca_state, CaState::Open);
    assert_eq!((driver.sender.window.ssthresh, driver.sender.stats.timeouts), (5, 0));
}

#[test]
fn lost_part_of_super_packet_is_retransmitted_as_one() {
    let mut driver = Setup::default().open();
    assert_eq!(runs(&driver.first)[0], (0, 2));
    // The rest arrives at once, so that the window has room for both.
    let again = driver.at_ms(100).sack(0, &[(2, 10)])[0];
    assert_eq!((again.start, again.count, again.push), (0, 2, true));
}

#[test]
fn one_segment_sent_again_carries_no_push_even_where_it_ended_a_super_packet() {
    let mut driver = Setup::default().open();
    let last = u64::from(driver.first[0].count) - 1;
    assert!(driver.first[0].push);
    driver.at_ms(100).ack(last);
    let sent: Vec<_> = (last + 2..=10).flat_map(|high| driver.soon().sack(last, &[(last + 1, high)])).collect();
    let again = sent.iter().find(|burst| burst.start == last * MSS).expect("it is lost");
    assert_eq!((again.count, again.push), (1, false));
}

#[test]
fn a_block_counts_for_whole_segments_only() {
    for (start, end, sacked) in [
        (6 * MSS + 100, 7 * MSS + 100, 0),
        (6 * MSS + 100, 8 * MSS + 100, 1),
        (6 * MSS, 8 * MSS + 100, 2),
        (6 * MSS - 1, 9 * MSS - 1, 2),
    ] {
        let mut driver = Setup::default().open();
        let mut sack = Sack { count: 1, ..Sack::default() };
        sack.blocks[0] = Block { start, end };
        let ack = Ack { next: 0, window: driver.window, sack, ..Ack::default() };
        driver.act(|sender, clock, out| sender.on_ack(&ack, clock, out));
        assert_eq!(driver.sender.flight.sacked_out, sacked, "{start}..{end}");
    }
}

#[test]
fn an_acknowledgement_inside_a_segment_leaves_the_rest_of_it_in_flight() {
    let mut driver = Setup::default().open();
    driver.sender.window.cwnd = 1;
    for (next, left) in [(3 * MSS + 100, 7), (4 * MSS - 100, 7), (4 * MSS, 6), (10 * MSS, 0)] {
        let ack = Ack { next, window: driver.window, ..Ack::default() };
        driver.sender.window.cwnd = 1;
        driver.act(|sender, clock, out| sender.on_ack(&ack, clock, out));
        let new = (driver.sender.flight.snd_nxt - 10 * MSS).div_ceil(MSS) as u32;
        assert_eq!(driver.sender.flight.packets_out - new, left, "{next}");
    }
}
