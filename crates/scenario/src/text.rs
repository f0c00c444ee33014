//! Reads TOML from any source. Every failure has a plain message with line and column.

use crate::problem::Problem;
use crate::value::{Table, Value};
use toml::de::{DeArray, DeInteger, DeTable, DeValue};

/// Maximum nesting of tables and brackets.
pub const DEEPEST: usize = 16;

/// The tables of a text. Code not-toml, also for nesting deeper than 16.
pub fn parse_toml(text: &str) -> Result<Table, Problem> {
    let parsed = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(String::new(), |span| position(text, span.start));
        let reason = error.message().lines().next().unwrap_or("it cannot be read");
        let fix = match reason.starts_with("duplicate key") {
            true => "keep one of them; tables of a list have two brackets: [[flows]]",
            false => "text is quoted: rtt = \"20 ms\"",
        };
        let reason = if reason.starts_with("duplicate key") { "a key or table is given twice" } else { reason };
        Problem::new("not-toml", format!("it is not TOML: {reason}{at}"), fix)
    })?;
    table(parsed.get_ref(), 1)
}

/// A position in words: " (at line 3, column 5)".
fn position(text: &str, byte: usize) -> String {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    format!(" (at line {line}, column {column})")
}

fn deep(depth: usize) -> Result<(), Problem> {
    if depth <= DEEPEST {
        return Ok(());
    }
    Err(Problem::new(
        "not-toml",
        format!("it is nested more than {DEEPEST} deep"),
        "write fewer tables inside each other",
    ))
}

fn table(given: &DeTable, depth: usize) -> Result<Table, Problem> {
    deep(depth)?;
    let mut pairs: Vec<_> = given.iter().collect();
    // In the order of the file.
    pairs.sort_by_key(|(name, _)| name.span().start);
    let read = |(name, one): (&toml::Spanned<_>, &toml::Spanned<DeValue>)| {
        let name: &std::borrow::Cow<str> = name.get_ref();
        Ok((name.to_string(), value(one.get_ref(), depth)?))
    };
    pairs.into_iter().map(read).collect::<Result<Table, Problem>>()
}

fn list(given: &DeArray, depth: usize) -> Result<Value, Problem> {
    deep(depth)?;
    let all: Result<_, Problem> = given.iter().map(|one| value(one.get_ref(), depth)).collect();
    all.map(Value::List)
}

fn value(given: &DeValue, depth: usize) -> Result<Value, Problem> {
    Ok(match given {
        DeValue::String(text) => Value::text(text.as_ref()),
        DeValue::Integer(number) => whole(number),
        DeValue::Float(number) => number.as_str().parse().map_or(Value::Null, Value::Real),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(time) => {
            let kind = match (time.date, time.time) {
                (Some(_), None) => "date",
                (None, _) => "time",
                _ => "datetime",
            };
            Value::Other(kind.into(), time.to_string())
        }
        DeValue::Array(given) => list(given, depth + 1)?,
        DeValue::Table(given) => Value::Table(table(given, depth + 1)?),
    })
}

fn whole(number: &DeInteger) -> Value {
    i128::from_str_radix(number.as_str(), number.radix())
        .map_or_else(|_| Value::Huge(number.as_str().into()), Value::Whole)
}
