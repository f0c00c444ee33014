//! Captures show what was simulated, as Linux would have put it on the wire, and change nothing.

use crate::common::{MS, MSS, PERCENT, Path, Run, SECOND, bits, host, link, probe, transmitter};
use sawtooth_capture::segment::{ACK, FIN, PSH, RST, SYN};
use sawtooth_capture::{Reader, Segment};
use sawtooth_net::scenario::Scenario;
use sawtooth_net::{Output, Simulation, Taps};
use sawtooth_units::Time;
use serde_json::{Value, json};
use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex};

const SENDER: usize = 0;
const ROUTER: usize = 1;
const RECEIVER: usize = 2;

/// A stream that the test reads afterward, with room for this many bytes.
#[derive(Clone)]
struct Shelf {
    content: Arc<Mutex<Vec<u8>>>,
    room: usize,
}

impl Shelf {
    fn new(room: usize) -> Self {
        Shelf { content: Arc::default(), room }
    }
    fn bytes(&self) -> Vec<u8> {
        self.content.lock().unwrap().clone()
    }
}

impl Write for Shelf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut content = self.content.lock().unwrap();
        if content.len() + bytes.len() > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        content.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn tapped(scenario: &Value, hosts: &[(usize, &Shelf)]) -> Simulation {
    let scenario = Scenario::parse(&scenario.to_string()).expect("the scenario is valid");
    let outputs = hosts.iter().map(|&(host, shelf)| (host, Box::new(shelf.clone()) as Output));
    let taps = Taps::new(&scenario, outputs).expect("there is room for the files' headers");
    Simulation::tapped(scenario, Some(taps))
}

/// A finished run, and the bytes of the captures at `hosts`.
fn captured(scenario: &Value, hosts: &[usize]) -> (Run, Vec<Vec<u8>>) {
    let shelves: Vec<Shelf> = hosts.iter().map(|_| Shelf::new(usize::MAX)).collect();
    let mut simulation = tapped(scenario, &hosts.iter().copied().zip(&shelves).collect::<Vec<_>>());
    while !simulation.advance(Time::NEVER, u64::MAX) {}
    assert!(simulation.capture_fault().is_none());
    let tables = simulation.take();
    (Run { simulation, tables }, shelves.iter().map(Shelf::bytes).collect())
}

/// The segments of a capture, which must be whole and in order of time; and how many packets are no TCP.
fn read(bytes: &[u8]) -> (Vec<Segment>, u64) {
    let mut reader = Reader::new(Cursor::new(bytes.to_vec())).unwrap();
    let segments: Vec<Segment> = std::iter::from_fn(|| reader.next_segment()).collect();
    assert_eq!(reader.problems(), [] as [&str; 0]);
    assert_eq!(reader.counts().unreadable, 0);
    assert!(segments.is_sorted_by_key(|segment| segment.time_ns));
    (segments, reader.counts().not_tcp)
}

fn from_client(segments: &[Segment]) -> Vec<Segment> {
    segments.iter().copied().filter(|segment| segment.target.port == 5_201).collect()
}

/// Loss both ways, replaced flows, BBR, probes, both kinds of end.
fn mixed(seed: u64) -> Value {
    let mut scenario = Path { loss_ppb: PERCENT, seed, ..Path::default() }.json();
    scenario["links"][2]["loss_ppb"] = json!(2 * PERCENT);
    let mut bbr = scenario["flows"][0].clone();
    (bbr["cc"], bbr["count"]) = (json!("bbr"), json!(3));
    let mut short = scenario["flows"][0].clone();
    (short["count"], short["lifetime_ns"]) = (json!(4), json!([50 * MS, 300 * MS]));
    let mut volume = scenario["flows"][0].clone();
    (volume["count"], volume["bytes"]) = (json!(4), json!(100_001));
    scenario["flows"] = json!([scenario["flows"][0], bbr, short, volume]);
    scenario["probes"] = json!([probe(10 * MS, 50)]);
    scenario
}

/// One flow of `bytes`, without loss.
fn transfer(bytes: u64) -> Value {
    let mut scenario = Path { duration_ns: 5 * SECOND, queue_packets: 10_000, ..Path::default() }.json();
    scenario["flows"][0]["bytes"] = json!(bytes);
    scenario
}

#[test]
fn captures_change_no_table() {
    let plain = Run::of(&mixed(7));
    for hosts in [vec![SENDER, RECEIVER], vec![ROUTER], vec![SENDER, ROUTER, RECEIVER]] {
        let (run, _) = captured(&mixed(7), &hosts);
        assert_eq!(bits(&run.tables), bits(&plain.tables), "{hosts:?}");
        assert_eq!(run.simulation.events(), plain.simulation.events(), "{hosts:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let hosts = [SENDER, ROUTER, RECEIVER];
    let one = captured(&mixed(7), &hosts).1;
    assert_eq!(one, captured(&mixed(7), &hosts).1);
    assert_ne!(one, captured(&mixed(8), &hosts).1);
}

#[test]
fn a_connection_opens_carries_its_bytes_and_closes_as_on_linux() {
    let (run, files) = captured(&transfer(100_001), &[SENDER]);
    let (segments, _) = read(&files[0]);
    let [syn, synack, established] = segments[..3] else { panic!("a handshake") };
    assert_eq!((syn.flags, synack.flags, established.flags), (SYN, SYN | ACK, ACK));
    assert_eq!((syn.source.to_owned(), syn.target.port), (synack.target, 5_201));
    assert_eq!(syn.source.address.to_string() + " " + &syn.target.address.to_string(), "10.0.0.1 10.0.0.3");
    assert_eq!((syn.options.mss, syn.options.window_scale, syn.window), (Some(1_460), Some(11), 64_240));
    assert_eq!((synack.options.mss, synack.options.window_scale, synack.window), (Some(1_460), Some(11), 65_160));
    assert!(syn.options.sack_permitted && synack.options.sack_permitted);
    assert_eq!(synack.ack, syn.seq.wrapping_add(1));
    assert_eq!((established.seq, established.ack), (synack.ack, synack.seq.wrapping_add(1)));
    assert_eq!(synack.options.timestamps.unwrap().1, syn.options.timestamps.unwrap().0);
    assert_eq!(synack.time_ns - syn.time_ns, 20 * MS + 74 * 80);
    assert_eq!(syn.time_ns, 1_767_225_600 * SECOND);
    // 64 less the routers passed, of which the return path has none.
    assert_eq!((syn.ttl, synack.ttl), (64, 64));

    let data: Vec<Segment> = segments.iter().copied().filter(|segment| segment.payload > 0).collect();
    assert_eq!(data.len() as u64, run.sum("flows", "segments_out"));
    assert!(data.iter().all(|segment| u64::from(segment.payload) <= MSS));
    assert_eq!(data.iter().map(|segment| segment.payload).sum::<u32>(), 100_001);
    let mut next = syn.seq.wrapping_add(1);
    for segment in &data {
        assert_eq!(segment.seq, next);
        next = next.wrapping_add(segment.payload);
    }
    assert!(data.iter().any(|segment| segment.flags & PSH != 0));
    let (last, end) = (data.last().unwrap(), segments.last().unwrap());
    assert_eq!((last.flags & FIN, end.flags), (FIN, FIN | ACK));
    assert_eq!(end.ack, next.wrapping_add(1));
}

#[test]
fn repeated_syn_ack_is_acked_with_rate_limit() {
    let mut scenario = Path { duration_ns: 4 * SECOND, ..Path::default() }.json();
    scenario["links"][2]["delay_ns"] = json!(1_200 * MS);
    let (_, files) = captured(&scenario, &[SENDER]);
    let (segments, _) = read(&files[0]);
    let answers = segments.iter().filter(|segment| segment.flags == SYN | ACK).count();
    let bare = from_client(&segments).iter().filter(|segment| (segment.flags, segment.payload) == (ACK, 0)).count();
    // The first completes the handshake. The others come within milliseconds, and one is acknowledged.
    assert_eq!((answers, bare), (3, 2));
}

#[test]
fn ip_ids_count_up_per_end() {
    let (_, files) = captured(&transfer(1_000_000), &[SENDER, RECEIVER]);
    let (sent, received) = (read(&files[0]).0, read(&files[1]).0);
    for (segments, client) in [(&sent, true), (&received, false)] {
        let own =
            segments.iter().filter(|segment| (segment.target.port == 5_201) == client && segment.flags & SYN == 0);
        let ids: Vec<u16> = own.map(|segment| segment.ip_id.unwrap()).collect();
        assert!(ids.len() > 100);
        assert!(ids.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1)));
    }
}

#[test]
fn receiver_capture_lacks_only_lost_packets() {
    let scenario = Path { loss_ppb: PERCENT, ..Path::default() }.json();
    let (run, files) = captured(&scenario, &[SENDER, ROUTER, RECEIVER]);
    let [sent, passed, received] = [0, 1, 2].map(|at| from_client(&read(&files[at]).0));
    let identity = |segment: &Segment| (segment.seq, segment.ip_id, segment.options.timestamps);
    // Half a round trip and what was in the queue was still on its way at the end.
    let arrived = received.len() + run.sum("links", "lost") as usize;
    let lost = run.sum("queues", "drops") as usize;
    assert!(arrived + lost <= sent.len() && sent.len() <= arrived + lost + 400, "{} {arrived} {lost}", sent.len());
    let mut sent = sent.iter().map(identity);
    assert!(received.iter().all(|segment| sent.any(|one| one == identity(segment))));
    assert!(passed.len() > received.len());
    assert!(passed.iter().all(|segment| segment.ttl == 64));
    assert!(received.iter().all(|segment| segment.ttl == 63));
    let retransmitted = run.sum("intervals", "retransmits");
    assert!(retransmitted > 10);
}

#[test]
fn acknowledgements_carry_sack_blocks_in_bytes_and_scaled_windows() {
    let mut scenario =
        Path { duration_ns: 40 * SECOND, rate_bps: 2_000_000, loss_ppb: PERCENT, ..Path::default() }.json();
    // If acknowledgements are lost, data is sent twice.
    scenario["links"][2]["loss_ppb"] = json!(60 * PERCENT);
    let (_, files) = captured(&scenario, &[SENDER]);
    let (segments, _) = read(&files[0]);
    let acks: Vec<&Segment> = segments.iter().filter(|segment| segment.source.port == 5_201).collect();
    let (mut sacks, mut duplicates) = (0, 0);
    for ack in acks.iter().filter(|ack| ack.flags == ACK) {
        for &(left, right) in ack.options.sacks() {
            sacks += 1;
            duplicates += u32::from(ack.ack.wrapping_sub(right) < 1 << 30);
            assert_eq!(u64::from(right.wrapping_sub(left)) % MSS, 0);
        }
        assert!(u64::from(ack.window) << 11 >= 10 * MSS);
    }
    assert!(sacks > 50 && duplicates > 5, "{sacks} {duplicates}");
}

#[test]
fn expired_connection_is_reset_and_probes_are_icmp_echoes() {
    let (_, files) = captured(&mixed(3), &[SENDER]);
    let (segments, probes) = read(&files[0]);
    let resets = segments.iter().filter(|segment| segment.flags == RST | ACK);
    assert!(resets.count() > 20);
    // Each of 50 and the answers to those that were not lost.
    assert!((90..=100).contains(&probes), "{probes}");
}

#[test]
fn replaced_connections_have_ports_and_numbers_of_their_own() {
    let (run, files) = captured(&mixed(5), &[RECEIVER]);
    let syns: Vec<Segment> = read(&files[0]).0.into_iter().filter(|segment| segment.flags == SYN).collect();
    let mut ends: Vec<_> = syns.iter().map(|syn| (syn.source.port, syn.target.port, syn.seq)).collect();
    ends.sort_unstable();
    ends.dedup();
    let ports = ends.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).count();
    assert_eq!(ports, ends.len());
    // Each that ended, and those that were still open; a SYN that was lost each time is not here.
    assert!(ports as u64 + 3 >= run.integers("flows", "flow").len() as u64, "{ports}");
}

#[test]
fn with_offload_the_sender_shows_super_packets_and_the_receiver_segments() {
    let mut scenario = Path::default().json();
    scenario["links"][0]["loss_ppb"] = json!(PERCENT);
    let mut single = scenario.clone();
    scenario["hosts"][0]["offload"] = json!(true);
    let largest = |scenario: &Value, host| {
        let segments = read(&captured(scenario, &[host]).1[0]).0;
        from_client(&segments).iter().map(|segment| u64::from(segment.payload)).max().unwrap()
    };
    let many = largest(&scenario, SENDER);
    assert!(many > MSS && many.is_multiple_of(MSS), "{many} bytes");
    assert_eq!(largest(&scenario, RECEIVER), MSS);
    assert_eq!(largest(&single.take(), SENDER), MSS);
    // A super-packet takes as many identifications as segments, also when it is lost.
    let segments = from_client(&read(&captured(&scenario, &[SENDER]).1[0]).0);
    for pair in segments.windows(2) {
        let count = u64::from(pair[0].payload).div_ceil(MSS).max(1) as u16;
        assert_eq!(pair[1].ip_id, pair[0].ip_id.map(|id| id.wrapping_add(count)));
    }
}

#[test]
fn disabled_options_are_absent_from_segments() {
    let mut scenario = Path { loss_ppb: PERCENT, ..Path::default() }.json();
    scenario["hosts"][2]["sack"] = json!(false);
    scenario["hosts"][2]["timestamps"] = json!(false);
    let (segments, _) = read(&captured(&scenario, &[RECEIVER]).1[0]);
    assert!(segments[0].options.sack_permitted && segments[0].options.timestamps.is_some());
    assert!(!segments[1].options.sack_permitted && segments[1].options.mss == Some(1_448));
    let rest = &segments[1..];
    assert!(rest.iter().all(|segment| segment.options.timestamps.is_none() && segment.options.sacks().is_empty()));
}

#[test]
fn on_links_without_rate_and_delay_every_host_sees_the_packets() {
    let names = ["a", "b", "c", "d"];
    let scenario = json!({"duration_ns": SECOND, "interval_ns": 100 * MS, "seed": 1, "hosts": names.map(host),
        "transmitters": [transmitter("slow", 10_000_000, 50)],
        "links": [link(0, 1, None, 0, 0), link(1, 2, None, 0, 0), link(2, 3, Some(0), 10 * MS, 0),
            link(3, 2, None, 0, 0), link(2, 0, None, 0, 0)],
        "flows": [{"name": "f", "cc": "reno", "count": 1, "start_ns": 0, "duration_ns": null, "bytes": 50_000,
            "lifetime_ns": null, "forward": [0, 1, 2], "backward": [3, 4]}], "probes": []});
    let (run, files) = captured(&scenario, &[0, 1, 2, 3]);
    assert_eq!(bits(&run.tables), bits(&Run::of(&scenario).tables));
    let all: Vec<Vec<Segment>> = files.iter().map(|file| read(file).0).collect();
    let forth = all.iter().map(|segments| from_client(segments).len()).collect::<Vec<_>>();
    let back = all.iter().map(|segments| segments.len() - from_client(segments).len()).collect::<Vec<_>>();
    assert_eq!(forth, [forth[0]; 4]);
    assert_eq!(back, [back[3], 0, back[3], back[3]]);
    let ttls: Vec<u8> = all.iter().map(|segments| from_client(segments)[0].ttl).collect();
    assert_eq!(ttls, [64, 64, 63, 62]);
}

#[test]
fn a_capture_that_cannot_be_written_is_reported_once_and_the_others_continue() {
    let (full, whole) = (Shelf::new(10_000), Shelf::new(usize::MAX));
    let mut simulation = tapped(&transfer(1_000_000), &[(SENDER, &full), (RECEIVER, &whole)]);
    while !simulation.advance(Time::NEVER, u64::MAX) {}
    let (host, error) = simulation.capture_fault().unwrap();
    assert_eq!((host, error.kind()), (SENDER, io::ErrorKind::StorageFull));
    assert!(simulation.capture_fault().is_none());
    assert_eq!(whole.bytes(), captured(&transfer(1_000_000), &[RECEIVER]).1[0]);
}
