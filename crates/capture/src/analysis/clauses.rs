//! Tests of the analysis, one clause each, on hand-made packets: a client at the capture point sends 1000-byte segments
//! to a server 20 ms (round trip) away. One file: a test for each clause.

mod wild;

use std::net::{IpAddr, Ipv4Addr};

use crate::analysis::connections::Connections;
use crate::analysis::kind::Kind;
use crate::decode::segment::{ACK, Endpoint, FIN, Options, PSH, RST, SYN, Segment};
use crate::output::facts::{ConnectionFacts, DataFacts};
use crate::output::retention::Wanted;
use crate::output::tables::{Column, tables};

const MS: u64 = 1_000_000;
/// The client's initial sequence number; data soon crosses 2^32.
const ISN: u32 = u32::MAX - 5_000;

/// Packets in order of time; segments are counted from 0 and have 1000 bytes.
struct Talk {
    connections: Connections,
    now_ms: u64,
    frame: u64,
    identification: Option<u16>,
    sack: bool,
}

impl Talk {
    fn silent() -> Self {
        let connections = Connections::new(0, Wanted::One(0));
        Talk { connections, now_ms: 0, frame: 0, identification: None, sack: true }
    }

    /// After the handshake, which ends at 20 ms.
    fn open() -> Self {
        let mut talk = Talk::silent();
        talk.handshake(50_000);
        talk
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

    fn told(&mut self) -> DataFacts {
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
fn column(talk: &mut Talk, name: &str) -> Column {
    let (_, series) = tables(&talk.connections).swap_remove(0);
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
fn the_handshake_reports_options_and_both_halves_of_the_round_trip() {
    let facts = Talk::open().facts();
    assert!(facts.handshake.seen);
    assert_eq!((facts.handshake.rtt_server_s, facts.handshake.rtt_client_s), (Some(0.02), Some(0.0)));
    let client = facts.handshake.client.unwrap();
    assert_eq!((client.mss, client.window_scale, client.sack), (Some(1000), Some(4), true));
    assert_eq!(facts.capture_point.at, "client");
}

#[test]
fn data_acknowledged_after_20_ms_is_a_round_trip_of_20_ms() {
    let told = Talk::open().warm().told();
    let trips = told.rtt.sequence.unwrap();
    assert_eq!((trips.samples, trips.min_s, trips.max_s), (10, 0.02, 0.02));
    assert_eq!((told.volume.acknowledged_bytes, told.volume.new_bytes, told.volume.data_packets), (10_000, 10_000, 10));
}

#[test]
fn a_fin_long_after_the_last_data_is_no_part_of_the_time_that_the_goodput_is_of() {
    let mut talk = Talk::open();
    talk.warm().after(3000);
    let seq = ISN.wrapping_add(1 + 10_000);
    talk.put(true, 50_000, Segment { flags: FIN | ACK, seq, ack: 1, ..blank() });
    let told = talk.told();
    assert_eq!((told.first_data_s, told.last_data_s, told.duration_s), (0.02, 0.209, 0.189));
    assert_eq!(told.goodput_bps, Some(80_000.0 / 0.189));
}

#[test]
fn what_was_retransmitted_gives_no_round_trip() {
    let mut talk = Talk::open();
    talk.data(0).after(300).data(0).after(5).ack(1, &[]);
    assert!(talk.told().rtt.sequence.is_none());
}

#[test]
fn a_copy_sent_upon_sack_is_a_fast_retransmission_lost_after_the_capture_point() {
    let mut talk = Talk::open();
    talk.warm().data(10).data(11).data(12).data(13).after(20).ack(10, &[(11, 14)]).data(10).after(20).ack(14, &[]);
    let told = talk.told();
    assert_eq!(
        (
            told.counts.retransmits,
            told.counts.fast,
            told.counts.timeouts,
            told.counts.tail_probes,
            told.counts.spurious
        ),
        (1, 1, 0, 0, 0)
    );
    assert_eq!((told.loss.lost, told.loss.after, told.loss.before, told.loss.place), (1, 1, 0, "data after"));
    assert_eq!((told.counts.duplicate_acks, told.counts.sack_blocks), (1, 1));
}

#[test]
fn a_copy_of_the_first_outstanding_one_after_a_long_silence_is_a_timeout() {
    let mut talk = Talk::open();
    talk.warm().data(10).data(11).after(230).data(10);
    assert_eq!(talk.told().counts.timeouts, 1);
    assert_eq!(talk.kind(), Kind::Timeout as u8);
}

#[test]
fn what_is_sent_again_in_the_recovery_from_a_timeout_is_the_timeouts() {
    let mut talk = Talk::open();
    talk.warm().data(10).data(11).data(12).after(230).data(10).after(20).ack(11, &[]).data(11).data(12);
    let told = talk.told();
    assert_eq!((told.counts.timeouts, told.counts.timeout_retransmits, told.counts.fast), (1, 3, 0));
}

#[test]
fn a_copy_of_the_last_one_after_two_round_trips_without_news_is_a_tail_probe() {
    let mut talk = Talk::open();
    talk.warm().data(10).data(11).data(12).after(44).data(12);
    let told = talk.told();
    assert_eq!((told.counts.tail_probes, told.counts.timeouts, told.counts.fast), (1, 0, 0));
    assert_eq!(talk.kind(), Kind::TailProbe as u8);
}

#[test]
fn a_copy_of_the_last_one_within_recovery_is_no_probe() {
    let mut talk = Talk::open();
    talk.warm().data(10).data(11).data(12).data(13).after(20).ack(10, &[(11, 13)]).data(10).after(20).ack(13, &[]);
    talk.data(13);
    let told = talk.told();
    assert_eq!((told.counts.fast, told.counts.tail_probes), (2, 0));
}

#[test]
fn new_data_sent_upon_silence_is_a_probe_that_retransmits_nothing() {
    let mut talk = Talk::open();
    talk.warm().data(10).data(11).after(44).data(12);
    let told = talk.told();
    assert_eq!((told.counts.new_data_probes, told.counts.tail_probes, told.counts.retransmits), (1, 0, 0));
}

#[test]
fn before_any_data_is_acknowledged_the_handshake_sets_the_timers() {
    let mut talk = Talk::open();
    // A round trip of 20 ms: the probe after 40 ms, the timer after 220 ms.
    talk.data(0).data(1).after(44).data(2).after(225).data(0);
    let told = talk.told();
    assert_eq!((told.counts.new_data_probes, told.counts.timeouts, told.counts.fast), (1, 1, 0));
}

#[test]
fn a_retransmission_right_after_sack_is_fast_however_long_nothing_came() {
    let mut talk = Talk::open();
    talk.warm().data(10).data(11).data(12).after(400).ack(10, &[(12, 13)]).data(10);
    let told = talk.told();
    assert_eq!((told.counts.fast, told.counts.timeouts), (1, 0));
}

#[test]
fn a_timer_expires_although_sack_came_since() {
    let mut talk = Talk::open();
    talk.warm().data(10).data(11).data(12).after(20).ack(10, &[(12, 13)]).data(10).after(100).ack(10, &[(11, 13)]);
    talk.after(125).data(10);
    let told = talk.told();
    assert_eq!((told.counts.fast, told.counts.timeouts), (1, 1));
}

#[test]
fn what_is_alone_is_probed_first_and_timed_out_then() {
    let mut talk = Talk::open();
    talk.warm().data(10).after(225).data(10).after(225).data(10).after(450).data(10);
    let told = talk.told();
    assert_eq!((told.counts.tail_probes, told.counts.timeouts, told.counts.fast), (1, 2, 0));
}

#[test]
fn without_sack_there_are_no_probes() {
    let mut talk = Talk::silent();
    talk.sack = false;
    talk.handshake(50_000);
    talk.warm().data(10).after(225).data(10);
    let told = talk.told();
    assert_eq!((told.counts.tail_probes, told.counts.timeouts), (0, 1));
}

#[test]
fn a_syn_sent_twice_gives_a_round_trip_only_if_timestamps_tell_which_was_answered() {
    for (clock, told) in [(None, None), (Some(1_000), Some(0.02))] {
        let mut talk = Talk::silent();
        let stamped = |tsval: u32, tsecr: u32| {
            let mut options = offered();
            options.timestamps = clock.map(|_| (tsval, tsecr));
            options
        };
        let syn = Segment { flags: SYN, seq: ISN, ..blank() };
        talk.put(true, 50_000, Segment { options: stamped(1, 0), ..syn });
        talk.after(1_000).put(true, 50_000, Segment { options: stamped(1_001, 0), ..syn });
        let answer = Segment { flags: SYN | ACK, ack: ISN.wrapping_add(1), ..blank() };
        talk.after(20).put(false, 50_000, Segment { options: stamped(7, 1_001), ..answer });
        assert_eq!(talk.facts().handshake.rtt_server_s, told);
    }
}

#[test]
fn a_copy_that_the_receiver_reports_as_duplicate_was_spurious_and_nothing_was_lost() {
    let mut talk = Talk::open();
    talk.warm().data(10).data(11).after(230).data(10).after(5).ack(12, &[]).after(15).ack(12, &[(10, 11)]);
    let told = talk.told();
    assert_eq!((told.counts.spurious, told.counts.dsacks, told.loss.lost, told.counts.timeouts), (1, 1, 0, 1));
    assert_eq!(told.loss.place, "acknowledgements");
    let kinds = talk.kinds();
    assert_eq!(kinds.iter().filter(|&&kind| kind == Kind::Spurious as u8).count(), 1);
}

#[test]
fn a_copy_of_what_was_acknowledged_is_spurious_at_once() {
    let mut talk = Talk::open();
    talk.warm().after(5).data(9);
    assert_eq!(talk.told().counts.spurious, 1);
    assert_eq!(talk.kind(), Kind::Spurious as u8);
}

#[test]
fn a_hole_filled_at_once_was_overtaken() {
    let mut talk = Talk::open();
    talk.warm().data(11).after(2).data(10);
    let told = talk.told();
    assert_eq!((told.counts.out_of_order, told.counts.retransmits, told.counts.reordering_bytes), (1, 0, 1000));
    assert_eq!(told.counts.reordering_ns, 2_000_000);
    assert_eq!(talk.kind(), Kind::OutOfOrder as u8);
}

#[test]
fn a_hole_filled_a_round_trip_later_was_lost_before_the_capture_point() {
    let mut talk = Talk::open();
    talk.warm().data(11).after(20).ack(10, &[(11, 12)]).data(10).after(20).ack(12, &[]);
    let told = talk.told();
    assert_eq!(
        (told.counts.out_of_order, told.counts.retransmits, told.counts.filled_holes, told.counts.fast),
        (0, 1, 1, 1)
    );
    assert_eq!((told.loss.before, told.loss.after, told.loss.place), (1, 0, "data before"));
}

#[test]
fn the_identification_distinguishes_reordering_from_loss_against_the_clock() {
    let mut late = Talk::open();
    late.identification = Some(100);
    // Number 110 is missing and comes a long round trip later.
    late.warm().identified(11, 111).after(30).identified(10, 110);
    assert_eq!(late.told().counts.out_of_order, 1);
    let mut soon = Talk::open();
    soon.identification = Some(100);
    // A new packet, 112, fills the gap: the first copy was lost.
    soon.warm().identified(11, 111).after(1).identified(10, 112).after(20).ack(12, &[]);
    let told = soon.told();
    assert_eq!((told.counts.filled_holes, told.loss.missing, told.loss.sure), (1, Some(1), "exact"));
}

#[test]
fn new_numbers_are_no_retransmission_whatever_the_identification_says() {
    let mut talk = Talk::open();
    talk.identification = Some(100);
    talk.warm().after(250).identified(10, 111).after(20).ack(11, &[]);
    let told = talk.told();
    assert_eq!((told.counts.retransmits, told.counts.filled_holes, told.loss.missing), (0, 0, None));
    assert_ne!(told.loss.sure, "exact");
}

#[test]
fn the_same_packet_twice_is_no_retransmission() {
    let mut talk = Talk::open();
    talk.identification = Some(100);
    talk.warm().identified(10, 110).identified(10, 110);
    let told = talk.told();
    assert_eq!((told.counts.duplicated_packets, told.counts.retransmits), (1, 0));
}

#[test]
fn data_acknowledged_that_was_never_seen_is_the_captures_gap_and_no_loss() {
    let mut talk = Talk::open();
    talk.warm().data(11).after(20).ack(12, &[]);
    let told = talk.told();
    assert_eq!((told.unseen.unseen_bytes, told.loss.lost, told.counts.retransmits), (1000, 0, 0));
}

#[test]
fn a_retransmission_that_is_lost_too_counts_as_another_copy() {
    let mut talk = Talk::open();
    talk.warm().data(10).data(11).data(12).after(20).ack(10, &[(11, 13)]).data(10).after(230).data(10);
    talk.after(20).ack(13, &[]);
    let told = talk.told();
    assert_eq!((told.loss.lost, told.loss.lost_copies, told.counts.fast, told.counts.timeouts), (1, 2, 1, 1));
}

#[test]
fn neighbours_lost_are_one_run() {
    let mut talk = Talk::open();
    talk.warm().data(10).data(11).data(12).after(20).ack(10, &[(12, 13)]).data(10).data(11).after(20).ack(13, &[]);
    let told = talk.told();
    assert_eq!((told.loss.lost, told.loss.runs, told.loss.longest_run), (2, 1, 2));
}

#[test]
fn a_closed_window_is_counted_timed_and_probed() {
    let mut talk = Talk::open();
    talk.warm().data(10).after(20).offer(11, &[], 0).after(300);
    // Linux probes with an empty segment below what was acknowledged.
    talk.put(true, 50_000, Segment { flags: ACK, seq: ISN.wrapping_add(11_000), ack: 1, ..blank() });
    talk.after(20).offer(11, &[], 4096).data(11);
    let told = talk.told();
    assert_eq!(
        (
            told.counts.zero_windows,
            told.counts.zero_window_ns,
            told.counts.zero_window_probes,
            told.counts.window_updates
        ),
        (1, 320_000_000, 1, 1)
    );
    assert!(told.limits.receiver_window_s > 0.3 && told.limits.idle_s == 0.0);
}

#[test]
fn a_window_that_is_not_announced_yet_is_not_known_and_limits_nothing() {
    let mut talk = Talk::silent();
    talk.sized(0, 1).after(20).sized(1, 1000).after(20).sized(2, 1000);
    let Column::Float(windows) = &column(&mut talk, "window_bytes") else { panic!() };
    assert!(!windows.is_empty() && windows.iter().all(|window| window.is_nan()));
    let told = talk.told();
    assert_eq!((told.counts.zero_window_probes, told.limits.receiver_window_s), (0, 0.0));
    // Once a kind is reported, it does not change.
    let mut talk = Talk::silent();
    talk.sized(0, 1000).after(20).ack(1, &[]).data(1);
    let Column::Float(windows) = &column(&mut talk, "window_bytes") else { panic!() };
    assert!(windows.iter().all(|&window| window.is_nan() || window == 4096.0), "{windows:?}");
}

#[test]
fn an_empty_segment_below_what_was_acknowledged_is_a_keep_alive() {
    let mut talk = Talk::open();
    talk.warm().after(1000);
    talk.put(true, 50_000, Segment { flags: ACK, seq: ISN.wrapping_add(10_000), ack: 1, ..blank() });
    assert_eq!(talk.told().counts.keep_alives, 1);
    assert_eq!(talk.kind(), Kind::Probe as u8);
}

#[test]
fn in_flight_is_what_was_sent_and_neither_acknowledged_nor_sacked() {
    let mut talk = Talk::open();
    talk.warm().data(10).data(11).data(12).after(20).ack(10, &[(11, 13)]).data(13);
    assert_eq!(talk.told().counts.in_flight_max_bytes, 3000);
}

#[test]
fn a_pause_after_all_was_acknowledged_is_idle() {
    let mut talk = Talk::open();
    talk.warm().after(500).data(10);
    let limits = talk.told().limits;
    assert!((limits.idle_s - 0.501).abs() < 0.002, "{limits:?}");
}

#[test]
fn a_short_segment_with_room_for_more_is_the_applications_limit() {
    let mut talk = Talk::open();
    talk.warm().data(10).sized(11, 500).after(15).sized(12, 1000);
    let limits = talk.told().limits;
    assert!((limits.sender_s - 0.015).abs() < 1e-9, "{limits:?}");
}

#[test]
fn a_syn_with_another_number_begins_another_connection_on_the_same_ports() {
    let mut talk = Talk::open();
    talk.warm();
    let options = offered();
    talk.put(true, 50_000, Segment { flags: SYN, seq: 77, options, ..blank() });
    assert_eq!(talk.connections.all.len(), 2);
}

#[test]
fn a_syn_with_the_same_number_after_a_reset_is_sent_again() {
    let mut talk = Talk::silent();
    let syn = Segment { flags: SYN, seq: ISN, options: offered(), ..blank() };
    talk.put(true, 50_000, syn);
    talk.put(false, 50_000, Segment { flags: RST | ACK, ack: ISN.wrapping_add(1), ..blank() });
    talk.after(500).put(true, 50_000, syn);
    assert_eq!(talk.connections.all.len(), 1);
    assert_eq!(talk.facts().handshake.client.unwrap().retransmits, 1);
}

#[test]
fn the_same_syn_again_is_a_retransmission_of_it() {
    let mut talk = Talk::silent();
    let options = offered();
    talk.put(true, 50_000, Segment { flags: SYN, seq: ISN, options, ..blank() });
    talk.after(1000).put(true, 50_000, Segment { flags: SYN, seq: ISN, options, ..blank() });
    assert_eq!(talk.connections.all.len(), 1);
    assert_eq!(talk.facts().handshake.client.unwrap().retransmits, 1);
}

#[test]
fn a_connection_is_closed_by_two_fins_or_by_a_reset() {
    let mut talk = Talk::open();
    assert_eq!(talk.facts().closed, "open");
    talk.put(true, 50_000, Segment { flags: FIN | ACK, seq: ISN.wrapping_add(1), ack: 1, ..blank() });
    talk.put(false, 50_000, Segment { flags: FIN | ACK, seq: 1, ack: ISN.wrapping_add(2), ..blank() });
    assert_eq!(talk.facts().closed, "fin");
    let mut reset = Talk::open();
    reset.put(false, 50_000, Segment { flags: RST, seq: 1, ..blank() });
    assert_eq!(reset.facts().closed, "reset");
}

#[test]
fn a_flood_of_syns_costs_a_bounded_number_of_bytes_each() {
    let mut talk = Talk::silent();
    for port in 1..=50_000 {
        talk.put(true, port, Segment { flags: SYN, seq: 1, ..blank() });
    }
    assert_eq!(talk.connections.all.len(), 50_000);
    assert!(talk.connections.all.iter().all(|one| one.flows.iter().all(Option::is_none)));
    let bytes = size_of::<crate::analysis::connection::Connection>();
    assert!(bytes <= 512, "{bytes}");
}

#[test]
fn data_that_is_never_acknowledged_is_given_up_in_the_end() {
    let mut talk = Talk::open();
    for number in 0..150_000 {
        talk.data(number);
    }
    assert!(talk.connections.shared.outstanding <= crate::analysis::shared::MOST_OUTSTANDING);
    assert!(talk.told().unseen.given_up > 0);
}
