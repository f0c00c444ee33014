#!/usr/bin/env python3
"""The simulator side by side with ns-3: packets a CPU second of both, and the distance of both to the real kernel.

``make bench-ns3`` builds what this needs and runs it. Every ns-3 run is a process of ``bench/ns3/bulk.cc``.
"""

from __future__ import annotations

import argparse
import csv
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from sawtooth import Scenario, kernel, run
from sawtooth.run import versions

SEEDS = (1, 2, 3)
REPETITIONS = 3
PATIENCE_S = 900
"""Wall time after which an ns-3 run is abandoned: about four times what the longest needs on a busy machine."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """One bulk experiment for both simulators and the kernel. Rates in Mbit/s, times in ms, loss in %."""

    topology: str
    cc: str
    loss: float
    seconds: int
    rate: int = 1000
    rtt: float = 0.4
    queue: int = 1000
    flows: int = 1

    def name(self) -> str:
        flows = f"{self.flows} {self.cc}"
        return f"{self.topology}, {self.rate} Mbit/s, {self.rtt:g} ms, {self.queue} packets, {self.loss:g}%, {flows}"

    def scenario(self, seed: int) -> Scenario:
        network = {
            "rate": f"{self.rate} Mbit/s",
            "rtt": f"{self.rtt:g} ms",
            "queue": f"{self.queue} packets",
            "loss": f"{self.loss:g}%",
        }
        return Scenario.from_dict(
            {
                "name": "side-by-side",
                "topology": self.topology,
                self.topology: network,
                "duration": f"{self.seconds} s",
                "seed": seed,
                "traffic": "native",
                "flows": [{"cc": self.cc, "count": self.flows}],
            }
        )

    def arguments(self, seed: int) -> list[str]:
        """The same question to ``bench/ns3/bulk.cc``."""
        given = {
            "topology": self.topology,
            "cc": self.cc,
            "rate": self.rate * 10**6,
            "rtt": round(self.rtt * 1e6),
            "loss": self.loss / 100,
            "queue": self.queue,
            "seconds": self.seconds,
            "flows": self.flows,
            "seed": seed,
        }
        return [f"--{key}={value}" for key, value in given.items()]


SPEED = (
    Question("chain", "cubic", 0, 5),
    Question("chain", "cubic", 1, 10),
    Question("chain", "bbr", 0, 5),
    Question("chain", "bbr", 1, 5),
    Question("path", "cubic", 0, 5, rtt=20, queue=4000),
    Question("path", "cubic", 0, 5, rtt=20, queue=4000, flows=100),
)

FIDELITY = (
    Question("chain", "cubic", 0, 10),
    Question("chain", "cubic", 1, 60),
    Question("chain", "reno", 1, 30),
    Question("chain", "bbr", 0, 10),
    Question("chain", "bbr", 1, 10),
    Question("path", "reno", 0.5, 60, rate=100, rtt=4, queue=33),
    Question("path", "cubic", 0, 60, rate=100, rtt=20, queue=165),
    Question("path", "cubic", 1, 60, rate=100, rtt=20, queue=165),
    Question("path", "reno", 0.1, 60, rate=100, rtt=20, queue=165),
    Question("path", "bbr", 1, 60, rate=100, rtt=20, queue=165),
    Question("path", "bbr", 0, 60, rate=20, rtt=40, queue=528),
    Question("path", "cubic", 2, 60, rate=10, rtt=40, queue=66),
)


def ns3(program: Path, question: Question, seed: int) -> Row:
    """The program's output. Raises SystemExit with the question if it fails or takes too long."""
    command = [str(program), *question.arguments(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"ns-3 took over {PATIENCE_S} s: {' '.join(command)}") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"ns-3 failed: {' '.join(command)}\n{error.stderr}") from None
    answer: Row = json.loads(done.stdout)
    return answer


def sim_speed(question: Question, seed: int) -> float:
    """Delivered data packets per CPU second of the simulator's core, as its own bench counts: without startup and
    tables.
    """
    from sawtooth import _core

    compiled = question.scenario(seed).compile()
    simulation = _core.Simulation(compiled.to_json())
    begun = time.process_time()
    while not simulation.advance(compiled.duration_ns, 2**62):
        pass
    return simulation.delivered_packets / (time.process_time() - begun)


def throughput(question: Question, engine: str, seed: int) -> float:
    """Mbit/s over the whole run, all flows together, on one of sawtooth's engines."""
    intervals = run(question.scenario(seed), engine=engine).tables["intervals"]
    return float(intervals.groupby("t_s")["goodput_bps"].sum().mean()) / 1e6


def speed(program: Path, questions: Iterable[Question]) -> list[Row]:
    """Runs both simulators in turn, so that other load on the machine affects both. Medians of the repetitions."""
    rows = []
    for question in questions:
        tell(f"speed: {question.name()}")
        theirs, ours = [], []
        for seed in range(1, REPETITIONS + 1):
            answer = ns3(program, question, seed)
            theirs.append(answer["packets"] / answer["cpu_s"])
            ours.append(sim_speed(question, seed))
        rows.append(
            {
                "case": question.name(),
                "simulated_s": question.seconds,
                "ns3_packets_per_cpu_s": round(median(theirs)),
                "sim_packets_per_cpu_s": round(median(ours)),
                "ratio": round(median(ours) / median(theirs)),
                "least_ratio": round(min(ours) / max(theirs)),
            }
        )
    return rows


def fidelity(program: Path, questions: Iterable[Question]) -> list[Row]:
    """Mean throughput of ns-3, simulator and kernel over the seeds, and the difference of the first two to the last."""
    rows = []
    for question in questions:
        tell(f"fidelity: {question.name()}")
        real = [throughput(question, "kernel", seed) for seed in SEEDS]
        sim = [throughput(question, "sim", seed) for seed in SEEDS]
        other = [float(ns3(program, question, seed)["mean_mbps"]) for seed in SEEDS]
        rows.append(
            {
                "case": question.name(),
                "simulated_s": question.seconds,
                "kernel_mbps": round(fmean(real), 2),
                "kernel_error_mbps": round(stdev(real) / len(real) ** 0.5, 2),
                "sim_mbps": round(fmean(sim), 2),
                "ns3_mbps": round(fmean(other), 2),
                "sim_difference_percent": difference(sim, real),
                "ns3_difference_percent": difference(other, real),
            }
        )
    return rows


def difference(measured: Sequence[float], real: Sequence[float]) -> float:
    """Differences of the means, in percent of the kernel's; never -0.0."""
    return round(100 * (fmean(measured) / fmean(real) - 1), 1) + 0.0


def tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def markdown(rows: Sequence[Row], heads: Mapping[str, str]) -> str:
    """The columns that ``heads`` names, in that order."""
    lines = ["| " + " | ".join(heads.values()) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        cells = (f"{row[c]:,}" if isinstance(row[c], int) else str(row[c]) for c in heads)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


SPEED_HEADS = {
    "case": "case",
    "simulated_s": "simulated, s",
    "ns3_packets_per_cpu_s": "ns-3, packets/CPU s",
    "sim_packets_per_cpu_s": "`sim`, packets/CPU s",
    "ratio": "ratio",
    "least_ratio": "least",
}
FIDELITY_HEADS = {
    "case": "case",
    "simulated_s": "simulated, s",
    "kernel_mbps": "kernel, Mbit/s",
    "kernel_error_mbps": "± standard error",
    "sim_mbps": "`sim`, Mbit/s",
    "sim_difference_percent": "difference, %",
    "ns3_mbps": "ns-3, Mbit/s",
    "ns3_difference_percent": "difference, %",
}


def summary(rows: Sequence[Row]) -> str:
    parts = []
    for column, who in (("sim_difference_percent", "`sim`"), ("ns3_difference_percent", "ns-3")):
        sizes = [abs(row[column]) for row in rows]
        parts.append(f"{who}: median {median(sizes):.1f}%, worst {max(sizes):.1f}%")
    return f"Size of the difference to the kernel, {len(rows)} points: " + "; ".join(parts) + "."


def provenance() -> str:
    """Versions and the processor, in a sentence."""
    package = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libns3-dev"], capture_output=True, text=True)
    processor = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
            break
    ours = versions()["sawtooth"]
    theirs = package.stdout or "(not from Debian)"
    return f"libns3-dev {theirs}, sawtooth {ours}, {processor}, {time.strftime('%Y-%m-%d')}."


def fill(page: str, name: str, text: str) -> str:
    """Replaces the text between the comments ``<!-- name -->`` and ``<!-- /name -->``. Raises ValueError."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    head, found, rest = page.partition(begin)
    _old, closed, tail = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page has no {begin} … {end}")
    return f"{head}{begin}\n\n{text}\n\n{end}{tail}"


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ns3", type=Path, required=True, help="the program built from bench/ns3")
    parser.add_argument("--output", type=Path, required=True, help="directory for speed.csv, fidelity.csv, tables.md")
    parser.add_argument("--page", type=Path, help="page whose tables are replaced")
    parser.add_argument("--only", choices=("speed", "fidelity"), help="one of the two parts")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    texts = {}
    if options.only != "fidelity":
        rows = speed(options.ns3, SPEED)
        write_csv(options.output / "speed.csv", rows)
        texts["speed"] = markdown(rows, SPEED_HEADS) + "\n\n" + provenance()
    if options.only != "speed":
        rows = fidelity(options.ns3, FIDELITY)
        write_csv(options.output / "fidelity.csv", rows)
        linux = kernel.find(FIDELITY[0].scenario(1).compile().hosts[0].hz).describe()
        about = f"Linux {linux['version']}, HZ {linux['hz']}, seeds {SEEDS[0]} to {SEEDS[-1]}. {summary(rows)}"
        texts["fidelity"] = markdown(rows, FIDELITY_HEADS) + "\n\n" + about
    tables = "\n\n".join(texts.values()) + "\n"
    (options.output / "tables.md").write_text(tables)
    if options.page is not None:
        page = options.page.read_text()
        for name, text in texts.items():
            page = fill(page, name, text)
        options.page.write_text(page)
    print(tables, end="")


if __name__ == "__main__":
    main()
