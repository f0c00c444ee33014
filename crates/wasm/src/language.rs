//! The language of scenarios, as the command line has it: what a page asks is read, refused and compiled by the same code.

use crate::text;
use sawtooth_scenario::{
    Discipline, Loss, NoFiles, Problem, Quantity, Queue, Rate, Scenario, Size, Span, Table, Unit, VARIANTS, Value,
    parse_toml,
};
use sawtooth_tcp::cc::Algorithm;

/// Answers with a text and true, or with what is wrong and false.
fn answered(found: Result<String, Problem>) -> bool {
    let is_fine = found.is_ok();
    text::tell(found.unwrap_or_else(told));
    is_fine
}

/// A problem as JSON.
fn told(Problem { code, message, fix, field, .. }: Problem) -> String {
    let field = field.map_or(Value::Null, Value::Text);
    let parts =
        [("code", Value::text(code)), ("message", Value::Text(message)), ("fix", Value::Text(fix)), ("field", field)];
    Value::Table(parts.into_iter().map(|(name, value)| (name.to_string(), value)).collect()).to_json()
}

/// Compiles the scenario whose tables were given as JSON, for the engine `sim`: its JSON, as `simulation_open` takes it.
#[unsafe(no_mangle)]
extern "C" fn scenario_compile() -> bool {
    answered(compiled(&text::given()))
}

fn compiled(json: &str) -> Result<String, Problem> {
    let refused = |error: serde_json::Error| Problem::new("internal", error.to_string(), "report it with the scenario");
    // Half of a letter is all that a page's JSON can have wrong.
    let broken = |error: serde_json::Error| {
        let message = format!("a text in it is no text: {error}");
        Problem::new("wrong-type", message, "leave out letters of which only a half is there")
    };
    let tables: Value = serde_json::from_str(json).map_err(broken)?;
    let (scenario, compiled) = Scenario::read(&tables, &NoFiles)?;
    if let Some(flow) = compiled.modules.iter().position(Option::is_some) {
        let message = "the page has controls by name, and their variants";
        return Err(Problem::new("unsupported", message, "run it with the command line").of(format!("flows.{flow}.cc")));
    }
    compiled.check_simulated(&scenario.topology, &Algorithm::names().collect::<Vec<_>>())?;
    serde_json::to_string(&compiled.scenario).map_err(refused)
}

/// Reads the tables of a TOML file, as JSON.
#[unsafe(no_mangle)]
extern "C" fn toml_read() -> bool {
    answered(parse_toml(&text::given()).map(|tables| Value::Table(tables).to_json()))
}

/// Reads a quantity: a rate, a span, a size, a loss or a queue, by number; its amount in its finest unit, and that of a queue.
#[unsafe(no_mangle)]
extern "C" fn quantity_read(kind: u32) -> bool {
    let given = Value::Text(text::given());
    fn amount<A: Quantity>(read: A) -> String {
        read.amount().to_string()
    }
    answered(match kind {
        0 => Rate::parse(&given).map(amount),
        1 => Span::parse(&given).map(amount),
        2 => Size::parse(&given).map(amount),
        3 => Loss::parse(&given).map(amount),
        _ => Queue::parse(&given).map(|queue| format!("{} {}", queue.amount, queue.unit.name())),
    })
}

/// Prints a quantity; a queue's amount is in billionths of a bandwidth-delay product.
#[unsafe(no_mangle)]
extern "C" fn quantity_print(kind: u32, amount: u64) {
    text::tell(match kind {
        0 => Rate { bps: amount }.to_string(),
        1 => Span { ns: amount }.to_string(),
        2 => Size { bytes: amount }.to_string(),
        3 => Loss { ppb: amount }.to_string(),
        _ => Queue { unit: Unit::Bdp, amount }.to_string(),
    });
}

/// Answers with the kinds of queues, and what each field of them is where it is absent, as JSON; and with the variants of congestion
/// controls.
#[unsafe(no_mangle)]
extern "C" fn language_tables() {
    let pair = |name: &str, value| (name.to_string(), value);
    let queues = Discipline::declared().into_iter().map(|(kind, fields)| {
        let fields = fields.iter().filter(|field| field.name != "kind");
        pair(kind, Value::Table(fields.map(|field| pair(field.name, field.otherwise.value())).collect()))
    });
    let variants = VARIANTS
        .iter()
        .map(|(control, known)| pair(control, Value::List(known.iter().map(|one| Value::text(*one)).collect())));
    let tables = [pair("queues", Value::Table(queues.collect())), pair("variants", Value::Table(variants.collect()))];
    text::tell(Value::Table(tables.into_iter().collect::<Table>()).to_json());
}
