//! Our own small scripts, played through the public interface.

use sawtooth_packetdrill::run;
use sawtooth_packetdrill::verdict::{Outcome, Verdict};

const HZ: u32 = 1_000;
/// A connection that the peer opens with an RTT of 50 ms, segments of 1,000 bytes and a window of 256,000.
const OPEN: &str = "\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 64000 <mss 1000,sackOK,nop,nop,nop,wscale 8>
+0 > S. 0:0(0) ack 1 <...>
+.05 < . 1:1(0) ack 1 win 1000
+0 accept(3, ..., ...) = 4
";

fn played(script: &str) -> Outcome {
    run(&format!("{OPEN}{script}"), HZ, None)
}

fn differs(outcome: &Outcome) -> (usize, &str) {
    match &outcome.verdict {
        Verdict::Failed { line, got, .. } => (*line, got),
        other => panic!("should have failed: {other:?}"),
    }
}

fn reason(outcome: &Outcome) -> &str {
    match &outcome.verdict {
        Verdict::NotApplicable(reason) => reason,
        other => panic!("should not be applicable: {other:?}"),
    }
}

#[test]
fn the_first_window_leaves_and_each_ack_doubles_what_it_acknowledges() {
    let outcome = played(
        "+0 write(4, ..., 30000) = 30000
         +0 > P. 1:10001(10000) ack 1
         +.05 < . 1:1(0) ack 5001 win 1000
         +0 > . 10001:20001(10000) ack 1
         +0 %{ assert tcpi_snd_cwnd == 15; assert tcpi_unacked == 15 }%",
    );
    assert_eq!(outcome, Outcome { packets: 2, assertions: 2, ..Outcome::default() });
}

#[test]
fn a_short_segment_waits_while_another_is_not_acknowledged_unless_the_application_says_no_delay() {
    let outcome = played(
        "+0 write(4, ..., 400) = 400
         +0 > P. 1:401(400) ack 1
         +0 write(4, ..., 300) = 300
         +0 %{ assert tcpi_notsent_bytes == 300 }%
         +.05 < . 1:1(0) ack 401 win 1000
         +0 > P. 401:701(300) ack 1
         +0 setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0
         +0 write(4, ..., 1200) = 1200
         +0 > P. 701:1901(1200) ack 1",
    );
    assert_eq!(outcome, Outcome { packets: 3, assertions: 1, ..Outcome::default() });
}

#[test]
fn an_acknowledgement_may_end_inside_a_segment_and_so_may_a_block() {
    let outcome = played(
        "+0 write(4, ..., 5000) = 5000
         +0 > P. 1:5001(5000) ack 1
         +.05 < . 1:1(0) ack 1501 win 1000 <sack 2501:4001,nop,nop>
         +0 %{ assert tcpi_unacked == 4; assert tcpi_sacked == 1, tcpi_sacked }%",
    );
    assert_eq!(outcome, Outcome { packets: 1, assertions: 2, ..Outcome::default() });
}

#[test]
fn a_third_sack_brings_a_retransmission_and_a_smaller_window() {
    let outcome = played(
        "+0 write(4, ..., 10000) = 10000
         +0 > P. 1:10001(10000) ack 1
         +.05 < . 1:1(0) ack 1 win 1000 <sack 1001:2001,nop,nop>
         +0 < . 1:1(0) ack 1 win 1000 <sack 1001:3001,nop,nop>
         +0 < . 1:1(0) ack 1 win 1000 <sack 1001:4001,nop,nop>
         +0 > . 1:1001(1000) ack 1
         +0 %{ assert tcpi_ca_state == TCP_CA_Recovery and tcpi_lost == 1 and tcpi_sacked == 3
               assert tcpi_snd_ssthresh == 7, tcpi_snd_ssthresh }%",
    );
    assert_eq!(outcome, Outcome { packets: 2, assertions: 2, ..Outcome::default() });
}

#[test]
fn a_packet_that_does_not_come_a_wrong_one_and_a_late_one_are_distinguished() {
    let none = played("+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1\n+0 > . 1001:2001(1000) ack 1");
    assert!(differs(&none).1.starts_with("1:1001(1000)"), "the tail loss probe came instead: {none:?}");
    let wrong = played("+0 write(4, ..., 2000) = 2000\n+0 > P. 1:1001(1000) ack 1");
    assert_eq!(differs(&wrong), (9, "1:2001(2000) at 0.05 s"));
    // A tail loss probe would wait two RTTs and 200 ms. The retransmission timeout of 250 ms comes first.
    let probe = |after: &str| {
        played(&format!("+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1\n{after} > P. 1:1001(1000) ack 1"))
    };
    let late = Verdict::Failed {
        line: 10,
        expected: "1:1001(1000) at 0.25 s ± 0.025 s".to_owned(),
        got: "1:1001(1000) at 0.304 s".to_owned(),
    };
    assert_eq!(probe("+.2").verdict, late);
    assert_eq!(probe("+.25").verdict, Verdict::Passed);
    assert_eq!(probe("+.2~+.26").verdict, Verdict::Passed);
    assert_eq!(probe("*").verdict, Verdict::Passed);
}

#[test]
fn a_broken_assertion_fails_with_the_values_seen() {
    let outcome = played("+0 write(4, ..., 1000) = 1000\n+0 %{ assert tcpi_unacked == 2, tcpi_unacked }%");
    assert_eq!(differs(&outcome), (9, "tcpi_unacked = 1"));
}

#[test]
fn an_assertion_that_cannot_be_judged_is_a_remark_not_a_pass() {
    let outcome =
        played("+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1\n+0 %{ assert tcpi_backoff == 0 }%");
    assert_eq!((outcome.packets, outcome.assertions), (1, 0));
    assert_eq!(outcome.notes, ["assertions on tcpi_backoff are not checked"]);
    assert_eq!(reason(&played("+0 close(4) = 0")), "checks nothing that the endpoint does");
}

#[test]
fn what_is_not_simulated_is_named() {
    for (script, expected) in [
        ("+0 < R. 1:1(0) ack 1 win 1000", "line 8: a RST"),
        ("+0 < F. 2:2(0) ack 1 win 1000", "line 8: a FIN out of order"),
        ("+0 splice(4, NULL, 6, NULL, 99, 0) = 99", "line 8: system call splice"),
        ("+0 write(4, ..., 9) = -1 EPIPE (Broken pipe)", "line 8: an error of write"),
        ("+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0", "line 8: setsockopt TCP_CORK"),
        ("+0 > udp (10)", "line 8: not read: a packet other than TCP over IP"),
    ] {
        assert_eq!(reason(&played(script)), expected);
    }
    assert_eq!(reason(&run("--so_filename=x\n", HZ, None)), "option --so_filename");
}

#[test]
fn a_receiver_acknowledges_every_segment_at_first_and_what_is_beyond_a_gap_in_blocks() {
    let outcome = played(
        "+0 < P. 1:1001(1000) ack 1 win 1000
         +0 > . 1:1(0) ack 1001
         +0 < . 2001:3001(1000) ack 1 win 1000
         +0 > . 1:1(0) ack 1001 <nop,nop,sack 2001:3001>
         +0 < . 4001:5001(1000) ack 1 win 1000
         +0 > . 1:1(0) ack 1001 <nop,nop,sack 4001:5001 2001:3001>
         +0 < . 1001:2001(1000) ack 1 win 1000
         +0 > . 1:1(0) ack 3001 <nop,nop,sack 4001:5001>
         +0 < . 1001:2001(1000) ack 1 win 1000
         +0 > . 1:1(0) ack 3001 <nop,nop,sack 1001:2001 4001:5001>
         +0 %{ assert tcpi_rcv_mss == 1000 }%",
    );
    assert_eq!(outcome, Outcome { packets: 5, assertions: 1, ..Outcome::default() });
}

#[test]
fn a_segment_over_data_that_is_here_already_is_told_as_a_duplicate_up_to_its_own_end() {
    let outcome = played(
        "+0 < P. 1001:3001(2000) ack 1 win 1000
         +0 > . 1:1(0) ack 1 <nop,nop,sack 1001:3001>
         +0 < P. 1:2001(2000) ack 1 win 1000
         +0 > . 1:1(0) ack 3001 <nop,nop,sack 1001:2001>",
    );
    assert_eq!(outcome, Outcome { packets: 1, ..Outcome::default() });
}

#[test]
fn an_acknowledgement_is_delayed_once_the_first_sixteen_have_left_and_rides_on_data() {
    let mut script = String::new();
    for at in 0..17 {
        let (start, end) = (1 + 100 * at, 101 + 100 * at);
        script += &format!("+.01 < P. {start}:{end}(100) ack 1 win 1000\n");
        script += if at < 16 { "+0" } else { "+.04" };
        script += &format!(" > . 1:1(0) ack {end}\n");
    }
    script += "+.01 < P. 1701:1801(100) ack 1 win 1000\n+.01 write(4, ..., 50) = 50\n+0 > P. 1:51(50) ack 1801\n";
    let outcome = played(&script);
    assert_eq!(outcome, Outcome { packets: 18, ..Outcome::default() });
}

#[test]
fn each_end_closes_and_the_other_s_fin_is_acknowledged() {
    let outcome = played(
        "+0 write(4, ..., 500) = 500
         +0 close(4) = 0
         +0 > P. 1:501(500) ack 1
         +0 > F. 501:501(0) ack 1
         +.05 < . 1:1(0) ack 502 win 1000
         +.05 < F. 1:1(0) ack 502 win 1000
         +0 > . 502:502(0) ack 2",
    );
    assert_eq!(outcome, Outcome { packets: 3, ..Outcome::default() });
    let repeated = played(
        "+0 < . 1:1001(1000) ack 1 win 1000
         +0 > . 1:1(0) ack 1001
         +0 read(4, ..., 1000) = 1000
         +0 < F. 1:1001(1000) ack 1 win 1000
         +.04 > . 1:1(0) ack 1002",
    );
    assert_eq!(repeated, Outcome { packets: 2, ..Outcome::default() });
    let unread =
        played("+0 < . 1:101(100) ack 1 win 1000\n+0 > . 1:1(0) ack 101\n+0 close(4) = 0\n+0 > R. 1:1(0) ack 101");
    assert_eq!(unread, Outcome { packets: 2, ..Outcome::default() });
}

#[test]
fn closing_the_listener_does_not_close_the_connection() {
    let outcome = played(
        "+0 close(3) = 0
         +0 < P. 1:1001(1000) ack 1 win 1000
         +0 > . 1:1(0) ack 1001",
    );
    assert_eq!(outcome, Outcome { packets: 1, ..Outcome::default() });
}

#[test]
fn an_acknowledgement_older_than_the_largest_window_is_answered_and_one_of_unsent_data_is_not() {
    let outcome = played(
        "+0 < . 1:1(0) ack 9000 win 1000
         +0 write(4, ..., 400) = 400
         +0 > P. 1:401(400) ack 1
         +.05 < . 1:1(0) ack 401 win 1000",
    );
    assert_eq!(outcome, Outcome { packets: 1, ..Outcome::default() });
    let script = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
         +0 < S 0:0(0) win 300 <mss 300>
         +0 > S. 0:0(0) ack 1 <mss 1460>
         +.05 < . 1:1(0) ack 1 win 300
         +0 write(4, ..., 300) = 300
         +0 > P. 1:301(300) ack 1
         +.05 < . 1:1(0) ack 301 win 300
         +0 write(4, ..., 300) = 300
         +0 > P. 301:601(300) ack 1
         +.05 < . 1:1(0) ack 601 win 300
         +0 < . 1:1(0) ack 300 win 300
         +0 > . 601:601(0) ack 1";
    assert_eq!(run(script, HZ, None), Outcome { packets: 3, ..Outcome::default() });
}

/// A packet of a tun device takes whole pages: 9,000 bytes take 12,544 bytes of 40,000, so 183/256 of memory is payload,
/// and the window is what that leaves, in whole segments.
#[test]
fn the_window_follows_the_memory_that_packets_take_and_data_beyond_it_is_taken_only_by_an_empty_queue() {
    let open = "\
--mss=1000

0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 setsockopt(3, SOL_SOCKET, SO_RCVBUF, [20000], 4) = 0
+0 < S 0:0(0) win 64000 <mss 1000,nop,wscale 7>
+0 > S. 0:0(0) ack 1 win 18980 <mss 1460,nop,wscale 0>
+.05 < . 1:1(0) ack 1 win 1000
+0 < P. 1:9001(9000) ack 1 win 1000
+0 > . 1:1(0) ack 9001 win 18980
";
    let read = format!(
        "{open}
         +0 < P. 9001:29001(20000) ack 1 win 1000
         +0 > . 1:1(0) ack 9001 win 18980
         +0 read(4, ..., 9000) = 9000
         +0 < P. 9001:29001(20000) ack 1 win 1000
         +.04 > . 1:1(0) ack 29001 win 13000"
    );
    assert_eq!(run(&read, HZ, None), Outcome { packets: 3, ..Outcome::default() });
    // A FIN is answered at once if memory is exceeded.
    let smaller = format!(
        "{open}
         +0 setsockopt(4, SOL_SOCKET, SO_RCVBUF, [5000], 4) = 0
         +0 < F. 9001:9001(0) ack 1 win 1000
         +0 > . 1:1(0) ack 9002"
    );
    assert_eq!(run(&smaller, HZ, None), Outcome { packets: 2, ..Outcome::default() });
}

#[test]
fn the_handshake_s_answer_has_what_both_ends_have() {
    let syn = |options: &str, answer: &str| {
        let script = format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
             +0 < S 0:0(0) win 64000 <{options}>
             +0 > S. 0:0(0) ack 1 <{answer}>
             +.05 < . 1:1(0) ack 1 win 64000
             +0 write(4, ..., 400) = 400
             +0 > P. 1:401(400) ack 1 <...>"
        );
        run(&script, HZ, None)
    };
    let passed = Outcome { packets: 1, ..Outcome::default() };
    assert_eq!(syn("mss 1000", "mss 1460"), passed);
    assert_eq!(syn("mss 1000,sackOK,nop,wscale 0", "mss 1460,nop,nop,sackOK,nop,wscale 8"), passed);
    let stamped = "mss 1000,sackOK,TS val 7 ecr 0,nop,wscale 8";
    assert_eq!(syn(stamped, "mss 1460,sackOK,TS val 100 ecr 7,nop,wscale 8"), passed);
    assert_eq!(differs(&syn(stamped, "mss 1460,sackOK,TS val 100 ecr 8,nop,wscale 8")).0, 3);
    assert_eq!(differs(&syn("mss 1000", "mss 1460,nop,wscale 8")).0, 3);
}

#[test]
fn marks_are_agreed_on_echoed_and_heeded() {
    let script = "\
        0 `sysctl -q net.ipv4.tcp_ecn=2`
        +0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
        +0 < SEW 0:0(0) win 64000 <mss 1000,sackOK,nop,nop,nop,wscale 8>
        +0 > SE. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 8>
        +.05 < . 1:1(0) ack 1 win 1000
        +0 < [ce] P. 1:1001(1000) ack 1 win 1000
        +0 > E. 1:1(0) ack 1001
        +0 write(4, ..., 12000) = 12000
        +0 > [ect0] EP. 1:10001(10000) ack 1001
        +.05 < E. 1001:1001(0) ack 10001 win 1000
        +0 > [ect0] EWP. 10001:12001(2000) ack 1001
        +0 %{ assert tcpi_ca_state == TCP_CA_CWR }%";
    let outcome = run(script, HZ, None);
    assert_eq!(outcome, Outcome { packets: 3, assertions: 1, ..Outcome::default() });
    let unmarked = run(&script.replace("[ect0] EP", "[noecn] EP"), HZ, None);
    assert_eq!(differs(&unmarked).0, 9);
}

#[test]
fn the_window_restarts_after_idle_time_only_where_it_is_set() {
    let after = |setting: u32, cwnd: u32| {
        let script = format!(
            "+0 `sysctl -q net.ipv4.tcp_slow_start_after_idle={setting}`
             {OPEN}+0 write(4, ..., 10000) = 10000
             +0 > P. 1:10001(10000) ack 1
             +.05 < . 1:1(0) ack 10001 win 1000
             +2 write(4, ..., 1000) = 1000
             +0 > P. 10001:11001(1000) ack 1
             +0 %{{ assert tcpi_snd_cwnd == {cwnd}, tcpi_snd_cwnd }}%"
        );
        run(&script.replacen("\n0 socket", "\n+0 socket", 1), HZ, None).verdict
    };
    assert_eq!([after(1, 10), after(0, 20)], [Verdict::Passed, Verdict::Passed]);
}

#[test]
fn with_tolerance_0_a_time_must_be_exact_unless_the_script_says_otherwise() {
    let probe = |options: &str, after: &str| {
        let script = format!(
            "{options}{OPEN}+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1\n{after} > P. 1:1001(1000) ack 1"
        );
        run(&script, HZ, Some(0)).verdict
    };
    assert_eq!(probe("", "+.254"), Verdict::Passed);
    assert!(matches!(probe("", "+.25"), Verdict::Failed { line: 10, .. }));
    assert_eq!(probe("--tolerance_usecs=4000\n", "+.25"), Verdict::Passed);
}

#[test]
fn a_connection_may_be_opened_by_the_host_under_test() {
    let script = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
        +0...0.020 connect(3, ..., ...) = 0
        +0 > S 0:0(0) <mss 1460,sackOK,TS val 100 ecr 0,nop,wscale 8>
        +.02 < S. 0:0(0) ack 1 win 64000 <mss 1400,nop,wscale 2,nop,nop,sackOK>
        +0 > . 1:1(0) ack 1
        +.01 write(3, ..., 5600) = 5600
        +0 > P. 1:5601(5600) ack 1
        +0 %{ assert 19900 <= tcpi_rtt <= 20100; assert tcpi_snd_mss == 1400 }%";
    assert_eq!(run(script, HZ, None), Outcome { packets: 1, assertions: 2, ..Outcome::default() });
}

#[test]
fn a_slower_tick_makes_timers_later() {
    let script = "+0 write(4, ..., 2000) = 2000
         +0 > P. 1:2001(2000) ack 1
         +.102 > P. 1001:2001(1000) ack 1";
    let script = format!("--tolerance_usecs=2000\n{OPEN}{script}");
    let verdicts = [1_000, 100].map(|hz| run(&script, hz, None).verdict);
    assert_eq!(verdicts[0], Verdict::Passed);
    assert!(matches!(verdicts[1], Verdict::Failed { line: 11, .. }), "{verdicts:?}");
}
