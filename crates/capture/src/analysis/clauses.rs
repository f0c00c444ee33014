//! Tests of the analysis, one clause each, on hand-made packets: a client at the capture point sends 1000-byte segments
//! to a server 20 ms (round trip) away. One file: a test for each clause.

mod wild;

use std::net::{IpAddr, Ipv4Addr};

use crate::analysis::connections::Connections;
use crate::analysis::kind::Kind;
use crate::decode::segment::{ACK, Endpoint, FIN, Options, PSH, RST, SYN, Segment};
use crate::output::facts::{ConnectionFacts, DataFacts};
use crate::output::retention::RetentionPolicy;
use crate::output::tables::{Column, tables};

const MS: u64 = 1_000_000;
/// The client's initial sequence number; data soon crosses 2^32.
const ISN: u32 = u32::MAX - 5_000;

/// Packets in order of time; segments are counted from 0 and have 1000 bytes.
struct TestConnection {
    connections: Connections,
    now_ms: u64,
    frame: u64,
    identification: Option<u16>,
    sack: bool,
}

impl TestConnection {
    fn silent() -> Self {
        let connections = Connections::new(0, RetentionPolicy::One(0));
        TestConnection { connections, now_ms: 0, frame: 0, identification: None, sack: true }
    }

    /// After the handshake, which ends at 20 ms.
    fn open() -> Self {
        let mut connection = TestConnection::silent();
        connection.handshake(50_000);
        connection
    }

    fn handshake(&mut self, port: u16) {
        let mut options = offered();
        options.window_scale = Some(4);
        options.sack_permitted = self.sack;
        self.put(true, port, Segment { flags: SYN, seq: ISN, options, ..blank() });
        self.after(20);
        self.put(false, port, Segment { flags: SYN | ACK, seq: 0, ack: ISN.wrapping_add(1), options, ..blank() });
        self.put(true, port, Segment { flags: ACK, seq: ISN.wrapping_add(1), ack: 1, ..blank() });
    }

    fn put(&mut self, from_client: bool, port: u16, segment: Segment) {
        let client = Endpoint { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), port };
        let server = Endpoint { address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), port: 80 };
        let (source, target) = if from_client { (client, server) } else { (server, client) };
        self.frame += 1;
        let time_ns = self.now_ms * MS;
        self.connections.take(&Segment { source, target, time_ns, frame: self.frame, ..segment });
    }

    fn after(&mut self, ms: u64) -> &mut Self {
        self.now_ms += ms;
        self
    }

    fn data(&mut self, number: u32) -> &mut Self {
        self.sized(number, 1000)
    }

    fn sized(&mut self, number: u32, payload: u32) -> &mut Self {
        self.bytes(number * 1000, payload)
    }

    /// `payload` bytes, after the first `before` bytes of the data.
    fn bytes(&mut self, before: u32, payload: u32) -> &mut Self {
        let seq = ISN.wrapping_add(1 + before);
        let ip_id = self.identification;
        self.identification = ip_id.map(|id| id.wrapping_add(1));
        self.put(true, 50_000, Segment { flags: ACK, seq, ack: 1, payload, ip_id, ..blank() });
        self
    }

    /// A packet with a given IP identification.
    fn identified(&mut self, number: u32, identification: u16) -> &mut Self {
        let next = self.identification;
        self.identification = Some(identification);
        self.data(number);
        self.identification = next;
        self
    }

    /// Acknowledges all segments below `number`; SACK blocks by segment numbers.
    fn ack(&mut self, number: u32, sacks: &[(u32, u32)]) -> &mut Self {
        self.offer(number, sacks, 4096)
    }

    fn offer(&mut self, number: u32, sacks: &[(u32, u32)], window: u16) -> &mut Self {
        let at = |number: u32| ISN.wrapping_add(1 + number * 1000);
        let mut options = Options::default();
        for &(left, right) in sacks {
            options.add_sack(at(left), at(right));
        }
        self.put(false, 50_000, Segment { flags: ACK, seq: 1, ack: at(number), window, options, ..blank() });
        self
    }

    /// Ten segments, each acknowledged a round trip later, so that round trips are known.
    fn warm(&mut self) -> &mut Self {
        for number in 0..10 {
            self.data(number).after(20).ack(number + 1, &[]).after(1);
        }
        self
    }

    fn facts(&mut self) -> ConnectionFacts {
        self.connections.finish();
        ConnectionFacts::of(&self.connections.all[0], 0)
    }

    fn data_facts(&mut self) -> DataFacts {
        self.facts().directions.remove(0).data.unwrap()
    }

    /// Kinds of all segments.
    fn kinds(&mut self) -> Vec<u8> {
        let tables = self.connections.retention.only().unwrap();
        match tables[0].1.iter().find(|(name, _)| *name == "kind") {
            Some((_, Column::Small(kinds))) => kinds.clone(),
            _ => panic!("there is no such column"),
        }
    }

    /// Kind of the last segment.
    fn kind(&mut self) -> u8 {
        *self.kinds().last().unwrap()
    }
}

/// A column of the table `series`.
fn column(connection: &mut TestConnection, name: &str) -> Column {
    let (_, series) = tables(&connection.connections).swap_remove(0);
    series.into_iter().find(|(column, _)| *column == name).unwrap().1
}

fn offered() -> Options {
    let mut options = Options::default();
    options.mss = Some(1000);
    options
}

fn blank() -> Segment {
    let nobody = Endpoint { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: 0 };
    Segment {
        frame: 0,
        time_ns: 0,
        source: nobody,
        target: nobody,
        seq: 0,
        ack: 0,
        flags: 0,
        window: 4096,
        payload: 0,
        options: Options::default(),
        ip_id: None,
        ttl: 64,
        ecn: 0,
        via: 0,
        cut: false,
    }
}

#[test]
fn handshake_reports_options_and_both_rtt_halves() {
    let facts = TestConnection::open().facts();
    assert!(facts.handshake.seen);
    assert_eq!((facts.handshake.rtt_server_s, facts.handshake.rtt_client_s), (Some(0.02), Some(0.0)));
    let client = facts.handshake.client.unwrap();
    assert_eq!((client.mss, client.window_scale, client.sack), (Some(1000), Some(4), true));
    assert_eq!(facts.capture_point.at, "client");
}

#[test]
fn ack_after_20_ms_is_rtt_of_20_ms() {
    let data = TestConnection::open().warm().data_facts();
    let trips = data.rtt.sequence.unwrap();
    assert_eq!((trips.samples, trips.min_s, trips.max_s), (10, 0.02, 0.02));
    assert_eq!((data.volume.acknowledged_bytes, data.volume.new_bytes, data.volume.data_packets), (10_000, 10_000, 10));
}

#[test]
fn late_fin_is_outside_goodput_duration() {
    let mut connection = TestConnection::open();
    connection.warm().after(3000);
    let seq = ISN.wrapping_add(1 + 10_000);
    connection.put(true, 50_000, Segment { flags: FIN | ACK, seq, ack: 1, ..blank() });
    let data = connection.data_facts();
    assert_eq!((data.first_data_s, data.last_data_s, data.duration_s), (0.02, 0.209, 0.189));
    assert_eq!(data.goodput_bps, Some(80_000.0 / 0.189));
}

#[test]
fn retransmitted_data_gives_no_rtt_sample() {
    let mut connection = TestConnection::open();
    connection.data(0).after(300).data(0).after(5).ack(1, &[]);
    assert!(connection.data_facts().rtt.sequence.is_none());
}

#[test]
fn copy_after_sack_is_fast_retransmission() {
    let mut connection = TestConnection::open();
    connection
        .warm()
        .data(10)
        .data(11)
        .data(12)
        .data(13)
        .after(20)
        .ack(10, &[(11, 14)])
        .data(10)
        .after(20)
        .ack(14, &[]);
    let data = connection.data_facts();
    assert_eq!(
        (
            data.counts.retransmits,
            data.counts.fast,
            data.counts.timeouts,
            data.counts.tail_probes,
            data.counts.spurious
        ),
        (1, 1, 0, 0, 0)
    );
    assert_eq!((data.loss.lost, data.loss.after, data.loss.before, data.loss.place), (1, 1, 0, "data after"));
    assert_eq!((data.counts.duplicate_acks, data.counts.sack_blocks), (1, 1));
}

#[test]
fn copy_of_first_outstanding_after_silence_is_timeout() {
    let mut connection = TestConnection::open();
    connection.warm().data(10).data(11).after(230).data(10);
    assert_eq!(connection.data_facts().counts.timeouts, 1);
    assert_eq!(connection.kind(), Kind::Timeout as u8);
}

#[test]
fn retransmissions_in_rto_recovery_count_for_the_timeout() {
    let mut connection = TestConnection::open();
    connection.warm().data(10).data(11).data(12).after(230).data(10).after(20).ack(11, &[]).data(11).data(12);
    let data = connection.data_facts();
    assert_eq!((data.counts.timeouts, data.counts.timeout_retransmits, data.counts.fast), (1, 3, 0));
}

#[test]
fn copy_of_last_after_two_rtts_is_tail_loss_probe() {
    let mut connection = TestConnection::open();
    connection.warm().data(10).data(11).data(12).after(44).data(12);
    let data = connection.data_facts();
    assert_eq!((data.counts.tail_probes, data.counts.timeouts, data.counts.fast), (1, 0, 0));
    assert_eq!(connection.kind(), Kind::TailProbe as u8);
}

#[test]
fn copy_of_last_in_recovery_is_not_a_probe() {
    let mut connection = TestConnection::open();
    connection
        .warm()
        .data(10)
        .data(11)
        .data(12)
        .data(13)
        .after(20)
        .ack(10, &[(11, 13)])
        .data(10)
        .after(20)
        .ack(13, &[]);
    connection.data(13);
    let data = connection.data_facts();
    assert_eq!((data.counts.fast, data.counts.tail_probes), (2, 0));
}

#[test]
fn new_data_after_silence_is_probe_without_retransmission() {
    let mut connection = TestConnection::open();
    connection.warm().data(10).data(11).after(44).data(12);
    let data = connection.data_facts();
    assert_eq!((data.counts.new_data_probes, data.counts.tail_probes, data.counts.retransmits), (1, 0, 0));
}

#[test]
fn handshake_rtt_sets_timers_before_first_ack() {
    let mut connection = TestConnection::open();
    // A round trip of 20 ms: the probe after 40 ms, the timer after 220 ms.
    connection.data(0).data(1).after(44).data(2).after(225).data(0);
    let data = connection.data_facts();
    assert_eq!((data.counts.new_data_probes, data.counts.timeouts, data.counts.fast), (1, 1, 0));
}

#[test]
fn retransmission_right_after_sack_is_fast_despite_silence() {
    let mut connection = TestConnection::open();
    connection.warm().data(10).data(11).data(12).after(400).ack(10, &[(12, 13)]).data(10);
    let data = connection.data_facts();
    assert_eq!((data.counts.fast, data.counts.timeouts), (1, 0));
}

#[test]
fn timeout_is_recognized_despite_recent_sack() {
    let mut connection = TestConnection::open();
    connection
        .warm()
        .data(10)
        .data(11)
        .data(12)
        .after(20)
        .ack(10, &[(12, 13)])
        .data(10)
        .after(100)
        .ack(10, &[(11, 13)]);
    connection.after(125).data(10);
    let data = connection.data_facts();
    assert_eq!((data.counts.fast, data.counts.timeouts), (1, 1));
}

#[test]
fn single_segment_is_probed_then_timed_out() {
    let mut connection = TestConnection::open();
    connection.warm().data(10).after(225).data(10).after(225).data(10).after(450).data(10);
    let data = connection.data_facts();
    assert_eq!((data.counts.tail_probes, data.counts.timeouts, data.counts.fast), (1, 2, 0));
}

#[test]
fn no_tail_loss_probe_without_sack() {
    let mut connection = TestConnection::silent();
    connection.sack = false;
    connection.handshake(50_000);
    connection.warm().data(10).after(225).data(10);
    let data = connection.data_facts();
    assert_eq!((data.counts.tail_probes, data.counts.timeouts), (0, 1));
}

#[test]
fn repeated_syn_gives_rtt_only_with_timestamps() {
    for (clock, data) in [(None, None), (Some(1_000), Some(0.02))] {
        let mut connection = TestConnection::silent();
        let stamped = |tsval: u32, tsecr: u32| {
            let mut options = offered();
            options.timestamps = clock.map(|_| (tsval, tsecr));
            options
        };
        let syn = Segment { flags: SYN, seq: ISN, ..blank() };
        connection.put(true, 50_000, Segment { options: stamped(1, 0), ..syn });
        connection.after(1_000).put(true, 50_000, Segment { options: stamped(1_001, 0), ..syn });
        let answer = Segment { flags: SYN | ACK, ack: ISN.wrapping_add(1), ..blank() };
        connection.after(20).put(false, 50_000, Segment { options: stamped(7, 1_001), ..answer });
        assert_eq!(connection.facts().handshake.rtt_server_s, data);
    }
}

#[test]
fn dsack_marks_retransmission_spurious() {
    let mut connection = TestConnection::open();
    connection.warm().data(10).data(11).after(230).data(10).after(5).ack(12, &[]).after(15).ack(12, &[(10, 11)]);
    let data = connection.data_facts();
    assert_eq!((data.counts.spurious, data.counts.dsacks, data.loss.lost, data.counts.timeouts), (1, 1, 0, 1));
    assert_eq!(data.loss.place, "acknowledgements");
    let kinds = connection.kinds();
    assert_eq!(kinds.iter().filter(|&&kind| kind == Kind::Spurious as u8).count(), 1);
}

#[test]
fn copy_of_acknowledged_data_is_spurious() {
    let mut connection = TestConnection::open();
    connection.warm().after(5).data(9);
    assert_eq!(connection.data_facts().counts.spurious, 1);
    assert_eq!(connection.kind(), Kind::Spurious as u8);
}

#[test]
fn hole_filled_at_once_is_reordering() {
    let mut connection = TestConnection::open();
    connection.warm().data(11).after(2).data(10);
    let data = connection.data_facts();
    assert_eq!((data.counts.out_of_order, data.counts.retransmits, data.counts.reordering_bytes), (1, 0, 1000));
    assert_eq!(data.counts.reordering_ns, 2_000_000);
    assert_eq!(connection.kind(), Kind::OutOfOrder as u8);
}

#[test]
fn hole_filled_after_rtt_is_loss_before_capture_point() {
    let mut connection = TestConnection::open();
    connection.warm().data(11).after(20).ack(10, &[(11, 12)]).data(10).after(20).ack(12, &[]);
    let data = connection.data_facts();
    assert_eq!(
        (data.counts.out_of_order, data.counts.retransmits, data.counts.filled_holes, data.counts.fast),
        (0, 1, 1, 1)
    );
    assert_eq!((data.loss.before, data.loss.after, data.loss.place), (1, 0, "data before"));
}

#[test]
fn ip_id_overrides_timing_for_reordering() {
    let mut late = TestConnection::open();
    late.identification = Some(100);
    // Number 110 is missing and comes a long round trip later.
    late.warm().identified(11, 111).after(30).identified(10, 110);
    assert_eq!(late.data_facts().counts.out_of_order, 1);
    let mut soon = TestConnection::open();
    soon.identification = Some(100);
    // A new packet, 112, fills the gap: the first copy was lost.
    soon.warm().identified(11, 111).after(1).identified(10, 112).after(20).ack(12, &[]);
    let data = soon.data_facts();
    assert_eq!((data.counts.filled_holes, data.loss.missing, data.loss.sure), (1, Some(1), "exact"));
}

#[test]
fn new_sequence_numbers_are_never_retransmissions() {
    let mut connection = TestConnection::open();
    connection.identification = Some(100);
    connection.warm().after(250).identified(10, 111).after(20).ack(11, &[]);
    let data = connection.data_facts();
    assert_eq!((data.counts.retransmits, data.counts.filled_holes, data.loss.missing), (0, 0, None));
    assert_ne!(data.loss.sure, "exact");
}

#[test]
fn same_packet_captured_twice_is_not_a_retransmission() {
    let mut connection = TestConnection::open();
    connection.identification = Some(100);
    connection.warm().identified(10, 110).identified(10, 110);
    let data = connection.data_facts();
    assert_eq!((data.counts.duplicated_packets, data.counts.retransmits), (1, 0));
}

#[test]
fn unseen_acknowledged_data_is_capture_gap_not_loss() {
    let mut connection = TestConnection::open();
    connection.warm().data(11).after(20).ack(12, &[]);
    let data = connection.data_facts();
    assert_eq!((data.unseen.unseen_bytes, data.loss.lost, data.counts.retransmits), (1000, 0, 0));
}

#[test]
fn lost_retransmission_counts_as_another_copy() {
    let mut connection = TestConnection::open();
    connection.warm().data(10).data(11).data(12).after(20).ack(10, &[(11, 13)]).data(10).after(230).data(10);
    connection.after(20).ack(13, &[]);
    let data = connection.data_facts();
    assert_eq!((data.loss.lost, data.loss.lost_copies, data.counts.fast, data.counts.timeouts), (1, 2, 1, 1));
}

#[test]
fn adjacent_losses_are_one_run() {
    let mut connection = TestConnection::open();
    connection
        .warm()
        .data(10)
        .data(11)
        .data(12)
        .after(20)
        .ack(10, &[(12, 13)])
        .data(10)
        .data(11)
        .after(20)
        .ack(13, &[]);
    let data = connection.data_facts();
    assert_eq!((data.loss.lost, data.loss.runs, data.loss.longest_run), (2, 1, 2));
}

#[test]
fn zero_window_is_counted_timed_and_probed() {
    let mut connection = TestConnection::open();
    connection.warm().data(10).after(20).offer(11, &[], 0).after(300);
    // Linux probes with an empty segment below what was acknowledged.
    connection.put(true, 50_000, Segment { flags: ACK, seq: ISN.wrapping_add(11_000), ack: 1, ..blank() });
    connection.after(20).offer(11, &[], 4096).data(11);
    let data = connection.data_facts();
    assert_eq!(
        (
            data.counts.zero_windows,
            data.counts.zero_window_ns,
            data.counts.zero_window_probes,
            data.counts.window_updates
        ),
        (1, 320_000_000, 1, 1)
    );
    assert!(data.limits.receiver_window_s > 0.3 && data.limits.idle_s == 0.0);
}

#[test]
fn unannounced_window_limits_nothing() {
    let mut connection = TestConnection::silent();
    connection.sized(0, 1).after(20).sized(1, 1000).after(20).sized(2, 1000);
    let Column::Float(windows) = &column(&mut connection, "window_bytes") else { panic!() };
    assert!(!windows.is_empty() && windows.iter().all(|window| window.is_nan()));
    let data = connection.data_facts();
    assert_eq!((data.counts.zero_window_probes, data.limits.receiver_window_s), (0, 0.0));
    // Once a kind is reported, it does not change.
    let mut connection = TestConnection::silent();
    connection.sized(0, 1000).after(20).ack(1, &[]).data(1);
    let Column::Float(windows) = &column(&mut connection, "window_bytes") else { panic!() };
    assert!(windows.iter().all(|&window| window.is_nan() || window == 4096.0), "{windows:?}");
}

#[test]
fn empty_segment_below_ack_is_keep_alive() {
    let mut connection = TestConnection::open();
    connection.warm().after(1000);
    connection.put(true, 50_000, Segment { flags: ACK, seq: ISN.wrapping_add(10_000), ack: 1, ..blank() });
    assert_eq!(connection.data_facts().counts.keep_alives, 1);
    assert_eq!(connection.kind(), Kind::Probe as u8);
}

#[test]
fn in_flight_excludes_acked_and_sacked() {
    let mut connection = TestConnection::open();
    connection.warm().data(10).data(11).data(12).after(20).ack(10, &[(11, 13)]).data(13);
    assert_eq!(connection.data_facts().counts.in_flight_max_bytes, 3000);
}

#[test]
fn pause_after_full_ack_is_idle() {
    let mut connection = TestConnection::open();
    connection.warm().after(500).data(10);
    let limits = connection.data_facts().limits;
    assert!((limits.idle_s - 0.501).abs() < 0.002, "{limits:?}");
}

#[test]
fn short_segment_with_open_window_is_application_limited() {
    let mut connection = TestConnection::open();
    connection.warm().data(10).sized(11, 500).after(15).sized(12, 1000);
    let limits = connection.data_facts().limits;
    assert!((limits.sender_s - 0.015).abs() < 1e-9, "{limits:?}");
}

#[test]
fn syn_with_new_isn_begins_new_connection() {
    let mut connection = TestConnection::open();
    connection.warm();
    let options = offered();
    connection.put(true, 50_000, Segment { flags: SYN, seq: 77, options, ..blank() });
    assert_eq!(connection.connections.all.len(), 2);
}

#[test]
fn syn_with_same_isn_after_reset_is_retransmission() {
    let mut connection = TestConnection::silent();
    let syn = Segment { flags: SYN, seq: ISN, options: offered(), ..blank() };
    connection.put(true, 50_000, syn);
    connection.put(false, 50_000, Segment { flags: RST | ACK, ack: ISN.wrapping_add(1), ..blank() });
    connection.after(500).put(true, 50_000, syn);
    assert_eq!(connection.connections.all.len(), 1);
    assert_eq!(connection.facts().handshake.client.unwrap().retransmits, 1);
}

#[test]
fn repeated_syn_is_retransmission() {
    let mut connection = TestConnection::silent();
    let options = offered();
    connection.put(true, 50_000, Segment { flags: SYN, seq: ISN, options, ..blank() });
    connection.after(1000).put(true, 50_000, Segment { flags: SYN, seq: ISN, options, ..blank() });
    assert_eq!(connection.connections.all.len(), 1);
    assert_eq!(connection.facts().handshake.client.unwrap().retransmits, 1);
}

#[test]
fn two_fins_or_a_reset_close_a_connection() {
    let mut connection = TestConnection::open();
    assert_eq!(connection.facts().closed, "open");
    connection.put(true, 50_000, Segment { flags: FIN | ACK, seq: ISN.wrapping_add(1), ack: 1, ..blank() });
    connection.put(false, 50_000, Segment { flags: FIN | ACK, seq: 1, ack: ISN.wrapping_add(2), ..blank() });
    assert_eq!(connection.facts().closed, "fin");
    let mut reset = TestConnection::open();
    reset.put(false, 50_000, Segment { flags: RST, seq: 1, ..blank() });
    assert_eq!(reset.facts().closed, "reset");
}

#[test]
fn memory_per_syn_is_bounded() {
    let mut connection = TestConnection::silent();
    for port in 1..=50_000 {
        connection.put(true, port, Segment { flags: SYN, seq: 1, ..blank() });
    }
    assert_eq!(connection.connections.all.len(), 50_000);
    assert!(connection.connections.all.iter().all(|one| one.flows.iter().all(Option::is_none)));
    let bytes = size_of::<crate::analysis::connection::Connection>();
    assert!(bytes <= 512, "{bytes}");
}

#[test]
fn never_acknowledged_data_is_given_up_at_the_bound() {
    let mut connection = TestConnection::open();
    for number in 0..150_000 {
        connection.data(number);
    }
    assert!(connection.connections.shared.outstanding <= crate::analysis::shared::MOST_OUTSTANDING);
    assert!(connection.data_facts().unseen.given_up > 0);
}
