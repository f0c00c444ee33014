//! `packetdrill [--hz=N] DIRECTORY…`: runs every script under the directories and prints a table in Markdown.
//!
//! `--hz` is the kernel's ticks per second, by default 1000; scripts do not contain it. Exit status: 0 if no script
//! failed, 1 if some failed, 2 if there is nothing to run.

use sawtooth_packetdrill::{host, run, verdict};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut hz = Some(host::HZ);
    let mut roots = Vec::new();
    for argument in std::env::args_os().skip(1) {
        match argument.to_str().and_then(|text| text.strip_prefix("--")) {
            Some(option) => {
                hz = option.strip_prefix("hz=").and_then(|ticks| ticks.parse().ok()).filter(|ticks| *ticks > 0);
            }
            None => roots.push(PathBuf::from(argument)),
        }
    }
    let (Some(hz), false) = (hz, roots.is_empty()) else {
        eprintln!("usage: packetdrill [--hz=N] DIRECTORY…  (plays every *.pkt below them to the simulated sender)");
        return ExitCode::from(2);
    };
    match play_all(&roots, hz) {
        Ok(outcomes) if outcomes.is_empty() => {
            eprintln!("packetdrill: no *.pkt in there");
            ExitCode::from(2)
        }
        Ok(outcomes) => {
            let (text, totals) = verdict::table(&outcomes);
            println!("{text}");
            let applicable = totals.passed + totals.failed;
            println!(
                "{} of {applicable} applicable scripts passed, {} failed; {} of {} are not applicable.",
                totals.passed,
                totals.failed,
                totals.not_applicable,
                outcomes.len()
            );
            ExitCode::from(u8::from(totals.failed > 0))
        }
        Err(error) => {
            eprintln!("packetdrill: {error}");
            ExitCode::from(2)
        }
    }
}

fn play_all(roots: &[PathBuf], hz: u32) -> Result<Vec<(String, verdict::Outcome)>, String> {
    let mut outcomes = Vec::new();
    for root in roots {
        let mut scripts = Vec::new();
        find(root, &mut scripts).map_err(|error| format!("{}: {error}", root.display()))?;
        scripts.sort();
        let above = root.parent().unwrap_or(Path::new(""));
        for script in scripts {
            let text = std::fs::read_to_string(&script).map_err(|error| format!("{}: {error}", script.display()))?;
            let name = script.strip_prefix(above).unwrap_or(&script).with_extension("");
            outcomes.push((name.display().to_string(), run(&text, hz)));
        }
    }
    Ok(outcomes)
}

fn find(root: &Path, scripts: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(root)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, scripts)?;
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            scripts.push(path);
        }
    }
    Ok(())
}
