//! Runs a script with the simulated endpoint and gives a verdict.
//!
//! As in packetdrill (gtests/net/packetdrill/run.c and run_packet.c):
//!
//! - A relative time counts from the actual time of the previous event.
//! - An outbound packet may differ from its expected time by the tolerance: 4 ms, or the value of `--tolerance_usecs`,
//!   or an eighth of the time since the last event.
//! - Several consecutive packets count as one expected packet, if all but the last have the same size.
//! - Packets that the script does not mention are ignored only at its end.

use crate::expression::{self, AssertionResult};
use crate::host::{self, Agreement, Host, Opened};
use crate::script::{Action, Call, Event, Packet, Script, When};
use crate::settings::Settings;
use crate::verdict::{Outcome, Verdict};
use crate::wire::{self, Sent, Stamps, seconds};
use sawtooth_tcp::receiver::Receiver;
use std::collections::BTreeMap;

/// packetdrill's tolerance in microseconds.
const TOLERANCE_US: i64 = 4_000;
/// packetdrill's relative tolerance: this fraction (1/8 = 12.5%) of the time since the last event.
const TOLERANCE_PART: i64 = 8;
/// Microseconds after its time during which a missing packet is still awaited, to report when it came.
const LATE_US: i64 = 2_000_000;
/// Calls that have no effect on the simulation.
const NEUTRAL_CALLS: [&str; 3] = ["bind", "accept", "fcntl"];
/// Socket options that have no effect on the simulation.
const NEUTRAL_OPTIONS: [&str; 5] = ["SO_REUSEADDR", "SO_ERROR", "IP_TOS", "IP_MTU_DISCOVER", "IP_FREEBIND"];
/// A second connection of a script is a new one after this many.
const MAX_CONNECTIONS: usize = 16;

/// Why a run stopped before the script's end.
enum Stop {
    Differs { expected: String, got: String },
    NotSimulated(String),
}

enum Stage {
    Closed,
    /// `connect` sent a SYN.
    Calling {
        since_us: i64,
        sent: Option<Sent>,
    },
    /// The peer's SYN has arrived and was answered.
    Answering {
        since_us: i64,
        agreement: Agreement,
        receiver: Box<Receiver>,
        sent: Option<Sent>,
    },
    Open(Box<Host>),
}

struct Player {
    settings: Settings,
    stage: Stage,
    stamps: Stamps,
    now_us: i64,
    last_us: i64,
    tolerance: Tolerance,
    connections: usize,
    /// The file descriptor that listens.
    listener: Option<String>,
    variables: BTreeMap<String, i64>,
    outcome: Outcome,
}

/// How far a time may be off: an amount, and a part of the time since the last event (0: none).
#[derive(Clone, Copy, Debug)]
struct Tolerance {
    us: i64,
    part: i64,
}

impl Tolerance {
    fn of(self, elapsed_us: i64) -> i64 {
        self.us.max(elapsed_us.checked_div(self.part).unwrap_or(0))
    }
}

/// Runs `script` as on a kernel with `hz` ticks per second. `tolerance_us` is for scripts that state none.
pub fn play(script: &Script, hz: u32, tolerance_us: Option<i64>) -> Outcome {
    let tolerance = match tolerance_us {
        Some(us) => Tolerance { us, part: 0 },
        None => Tolerance { us: TOLERANCE_US, part: TOLERANCE_PART },
    };
    let mut player = Player {
        settings: Settings::new(hz),
        stage: Stage::Closed,
        stamps: Stamps::default(),
        now_us: 0,
        last_us: 0,
        tolerance,
        connections: 0,
        listener: None,
        variables: BTreeMap::new(),
        outcome: Outcome::default(),
    };
    for (name, value) in &script.options {
        // A comment may follow.
        let value = value.split("//").next().unwrap_or_default().trim();
        match (name.split_whitespace().next().unwrap_or_default(), value.parse::<u32>()) {
            ("tolerance_usecs", Ok(us)) => {
                player.tolerance = Tolerance { us: i64::from(us), part: TOLERANCE_PART };
            }
            ("mss", Ok(mss)) if mss > 0 => player.settings.peer_mss = Some(mss),
            ("tcp_ts_tick_usecs", Ok(us)) => player.stamps.tick_us = (us > 0).then_some(i64::from(us)),
            ("send_omit_free", _) => {}
            _ => return Outcome::not_applicable(format!("option --{name}")),
        }
    }
    for event in &script.events {
        match player.run_event(event) {
            Ok(()) => {}
            Err(Stop::NotSimulated(reason)) => {
                player.outcome.verdict = Verdict::NotApplicable(format!("line {}: {reason}", event.line));
                return player.outcome;
            }
            Err(Stop::Differs { expected, got }) => {
                player.outcome.verdict = Verdict::Failed { line: event.line, expected, got };
                break;
            }
        }
    }
    player.finish()
}

impl Player {
    fn finish(mut self) -> Outcome {
        if !self.settings.not_followed.is_empty() {
            self.outcome.note(format!("without {}", self.settings.not_followed.join(", ")));
        }
        if self.settings.paced {
            self.outcome.note("paced by the sender itself, not by fq");
        }
        if self.outcome.verdict == Verdict::Passed && self.outcome.packets + self.outcome.assertions == 0 {
            self.outcome.verdict = Verdict::NotApplicable("checks nothing that the endpoint does".to_owned());
        }
        self.outcome
    }

    fn run_event(&mut self, event: &Event) -> Result<(), Stop> {
        let (start_us, end_us) = match event.when {
            When::Any => (self.now_us, self.now_us),
            When::Absolute { start_us, end_us } => (start_us, end_us),
            When::Relative { start_us, end_us } => (self.now_us + start_us, self.now_us + end_us),
        };
        if let Action::Outbound(packet) = &event.action {
            self.outbound(packet, start_us, end_us, event.when == When::Any)?;
        } else {
            self.wait(start_us);
            match &event.action {
                Action::Inbound(packet) => self.inbound(packet)?,
                Action::Call(call) => self.call(call)?,
                Action::Command(text) => self.settings.command(text).map_err(Stop::NotSimulated)?,
                Action::Assertions(code) => self.assertions(code)?,
                Action::Outbound(_) => {}
            }
        }
        self.last_us = start_us;
        Ok(())
    }

    fn wait(&mut self, until_us: i64) {
        self.now_us = self.now_us.max(until_us);
        if let Stage::Open(host) = &mut self.stage {
            host.run(self.now_us, false);
        }
    }

    fn inbound(&mut self, packet: &Packet) -> Result<(), Stop> {
        if packet.has('R') {
            return Err(Stop::NotSimulated("a RST".to_owned()));
        }
        if packet.has('S') && packet.length > 0 {
            return Err(Stop::NotSimulated("data in a SYN".to_owned()));
        }
        let window = packet.window.unwrap_or(0);
        let now_us = self.now_us;
        self.stage = match std::mem::replace(&mut self.stage, Stage::Closed) {
            Stage::Closed if packet.has('S') && !packet.has('.') => {
                let agreement = self.negotiate(packet)?;
                let receiver = Box::new(agreement.receiver(&self.settings, now_us));
                let sent = Some(host::syn(&self.settings, Some(&agreement), now_us));
                Stage::Answering { since_us: now_us, agreement, receiver, sent }
            }
            Stage::Calling { since_us, .. } if packet.has('S') && packet.has('.') => {
                let agreement = self.negotiate(packet)?;
                let receiver = agreement.receiver(&self.settings, now_us);
                let opened = Opened { window, handshake_us: now_us - since_us, now_us };
                let mut host = Host::open(&self.settings, agreement, receiver, opened);
                host.confirm();
                Stage::Open(Box::new(host))
            }
            Stage::Answering { since_us, agreement, receiver, .. } if packet.has('.') && !packet.has('S') => {
                let window = window << agreement.window_scale;
                let opened = Opened { window, handshake_us: now_us - since_us, now_us };
                let mut host = Host::open(&self.settings, agreement, *receiver, opened);
                host.take(packet, &self.stamps).map_err(Stop::NotSimulated)?;
                Stage::Open(Box::new(host))
            }
            Stage::Open(mut host) if !packet.has('S') => {
                // A segment without ACK is not taken.
                if packet.has('.') {
                    host.take(packet, &self.stamps).map_err(Stop::NotSimulated)?;
                }
                Stage::Open(host)
            }
            _ => return Err(Stop::NotSimulated("an unusual handshake".to_owned())),
        };
        Ok(())
    }

    fn negotiate(&self, packet: &Packet) -> Result<Agreement, Stop> {
        Agreement::with(packet, &self.settings).map_err(Stop::NotSimulated)
    }

    fn outbound(&mut self, packet: &Packet, start_us: i64, end_us: i64, any: bool) -> Result<(), Stop> {
        let tolerance_us = self.tolerance.of(start_us - self.last_us);
        let got = match &mut self.stage {
            Stage::Open(host) => {
                let got = collect_packets(host, packet, start_us, end_us + tolerance_us);
                self.now_us = host.now_us;
                got
            }
            Stage::Closed => return Err(Stop::NotSimulated("a packet without a connection".to_owned())),
            Stage::Calling { sent, .. } | Stage::Answering { sent, .. } => {
                self.now_us = self.now_us.max(start_us);
                match sent.take() {
                    Some(sent) => vec![sent],
                    None => return Err(Stop::NotSimulated("an unusual handshake".to_owned())),
                }
            }
        };
        let late = |got: &Sent| got.at_us < start_us - tolerance_us || got.at_us > end_us + tolerance_us;
        let stamp_us = self.tolerance.of(start_us);
        let ok = got.len() == 1 && got[0].matches(packet, &mut self.stamps, stamp_us);
        if !ok || (!any && late(&got[0])) {
            if let Stage::Open(host) = &self.stage
                && let Some(reason) = unsupported_by_endpoint(packet, host)
            {
                return Err(Stop::NotSimulated(reason));
            }
            let range = if end_us > start_us { format!(" to {}", seconds(end_us)) } else { String::new() };
            let expected = format!("{} at {}", wire::describe(packet), seconds(start_us));
            return Err(Stop::Differs {
                expected: format!("{expected}{range} ± {}", seconds(tolerance_us)),
                got: if got.is_empty() {
                    "nothing within 2 s".to_owned()
                } else {
                    got.iter().map(|sent| sent.describe(packet)).collect::<Vec<_>>().join(", ")
                },
            });
        }
        // The handshake is no achievement.
        self.outcome.packets += usize::from(!packet.has('S') && packet.end() + packet.ack.unwrap_or(1) > 2);
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<(), Stop> {
        let result = call.result.split_whitespace().next().unwrap_or_default();
        let result = result.parse::<i64>().unwrap_or(0);
        if result < 0 && !call.result.contains("EINPROGRESS") {
            return Err(Stop::NotSimulated(format!("an error of {}", call.name)));
        }
        let result = result.max(0) as u64;
        match call.name.as_str() {
            name if NEUTRAL_CALLS.contains(&name) => Ok(()),
            "socket" => {
                if !call.arguments.iter().any(|one| one.contains("SOCK_STREAM")) {
                    return Err(Stop::NotSimulated("a socket other than TCP's".to_owned()));
                }
                self.connections += 1;
                if self.connections > MAX_CONNECTIONS {
                    return Err(Stop::NotSimulated("many connections".to_owned()));
                }
                self.stage = Stage::Closed;
                self.listener = None;
                Ok(())
            }
            "listen" => {
                self.listener = call.arguments.first().cloned();
                Ok(())
            }
            "connect" => {
                self.stage =
                    Stage::Calling { since_us: self.now_us, sent: Some(host::syn(&self.settings, None, self.now_us)) };
                Ok(())
            }
            "setsockopt" | "getsockopt" => self.option(call),
            "write" | "send" if flags(call, 3) == "0" => self.write(call, 2, result),
            "read" | "recv" if flags(call, 3) == "0" => {
                let host = self.host("reading before the handshake is done")?;
                if let Some(bytes) = call.arguments.get(2).and_then(|bytes| bytes.parse::<u64>().ok()) {
                    let (expected, unread) = (result, host.unread());
                    if unread > 0 && expected != bytes.min(unread) {
                        return Err(Stop::Differs {
                            expected: format!("{expected} bytes read"),
                            got: format!("{} bytes", bytes.min(unread)),
                        });
                    }
                }
                host.read(result);
                Ok(())
            }
            "close" => {
                let is_listener = self.listener.as_ref().is_some_and(|one| call.arguments.first() == Some(one));
                if let Stage::Open(host) = &mut self.stage
                    && !is_listener
                {
                    host.close();
                }
                Ok(())
            }
            "shutdown" => {
                let how = call.arguments.get(1).map_or("", String::as_str);
                let host = self.host("shutdown before the handshake is done")?;
                if how != "SHUT_RD" {
                    host.close();
                }
                Ok(())
            }
            name => Err(Stop::NotSimulated(format!("system call {name}"))),
        }
    }

    fn host(&mut self, otherwise: &str) -> Result<&mut Host, Stop> {
        match &mut self.stage {
            Stage::Open(host) => Ok(host),
            _ => Err(Stop::NotSimulated(otherwise.to_owned())),
        }
    }

    fn write(&mut self, call: &Call, at: usize, written: u64) -> Result<(), Stop> {
        let requested = call.arguments.get(at).and_then(|bytes| bytes.parse::<u64>().ok());
        if requested != Some(written) {
            self.outcome.note("how much a write takes is the script's");
        }
        self.host("data before the handshake is done")?.write(written);
        Ok(())
    }

    fn option(&mut self, call: &Call) -> Result<(), Stop> {
        let option = call.arguments.get(2).map_or("", String::as_str);
        let value = call.arguments.get(3).map_or("", String::as_str);
        let value = value.trim_matches(['[', ']']).trim().parse::<u64>().ok();
        match (call.name.as_str(), option, value) {
            ("setsockopt", "SO_SNDBUF", Some(bytes)) => {
                let bytes = self.settings.fix_send_buffer(bytes);
                if let Stage::Open(host) = &mut self.stage {
                    host.fix_send_buffer(bytes);
                }
            }
            ("setsockopt", "SO_RCVBUF", Some(bytes)) => {
                let bytes = self.settings.fix_receive_buffer(bytes);
                if let Stage::Open(host) = &mut self.stage {
                    host.fix_receive_buffer(bytes);
                }
            }
            ("setsockopt", "TCP_NODELAY", Some(value)) if value > 0 => {
                self.settings.no_delay = true;
                if let Stage::Open(host) = &mut self.stage {
                    host.set_no_delay();
                }
            }
            ("getsockopt", "SO_SNDBUF" | "SO_RCVBUF", _) => {}
            (_, option, _) if NEUTRAL_OPTIONS.contains(&option) => {}
            (name, option, _) => return Err(Stop::NotSimulated(format!("{name} {option}"))),
        }
        Ok(())
    }

    fn assertions(&mut self, code: &str) -> Result<(), Stop> {
        let stage = &self.stage;
        let read = |name: &str| match stage {
            Stage::Open(host) => host.read_info(name),
            _ => None,
        };
        let results = expression::check(code, &mut self.variables, &read)
            .map_err(|what| Stop::NotSimulated(format!("code: {what}")))?;
        for result in results {
            match result {
                AssertionResult::Held => self.outcome.assertions += 1,
                AssertionResult::Failed { condition, values } => {
                    return Err(Stop::Differs { expected: condition, got: values });
                }
                AssertionResult::Unknown(what) => self.outcome.unchecked(what),
            }
        }
        Ok(())
    }
}

/// The flags of a call, its argument at `at`.
fn flags(call: &Call, at: usize) -> &str {
    call.arguments.get(at).map_or("0", String::as_str)
}

/// What the simulated endpoint does not have, if the expected packet is of that kind.
fn unsupported_by_endpoint(packet: &Packet, host: &Host) -> Option<String> {
    if packet.has('R') && !host.is_reset() {
        return Some("a RST".to_owned());
    }
    (packet.has('F') && host.is_ending()).then(|| "a FIN that is sent again".to_owned())
}

/// Collects sent packets, also those sent until the deadline, until they make up the expected packet; joins packets as
/// packetdrill does. If they do not fit together, returns more than one.
fn collect_packets(host: &mut Host, expected: &Packet, start_us: i64, deadline_us: i64) -> Vec<Sent> {
    let mut joined: Vec<Sent> = Vec::new();
    let mut size = 0;
    loop {
        host.run(deadline_us.min(host.now_us.max(start_us)), true);
        if host.sent.is_empty() {
            host.run(deadline_us, true);
        }
        if host.sent.is_empty() && joined.is_empty() {
            host.run(deadline_us + LATE_US, true);
        }
        let Some(next) = host.sent.pop_front() else { return joined };
        match joined.last_mut() {
            None => {
                size = next.length;
                joined.push(next);
            }
            Some(whole) => {
                let fits = next.length > 0
                    && next.start == whole.end()
                    && (next.length == size || whole.length + next.length >= expected.length);
                if !fits {
                    joined.push(next);
                    return joined;
                }
                whole.length += next.length;
                whole.fin |= next.fin;
            }
        }
        if joined[0].length >= expected.length {
            return joined;
        }
    }
}
