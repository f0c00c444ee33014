//! Damaged, cut and hostile files: never a panic, memory that does not follow a file's claims.

use crate::build::*;
use crate::random::Random;
use crate::seeds::seeds;
use sawtooth_capture::Reader;
use std::io::{Cursor, Read, repeat};

/// Reads all of `file`, if it is a capture, and checks what holds for any file.
pub fn survives(file: &[u8]) {
    let size = file.len() as u64;
    let Ok(mut reader) = Reader::new(Cursor::new(file.to_vec())) else { return };
    let mut segments = 0;
    while let Some(segment) = reader.next_segment() {
        segments += 1;
        assert!(segment.frame <= reader.counts().packets);
        assert!(segment.options.window_scale.is_none_or(|scale| scale <= 14));
    }
    let counts = reader.counts();
    assert_eq!(segments + counts.not_tcp + counts.fragments + counts.unreadable + counts.copies, counts.packets);
    assert!(counts.first_ns <= counts.last_ns);
    assert!(reader.problems().len() <= 101);
    assert!(reader.bytes_read() <= size);
    assert!(reader.next_segment().is_none(), "the end stays the end");
}

#[test]
fn every_cut_of_a_capture_gives_its_first_segments() {
    for (name, file) in seeds() {
        let whole = read(&file).0;
        assert!(!whole.is_empty(), "{name}");
        for length in 0..file.len() {
            survives(&file[..length]);
            let Ok(mut reader) = Reader::new(Cursor::new(file[..length].to_vec())) else { continue };
            let found: Vec<_> = std::iter::from_fn(|| reader.next_segment()).collect();
            assert!(whole.starts_with(&found), "{name} cut to {length} bytes");
        }
    }
}

#[test]
fn truncated_file_reports_packet_and_byte() {
    let file = pcap(1, &[plain(&[], 0), plain(&[], 0)]);
    let (segments, _, problems) = read(&file[..file.len() - 1]);
    assert_eq!(segments.len(), 1);
    assert_eq!(problems, ["packet 2, byte 94: the file ends here, 69 bytes into a record of at least 70"]);
    assert_eq!(read(&file[..94]).2, Vec::<String>::new());

    let order = Order::Little;
    let head = [section(order), interface(order, 1, 0, &[])].concat();
    let file = [head.clone(), enhanced_packet(order, 0, 1, &plain(&[], 0))].concat();
    let problems = read(&file[..file.len() - 1]).2;
    let length = file.len() - head.len();
    let expected =
        format!("packet 1, byte {}: the file ends inside a block of {length} bytes that begins here", head.len());
    assert_eq!(problems, [expected]);
}

#[test]
fn random_damage_never_panics() {
    let mut random = Random(4);
    let seeds = seeds();
    for _ in 0..20_000 {
        let mut file = seeds[random.below(seeds.len())].1.clone();
        for _ in 0..=random.below(8) {
            let at = random.below(file.len());
            match random.below(5) {
                0 => file[at] ^= 1 << random.below(8),
                1 => file[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                2 => file.truncate(at + 1),
                3 => drop(file.drain(at..(at + 1 + random.below(20)).min(file.len() - 1).max(at))),
                _ => drop(file.splice(at..at, vec![random.next() as u8; random.below(20)])),
            }
        }
        survives(&file);
    }
}

#[test]
fn record_above_maximum_length_is_damage() {
    let mut file = pcap(1, &[plain(&[], 0)]);
    file.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    let problems = read(&file).2;
    assert_eq!(problems, ["packet 2, byte 94: the record claims 4294967311 bytes: damaged from here on"]);
}

#[test]
fn impossible_block_lengths_are_damage() {
    let order = Order::Little;
    let head = [section(order), interface(order, 1, 0, &[])].concat();
    let mut differs = enhanced_packet(order, 0, 1, &plain(&[], 0));
    let length = differs.len();
    differs[length - 4] ^= 4;
    for (block, text) in [
        (vec![6, 0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0], "a block claims 11 bytes: damaged from here on"),
        (differs, "a block of 88 bytes that ends with 92: damaged from here on"),
    ] {
        let problems = read(&[head.as_slice(), &block].concat()).2;
        assert_eq!(problems, [format!("packet 1, byte {}: {text}", head.len())]);
    }
}

#[test]
fn inconsistent_packet_block_is_skipped() {
    let order = Order::Little;
    let good = enhanced_packet(order, 0, 1, &plain(&[], 5));
    for make in
        [enhanced_packet as fn(Order, u32, u64, &[u8]) -> Vec<u8>, |o, i, t, f| obsolete_packet(o, i as u16, t, f)]
    {
        let mut bad = make(order, 0, 1, &plain(&[], 0));
        bad[20] = 200;
        let file = [section(order), interface(order, 1, 0, &[]), bad, good.clone()].concat();
        let (segments, counts, problems) = read(&file);
        assert_eq!((segments.len(), segments[0].payload, counts.packets), (1, 5, 1));
        assert!(problems.len() == 1 && problems[0].ends_with("contradicts itself"), "{problems:?}");
    }
}

#[test]
fn gigabyte_block_is_skipped_without_buffering() {
    let order = Order::Little;
    let claim: u32 = 512 << 20;
    let head = [section(order), 6_u32.to_le_bytes().to_vec(), claim.to_le_bytes().to_vec()].concat();
    let stream = Cursor::new(head).chain(repeat(0).take(u64::from(claim) - 12)).chain(Cursor::new(claim.to_le_bytes()));
    let behind = [interface(order, 1, 0, &[]), enhanced_packet(order, 0, 1, &plain(&[], 0))].concat();
    let before = peak_memory_kib();
    let mut reader = Reader::new(stream.chain(Cursor::new(behind))).expect("a capture");
    assert!(reader.next_segment().is_some());
    assert_eq!(reader.problems(), ["packet 1, byte 28: a block of 536870912 bytes is left out"]);
    assert!(peak_memory_kib() - before < 64 << 10);
}

/// The largest resident memory of this process so far, KiB.
fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells memory in /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it reports the peak");
    line.trim().trim_end_matches(" kB").parse().expect("KiB")
}

#[test]
fn number_of_problems_and_interfaces_is_bounded() {
    let order = Order::Little;
    let stranger = enhanced_packet(order, 9_999, 1, &plain(&[], 0));
    let file = [section(order), interface(order, 1, 0, &[]).repeat(5_000), stranger.repeat(1_000)].concat();
    let problems = read(&file).2;
    assert_eq!(problems.len(), 101);
    assert_eq!(
        problems[0].split_once(": ").expect("place: text").1,
        "more than 4096 interfaces: this one's packets are left out"
    );
    assert_eq!(problems[100], "and 1804 more");
}
