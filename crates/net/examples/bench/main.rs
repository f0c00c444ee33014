//! Delivered data packets for each CPU second, or instructions for each of them, over the topologies and loads that
//! users run.
//!
//! `cargo run --release -p sawtooth-net --example bench [FILTER]`
//! `cargo run --release -p sawtooth-net --example bench -- --skip`
//! `cargo run --release -p sawtooth-net --example bench -- --instructions [FILTER]` (`--record`: writes them to the
//! file)

mod cases;
mod instructions;

use sawtooth_net::Simulation;
use sawtooth_net::scenario::Scenario;
use sawtooth_units::Time;
use std::process::ExitCode;
use std::time::Duration;

/// CPU time of this process so far, user and system.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux tells CPU time in /proc");
    let nanos = stat.split_whitespace().next().and_then(|field| field.parse().ok()).expect("nanoseconds come first");
    Duration::from_nanos(nanos)
}

/// An hour of a flow without loss, most of which is skipped.
fn skip() {
    let mut simulation = Simulation::new(Scenario::parse(&cases::hour()).expect("the case is valid"));
    simulation.skip_repeated();
    let start = cpu_time();
    while !simulation.advance(Time::NEVER, u64::MAX) {}
    let (packets, skipped, time) = (simulation.delivered_packets(), simulation.skipped_packets(), cpu_time() - start);
    let [all, kept] = [packets, packets - skipped].map(|packets| packets as f64 / time.as_secs_f64() / 1e6);
    println!("1 cubic, its own card of 10 Gbit/s, an hour: {packets} packets in {:.2} CPU s", time.as_secs_f64());
    println!("{skipped} of them skipped: {all:.0}M packets a CPU second, {kept:.2}M without the skipped ones");
}

/// Runs a compiled scenario; packets and the CPU time they took.
fn run(scenario: &str) -> (u64, Duration) {
    let mut simulation = Simulation::new(Scenario::parse(scenario).expect("the cases are valid"));
    let start = cpu_time();
    while !simulation.advance(Time::NEVER, u64::MAX) {}
    (simulation.delivered_packets(), cpu_time() - start)
}

fn main() -> ExitCode {
    let (options, words): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let filter = words.first().map_or("", String::as_str);
    let option = |name: &str| options.iter().any(|option| option == name);
    if option("--packets") {
        let case = cases::all().into_iter().find(|case| case.name == filter).expect("a case of this name");
        println!("{}", run(&case.scenario(instructions::PART)).0);
        return ExitCode::SUCCESS;
    }
    if option("--skip") {
        skip();
        return ExitCode::SUCCESS;
    }
    let cases: Vec<_> = cases::all().into_iter().filter(|case| case.name.contains(filter)).collect();
    if option("--instructions") || option("--record") {
        return instructions::run(&cases, option("--record"));
    }
    println!("{:42} {:>12} {:>10} {:>16} {:>10}", "case", "packets", "CPU s", "packets/CPU s", "bar");
    let mut missed = false;
    for case in &cases {
        let (packets, time) = run(&case.scenario(1));
        let speed = packets as f64 / time.as_secs_f64();
        missed |= speed < case.bar;
        let (bar, seconds) = (format!("{:.1}M", case.bar / 1e6), time.as_secs_f64());
        println!("{:42} {packets:>12} {seconds:>10.2} {:>15.2}M {bar:>10}", case.name, speed / 1e6);
    }
    if missed {
        eprintln!("a bar was missed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
