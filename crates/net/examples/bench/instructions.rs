//! Instructions for each delivered data packet, counted by valgrind: unlike time they do not depend on what else runs.

use crate::cases::Case;
use std::collections::BTreeMap;
use std::process::{Command, ExitCode};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/bench/instructions.txt");
/// Another compiler makes other code: then the figures are only shown.
const COMPILER: &str = "compiler";
/// A larger increase over the recorded value is a regression.
const TOLERANCE: f64 = 1.03;
/// Each case is run for this part of its usual length.
pub const PART: u64 = 15;

fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output();
    output.map_or_else(|_| "unknown".into(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Recorded values: `name: figure` per line.
fn filed() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(FILE).unwrap_or_default();
    text.lines().filter_map(|line| line.split_once(": ")).map(|(name, value)| (name.into(), value.into())).collect()
}

/// Runs this program again under callgrind for one case; instructions for each packet.
fn count(case: &Case) -> f64 {
    let program = std::env::current_exe().expect("a running program has a path");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--packets", &case.name])
        .output()
        .expect("valgrind was there a moment ago");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let packets: f64 = stdout.trim().parse().expect("the program tells how many packets were delivered");
    let collected = stderr.lines().find_map(|line| line.split_once("Collected : ")).expect("callgrind tells a total");
    collected.1.trim().parse::<f64>().expect("the total is a number") / packets
}

/// Compares all `cases` with the figures on file, or writes them there.
pub fn run(cases: &[Case], record: bool) -> ExitCode {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("skipped: instructions are counted by valgrind, which is not installed");
        return ExitCode::SUCCESS;
    }
    let (mut filed, compiler) = (filed(), compiler());
    let comparable = filed.get(COMPILER).is_some_and(|known| *known == compiler);
    let mut worse = false;
    println!("{:42} {:>22} {:>10}", "case", "instructions/packet", "on file");
    for case in cases {
        let counted = count(case).round();
        let known = filed.get(&case.name).cloned();
        worse |=
            known.as_ref().and_then(|known| known.parse::<f64>().ok()).is_some_and(|known| counted > TOLERANCE * known);
        println!("{:42} {counted:>22} {:>10}", case.name, known.unwrap_or_default());
        filed.insert(case.name.clone(), counted.to_string());
    }
    if record {
        filed.insert(COMPILER.into(), compiler);
        let lines: String = filed.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
        std::fs::write(FILE, lines).expect("the file can be written");
    } else if !comparable {
        println!("the figures on file are not of this compiler ({compiler}): not judged");
    } else if worse {
        eprintln!("some cases take more than {:.0}% more instructions than on file", 100.0 * (TOLERANCE - 1.0));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
