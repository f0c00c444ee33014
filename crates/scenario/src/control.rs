//! The congestion control of a flow: a name, a variant, or a module given as C sources.

use crate::fields::{counted, one_line, wrong_type};
use crate::problem::{FieldProblems, Problem, below, first, one};
use crate::schema::{self, Definitions};
use crate::table::{Field, ReadContext, Rule, table};
use crate::value::{Table, Value};
use crate::view::View;
use crate::words::{printable, suggestion};
use sawtooth_tcp::cc::{RECORDS, Record};

/// Linux's limit for names of congestion controls.
const CONTROL: Rule = Rule::Letters("_-", 15);

table! {
    /// A congestion control from a file: the C source of one for Linux, which engine `sim` compiles and runs; a policy
    /// of `sawtooth.gym` (`.npz`), or a Python file that decides (`.py`), which only `sim` runs. The scenario file's
    /// own directory is where it is looked for.
    Module {
        source: Sources, Count(1, 20), Needed, "the C file, or several that belong together; a policy, or a Python file";
        name: Option<String>, CONTROL, Nothing, "which one, where it registers several";
        parameters: Parameters, Any, EmptyTable, "module parameters";
    }
}

table! {
    /// A congestion control as another text than Linux's has it: `draft` is draft-ietf-ccwg-bbr, `ecn` BBR v3
    /// with its tree's low-latency ECN, `abe` RFC 8511, by which an echoed mark takes less of the window than a loss;
    /// engine `sim`.
    Variant {
        name: String, CONTROL, Needed, "the congestion control";
        variant: String, CONTROL, Needed, "its variant; `sawtooth cc show NAME` lists them";
    }
}

/// A congestion control.
#[derive(Clone, Debug, PartialEq)]
pub enum Control {
    Named(String),
    Variant(Variant),
    Module(Module),
}

/// Names of C files.
#[derive(Clone, Debug, PartialEq)]
pub struct Sources(pub Vec<String>);

/// Parameters of a module by name, as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters(pub Vec<(String, Value)>);

impl Control {
    /// Its name in tables and figures.
    pub fn label(&self) -> String {
        match self {
            Control::Named(name) => name.clone(),
            Control::Variant(Variant { name, variant, .. }) => format!("{name}-{variant}"),
            Control::Module(module) => module.label(),
        }
    }

    fn labelled(&self, mut seen: View) -> View {
        if let View::Table(table) = &mut seen {
            table.fields.push(("label", View::Plain(Value::Text(self.label()))));
        }
        seen
    }

    /// Refuses names that no congestion control has. If a `kernel` is given by name, any name is allowed, because only
    /// that kernel knows its controls.
    pub(crate) fn check(&self, kernel: Option<&str>) -> Result<(), Problem> {
        match self {
            Control::Named(name) if kernel.is_none() && Record::of(name).is_none() => {
                let near = suggestion(name, RECORDS.iter().map(|one| one.name));
                let fix = format!("{near} or set host.kernel to a kernel that has it");
                let message = format!("no congestion control is named \"{}\"", printable(name));
                Err(Problem::new("unknown-name", message, fix).of("cc"))
            }
            Control::Variant(Variant { name, variant, .. }) => {
                let known: Vec<&str> = Record::of(name).map_or(Vec::new(), |one| one.variants().collect());
                if known.contains(&variant.as_str()) {
                    return Ok(());
                }
                let message = format!("\"{}\" has no variant \"{}\"", printable(name), printable(variant));
                let fix = if known.is_empty() {
                    let some = RECORDS.iter().filter(|one| one.variants().next().is_some()).map(|one| one.name);
                    format!("{} have some; leave it out", some.collect::<Vec<_>>().join(", "))
                } else {
                    suggestion(variant, known.iter().copied())
                };
                Err(Problem::new("unknown-name", message, fix).of("cc.variant"))
            }
            _ => Ok(()),
        }
    }
}

impl Module {
    /// Its name in tables and figures: the given one, otherwise from its file's name.
    fn label(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let path = self.source.0[0].trim_end_matches('/');
        let file = path.rsplit('/').next().unwrap_or("");
        let stem = match file.rfind('.') {
            Some(dot) if dot > 0 && dot + 1 < file.len() => &file[..dot],
            _ => file,
        };
        let letter = |one: char| if one.is_ascii_alphanumeric() || "_+-".contains(one) { one } else { '_' };
        let stem: String = stem.chars().map(letter).take(40).collect();
        if stem.bytes().all(|byte| byte.is_ascii_digit()) { "module".into() } else { stem }
    }
}

impl Field for Control {
    fn read(given: &Value, rule: &Rule, at: ReadContext) -> Result<Control, FieldProblems> {
        match given {
            Value::Table(table) if table.get("bpf").is_some() => {
                let message = "no engine loads congestion controls in BPF: User-Mode Linux has no BPF JIT";
                let fix = "write the control in C instead: cc = { source = \"tcp_mine.c\" }";
                Err(one(Problem::new("unsupported", message, fix).of("bpf")))
            }
            Value::Table(table) if table.get("variant").is_some() && table.get("source").is_none() => {
                Variant::read(given, rule, at).map(Control::Variant).map_err(|problems| one(first(problems)))
            }
            Value::Table(_) => {
                Module::read(given, rule, at).map(Control::Module).map_err(|problems| one(first(problems)))
            }
            Value::Text(name) => {
                let is_name = name.chars().all(|one| one.is_ascii_alphanumeric() || "_-".contains(one));
                if is_name && (1..=15).contains(&name.len()) {
                    return Ok(Control::Named(name.clone()));
                }
                let message = format!("\"{}\" is not a name that can be used here", printable(name));
                Err(one(Problem::new("bad-name", message, "use letters, digits, \"-\" and \"_\", at most 15")))
            }
            _ => {
                let fix = "write it in quotes, cc = \"cubic\", or as a module: cc = { source = \"tcp_mine.c\" }";
                wrong_type("text or a table is needed", fix)
            }
        }
    }

    fn write(&self) -> Value {
        match self {
            Control::Named(name) => Value::text(name),
            Control::Variant(variant) => variant.write(),
            Control::Module(module) => module.write(),
        }
    }

    fn given(&self) -> Value {
        match self {
            Control::Module(module) => module.given(),
            other => other.write(),
        }
    }

    fn view(&self) -> View {
        match self {
            Control::Named(name) => View::Plain(Value::text(name)),
            Control::Variant(variant) => self.labelled(variant.view()),
            Control::Module(module) => self.labelled(module.view()),
        }
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        let name = String::schema(&CONTROL, definitions);
        schema::any([name, Variant::schema(rule, definitions), Module::schema(rule, definitions)])
    }
}

impl Field for Sources {
    fn read(given: &Value, rule: &Rule, _: ReadContext) -> Result<Sources, FieldProblems> {
        let names = match given {
            Value::List(names) => names.iter().map(Value::as_text).collect::<Option<Vec<_>>>(),
            _ => given.as_text().map(|name| vec![name]),
        };
        let fix = "write source = \"tcp_mine.c\"";
        let Some(names) = names.filter(|names| !names.is_empty()) else {
            return wrong_type("a source is the name of a C file, or a list", fix);
        };
        if names.contains(&"") {
            return Err(one(Problem::new("bad-name", "the name of a source file is empty", fix)));
        }
        names.iter().try_for_each(|name| one_line(name)).map_err(one)?;
        if let Rule::Count(least, most) = *rule {
            counted(names.len(), least, most)?;
        }
        Ok(Sources(names.into_iter().map(str::to_string).collect()))
    }

    fn write(&self) -> Value {
        match self.0.as_slice() {
            [only] => Value::text(only),
            several => Value::List(several.iter().map(Value::text).collect()),
        }
    }

    fn view(&self) -> View {
        View::List(self.0.iter().map(|name| View::Plain(Value::text(name))).collect())
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        let name = schema::of_type("string");
        schema::any([name, Vec::<String>::schema(rule, definitions)])
    }
}

impl Field for Parameters {
    fn read(given: &Value, _: &Rule, at: ReadContext) -> Result<Parameters, FieldProblems> {
        let Value::Table(table) = given else {
            return wrong_type("a table is needed", format!("write tables by name: [{}.NAME]", at.name));
        };
        let mut problems = Vec::new();
        for (name, value) in table.iter() {
            let key = Value::text(name);
            if let Err(found) = String::read(&key, &Rule::Identifier, ReadContext { name: "[key]", ..at }) {
                problems.extend(below(name, below("[key]", found)));
            }
            if let Err(problem) = parameter(value) {
                problems.extend(below(name, one(problem)));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Parameters(table.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()))
    }

    fn write(&self) -> Value {
        Value::Table(self.0.iter().cloned().collect::<Table>())
    }

    fn schema(_: &Rule, _: &mut Definitions) -> Value {
        let kinds = schema::object([("type", schema::texts(&["integer", "boolean", "string"]))]);
        schema::object([("type", Value::text("object")), ("additionalProperties", kinds)])
    }
}

fn parameter(value: &Value) -> Result<(), Problem> {
    match value {
        Value::Text(text) if text.chars().count() > 1000 || text.contains('\0') => Err(Problem::new(
            "out-of-range",
            "a parameter has at most 1000 characters",
            "shorten it to 1000 characters",
        )),
        Value::Whole(number) if !(-(1 << 63)..1 << 64).contains(number) => {
            let message = "no type of parameter can hold this number";
            Err(Problem::new("out-of-range", message, "choose a smaller number"))
        }
        Value::Huge(_) => {
            let message = "no type of parameter can hold this number";
            Err(Problem::new("out-of-range", message, "choose a smaller number"))
        }
        Value::Text(_) | Value::Whole(_) | Value::Bool(_) => Ok(()),
        _ => {
            let fix = "write a whole number, true or false, or text, as the module declares it";
            Err(Problem::new("wrong-type", "a parameter of a module cannot have a value of this type", fix))
        }
    }
}
