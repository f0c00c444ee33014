"""The simulator's core as WebAssembly in node, beside the native core: processor time, best of some runs.

.venv/bin/python bench/webassembly.py [RUNS]      # 7, at least 2; needs node and npm, and compiles the core once
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import lab
from sawtooth import Scenario, _core

PATH = {"rate": "200 Mbit/s", "rtt": "30 ms", "queue": "1 bdp"}
SHARED = {"rate": "1 Gbit/s", "rtt": "30 ms", "queue": {"kind": "fq_codel"}}
CASES: dict[str, dict[str, Any]] = {
    "one CUBIC flow, 0.5% loss, 60 s": {"duration": "60 s", "path": PATH | {"loss": "0.5%"}},
    "one BBR flow there": {"duration": "60 s", "path": PATH | {"loss": "0.5%"}, "flows": [{"cc": "bbr"}]},
    "one CUBIC flow, no loss, 10 s": {"duration": "10 s", "path": PATH},
    "100 CUBIC flows, 1 Gbit/s, fq_codel, 10 s": {"duration": "10 s", "path": SHARED, "flows": [{"count": 100}]},
}
NODE = """
const { readFileSync } = await import("node:fs");
const { Core } = await import("./core.mjs");
const [scenarios, runs] = JSON.parse(readFileSync(0, "utf8"));
const wasm = await WebAssembly.compile(readFileSync("simulator.wasm"));
const answers = scenarios.map((scenario) => {
  const core = new Core(wasm);
  const times = [];
  let delivered = 0;
  for (let run = 0; run < runs; run += 1) {
    const begun = process.cpuUsage();
    const simulation = core.simulation(scenario);
    while (!simulation.advance(Number.MAX_SAFE_INTEGER, 1_000_000)) continue;
    const { user, system } = process.cpuUsage(begun);
    times.push((user + system) / 1e3);
    delivered = simulation.delivered_packets;
    simulation.close();
  }
  return { first: times[0], best: Math.min(...times.slice(1)), delivered };
});
console.log(JSON.stringify(answers));
"""


def native(scenario: str, runs: int) -> float:
    """The least milliseconds."""
    times = []
    for _ in range(runs):
        begun = time.process_time()
        simulation = _core.Simulation(scenario)
        while not simulation.advance(2**62, 1_000_000):
            pass
        times.append((time.process_time() - begun) * 1e3)
    return min(times)


def main(runs: int = 7) -> None:
    if runs < 2:
        raise SystemExit("the first run compiles and does not count: give at least 2 runs")
    scenarios = [Scenario.from_dict({"flows": [{}]} | case).compile().to_json() for case in CASES.values()]
    with tempfile.TemporaryDirectory() as directory:
        lab.for_node(Path(directory))
        node = ["node", "--input-type=module", "--eval", NODE]
        asked = json.dumps([scenarios, runs])
        told = subprocess.run(node, cwd=directory, input=asked, check=True, capture_output=True, text=True).stdout
    for name, scenario, answer in zip(CASES, scenarios, json.loads(told), strict=True):
        print(
            f"{name} ({answer['delivered']:,} packets): native {native(scenario, runs):.0f} ms, "
            f"WebAssembly {answer['best']:.0f} ms (first run {answer['first']:.0f} ms)"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
