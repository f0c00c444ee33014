//! The analysis of random TCP traffic: its counts agree, and each run gives the same.

mod random_capture;

use std::path::PathBuf;

use random_capture::{capture, check};

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
fn counts_of_random_traffic_agree() {
    let mut state = 1;
    for length in 1..250 {
        let bytes: Vec<u8> = (0..length * 4).map(|_| random(&mut state) as u8).collect();
        check(&capture(&bytes));
    }
}

#[test]
fn counts_agree_for_any_cut_of_a_capture() {
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
fn analysis_is_deterministic() {
    let mut state = 3;
    let bytes: Vec<u8> = (0..4_000).map(|_| random(&mut state) as u8).collect();
    let file = capture(&bytes);
    assert_eq!(check(&file), check(&file));
}

#[test]
fn fuzz_corpus_is_analyzed() {
    let mut files = 0;
    for entry in std::fs::read_dir(corpus()).expect("the corpus is part of the sources") {
        check(&capture(&std::fs::read(entry.expect("an entry").path()).expect("a file")));
        files += 1;
    }
    assert!(files > 0);
}
