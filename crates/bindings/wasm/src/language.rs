//! The scenario language for pages: the same code as for the command line reads, checks and compiles scenarios.

use crate::text;
use sawtooth_scenario::{
    Loss, NoFiles, Problem, Quantity, Queue, Rate, Scenario, Size, Span, Unit, Value, parse_toml, registry,
};

/// Answers with a text and returns true, or answers with the problem and returns false.
fn answer_with(found: Result<String, Problem>) -> bool {
    let is_fine = found.is_ok();
    text::tell(found.unwrap_or_else(problem_json));
    is_fine
}

/// A problem as JSON.
fn problem_json(Problem { code, message, fix, field, .. }: Problem) -> String {
    let field = field.map_or(Value::Null, Value::Text);
    let parts =
        [("code", Value::text(code)), ("message", Value::Text(message)), ("fix", Value::Text(fix)), ("field", field)];
    Value::Table(parts.into_iter().map(|(name, value)| (name.to_string(), value)).collect()).to_json()
}

/// Compiles a scenario, given as JSON tables, for the engine `sim`. Answers with the JSON that `simulation_open` takes.
#[unsafe(no_mangle)]
extern "C" fn scenario_compile() -> bool {
    answer_with(compiled(&text::given()))
}

fn compiled(json: &str) -> Result<String, Problem> {
    let refused = |error: serde_json::Error| Problem::new("internal", error.to_string(), "report it with the scenario");
    // The only possible error in a page's JSON is an unpaired surrogate.
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
    compiled.check_simulated(&scenario.topology)?;
    serde_json::to_string(&compiled.scenario).map_err(refused)
}

/// Reads a TOML file. Answers with its tables as JSON.
#[unsafe(no_mangle)]
extern "C" fn toml_read() -> bool {
    answer_with(parse_toml(&text::given()).map(|tables| Value::Table(tables).to_json()))
}

/// Reads a quantity. `kind` is the number of a rate, span, size, loss or queue. Answers with the amount in its smallest
/// unit, and with a queue's unit.
#[unsafe(no_mangle)]
extern "C" fn quantity_read(kind: u32) -> bool {
    let given = Value::Text(text::given());
    fn amount<A: Quantity>(read: A) -> String {
        read.amount().to_string()
    }
    answer_with(match kind {
        0 => Rate::parse(&given).map(amount),
        1 => Span::parse(&given).map(amount),
        2 => Size::parse(&given).map(amount),
        3 => Loss::parse(&given).map(amount),
        _ => Queue::parse(&given).map(|queue| format!("{} {}", queue.amount, queue.unit.name())),
    })
}

/// Formats a quantity. A queue's amount is in billionths of a bandwidth-delay product.
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

/// Answers with the records of congestion controls and of kinds of queues, as JSON.
#[unsafe(no_mangle)]
extern "C" fn language_registry() {
    text::tell(registry().to_json());
}
