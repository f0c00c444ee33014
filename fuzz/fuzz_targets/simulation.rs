//! `cargo +nightly fuzz run simulation fuzz/corpus/simulation -- -max_len=4096`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sawtooth_fuzzing::simulation(bytes));
