//! Runs the corpus, and mutated inputs for each target, for about ten seconds; the same inputs on every machine.

use sawtooth_fuzzing::mutate::{Until, corpus, failure_of, run};
use sawtooth_fuzzing::{TARGETS, Target, corpus as directory};

fn seeds(name: &str) -> Vec<Vec<u8>> {
    corpus(&directory().join(name)).expect("the corpus is part of the sources")
}

fn target(name: &str) -> Target {
    *TARGETS.iter().find(|target| target.0 == name).expect("it is a target")
}

fn mutated(name: &str, inputs: u64) {
    let outcome = run(target(name), &seeds(name), 1, Until::Inputs(inputs));
    if let Some((number, _, what)) = outcome.failure {
        panic!("input {number}: {what}; again: cargo run -p sawtooth-fuzzing -- {name} --only {number}");
    }
    assert_eq!(outcome.inputs, inputs);
}

#[test]
fn mutated_captures_do_not_panic() {
    mutated("capture", 120_000);
}

#[test]
fn mutated_captures_are_analyzed() {
    mutated("analysis", 40_000);
}

#[test]
fn mutated_scripts_do_not_panic() {
    mutated("packetdrill", 200_000);
}

#[test]
fn mutated_scenarios_run_or_are_refused() {
    mutated("simulation", 2_000);
}

#[test]
fn mutated_senders_are_replayed() {
    mutated("replay", 8_000);
}

#[test]
fn corpus_inputs_do_not_panic() {
    for target in TARGETS {
        let seeds = seeds(target.0);
        assert!(!seeds.is_empty(), "{}", target.0);
        for bytes in seeds {
            if let Some(what) = failure_of(target, &bytes) {
                panic!("{}: {what}", target.0);
            }
        }
    }
}

#[test]
fn failure_is_found_and_reproduced() {
    fn fails_on_seven(bytes: &[u8]) {
        assert!(!bytes.contains(&b'7'), "a seven");
    }
    let seeds = [b"[1, 22, 333]".to_vec()];
    let outcome = run(("sevens", fails_on_seven), &seeds, 3, Until::Inputs(10_000));
    let (number, bytes, what) = outcome.failure.expect("numbers are replaced by others");
    assert_eq!((what.as_str(), number), ("a seven", outcome.inputs));
    assert_eq!(sawtooth_fuzzing::mutate::input(&seeds, 3, number), bytes);
}
