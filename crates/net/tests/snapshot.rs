//! One table of what each algorithm does over loss and round-trip time. A change of behaviour shows as changed rows.
//!
//! To write the table again after an intended change:
//! `cargo test --release -p sawtooth-net --test snapshot -- --ignored write_snapshots`

mod common;

use common::{PERCENT, Path, SECOND};
use sawtooth_tcp::cc::Algorithm;
use std::path::PathBuf;

fn file() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/sweep.txt"))
}

/// 10 s at 100 Mbit/s with a queue of 100 packets and seed 1; all numbers are counts.
fn sweep() -> String {
    let mut table = String::from("  cc     rtt  loss   delivered  retransmits  timeouts  tail_probes  queue_drops\n");
    for cc in Algorithm::names() {
        for (rtt, rtt_ns) in [("0.6 ms", 600_000), ("10 ms", 10_000_000), ("100 ms", 100_000_000)] {
            for (loss, loss_ppb) in
                [("0%", 0), ("0.1%", PERCENT / 10), ("1%", PERCENT), ("5%", 5 * PERCENT), ("10%", 10 * PERCENT)]
            {
                let path =
                    Path { cc, rtt_ns, loss_ppb, queue_packets: 100, duration_ns: 10 * SECOND, ..Path::default() };
                let run = path.run();
                let [retransmits, timeouts, tail_probes] =
                    ["retransmits", "timeouts", "tail_probes"].map(|column| run.sum("flows", column));
                let (delivered, drops) = (run.simulation.delivered_packets(), run.sum("queues", "drops"));
                let counts = format!("{delivered:>11} {retransmits:>12} {timeouts:>9} {tail_probes:>12} {drops:>12}");
                table += &format!("{cc:>5} {rtt:>7} {loss:>5} {counts}\n");
            }
        }
    }
    table
}

#[test]
fn sweep_matches_stored_snapshot() {
    let filed = std::fs::read_to_string(file()).expect("the snapshot is on file");
    let made = sweep();
    if filed == made {
        return;
    }
    let changed = made.lines().zip(filed.lines().chain(std::iter::repeat(""))).filter(|(new, old)| new != old);
    let changes: String = changed.map(|(new, old)| format!("- {old}\n+ {new}\n")).collect();
    panic!("the sweep differs; if that is intended, write it again (see the top of this file)\n{changes}");
}

#[test]
fn more_loss_never_delivers_much_more() {
    let delivered: Vec<u64> = sweep()
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().nth(4).and_then(|field| field.parse().ok()).expect("delivered is fifth"))
        .collect();
    for row in delivered.chunks(5) {
        assert!(row.windows(2).all(|pair| pair[1] <= pair[0] + pair[0] / 20), "{row:?}");
    }
}

#[test]
#[ignore = "writes the file that the other test compares with"]
fn write_snapshots() {
    std::fs::write(file(), sweep()).expect("the snapshot can be written");
}
