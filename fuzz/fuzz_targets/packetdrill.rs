//! `cargo +nightly fuzz run packetdrill fuzz/corpus/packetdrill -- -max_len=4096`

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sawtooth_fuzzing::packetdrill(bytes));
