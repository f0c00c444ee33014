//! Small captures of every kind, to begin mutations from.

use crate::build::*;
use crate::random::Random;
use crate::tunnels;
use sawtooth_capture::Writer;
use std::io::Write;

const OPTIONS: [u8; 24] = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 10, 0, 0, 0, 3, 0, 0, 0, 4];

/// Name and bytes of each.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let (four, six) = (ipv4(6, &tcp(&OPTIONS, 4)), ipv6(6, &tcp(&OPTIONS, 4)));
    let frames = [ethernet(&[8, 0], &four), ethernet(&[0x81, 0, 0, 5, 0x86, 0xdd], &six)];
    let cooked = [&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0], four.as_slice()].concat();
    let cooked_2 = [&[0x86, 0xdd, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], six.as_slice()].concat();
    let extensions =
        [&[43, 0, 1, 4, 0, 0, 0, 0, 44, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 1], &*tcp(&[], 4)].concat();
    let jumbo = [&[6, 0, 0xc2, 4, 0, 1, 0x11, 0x70], &*tcp(&[], 4)].concat();
    let big = [pcap_header(Order::Big, NANOSECONDS, 1), pcap_record(Order::Big, &frames[0][..60], 90)].concat();
    let plain = pcap(1, &frames);
    vec![
        ("pcap", plain.clone()),
        ("pcap-big-nanoseconds", big),
        ("pcap-written", written()),
        ("pcap-raw", pcap(101, &[four.clone(), six, ipv6(0, &extensions), ipv6(0, &jumbo)])),
        ("pcap-cooked", pcap(113, &[cooked])),
        ("pcap-cooked-2", pcap(276, &[cooked_2])),
        ("pcap-loopback", pcap(0, &[[&[2, 0, 0, 0], four.as_slice()].concat()])),
        ("pcap-ppp", pcap(9, &[[&[0xff, 3, 0, 0x21], four.as_slice()].concat()])),
        ("pcap-tunnels", pcap(101, &tunnels::packets().into_iter().map(|(_, packet)| packet).collect::<Vec<_>>())),
        ("pcapng-little", pcapng(Order::Little, &frames)),
        ("pcapng-big", pcapng(Order::Big, &frames)),
        ("pcapng-sections", [pcapng(Order::Big, &frames), pcapng(Order::Little, &frames)].concat()),
        ("pcap-gzip", gzip(&plain)),
        ("pcap-zstandard", zstd::encode_all(&plain[..], 3).expect("memory takes all")),
    ]
}

fn written() -> Vec<u8> {
    let mut random = Random(3);
    let mut writer = Writer::new(Vec::new(), 114).expect("memory takes all");
    for frame in 1..=5 {
        writer.write(&random.segment(frame)).expect("memory takes all");
    }
    writer.finish().expect("memory takes all")
}

fn pcapng(order: Order, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = [section(order), interface(order, 1, 0, &[(9, &[9]), (14, &[0; 8])])].concat();
    file.extend(block(order, 4, &[0; 8]));
    for frame in frames {
        file.extend(enhanced_packet(order, 0, 1 << 40, frame));
        file.extend(simple_packet(order, frame, frame.len() as u32));
        file.extend(obsolete_packet(order, 0, 1 << 41, frame));
    }
    file
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).and_then(|()| packed.finish()).expect("memory takes all")
}
