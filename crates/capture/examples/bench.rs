//! Speed of reading: segments out of captures that are made in memory, for each CPU second of one core.
//!
//! `cargo run --release -p sawtooth-capture --example bench`

use sawtooth_capture::segment::{ACK, PSH};
use sawtooth_capture::{Endpoint, HEADERS_ONLY, Options, Reader, Segment, Writer};
use std::io::{Cursor, Write};
use std::time::Duration;

/// Bytes of a capture, about.
const SIZE: usize = 256 << 20;
/// Number of times that a capture is read; the fastest counts.
const REPETITIONS: usize = 5;
const FULL: u32 = 65_535;

/// CPU time of this process so far, user and system.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux tells CPU time in /proc");
    let nanos = stat.split_whitespace().next().and_then(|field| field.parse().ok()).expect("nanoseconds come first");
    Duration::from_nanos(nanos)
}

/// Data one way, an acknowledgement with a SACK block the other way after every second segment.
fn segment(index: u64) -> Segment {
    let sender = Endpoint { address: [10, 0, 0, 1].into(), port: 4_711 };
    let receiver = Endpoint { address: [10, 0, 1, 1].into(), port: 5_201 };
    let acknowledges = index % 3 == 2;
    let (source, target) = if acknowledges { (receiver, sender) } else { (sender, receiver) };
    let mut options = Options::default();
    options.timestamps = Some((index as u32, index as u32));
    if acknowledges {
        options.add_sack(index as u32, index as u32 + 1_448);
    }
    Segment {
        frame: index + 1,
        time_ns: 1_700_000_000_000_000_000 + index * 1_000,
        source,
        target,
        seq: index as u32 * 1_448,
        ack: 1,
        flags: if acknowledges { ACK } else { ACK | PSH },
        window: 512,
        payload: if acknowledges { 0 } else { 1_448 },
        options,
        ip_id: Some(index as u16),
        ttl: 64,
        ecn: 0,
        via: 0,
        cut: false,
    }
}

fn pcap(snaplen: u32) -> Vec<u8> {
    let mut writer = Writer::new(Vec::with_capacity(SIZE + (1 << 16)), snaplen).expect("memory takes all");
    let record = if snaplen == FULL { 1_053 } else { 111 };
    for index in 0..SIZE / record {
        writer.write(&segment(index as u64)).expect("memory takes all");
    }
    writer.finish().expect("memory takes all")
}

/// The packets of a pcap file in enhanced packet blocks with the option that tells their direction, as systems write.
fn pcapng(pcap: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(pcap.len() * 3 / 2);
    let mut block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_le_bytes();
        for part in [&kind.to_le_bytes(), &length, body, &length] {
            file.extend_from_slice(part);
        }
    };
    block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    // Nanoseconds.
    block(1, &[1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    let mut rest = &pcap[24..];
    let mut body = Vec::new();
    while let Some((head, behind)) = rest.split_first_chunk::<16>() {
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let ticks = u64::from(word(0)) * 1_000_000_000 + u64::from(word(4));
        let (packet, next) = behind.split_at(word(8) as usize);
        body.clear();
        for value in [0, (ticks >> 32) as u32, ticks as u32, word(8), word(12)] {
            body.extend_from_slice(&value.to_le_bytes());
        }
        body.extend_from_slice(packet);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend_from_slice(&[2, 0, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        block(6, &body);
        rest = next;
    }
    file
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).and_then(|()| packed.finish()).expect("memory takes all")
}

fn measure(name: &str, unpacked: usize, file: Vec<u8>) {
    let mut best = Duration::MAX;
    let mut packets = 0;
    let file: &'static [u8] = file.leak();
    for _ in 0..REPETITIONS {
        let start = cpu_time();
        let mut reader = Reader::new(Cursor::new(file)).expect("it was just written");
        while let Some(segment) = reader.next_segment() {
            std::hint::black_box(segment);
        }
        best = best.min(cpu_time() - start);
        packets = reader.counts().packets;
        assert!(reader.problems().is_empty(), "{:?}", reader.problems());
    }
    let seconds = best.as_secs_f64();
    let (megabytes, millions) = (unpacked as f64 / 1e6 / seconds, packets as f64 / 1e6 / seconds);
    println!("{name:26} {megabytes:10.0} {millions:18.2}");
}

fn main() {
    println!("{:26} {:>10} {:>18}", "capture", "MB/CPU s", "million packets/s");
    for (name, snaplen) in [("full packets", FULL), ("headers only", HEADERS_ONLY)] {
        let file = pcap(snaplen);
        let ng = pcapng(&file);
        measure(&format!("{name}, pcapng"), ng.len(), ng);
        if snaplen == HEADERS_ONLY {
            // Payloads of zeros would make unpacking look faster than it is.
            let zst = zstd::encode_all(&file[..], 3).expect("memory takes all");
            measure(&format!("{name}, pcap.gz"), file.len(), gzip(&file));
            measure(&format!("{name}, pcap.zst"), file.len(), zst);
        }
        measure(&format!("{name}, pcap"), file.len(), file);
    }
}
