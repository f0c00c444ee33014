//! The corpus replayed, and a quarter of a minute of mutated inputs for each target.

use sawtooth_fuzzing::mutate::{corpus, run, trouble};
use sawtooth_fuzzing::{TARGETS, Target, corpus as directory};
use std::time::Duration;

const LENGTH: Duration = Duration::from_secs(15);

fn seeds(name: &str) -> Vec<Vec<u8>> {
    corpus(&directory().join(name)).expect("the corpus is part of the sources")
}

fn target(name: &str) -> Target {
    *TARGETS.iter().find(|target| target.0 == name).expect("it is a target")
}

fn mutated(name: &str) {
    let outcome = run(target(name), &seeds(name), 1, LENGTH);
    if let Some((number, _, what)) = outcome.failure {
        panic!("input {number}: {what}; again: cargo run -p sawtooth-fuzzing -- {name} --only {number}");
    }
    assert!(outcome.inputs > 200, "{} inputs", outcome.inputs);
}

#[test]
fn mutated_captures_are_survived() {
    mutated("capture");
}

#[test]
fn mutated_talks_are_analysed() {
    mutated("analysis");
}

#[test]
fn mutated_scripts_are_survived() {
    mutated("packetdrill");
}

#[test]
fn mutated_scenarios_run_or_are_refused() {
    mutated("simulation");
}

#[test]
fn every_input_of_the_corpus_is_survived() {
    for target in TARGETS {
        let seeds = seeds(target.0);
        assert!(!seeds.is_empty(), "{}", target.0);
        for bytes in seeds {
            if let Some(what) = trouble(target, &bytes) {
                panic!("{}: {what}", target.0);
            }
        }
    }
}

#[test]
fn a_failure_is_found_and_found_again() {
    fn fails_on_a_seven(bytes: &[u8]) {
        assert!(!bytes.contains(&b'7'), "a seven");
    }
    let seeds = [b"[1, 22, 333]".to_vec()];
    let outcome = run(("sevens", fails_on_a_seven), &seeds, 3, LENGTH);
    let (number, bytes, what) = outcome.failure.expect("numbers are replaced by others");
    assert_eq!((what.as_str(), number), ("a seven", outcome.inputs));
    assert_eq!(sawtooth_fuzzing::mutate::input(&seeds, 3, number), bytes);
}
