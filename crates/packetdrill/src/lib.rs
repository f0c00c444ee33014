//! Runs scripts in packetdrill's language, which were written to test the Linux kernel, with the simulated TCP sender.
//! It checks what the sender sends and its `tcp_info`.
//!
//! It only reads scripts; none is part of this project.

pub mod cursor;
pub mod expression;
pub mod host;
pub mod parse;
pub mod play;
pub mod script;
pub mod settings;
pub mod verdict;

use verdict::Outcome;

/// Reads and runs a script, as on a kernel with `hz` ticks per second.
pub fn run(text: &str, hz: u32) -> Outcome {
    match parse::parse(text) {
        Ok(script) => play::play(&script, hz),
        Err(error) => Outcome::not_applicable(format!("line {}: not read: {}", error.line, error.what)),
    }
}
