//! A scenario written out: every field that has a value, and a digest.

use crate::control::Control;
use crate::files::Files;
use crate::flow::Flow;
use crate::scenario::Scenario;
use crate::table::Field;
use crate::value::{Table, Value};
use sha2::{Digest, Sha256};

impl Scenario {
    /// Every field that has a value, including defaults; quantities in their one spelling.
    pub fn to_table(&self) -> Table {
        let Value::Table(mut tables) = self.write() else { unreachable!("a scenario is a table") };
        tables.set("hosts", self.hosts.given());
        tables.set("flows", Value::List(self.flows.iter().map(Flow::to_value).collect()));
        if let Value::List(links) = tables.entry("links", || Value::Null) {
            for link in links {
                let Value::Table(link) = link else { continue };
                for way in ["forward", "backward"] {
                    if link.get(way) == Some(&Value::Table(Table::new())) {
                        link.remove(way);
                    }
                }
            }
        }
        let own = match self.own_table() {
            Some("path") => self.path.clone().unwrap_or_default().write(),
            Some("chain") => self.chain.clone().unwrap_or_default().write(),
            Some("dumbbell") => self.dumbbell.clone().unwrap_or_default().write(),
            Some("parking-lot") => self.parking_lot.clone().unwrap_or_default().write(),
            Some("home") => self.home.clone().unwrap_or_default().write(),
            _ => Value::Null,
        };
        if let (Some(name), false) = (self.own_table(), own == Value::Null) {
            tables.set(name, own);
        }
        let has_value = |name: &str, value: &Value| match value {
            Value::Table(table) => !table.is_empty(),
            Value::List(list) => !list.is_empty() || name == "flows",
            _ => true,
        };
        let fields = tables.iter().filter(|(name, value)| has_value(name, value));
        fields.map(|(name, value)| (name.to_string(), value.clone())).collect()
    }

    /// SHA-256 of the canonical JSON of `to_table`, as 64 hexadecimal digits. Equal scenarios have equal digests. Files
    /// are included by their present content, not by their paths.
    pub fn digest(&self, files: &dyn Files) -> String {
        let mut tables = self.to_table();
        if let Some(Value::List(flows)) = inner(&mut tables, "flows") {
            for (flow, table) in self.flows.iter().zip(flows) {
                let Value::Table(table) = table else { continue };
                if let (Control::Module(module), Some(Value::Table(cc))) = (&flow.cc, inner(table, "cc")) {
                    cc.set("source", Value::Text(files.digest_of_sources(&module.source.0)));
                }
                if let Some(Value::Table(source)) = inner(table, "source") {
                    digest_files(source, &["times", "file"], files);
                    if let Some(Value::Table(sizes)) = inner(source, "sizes") {
                        digest_files(sizes, &["times", "file"], files);
                    }
                }
            }
        }
        if let Some(Value::Table(path)) = inner(&mut tables, "path") {
            digest_link_files(path, files);
        }
        if let Some(Value::List(links)) = inner(&mut tables, "links") {
            for link in links {
                if let Value::Table(link) = link {
                    digest_link_files(link, files);
                }
            }
        }
        let mut text = String::new();
        canonical(&Value::Table(tables), &mut text);
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Flow {
    /// Every field that has a value. A flow of datagrams has no congestion control.
    pub(crate) fn to_value(&self) -> Value {
        let mut value = self.write();
        if let (true, Value::Table(table)) = (self.is_datagrams(), &mut value) {
            table.remove("cc");
        }
        value
    }
}

fn inner<'a>(table: &'a mut Table, name: &str) -> Option<&'a mut Value> {
    if table.get(name).is_some() { Some(table.entry(name, || Value::Null)) } else { None }
}

/// Replaces the files that these fields name by digests of their content.
fn digest_files(table: &mut Table, fields: &[&str], files: &dyn Files) {
    for field in fields {
        if let Some(Value::Text(name)) = inner(table, field) {
            *name = files.digest_of(name);
        }
    }
}

/// The same for a link and its directions.
fn digest_link_files(link: &mut Table, files: &dyn Files) {
    digest_files(link, &["trace"], files);
    if let Some(Value::Table(jitter)) = inner(link, "jitter") {
        digest_files(jitter, &["table"], files);
    }
    for way in ["forward", "backward"] {
        if let Some(Value::Table(direction)) = inner(link, way) {
            digest_link_files(direction, files);
        }
    }
}

/// JSON without spaces, fields sorted by name, ASCII only.
fn canonical(value: &Value, json: &mut String) {
    match value {
        Value::List(list) => {
            json.push('[');
            for (index, one) in list.iter().enumerate() {
                json.push_str(if index == 0 { "" } else { "," });
                canonical(one, json);
            }
            json.push(']');
        }
        Value::Table(table) => {
            let mut pairs: Vec<_> = table.iter().collect();
            pairs.sort_by_key(|(name, _)| *name);
            json.push('{');
            for (index, (name, one)) in pairs.into_iter().enumerate() {
                json.push_str(if index == 0 { "" } else { "," });
                quoted(name, json);
                json.push(':');
                canonical(one, json);
            }
            json.push('}');
        }
        Value::Text(text) => quoted(text, json),
        other => json.push_str(&other.to_json()),
    }
}

fn quoted(text: &str, json: &mut String) {
    for letter in Value::text(text).to_json().chars() {
        if letter.is_ascii() {
            json.push(letter);
            continue;
        }
        let mut halves = [0; 2];
        letter.encode_utf16(&mut halves).iter().for_each(|half| json.push_str(&format!("\\u{half:04x}")));
    }
}
