//! Sets fields by dotted path, as `--set` and the axes of a study do.
//!
//! `path.rtt` is a field; `host.hz` all hosts; `hosts.h1.hz` one host; `flows.cc` every flow that has a congestion
//! control; `flows.0.cc` the first flow; `flows.NAME.cc` and `links.NAME.loss` select by name.

use crate::compile::Compiled;
use crate::files::Files;
use crate::placement::{flow_names, probe_names};
use crate::problem::Problem;
use crate::program::program_names;
use crate::scenario::Scenario;
use crate::table::Field;
use crate::text::DEEPEST;
use crate::value::{Table, Value};
use crate::words::{plain, printable, suggestion};
use std::collections::BTreeMap;

const LISTS: &[&str] = &["flows", "links", "probes", "programs", "routes"];
const LONGEST: usize = 200;

fn bad(message: String, fix: impl Into<String>, key: &str) -> Problem {
    let problem = Problem::new("bad-override", message, fix);
    if key.is_empty() { problem } else { problem.of(key) }
}

impl Scenario {
    /// The scenario with fields changed by dotted path, read again from what its file gave. Codes: those of reading,
    /// and bad-override.
    pub fn set(&self, changes: &[(String, Value)], files: &dyn Files) -> Result<(Scenario, Compiled), Problem> {
        let Value::Table(mut tables) = self.given() else { unreachable!("a scenario is a table") };
        if !self.flows.is_empty() && changes.iter().any(|(key, _)| key.split('.').next() == Some("flows")) {
            let flow = |control| Value::Table([("cc".to_string(), Value::Text(control))].into_iter().collect());
            let flows = || Value::List(self.flows.iter().map(|one| flow(one.control())).collect());
            tables.entry("flows", flows);
        }
        let links = self.links.iter().map(|link| link.called()).collect();
        let names = [
            ("flows", flow_names(&self.flows)?),
            ("links", links),
            ("probes", probe_names(&self.probes)?),
            ("programs", program_names(&self.programs)?),
        ];
        let names = names.into_iter().map(|(list, names)| (list.to_string(), names)).collect();
        Scenario::read(&Value::Table(apply(tables, changes, names)?), files)
    }
}

/// Applies `changes` to a scenario's `tables`. `names` has the names of each list's items.
///
/// Missing tables on the path are created. The result is checked when it is read. Codes: bad-override for a path to a
/// field that cannot exist, unknown-name for an unknown item.
fn apply(
    mut tables: Table,
    changes: &[(String, Value)],
    mut names: BTreeMap<String, Vec<String>>,
) -> Result<Table, Problem> {
    for (key, value) in changes {
        let steps: Vec<&str> = key.split('.').collect();
        if steps.contains(&"") {
            let message = format!("\"{}\" is not a field", plain(key, LONGEST));
            return Err(bad(message, "write it like path.rtt", key));
        }
        if steps.len() > DEEPEST {
            return Err(bad(format!("no field is {} levels deep", steps.len()), "write it like path.rtt", key));
        }
        let list = steps[0];
        if LISTS.contains(&list) && steps.len() > 1 {
            let known = names.get(list).map_or(&[][..], Vec::as_slice);
            set_in_list(&mut tables, key, &steps, value, known)?;
            continue;
        }
        set(&mut tables, key, &steps, value)?;
        if LISTS.contains(&list) {
            // The list itself is replaced: later changes select its new items by their names.
            let name = |item: &Value| item.as_table().and_then(|item| item.get("name")?.as_text()).unwrap_or("").into();
            let items = if let Value::List(items) = value { items.as_slice() } else { &[] };
            names.insert(list.into(), items.iter().map(name).collect());
        }
    }
    Ok(tables)
}

fn set_in_list(tables: &mut Table, key: &str, steps: &[&str], value: &Value, names: &[String]) -> Result<(), Problem> {
    let list = steps[0];
    let last: String = steps[steps.len() - 1].chars().take(20).collect();
    let given = tables.entry(list, || Value::Null);
    let is_nothing = match given {
        Value::Null | Value::Bool(false) | Value::Whole(0) => true,
        Value::List(items) => items.is_empty(),
        Value::Table(table) => table.is_empty(),
        Value::Text(text) => text.is_empty(),
        Value::Real(number) => *number == 0.0,
        _ => false,
    };
    if is_nothing {
        let fix = format!("add [[{list}]] to the scenario first");
        return Err(bad(format!("there are no {list} to set"), fix, key));
    }
    let Value::List(items) = given else {
        let fix = format!("give it as a list of tables, or set single fields, like {list}.0.{last}");
        return Err(bad(format!("{list} is no list of tables"), fix, key));
    };
    let second = steps[1];
    let is_place = second.len() < 10 && second.bytes().all(|byte| byte.is_ascii_digit());
    let (chosen, rest): (Vec<usize>, &[&str]) = if is_place {
        let index: usize = second.parse().expect("digits are a number");
        if index >= items.len() {
            let message = format!("the scenario has {} of these {list}, counted from 0", items.len());
            let last = items.len() - 1;
            return Err(bad(message, if last == 0 { "choose 0".into() } else { format!("choose 0 … {last}") }, key));
        }
        (vec![index], &steps[2..])
    } else if let Some(index) = names.iter().position(|name| name == second) {
        (vec![index], &steps[2..])
    } else if steps.len() == 2 || ["forward", "backward", "replace", "source"].contains(&second) {
        let have_control = |index: &usize| !is_datagrams(&items[*index]);
        let all = 0..items.len();
        match second == "cc" && all.clone().any(|index| have_control(&index)) {
            true => (all.filter(have_control).collect(), &steps[1..]),
            false => (all.collect(), &steps[1..]),
        }
    } else {
        let message = format!("none of the {list} is named \"{}\"", printable(second));
        let fix = suggestion(second, names.iter().map(String::as_str));
        return Err(Problem::new("unknown-name", message, fix).of(key));
    };
    if rest.is_empty() {
        let shown = plain(key, LONGEST);
        let fix = format!("name a field of it, like {shown}.{}", if list == "links" { "loss" } else { "start" });
        return Err(bad(format!("\"{shown}\" is a whole table"), fix, key));
    }
    for index in chosen {
        match &mut items[index] {
            Value::Table(item) => set(item, key, rest, value)?,
            _ => return Err(goes_on(key)),
        }
    }
    Ok(())
}

/// Whether a flow sends datagrams, so that its congestion control cannot be changed.
fn is_datagrams(flow: &Value) -> bool {
    let source = flow.as_table().and_then(|flow| flow.get("source")?.as_table());
    source.and_then(|source| source.get("kind")?.as_text()) == Some("udp")
}

fn goes_on(key: &str) -> Problem {
    let message = format!("\"{}\" names a field below one that is not a table", plain(key, LONGEST));
    bad(message, "write it like path.rtt", key)
}

fn set(table: &mut Table, key: &str, steps: &[&str], value: &Value) -> Result<(), Problem> {
    let [step, rest @ ..] = steps else { unreachable!("a path has a step") };
    if rest.is_empty() {
        table.set(step, value.clone());
        return Ok(());
    }
    if let (&"cc" | &"queue", Some(Value::Text(name))) = (step, table.get(step)) {
        // A plain name is replaced by a module or extended by a variant. A tail-drop queue's limit does not carry over
        // to another kind of queue.
        let mut made = Table::new();
        if *step == "cc" && rest[rest.len() - 1] == "variant" {
            made.push("name", Value::text(name.clone()));
        }
        table.set(step, Value::Table(made));
    }
    match table.entry(step, || Value::Table(Table::new())) {
        Value::Table(inner) => set(inner, key, rest, value),
        _ => Err(goes_on(key)),
    }
}
