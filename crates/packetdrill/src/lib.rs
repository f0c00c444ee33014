//! A second witness: plays scripts in the language of packetdrill, which were written against the Linux kernel, to the
//! simulated TCP sender, and checks what it sends and what it says of itself.
//!
//! Reads scripts, never writes any; none is part of this project.

pub mod cursor;
pub mod expression;
pub mod host;
pub mod parse;
pub mod play;
pub mod script;
pub mod settings;
pub mod verdict;

use verdict::Outcome;

/// Reads and plays a script's text, as on a kernel of `hz` ticks a second.
pub fn run(text: &str, hz: u32) -> Outcome {
    match parse::parse(text) {
        Ok(script) => play::play(&script, hz),
        Err(error) => Outcome::not_applicable(format!("line {}: not read: {}", error.line, error.what)),
    }
}
