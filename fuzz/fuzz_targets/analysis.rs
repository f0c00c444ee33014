//! `cargo +nightly fuzz run analysis fuzz/corpus/analysis -- -max_len=4096`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sawtooth_fuzzing::analysis(bytes));
