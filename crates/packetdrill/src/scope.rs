//! Whether a script is about TCP's data path: how data, acknowledgements, windows and timers go on the wire. That
//! follows from its text alone.

use crate::script::{Action, Call, Packet, Script, TcpOption};

/// What an application needs to exchange data.
const PLAIN_CALLS: [&str; 12] =
    ["socket", "bind", "listen", "accept", "connect", "fcntl", "read", "recv", "write", "send", "close", "getsockopt"];
/// Socket options of such an application.
const PLAIN_OPTIONS: [&str; 7] =
    ["SO_REUSEADDR", "SO_ERROR", "SO_SNDBUF", "SO_RCVBUF", "TCP_NODELAY", "IP_TOS", "IP_MTU_DISCOVER"];

/// Why the script is about something else; `None`: it is about the data path.
///
/// It is, if its application only opens connections, reads, writes and closes, without errors; if its packets are TCP
/// without Fast Open, signatures, urgent data and resets; and if, after the handshake, it expects data, an
/// acknowledgement of data, or a property in `tcp_info`.
pub fn outside_data_path(script: &Script) -> Option<String> {
    let mut is_checked = false;
    for event in &script.events {
        let reason = match &event.action {
            Action::Call(call) => call_outside_scope(call),
            Action::Inbound(packet) => packet_outside_scope(packet),
            Action::Outbound(packet) => {
                let acknowledges_data = packet.ack.is_some_and(|ack| ack > 1) && !packet.has('F');
                is_checked |= !packet.has('S') && (packet.length > 0 || acknowledges_data);
                packet_outside_scope(packet)
            }
            Action::Assertions(code) => {
                is_checked |= code.contains("tcpi_");
                None
            }
            Action::Command(_) => None,
        };
        if let Some(reason) = reason {
            return Some(format!("line {}: {reason}", event.line));
        }
    }
    (!is_checked).then(|| "it expects no data, acknowledgement of data or tcp_info".to_owned())
}

fn call_outside_scope(call: &Call) -> Option<String> {
    let name = call.name.as_str();
    let argument = |at: usize| call.arguments.get(at).map_or("0", String::as_str);
    if call.result.starts_with('-') && !call.result.contains("EINPROGRESS") {
        return Some(format!("an error of {name}"));
    }
    let option = argument(2);
    match name {
        "socket" if !argument(1).contains("SOCK_STREAM") => Some("a socket other than TCP's".to_owned()),
        "setsockopt" | "getsockopt" if !PLAIN_OPTIONS.contains(&option) => Some(format!("{name} {option}")),
        "send" | "recv" if argument(3) != "0" => Some(format!("{name} with {}", argument(3))),
        "setsockopt" => None,
        _ if PLAIN_CALLS.contains(&name) => None,
        _ => Some(format!("system call {name}")),
    }
}

fn packet_outside_scope(packet: &Packet) -> Option<String> {
    let other = packet.options.iter().find_map(|option| match option {
        TcpOption::Other(name) => Some(format!("TCP option {name}")),
        _ => None,
    });
    if packet.has('R') {
        Some("a RST".to_owned())
    } else if !packet.has('.') && !packet.has('S') {
        Some("a packet without ACK".to_owned())
    } else if packet.has('S') && packet.length > 0 {
        Some("data in a SYN".to_owned())
    } else {
        other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    fn outside(text: &str) -> Option<String> {
        outside_data_path(&parse(text).expect("readable"))
    }

    #[test]
    fn data_acks_and_tcp_info_are_data_path() {
        for checked in ["+0 > P. 1:101(100) ack 1", "+0 > . 1:1(0) ack 101", "+0 %{ assert tcpi_snd_cwnd == 10 }%"] {
            assert_eq!(outside(&format!("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n{checked}")), None);
        }
        let handshake = "+0 > S. 0:0(0) ack 1 <...>\n+0 < . 1:1(0) ack 1 win 9\n+0 > F. 1:1(0) ack 1";
        assert_eq!(outside(handshake).as_deref(), Some("it expects no data, acknowledgement of data or tcp_info"));
    }

    #[test]
    fn other_calls_options_and_packets_are_outside_data_path() {
        for (line, reason) in [
            ("+0 splice(4, NULL, 6, NULL, 99, 0) = 99", "system call splice"),
            ("+0 send(4, ..., 40, MSG_EOR) = 40", "send with MSG_EOR"),
            ("+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0", "setsockopt TCP_CORK"),
            ("+0 write(4, ..., 40) = -1 EPIPE (Broken pipe)", "an error of write"),
            ("+0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3", "a socket other than TCP's"),
            ("+0 > R. 1:1(0) ack 1", "a RST"),
            ("+0 < S 0:10(10) win 9 <mss 1460,FO 12>", "data in a SYN"),
            ("+0 < S 0:0(0) win 9 <mss 1460,FO 12>", "TCP option FO"),
        ] {
            assert_eq!(outside(line), Some(format!("line 1: {reason}")));
        }
    }
}
