//! Link layers, IP and TCP.

use crate::build::*;
use sawtooth_capture::LinkType;
use sawtooth_capture::segment::ACK;
use std::net::IpAddr;

fn one(link: u32, frame: Vec<u8>) -> sawtooth_capture::Segment {
    read_one(&pcap(link, &[frame]))
}

#[test]
fn header_fields_follow_the_rfcs() {
    let segment = one(1, plain(&[], 9));
    assert_eq!((segment.source.address, segment.target.address), ([10, 0, 0, 1].into(), [10, 0, 0, 2].into()));
    assert_eq!((segment.source.port, segment.target.port), (1_000, 2_000));
    assert_eq!((segment.seq, segment.ack, segment.flags, segment.window), (1, 2, ACK, 3));
    assert_eq!((segment.ip_id, segment.ttl, segment.ecn, segment.cut), (Some(7), 64, 1, false));
    let segment = one(1, ethernet(&[0x86, 0xdd], &ipv6(6, &tcp(&[], 9))));
    let address = |end| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, end]);
    assert_eq!((segment.source.address, segment.target.address), (address(1), address(2)));
    assert_eq!((segment.ip_id, segment.ttl, segment.ecn, segment.payload), (None, 64, 1, 9));
}

#[test]
fn every_link_layer_is_read() {
    let (four, six) = (ipv4(6, &tcp(&[], 9)), ipv6(6, &tcp(&[], 9)));
    let behind = |head: &[u8], packet: &[u8]| [head, packet].concat();
    let cooked = |end: &[u8], packet: &[u8]| [&[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], end, packet].concat();
    let cooked_2 = |protocol: &[u8], tag: &[u8], packet: &[u8]| {
        [protocol, &[0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], tag, packet].concat()
    };
    for (link, frame) in [
        (1, ethernet(&[0x81, 0, 0, 5, 8, 0], &four)),
        (1, ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 0x86, 0xdd], &six)),
        (1, ethernet(&[0x91, 0, 0, 5, 0x81, 0, 0, 6, 8, 0], &four)),
        (1, ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 51, 0, 0x21], &four)),
        (113, cooked(&[8, 0], &four)),
        (113, cooked(&[0x81, 0, 0, 5, 0x86, 0xdd], &six)),
        (276, cooked_2(&[8, 0], &[], &four)),
        (276, cooked_2(&[0x86, 0xdd], &[], &six)),
        (276, cooked_2(&[0x81, 0], &[0, 5, 8, 0], &four)),
        (12, four.clone()),
        (14, six.clone()),
        (101, four.clone()),
        (101, six.clone()),
        (228, four.clone()),
        (229, six.clone()),
        (0, behind(&[2, 0, 0, 0], &four)),
        (0, behind(&[0, 0, 0, 2], &four)),
        (0, behind(&[30, 0, 0, 0], &six)),
        (108, behind(&[0, 0, 0, 24], &six)),
        (9, behind(&[0xff, 3, 0, 0x21], &four)),
        (50, behind(&[0, 0x57], &six)),
    ] {
        assert_eq!(one(link, frame).payload, 9, "link type {link}");
    }
}

#[test]
fn other_protocols_are_counted() {
    let arp = ethernet(&[8, 6], &[0; 28]);
    let udp = ethernet(&[8, 0], &ipv4(17, &[0; 8]));
    let icmp = ethernet(&[0x86, 0xdd], &ipv6(58, &[0; 8]));
    let (segments, counts, problems) = read(&pcap(1, &[arp, udp, icmp, plain(&[], 0)]));
    assert_eq!((segments.len(), segments[0].frame, counts.not_tcp, problems.len()), (1, 4, 3, 0));
}

#[test]
fn unsupported_link_type_is_reported_once() {
    let (segments, counts, problems) = read(&pcap(105, &[vec![0; 60], vec![0; 60]]));
    assert_eq!((segments.len(), counts.not_tcp), (0, 2));
    assert_eq!(problems, ["packet 1, byte 24: link type-105 is not read"]);
    assert_eq!(counts.link_types.into_iter().collect::<Vec<_>>(), [LinkType::Other(105)]);
}

#[test]
fn ethernet_padding_is_not_payload() {
    let mut frame = plain(&[], 0);
    frame.resize(60, 0);
    assert_eq!(one(1, frame).payload, 0);
}

#[test]
fn ipv4_options_are_skipped() {
    let mut packet = ipv4(6, &tcp(&[], 9));
    packet.splice(20..20, [1; 8]);
    packet[0] = 0x47;
    packet[3] += 8;
    assert_eq!(one(101, packet).payload, 9);
}

#[test]
fn only_the_first_fragment_is_a_segment() {
    let mut first = ipv4(6, &tcp(&[], 100));
    first[6] = 0x20;
    let mut second = ipv4(6, &[0; 80]);
    second[7] = 15;
    let (segments, counts, _) = read(&pcap(101, &[first, second]));
    assert_eq!((segments.len(), segments[0].payload, counts.fragments, counts.not_tcp), (1, 100, 1, 0));

    let fragment = |offset: u8| [&[6, 0, 0, offset, 0, 0, 0, 1], tcp(&[], 100).as_slice()].concat();
    let (segments, counts, _) = read(&pcap(101, &[ipv6(44, &fragment(1)), ipv6(44, &fragment(8))]));
    assert_eq!((segments.len(), segments[0].payload, counts.fragments), (1, 100, 1));
}

#[test]
fn ipv6_extension_headers_are_skipped() {
    let hop_by_hop = [43, 0, 1, 4, 0, 0, 0, 0];
    let routing = [60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let destination = [51, 0, 1, 4, 0, 0, 0, 0];
    let authentication = [6, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let chain = [hop_by_hop.as_slice(), &routing, &destination, &authentication, &tcp(&[], 9)].concat();
    assert_eq!(one(101, ipv6(0, &chain)).payload, 9);
}

#[test]
fn zero_total_length_means_frame_length() {
    let mut four = plain(&[], 0);
    four[16..18].copy_from_slice(&[0, 0]);
    let mut six = ethernet(&[0x86, 0xdd], &ipv6(6, &tcp(&[], 0)));
    six[18..20].copy_from_slice(&[0, 0]);
    for (frame, headers) in [(four, 54), (six, 74)] {
        let record = pcap_record(Order::Little, &frame, headers + 70_000);
        let file = [pcap_header(Order::Little, MICROSECONDS, 1), record].concat();
        assert_eq!(read_one(&file).payload, 70_000);
    }
}

#[test]
fn jumbogram_length_is_in_its_option() {
    let length = 8_u32 + 20 + 70_000;
    let option = [&[6, 0, 0xc2, 4], length.to_be_bytes().as_slice(), &tcp(&[], 0)].concat();
    let mut packet = ipv6(0, &option);
    packet[4..6].copy_from_slice(&[0, 0]);
    // The frame's length says something else.
    let record = pcap_record(Order::Little, &packet, packet.len());
    assert_eq!(read_one(&[pcap_header(Order::Little, MICROSECONDS, 101), record].concat()).payload, 70_000);
}

#[test]
fn tcp_options_are_read_in_any_order_and_padding() {
    let options = [
        &[1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6][..],
        &[2, 4, 5, 0xb4, 3, 3, 7, 4, 2],
        &[5, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        &[0, 8, 10],
    ];
    let found = one(1, plain(&options.concat(), 0)).options;
    assert_eq!((found.timestamps, found.mss, found.window_scale), (Some((5, 6)), Some(1_460), Some(7)));
    assert!(found.sack_permitted);
    assert_eq!(found.sacks(), [(1, 2)]);
}

#[test]
fn window_scale_is_clamped_to_14() {
    assert_eq!(one(1, plain(&[3, 3, 200], 0)).options.window_scale, Some(14));
}

#[test]
fn impossible_option_length_ends_options() {
    let mss = [2, 4, 5, 0xb4];
    for nonsense in [&[8, 0][..], &[8, 1], &[5, 200], &[8, 10, 0, 0], &[8]] {
        let options = one(1, plain(&[&mss, nonsense].concat(), 0)).options;
        assert_eq!((options.mss, options.timestamps, options.sacks().len()), (Some(1_460), None, 0), "{nonsense:?}");
    }
    // A wrong length of a known option: it is left out, and the next one read.
    let options = one(1, plain(&[8, 6, 0, 0, 0, 0, 2, 4, 5, 0xb4], 0)).options;
    assert_eq!((options.mss, options.timestamps), (Some(1_460), None));
}

#[test]
fn truncated_header_keeps_numbers_and_sets_cut() {
    let frame = plain(&[1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6, 2, 4, 5, 0xb4], 1_000);
    let kept = |bytes: usize| {
        let record = pcap_record(Order::Little, &frame[..bytes], frame.len());
        read(&[pcap_header(Order::Little, MICROSECONDS, 1), record].concat())
    };
    for (bytes, cut, timestamps) in
        [(70, false, true), (69, true, true), (66, true, true), (65, true, false), (50, true, false)]
    {
        let segment = kept(bytes).0[0];
        assert_eq!((segment.seq, segment.ack, segment.flags, segment.window), (1, 2, ACK, 3));
        assert_eq!((segment.payload, segment.cut), (1_000, cut), "{bytes} bytes");
        assert_eq!(segment.options.timestamps.is_some(), timestamps, "{bytes} bytes");
    }
    for bytes in 0..50 {
        let (segments, counts, problems) = kept(bytes);
        assert_eq!((segments.len(), counts.unreadable, problems.len()), (0, 1, 0), "{bytes} bytes");
    }
}

#[test]
fn complete_sack_blocks_of_truncated_header_are_read() {
    let blocks: Vec<u8> = (1..=6_u32).flat_map(u32::to_be_bytes).collect();
    let frame = plain(&[&[1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6, 1, 1, 5, 26], blocks.as_slice()].concat(), 0);
    for (bytes, whole) in [(94, 3), (93, 2), (86, 2), (85, 1), (77, 0), (70, 0)] {
        let record = pcap_record(Order::Little, &frame[..bytes], frame.len());
        let segment = read(&[pcap_header(Order::Little, MICROSECONDS, 1), record].concat()).0[0];
        assert_eq!(segment.options.sacks(), &[(1, 2), (3, 4), (5, 6)][..whole], "{bytes} bytes");
        assert_eq!(segment.cut, whole < 3, "{bytes} bytes");
    }
    // In a header that is whole, a length beyond its end is nonsense.
    let options = one(1, plain(&[1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2], 0)).options;
    assert_eq!(options.sacks().len(), 0);
}

#[test]
fn inconsistent_header_is_unreadable() {
    let with = |at: usize, value: u8| {
        let mut frame = plain(&[], 0);
        frame[at] = value;
        frame
    };
    // IP version, IP header length, total length, TCP header length below 20 and behind the packet's end.
    let frames = [with(14, 0x55), with(14, 0x44), with(17, 19), with(46, 0x40), with(46, 0x60)];
    let (segments, counts, _) = read(&pcap(1, &frames));
    assert_eq!((segments.len(), counts.unreadable), (0, 5));
}
