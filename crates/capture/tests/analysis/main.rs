//! The analysis of any talk that TCP may have: what it counts agrees, and is the same each time.

mod talk;

use std::path::PathBuf;

use talk::{capture, check};

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/analysis")
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[test]
fn the_counts_of_any_talk_agree() {
    let mut state = 1;
    for length in 1..250 {
        let bytes: Vec<u8> = (0..length * 4).map(|_| random(&mut state) as u8).collect();
        check(&capture(&bytes));
    }
}

#[test]
fn the_counts_agree_wherever_the_capture_begins_and_ends() {
    let mut state = 2;
    let bytes: Vec<u8> = (0..600).map(|_| random(&mut state) as u8).collect();
    let file = capture(&bytes);
    let records: Vec<&[u8]> = std::iter::successors(Some(&file[24..]), |rest| {
        let kept = u32::from_le_bytes(*rest.get(8..)?.first_chunk()?) as usize;
        rest.get(16 + kept..).filter(|rest| !rest.is_empty())
    })
    .collect();
    assert!(records.len() > 100);
    for begin in &records {
        check(&[&file[..24], begin].concat());
        check(&file[..file.len() - begin.len()]);
    }
}

#[test]
fn the_same_capture_reports_the_same_each_time() {
    let mut state = 3;
    let bytes: Vec<u8> = (0..4_000).map(|_| random(&mut state) as u8).collect();
    let file = capture(&bytes);
    assert_eq!(check(&file), check(&file));
}

#[test]
fn what_the_fuzzer_found_is_reported() {
    let mut files = 0;
    for entry in std::fs::read_dir(corpus()).expect("the corpus is part of the sources") {
        check(&capture(&std::fs::read(entry.expect("an entry").path()).expect("a file")));
        files += 1;
    }
    assert!(files > 0);
}
