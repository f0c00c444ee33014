//! What a scenario can name, as data for programs, pages and documentation: congestion controls and kinds of queues.

use crate::queue::{Discipline, RECORDS, Record};
use crate::table::{Declared, Rule};
use crate::units::Unit;
use crate::value::{Table, Value};
use sawtooth_tcp::cc::{self, Algorithm};

/// The records: `controls` by Linux's name, and `queues` by tc's.
pub fn registry() -> Value {
    table([
        ("controls", Value::List(cc::RECORDS.iter().map(control).collect())),
        ("queues", Value::List(Discipline::declared().into_iter().map(|(kind, fields)| queue(kind, fields)).collect())),
    ])
}

fn control(one: &cc::Record) -> Value {
    let variant = |algorithm: Algorithm| algorithm.variant().map_or(Value::Null, Value::text);
    let names = |which: fn(&Algorithm) -> bool| Value::List(one.simulated().filter(which).map(variant).collect());
    table([
        ("name", Value::text(one.name)),
        ("label", Value::text(one.shown())),
        ("title", Value::text(one.title)),
        ("law", Value::text(one.law)),
        ("source", Value::text(one.source)),
        ("parameters", Value::text(one.parameters)),
        ("colour", one.colour.map_or(Value::Null, Value::text)),
        ("patched", Value::Bool(one.patched)),
        // What the simulator has, and of these what depends on ECN marks: null for Linux's version, else the variant.
        ("simulated", names(|_| true)),
        ("by_marks", names(|algorithm| algorithm.heeds_each_mark())),
    ])
}

fn queue(kind: &'static str, fields: &[Declared]) -> Value {
    let Record { label, limit: (limit, words), marks_above, needs, .. } = record(kind);
    let declared = fields.iter().find(|field| field.name == *limit);
    let counts = match declared.map(|field| field.rule) {
        Some(Rule::In([Unit::Packets, ..], _)) => Value::text("packets"),
        Some(Rule::In([Unit::Bytes, ..], _)) => Value::text("bytes"),
        _ => Value::Null,
    };
    let absent = declared.and_then(|field| field.description.split_once("absent: ")).map(|(_, what)| what);
    let needs = needs.iter().map(|(name, value)| (*name, Value::text(*value)));
    let usual = fields.iter().filter(|field| field.name != "kind").map(|field| (field.name, field.otherwise.value()));
    table([
        ("kind", Value::text(kind)),
        ("label", Value::text(*label)),
        (
            "limit",
            table([
                ("field", Value::text(*limit)),
                ("words", Value::text(*words)),
                ("counts", counts),
                ("absent", absent.map_or(Value::Null, |what| Value::Text(what.replace('`', "")))),
            ]),
        ),
        ("marks_above", marks_above.map_or(Value::Null, Value::text)),
        ("needs", table(needs)),
        ("fields", table(usual)),
    ])
}

/// The record of a kind; a test finds a kind without one.
fn record(kind: &str) -> &'static Record {
    RECORDS.iter().find(|one| one.kind == kind).unwrap_or(&RECORDS[0])
}

fn table(pairs: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::Table(pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect::<Table>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_records_match_declared_fields() {
        let declared = Discipline::declared();
        let [recorded, known]: [Vec<&str>; 2] =
            [RECORDS.iter().map(|one| one.kind).collect(), declared.iter().map(|one| one.0).collect()];
        assert_eq!(recorded, known);
        for (kind, fields) in declared {
            let Record { limit, marks_above, needs, .. } = record(kind);
            for name in [limit.0].into_iter().chain(*marks_above).chain(needs.iter().map(|need| need.0)) {
                assert!(fields.iter().any(|field| field.name == name), "{kind} has no {name}");
            }
        }
    }
}
