//! Any talk that TCP may have, made out of the fuzzer's bytes, through the analysis: no panic, and its counts agree.
//!
//! `cargo +nightly fuzz run analysis fuzz/corpus/analysis -- -max_len=2048`; `crates/capture/tests/analysis/` replays the
//! corpus.

#![no_main]

#[path = "../../crates/capture/tests/analysis/talk.rs"]
mod talk;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    talk::check(&talk::capture(bytes));
});
