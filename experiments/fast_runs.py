"""How well ``fast`` runs agree with whole ones, on paths drawn at random, and what they save.

python experiments/fast_runs.py [--paths 60] [--duration "1800 s"] [--fast 2%] [--seed 1]
python experiments/fast_runs.py --hour

With ``--hour``: CPU time and rates of the runs of one hour in docs/performance.md.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Any

import numpy as np

from sawtooth import Scenario
from sawtooth.engines.sim import Sim
from sawtooth.run import Run

CONTROLS = ("reno", "cubic", "bbr", "bbr3")
RAREST = 1e-4
"""Of the packets sent: fewer drops are not compared (``sawtooth.engines.steady``)."""


FAT = {"rate": "10 Gbit/s", "rtt": "20 ms"}
HOURS: dict[str, dict[str, Any]] = {
    "CUBIC from its own card of 10 Gbit/s, 20 ms": {
        "topology": "custom",
        "hosts": {"a": {}, "b": {}},
        "cards": {"a": {"rate": "10 Gbit/s", "queue": "4000 packets"}},
        "links": [{"from": "a", "to": "b", "delay": "10 ms"}],
        "flows": [{"from": "a", "to": "b", "cc": "cubic"}],
        "fast": "0%",
    },
    "CUBIC, chain of 5 at 10 Gbit/s": {"topology": "chain", "chain": {"rate": "10 Gbit/s"}},
    "CUBIC, path of 10 Gbit/s and 20 ms": {"path": FAT},
    "BBR, the same": {"path": FAT, "flows": [{"cc": "bbr"}]},
    "BBR, path of 1 Gbit/s and 20 ms, 0.1% loss": {
        "path": {"rate": "1 Gbit/s", "rtt": "20 ms", "loss": "0.1%"},
        "flows": [{"cc": "bbr"}],
    },
    **{
        f"{count} of Reno, path of 10 Gbit/s and 20 ms, 375 MiB": {
            "path": {**FAT, "queue": "375 MiB"},
            "flows": [{"cc": "reno", "count": count}],
            "fast": "3%",
        }
        for count in (1_000, 5_000)
    },
}


def hours() -> None:
    print("| an hour of | simulated, s | CPU, s | million packets a CPU second | with the repeated ones |")
    print("|---|---|---|---|---|")
    for name, tables in HOURS.items():
        began = time.process_time()
        run = Sim().run(Scenario.from_dict({"duration": "1 h", "fast": "1%", **tables}))
        took = time.process_time() - began
        segments = run.tables["intervals"]["goodput_bps"].sum() / 8 / 1448
        true = run.meta["delivered_packets"] - run.meta.get("skipped_packets", 0)
        simulated = run.meta["fast"]["simulated_s"] if "fast" in run.meta else 3600 * true / segments
        print(f"| {name} | {simulated:.0f} | {took:.1f} | {true / took / 1e6:.1f} | {segments / took / 1e6:.0f} |")


def drawn(rng: random.Random, duration: str, fast: str) -> dict[str, Any]:
    """A path with one to three entries in [[flows]], of one to 32 flows each."""
    flows = [
        {"name": f"f{n}", "cc": rng.choice(CONTROLS), "count": rng.choice((1, 2, 8, 32))}
        for n in range(rng.randint(1, 3))
    ]
    path = {
        "rate": f"{10 ** rng.uniform(0.7, 2.3):.1f} Mbit/s",
        "rtt": f"{10 ** rng.uniform(0.7, 2.2):.1f} ms",
        "queue": f"{10 ** rng.uniform(-0.7, 0.6):.2f} bdp",
        "loss": rng.choice(("0%", "0%", "0.01%", "0.1%", "1%")),
    }
    return {"duration": duration, "fast": fast, "seed": rng.randint(1, 10**6), "path": path, "flows": flows}


def seen(run: Run) -> tuple[np.ndarray[Any, Any], float, float, float]:
    """Throughput of each flow, drops, packets sent at the bottleneck, and its mean queue."""
    rates = run.tables["intervals"].groupby("flow")["goodput_bps"].mean().to_numpy()
    queue = run.tables["queues"]
    first = queue[queue["transmitter"] == 0]
    return rates, float(first["drops"].sum()), float(first["sent_packets"].sum()), float(first["mean_packets"].mean())


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--paths", type=int, default=60)
    asked.add_argument("--duration", default="1800 s")
    asked.add_argument("--fast", default="2%")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--hour", action="store_true")
    given = asked.parse_args()
    if given.hour:
        hours()
        return
    rng, engine = random.Random(given.seed), Sim()
    saved: list[float] = []
    off: dict[str, list[float]] = {"goodput": [], "drops": [], "queue": []}
    for number in range(given.paths):
        tables = drawn(rng, given.duration, given.fast)
        began = time.process_time()
        short = engine.run(Scenario.from_dict(tables))
        middle = time.process_time()
        if "fast" not in short.meta:
            print(f"{number:3} whole")
            continue
        whole = engine.run(Scenario.from_dict({name: value for name, value in tables.items() if name != "fast"}))
        saved.append((time.process_time() - middle) / (middle - began))
        (rates, drops, _, queue), (true, dropped, sent, held) = seen(short), seen(whole)
        scale = np.maximum(true, 0.01 * true.sum())
        off["goodput"].append(float(np.abs(rates / scale - true / scale).max()))
        off["drops"].append(abs(drops - dropped) / max(dropped, RAREST * sent))
        off["queue"].append(abs(queue - held) / max(held, 1.0))
        errors = " ".join(f"{name} {values[-1]:.2%}" for name, values in off.items())
        print(
            f"{number:3} until {short.meta['fast']['simulated_s']:.0f} s, {saved[-1]:.1f} times faster, off by {errors}"
        )
    print(f"{len(saved)} of {given.paths} end early; median speed-up {np.median(saved):.1f}")
    limit = float(given.fast.rstrip("%")) / 100
    for name, values in off.items():
        most = limit * (1 if name == "goodput" else 5)
        within = sum(value <= most for value in values)
        print(f"{name}: median {np.median(values):.2%}, p90 {np.quantile(values, 0.9):.2%}, {within} within {most:.0%}")


if __name__ == "__main__":
    main()
