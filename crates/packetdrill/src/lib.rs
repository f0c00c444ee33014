//! Runs scripts in packetdrill's language, which were written to test the Linux kernel, with the simulated TCP
//! endpoint. It checks what the endpoint sends and its `tcp_info`.
//!
//! It only reads scripts; none is part of this project.

pub mod cursor;
pub mod expression;
pub mod host;
pub mod parse;
pub mod play;
pub mod scope;
pub mod script;
pub mod settings;
pub mod verdict;
pub mod wire;

use verdict::Outcome;

/// Reads and runs a script, as on a kernel with `hz` ticks per second. `tolerance_us`: how far a time may be off, for
/// scripts that do not state it; by default what packetdrill allows.
pub fn run(text: &str, hz: u32, tolerance_us: Option<i64>) -> Outcome {
    match parse::parse(text) {
        Ok(script) => play::play(&script, hz, tolerance_us),
        Err(error) => Outcome::not_applicable(format!("line {}: not read: {}", error.line, error.what)),
    }
}

/// Why the script is not about TCP's data path; `None`: it is.
pub fn outside_data_path(text: &str) -> Option<String> {
    match parse::parse(text) {
        Ok(script) => scope::outside_data_path(&script),
        Err(error) => Some(format!("line {}: not read: {}", error.line, error.what)),
    }
}
