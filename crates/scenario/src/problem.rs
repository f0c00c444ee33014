//! A problem with a scenario: a code, the field, a sentence, and a fix that can be followed literally.

use std::borrow::Cow;

/// One problem. Codes are listed in docs/reference/errors.md.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub code: Cow<'static, str>,
    pub message: String,
    pub fix: String,
    /// Dotted path, relative to the table that was read: `path.rtt`.
    pub field: Option<String>,
    /// A file that the scenario names.
    pub file: Option<String>,
}

impl Problem {
    pub fn new(code: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Problem {
        Problem { code: code.into(), message: message.into(), fix: fix.into(), field: None, file: None }
    }

    /// The same problem, for a field below its present field.
    pub fn of(self, field: impl Into<String>) -> Problem {
        Problem { field: Some(field.into()), ..self }
    }

    /// The same problem, seen from the parent table, where this table is `table`.
    pub fn within(self, table: &str) -> Problem {
        let field = self.field.as_deref().map_or(table.to_string(), |field| format!("{table}.{field}"));
        Problem { field: Some(field), ..self }
    }
}

/// A problem found while reading a table.
#[derive(Clone, Debug)]
pub struct FieldProblem {
    /// The path from the table that is being read.
    pub steps: Vec<String>,
    pub what: ProblemKind,
}

#[derive(Clone, Debug)]
pub enum ProblemKind {
    Invalid(Problem),
    /// A field that the table does not have; with the fields that it has.
    Unknown(Vec<&'static str>),
    /// Text that is not a valid name.
    NotAName(String),
}

/// All problems found, in the order of the fields.
pub type FieldProblems = Vec<FieldProblem>;

impl From<Problem> for FieldProblem {
    fn from(problem: Problem) -> FieldProblem {
        FieldProblem { steps: Vec::new(), what: ProblemKind::Invalid(problem) }
    }
}

/// A single problem as a list.
pub(crate) fn one(problem: Problem) -> FieldProblems {
    vec![problem.into()]
}

/// The same problems, seen from the parent table.
pub(crate) fn below(step: &str, problems: FieldProblems) -> FieldProblems {
    let under = |found: FieldProblem| FieldProblem {
        steps: [step.to_string()].into_iter().chain(found.steps).collect(),
        ..found
    };
    problems.into_iter().map(under).collect()
}

/// The problem to report. Unknown fields come first, because a misspelt field often causes a missing one.
pub(crate) fn first(problems: FieldProblems) -> Problem {
    let is_unknown = |found: &FieldProblem| matches!(found.what, ProblemKind::Unknown(_));
    let index = problems.iter().position(is_unknown).unwrap_or(0);
    let FieldProblem { steps, what } = problems.into_iter().nth(index).expect("something is wrong");
    let cut: Vec<String> = steps.iter().map(|step| step.chars().take(80).collect()).collect();
    let field = cut.join(".");
    let problem = match what {
        ProblemKind::Invalid(problem) => {
            return match (field.is_empty(), problem.field.is_some()) {
                (true, _) => problem,
                _ => problem.within(&field),
            };
        }
        ProblemKind::Unknown(fields) => {
            Problem::new("unknown-field", "there is no such field", fix_unknown(&steps, &fields))
        }
        ProblemKind::NotAName(given) => {
            let message = format!("\"{}\" is not a name that can be used here", crate::words::printable(&given));
            let fix = match steps.as_slice() {
                [only] if only == "name" => "use 1 to 100 characters on one line",
                [.., last] if last == "kernel" => {
                    "use at most 40 letters, digits, \"-\", \"_\", \"+\" and \".\", but no \".\" first and no \"..\""
                }
                _ => "use letters, digits, \"-\", \"_\" and \"+\", at most 40",
            };
            Problem::new("bad-name", message, fix)
        }
    };
    problem.of(field)
}

fn fix_unknown(steps: &[String], fields: &[&'static str]) -> String {
    let word = steps.last().map_or("", String::as_str);
    if let Some(fix) = elsewhere(steps, fields) {
        return fix;
    }
    match crate::words::nearest(word, fields) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("fields here: {}", fields.join(", ")),
    }
}

/// Words of iperf3, tc and netem, with the fields that have the same meaning.
const SAME: &[(&str, &[&str])] = &[
    ("rate", &["bandwidth", "bw", "capacity", "speed", "bitrate"]),
    ("queue", &["buffer", "buffer_size", "qdisc", "aqm", "queue_size"]),
    ("cc", &["congestion_control", "congestion", "ca", "algorithm", "tcp"]),
    ("loss", &["plr", "drop", "packet_loss"]),
    ("duration", &["time", "length"]),
    ("count", &["parallel", "connections", "streams"]),
    ("rtt", &["delay", "latency", "ping"]),
    ("delay", &["rtt", "latency"]),
    ("bytes", &["size", "transfer"]),
];
const OF_PATH: &[&str] =
    &["rate", "rtt", "queue", "loss", "ack_loss", "reverse_rate", "jitter", "reorder", "trace", "policer", "changes"];
const OF_HOST: &[(&str, &str)] = &[
    ("mtu", "mss"),
    ("initcwnd", "initial_window"),
    ("mss", "mss"),
    ("hz", "hz"),
    ("ecn", "ecn"),
    ("sack", "sack"),
    ("timestamps", "timestamps"),
    ("initial_window", "initial_window"),
];

/// A fix for an unknown field, if another field has its meaning.
pub fn elsewhere(steps: &[String], fields: &[&str]) -> Option<String> {
    let word = steps.last()?.as_str();
    let table = if steps.len() > 1 { steps[0].as_str() } else { "" };
    if table == "flows" && (word == "rate" || SAME[0].1.contains(&word)) {
        let writes = "source = { kind = \"rate\", rate = \"…\" }";
        return Some(format!("of the bottleneck: path.rate; of what an application writes: {writes}"));
    }
    if let Some((meant, _)) = SAME.iter().find(|(meant, words)| words.contains(&word) && fields.contains(meant)) {
        return Some(format!("it is called \"{meant}\" here"));
    }
    if let Some((_, field)) = OF_HOST.iter().find(|(known, _)| *known == word) {
        return Some(format!("hosts have it: host.{field}"));
    }
    let of_path = ["", "flows", "host", "hosts", "probes"].contains(&table) && OF_PATH.contains(&word);
    of_path.then(|| format!("the topology's table has it: path.{word}"))
}
