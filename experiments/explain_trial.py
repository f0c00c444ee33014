"""The trial of ``explain``: paths of a real kernel, each with what an engineer has of it, and the truth.

    python experiments/explain_trial.py measure DIRECTORY --paths 100 --first 300000
    python experiments/explain_trial.py judge DIRECTORY [DIRECTORY …]

``measure`` draws paths as ``explain_corpus.py`` does, runs a transfer on each, and keeps the captures of both ends and
what ``ss -tin`` printed at the sender once a second. iperf3 sends on the same path in the transfer's place, and its
report is kept. ``sim`` runs no programs, so it has neither. ``--others`` takes those of the paths that others
use. Then each control runs a new transfer on the same path, which is
the truth for what ``explain`` says that it would get. A path that is in DIRECTORY already is not run again. ``judge``
explains each file and prints tables as Markdown: how far the path's quantities are off, and how often 90% intervals
hold.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from explain_corpus import counted, drawn, each, port
from train_explain import FEW

from sawtooth import Run, Scenario
from sawtooth.capture import read_capture
from sawtooth.engines.kernel import Kernel
from sawtooth.engines.netns import Netns
from sawtooth.engines.sim import Sim
from sawtooth.errors import SawtoothError
from sawtooth.explain import explain
from sawtooth.scenario import Span
from sawtooth.whatif.runs import DRAWS

LOOKS = "sleep 2; while :; do ss -tin state established; echo; sleep 1; done"
"""Slow start is over after two seconds on most paths; ss counts from the start all the same."""
CONTROLS = ("cubic", "reno", "bbr")
OTHER_SEED = 1_000_000
IPERF3, PORT = "iperf3.json", "5301"
FINISHING_S = 5.0
"""How long iperf3 may take to begin and to exchange the results."""
ENGINES = {"sim": Sim, "kernel": Kernel, "netns": Netns}


def measure(task: tuple[int, str, str]) -> str:
    number, engine, directory = task
    target = Path(directory) / f"{number:06}"
    if target.exists():
        return _added(target, ENGINES[engine])
    case = drawn(number)
    fields = case["scenario"]
    if case["truth"]["cc"] not in CONTROLS:
        case["truth"]["cc"] = fields["flows"][0]["cc"] = CONTROLS[number % len(CONTROLS)]
    part = target.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    made = ENGINES[engine]
    looking = [{"host": "server", "name": "ss", "command": ["sh", "-c", LOOKS]}] if engine != "sim" else []
    try:
        run = made(capture=part).run(Scenario(**fields, programs=looking))
        if looking:
            (part / "ss.txt").write_bytes(_printed(run))
            (part / IPERF3).write_bytes(_iperf3(case, made))
        case["truth"] |= counted(run)
        case["goodput_bps"] = {}
        for cc in CONTROLS:
            flows = [fields["flows"][0] | {"cc": cc}, *fields["flows"][1:]]
            again = made().run(Scenario(**fields | {"flows": flows, "seed": fields["seed"] + OTHER_SEED}))
            case["goodput_bps"][cc] = _goodput(again)
    except SawtoothError as error:
        shutil.rmtree(part)
        return f"{number}: {error}"
    (part / "path.json").write_text(json.dumps(case))
    part.rename(target)
    return ""


def _added(home: Path, made: type[Kernel] | type[Netns] | type[Sim]) -> str:
    """The report of iperf3, for a path that was measured without it."""
    if not (home / IPERF3).exists() and made is not Sim:
        try:
            (home / IPERF3).write_bytes(_iperf3(json.loads((home / "path.json").read_text()), made))
        except SawtoothError as error:
            return f"{home.name}: {error}"
    return ""


def _iperf3(case: dict[str, Any], made: type[Kernel] | type[Netns]) -> bytes:
    """What the sender's iperf3 prints."""
    fields = case["scenario"]
    seconds = Span.parse(fields["duration"]).seconds
    sending = ["iperf3", "-p", PORT, "-c", "client", "-t", f"{seconds:.0f}", "-C", case["truth"]["cc"], "-J"]
    programs = [
        {"host": "client", "name": "receiver", "command": ["iperf3", "-p", PORT, "-s", "-1"], "ready": f"port {PORT}"},
        {"host": "server", "name": "sender", "command": sending},
    ]
    asked = fields | {"duration": f"{seconds + FINISHING_S:.2f} s", "flows": fields["flows"][1:], "programs": programs}
    return _printed(made().run(Scenario(**asked)))


def _printed(run: Run) -> bytes:
    """By the program at the sender."""
    programs = run.tables["programs"]
    return bytes(programs.loc[programs["host"] == "server", "stdout"].iloc[0])


def _goodput(run: Run) -> float:
    table = run.tables["intervals"]
    own = run.meta["names"]["flow"].index("own")
    return float(table.loc[table["flow"] == own, "goodput_bps"].mean())


INPUTS = {
    "capture at the sender": "capture-sender.pcap",
    "capture at the receiver": "capture-receiver.pcap",
    "ss": "ss.txt",
    "iperf3": IPERF3,
}


def explained(task: tuple[str, str, int]) -> dict[str, Any]:
    """What one input of a path says, beside the truth."""
    directory, file, draws = task
    home = Path(directory)
    case = json.loads((home / "path.json").read_text())
    connection = None if file == IPERF3 else _which(home, file)
    begun = time.process_time()
    try:
        told = explain([str(home / file)], connection=connection, draws=draws)
    except SawtoothError as error:
        return {"number": home.name, "case": case, "refused": f"{error.code}: {error.message}"}
    return {"number": home.name, "case": case, "told": told.describe(), "cpu_s": time.process_time() - begun}


def _which(home: Path, file: str) -> str:
    """The connection of the transfer: its index in a capture, its client in the output of ss."""
    capture = file if file.endswith(".pcap") else "capture-sender.pcap"
    connections = read_capture(home / capture, 0).facts["connections"]
    at = min(range(len(connections)), key=lambda one: port(connections[one]))
    return str(at) if capture == file else str(connections[at]["client"])


def judge(directories: list[Path], draws: int, workers: int) -> None:
    every_path = sorted(one for home in directories for one in home.iterdir() if (one / "path.json").exists())
    for called, file in INPUTS.items():
        paths = [one for one in every_path if (one / file).exists()]
        if not paths:
            continue
        with ProcessPoolExecutor(workers) as pool:
            every = list(pool.map(explained, [(str(one), file, draws) for one in paths]))
        found = [one for one in every if "told" in one]
        print(f"\n**{called}**: {len(every)} paths, {len(every) - len(found)} without an answer")
        if not found:
            continue
        seconds = [one["cpu_s"] for one in found]
        print(f"CPU time of an answer: median {np.median(seconds):.1f} s, most {max(seconds):.1f} s\n")
        _quantities(found)
        _goodputs(found)


def _plain(truth: dict[str, Any]) -> bool:
    return truth["kind"] == "tail drop" and truth["cross"] == "none"


def _since_data(case: dict[str, Any]) -> float:
    """What makes a run's mean goodput that since its first data, as ``explain`` counts it: without the handshake."""
    lasted = Span.parse(case["scenario"]["duration"]).seconds
    return lasted / (lasted - case["truth"]["rtt_s"])


def _quantities(found: list[dict[str, Any]]) -> None:
    print("| quantity | known | median error | 90th percentile | interval holds |\n|---|---|---|---|---|")
    asked = {
        "rate": ("rate_bps", lambda truth: _plain(truth) and truth["drops"] > FEW),
        "rtt": ("rtt_s", lambda truth: True),
        "queue": ("packets", lambda truth: _plain(truth) and truth["drops"] > FEW),
        "loss": ("share", lambda truth: _plain(truth) and truth["lost"] > FEW),
    }
    for name, (field, counts) in asked.items():
        rows = [(one["told"]["path"][name], one["case"]["truth"]) for one in found if name in one["told"]["path"]]
        rows = [(value, truth[field]) for value, truth in rows if counts(truth)]
        told = [(value, true) for value, true in rows if not value["bound"]]
        if not told:
            print(f"| {name} | 0 of {len(rows)} | | | |")
            continue
        errors = [abs(math.log(max(value["value"], 1e-9) / true)) for value, true in told]
        inside = [value["low"] <= true <= value["high"] for value, true in told]
        half, most = np.quantile(errors, (0.5, 0.9))
        print(f"| {name} | {len(told)} of {len(rows)} | {half:.1%} | {most:.1%} | {np.mean(inside):.0%} |")
    print()


def _goodputs(found: list[dict[str, Any]]) -> None:
    columns = ("paths", "observed", "predicted", "n", "median error", "90% interval holds", "its width")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    groups: dict[tuple[str, str, str], list[tuple[float, bool, float]]] = defaultdict(list)
    for one in found:
        truth = one["case"]["truth"]
        kind = "plain" if _plain(truth) else "others use it" if truth["cross"] != "none" else "managed or policed"
        for gain in one["told"]["would_give"]:
            if gain["change"] in CONTROLS and gain["goodput_bps"]:
                true = one["case"]["goodput_bps"][gain["change"]] * _since_data(one["case"])
                ratio = abs(math.log(gain["goodput_bps"] / true))
                told = (
                    ratio,
                    gain["low_bps"] <= true <= gain["high_bps"],
                    math.log(gain["high_bps"] / gain["low_bps"]),
                )
                seen = "bbr" if truth["cc"] == "bbr" else "cubic, reno"
                new = "bbr" if gain["change"] == "bbr" else "cubic, reno"
                for group in ((kind, seen, new), (kind, "all", "all")):
                    groups[group].append(told)
    for (kind, seen, new), rows in sorted(groups.items()):
        errors, inside, widths = zip(*rows, strict=True)
        print(
            f"| {kind} | {seen} | {new} | {len(rows)} | {np.median(errors):.1%} | {np.mean(inside):.0%} "
            f"| {np.median(widths):.0%} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("directory", type=Path)
    measuring.add_argument("--paths", type=int, default=100)
    measuring.add_argument("--first", type=int, default=300_000, help="number of the first path")
    measuring.add_argument("--engine", choices=tuple(ENGINES), default="kernel")
    measuring.add_argument("--others", action="store_true", help="only paths that others use")
    measuring.add_argument("--workers", type=int, default=2)
    judging = commands.add_parser("judge")
    judging.add_argument("directories", type=Path, nargs="+")
    judging.add_argument("--draws", type=int, default=DRAWS)
    judging.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.command == "judge":
        judge(options.directories, options.draws, options.workers)
        return
    options.directory.mkdir(parents=True, exist_ok=True)
    numbers = [options.first + at for at in range(options.paths)]
    if options.others:
        numbers = [one for one in numbers if drawn(one)["truth"]["cross"] != "none"]
    tasks = [(one, options.engine, str(options.directory)) for one in numbers]
    each(measure, tasks, options.workers)


if __name__ == "__main__":
    main()
