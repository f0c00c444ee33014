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

fn run_after_handshake(script: &str) -> Outcome {
    run(&format!("{OPEN}{script}"), HZ, None)
}

fn failure(outcome: &Outcome) -> (usize, &str) {
    match &outcome.verdict {
        Verdict::Failed { line, got, .. } => (*line, got),
        other => panic!("should have failed: {other:?}"),
    }
}

fn not_applicable_reason(outcome: &Outcome) -> &str {
    match &outcome.verdict {
        Verdict::NotApplicable(not_applicable_reason) => not_applicable_reason,
        other => panic!("should not be applicable: {other:?}"),
    }
}

#[test]
fn slow_start_doubles_acknowledged_data() {
    let outcome = run_after_handshake(
        "+0 write(4, ..., 30000) = 30000
         +0 > P. 1:10001(10000) ack 1
         +.05 < . 1:1(0) ack 5001 win 1000
         +0 > . 10001:20001(10000) ack 1
         +0 %{ assert tcpi_snd_cwnd == 15; assert tcpi_unacked == 15 }%",
    );
    assert_eq!(outcome, Outcome { packets: 2, assertions: 2, ..Outcome::default() });
}

#[test]
fn nagle_holds_short_segment_unless_nodelay() {
    let outcome = run_after_handshake(
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
fn ack_and_sack_block_may_end_inside_a_segment() {
    let outcome = run_after_handshake(
        "+0 write(4, ..., 5000) = 5000
         +0 > P. 1:5001(5000) ack 1
         +.05 < . 1:1(0) ack 1501 win 1000 <sack 2501:4001,nop,nop>
         +0 %{ assert tcpi_unacked == 4; assert tcpi_sacked == 1, tcpi_sacked }%",
    );
    assert_eq!(outcome, Outcome { packets: 1, assertions: 2, ..Outcome::default() });
}

#[test]
fn third_sack_retransmits_and_reduces_ssthresh() {
    let outcome = run_after_handshake(
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
fn missing_wrong_and_late_packets_are_distinguished() {
    let none =
        run_after_handshake("+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1\n+0 > . 1001:2001(1000) ack 1");
    assert!(failure(&none).1.starts_with("1:1001(1000)"), "the tail loss probe came instead: {none:?}");
    let wrong = run_after_handshake("+0 write(4, ..., 2000) = 2000\n+0 > P. 1:1001(1000) ack 1");
    assert_eq!(failure(&wrong), (9, "1:2001(2000) at 0.05 s"));
    // A tail loss probe would wait two RTTs and 200 ms. The retransmission timeout of 250 ms comes first.
    let probe = |after: &str| {
        run_after_handshake(&format!(
            "+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1\n{after} > P. 1:1001(1000) ack 1"
        ))
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
fn failed_assertion_reports_values() {
    let outcome = run_after_handshake("+0 write(4, ..., 1000) = 1000\n+0 %{ assert tcpi_unacked == 2, tcpi_unacked }%");
    assert_eq!(failure(&outcome), (9, "tcpi_unacked = 1"));
}

#[test]
fn unsupported_assertion_is_a_note() {
    let outcome = run_after_handshake(
        "+0 write(4, ..., 1000) = 1000\n+0 > P. 1:1001(1000) ack 1\n+0 %{ assert tcpi_backoff == 0 }%",
    );
    assert_eq!((outcome.packets, outcome.assertions), (1, 0));
    assert_eq!(outcome.notes, ["assertions on tcpi_backoff are not checked"]);
    assert_eq!(not_applicable_reason(&run_after_handshake("+0 close(4) = 0")), "checks nothing that the endpoint does");
}

#[test]
fn unsupported_events_are_named() {
    for (script, expected) in [
        ("+0 < R. 1:1(0) ack 1 win 1000", "line 8: a RST"),
        ("+0 < F. 2:2(0) ack 1 win 1000", "line 8: a FIN out of order"),
        ("+0 splice(4, NULL, 6, NULL, 99, 0) = 99", "line 8: system call splice"),
        ("+0 write(4, ..., 9) = -1 EPIPE (Broken pipe)", "line 8: an error of write"),
        ("+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0", "line 8: setsockopt TCP_CORK"),
        ("+0 > udp (10)", "line 8: not read: a packet other than TCP over IP"),
    ] {
        assert_eq!(not_applicable_reason(&run_after_handshake(script)), expected);
    }
    assert_eq!(not_applicable_reason(&run("--so_filename=x\n", HZ, None)), "option --so_filename");
}

#[test]
fn receiver_quick_acks_and_sends_sack_blocks() {
    let outcome = run_after_handshake(
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
fn overlapping_segment_gives_dsack_up_to_its_end() {
    let outcome = run_after_handshake(
        "+0 < P. 1001:3001(2000) ack 1 win 1000
         +0 > . 1:1(0) ack 1 <nop,nop,sack 1001:3001>
         +0 < P. 1:2001(2000) ack 1 win 1000
         +0 > . 1:1(0) ack 3001 <nop,nop,sack 1001:2001>",
    );
    assert_eq!(outcome, Outcome { packets: 1, ..Outcome::default() });
}

#[test]
fn acks_are_delayed_after_sixteen_quick_acks_and_piggybacked() {
    let mut script = String::new();
    for at in 0..17 {
        let (start, end) = (1 + 100 * at, 101 + 100 * at);
        script += &format!("+.01 < P. {start}:{end}(100) ack 1 win 1000\n");
        script += if at < 16 { "+0" } else { "+.04" };
        script += &format!(" > . 1:1(0) ack {end}\n");
    }
    script += "+.01 < P. 1701:1801(100) ack 1 win 1000\n+.01 write(4, ..., 50) = 50\n+0 > P. 1:51(50) ack 1801\n";
    let outcome = run_after_handshake(&script);
    assert_eq!(outcome, Outcome { packets: 18, ..Outcome::default() });
}

#[test]
fn both_ends_close_and_fins_are_acknowledged() {
    let outcome = run_after_handshake(
        "+0 write(4, ..., 500) = 500
         +0 close(4) = 0
         +0 > P. 1:501(500) ack 1
         +0 > F. 501:501(0) ack 1
         +.05 < . 1:1(0) ack 502 win 1000
         +.05 < F. 1:1(0) ack 502 win 1000
         +0 > . 502:502(0) ack 2",
    );
    assert_eq!(outcome, Outcome { packets: 3, ..Outcome::default() });
    let repeated = run_after_handshake(
        "+0 < . 1:1001(1000) ack 1 win 1000
         +0 > . 1:1(0) ack 1001
         +0 read(4, ..., 1000) = 1000
         +0 < F. 1:1001(1000) ack 1 win 1000
         +.04 > . 1:1(0) ack 1002",
    );
    assert_eq!(repeated, Outcome { packets: 2, ..Outcome::default() });
    let unread = run_after_handshake(
        "+0 < . 1:101(100) ack 1 win 1000\n+0 > . 1:1(0) ack 101\n+0 close(4) = 0\n+0 > R. 1:1(0) ack 101",
    );
    assert_eq!(unread, Outcome { packets: 2, ..Outcome::default() });
}

#[test]
fn closing_listener_keeps_connection_open() {
    let outcome = run_after_handshake(
        "+0 close(3) = 0
         +0 < P. 1:1001(1000) ack 1 win 1000
         +0 > . 1:1(0) ack 1001",
    );
    assert_eq!(outcome, Outcome { packets: 1, ..Outcome::default() });
}

#[test]
fn old_ack_is_challenged_and_ack_of_unsent_data_ignored() {
    let outcome = run_after_handshake(
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

/// A packet of a tun device takes whole pages: 9,000 bytes take 12,544 bytes of 40,000, so 183/256 of memory is
/// payload, and the window is what that leaves, in whole segments.
#[test]
fn window_follows_packet_memory_and_full_queue_drops_data() {
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
fn syn_ack_has_the_common_options() {
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
    assert_eq!(failure(&syn(stamped, "mss 1460,sackOK,TS val 100 ecr 8,nop,wscale 8")).0, 3);
    assert_eq!(failure(&syn("mss 1000", "mss 1460,nop,wscale 8")).0, 3);
}

#[test]
fn ecn_is_negotiated_echoed_and_reduces_cwnd() {
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
    assert_eq!(failure(&unmarked).0, 9);
}

#[test]
fn cwnd_restarts_after_idle_only_if_enabled() {
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
fn zero_tolerance_requires_exact_times_unless_script_sets_one() {
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
fn active_open_by_host_under_test() {
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
fn lower_hz_delays_timers() {
    let script = "+0 write(4, ..., 2000) = 2000
         +0 > P. 1:2001(2000) ack 1
         +.102 > P. 1001:2001(1000) ack 1";
    let script = format!("--tolerance_usecs=2000\n{OPEN}{script}");
    let verdicts = [1_000, 100].map(|hz| run(&script, hz, None).verdict);
    assert_eq!(verdicts[0], Verdict::Passed);
    assert!(matches!(verdicts[1], Verdict::Failed { line: 11, .. }), "{verdicts:?}");
}
