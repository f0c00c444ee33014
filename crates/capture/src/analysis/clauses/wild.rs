//! Tests on patterns from captures by others: they begin late, come from mirror ports, are out of order, or have one
//! direction only.

use super::*;

const SERVER_ISN: u32 = 0;

fn raw(number: u32) -> u32 {
    ISN.wrapping_add(1 + number * 1000)
}

/// A segment of the client, modified by `change`.
fn client(talk: &mut Talk, seq: u32, payload: u32, change: impl FnOnce(&mut Segment)) {
    let mut segment = Segment { flags: ACK, seq, ack: 1, payload, ..blank() };
    change(&mut segment);
    talk.put(true, 50_000, segment);
}

#[test]
fn a_counter_of_the_whole_host_shows_no_loss() {
    let mut talk = Talk::open();
    for number in 0..200_u32 {
        // The host sends others two packets for each of this connection, and sometimes twenty.
        let id = (100 + number * 3 + number / 10 * 20) as u16;
        talk.identified(number, id).after(20).ack(number + 1, &[]).after(1);
    }
    let told = talk.told();
    assert_eq!((told.counts.retransmits, told.counts.filled_holes, told.counts.out_of_order), (0, 0, 0));
    assert_eq!((told.loss.missing, told.loss.lost_copies, told.loss.place), (None, 0, "none"));
    assert_ne!(told.loss.sure, "exact");
}

#[test]
fn what_the_capture_lacks_and_nobody_sent_again_was_not_lost() {
    let mut talk = Talk::open();
    for number in (0..100_u32).filter(|number| number % 10 != 9) {
        talk.identified(number, 100 + number as u16).after(20).ack(number + 1, &[]).after(1);
    }
    let told = talk.told();
    assert_eq!((told.counts.retransmits, told.loss.lost, told.loss.missing), (0, 0, Some(9)));
    assert_eq!((told.loss.lost_copies, told.loss.before, told.loss.place), (0, 0, "none"));
}

#[test]
fn without_a_handshake_every_message_is_one_segment() {
    let mut talk = Talk::silent();
    for number in 0..50 {
        let payload = if number % 10 == 9 { 900 } else { 7 };
        client(&mut talk, raw(number), payload, |segment| segment.flags |= PSH);
        talk.after(5);
    }
    let told = talk.told();
    assert_eq!((told.volume.data_packets, told.volume.super_packets), (50, 0));
}

#[test]
fn without_a_handshake_segments_that_tcp_cut_tell_the_size_of_full_ones() {
    let mut talk = Talk::silent();
    for number in 0..10 {
        talk.data(number).after(1);
    }
    talk.sized(10, 8000);
    let told = talk.told();
    assert_eq!((told.mss, told.volume.data_packets, told.volume.super_packets), (1000, 18, 1));
}

#[test]
fn data_that_is_captured_after_its_acknowledgement_is_neither_unseen_nor_sent_again() {
    let mut talk = Talk::open();
    talk.warm().ack(11, &[]).data(10).after(5).data(11).after(20).ack(12, &[]);
    let told = talk.told();
    assert_eq!(
        (told.unseen.unseen_bytes, told.counts.retransmits, told.counts.spurious, told.counts.out_of_order),
        (0, 0, 0, 0)
    );
    assert_eq!((told.volume.new_bytes, told.volume.acknowledged_bytes), (12_000, 12_000));
    // Also for the first data of a capture.
    let mut talk = Talk::silent();
    talk.ack(1, &[]).data(0).data(1).after(20).ack(2, &[]);
    let told = talk.told();
    assert_eq!((told.unseen.unseen_bytes, told.counts.retransmits, told.volume.new_bytes), (0, 0, 2000));
}

#[test]
fn data_that_comes_by_a_round_trip_after_its_acknowledgement_was_sent_again_in_vain() {
    let mut talk = Talk::open();
    talk.warm().ack(11, &[]).after(100).data(10);
    let told = talk.told();
    assert_eq!((told.unseen.unseen_bytes, told.counts.retransmits, told.counts.spurious), (0, 1, 1));
}

#[test]
fn acknowledged_data_that_comes_by_late_and_out_of_order_was_overtaken() {
    let mut talk = Talk::open();
    talk.warm().ack(12, &[]).data(11).after(1).data(10);
    let told = talk.told();
    assert_eq!((told.counts.out_of_order, told.counts.retransmits, told.unseen.unseen_bytes), (1, 0, 0));
}

#[test]
fn an_empty_segment_shows_what_was_sent_before_it() {
    let mut talk = Talk::open();
    talk.warm();
    client(&mut talk, raw(12), 0, |_| ());
    talk.after(1).data(11).after(40).data(10).after(20).ack(12, &[]);
    let told = talk.told();
    assert_eq!((told.counts.out_of_order, told.counts.retransmits, told.counts.filled_holes), (1, 1, 1));
}

#[test]
fn a_lone_fin_is_counted_when_it_is_sent_again_and_not_when_it_is_captured_twice() {
    let mut talk = Talk::open();
    for id in [7, 7, 8, 9] {
        client(&mut talk, raw(0), 0, |segment| (segment.flags, segment.ip_id) = (FIN | ACK, Some(id)));
        talk.after(300);
    }
    let facts = talk.facts();
    assert_eq!((facts.directions[0].fins_again, facts.directions[1].fins_again), (Some(2), Some(0)));
    assert!(facts.directions[0].data.is_none());
}

#[test]
fn a_fin_after_data_that_is_sent_again_is_no_keep_alive() {
    let mut talk = Talk::open();
    talk.warm();
    for _ in 0..2 {
        client(&mut talk, raw(10), 0, |segment| segment.flags = FIN | ACK);
        talk.after(300);
    }
    talk.put(false, 50_000, Segment { flags: ACK, seq: 1, ack: raw(10) + 1, ..blank() });
    client(&mut talk, raw(10), 0, |segment| segment.flags = FIN | ACK);
    let told = talk.told();
    assert_eq!((told.counts.retransmits, told.counts.keep_alives), (2, 0));
}

#[test]
fn data_that_its_fin_has_overtaken_is_out_of_order() {
    let mut talk = Talk::open();
    client(&mut talk, raw(1), 0, |segment| segment.flags = FIN | ACK);
    talk.data(0).after(20);
    talk.put(false, 50_000, Segment { flags: ACK, seq: 1, ack: raw(1) + 1, ..blank() });
    let told = talk.told();
    assert_eq!((told.counts.out_of_order, told.counts.retransmits, told.unseen.unseen_bytes), (1, 0, 0));
}

#[test]
fn a_handshake_in_the_wrong_order_is_one_connection() {
    let syn = Segment { flags: SYN, seq: ISN, options: offered(), ..blank() };
    let answer = Segment { flags: SYN | ACK, seq: SERVER_ISN, ack: raw(0), options: offered(), ..blank() };
    let third = Segment { flags: ACK, seq: raw(0), ack: 1, ..blank() };
    for order in [[2, 1, 0], [1, 0, 2], [2, 0, 1], [1, 2, 0]] {
        let mut talk = Talk::silent();
        for which in order {
            talk.put(which != 1, 50_000, [syn, answer, third][which]);
        }
        talk.data(0).after(20).ack(1, &[]);
        assert_eq!(talk.connections.all.len(), 1, "{order:?}");
        let facts = talk.facts();
        assert!(facts.handshake.seen && facts.client.ends_with(":50000"), "{order:?} {}", facts.client);
        assert_eq!(facts.handshake.client.unwrap().retransmits, 0);
    }
}

#[test]
fn a_syn_captured_after_the_first_data_is_of_the_same_connection() {
    let mut talk = Talk::silent();
    talk.data(0).data(1);
    talk.put(true, 50_000, Segment { flags: SYN, seq: ISN, options: offered(), ..blank() });
    assert_eq!(talk.connections.all.len(), 1);
}

#[test]
fn a_syn_ack_with_another_number_begins_a_connection_where_the_client_is_not_captured() {
    let mut talk = Talk::silent();
    let answer = Segment { flags: SYN | ACK, seq: 5, ack: raw(0), options: offered(), ..blank() };
    talk.put(false, 50_000, answer);
    talk.put(false, 50_000, answer);
    talk.after(60_000).put(false, 50_000, Segment { seq: 900_000, ack: 33, ..answer });
    assert_eq!(talk.connections.all.len(), 2);
}

#[test]
fn an_answer_with_another_number_begins_again_where_the_client_is_captured() {
    let mut talk = Talk::silent();
    talk.put(true, 50_000, Segment { flags: SYN, seq: ISN, options: offered(), ..blank() });
    for seq in [900_000_000, 7] {
        let answer = Segment { flags: SYN | ACK, seq, ack: raw(0), options: offered(), ..blank() };
        talk.after(1_000).put(false, 50_000, answer);
    }
    talk.put(true, 50_000, Segment { flags: ACK, seq: raw(0), ack: 8, ..blank() });
    talk.put(false, 50_000, Segment { flags: ACK, seq: 8, ack: raw(0), payload: 1000, ..blank() });
    talk.after(20).put(true, 50_000, Segment { flags: ACK, seq: raw(0), ack: 1008, ..blank() });
    let facts = talk.facts();
    assert_eq!(talk.connections.all.len(), 1);
    assert_eq!(facts.handshake.server.unwrap().retransmits, 1);
    let told = facts.directions.into_iter().nth(1).unwrap().data.unwrap();
    assert_eq!(
        (told.volume.new_bytes, told.volume.acknowledged_bytes, told.unseen.unseen_bytes, told.counts.retransmits),
        (1000, 1000, 0, 0)
    );
}

#[test]
fn a_packet_with_the_same_identification_at_once_or_from_elsewhere_is_a_copy_and_later_is_sent_again() {
    let talk = |after_ms: u64, via: u32| {
        let mut talk = Talk::open();
        talk.identification = Some(100);
        talk.warm().identified(10, 110).after(after_ms);
        client(&mut talk, raw(10), 1000, |segment| (segment.ip_id, segment.via) = (Some(110), via));
        let told = talk.told();
        (told.counts.duplicated_packets, told.counts.retransmits)
    };
    assert_eq!(talk(1, 0), (1, 0));
    assert_eq!(talk(300, 0), (0, 1));
    assert_eq!(talk(300, 5), (1, 0));
}

#[test]
fn a_copy_of_what_was_acknowledged_meanwhile_is_a_copy() {
    let mut talk = Talk::open();
    talk.identification = Some(100);
    talk.warm().identified(10, 110).after(20).ack(11, &[]);
    client(&mut talk, raw(10), 1000, |segment| (segment.ip_id, segment.ttl) = (Some(110), 63));
    let told = talk.told();
    assert_eq!((told.counts.duplicated_packets, told.counts.spurious, told.counts.retransmits), (1, 0, 0));
    assert_eq!(talk.kind(), Kind::Copy as u8);
}

#[test]
fn a_copy_without_identification_is_one_within_a_millisecond_only() {
    for (after_ms, copies) in [(0, 1), (2, 0)] {
        let mut talk = Talk::open();
        talk.warm().data(10).after(after_ms).data(10);
        let told = talk.told();
        assert_eq!((told.counts.duplicated_packets, told.counts.retransmits), (copies, 1 - copies));
    }
}

#[test]
fn a_syn_that_is_captured_twice_is_sent_once() {
    let mut talk = Talk::silent();
    let syn = Segment { flags: SYN, seq: ISN, options: offered(), ip_id: Some(7), ..blank() };
    for (after_ms, id) in [(0, 7), (1, 7), (1, 8), (1_000, 7)] {
        talk.after(after_ms).put(true, 50_000, Segment { ip_id: Some(id), ..syn });
    }
    assert_eq!(talk.facts().handshake.client.unwrap().retransmits, 2);
}

#[test]
fn a_syns_data_begins_behind_its_number_and_is_the_syns_when_it_comes_again() {
    let mut talk = Talk::silent();
    let syn = Segment { flags: SYN, seq: ISN, payload: 1000, options: offered(), ..blank() };
    talk.put(true, 50_000, syn);
    talk.after(1000).put(true, 50_000, syn);
    talk.after(20).put(false, 50_000, Segment { flags: SYN | ACK, seq: 0, ack: raw(1), options: offered(), ..blank() });
    talk.data(1).after(20).ack(2, &[]);
    let facts = talk.facts();
    assert_eq!(facts.handshake.client.unwrap().retransmits, 1);
    let told = facts.directions.into_iter().next().unwrap().data.unwrap();
    assert_eq!(
        (told.counts.retransmits, told.volume.new_bytes, told.unseen.unseen_bytes, told.volume.acknowledged_bytes),
        (0, 2000, 0, 2000)
    );
}

#[test]
fn what_a_reset_carries_is_no_data() {
    let mut talk = Talk::open();
    talk.put(true, 50_000, Segment { flags: RST | ACK, seq: raw(0), ack: 1, payload: 20, ..blank() });
    assert!(talk.facts().directions[0].data.is_none());
}

#[test]
fn a_byte_that_was_acknowledged_is_a_keep_alive_and_one_that_was_not_is_sent_again() {
    let mut talk = Talk::open();
    talk.warm().sized(10, 1).after(20);
    talk.put(false, 50_000, Segment { flags: ACK, seq: 1, ack: raw(10) + 1, ..blank() });
    talk.after(1000).sized(10, 1);
    let told = talk.told();
    assert_eq!((told.counts.keep_alives, told.counts.retransmits), (1, 0));
    let mut talk = Talk::open();
    talk.warm().sized(10, 1).after(300).sized(10, 1);
    let told = talk.told();
    assert_eq!((told.counts.keep_alives, told.counts.retransmits), (0, 1));
}

#[test]
fn the_byte_that_probed_a_closed_window_is_not_sent_again_by_what_follows_it() {
    let mut talk = Talk::open();
    talk.warm().data(10).after(20).offer(11, &[], 0).after(300).sized(11, 1).after(300).sized(11, 1);
    talk.after(20).offer(11, &[], 4096).sized(11, 1000);
    let told = talk.told();
    assert_eq!((told.counts.zero_window_probes, told.counts.retransmits, told.volume.new_bytes), (2, 0, 12_000));
}

#[test]
fn losses_of_every_other_segment_are_many_runs_and_one_burst() {
    let mut talk = Talk::open();
    talk.warm();
    for number in 10..20 {
        talk.data(number).after(1);
    }
    talk.after(10).ack(10, &[(11, 12), (13, 14), (15, 16), (17, 20)]);
    for number in [10, 12, 14, 16] {
        talk.data(number);
    }
    talk.after(20).ack(20, &[]).after(5_000).data(20).after(20).ack(21, &[]);
    let loss = talk.told().loss;
    assert_eq!((loss.lost, loss.runs, loss.bursts, loss.largest_burst), (4, 4, 1, 4));
    assert_eq!(loss.largest_burst_s, 0.006);
}

#[test]
fn segments_sent_again_with_other_boundaries_are_lost_as_they_were_first_sent() {
    let mut talk = Talk::open();
    talk.warm().bytes(10_000, 22);
    for number in 0..5 {
        talk.bytes(10_022 + 1000 * number, 1000);
    }
    talk.after(20).ack(10, &[(14, 15)]);
    // All six except the last two, in full segments: the split is elsewhere, also where they are acknowledged.
    for number in 10..13 {
        talk.data(number).after(20).ack(number + 1, &[]);
    }
    talk.bytes(13_000, 22).bytes(15_022, 978).after(20).ack(16, &[]);
    let told = talk.told();
    assert_eq!((told.counts.retransmits, told.loss.segments, told.loss.lost, told.loss.lost_copies), (4, 17, 4, 4));
    assert_eq!((told.loss.runs, told.loss.longest_run, told.loss.rate), (1, 4, Some(4.0 / 17.0)));
}

#[test]
fn the_whole_round_trip_is_reported_at_either_end() {
    // 19 ms to the server and back, 1 ms to the client and back; or the other way round.
    for (near, far) in [(1, 19), (19, 1)] {
        let mut talk = Talk::silent();
        let stamped = |tsval: u32, tsecr: u32| {
            let mut options = offered();
            options.timestamps = Some((tsval, tsecr));
            options
        };
        for number in 0..10 {
            let clock = number * 20;
            let data = Segment { flags: ACK, seq: raw(number), ack: 1, payload: 1000, ..blank() };
            talk.put(true, 50_000, Segment { options: stamped(clock + 1, clock), ..data });
            let ack = Segment { flags: ACK, seq: 1, ack: raw(number + 1), ..blank() };
            talk.after(far).put(false, 50_000, Segment { options: stamped(clock + 20, clock + 1), ..ack });
            talk.after(near);
        }
        let trips = talk.told().rtt;
        let whole = trips.whole.unwrap();
        assert_eq!((whole.min_s, whole.max_s), (0.02, 0.02), "{near} {far}");
        assert_eq!(trips.far, Some(if far > near { "receiver" } else { "sender" }));
        let Column::Float(told) = column(&mut talk, "rtt_s") else { panic!() };
        assert!(told.iter().all(|rtt| rtt.is_nan() || (rtt - 0.02).abs() < 1e-6), "{told:?}");
    }
}

#[test]
fn only_the_part_that_was_sent_before_is_sent_again() {
    let mut talk = Talk::open();
    talk.warm().data(10).after(300).sized(10, 5000).after(20).ack(15, &[]);
    let told = talk.told();
    assert_eq!((told.counts.retransmits, told.counts.retransmitted_bytes, told.volume.new_bytes), (1, 1000, 15_000));
}

#[test]
fn old_acknowledgements_that_come_late_are_no_keep_alives() {
    let mut talk = Talk::open();
    talk.warm();
    client(&mut talk, raw(5), 0, |_| ());
    assert_eq!(talk.told().counts.keep_alives, 0);
}
