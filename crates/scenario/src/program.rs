//! Programs on hosts: commands as they are typed, when others may count on them, and what is read from their output.

use crate::fields::wrong_type;
use crate::files::Files;
use crate::network::Network;
use crate::parts::NAME;
use crate::placement::{self, Placed};
use crate::problem::{FieldProblems, Problem, below, one};
use crate::routing::Router;
use crate::scenario::Scenario;
use crate::schema::{self, Definitions};
use crate::table::{Field, ReadContext, Rule, table};
use crate::units::{Size, Span};
use crate::value::{Table, Value};
use crate::view::View;
use crate::words::suggestion;
use std::collections::BTreeSet;

table! {
    /// An unmodified program that runs on a host; engines `kernel` and `netns`.
    Program check agrees {
        name: Option<String>, NAME, Nothing, "name in the results; absent: the host's name, numbered if taken";
        host: String, NAME, Needed, "host that it runs on; `server` and `client` are the two ends, where no host has that name";
        command: Command, Any, Needed, "the command: a list of words, or a text for the shell";
        ready: Option<String>, Line, Nothing,
            "makes it a server: servers start first, one after the other, and end with the run. When it is ready: `listening` (on any new port), `port 8000`, or a text that it prints";
        start: Option<Span>, Any, Nothing, "start time; absent: 0 s, when all servers are ready";
        directory: Option<String>, Any, Nothing, "working directory; absent: that of the file";
        environment: Texts, Rule::Identifier, EmptyTable, "environment variables, added to `PATH`, `HOME` and `LC_ALL`";
        stdin: Option<String>, Any, Nothing, "text that it reads on standard input";
        files: Vec<String>, Any, EmptyList, "more directories that it sees, if they are below `/tmp` or `/run`; of a file, the directory that it is in";
        collect: Vec<String>, Any, EmptyList, "files to keep in the results when the run is over: names with `*` and `?`";
        memory: Option<Size>, Between("16 MiB", "64 GiB"), Nothing,
            "memory that it needs, its files included, on the engine `kernel`; the guest has the sum, and at least 2 GiB";
        measure: Texts, Rule::Identifier, EmptyTable,
            "numbers to read from its output, by column: `time_s = \"stdout:/time_total\"` (JSON pointer) or `\"stdout:([0-9.]+) Mbit\"` (regular expression)";
    }
}

/// A list of words, or a text for the shell.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    Shell(String),
    Words(Vec<String>),
}

/// Texts by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Texts(pub Vec<(String, String)>);

impl Field for Command {
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<Command, FieldProblems> {
        let read = match given {
            Value::List(_) => Command::Words(Vec::read(given, rule, at)?),
            Value::Text(text) => Command::Shell(text.clone()),
            _ => return wrong_type("a command is a text, or a list of words", "write it like \"curl -s server\""),
        };
        let first = match &read {
            Command::Shell(text) => text.trim(),
            Command::Words(words) => words.first().map_or("", String::as_str),
        };
        if first.is_empty() {
            return Err(one(Problem::new("bad-program", "there is no command", "write one, like \"curl -s server\"")));
        }
        if given_texts(&read).any(|text| text.contains('\0')) {
            let message = "a command has no character of the code 0";
            return Err(one(Problem::new("bad-program", message, "leave it out")));
        }
        Ok(read)
    }

    fn write(&self) -> Value {
        match self {
            Command::Shell(text) => Value::text(text),
            Command::Words(words) => words.write(),
        }
    }

    fn view(&self) -> View {
        match self {
            Command::Shell(text) => text.view(),
            Command::Words(words) => words.view(),
        }
    }

    fn schema(_: &Rule, definitions: &mut Definitions) -> Value {
        schema::any([String::schema(&Rule::Any, definitions), Vec::<String>::schema(&Rule::Any, definitions)])
    }
}

fn given_texts(command: &Command) -> impl Iterator<Item = &String> {
    match command {
        Command::Shell(text) => std::slice::from_ref(text).iter(),
        Command::Words(words) => words.iter(),
    }
}

impl Field for Texts {
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<Texts, FieldProblems> {
        let Value::Table(table) = given else {
            return wrong_type("a table is needed", format!("write it like {} = {{ NAME = \"text\" }}", at.name));
        };
        let (mut read, mut problems) = (Vec::new(), Vec::new());
        for (name, value) in table.iter() {
            if let Err(found) = String::read(&Value::text(name), rule, ReadContext { name: "[key]", ..at }) {
                problems.extend(below(name, below("[key]", found)));
            }
            match String::read(value, &Rule::Any, ReadContext { name, ..at }) {
                Ok(text) => read.push((name.to_string(), text)),
                Err(found) => problems.extend(below(name, found)),
            }
        }
        if problems.is_empty() { Ok(Texts(read)) } else { Err(problems) }
    }

    fn write(&self) -> Value {
        Value::Table(self.0.iter().map(|(name, text)| (name.clone(), Value::text(text))).collect::<Table>())
    }

    fn schema(_: &Rule, _: &mut Definitions) -> Value {
        schema::object([("type", Value::text("object")), ("additionalProperties", schema::of_type("string"))])
    }
}

fn agrees(program: &Program, _: &dyn Files) -> Result<(), Problem> {
    let refused = |message: String, fix: &str, field: &str| Err(Problem::new("bad-program", message, fix).of(field));
    let ready = program.ready.as_deref().unwrap_or("");
    if program.ready.is_some() && program.start.is_some() {
        let message = "no program waits for one with its own start";
        return refused(message.into(), "leave out ready, or start", "ready");
    }
    if let Some(port) = ready.strip_prefix("port ").or((ready == "port").then_some("")) {
        let are_digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        if !are_digits || !port.parse::<u16>().is_ok_and(|port| port > 0) {
            return refused(format!("\"{}\" names no port", ready), "write it like \"port 8000\"", "ready");
        }
    }
    Ok(())
}

/// The name of each [[programs]] table: its own, or the one it gets.
pub fn program_names(programs: &[Program]) -> Result<Vec<String>, Problem> {
    placement::names("programs", programs.iter().map(|one| (one.name.as_deref(), one.host.clone())).collect())
}

/// Programs on the hosts of a network.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// What programs call two of the hosts, by the hosts' names.
    pub called: Vec<(String, String)>,
    /// The name of each program, and its host.
    pub names: Vec<String>,
    pub hosts: Vec<String>,
    /// Between every two of these hosts, and the two that have another name.
    pub(crate) ways: Vec<Placed>,
}

/// Finds each program's host, and the ways between them.
pub(crate) fn place_programs(
    scenario: &Scenario,
    network: &Network,
    router: &mut Router,
    flows: &[Placed],
) -> Result<Programs, Problem> {
    if scenario.programs.is_empty() {
        return Ok(Programs::default());
    }
    let called = called(network, flows);
    let mut hosts = Vec::new();
    for (index, program) in scenario.programs.iter().enumerate() {
        let known = called.iter().find(|(_, name)| *name == program.host).map(|(host, _)| host);
        let host = known.cloned().or_else(|| network.host(&program.host).map(|_| program.host.clone()));
        let Some(host) = host else {
            let names = network.hosts.iter().chain(called.iter().map(|(_, name)| name));
            let fix = suggestion(&program.host, names.map(String::as_str));
            let message = format!("no host is named \"{}\"", program.host);
            return Err(Problem::new("unknown-name", message, fix).of(format!("programs.{index}.host")));
        };
        hosts.push(host);
    }
    let named = called.iter().map(|(host, _)| host);
    let apart: Vec<&String> = hosts.iter().chain(named).collect::<BTreeSet<_>>().into_iter().collect();
    let mut ways = Vec::new();
    for (number, from) in apart.iter().enumerate() {
        for to in &apart[number + 1..] {
            let [source, target] = [from, to].map(|name| network.host(name).expect("it is known"));
            let (forward, backward) =
                (router.way(source, target, "programs")?, router.way(target, source, "programs")?);
            ways.push(Placed { name: format!("{from} {to}"), source, count: 0, forward, backward, index: 0 });
        }
    }
    Ok(Programs { called, names: program_names(&scenario.programs)?, hosts, ways })
}

/// `server` and `client`, where no host has that name: the ends of the first flow, or the topology's.
fn called(network: &Network, flows: &[Placed]) -> Vec<(String, String)> {
    let first = flows.first().map(|flow| {
        let target = flow.forward.last().map_or(flow.source, |wire| network.wires[*wire].target);
        [flow.source, target].map(|host| network.hosts[host].clone())
    });
    let own = network.ends.as_ref().map(|(from, to)| [from.replace('*', "1"), to.replace('*', "1")]);
    let ends = first.or(own).into_iter().flatten().zip(["server", "client"]);
    ends.filter(|(_, name)| network.host(name).is_none()).map(|(host, name)| (host, name.to_string())).collect()
}
