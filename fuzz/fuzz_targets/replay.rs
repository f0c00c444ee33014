//! `cargo +nightly fuzz run replay fuzz/corpus/replay -- -max_len=4096`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sawtooth_fuzzing::replay(bytes));
