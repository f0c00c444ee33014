//! The values of a file, TOML or JSON, before they are interpreted; with numbers of any size.

use crate::python;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A value of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Whole(i128),
    /// An integer that does not fit `Whole`, as text.
    Huge(String),
    Real(f64),
    Text(String),
    /// A date, a time, or another type that few fields accept: Python's name of the type, and the text.
    Other(String, String),
    List(Vec<Value>),
    Table(Table),
}

/// Values by name, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(Vec<(String, Value)>);

impl Table {
    pub fn new() -> Table {
        Table::default()
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The value of this name; it is created if absent.
    pub fn entry(&mut self, name: &str, otherwise: impl FnOnce() -> Value) -> &mut Value {
        let index = self.0.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.0.push((name.into(), otherwise()));
            self.0.len() - 1
        });
        &mut self.0[index].1
    }

    /// Sets the value of `name`, at its old position if it exists.
    pub fn set(&mut self, name: &str, value: Value) {
        *self.entry(name, || Value::Null) = value;
    }

    /// Adds a value. The name must be new.
    pub fn push(&mut self, name: impl Into<String>, value: Value) {
        self.0.push((name.into(), value));
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, Value)> for Table {
    /// If a name occurs twice, the later value is used.
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(pairs: I) -> Table {
        let mut known = std::collections::BTreeMap::new();
        let mut table: Vec<(String, Value)> = Vec::new();
        for (name, value) in pairs {
            let index = *known.entry(name.clone()).or_insert(table.len());
            if index < table.len() {
                table[index].1 = value;
            } else {
                table.push((name, value));
            }
        }
        Table(table)
    }
}

impl Value {
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    pub fn as_table(&self) -> Option<&Table> {
        if let Value::Table(table) = self { Some(table) } else { None }
    }

    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// Python's name of its type, which messages use.
    pub fn type_name(&self) -> &str {
        match self {
            Value::Null => "NoneType",
            Value::Bool(_) => "bool",
            Value::Whole(_) | Value::Huge(_) => "int",
            Value::Real(_) => "float",
            Value::Text(_) => "str",
            Value::Other(kind, _) => kind,
            Value::List(_) => "list",
            Value::Table(_) => "dict",
        }
    }

    /// As JSON, in the order of the tables.
    pub fn to_json(&self) -> String {
        let mut json = String::new();
        self.write(&mut json);
        json
    }

    fn write(&self, json: &mut String) {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self {
            Value::Null => json.push_str("null"),
            Value::Huge(number) => json.push_str(number),
            Value::Bool(flag) => json.push_str(if *flag { "true" } else { "false" }),
            Value::Whole(number) => json.push_str(&number.to_string()),
            Value::Real(number) => json.push_str(&python::float(*number)),
            Value::Text(text) | Value::Other(_, text) => json.push_str(&quoted(text)),
            Value::List(list) => {
                json.push('[');
                for (at, one) in list.iter().enumerate() {
                    json.push_str(if at == 0 { "" } else { ", " });
                    one.write(json);
                }
                json.push(']');
            }
            Value::Table(table) => {
                json.push('{');
                for (at, (name, one)) in table.iter().enumerate() {
                    json.push_str(if at == 0 { "" } else { ", " });
                    json.push_str(&quoted(name));
                    json.push_str(": ");
                    one.write(json);
                }
                json.push('}');
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Value;

            fn expecting(&self, to: &mut fmt::Formatter) -> fmt::Result {
                to.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Value, E> {
                Ok(Value::Null)
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
                Ok(Value::Bool(flag))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
                Ok(Value::Whole(number.into()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
                Ok(Value::Whole(number.into()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
                Ok(Value::Real(number))
            }

            fn visit_str<E>(self, text: &str) -> Result<Value, E> {
                Ok(Value::text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
                let mut found = Vec::new();
                while let Some(one) = list.next_element()? {
                    found.push(one);
                }
                Ok(Value::List(found))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
                let mut found = Vec::new();
                while let Some(pair) = map.next_entry::<String, Value>()? {
                    found.push(pair);
                }
                Ok(Value::Table(found.into_iter().collect()))
            }
        }
        from.deserialize_any(Any)
    }
}
