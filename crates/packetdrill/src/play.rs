//! Runs a script with the simulated sender and gives a verdict.
//!
//! As in packetdrill (gtests/net/packetdrill/run.c and run_packet.c):
//!
//! - A relative time counts from the actual time of the previous event.
//! - An outbound packet may differ from its expected time by the tolerance: 4 ms, or the value of `--tolerance_usecs`, or
//!   an eighth of the time since the last event.
//! - Several consecutive packets count as one expected packet, if all but the last have the same size.
//! - Packets that the script does not mention are ignored only at its end.
//!
//! Differences: PSH is not compared (the simulated sender does not know where writes end), nor are IP headers,
//! checksums and the outbound window. The handshake and everything after `close` are not simulated.

use crate::expression::{self, Checked};
use crate::host::{Agreement, Host, Sent};
use crate::script::{Action, Call, Event, Packet, Script, TcpOption, When};
use crate::settings::Settings;
use crate::verdict::{Outcome, Verdict};
use std::collections::BTreeMap;

/// packetdrill's tolerance in microseconds.
const TOLERANCE_US: i64 = 4_000;
/// packetdrill's relative tolerance: this fraction (1/8 = 12.5%) of the time since the last event.
const TOLERANCE_PART: i64 = 8;
/// Microseconds after its time during which a missing packet is still awaited, to report when it came.
const LATE_US: i64 = 2_000_000;
/// Calls that have no effect on the simulation.
const NEUTRAL_CALLS: [&str; 6] = ["socket", "bind", "listen", "accept", "connect", "fcntl"];
/// Socket options that have no effect on the simulation.
const NEUTRAL_OPTIONS: [&str; 2] = ["SO_REUSEADDR", "IP_TOS"];

/// Why a run stopped before the script's end.
enum Stop {
    Differs { expected: String, got: String },
    Beyond(String),
    Closed,
}

enum Stage {
    Closed,
    /// The time in microseconds at which a SYN was answered or sent; `Some` if the peer's SYN has arrived.
    Opening {
        since_us: i64,
        agreement: Option<Agreement>,
    },
    Open(Box<Host>),
}

struct Player {
    settings: Settings,
    stage: Stage,
    now_us: i64,
    last_us: i64,
    tolerance_us: i64,
    variables: BTreeMap<String, i64>,
    outcome: Outcome,
}

/// Runs `script` as on a kernel with `hz` ticks per second.
pub fn play(script: &Script, hz: u32) -> Outcome {
    let mut player = Player {
        settings: Settings::new(hz),
        stage: Stage::Closed,
        now_us: 0,
        last_us: 0,
        tolerance_us: TOLERANCE_US,
        variables: BTreeMap::new(),
        outcome: Outcome::default(),
    };
    for (name, value) in &script.options {
        match (name.as_str(), value.parse()) {
            ("tolerance_usecs", Ok(us)) => player.tolerance_us = us,
            _ => return Outcome::not_applicable(format!("option --{name}")),
        }
    }
    for event in &script.events {
        match player.happen(event) {
            Ok(()) => {}
            Err(Stop::Closed) => {
                player.outcome.note("played up to close()");
                break;
            }
            Err(Stop::Beyond(reason)) => {
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
        if let (Verdict::Failed { line, expected, got }, Some(setting)) =
            (&self.outcome.verdict, self.settings.lacking())
        {
            let reason = format!("needs {setting}; without, line {line}: {expected} expected, {got}");
            self.outcome.verdict = Verdict::NotApplicable(reason);
        }
        if self.settings.paced {
            self.outcome.note("paced by the sender itself, not by fq");
        }
        if self.outcome.verdict == Verdict::Passed && self.outcome.packets + self.outcome.assertions == 0 {
            self.outcome.verdict = Verdict::NotApplicable("checks nothing that the sender does".to_owned());
        }
        self.outcome
    }

    fn happen(&mut self, event: &Event) -> Result<(), Stop> {
        let (start_us, end_us) = match event.when {
            When::Any => (self.now_us, self.now_us),
            When::Absolute { start_us, end_us } => (start_us, end_us),
            When::Relative { start_us, end_us } => (self.now_us + start_us, self.now_us + end_us),
        };
        if let Action::Outbound(packet) = &event.action {
            let tolerance_us = self.tolerance_us.max((start_us - self.last_us) / TOLERANCE_PART);
            self.outbound(packet, start_us, end_us, tolerance_us, event.when == When::Any)?;
        } else {
            self.wait(start_us);
            match &event.action {
                Action::Inbound(packet) => self.inbound(packet)?,
                Action::Call(call) => self.call(call)?,
                Action::Command(text) => self.settings.command(text).map_err(Stop::Beyond)?,
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
        if packet.uses_ecn() {
            return Err(Stop::Beyond("ECN".to_owned()));
        }
        if packet.has('F') || packet.has('R') || packet.length > 0 {
            return Err(Stop::Beyond("a receiver's side: the peer sends data, FIN or RST".to_owned()));
        }
        let window = packet.window.unwrap_or(0);
        match &mut self.stage {
            Stage::Closed if packet.has('S') && !packet.has('.') => {
                let agreement = self.agree(packet)?;
                self.stage = Stage::Opening { since_us: self.now_us, agreement: Some(agreement) };
            }
            Stage::Opening { since_us, agreement: None } if packet.has('S') => {
                let handshake_us = self.now_us - *since_us;
                let agreement = self.agree(packet)?;
                self.open(agreement, window, handshake_us);
            }
            Stage::Opening { since_us, agreement: Some(agreement) } if !packet.has('S') => {
                let (agreement, handshake_us) = (*agreement, self.now_us - *since_us);
                self.open(agreement, window << agreement.window_scale, handshake_us);
            }
            Stage::Open(host) if packet.has('.') && !packet.has('S') => {
                host.acknowledge(packet).map_err(Stop::Beyond)?;
            }
            _ => return Err(Stop::Beyond("an unusual handshake".to_owned())),
        }
        Ok(())
    }

    fn agree(&self, packet: &Packet) -> Result<Agreement, Stop> {
        Agreement::with(packet, &self.settings).map_err(Stop::Beyond)
    }

    fn open(&mut self, agreement: Agreement, window: u64, handshake_us: i64) {
        let host = Host::open(&self.settings, agreement, window, handshake_us, self.now_us);
        self.stage = Stage::Open(Box::new(host));
    }

    fn outbound(
        &mut self,
        packet: &Packet,
        start_us: i64,
        end_us: i64,
        tolerance_us: i64,
        any: bool,
    ) -> Result<(), Stop> {
        if packet.uses_ecn() {
            return Err(Stop::Beyond("ECN".to_owned()));
        }
        let host = match &mut self.stage {
            Stage::Open(host) => host,
            stage => {
                if packet.has('S') && !packet.has('.') {
                    *stage = Stage::Opening { since_us: self.now_us.max(start_us), agreement: None };
                }
                if packet.has('S') && packet.length == 0 {
                    self.now_us = self.now_us.max(start_us);
                    return Ok(());
                }
                return Err(Stop::Beyond("an unusual handshake".to_owned()));
            }
        };
        if packet.has('F') || packet.has('R') || packet.has('S') {
            return Err(Stop::Beyond("the end of a connection: FIN or RST".to_owned()));
        }
        if packet.ack != Some(1) {
            return Err(Stop::Beyond("a receiver's side: acknowledgements of the peer's data".to_owned()));
        }
        if packet.length == 0 && packet.start == 1 && self.outcome.packets == 0 && host.sent.is_empty() {
            // The last packet of the handshake.
            return Ok(());
        }
        if packet.length == 0 {
            let probe = host.acknowledged(packet.start);
            let what = if probe { "zero-window probes" } else { "a receiver's side: a pure acknowledgement" };
            return Err(Stop::Beyond(what.to_owned()));
        }
        if packet.options.iter().any(|option| matches!(option, TcpOption::Timestamps)) {
            return Err(Stop::Beyond("timestamps".to_owned()));
        }
        let expected = Sent { at_us: start_us, start: packet.start, length: packet.length };
        let got = gather(host, &expected, end_us + tolerance_us);
        self.now_us = host.now_us;
        let late = |got: &Sent| got.at_us < start_us - tolerance_us || got.at_us > end_us + tolerance_us;
        let ok = got.len() == 1 && (got[0].start, got[0].length) == (expected.start, expected.length);
        if !ok || (!any && late(&got[0])) {
            let range = if end_us > start_us { format!(" to {}", seconds(end_us)) } else { String::new() };
            return Err(Stop::Differs {
                expected: format!("{}{range} ± {}", describe(&expected), seconds(tolerance_us)),
                got: if got.is_empty() {
                    "nothing within 2 s".to_owned()
                } else {
                    got.iter().map(describe).collect::<Vec<_>>().join(", ")
                },
            });
        }
        self.outcome.packets += 1;
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<(), Stop> {
        let flagless = call.arguments.len() < 4 || call.arguments[3] == "0";
        match call.name.as_str() {
            name if NEUTRAL_CALLS.contains(&name) => Ok(()),
            "setsockopt" => {
                let option = call.arguments.get(2).map_or("", String::as_str);
                if option == "SO_SNDBUF" {
                    self.outcome.note("the send buffer sizes itself, whatever SO_SNDBUF says");
                } else if option == "TCP_NODELAY"
                    && let Stage::Open(host) = &mut self.stage
                {
                    host.set_no_delay();
                } else if !NEUTRAL_OPTIONS.contains(&option) && option != "IP_MTU_DISCOVER" {
                    return Err(Stop::Beyond(format!("setsockopt {option}")));
                }
                Ok(())
            }
            "write" | "send" if flagless => {
                let asked = call.arguments.get(2).and_then(|bytes| bytes.parse::<u64>().ok());
                let Stage::Open(host) = &mut self.stage else {
                    return Err(Stop::Beyond("data before the handshake is done".to_owned()));
                };
                match (asked, call.result.parse()) {
                    (Some(asked), Ok(written)) if asked == written => {
                        host.write(written);
                        Ok(())
                    }
                    _ => Err(Stop::Beyond("a write that does not take all".to_owned())),
                }
            }
            "close" if matches!(self.stage, Stage::Open(_)) => Err(Stop::Closed),
            name => Err(Stop::Beyond(format!("system call {name}"))),
        }
    }

    fn assertions(&mut self, code: &str) -> Result<(), Stop> {
        let stage = &self.stage;
        let read = |name: &str| match stage {
            Stage::Open(host) => host.read(name),
            Stage::Closed | Stage::Opening { .. } => None,
        };
        let results = expression::check(code, &mut self.variables, &read)
            .map_err(|what| Stop::Beyond(format!("code: {what}")))?;
        for result in results {
            match result {
                Checked::Held => self.outcome.assertions += 1,
                Checked::Broken { condition, values } => {
                    return Err(Stop::Differs { expected: condition, got: values });
                }
                Checked::Unknown(what) => self.outcome.unchecked(what),
            }
        }
        Ok(())
    }
}

/// Collects sent packets, also those sent until the deadline, until they make up the expected packet; joins packets as
/// packetdrill does. If they do not fit together, returns more than one.
fn gather(host: &mut Host, expected: &Sent, deadline_us: i64) -> Vec<Sent> {
    let mut joined: Vec<Sent> = Vec::new();
    let mut size = 0;
    loop {
        host.run(deadline_us.min(host.now_us.max(expected.at_us)), true);
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
                let fits = next.start == whole.start + whole.length
                    && (next.length == size || whole.length + next.length >= expected.length);
                if !fits {
                    joined.push(next);
                    return joined;
                }
                whole.length += next.length;
            }
        }
        if joined[0].length >= expected.length {
            return joined;
        }
    }
}

fn describe(sent: &Sent) -> String {
    format!("{}:{}({}) at {}", sent.start, sent.start + sent.length, sent.length, seconds(sent.at_us))
}

fn seconds(us: i64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    let short = text.trim_end_matches('0').trim_end_matches('.');
    format!("{short} s")
}
