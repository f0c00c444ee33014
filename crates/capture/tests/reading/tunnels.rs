//! TCP inside of something: read where it can be, else named.

use crate::build::*;
use sawtooth_capture::Segment;

const NINE: usize = 9;

fn inner_ip() -> Vec<u8> {
    ipv4(6, &tcp(&[], NINE))
}

fn inner_frame() -> Vec<u8> {
    plain(&[], NINE)
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let head = [[0xc3, 0x50], port.to_be_bytes(), length.to_be_bytes(), [0, 0]].concat();
    ipv4(17, &[head.as_slice(), payload].concat())
}

fn gre(head: &[u8], payload: &[u8]) -> Vec<u8> {
    ipv4(47, &[head, payload].concat())
}

fn only(packet: Vec<u8>) -> Segment {
    read_one(&pcap(101, &[packet]))
}

/// IP packets with TCP in tunnels of all kinds, by name.
pub fn packets() -> Vec<(&'static str, Vec<u8>)> {
    let (ip, frame, six) = (inner_ip(), inner_frame(), ipv6(6, &tcp(&[], NINE)));
    let behind = |head: &[u8], inner: &[u8]| [head, inner].concat();
    let ppp = |head: &[u8]| behind(&[head, &[0xff, 3, 0, 0x21]].concat(), &ip);
    vec![
        ("IPv4 in IPv4", ipv4(4, &ip)),
        ("IPv6 in IPv4", ipv4(41, &six)),
        ("IPv4 in IPv6", ipv6(4, &ip)),
        ("GRE", gre(&[0, 0, 8, 0], &ip)),
        ("GRE, checksum, key and number", gre(&[0xb0, 0, 0x86, 0xdd, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1], &six)),
        ("Ethernet in GRE", gre(&[0x20, 0, 0x65, 0x58, 0, 0, 0, 7], &frame)),
        ("PPTP", gre(&[0x30, 0x81, 0x88, 0x0b, 0, 9, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2], &ppp(&[]))),
        ("ERSPAN I", gre(&[0, 0, 0x88, 0xbe], &frame)),
        ("ERSPAN II", gre(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1], &behind(&[0x10, 0, 0, 1, 0, 0, 0, 0], &frame))),
        (
            "ERSPAN III",
            gre(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1], &behind(&[0x20, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], &frame)),
        ),
        ("VXLAN", udp(4789, &behind(&[8, 0, 0, 0, 0, 0, 7, 0], &frame))),
        ("VXLAN-GPE", udp(4790, &behind(&[0x0c, 0, 0, 1, 0, 0, 7, 0], &ip))),
        ("Geneve", udp(6081, &behind(&[1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 4], &frame))),
        ("GTP-U", udp(2152, &behind(&[0x30, 0xff, 0, 49, 0, 0, 0, 7], &ip))),
        ("GTP-U, extended", udp(2152, &behind(&[0x34, 0xff, 0, 57, 0, 0, 0, 7, 0, 0, 0, 0x85, 1, 0, 9, 0], &ip))),
        ("Teredo", udp(3544, &behind(&[0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6], &six))),
        ("GRE in UDP", udp(4754, &behind(&[0, 0, 8, 0], &ip))),
        (
            "GRE in IP in VXLAN",
            udp(4789, &behind(&[8, 0, 0, 0, 0, 0, 7, 0], &ethernet(&[8, 0], &gre(&[0, 0, 8, 0], &ip)))),
        ),
    ]
}

#[test]
fn tunnel_payloads_are_decoded() {
    for (name, packet) in packets() {
        let (segments, counts, problems) = read(&pcap(101, &[packet]));
        assert_eq!((segments.len(), problems.len()), (1, 0), "{name}: {counts:?}");
        let segment = segments[0];
        assert_eq!((segment.source.port, segment.target.port, segment.payload), (1_000, 2_000, NINE as u32), "{name}");
        assert_ne!(segment.via, 0, "{name}");
    }
}

#[test]
fn mpls_labels_and_llc_are_skipped() {
    let (ip, frame) = (inner_ip(), inner_frame());
    let behind = |head: &[u8], inner: &[u8]| [head, inner].concat();
    for (name, frame) in [
        ("MPLS", ethernet(&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], &ip)),
        ("a pseudowire with a control word", ethernet(&behind(&[0x88, 0x47, 0, 2, 1, 64], &[0, 0, 0, 0]), &frame)),
        ("SNAP", ethernet(&[0, 57, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &ip)),
        ("SNAP in a VLAN", ethernet(&[0x81, 0, 0, 5, 0, 57, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &ip)),
        ("three VLANs", ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 0x81, 0, 0, 7, 8, 0], &ip)),
    ] {
        assert_eq!(read_one(&pcap(1, &[frame])).payload, NINE as u32, "{name}");
    }
}

#[test]
fn tags_and_tunnels_are_distinguished() {
    let vlan = |number: u8| read_one(&pcap(1, &[ethernet(&[0x81, 0, 0, number, 8, 0], &inner_ip())])).via;
    assert_ne!(vlan(1), vlan(2));
    assert_eq!(read_one(&pcap(1, &[inner_frame()])).via, 0);
    let network =
        |number: u8| only(udp(4789, &[&[8, 0, 0, 0, 0, 0, number, 0], inner_frame().as_slice()].concat())).via;
    assert_ne!(network(1), network(2));
}

#[test]
fn pppoe_padding_is_not_payload() {
    // The packet says that it is 6 bytes longer, which are the frame's padding.
    let packet = ipv4(6, &tcp(&[], 6));
    let session = |length: u8| [&[0x88, 0x64, 0x11, 0, 0, 1, 0, length, 0, 0x21], packet.as_slice()].concat();
    let (padded, whole) = (session(42), session(48));
    assert_eq!(read_one(&pcap(1, &[ethernet(&padded, &[])])).payload, 0);
    assert_eq!(read_one(&pcap(1, &[ethernet(&whole, &[])])).payload, 6);
}

#[test]
fn unsupported_encapsulations_are_named() {
    let macsec = ethernet(&[0x88, 0xe5], &[0; 40]);
    let ip = |packet: Vec<u8>| ethernet(&[8, 0], &packet);
    let frames = [
        macsec,
        ip(ipv4(50, &[0; 40])),
        ip(udp(4500, &[0; 40])),
        ip(udp(1701, &[0; 40])),
        ip(udp(51_820, &[0; 40])),
        ip(gre(&[0x30, 0x01, 0x88, 0x0b, 0, 9, 0, 1, 0, 0, 0, 1], &[0, 0xfd, 0, 0])),
    ];
    let (segments, counts, problems) = read(&pcap(1, &frames));
    assert_eq!((segments.len(), counts.not_tcp, problems.len()), (0, 6, 0));
    let named: Vec<(&str, u64)> = counts.unread.into_iter().collect();
    assert_eq!(named, [("IPsec", 2), ("L2TP", 1), ("MACsec", 1), ("WireGuard", 1), ("compressed or encrypted PPP", 1)]);
}

#[test]
fn port_alone_is_not_a_tunnel() {
    let others = [udp(4789, &[0; 40]), udp(2152, &[0; 40]), udp(6081, &[0xff; 40]), udp(3544, b"other traffic")];
    let (segments, counts, _) = read(&pcap(101, &others));
    assert_eq!((segments.len(), counts.not_tcp, counts.unread.len()), (0, 4, 0));
}

#[test]
fn tunnel_nesting_is_bounded() {
    let mut packet = inner_ip();
    for _ in 0..100 {
        packet = ipv4(4, &packet);
    }
    let (segments, counts, _) = read(&pcap(101, &[packet]));
    assert_eq!((segments.len(), counts.unread["tunnels in tunnels"]), (0, 1));
}

#[test]
fn truncated_tunnels_are_counted_once() {
    let vxlan = udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0], inner_frame().as_slice()].concat());
    let erspan = gre(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1], &[0; 8]);
    let gtp = udp(2152, &[0x34, 0xff, 0, 57, 0, 0, 0, 7, 0, 0, 0, 0x85, 1, 0, 9, 0x85, 0, 0, 0, 0]);
    for packet in [vxlan, erspan, gtp] {
        for kept in 0..packet.len() {
            let record = pcap_record(Order::Little, &packet[..kept], packet.len());
            let (segments, counts, _) = read(&[pcap_header(Order::Little, MICROSECONDS, 101), record].concat());
            assert_eq!(segments.len() as u64 + counts.not_tcp + counts.unreadable, 1, "{kept}");
        }
    }
}
