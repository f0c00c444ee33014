//! The corpus of the coverage-guided fuzzer (fuzz/), replayed: the seeds, and what the fuzzer found on its own.

use crate::damage::survives;
use crate::seeds::seeds;
use std::path::PathBuf;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/capture")
}

#[test]
fn reader_accepts_every_corpus_file() {
    let mut files = 0;
    for entry in std::fs::read_dir(directory()).expect("the corpus is part of the sources") {
        survives(&std::fs::read(entry.expect("an entry").path()).expect("a file"));
        files += 1;
    }
    assert!(files >= seeds().len());
}

#[test]
fn every_seed_is_in_the_corpus() {
    for (name, bytes) in seeds() {
        let file = std::fs::read(directory().join(name)).unwrap_or_default();
        assert!(file == bytes, "{name}: write it with `cargo test -p sawtooth-capture --test reading -- --ignored`");
    }
}

#[test]
#[ignore = "writes the seeds into the corpus"]
fn write_the_seeds() {
    std::fs::create_dir_all(directory()).expect("a directory");
    for (name, bytes) in seeds() {
        std::fs::write(directory().join(name), bytes).expect("a file");
    }
}
