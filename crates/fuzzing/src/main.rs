//! `mutate [--seconds N] [--seed S] [--only I] [TARGET…]`: tries mutated inputs on each target, or only input number I.
//! A failing input is written to `target/fuzz/`; when the error is fixed, move it to the corpus.

use sawtooth_fuzzing::mutate::{Until, corpus, input, run};
use sawtooth_fuzzing::{TARGETS, Target};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "mutate [--seconds N] [--seed S] [--only I] [TARGET…]";

struct Options {
    seconds: u64,
    seed: u64,
    only: Option<u64>,
    targets: Vec<Target>,
}

fn parse_arguments(arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options { seconds: 60, seed: 1, only: None, targets: Vec::new() };
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next()?.parse().ok();
        match argument.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            "--only" => options.only = Some(number()?),
            name => options.targets.push(*TARGETS.iter().find(|target| target.0 == name)?),
        }
    }
    if options.targets.is_empty() {
        options.targets = TARGETS.to_vec();
    }
    Some(options)
}

fn main() -> ExitCode {
    let Some(options) = parse_arguments(std::env::args().skip(1)) else {
        let names = TARGETS.map(|target| target.0).join(", ");
        eprintln!("{USAGE}\ntargets: {names}");
        return ExitCode::from(2);
    };
    let mut failed = false;
    for target in options.targets {
        let name = target.0;
        let seeds = match corpus(&sawtooth_fuzzing::corpus().join(name)) {
            Ok(seeds) => seeds,
            Err(error) => {
                eprintln!("{name}: no corpus: {error}");
                return ExitCode::FAILURE;
            }
        };
        if let Some(number) = options.only {
            (target.1)(&input(&seeds, options.seed, number));
            continue;
        }
        let outcome = run(target, &seeds, options.seed, Until::Elapsed(Duration::from_secs(options.seconds)));
        println!("{name}: {} inputs in {} s, seed {}", outcome.inputs, options.seconds, options.seed);
        if let Some((number, bytes, what)) = outcome.failure {
            failed = true;
            let kept = format!("target/fuzz/{name}-{}-{number}", options.seed);
            let written = std::fs::create_dir_all("target/fuzz").and_then(|()| std::fs::write(&kept, bytes));
            println!("{name}: input {number}: {what}");
            println!("{}", written.map_or_else(|error| error.to_string(), |()| format!("kept in {kept}")));
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
