"""Simulated paths that a transfer may not fill, and what the estimators of ``explain`` say about each.

    python experiments/explain_bounds.py rate --paths 300 --first 8000000      # from captures of both ends
    python experiments/explain_bounds.py loss --paths 300 --first 5000000      # from captures of both ends
    python experiments/explain_bounds.py rtt --paths 300 --first 9000000       # from reports as iperf3's

``rate``: a receive window, random loss, an application or nothing holds the sender back; half of the links send packets
in groups, as mahimahi and cellular lines do. ``loss``: tail drop with random loss or bursts, nobody else on the path.
``rtt``: others, who began before, may keep the queue from becoming empty. The truth is what was drawn.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from explain_corpus import SIDES, _log, counted, drawn, port
from train_explain import FEW

from sawtooth import Scenario
from sawtooth.capture import read_capture
from sawtooth.engines.sim import Sim
from sawtooth.errors import SawtoothError
from sawtooth.io.table_store import whole
from sawtooth.whatif import Estimated, Observed, estimate, observe
from sawtooth.whatif.iperf3 import from_iperf3

LASTED_S = 12.0
BEFORE_S = 3.0
SECOND_S = 1.0
NEAR = 0.02
"""A rate this near is right: what its interval allows at least is half a percent, and no control fills a link."""
BLOCK = 128 * 1024
Case = dict[str, Any]


def unfilled(number: int, home: Path) -> Case | None:
    """A path that is seldom full: a window, losses or the application hold the flow back. Half of the links gather."""
    rng = np.random.default_rng([36, number])
    rate, rtt = _log(rng, 1e5, 100e6), _log(rng, 0.005, 0.2)
    mss = int(rng.choice([48, 536, 1448], p=[0.25, 0.25, 0.5]))
    frame = mss + 66
    bdp = rate * rtt / 8
    seconds = max(6.0, min(LASTED_S, 40_000 * frame * 8 / rate))
    path: dict[str, Any] = {
        "rtt": f"{rtt * 1e6:.0f} us",
        "queue": f"{max(4, round(bdp / frame * _log(rng, 0.2, 5)))} packets",
    }
    true_bps = rate
    gathers = rng.random() < 0.5
    host: dict[str, Any] = {"mss": mss, "delayed_ack": bool(rng.random() < 0.8)}
    for name in ("timestamps", "sack"):
        host[name] = bool(rng.random() < 0.8)
    held = str(rng.choice(["nothing", "window", "loss", "application"], p=[0.3, 0.25, 0.25, 0.2]))
    flow: dict[str, Any] = {"name": "own", "cc": str(rng.choice(["cubic", "reno", "bbr", "bbr3"]))}
    part = rng.uniform(0.05, 0.9)
    if held == "window":
        host["receive_buffer"] = f"{max(8192.0, part * bdp * 256 / 162):.0f} bytes"
    elif held == "loss":
        # The window at which Reno loses once per round: the square-root formula.
        path["loss"] = f"{min(5.0, 100 * 1.5 / max(2.0, part * bdp / frame) ** 2):.6f}%"
    elif held == "application":
        flow["source"] = {"kind": "rate", "rate": f"{rate * part * mss / frame:.0f} bit/s"}
    if gathers:
        # Mahimahi's deliveries of 1,500 bytes, by the whole millisecond.
        trace = home / "link.down"
        trace.write_text("".join(f"{at * 12e6 / rate:.0f}\n" for at in range(1, round(rate / 12e3) + 2)))
        path["trace"] = str(trace)
        # A delivery is of a frame, with 14 bytes of Ethernet.
        true_bps *= 1514 / 1500
    else:
        path["rate"] = f"{rate:.0f} bit/s"
    fields = {"duration": f"{seconds:.0f} s", "path": path, "host": host, "flows": [flow]}
    return _case(number, fields, {"rate_bps": true_bps, "group": f"{held}, {'in groups' if gathers else 'one by one'}"})


def lossy(number: int, home: Path) -> Case | None:
    """A path of the explain corpus with random loss or bursts, tail drop and no other traffic."""
    case = drawn(number)
    truth = case["truth"]
    if truth["kind"] != "tail drop" or truth["cross"] != "none" or truth["loss"] == "none":
        return None
    fields = case["scenario"] | {"duration": f"{LASTED_S} s"}
    return _case(number, fields, truth | {"group": truth["loss"]})


def _case(number: int, fields: Case, truth: Case) -> Case:
    return {"scenario": {"name": f"path-{number}", "interval": "500 ms", "seed": number + 1, **fields}, "truth": truth}


def captured(case: Case, home: Path) -> dict[str, Observed | str]:
    """What the captures of both ends show, or why they show nothing."""
    run = Sim(capture=home).run(Scenario(**case["scenario"]))
    case["truth"] |= counted(run)
    found: dict[str, Observed | str] = {}
    for side in SIDES:
        file = home / f"capture-{side}.pcap"
        connections = read_capture(file, 0).facts["connections"]
        at = min(range(len(connections)), key=lambda one: port(connections[one]))
        try:
            found[f"capture at the {side}"] = observe(file, connection=str(at))
        except SawtoothError as error:
            found[f"capture at the {side}"] = error.code
    return found


def crowded(number: int, home: Path) -> Case | None:
    """A path of ``explain_corpus`` whose others, if any, began up to ``BEFORE_S`` earlier."""
    rng = np.random.default_rng([37, number])
    case = drawn(number)
    own, *others = case["scenario"]["flows"]
    start = rng.uniform(0.0, BEFORE_S) if others else 0.0
    flows = [own | {"start": f"{start:.3f} s"}, *others]
    fields = case["scenario"] | {"flows": flows, "interval": "1 s", "duration": f"{start + LASTED_S:.3f} s"}
    group = "nobody else" if case["truth"]["cross"] == "none" else "others"
    return _case(number, fields, case["truth"] | {"group": group, "start_s": start})


def reported(case: Case, home: Path) -> dict[str, Observed | str]:
    """What iperf3 would have printed: smoothed round trips and what was delivered, second by second."""
    run = Sim().run(Scenario(**case["scenario"]))
    case["truth"] |= counted(run)
    at = run.meta["names"]["flow"].index("own")
    start = case["truth"]["start_s"]
    table, looks = (whole(run.tables, name) for name in ("intervals", "tcp_info"))
    table = table[(table["flow"] == at) & (table["t_s"] >= start + SECOND_S)]
    looks = looks[looks["flow"] == at]
    intervals, trips = [], []
    for t_s, goodput, again in zip(table["t_s"], table["goodput_bps"], table["retransmits"], strict=True):
        trip = looks["srtt_s"][looks["t_s"] <= t_s]
        trips.append(round(1e6 * float(trip[-1])) if len(trip) else 0)
        streams = [{"sender": True, "rtt": trips[-1], "retransmits": int(again)}]
        intervals.append({"streams": streams, "sum": {"seconds": SECOND_S, "bits_per_second": float(goodput)}})
    mean = float(table["goodput_bps"].mean())
    sums = {"seconds": len(intervals) * SECOND_S, "bits_per_second": mean, "bytes": mean * len(intervals) / 8}
    asked = {"protocol": "TCP", "num_streams": 1, "blksize": BLOCK}
    least = min((one for one in trips if one), default=0)
    end: Case = {"sum_received": sums, "sum_sent": sums | {"retransmits": int(table["retransmits"].sum())}}
    end |= {"streams": [{"sender": {"min_rtt": least, "max_rtt": max(trips)}}]}
    end |= {"sender_tcp_congestion": case["truth"]["cc"]}
    try:
        told = from_iperf3({"start": {"test_start": asked}, "intervals": intervals, "end": end})
    except SawtoothError as error:
        return {"iperf3": error.code}
    return {"iperf3": told}


KINDS: dict[str, tuple[Callable[[int, Path], Case | None], Callable[[Case, Path], dict[str, Observed | str]]]] = {
    "rate": (unfilled, captured),
    "loss": (lossy, captured),
    "rtt": (crowded, reported),
}
TRUTH = {"rate": "rate_bps", "loss": "share", "rtt": "rtt_s"}


def one(task: tuple[str, int]) -> list[Case]:
    name, number = task
    draw, look = KINDS[name]
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        if (case := draw(number, home)) is None:
            return []
        found = look(case, home)
    rows = []
    for source, observed in found.items():
        row = {"number": number, "source": source, "truth": case["truth"], "scenario": case["scenario"], "told": None}
        try:
            if not isinstance(observed, str):
                row["told"] = estimate(observed).quantities[name]
        except SawtoothError as error:
            row["why"] = error.code
        rows.append(row)
    return rows


def right(name: str, told: Estimated, true: float) -> bool:
    """Whether the interval or the bound holds; a rate within ``NEAR`` of a true one is right, too."""
    if name == "rate":
        low, high = told.low * (1 - NEAR), told.high * (1 + NEAR)
    else:
        low, high = told.low, told.high
    return (told.bound == "at most" or low <= true) and (told.bound == "at least" or true <= high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("quantity", choices=KINDS)
    parser.add_argument("--paths", type=int, default=300, help="how many numbers are drawn")
    parser.add_argument("--first", type=int, required=True, help="number of the first path")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--wrong", action="store_true", help="also print each answer that does not hold")
    options = parser.parse_args()
    name = options.quantity
    with ProcessPoolExecutor(options.workers) as pool:
        tasks = [(name, options.first + at) for at in range(options.paths)]
        rows = [row for found in pool.map(one, tasks, chunksize=4) for row in found]
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for row in rows:
        if name == "loss" and row["truth"]["lost"] <= FEW:
            continue
        for group in (row["truth"]["group"], "all"):
            groups[row["source"], group].append(row)
    print("| input | paths | answered | numbers | of these hold | median error | width | bounds | of these hold |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (source, group), found in sorted(groups.items()):
        told = [(row["told"], row["truth"][TRUTH[name]]) for row in found if row["told"] is not None]
        numbers = [(value, true) for value, true in told if not value.bound]
        bounds = [right(name, value, true) for value, true in told if value.bound]
        holds = [right(name, value, true) for value, true in numbers]
        errors = [abs(np.log(max(value.value, 1e-9) / true)) for value, true in numbers]
        widths = [np.log(max(value.high, 1e-9) / max(value.low, 1e-9)) for value, true in numbers]
        print(
            f"| {source} | {group} | {len(told)} of {len(found)} | {len(numbers)} | {_share(holds)} "
            f"| {np.median(errors or [0]):.1%} | {np.median(widths or [0]):.0%} | {len(bounds)} | {_share(bounds)} |"
        )
    for row in rows if options.wrong else []:
        told, true = row["told"], row["truth"][TRUTH[name]]
        if told is not None and not right(name, told, true):
            print(row["number"], row["source"], row["truth"]["group"], true, told, row["scenario"])


def _share(holds: list[bool]) -> str:
    return f"{np.mean(holds):.0%}" if holds else ""


if __name__ == "__main__":
    main()
