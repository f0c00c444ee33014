//! Reads any bytes as a capture: no panic, and every packet is counted once.
//!
//! `cargo +nightly fuzz run capture fuzz/corpus/capture -- -max_len=4096`; `crates/capture/tests/reading/corpus.rs`
//! replays the corpus.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sawtooth_capture::Reader;
use std::io::Cursor;

fuzz_target!(|file: &[u8]| {
    let Ok(mut reader) = Reader::new(Cursor::new(file.to_vec())) else { return };
    let mut segments = 0;
    while reader.next_segment().is_some() {
        segments += 1;
    }
    let counts = reader.counts();
    assert_eq!(segments + counts.not_tcp + counts.fragments + counts.unreadable + counts.copies, counts.packets);
    assert!(counts.first_ns <= counts.last_ns);
});
