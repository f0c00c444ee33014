"""Paths drawn at random with a transfer captured on each: what ``explain`` learns from, and what it is judged on.

    python experiments/explain_corpus.py DIRECTORY --paths 1000                    # on sim
    python experiments/explain_corpus.py DIRECTORY --paths 100 --engine kernel     # other paths, with --first

Each path becomes one file, with what the captures at both ends show and the truth. A path that is in DIRECTORY already
is not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import pickle
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from sawtooth import Run, Scenario
from sawtooth.capture import read_capture
from sawtooth.engines.kernel import Kernel
from sawtooth.engines.sim import Sim
from sawtooth.errors import SawtoothError
from sawtooth.whatif import estimate, observe

SIDES = ("sender", "receiver")
FRAME_BITS = 1514 * 8
MOST_PACKETS = 40_000
COLUMNS = ("t_s", "direction", "seq", "length", "ack", "kind", "flags", "rtt_s")


def drawn(number: int) -> dict[str, Any]:
    """The scenario of a path, and its truth as far as it is drawn."""
    rng = np.random.default_rng([35, number])
    rate = _log(rng, 2e6, 100e6)
    rtt = _log(rng, 0.005, 0.2)
    duration = max(6.0, min(rng.uniform(10, 30), MOST_PACKETS * FRAME_BITS / rate))
    bdp = max(1.0, rate * rtt / FRAME_BITS)
    kind = str(rng.choice(["tail drop", "codel", "pie", "red", "policer"], p=[0.4, 0.18, 0.12, 0.15, 0.15]))
    path: dict[str, Any] = {"rate": f"{rate:.0f} bit/s", "rtt": f"{rtt * 1e6:.0f} us"}
    packets = max(8, round(bdp * _log(rng, 0.2, 5.0)))
    path["queue"] = _queue(rng, kind, rate, packets)
    if kind == "policer":
        police = path["rate"]
        path["rate"] = f"{rate * _log(rng, 2.0, 20.0):.0f} bit/s"
        burst = max(6 * 1514, rate / 8 * _log(rng, 0.01, 0.3))
        path["policer"] = {"rate": police, "burst": f"{burst:.0f} bytes"}
    loss = str(rng.choice(["none", "random", "bursts"], p=[0.5, 0.25, 0.25]))
    share = _log(rng, 3e-5, 0.02)
    length = _log(rng, 2.0, 30.0)
    if loss == "random":
        path["loss"] = f"{share * 100:.6f}%"
    elif loss == "bursts":
        path["loss"] = {"mean": f"{share * 100:.6f}%", "burst": f"{length:.2f} packets"}
    cc = str(rng.choice(["cubic", "reno", "bbr", "bbr3"], p=[0.35, 0.2, 0.25, 0.2]))
    flows: list[dict[str, Any]] = [{"name": "own", "cc": cc}]
    cross = str(rng.choice(["none", "bulk", "on-off", "rate"], p=[0.55, 0.25, 0.1, 0.1]))
    part = rng.uniform(0.1, 0.6)
    if cross != "none":
        other: dict[str, Any] = {"name": "other", "cc": str(rng.choice(["cubic", "reno", "bbr"]))}
        if cross == "bulk":
            other["count"] = int(rng.integers(1, 6))
        elif cross == "on-off":
            times = {"on": f"{rng.uniform(0.3, 4):.2f} s", "off": f"{rng.uniform(0.3, 4):.2f} s"}
            other["source"] = {"kind": "on-off", "rate": f"{rate * min(0.9, 2 * part):.0f} bit/s", **times}
        else:
            other["source"] = {"kind": "rate", "rate": f"{rate * part:.0f} bit/s"}
        flows.append(other)
    fields = {
        "name": f"path-{number}",
        "duration": f"{duration:.2f} s",
        "interval": "500 ms",
        "traffic": "native",
        "seed": number + 1,
        "path": path,
        "flows": flows,
    }
    truth = {"kind": kind, "loss": loss, "cross": cross, "cc": cc, "rate_bps": rate, "rtt_s": rtt, "packets": packets}
    return {"scenario": fields, "truth": truth | {"share": share, "length": length}}


def _log(rng: np.random.Generator, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _queue(rng: np.random.Generator, kind: str, rate: float, packets: int) -> Any:
    if kind == "codel":
        return {"kind": str(rng.choice(["codel", "fq_codel"])), "limit": "10000 packets"}
    if kind == "pie":
        return {"kind": "pie", "limit": "10000 packets"}
    if kind == "red":
        highest = max(12, packets) * 1514
        lowest = f"{highest / 3:.0f} bytes"
        sizes = {"limit": f"{4 * highest:.0f} bytes", "min": lowest, "max": f"{highest:.0f} bytes"}
        adaptive = bool(rng.random() < 0.5)
        return {"kind": "red", **sizes, "probability": f"{rng.uniform(2, 10):.1f}%", "adaptive": adaptive}
    return f"{packets} packets"


def counted(run: Run) -> dict[str, Any]:
    """What only the run knows: drops by place, what others carried, how long packets waited."""
    queues, links, flows = (run.tables[name] for name in ("queues", "links", "intervals"))
    of = queues[queues["transmitter"] == 0]
    names = run.meta["names"]
    here = {name: float(links[name].sum()) if name in links and len(links) else 0.0 for name in ("lost", "policed")}
    mean = flows.groupby("flow")["goodput_bps"].mean()
    own = names["flow"].index("own")
    others = float(mean[mean.index != own].sum())
    return {
        "drops": float(of["drops"].sum()),
        "early": float(of["early_drops"].sum()) if "early_drops" in of else 0.0,
        "waited_s": float(of["delay_mean_s"].max()),
        "own_bps": float(mean[own]),
        "others_bps": others,
        **here,
    }


def shown(file: Path) -> dict[str, Any]:
    """What the capture of one end shows of the flow in question: that to the first port."""
    first = read_capture(file, 0)
    at = int(np.argmin([port(one) for one in first.facts["connections"]]))
    capture = first if at == 0 else read_capture(file, at)
    seen: dict[str, Any] = {
        "facts": capture.facts["connections"][at],
        "segments": capture.segments[list(COLUMNS)].astype({"direction": "int8", "kind": "int8", "rtt_s": "float32"}),
        "losses": capture.losses[capture.losses["connection"] == at].reset_index(drop=True),
    }
    try:
        observed = observe(file, connection=str(at))
        seen["cc"] = observed.cc
        seen["observed"] = observed.describe()
        seen["path"] = {name: one.describe() for name, one in estimate(observed).quantities.items()}
    except SawtoothError as error:
        seen["refused"] = error.code
    return seen


def port(connection: dict[str, Any]) -> int:
    """Every flow of a scenario has its own, in their order. Those of the other end are the kernel's choice."""
    return int(str(connection["server"]).rpartition(":")[2])


def one(task: tuple[int, str, str]) -> str:
    number, engine, directory = task
    target = Path(directory) / f"{number:05}.pickle"
    if target.exists():
        return ""
    case = drawn(number)
    with tempfile.TemporaryDirectory() as home:
        made = (Kernel if engine == "kernel" else Sim)(capture=Path(home))
        try:
            run = made.run(Scenario(**case["scenario"]))
            case["truth"] |= counted(run)
            case["shown"] = {side: shown(Path(home) / f"capture-{side}.pcap") for side in SIDES}
        except SawtoothError as error:
            return f"{number}: {error}"
    part = target.with_suffix(".part")
    part.write_bytes(pickle.dumps(case))
    part.rename(target)
    return ""


def each(measure: Callable[[tuple[Any, ...]], str], tasks: Sequence[tuple[Any, ...]], workers: int) -> None:
    """Runs the tasks in processes, and prints what they say."""
    with ProcessPoolExecutor(workers) as pool:
        for told in pool.map(measure, tasks):
            if told:
                print(told, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--paths", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first path")
    parser.add_argument("--engine", choices=("sim", "kernel"), default="sim")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    tasks = [(options.first + at, options.engine, str(options.directory)) for at in range(options.paths)]
    each(one, tasks, options.workers)
    print(json.dumps({"paths": len(list(options.directory.glob("*.pickle")))}))


if __name__ == "__main__":
    main()
