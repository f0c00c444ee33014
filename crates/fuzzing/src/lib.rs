//! What is fuzzed: each target takes any bytes and panics where something is wrong.
//!
//! `fuzz/` hands them to libFuzzer, which looks for new code and needs a nightly compiler; [`mutate`] needs nothing.

pub mod mutate;
mod network;
mod replay;
mod simulation;
#[path = "../../capture/tests/analysis/talk.rs"]
mod talk;

use sawtooth_capture::Reader;
use std::io::Cursor;
use std::path::PathBuf;

/// A name, which is also that of a directory of `fuzz/corpus`, and what is done with an input.
pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: [Target; 5] = [
    ("analysis", analysis),
    ("capture", capture),
    ("packetdrill", packetdrill),
    ("replay", replay),
    ("simulation", simulation),
];

/// Any talk that TCP may have, made out of the bytes, through the analysis: its counts agree.
pub fn analysis(bytes: &[u8]) {
    talk::check(&talk::capture(bytes));
}

/// Any bytes as a capture: every packet is counted once.
pub fn capture(file: &[u8]) {
    let Ok(mut reader) = Reader::new(Cursor::new(file.to_vec())) else { return };
    let mut segments = 0;
    while reader.next_segment().is_some() {
        segments += 1;
    }
    let counts = reader.counts();
    assert_eq!(segments + counts.not_tcp + counts.fragments + counts.unreadable + counts.copies, counts.packets);
    assert!(counts.first_ns <= counts.last_ns);
}

/// Any text as a packetdrill script: it is played, or told why not.
pub fn packetdrill(text: &[u8]) {
    sawtooth_packetdrill::run(&String::from_utf8_lossy(text), 250);
}

/// Data segments made out of the bytes, through every congestion control: each has a window for each segment.
pub fn replay(bytes: &[u8]) {
    replay::check(bytes);
}

/// A compiled scenario, given as JSON or made out of the bytes: what the parser takes runs, time goes on, and where it
/// pauses changes nothing.
pub fn simulation(bytes: &[u8]) {
    match bytes.first() {
        Some(b'{') => simulation::check(&String::from_utf8_lossy(bytes)),
        _ => simulation::check(&network::scenario(bytes).to_string()),
    }
}

/// Where inputs are kept: of each target in a directory of its name.
pub fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}
