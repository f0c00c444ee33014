//! The scenario: the input of an engine. All fields and quantities are checked when they are read.

use crate::compile::{Compiled, compile};
use crate::control::Control;
use crate::fields::wrong_type;
use crate::files::{Files, NoFiles};
use crate::flow::{Flow, Probe};
use crate::kinds::{Date, Version};
use crate::parts::{Card, Chain, Dumbbell, Home, Host, Link, MAX_SAMPLES, NAME, ParkingLot, Path, Route};
use crate::problem::{FieldProblems, Problem, below, first};
use crate::program::Program;
use crate::schema::{self, Definitions};
use crate::table::{Declare, Field, Given, ReadContext, Rule, table};
use crate::units::{Loss, Span};
use crate::value::{Table, Value};
use crate::view::View;
use std::collections::BTreeMap;

const LONG: Rule = Rule::Between("1 ms", "30 d");

/// Tables by name, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<A> {
    items: Vec<(String, A)>,
    places: BTreeMap<String, usize>,
}

impl<A> Named<A> {
    pub fn get(&self, name: &str) -> Option<&A> {
        self.places.get(name).map(|place| &self.items[*place].1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &A)> {
        self.items.iter().map(|(name, one)| (name.as_str(), one))
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl<A: Field> Field for Named<A> {
    fn read(given: &Value, _: &Rule, at: ReadContext) -> Result<Named<A>, FieldProblems> {
        let Value::Table(table) = given else {
            return wrong_type("a table is needed", format!("write tables by name: [{}.NAME]", at.name));
        };
        let (mut items, mut problems) = (Vec::with_capacity(table.len()), Vec::new());
        for (name, one) in table.iter() {
            if let Err(found) = String::read(&Value::text(name), &NAME, ReadContext { name: "[key]", ..at }) {
                problems.extend(below(name, below("[key]", found)));
            }
            match A::read(one, &Rule::Any, ReadContext { name, ..at }) {
                Ok(one) => items.push((name.to_string(), one)),
                Err(found) => problems.extend(below(name, found)),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let places = items.iter().enumerate().map(|(place, (name, _))| (name.clone(), place)).collect();
        Ok(Named { items, places })
    }

    fn write(&self) -> Value {
        Value::Table(self.items.iter().map(|(name, one)| (name.clone(), one.write())).collect::<Table>())
    }

    fn given(&self) -> Value {
        Value::Table(self.items.iter().map(|(name, one)| (name.clone(), one.given())).collect::<Table>())
    }

    fn view(&self) -> View {
        View::Named(self.items.iter().map(|(name, one)| (name.clone(), one.view())).collect())
    }

    fn schema(rule: &Rule, definitions: &mut Definitions) -> Value {
        let names = String::schema(&NAME, definitions);
        let tables = A::schema(rule, definitions);
        schema::object([("type", Value::text("object")), ("propertyNames", names), ("additionalProperties", tables)])
    }
}

table! {
    /// One experiment: a network, its flows and how long to watch them.
    Scenario {
        name: String, Line, Text("scenario"), "name of the results; absent: the file's name without .toml";
        topology: String, OneOf(TOPOLOGIES), Text("path"),
            "path, chain, chain-asymmetric, dumbbell, parking-lot, home or custom";
        duration: Span, LONG, Text("60 s"), "length of the run";
        warmup: Span, Any, Text("0 s"),
            "first part of the run that the statistics discard; the tables keep it. 0 s: slow start counts";
        interval: Span, LONG, Text("1 s"), "sampling interval of the tables";
        seed: u64, Within(0, LARGEST_SEED), Whole(1), "seed for every random generator";
        traffic: String, OneOf(&["iperf3", "native"]), Text("iperf3"),
            "traffic source on the engines kernel and netns: iperf3, or sawtooth's lighter source (native); other engines ignore it";
        ip: Option<Version>, Any, Nothing, "IP version; 6 makes every frame 20 bytes longer; absent: 4";
        date: Option<Date>, Any, Nothing,
            "what the clock of programs shows when the run starts, in UTC, on the engine kernel; the simulator's clock does not change; absent: 2026-01-01";
        queue_delays: bool, Any, Flag(false),
            "also record percentiles of the queue delay of tail-drop queues, on the engine sim; no other result changes, and runs take about 2% longer. Other engines ignore it";
        fast: Option<Loss>, Between("0%", "10%"), Nothing,
            "on the engine sim, a run that is steady repeats what it measured until its end, once half of the 95% interval of each flow's goodput is at most this share; 0%: packets that repeat others exactly are skipped, and no result changes. Other engines ignore it. absent: every packet is simulated";
        path: Option<Path>, Any, Nothing, "network of topology \"path\"";
        chain: Option<Chain>, Any, Nothing, "network of topologies \"chain\" and \"chain-asymmetric\"";
        dumbbell: Option<Dumbbell>, Any, Nothing, "network of topology \"dumbbell\"";
        "parking-lot" parking_lot: Option<ParkingLot>, Any, Nothing, "network of topology \"parking-lot\"";
        home: Option<Home>, Any, Nothing, "network of topology \"home\"";
        host: Host, Any, EmptyTable, "settings of every host";
        hosts: Named<Host>, Any, EmptyTable, "settings of single hosts; in a custom topology, all hosts";
        cards: Named<Card>, Any, EmptyTable, "network cards of topology \"custom\", by host";
        links: Vec<Link>, Any, EmptyList, "links of topology \"custom\"";
        routes: Vec<Route>, Any, EmptyList, "routes of topology \"custom\"; absent: fewest hops";
        flows: Vec<Flow>, Any, OneTable, "flows; absent: one cubic flow from end to end, or none if there are programs";
        probes: Vec<Probe>, Any, EmptyList, "probes; absent: none";
        programs: Vec<Program>, Any, EmptyList, "unmodified programs, on the engines `kernel` and `netns`; absent: none";
    }
}

const TOPOLOGIES: &[&str] = &["path", "chain", "chain-asymmetric", "dumbbell", "parking-lot", "home", "custom"];
const LARGEST_SEED: u64 = (1 << 63) - 1;

impl Scenario {
    /// Reads the tables of a file, checks and compiles them. Problems name their field.
    pub fn read(tables: &Value, files: &dyn Files) -> Result<(Scenario, Compiled), Problem> {
        if !matches!(tables, Value::Table(_)) {
            return Err(Problem::new("wrong-type", "a scenario is a table", "write a table of fields"));
        }
        let at = ReadContext { name: "", files };
        let mut scenario = <Scenario as Field>::read(tables, &Rule::Any, at).map_err(first)?;
        if !scenario.programs.is_empty() && !scenario.gives("flows") {
            scenario.flows.clear();
        }
        scenario.check()?;
        let compiled = compile(&scenario, files)?;
        Ok((scenario, compiled))
    }

    /// The same with another seed. No check depends on the seed.
    pub fn with_seed(&self, seed: &Value) -> Result<Scenario, Problem> {
        let place = Scenario::FIELDS.iter().position(|field| field.name == "seed").expect("it has a seed");
        let at = ReadContext { name: "seed", files: &NoFiles };
        let seed =
            u64::read(seed, &Scenario::FIELDS[place].rule, at).map_err(|problems| first(below("seed", problems)))?;
        let given = Given(self.given.0 | 1 << place);
        Ok(Scenario { seed, given, ..self.clone() })
    }

    /// Compiles it again.
    pub fn compile(&self, files: &dyn Files) -> Result<Compiled, Problem> {
        compile(self, files)
    }

    /// The settings of a host: [host], overridden by [hosts.NAME].
    pub fn host_settings(&self, name: &str) -> Host {
        self.host.with(self.hosts.get(name))
    }

    fn check(&self) -> Result<(), Problem> {
        self.check_tables()?;
        self.check_times()?;
        let kernel = self.host.kernel.as_deref();
        let kernel = kernel.or_else(|| self.hosts.iter().find_map(|(_, host)| host.kernel.as_deref()));
        let named = std::iter::once(("host".to_string(), &self.host));
        for (place, host) in named.chain(self.hosts.iter().map(|(name, host)| (format!("hosts.{name}"), host))) {
            let control = host.cc.clone().map(Control::Named);
            control.map_or(Ok(()), |cc| cc.check(kernel)).map_err(|problem| problem.within(&place))?;
        }
        for (index, flow) in self.flows.iter().enumerate() {
            let checked = flow.cc.check(kernel).and_then(|()| flow.check());
            checked.map_err(|problem| problem.within(&format!("flows.{index}")))?;
        }
        Ok(())
    }

    /// The name of the topology's table.
    pub(crate) fn own_table(&self) -> Option<&str> {
        match self.topology.as_str() {
            "custom" => None,
            "chain-asymmetric" => Some("chain"),
            other => Some(other),
        }
    }

    fn check_tables(&self) -> Result<(), Problem> {
        fn fields<A: Declare>(table: &Option<A>) -> Option<Vec<&'static str>> {
            let given = |table: &A| A::FIELDS.iter().map(|field| field.name).filter(|name| table.gives(name)).collect();
            table.as_ref().map(given)
        }
        fn all<A: Declare>() -> Vec<&'static str> {
            A::FIELDS.iter().map(|field| field.name).collect()
        }
        let tables = [
            ("path", fields(&self.path), all::<Path>()),
            ("chain", fields(&self.chain), all::<Chain>()),
            ("dumbbell", fields(&self.dumbbell), all::<Dumbbell>()),
            ("parking-lot", fields(&self.parking_lot), all::<ParkingLot>()),
            ("home", fields(&self.home), all::<Home>()),
        ];
        let own = self.own_table();
        let own_fields = tables.iter().find(|(name, ..)| Some(*name) == own).map_or(&[][..], |(.., all)| all);
        for (name, given, _) in &tables {
            let Some(given) = given.as_ref().filter(|_| Some(*name) != own) else { continue };
            let fix = match own_fields.iter().find(|field| given.contains(field)) {
                Some(same) => format!("set {}.{same} instead, or topology = \"{name}\"", own.unwrap_or_default()),
                None => format!("remove it, or set topology = \"{name}\""),
            };
            let message = format!("topology \"{}\" does not read this table", self.topology);
            return Err(Problem::new("conflict", message, fix).of(*name));
        }
        let drawn =
            [("cards", !self.cards.is_empty()), ("links", !self.links.is_empty()), ("routes", !self.routes.is_empty())];
        if let (Some(own), Some((name, _))) = (own, drawn.iter().find(|(_, is_given)| *is_given)) {
            let message = format!("topology \"{}\" has a fixed network, and does not read this table", self.topology);
            let fix = format!("set topology = \"custom\", or use the fields of [{own}]");
            return Err(Problem::new("conflict", message, fix).of(*name));
        }
        if self.flows.is_empty() && self.probes.is_empty() && self.programs.is_empty() {
            let message = "there is no flow, no probe and no program";
            return Err(Problem::new("missing-field", message, "remove flows to get one cubic flow").of("flows"));
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), Problem> {
        let refused =
            |message: String, fix: String, field: &str| Err(Problem::new("out-of-range", message, fix).of(field));
        let Scenario { duration, warmup, interval, .. } = self;
        if warmup >= duration {
            let message = format!("\"{warmup}\" leaves nothing of the duration, \"{duration}\"");
            return refused(message, format!("choose a warmup shorter than \"{duration}\", like \"0 s\""), "warmup");
        }
        let whole = warmup.ns.div_ceil(interval.ns) + 1;
        if warmup.ns > 0 && u128::from(whole) * u128::from(interval.ns) > duration.ns.into() {
            let message = format!("\"{warmup}\" leaves no whole interval of \"{interval}\"");
            return refused(message, "choose a shorter warmup, like \"0 s\", or a shorter interval".into(), "warmup");
        }
        if interval > duration {
            let message = format!("\"{interval}\" is longer than the duration, \"{duration}\"");
            return refused(message, format!("choose at most \"{duration}\""), "interval");
        }
        if duration.ns / interval.ns > MAX_SAMPLES {
            let fix = "choose a longer interval, or a shorter duration";
            return refused(format!("more than {MAX_SAMPLES} samples"), fix.into(), "interval");
        }
        let flows = self.flows.iter().enumerate().map(|(index, flow)| ("flows", index, flow.start));
        let probes = self.probes.iter().enumerate().map(|(index, probe)| ("probes", index, probe.start));
        let programs = self.programs.iter().enumerate();
        let programs = programs.filter_map(|(index, program)| Some(("programs", index, program.start?)));
        match flows.chain(probes).chain(programs).find(|(.., start)| start >= duration) {
            Some((table, index, start)) => {
                let message = format!("\"{start}\" is not before the end, \"{duration}\"");
                let fix = format!("choose a start before \"{duration}\", like \"0 s\"");
                refused(message, fix, &format!("{table}.{index}.start"))
            }
            None => Ok(()),
        }
    }
}
