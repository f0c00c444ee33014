//! JSON Schema (2020-12) of a scenario file, from the declared tables.

use crate::scenario::Scenario;
use crate::table::{AbsentValue, Declare, Declared, Field, Rule, usual};
use crate::units::Quantity;
use crate::value::{Table, Value};

/// A number with a unit. The units depend on the quantity.
const QUANTITY: &str = r"^\s*[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,2})?\s*\S.*$";

/// Tables and quantities by name, to which fields refer.
#[derive(Default)]
pub struct Definitions(Table);

/// A JSON object.
pub(crate) fn object<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    Value::Table(pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

pub(crate) fn texts(texts: &[&str]) -> Value {
    Value::List(texts.iter().map(|text| Value::text(*text)).collect())
}

pub(crate) fn of_type(name: &str) -> Value {
    object([("type", Value::text(name))])
}

pub(crate) fn one_of(words: &[&str]) -> Value {
    object([("enum", texts(words))])
}

pub(crate) fn pattern(pattern: &str) -> Value {
    object([("type", Value::text("string")), ("pattern", Value::text(pattern))])
}

/// A schema that accepts each of the choices.
pub(crate) fn any<const N: usize>(choices: [Value; N]) -> Value {
    object([("anyOf", Value::List(choices.into()))])
}

pub(crate) fn list(items: Value, least: usize, most: Option<usize>) -> Value {
    let count = |count: usize| Value::Whole(count as i128);
    let mut schema = vec![("type".to_string(), Value::text("array")), ("items".to_string(), items)];
    if least > 0 {
        schema.push(("minItems".into(), count(least)));
    }
    schema.extend(most.map(|most| ("maxItems".to_string(), count(most))));
    Value::Table(schema.into_iter().collect())
}

fn reference(name: &str) -> Value {
    object([("$ref", Value::text(format!("#/$defs/{name}")))])
}

impl Definitions {
    /// A reference to a quantity.
    pub(crate) fn quantity<A: Quantity>(&mut self) -> Value {
        if self.0.get(A::NAME).is_none() {
            self.0.push(
                A::NAME,
                object([
                    ("type", Value::text("string")),
                    ("pattern", Value::text(QUANTITY)),
                    ("description", Value::text(A::MEANING)),
                    ("examples", texts(A::EXAMPLES)),
                ]),
            );
        }
        reference(A::NAME)
    }

    /// A reference to a table. `properties`: the schemas of its fields.
    pub(crate) fn table<A: Declare>(&mut self, properties: impl FnOnce(&mut Definitions) -> Vec<Value>) -> Value {
        if self.0.get(A::NAME).is_none() {
            // Add the name first, because the table's fields may refer to the same table.
            self.0.push(A::NAME, Value::Null);
            let schema = table::<A>(properties(self));
            self.0.set(A::NAME, schema);
        }
        reference(A::NAME)
    }

    /// Sets the `kind` of a table.
    pub(crate) fn is_of_kind(&mut self, name: &str, kind: &str) {
        let Value::Table(schema) = self.0.entry(name, || Value::Null) else { return };
        let Value::Table(properties) = schema.entry("properties", || Value::Null) else { return };
        if let Value::Table(property) = properties.entry("kind", || Value::Null) {
            property.set("const", Value::text(kind));
        }
    }
}

fn table<A: Declare>(properties: Vec<Value>) -> Value {
    let needed =
        A::FIELDS.iter().filter(|field| matches!(field.otherwise, AbsentValue::Needed)).map(|field| field.name);
    let named = A::FIELDS.iter().map(|field| field.name.to_string()).zip(properties);
    object([
        ("type", Value::text("object")),
        ("description", Value::text(A::ABOUT.trim().replace("\n ", "\n"))),
        ("properties", Value::Table(named.collect())),
        ("required", Value::List(needed.map(Value::text).collect())),
        ("additionalProperties", Value::Bool(false)),
    ])
}

/// The schema of a field.
pub(crate) fn property<A: Field>(declared: &Declared, definitions: &mut Definitions) -> Value {
    let Value::Table(mut schema) = A::schema(&declared.rule, definitions) else { unreachable!("a schema is a table") };
    schema.push("description", Value::text(declared.description));
    if let Rule::Between(low, high) = declared.rule {
        schema.push("limits", Value::Text(format!("{low} … {high}")));
    }
    if let Some(usual) = usual::<A>(Some(declared))
        && !matches!(declared.otherwise, AbsentValue::Nothing)
    {
        schema.push("default", usual.write());
    }
    Value::Table(schema)
}

impl Scenario {
    /// JSON Schema of a scenario file. A property's `limits` are its quantity's range, as a user writes it.
    pub fn schema() -> Value {
        let mut definitions = Definitions::default();
        <Scenario as Field>::schema(&Rule::Any, &mut definitions);
        let Value::Table(scenario) = definitions.0.entry(Scenario::NAME, || Value::Null).clone() else {
            unreachable!("a scenario is a table")
        };
        definitions.0.remove(Scenario::NAME);
        let mut schema = Table::new();
        schema.push("$schema", Value::text("https://json-schema.org/draft/2020-12/schema"));
        schema.push("title", Value::text(Scenario::NAME));
        for (name, value) in scenario.iter() {
            schema.push(name, value.clone());
        }
        schema.push("$defs", Value::Table(definitions.0));
        Value::Table(schema)
    }
}
