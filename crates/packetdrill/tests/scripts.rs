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
    run(&format!("{OPEN}{script}"), HZ)
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
    assert_eq!(reason(&played("+0 close(4) = 0")), "checks nothing that the sender does");
}

#[test]
fn what_is_not_simulated_is_named() {
    for (script, expected) in [
        ("+0 < P. 1:101(100) ack 1 win 1000", "line 8: a receiver's side: the peer sends data, FIN or RST"),
        ("+0 < E. 1:1(0) ack 1 win 1000", "line 8: ECN"),
        ("+0 read(4, ..., 500) = 500", "line 8: system call read"),
        ("+0 write(4, ..., 9000) = 4000", "line 8: a write that does not take all"),
        ("+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0", "line 8: setsockopt TCP_CORK"),
        ("+0 > udp (10)", "line 8: not read: a packet other than TCP over IP"),
    ] {
        assert_eq!(reason(&played(script)), expected);
    }
    assert_eq!(reason(&run("--so_filename=x\n", HZ)), "option --so_filename");
    let stamped = OPEN.replace("sackOK,nop,nop,nop", "sackOK,TS val 1 ecr 0,nop");
    assert_eq!(reason(&run(&stamped, HZ)), "line 4: timestamps");
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
    assert_eq!(run(script, HZ), Outcome { packets: 1, assertions: 2, ..Outcome::default() });
}

#[test]
fn a_slower_tick_makes_timers_later() {
    let script = "+0 write(4, ..., 2000) = 2000
         +0 > P. 1:2001(2000) ack 1
         +.102 > P. 1001:2001(1000) ack 1";
    let script = format!("--tolerance_usecs=2000\n{OPEN}{script}");
    let verdicts = [1_000, 100].map(|hz| run(&script, hz).verdict);
    assert_eq!(verdicts[0], Verdict::Passed);
    assert!(matches!(verdicts[1], Verdict::Failed { line: 11, .. }), "{verdicts:?}");
}
