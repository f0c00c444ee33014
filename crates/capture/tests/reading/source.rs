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
fn gzip_and_zstandard_with_several_members_are_unpacked() {
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
fn broken_compressed_stream_gives_its_first_packets_and_the_offset() {
    for pack in [gzip, zstandard] {
        let packed = pack(&sample());
        let (segments, _, problems) = read(&packed[..packed.len() - 20]);
        assert!(segments.iter().zip(read(&sample()).0).all(|(part, whole)| *part == whole));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with(&format!("packet {}, byte ", segments.len() + 1)), "{problems:?}");
    }
}

#[test]
fn progress_counts_compressed_bytes() {
    for file in [sample(), gzip(&sample()), zstandard(&sample())] {
        let size = file.len() as u64;
        let mut reader = Reader::new(Cursor::new(file)).expect("a capture");
        while reader.next_segment().is_some() {}
        assert_eq!((reader.bytes_read(), reader.size()), (size, None));
    }
}

#[test]
fn file_size_is_reported() {
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
fn stream_of_single_bytes_reads_the_same() {
    for file in [sample(), gzip(&sample()), zstandard(&sample())] {
        let expected = read(&file).0;
        let mut reader = Reader::new(Slow(Cursor::new(file))).expect("a capture");
        let segments: Vec<_> = std::iter::from_fn(|| reader.next_segment()).collect();
        assert_eq!(segments, expected);
    }
}

/// A stream that packs to next to nothing: `head`, then `again` so often that there are `length` bytes.
fn bomb(head: &[u8], again: &[u8], length: usize, zstd: bool) -> Vec<u8> {
    let chunk = again.repeat((1 << 20) / again.len());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut zstandard = zstd::Encoder::new(Vec::new(), 3).expect("a level");
    let target: &mut dyn Write = if zstd { &mut zstandard } else { &mut gzip };
    target.write_all(head).expect("memory takes all");
    for _ in 0..length / chunk.len() {
        target.write_all(&chunk).expect("memory takes all");
    }
    if zstd { zstandard.finish() } else { gzip.finish() }.expect("memory takes all")
}

#[test]
fn zero_records_are_not_packets() {
    let mut file = sample();
    file.resize(file.len() + 1_000, 0);
    for file in [file.clone(), gzip(&file), zstandard(&file)] {
        let (segments, counts, problems) = read(&file);
        assert_eq!((segments.len(), counts.packets), (1_000, 1_000));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].ends_with("zeros, which are no packet: damaged from here on"), "{problems:?}");
    }
}

#[test]
fn decompression_bomb_ends_with_a_problem() {
    let header = &sample()[..24];
    // A packet of 60 bytes on the wire of which nothing was kept, at one second, again and again.
    let record = [1_u32, 0, 0, 60].map(u32::to_le_bytes).concat();
    let section = [0x0a0d_0d0a_u32, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28].map(u32::to_le_bytes).concat();
    let block = [0x0bad_u32, 16, 0, 16].map(u32::to_le_bytes).concat();
    for zstd in [false, true] {
        for (head, again, says) in
            [(header, &record, "no packets take so little"), (&section[..], &block, "no packets take so little")]
        {
            let (_, counts, problems) = read(&bomb(head, again, 256 << 20, zstd));
            assert!(counts.packets < 4 << 20, "{counts:?}");
            assert_eq!(problems.len(), 1);
            assert!(problems[0].ends_with(says), "{problems:?}");
        }
    }
    // One block of zeros, as long as can be said.
    let block = [&section[..], &0x0bad_u32.to_le_bytes(), &0xffff_fff0_u32.to_le_bytes()].concat();
    let (_, _, problems) = read(&bomb(&block, &[0], 2 << 30, true));
    assert_eq!(problems.len(), 1);
    assert!(problems[0].ends_with("no capture expands this much"), "{problems:?}");
}

#[test]
fn double_and_unsupported_compression_is_named() {
    let twice = [gzip(&gzip(&sample())), zstandard(&gzip(&sample())), gzip(&zstandard(&sample()))];
    for (file, says) in [
        (&twice[0][..], "gzip a second time"),
        (&twice[1], "gzip a second time"),
        (&twice[2], "Zstandard a second time"),
        (b"\xfd7zXZ\0 and so on, for as long as a header is", "xz"),
        (b"BZh91AY&SY and so on, for as long as a header is", "bzip2"),
    ] {
        let refused = Reader::new(Cursor::new(file.to_vec())).err().expect("no capture").to_string();
        let whole = format!("not-a-capture: it is packed with {says}, which is not read here: unpack it first");
        assert_eq!(refused, whole);
    }
}
