//! pcap and pcapng.

use crate::build::*;
use sawtooth_capture::{LinkType, Reader};
use std::io::Cursor;

const ETHERNET: u16 = 1;
const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;

#[test]
fn pcap_is_read_in_both_byte_orders_and_resolutions() {
    for order in [Order::Little, Order::Big] {
        for (magic, time_ns) in [(MICROSECONDS, 5_000_006_000), (NANOSECONDS, 5_000_000_006)] {
            let file = [pcap_header(order, magic, 1), pcap_record(order, &plain(&[], 9), 63)].concat();
            let segment = read_one(&file);
            assert_eq!((segment.time_ns, segment.frame, segment.payload), (time_ns, 1, 9));
        }
    }
}

#[test]
fn flags_above_the_link_type_of_pcap_do_not_hide_it() {
    read_one(
        &[pcap_header(Order::Little, MICROSECONDS, 0x2400_0001), pcap_record(Order::Little, &plain(&[], 0), 54)]
            .concat(),
    );
}

#[test]
fn counts_have_packets_wire_bytes_truncation_and_times() {
    let frame = plain(&[], 1_000);
    let file = [pcap(1, &[plain(&[], 0)]), pcap_record(Order::Little, &frame[..60], frame.len())].concat();
    let (segments, counts, _) = read(&file);
    assert_eq!(segments.iter().map(|segment| segment.payload).collect::<Vec<_>>(), [0, 1_000]);
    assert_eq!((counts.packets, counts.bytes_on_wire, counts.truncated), (2, 54 + 1_054, 1));
    assert_eq!((counts.first_ns, counts.last_ns), (5_000_006_000, 5_000_006_000));
    assert_eq!(counts.link_types.into_iter().collect::<Vec<_>>(), [LinkType::Ethernet]);
}

#[test]
fn pcapng_is_read_in_both_byte_orders_with_each_kind_of_packet_block() {
    let frame = plain(&[], 9);
    for order in [Order::Little, Order::Big] {
        let file = [
            section(order),
            interface(order, ETHERNET, 0, &[]),
            enhanced_packet(order, 0, 5_000_006, &frame),
            simple_packet(order, &frame, 63),
            obsolete_packet(order, 0, 7_000_008, &frame),
        ];
        let (segments, counts, problems) = read(&file.concat());
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(counts.packets, 3);
        assert!(segments.iter().all(|segment| segment.payload == 9));
        let times: Vec<u64> = segments.iter().map(|segment| segment.time_ns).collect();
        // A simple packet has no time: it gets that of the packet before.
        assert_eq!(times, [5_000_006_000, 5_000_006_000, 7_000_008_000]);
    }
}

#[test]
fn each_interface_has_its_own_link_type_resolution_and_offset() {
    let packet = ipv4(6, &tcp(&[], 9));
    for order in [Order::Little, Order::Big] {
        let offset: [u8; 8] = match order {
            Order::Little => 100_i64.to_le_bytes(),
            Order::Big => 100_i64.to_be_bytes(),
        };
        let mut other = packet.clone();
        other[5] += 1;
        let file = [
            section(order),
            interface(order, ETHERNET, 0, &[(RESOLUTION, &[9])]),
            interface(order, 101, 0, &[(RESOLUTION, &[0x80 | 10]), (OFFSET, &offset)]),
            interface(order, 228, 0, &[(RESOLUTION, &[12])]),
            enhanced_packet(order, 1, 1_536, &packet),
            enhanced_packet(order, 0, 1_000_000_007, &plain(&[], 8)),
            enhanced_packet(order, 2, 1_000_000_007_999, &other),
        ];
        let (segments, counts, problems) = read(&file.concat());
        assert_eq!(problems, Vec::<String>::new());
        let times: Vec<u64> = segments.iter().map(|segment| segment.time_ns).collect();
        assert_eq!(times, [101_500_000_000, 1_000_000_007, 1_000_000_007]);
        assert_eq!((counts.first_ns, counts.last_ns), (1_000_000_007, 101_500_000_000));
        assert_eq!(counts.link_types.into_iter().collect::<Vec<_>>(), [LinkType::Ethernet, LinkType::Raw]);
    }
}

#[test]
fn out_of_range_times_are_clamped() {
    let order = Order::Little;
    for (offset, time_ns) in [(i64::MAX, u64::MAX), (i64::MIN, 0)] {
        let file = [
            section(order),
            interface(order, ETHERNET, 0, &[(RESOLUTION, &[0]), (OFFSET, &offset.to_le_bytes())]),
            enhanced_packet(order, 0, u64::MAX, &plain(&[], 0)),
        ];
        assert_eq!(read_one(&file.concat()).time_ns, time_ns);
    }
}

#[test]
fn new_section_has_its_own_byte_order_and_interfaces() {
    let file = [
        section(Order::Little),
        interface(Order::Little, ETHERNET, 0, &[]),
        enhanced_packet(Order::Little, 0, 1, &plain(&[], 1)),
        section(Order::Big),
        interface(Order::Big, 101, 0, &[]),
        enhanced_packet(Order::Big, 0, 2, &ipv4(6, &tcp(&[], 2))),
        enhanced_packet(Order::Big, 1, 3, &plain(&[], 3)),
    ];
    let (segments, _, problems) = read(&file.concat());
    assert_eq!(segments.iter().map(|segment| segment.payload).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].ends_with("a packet of interface 1, which is not declared"), "{problems:?}");
}

#[test]
fn simple_packets_are_cut_at_the_snap_length() {
    let frame = plain(&[], 1_000);
    let order = Order::Little;
    let file = [section(order), interface(order, ETHERNET, 54, &[]), simple_packet(order, &frame[..54], 1_054)];
    let (segments, counts, _) = read(&file.concat());
    assert_eq!((segments[0].payload, segments[0].cut, counts.truncated), (1_000, false, 1));
}

#[test]
fn unknown_block_types_are_skipped() {
    let order = Order::Little;
    let names = block(order, 4, &[0xff; 100]);
    let custom = block(order, 0xbad, &vec![0; 3 << 20]);
    let packet = enhanced_packet(order, 0, 1, &plain(&[], 0));
    let file = [section(order), names, interface(order, ETHERNET, 0, &[]), custom, packet];
    read_one(&file.concat());
}

#[test]
fn other_files_are_refused_with_a_code() {
    for (file, text) in [
        (&b""[..], "not-a-capture: it has less than 4 bytes"),
        (b"\xd4\xc3\xb2\xa1\x02\x00", "not-a-capture: it ends inside the file header of pcap"),
        (b"%PDF-1.7 and so on, and so on", "not-a-capture: it begins neither like pcap nor like pcapng"),
    ] {
        let refused = Reader::new(Cursor::new(file)).err().expect("no capture");
        assert_eq!(refused.to_string(), text);
    }
    assert_eq!(Reader::open("no such file").err().expect("no file").code(), "file-not-found");
    assert_eq!(Reader::open("/").err().expect("a directory").code(), "file-unreadable");
}
