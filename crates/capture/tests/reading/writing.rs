//! The writer's output: read again by this crate, and its headers by another one.

use crate::build::read;
use crate::random::Random;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use sawtooth_capture::segment::{ACK, SYN};
use sawtooth_capture::{Endpoint, HEADERS_ONLY, Options, Segment, Writer};

/// Enough for a whole frame.
const FULL: u32 = 100_000;
const RECORD: usize = 24 + 16;

fn write(segments: &[Segment], snaplen: u32) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), snaplen).expect("memory takes all");
    for segment in segments {
        writer.write(segment).expect("memory takes all");
    }
    writer.finish().expect("memory takes all")
}

fn segment(flags: u8, options: Options, payload: u32) -> Segment {
    let [source, target] = [[10, 0, 0, 1], [10, 0, 1, 1]].map(|address| Endpoint { address: address.into(), port: 80 });
    let (time_ns, ip_id) = (1_700_000_000_123_456_789, Some(9));
    let (frame, seq, ack, window, ttl, ecn, cut) = (1, 7, 8, 512, 64, 2, false);
    Segment { frame, time_ns, source, target, seq, ack, flags, window, payload, options, ip_id, ttl, ecn, via: 0, cut }
}

fn options_of(file: &[u8]) -> &[u8] {
    let tcp = &file[RECORD + 14 + 20..];
    &tcp[20..usize::from(tcp[12] >> 4) * 4]
}

#[test]
fn written_segments_read_back_unchanged() {
    let mut random = Random(1);
    let segments: Vec<Segment> = (1..=2_000).map(|frame| random.segment(frame)).collect();
    let headers_over_ipv6 = 14 + 40 + 60;
    let (found, counts, problems) = read(&write(&segments, headers_over_ipv6));
    assert_eq!(found, segments);
    assert_eq!((counts.packets, problems.len()), (2_000, 0));
    assert_eq!(read(&write(&segments[..50], FULL)).0, segments[..50]);
}

#[test]
fn etherparse_confirms_checksums_and_fields() {
    let mut random = Random(2);
    for _ in 0..500 {
        let segment = random.segment(1);
        let file = write(&[segment], FULL);
        let packet = SlicedPacket::from_ethernet(&file[RECORD..]).expect("a whole packet");
        let Some(TransportSlice::Tcp(tcp)) = packet.transport else { panic!("not TCP") };
        let checksum = match packet.net.expect("IP") {
            NetSlice::Ipv4(ip) => {
                let header = ip.header().to_header();
                assert_eq!(header.header_checksum, header.calc_header_checksum());
                assert!(header.dont_fragment);
                tcp.calc_checksum_ipv4(ip.header().source(), ip.header().destination())
            }
            NetSlice::Ipv6(ip) => tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination()),
            NetSlice::Arp(_) => panic!("not IP"),
        };
        assert_eq!(tcp.checksum(), checksum.expect("a length that fits"));
        assert_eq!((tcp.sequence_number(), tcp.window_size()), (segment.seq, segment.window));
        assert_eq!(tcp.payload().len(), segment.payload as usize);
        assert!(tcp.options_iterator().all(|option| option.is_ok()));
    }
}

#[test]
fn options_are_laid_out_as_linux_does() {
    let mut syn = Options::default();
    (syn.mss, syn.window_scale, syn.sack_permitted) = (Some(1_460), Some(7), true);
    syn.timestamps = Some((1, 2));
    let expected = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7];
    assert_eq!(options_of(&write(&[segment(SYN, syn, 0)], FULL)), expected);

    syn.timestamps = None;
    let expected = [2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 7];
    assert_eq!(options_of(&write(&[segment(SYN, syn, 0)], FULL)), expected);

    let mut ack = Options::default();
    ack.timestamps = Some((1, 2));
    ack.add_sack(3, 4);
    let expected = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 10, 0, 0, 0, 3, 0, 0, 0, 4];
    assert_eq!(options_of(&write(&[segment(ACK, ack, 0)], FULL)), expected);
}

#[test]
fn three_sack_blocks_fit_beside_timestamps() {
    let mut options = Options::default();
    (0..4).for_each(|block| options.add_sack(block, block + 1));
    assert_eq!(read(&write(&[segment(ACK, options, 0)], HEADERS_ONLY)).0[0].options.sacks().len(), 4);
    options.timestamps = Some((1, 2));
    assert_eq!(read(&write(&[segment(ACK, options, 0)], HEADERS_ONLY)).0[0].options.sacks().len(), 3);
}

#[test]
fn headers_only_keeps_96_bytes_and_reports_the_length_on_the_wire() {
    let file = write(&[segment(ACK, Options::default(), 1_448)], HEADERS_ONLY);
    assert_eq!(file.len(), RECORD + 96);
    let (segments, counts, _) = read(&file);
    assert_eq!((segments[0].payload, segments[0].cut), (1_448, false));
    assert_eq!((counts.bytes_on_wire, counts.truncated), (14 + 20 + 20 + 1_448, 1));
}

#[test]
fn super_packet_has_its_frame_length() {
    let written = segment(ACK, Options::default(), 200_000);
    assert_eq!(read(&write(&[written], HEADERS_ONLY)).0, [written]);
}

#[test]
fn unrepresentable_segments_are_errors() {
    let mut writer = Writer::new(Vec::new(), FULL).expect("memory takes all");
    let good = segment(ACK, Options::default(), 0);
    let late = Segment { time_ns: (1 << 32) * 1_000_000_000, ..good };
    let mixed = Segment { target: Endpoint { address: [0; 16].into(), port: 1 }, ..good };
    for segment in [late, mixed] {
        let error = writer.write(&segment).expect_err("no place for it");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
    assert_eq!(writer.finish().expect("memory takes all").len(), 24);
}
