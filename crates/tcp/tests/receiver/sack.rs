//! SACK and DSACK blocks, and which acknowledgements with blocks are held back.

use crate::{Driver, blocks, options};
use sawtooth_tcp::options::HostOptions;
use sawtooth_tcp::packet::Ack;
use sawtooth_units::Time;

#[test]
fn sack_blocks_begin_with_the_newest_and_keep_three_beside_timestamps() {
    let mut driver = Driver::warm(options());
    let acks: Vec<Ack> = [42, 44, 46, 48].into_iter().map(|seq| driver.ack_of(seq)).collect();
    assert_eq!(blocks(&acks[3]), [(48, 49), (46, 47), (44, 45)]);
    // A segment that joins two blocks makes them the newest (RFC 2018 section 4).
    assert_eq!(blocks(&driver.ack_of(45)), [(44, 47), (48, 49), (42, 43)]);
}

#[test]
fn without_timestamps_four_sack_blocks_fit() {
    let mut driver = Driver::warm(HostOptions { timestamps: false, ..options() });
    let acks: Vec<Ack> = [42, 44, 46, 48, 50].into_iter().map(|seq| driver.ack_of(seq)).collect();
    assert_eq!(blocks(&acks[4]), [(50, 51), (48, 49), (46, 47), (44, 45)]);
    assert!(acks.iter().all(|ack| (ack.tsval, ack.tsecr) == (0, 0)));
}

#[test]
fn without_sack_no_blocks_are_sent_and_no_duplicate_is_held_back() {
    let mut driver = Driver::warm(HostOptions { sack: false, ..options() });
    for seq in 41..60 {
        let acks = driver.data(seq);
        assert_eq!(acks.iter().map(|ack| (ack.next, ack.sack.count)).collect::<Vec<_>>(), [(40, 0)]);
    }
    assert_eq!(driver.data(40)[0].next, 60);
}

#[test]
fn data_below_the_edge_is_reported_by_dsack_at_once() {
    let mut driver = Driver::warm(options());
    let acks = driver.data(7);
    assert_eq!(acks.len(), 1);
    assert!(acks[0].sack.duplicate);
    assert_eq!((acks[0].next, blocks(&acks[0])), (40, vec![(7, 8)]));
    // Once only.
    assert!(driver.data(41).iter().all(|ack| !ack.sack.duplicate));
}

#[test]
fn held_data_that_comes_again_is_reported_by_dsack_before_its_block() {
    let mut driver = Driver::warm(options());
    driver.data(41);
    driver.data(42);
    let acks = driver.data(41);
    assert!(acks[0].sack.duplicate);
    assert_eq!(blocks(&acks[0]), [(41, 42), (41, 43)]);
}

#[test]
fn after_three_duplicates_sacks_are_compressed_until_their_latest_time() {
    let mut driver = Driver::warm(options());
    // With nothing unread the window grows by the first, which asks for an acknowledgement by itself.
    for seq in 41..45 {
        assert_eq!(driver.data(seq).len(), 1, "duplicate of {seq}");
    }
    let first = driver.now;
    for seq in 45..50 {
        assert!(driver.data(seq).is_empty(), "{seq} is held back");
    }
    let acks = driver.fire();
    assert_eq!(blocks(&acks[0]), [(41, 50)]);
    // 5% of the 20 ms round trip are 1 ms, and the timer's slack of 0.1 ms.
    assert_eq!(driver.now.since(first).micros(), 1_100);
    assert_eq!(driver.receiver.timer(), Time::NEVER);
}

#[test]
fn no_more_than_44_sacks_are_compressed() {
    let mut driver = Driver::warm(options());
    (41..45).for_each(|seq| drop(driver.data(seq)));
    let answered: Vec<u64> = (45..200).filter(|&seq| !driver.data(seq).is_empty()).collect();
    assert_eq!(answered, [45 + 44, 45 + 2 * 44 + 1, 45 + 3 * 44 + 2]);
}

#[test]
fn a_filled_gap_ends_compression() {
    let mut driver = Driver::warm(options());
    (41..46).for_each(|seq| drop(driver.data(seq)));
    let acks = driver.data(40);
    assert_eq!((acks.len(), acks[0].next, acks[0].sack.count), (1, 46, 0));
    assert_eq!(driver.receiver.timer(), Time::NEVER);
}
