//! Fuzz targets: each takes arbitrary bytes and panics on an error.
//!
//! `fuzz/` runs them with libFuzzer, which searches for inputs that reach new code and needs a nightly compiler.
//! [`mutate`] needs no other tools.

pub mod mutate;
mod network;
#[path = "../../capture/tests/analysis/random_capture.rs"]
mod random_capture;
mod replay;
mod simulation;

use sawtooth_capture::Reader;
use std::io::Cursor;
use std::path::PathBuf;

/// A target: its name (also its directory in `fuzz/corpus`), and the function that checks an input.
pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: [Target; 5] = [
    ("analysis", analysis),
    ("capture", capture),
    ("packetdrill", packetdrill),
    ("replay", replay),
    ("simulation", simulation),
];

/// Makes TCP segments from the bytes and analyses them: the counts must agree.
pub fn analysis(bytes: &[u8]) {
    random_capture::check(&random_capture::capture(bytes));
}

/// Reads the bytes as a capture: every packet must be counted once.
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

/// Reads the bytes as a packetdrill script: it must run, or give the reason why it cannot.
pub fn packetdrill(text: &[u8]) {
    sawtooth_packetdrill::run(&String::from_utf8_lossy(text), 250, None);
}

/// Makes data segments from the bytes and replays them with every congestion control: each must give a window for each
/// segment.
pub fn replay(bytes: &[u8]) {
    replay::check(bytes);
}

/// Reads the bytes as a compiled scenario in JSON, or makes one from them. A scenario that the parser accepts must run,
/// its time must advance, and pauses must not change results.
pub fn simulation(bytes: &[u8]) {
    match bytes.first() {
        Some(b'{') => simulation::check(&String::from_utf8_lossy(bytes)),
        _ => simulation::check(&network::scenario(bytes).to_string()),
    }
}

/// The directory of stored inputs, with one directory per target.
pub fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}
