//! Captures of several devices, which hold a packet once for each that it passes.

use crate::build::*;
use sawtooth_capture::Segment;

const HOST: u8 = 0;
const OUTGOING: u8 = 4;

/// A packet as it passes a host; the millisecond is the clock of its timestamps.
#[derive(Clone, Copy)]
struct Packet {
    identification: u16,
    seq: u8,
    clock: u8,
    hops: u8,
}

const FIRST: Packet = Packet { identification: 7, seq: 1, clock: 1, hops: 64 };

impl Packet {
    fn bytes(self) -> Vec<u8> {
        let mut packet = ipv4(6, &tcp(&[1, 1, 8, 10, 0, 0, 0, self.clock, 0, 0, 0, 9], 100));
        packet[4..6].copy_from_slice(&self.identification.to_be_bytes());
        packet[8] = self.hops;
        packet[27] = self.seq;
        packet
    }

    fn cooked_2(self, device: u8, kind: u8) -> Vec<u8> {
        let head = [8, 0, 0, 0, 0, 0, 0, device, 0, 1, kind, 6, 2, 0, 0, 0, 0, 1, 0, 0];
        [&head, self.bytes().as_slice()].concat()
    }

    fn cooked(self, kind: u8) -> Vec<u8> {
        [&[0, kind, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0], self.bytes().as_slice()].concat()
    }
}

/// Frame numbers of what is taken, and how many copies are set aside.
fn taken(link: u32, frames: &[Vec<u8>]) -> (Vec<u64>, u64) {
    let (segments, counts, problems) = read(&pcap(link, frames));
    assert_eq!((problems.len(), counts.packets), (0, frames.len() as u64));
    assert_eq!(segments.len() as u64 + counts.copies, counts.packets);
    (segments.iter().map(|segment: &Segment| segment.frame).collect(), counts.copies)
}

#[test]
fn bridge_and_port_copies_are_one_packet() {
    let second = Packet { identification: 8, seq: 101, ..FIRST };
    let frames = [(FIRST, 3), (FIRST, 5), (second, 3), (second, 5)].map(|(packet, on)| packet.cooked_2(on, HOST));
    assert_eq!(taken(276, &frames), (vec![1, 3], 2));
}

#[test]
fn late_interleaved_copies_are_recognized() {
    let train: Vec<Packet> = (0..9).map(|n| Packet { identification: n, seq: n as u8 * 20, ..FIRST }).collect();
    let on = |device| train.iter().map(move |packet| packet.cooked_2(device, OUTGOING));
    assert_eq!(taken(276, &on(5).chain(on(3)).chain(on(2)).collect::<Vec<_>>()), ((1..=9).collect(), 18));
}

#[test]
fn forwarded_packet_with_lower_ttl_is_a_copy() {
    let out = Packet { hops: 63, ..FIRST };
    assert_eq!(taken(276, &[FIRST.cooked_2(3, HOST), out.cooked_2(4, OUTGOING)]), (vec![1], 1));
    // A router with one device only.
    assert_eq!(taken(276, &[FIRST.cooked_2(3, HOST), out.cooked_2(3, OUTGOING)]), (vec![1], 1));
}

#[test]
fn retransmission_seen_on_all_devices_is_not_a_copy() {
    let again = Packet { identification: 8, clock: 201, ..FIRST };
    let frames = [(FIRST, 5), (FIRST, 3), (again, 5), (again, 3)].map(|(packet, on)| packet.cooked_2(on, OUTGOING));
    assert_eq!(taken(276, &frames), (vec![1, 3], 2));
    // Also where nothing in it differs, and the first has not come to the second device yet, or never does.
    let same = |devices: &[u8]| {
        let frames: Vec<_> =
            devices.iter().map(|&on| Packet { identification: 0, ..FIRST }.cooked_2(on, HOST)).collect();
        taken(276, &frames)
    };
    assert_eq!(same(&[5, 3, 5, 3]), (vec![1, 3], 2));
    assert_eq!(same(&[5, 5, 3, 3]), (vec![1, 2], 2));
    assert_eq!(same(&[5, 5, 3]), (vec![1, 2], 1));
    assert_eq!(same(&[5, 5, 5]), (vec![1, 2, 3], 0));
}

#[test]
fn interfaces_of_pcapng_are_devices() {
    let file = |interfaces: u32, of: [u32; 2]| {
        let mut file = section(Order::Little);
        for _ in 0..interfaces {
            file.extend(interface(Order::Little, 101, 0, &[]));
        }
        for interface in of {
            file.extend(enhanced_packet(Order::Little, interface, 5, &FIRST.bytes()));
        }
        read(&file).1.copies
    };
    assert_eq!((file(2, [0, 1]), file(2, [1, 1]), file(1, [0, 0])), (1, 0, 0));
}

#[test]
fn copies_without_devices_have_same_ip_id_at_once() {
    let again = Packet { identification: 8, ..FIRST };
    assert_eq!(taken(113, &[FIRST, FIRST, again].map(|packet| packet.cooked(HOST))), (vec![1, 3], 1));
    let unidentified = Packet { identification: 0, ..FIRST };
    assert_eq!(taken(113, &[unidentified, unidentified].map(|packet| packet.cooked(HOST))), (vec![1, 2], 0));
    // 2 ms later.
    let mut late = pcap(113, &[FIRST.cooked(HOST), FIRST.cooked(HOST)]);
    let second = late.len() - 16 - FIRST.cooked(HOST).len();
    late[second + 4..second + 8].copy_from_slice(&2_006_u32.to_le_bytes());
    assert_eq!(read(&late).1.copies, 0);
}

#[test]
fn single_device_capture_has_no_copies() {
    assert_eq!(taken(101, &[FIRST.bytes(), FIRST.bytes()]), (vec![1, 2], 0));
}
