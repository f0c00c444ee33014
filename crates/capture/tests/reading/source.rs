//! Packed and unpacked streams.

use crate::build::*;
use sawtooth_capture::Reader;
use std::io::{Cursor, Write};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).and_then(|()| packed.finish()).expect("memory takes all")
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("memory takes all")
}

fn sample() -> Vec<u8> {
    let frames: Vec<_> = (0..1_000).map(|payload| plain(&[], payload)).collect();
    pcap(1, &frames)
}

#[test]
fn gzip_and_zstandard_are_unpacked_also_in_several_members() {
    let file = sample();
    let expected = read(&file);
    assert_eq!(expected.0.len(), 1_000);
    for pack in [gzip, zstandard] {
        assert_eq!(read(&pack(&file)), expected);
        let members = [pack(&file[..700]), pack(&file[700..2_000]), pack(&file[2_000..])].concat();
        assert_eq!(read(&members), expected);
    }
}

#[test]
fn a_packed_stream_that_breaks_gives_what_came_before_and_says_where() {
    for pack in [gzip, zstandard] {
        let packed = pack(&sample());
        let (segments, _, problems) = read(&packed[..packed.len() - 20]);
        assert!(segments.iter().zip(read(&sample()).0).all(|(part, whole)| *part == whole));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with(&format!("packet {}, byte ", segments.len() + 1)), "{problems:?}");
    }
}

#[test]
fn progress_is_told_in_bytes_of_the_file_as_it_is() {
    for file in [sample(), gzip(&sample()), zstandard(&sample())] {
        let size = file.len() as u64;
        let mut reader = Reader::new(Cursor::new(file)).expect("a capture");
        while reader.next_segment().is_some() {}
        assert_eq!((reader.bytes_read(), reader.size()), (size, None));
    }
}

#[test]
fn a_file_tells_its_size() {
    let path = std::env::temp_dir().join(format!("sawtooth-size-{}.pcap", std::process::id()));
    std::fs::write(&path, sample()).expect("a temporary file");
    let reader = Reader::open(path.to_str().expect("a plain path"));
    std::fs::remove_file(&path).expect("it was just written");
    assert_eq!(reader.expect("a capture").size(), Some(sample().len() as u64));
}

/// Gives one byte at a time, as a slow pipe does.
struct Slow(Cursor<Vec<u8>>);

impl std::io::Read for Slow {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let length = bytes.len().min(1);
        self.0.read(&mut bytes[..length])
    }
}

#[test]
fn a_stream_that_comes_byte_by_byte_reads_the_same() {
    for file in [sample(), gzip(&sample()), zstandard(&sample())] {
        let expected = read(&file).0;
        let mut reader = Reader::new(Slow(Cursor::new(file))).expect("a capture");
        let segments: Vec<_> = std::iter::from_fn(|| reader.next_segment()).collect();
        assert_eq!(segments, expected);
    }
}
