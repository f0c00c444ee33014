//! The parser of compiled scenarios takes what is sound, refuses what would crash or hang the core, and never panics.

mod common;

use common::{MS, Path, probe};
use sawtooth_net::Simulation;
use sawtooth_net::scenario::Scenario;
use sawtooth_units::Time;
use serde_json::{Value, json};

fn sound() -> Value {
    let mut scenario = Path { loss_ppb: 1, ..Path::default() }.json();
    scenario["probes"] = json!([probe(10 * MS, 50)]);
    scenario["links"][0]["loss_pattern"] = bursts(1);
    scenario["links"][1]["loss_pattern"] = json!(null);
    scenario["links"][2]["loss_pattern"] = json!({"every": 100});
    scenario
}

fn bursts(p_ppb: u64) -> Value {
    json!({"gilbert_elliott": {"p_ppb": p_ppb, "r_ppb": 300_000_000, "bad_ppb": 1_000_000_000, "good_ppb": 0}})
}

/// A round trip without any delay, over a transmitter of `rate_bps` there and none back.
fn without_delay(rate_bps: u64) -> Value {
    Path { rate_bps, rtt_ns: 0, ..Path::default() }.json()
}

#[test]
fn a_round_trip_of_less_than_a_microsecond_is_refused() {
    // 1,514 bytes take 1.0000 µs at 12.112 Gbit/s.
    assert!(Scenario::parse(&without_delay(12_112_000_000).to_string()).is_ok());
    let message = refusal(&without_delay(12_112_000_001));
    assert!(message.contains("flows[0]: round trip in ps = 999999"), "{message}");
    let mut scenario = without_delay(12_112_000_001);
    scenario["links"][2]["delay_ns"] = json!(1);
    assert!(Scenario::parse(&scenario.to_string()).is_ok());
    let mut scenario = sound();
    scenario["links"].as_array_mut().expect("a list").iter_mut().for_each(|link| {
        (link["delay_ns"], link["transmitter"]) = (json!(0), json!(null));
    });
    assert!(refusal(&scenario).contains("flows[0]: round trip"));
}

#[test]
fn a_transmitter_of_two_hosts_is_refused() {
    let mut scenario = sound();
    scenario["links"][2]["transmitter"] = json!(0);
    assert!(refusal(&scenario).contains("links[2].transmitter is another host's"));
}

fn refusal(scenario: &Value) -> String {
    Scenario::parse(&scenario.to_string()).expect_err("it is refused")
}

#[test]
fn valid_scenario_is_accepted() {
    assert!(Scenario::parse(&sound().to_string()).is_ok());
}

#[test]
fn a_bad_value_is_refused_by_name() {
    let second = 1_000_000_000u64;
    let cases = [
        ("/duration_ns", json!(0), "duration_ns"),
        ("/duration_ns", json!(31 * 86_400 * second), "duration_ns"),
        ("/interval_ns", json!(0), "interval_ns"),
        ("/hosts/0/hz", json!(0), "hosts[0].hz"),
        ("/hosts/0/hz", json!(1_000_000), "hosts[0].hz"),
        ("/hosts/2/mss", json!(0), "hosts[2].mss"),
        ("/hosts/2/mss", json!(65_536), "hosts[2].mss"),
        ("/hosts/0/initial_window", json!(0), "hosts[0].initial_window"),
        ("/hosts/0/receive_buffer", json!(0), "hosts[0].receive_buffer"),
        ("/hosts/0/send_buffer", json!(0), "hosts[0].send_buffer"),
        ("/transmitters/0/rate_bps", json!(0), "transmitters[0].rate_bps"),
        ("/transmitters/0/queue_bytes", json!(1), "transmitters[0]"),
        ("/links/1/loss_ppb", json!(1_000_000_001), "links[1].loss_ppb"),
        ("/links/1/loss_pattern", json!({"every": 0}), "links[1].loss_pattern"),
        ("/links/1/loss_pattern", json!({"every": 1_000_000_001}), "links[1].loss_pattern"),
        ("/links/1/loss_pattern", bursts(1_000_000_001), "links[1].loss_pattern"),
        ("/links/1/delay_ns", json!(u64::MAX), "links[1].delay_ns"),
        ("/links/1/overhead_bytes", json!(65_536), "links[1].overhead_bytes"),
        ("/links/0/from", json!(3), "links[0]"),
        ("/links/0/to", json!(99), "links[0]"),
        ("/links/0/transmitter", json!(1), "links[0]"),
        ("/flows/0/cc", json!("cubik"), "flows[0].cc"),
        ("/flows/0/count", json!(1u64 << 40), "connections"),
        ("/flows/0/bytes", json!(0), "flows[0].bytes"),
        ("/flows/0/duration_ns", json!(u64::MAX), "flows[0].duration_ns"),
        ("/flows/0/lifetime_ns", json!([1, u64::MAX]), "flows[0].lifetime_ns"),
        ("/flows/0/lifetime_ns", json!([0, 5]), "flows[0].lifetime_ns"),
        ("/flows/0/lifetime_ns", json!([6, 5]), "flows[0].lifetime_ns"),
        ("/flows/0/forward", json!([]), "flows[0].forward"),
        ("/flows/0/forward", json!([7]), "flows[0].forward"),
        ("/flows/0/forward", json!([1, 0]), "flows[0].forward"),
        ("/flows/0/backward", json!([0]), "flows[0].backward"),
        ("/flows/0/backward", json!(vec![2; 256]), "flows[0].backward"),
        ("/probes/0/interval_ns", json!(0), "probes[0].interval_ns"),
        ("/probes/0/backward", json!([1]), "probes[0].backward"),
    ];
    for (pointer, value, name) in cases {
        let mut scenario = sound();
        *scenario.pointer_mut(pointer).expect("the field exists") = value.clone();
        let message = refusal(&scenario);
        assert!(message.contains(name), "{pointer} = {value}: {message}");
    }
}

#[test]
fn wrong_type_is_refused_with_its_path() {
    for (pointer, value) in [
        ("/duration_ns", json!("2 s")),
        ("/duration_ns", json!(-1)),
        ("/duration_ns", json!(1.5)),
        ("/seed", json!(null)),
        ("/hosts", json!({})),
        ("/hosts/0/sack", json!(1)),
        ("/hosts/0/hz", json!(1u64 << 32)),
        ("/links/1/loss_pattern", json!("every")),
        ("/links/1/loss_pattern", json!({"often": 3})),
        ("/links/1/loss_pattern", json!({"gilbert_elliott": {"p_ppb": 3}})),
        ("/flows/0/lifetime_ns", json!([1])),
        ("/flows/0/forward", json!("0")),
    ] {
        let mut scenario = sound();
        *scenario.pointer_mut(pointer).expect("the field exists") = value;
        let message = refusal(&scenario);
        assert!(message.contains("line 1 column"), "{pointer}: {message}");
    }
}

#[test]
fn an_unknown_or_missing_field_is_refused_by_name() {
    for list in ["hosts", "transmitters", "links", "flows", "probes"] {
        let mut scenario = sound();
        scenario[list][0]["colour"] = json!("red");
        assert!(refusal(&scenario).contains("colour"), "{list}");
        let mut scenario = sound();
        scenario[list][0].as_object_mut().expect("an object").remove("name");
        assert!(refusal(&scenario).contains("name"), "{list}");
    }
}

/// One value for each field that decides what a flow sends.
fn traffic() -> [(&'static str, Value); 7] {
    let paced = json!({"bytes": 1000, "rate_bps": 1_000_000});
    let arrivals = json!({"times": {"poisson_ns": 1_000_000}, "sizes": {"fixed": 1}, "open": 1});
    let video = json!({"rates_bps": [1], "segment_ns": 1_000_000, "buffer_ns": 1_000_000, "rule": "buffer"});
    [
        ("bytes", json!(1)),
        ("lifetime_ns", json!([1, 2])),
        ("writes", paced.clone()),
        ("reads", paced.clone()),
        ("arrivals", arrivals),
        ("datagrams", paced),
        ("asks", json!({"video": video})),
    ]
}

#[test]
fn a_flow_has_one_kind_of_traffic_and_its_json_keeps_all_fields() {
    let together = ["bytes lifetime_ns", "lifetime_ns writes", "writes reads"];
    for (first, value) in traffic() {
        for (second, other) in traffic() {
            let mut scenario = sound();
            let flow = scenario["flows"][0].as_object_mut().expect("an object");
            flow.extend(
                [("bytes", json!(null)), ("lifetime_ns", json!(null))].map(|(name, value)| (name.into(), value)),
            );
            flow.extend([(first.to_owned(), value.clone()), (second.to_owned(), other)]);
            let goes =
                first == second || together.iter().any(|two| [first, second].iter().all(|name| two.contains(name)));
            match Scenario::parse(&scenario.to_string()) {
                Ok(parsed) => {
                    assert!(goes, "{first} {second}");
                    assert_eq!(serde_json::to_value(&parsed).expect("JSON")["flows"][0], scenario["flows"][0]);
                }
                Err(message) => assert!(!goes && message.contains("more than one kind"), "{first} {second}: {message}"),
            }
        }
    }
}

#[test]
fn invalid_json_is_refused() {
    for text in ["", "null", "[]", "{", "{\"duration_ns\": 1", "\u{0}", "[[[[[[[["] {
        assert!(Scenario::parse(text).is_err(), "{text:?}");
    }
    assert!(Scenario::parse(&"[".repeat(100_000)).is_err(), "nesting is bounded");
}

#[test]
fn probes_may_be_left_out() {
    let mut scenario = sound();
    scenario.as_object_mut().expect("an object").remove("probes");
    assert!(Scenario::parse(&scenario.to_string()).is_ok());
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// All places in a value, as pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| places(item, &format!("{at}/{i}"), found));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, field)| places(field, &format!("{at}/{name}"), found)),
        _ => {}
    }
}

fn mutate(scenario: &mut Value, random: &mut Random) {
    let mut found = Vec::new();
    places(scenario, "", &mut found);
    let pointer = found[random.below(found.len())].clone();
    let other = scenario.pointer(&found[random.below(found.len())]).cloned().unwrap_or(Value::Null);
    let Some(field) = scenario.pointer_mut(&pointer) else { return };
    // Mostly numbers of every size in the place of numbers: they have the best chance of being taken.
    let number = random.next() >> random.below(64);
    *field = match (random.below(12), &*field) {
        (0, _) => json!(null),
        (1, _) => json!(-1),
        (2, _) => json!("cubic"),
        (3, _) => json!([0, 1, 2]),
        (4, _) => json!(u64::MAX),
        (5, _) => other,
        (_, Value::Bool(value)) => json!(!value),
        (_, Value::Number(old)) if random.below(3) == 0 => {
            json!(old.as_u64().unwrap_or(0).wrapping_add(random.below(3) as u64).wrapping_sub(1))
        }
        (_, Value::Number(_)) => json!(number),
        (_, Value::String(_)) => json!(["reno", "cubic", "bbr", "\u{1f980}"][random.below(4)]),
        (_, Value::Array(items)) if !items.is_empty() => {
            let mut items = items.clone();
            let item = items[random.below(items.len())].clone();
            if random.below(2) == 0 {
                items.push(item);
            } else {
                items.remove(random.below(items.len()));
            }
            Value::Array(items)
        }
        (_, old) => old.clone(),
    };
}

#[test]
fn mutated_scenarios_do_not_panic() {
    let mut random = Random(1);
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..4_000 {
        let mut scenario = sound();
        for _ in 0..=random.below(4) {
            mutate(&mut scenario, &mut random);
        }
        let text = scenario.to_string();
        match Scenario::parse(&text) {
            Err(_) => refused += 1,
            // Memory is a matter of what was asked for: a million connections are allowed, but not here.
            Ok(scenario) if scenario.flows.iter().map(|flow| flow.count).sum::<usize>() > 1_000 => {}
            Ok(scenario) => {
                taken += 1;
                let mut simulation = Simulation::new(scenario);
                simulation.advance(Time::from_nanos(50 * MS), 20_000);
                simulation.take();
            }
        }
    }
    assert!(taken > 500 && refused > 500, "{taken} taken, {refused} refused");
}

#[test]
fn damaged_text_does_not_panic() {
    let mut random = Random(2);
    let sound = sound().to_string();
    for _ in 0..4_000 {
        let mut bytes = sound.clone().into_bytes();
        for _ in 0..=random.below(4) {
            // Cut short to four bytes at least, so that three more removals leave some.
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = random.next() as u8,
                1 => drop(bytes.remove(at)),
                2 => bytes.truncate(at.max(4)),
                _ => bytes.insert(at, b"0123456789-.e\"[]{},:"[random.below(20)]),
            }
        }
        if let Ok(scenario) = Scenario::parse(&String::from_utf8_lossy(&bytes)) {
            let mut simulation = Simulation::new(scenario);
            simulation.advance(Time::from_nanos(50 * MS), 1_000);
        }
    }
}
