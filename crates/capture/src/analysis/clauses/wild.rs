//! Tests on patterns from captures by others: they begin late, come from mirror ports, are out of order, or have one
//! direction only.

use super::*;

const SERVER_ISN: u32 = 0;

fn raw(number: u32) -> u32 {
    ISN.wrapping_add(1 + number * 1000)
}

/// A segment of the client, modified by `change`.
fn client(connection: &mut TestConnection, seq: u32, payload: u32, change: impl FnOnce(&mut Segment)) {
    let mut segment = Segment { flags: ACK, seq, ack: 1, payload, ..blank() };
    change(&mut segment);
    connection.put(true, 50_000, segment);
}

#[test]
fn host_wide_ip_id_counter_shows_no_loss() {
    let mut connection = TestConnection::open();
    for number in 0..200_u32 {
        // The host sends others two packets for each of this connection, and sometimes twenty.
        let id = (100 + number * 3 + number / 10 * 20) as u16;
        connection.identified(number, id).after(20).ack(number + 1, &[]).after(1);
    }
    let data = connection.data_facts();
    assert_eq!((data.counts.retransmits, data.counts.filled_holes, data.counts.out_of_order), (0, 0, 0));
    assert_eq!((data.loss.missing, data.loss.lost_copies, data.loss.place), (None, 0, "none"));
    assert_ne!(data.loss.sure, "exact");
}

#[test]
fn uncaptured_data_without_retransmission_was_not_lost() {
    let mut connection = TestConnection::open();
    for number in (0..100_u32).filter(|number| number % 10 != 9) {
        connection.identified(number, 100 + number as u16).after(20).ack(number + 1, &[]).after(1);
    }
    let data = connection.data_facts();
    assert_eq!((data.counts.retransmits, data.loss.lost, data.loss.missing), (0, 0, Some(9)));
    assert_eq!((data.loss.lost_copies, data.loss.before, data.loss.place), (0, 0, "none"));
}

#[test]
fn messages_without_handshake_are_one_segment_each() {
    let mut connection = TestConnection::silent();
    for number in 0..50 {
        let payload = if number % 10 == 9 { 900 } else { 7 };
        client(&mut connection, raw(number), payload, |segment| segment.flags |= PSH);
        connection.after(5);
    }
    let data = connection.data_facts();
    assert_eq!((data.volume.data_packets, data.volume.super_packets), (50, 0));
}

#[test]
fn mss_is_inferred_without_handshake() {
    let mut connection = TestConnection::silent();
    for number in 0..10 {
        connection.data(number).after(1);
    }
    connection.sized(10, 8000);
    let data = connection.data_facts();
    assert_eq!((data.mss, data.volume.data_packets, data.volume.super_packets), (1000, 18, 1));
}

#[test]
fn data_captured_after_its_ack_is_not_a_retransmission() {
    let mut connection = TestConnection::open();
    connection.warm().ack(11, &[]).data(10).after(5).data(11).after(20).ack(12, &[]);
    let data = connection.data_facts();
    assert_eq!(
        (data.unseen.unseen_bytes, data.counts.retransmits, data.counts.spurious, data.counts.out_of_order),
        (0, 0, 0, 0)
    );
    assert_eq!((data.volume.new_bytes, data.volume.acknowledged_bytes), (12_000, 12_000));
    // Also for the first data of a capture.
    let mut connection = TestConnection::silent();
    connection.ack(1, &[]).data(0).data(1).after(20).ack(2, &[]);
    let data = connection.data_facts();
    assert_eq!((data.unseen.unseen_bytes, data.counts.retransmits, data.volume.new_bytes), (0, 0, 2000));
}

#[test]
fn data_an_rtt_after_its_ack_is_spurious_retransmission() {
    let mut connection = TestConnection::open();
    connection.warm().ack(11, &[]).after(100).data(10);
    let data = connection.data_facts();
    assert_eq!((data.unseen.unseen_bytes, data.counts.retransmits, data.counts.spurious), (0, 1, 1));
}

#[test]
fn late_acknowledged_data_out_of_order_is_reordering() {
    let mut connection = TestConnection::open();
    connection.warm().ack(12, &[]).data(11).after(1).data(10);
    let data = connection.data_facts();
    assert_eq!((data.counts.out_of_order, data.counts.retransmits, data.unseen.unseen_bytes), (1, 0, 0));
}

#[test]
fn empty_segment_shows_data_sent_before_it() {
    let mut connection = TestConnection::open();
    connection.warm();
    client(&mut connection, raw(12), 0, |_| ());
    connection.after(1).data(11).after(40).data(10).after(20).ack(12, &[]);
    let data = connection.data_facts();
    assert_eq!((data.counts.out_of_order, data.counts.retransmits, data.counts.filled_holes), (1, 1, 1));
}

#[test]
fn retransmitted_fin_counts_duplicate_capture_does_not() {
    let mut connection = TestConnection::open();
    for id in [7, 7, 8, 9] {
        client(&mut connection, raw(0), 0, |segment| (segment.flags, segment.ip_id) = (FIN | ACK, Some(id)));
        connection.after(300);
    }
    let facts = connection.facts();
    assert_eq!((facts.directions[0].fins_again, facts.directions[1].fins_again), (Some(2), Some(0)));
    assert!(facts.directions[0].data.is_none());
}

#[test]
fn repeated_fin_after_data_is_not_keep_alive() {
    let mut connection = TestConnection::open();
    connection.warm();
    for _ in 0..2 {
        client(&mut connection, raw(10), 0, |segment| segment.flags = FIN | ACK);
        connection.after(300);
    }
    connection.put(false, 50_000, Segment { flags: ACK, seq: 1, ack: raw(10) + 1, ..blank() });
    client(&mut connection, raw(10), 0, |segment| segment.flags = FIN | ACK);
    let data = connection.data_facts();
    assert_eq!((data.counts.retransmits, data.counts.keep_alives), (2, 0));
}

#[test]
fn data_overtaken_by_fin_is_out_of_order() {
    let mut connection = TestConnection::open();
    client(&mut connection, raw(1), 0, |segment| segment.flags = FIN | ACK);
    connection.data(0).after(20);
    connection.put(false, 50_000, Segment { flags: ACK, seq: 1, ack: raw(1) + 1, ..blank() });
    let data = connection.data_facts();
    assert_eq!((data.counts.out_of_order, data.counts.retransmits, data.unseen.unseen_bytes), (1, 0, 0));
}

#[test]
fn reordered_handshake_is_one_connection() {
    let syn = Segment { flags: SYN, seq: ISN, options: offered(), ..blank() };
    let answer = Segment { flags: SYN | ACK, seq: SERVER_ISN, ack: raw(0), options: offered(), ..blank() };
    let third = Segment { flags: ACK, seq: raw(0), ack: 1, ..blank() };
    for order in [[2, 1, 0], [1, 0, 2], [2, 0, 1], [1, 2, 0]] {
        let mut connection = TestConnection::silent();
        for which in order {
            connection.put(which != 1, 50_000, [syn, answer, third][which]);
        }
        connection.data(0).after(20).ack(1, &[]);
        assert_eq!(connection.connections.all.len(), 1, "{order:?}");
        let facts = connection.facts();
        assert!(facts.handshake.seen && facts.client.ends_with(":50000"), "{order:?} {}", facts.client);
        assert_eq!(facts.handshake.client.unwrap().retransmits, 0);
    }
}

#[test]
fn syn_captured_after_first_data_joins_its_connection() {
    let mut connection = TestConnection::silent();
    connection.data(0).data(1);
    connection.put(true, 50_000, Segment { flags: SYN, seq: ISN, options: offered(), ..blank() });
    assert_eq!(connection.connections.all.len(), 1);
}

#[test]
fn new_syn_ack_begins_connection_if_client_is_uncaptured() {
    let mut connection = TestConnection::silent();
    let answer = Segment { flags: SYN | ACK, seq: 5, ack: raw(0), options: offered(), ..blank() };
    connection.put(false, 50_000, answer);
    connection.put(false, 50_000, answer);
    connection.after(60_000).put(false, 50_000, Segment { seq: 900_000, ack: 33, ..answer });
    assert_eq!(connection.connections.all.len(), 2);
}

#[test]
fn new_syn_ack_restarts_server_if_client_is_captured() {
    let mut connection = TestConnection::silent();
    connection.put(true, 50_000, Segment { flags: SYN, seq: ISN, options: offered(), ..blank() });
    for seq in [900_000_000, 7] {
        let answer = Segment { flags: SYN | ACK, seq, ack: raw(0), options: offered(), ..blank() };
        connection.after(1_000).put(false, 50_000, answer);
    }
    connection.put(true, 50_000, Segment { flags: ACK, seq: raw(0), ack: 8, ..blank() });
    connection.put(false, 50_000, Segment { flags: ACK, seq: 8, ack: raw(0), payload: 1000, ..blank() });
    connection.after(20).put(true, 50_000, Segment { flags: ACK, seq: raw(0), ack: 1008, ..blank() });
    let facts = connection.facts();
    assert_eq!(connection.connections.all.len(), 1);
    assert_eq!(facts.handshake.server.unwrap().retransmits, 1);
    let data = facts.directions.into_iter().nth(1).unwrap().data.unwrap();
    assert_eq!(
        (data.volume.new_bytes, data.volume.acknowledged_bytes, data.unseen.unseen_bytes, data.counts.retransmits),
        (1000, 1000, 0, 0)
    );
}

#[test]
fn same_ip_id_is_copy_at_once_and_retransmission_later() {
    let connection = |after_ms: u64, via: u32| {
        let mut connection = TestConnection::open();
        connection.identification = Some(100);
        connection.warm().identified(10, 110).after(after_ms);
        client(&mut connection, raw(10), 1000, |segment| (segment.ip_id, segment.via) = (Some(110), via));
        let data = connection.data_facts();
        (data.counts.duplicated_packets, data.counts.retransmits)
    };
    assert_eq!(connection(1, 0), (1, 0));
    assert_eq!(connection(300, 0), (0, 1));
    assert_eq!(connection(300, 5), (1, 0));
}

#[test]
fn copy_after_ack_is_still_a_copy() {
    let mut connection = TestConnection::open();
    connection.identification = Some(100);
    connection.warm().identified(10, 110).after(20).ack(11, &[]);
    client(&mut connection, raw(10), 1000, |segment| (segment.ip_id, segment.ttl) = (Some(110), 63));
    let data = connection.data_facts();
    assert_eq!((data.counts.duplicated_packets, data.counts.spurious, data.counts.retransmits), (1, 0, 0));
    assert_eq!(connection.kind(), Kind::Copy as u8);
}

#[test]
fn copy_without_ip_id_needs_a_millisecond() {
    for (after_ms, copies) in [(0, 1), (2, 0)] {
        let mut connection = TestConnection::open();
        connection.warm().data(10).after(after_ms).data(10);
        let data = connection.data_facts();
        assert_eq!((data.counts.duplicated_packets, data.counts.retransmits), (copies, 1 - copies));
    }
}

#[test]
fn syn_captured_twice_counts_once() {
    let mut connection = TestConnection::silent();
    let syn = Segment { flags: SYN, seq: ISN, options: offered(), ip_id: Some(7), ..blank() };
    for (after_ms, id) in [(0, 7), (1, 7), (1, 8), (1_000, 7)] {
        connection.after(after_ms).put(true, 50_000, Segment { ip_id: Some(id), ..syn });
    }
    assert_eq!(connection.facts().handshake.client.unwrap().retransmits, 2);
}

#[test]
fn syn_data_follows_its_number_and_repeats_with_it() {
    let mut connection = TestConnection::silent();
    let syn = Segment { flags: SYN, seq: ISN, payload: 1000, options: offered(), ..blank() };
    connection.put(true, 50_000, syn);
    connection.after(1000).put(true, 50_000, syn);
    connection.after(20).put(
        false,
        50_000,
        Segment { flags: SYN | ACK, seq: 0, ack: raw(1), options: offered(), ..blank() },
    );
    connection.data(1).after(20).ack(2, &[]);
    let facts = connection.facts();
    assert_eq!(facts.handshake.client.unwrap().retransmits, 1);
    let data = facts.directions.into_iter().next().unwrap().data.unwrap();
    assert_eq!(
        (data.counts.retransmits, data.volume.new_bytes, data.unseen.unseen_bytes, data.volume.acknowledged_bytes),
        (0, 2000, 0, 2000)
    );
}

#[test]
fn reset_payload_is_not_data() {
    let mut connection = TestConnection::open();
    connection.put(true, 50_000, Segment { flags: RST | ACK, seq: raw(0), ack: 1, payload: 20, ..blank() });
    assert!(connection.facts().directions[0].data.is_none());
}

#[test]
fn one_acknowledged_byte_is_keep_alive() {
    let mut connection = TestConnection::open();
    connection.warm().sized(10, 1).after(20);
    connection.put(false, 50_000, Segment { flags: ACK, seq: 1, ack: raw(10) + 1, ..blank() });
    connection.after(1000).sized(10, 1);
    let data = connection.data_facts();
    assert_eq!((data.counts.keep_alives, data.counts.retransmits), (1, 0));
    let mut connection = TestConnection::open();
    connection.warm().sized(10, 1).after(300).sized(10, 1);
    let data = connection.data_facts();
    assert_eq!((data.counts.keep_alives, data.counts.retransmits), (0, 1));
}

#[test]
fn zero_window_probe_byte_is_not_a_retransmission() {
    let mut connection = TestConnection::open();
    connection.warm().data(10).after(20).offer(11, &[], 0).after(300).sized(11, 1).after(300).sized(11, 1);
    connection.after(20).offer(11, &[], 4096).sized(11, 1000);
    let data = connection.data_facts();
    assert_eq!((data.counts.zero_window_probes, data.counts.retransmits, data.volume.new_bytes), (2, 0, 12_000));
}

#[test]
fn alternating_losses_are_one_burst_of_many_runs() {
    let mut connection = TestConnection::open();
    connection.warm();
    for number in 10..20 {
        connection.data(number).after(1);
    }
    connection.after(10).ack(10, &[(11, 12), (13, 14), (15, 16), (17, 20)]);
    for number in [10, 12, 14, 16] {
        connection.data(number);
    }
    connection.after(20).ack(20, &[]).after(5_000).data(20).after(20).ack(21, &[]);
    let loss = connection.data_facts().loss;
    assert_eq!((loss.lost, loss.runs, loss.bursts, loss.largest_burst), (4, 4, 1, 4));
    assert_eq!(loss.largest_burst_s, 0.006);
}

#[test]
fn resegmented_retransmissions_count_original_segments() {
    let mut connection = TestConnection::open();
    connection.warm().bytes(10_000, 22);
    for number in 0..5 {
        connection.bytes(10_022 + 1000 * number, 1000);
    }
    connection.after(20).ack(10, &[(14, 15)]);
    // All six except the last two, in full segments: the split is elsewhere, also where they are acknowledged.
    for number in 10..13 {
        connection.data(number).after(20).ack(number + 1, &[]);
    }
    connection.bytes(13_000, 22).bytes(15_022, 978).after(20).ack(16, &[]);
    let data = connection.data_facts();
    assert_eq!((data.counts.retransmits, data.loss.segments, data.loss.lost, data.loss.lost_copies), (4, 17, 4, 4));
    assert_eq!((data.loss.runs, data.loss.longest_run, data.loss.rate), (1, 4, Some(4.0 / 17.0)));
}

#[test]
fn whole_rtt_is_the_same_at_either_end() {
    // 19 ms to the server and back, 1 ms to the client and back; or the other way round.
    for (near, far) in [(1, 19), (19, 1)] {
        let mut connection = TestConnection::silent();
        let stamped = |tsval: u32, tsecr: u32| {
            let mut options = offered();
            options.timestamps = Some((tsval, tsecr));
            options
        };
        for number in 0..10 {
            let clock = number * 20;
            let data = Segment { flags: ACK, seq: raw(number), ack: 1, payload: 1000, ..blank() };
            connection.put(true, 50_000, Segment { options: stamped(clock + 1, clock), ..data });
            let ack = Segment { flags: ACK, seq: 1, ack: raw(number + 1), ..blank() };
            connection.after(far).put(false, 50_000, Segment { options: stamped(clock + 20, clock + 1), ..ack });
            connection.after(near);
        }
        let trips = connection.data_facts().rtt;
        let whole = trips.whole.unwrap();
        assert_eq!((whole.min_s, whole.max_s), (0.02, 0.02), "{near} {far}");
        assert_eq!(trips.far, Some(if far > near { "receiver" } else { "sender" }));
        let Column::Float(data) = column(&mut connection, "rtt_s") else { panic!() };
        assert!(data.iter().all(|rtt| rtt.is_nan() || (rtt - 0.02).abs() < 1e-6), "{data:?}");
    }
}

#[test]
fn only_overlapping_bytes_are_retransmitted() {
    let mut connection = TestConnection::open();
    connection.warm().data(10).after(300).sized(10, 5000).after(20).ack(15, &[]);
    let data = connection.data_facts();
    assert_eq!((data.counts.retransmits, data.counts.retransmitted_bytes, data.volume.new_bytes), (1, 1000, 15_000));
}

#[test]
fn late_old_acks_are_not_keep_alives() {
    let mut connection = TestConnection::open();
    connection.warm();
    client(&mut connection, raw(5), 0, |_| ());
    assert_eq!(connection.data_facts().counts.keep_alives, 0);
}
