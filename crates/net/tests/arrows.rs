//! Which folder of `src` knows which: the engine drives the hosts and the network, the hosts hand packets to the
//! network, and what observes is known to whom it serves. Nothing knows what is above it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What each part may name beside itself and the ground: the scenario, packets, the calendar, the generators and
/// the sizes of frames.
const ARROWS: &[(&str, &[&str])] = &[
    ("engine", &["hosts", "network", "sampling", "sinks"]),
    ("sampling", &["hosts", "network", "sinks"]),
    ("hosts", &["network", "sinks"]),
    ("network", &["sinks"]),
    ("sinks", &[]),
    ("ground", &[]),
];

/// The part that `crate::folder::file` belongs to.
fn part(folder: &str, file: &str) -> &'static str {
    match (folder, file) {
        ("engine", _) => "engine",
        ("hosts", _) => "hosts",
        ("network", _) => "network",
        ("observe", "sampling") => "sampling",
        ("observe", _) => "sinks",
        ("calendar" | "frames" | "packet" | "rng" | "scenario", _) => "ground",
        _ => panic!("crate::{folder}::{file} is of no part"),
    }
}

fn words(path: &str) -> (&str, &str) {
    let mut words = path.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    (words.next().unwrap_or(""), words.next().unwrap_or(""))
}

/// The parts that the code of a file names.
fn named(source: &str) -> BTreeSet<&'static str> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let paths = code.flat_map(|line| line.split("crate::").skip(1));
    paths.map(words).map(|(folder, file)| part(folder, file)).collect()
}

fn sources(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            let folder = entry.file_name().into_string().unwrap();
            found.extend(sources(&entry.path()).into_iter().map(|(name, text)| (format!("{folder}/{name}"), text)));
        } else {
            let name = entry.file_name().into_string().unwrap();
            found.push((name, fs::read_to_string(entry.path()).unwrap()));
        }
    }
    found
}

#[test]
fn dependencies_point_down_only() {
    let all = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(all.len() > 20, "the sources are there");
    let mut up = Vec::new();
    for (name, text) in all.iter().filter(|(name, _)| name != "lib.rs") {
        assert!(!text.contains("super::super"), "{name} names another folder by the way up");
        let (folder, file) = name.split_once('/').unwrap_or((name, ""));
        let own = part(folder.trim_end_matches(".rs"), file.trim_end_matches(".rs"));
        let allowed = ARROWS.iter().find(|(part, _)| *part == own).unwrap().1;
        let down = |part: &str| part == own || part == "ground" || allowed.contains(&part);
        up.extend(named(text).into_iter().filter(|part| !down(part)).map(|part| (name.clone(), part)));
    }
    assert_eq!(up, []);
}
