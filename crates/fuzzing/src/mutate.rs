//! Mutated inputs without another compiler: bytes of the corpus are changed at random. Input number I of a seed is
//! always the same.

use crate::Target;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest input in bytes. Longer inputs only take more time.
const LONGEST: usize = 4_096;
/// Time limit per input; more with a debugger attached.
const MOST: Duration = Duration::from_secs(10);

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this many inputs: the same on every machine.
    Inputs(u64),
    Elapsed(Duration),
}

/// The result of a target's inputs.
#[derive(Debug, Default)]
pub struct Outcome {
    pub inputs: u64,
    /// The number and bytes of the failing input, and the error.
    pub failure: Option<(u64, Vec<u8>, String)>,
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % bound).unwrap_or(0)
    }
}

/// The files of a directory, in order of their names.
pub fn corpus(directory: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut paths: Vec<_> =
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    paths.iter().map(fs::read).collect()
}

/// Input number `number` of `seed`.
pub fn input(corpus: &[Vec<u8>], seed: u64, number: u64) -> Vec<u8> {
    let mut random = Random(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
    random.next();
    let mut bytes = match corpus {
        // Every eighth input is entirely random.
        _ if number % 8 == 7 => (0..random.below(512)).map(|_| random.byte()).collect(),
        [] => Vec::new(),
        _ => corpus[random.below(corpus.len())].clone(),
    };
    for _ in 0..=random.below(5) {
        change(&mut bytes, corpus, &mut random);
    }
    bytes.truncate(LONGEST);
    bytes
}

fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let some = |random: &mut Random| 1 + random.below(16);
    match random.below(9) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = [0, 1, 0x7f, 0x80, 0xff, b'0', b'9', b'-'][random.below(8)];
            }
        }
        2 => {
            let added: Vec<u8> = (0..some(random)).map(|_| random.byte()).collect();
            bytes.splice(at..at, added);
        }
        3 => drop(bytes.drain(at..(at + some(random)).min(bytes.len()))),
        4 => bytes.truncate(at),
        5 => {
            let copied = bytes[at..(at + 4 * some(random)).min(bytes.len())].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, copied);
        }
        6 if !corpus.is_empty() => {
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len() + 1);
            let end = (from + 8 * some(random)).min(other.len());
            bytes.splice(at..at, other[from..end].iter().copied());
        }
        7 => digits(bytes, at, random),
        _ => {
            let end = (at + some(random)).min(bytes.len());
            bytes[at..end].iter_mut().for_each(|byte| *byte = random.byte());
        }
    }
}

/// Replaces the next number in a text with another one.
fn digits(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|found| at + found) else { return };
    let end = bytes[start..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |found| start + found);
    let number = random.next() >> random.below(64);
    let text = ["0".into(), "1".into(), "-1".into(), u64::MAX.to_string(), number.to_string()];
    bytes.splice(start..end, text[random.below(text.len())].bytes());
}

/// Tries mutated inputs until the first failure.
#[expect(clippy::disallowed_methods, reason = "how long to try is real time; no input depends on it")]
pub fn run(target: Target, corpus: &[Vec<u8>], seed: u64, until: Until) -> Outcome {
    let begun = Instant::now();
    let mut outcome = Outcome::default();
    while match until {
        Until::Inputs(most) => outcome.inputs < most,
        Until::Elapsed(length) => begun.elapsed() < length,
    } {
        let bytes = input(corpus, seed, outcome.inputs);
        let before = Instant::now();
        let failure = failure_of(target, &bytes)
            .or_else(|| (before.elapsed() > MOST).then(|| format!("it took {:?}", before.elapsed())));
        if let Some(failure) = failure {
            outcome.failure = Some((outcome.inputs, bytes, failure));
            return outcome;
        }
        outcome.inputs += 1;
    }
    outcome
}

/// The error of a target for an input, if any.
pub fn failure_of((_, check): Target, bytes: &[u8]) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| check(bytes))).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.into())).unwrap_or_else(|| "a panic".into()))
}
