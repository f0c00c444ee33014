//! `cargo +nightly fuzz run capture fuzz/corpus/capture -- -max_len=4096`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sawtooth_fuzzing::capture(bytes));
