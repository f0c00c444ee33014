"""The trial of ``explain``: paths that nothing was trained on, what an engineer has of each, and the truth.

    python experiments/explain_trial.py measure DIRECTORY --paths 73 --first 900000                   # kernel
    python experiments/explain_trial.py measure DIRECTORY --paths 30 --first 950000 --kernel v6.1     # another kernel
    python experiments/explain_trial.py measure DIRECTORY --paths 60 --first 970000 --engine netns    # this host's
    python experiments/explain_trial.py convert TRACES DIRECTORY                                      # published
    python experiments/explain_trial.py margins DIRECTORY [DIRECTORY …] --label NAME
    python experiments/explain_trial.py judge DIRECTORY [DIRECTORY …] --label NAME

``measure`` draws paths as ``explain_corpus.py`` does, with transfers of at most ``LONGEST_S``, and keeps the
captures of both ends and what ``ss -tin`` printed at the sender once a second. iperf3 sends on the same path in the
transfer's place, and its report is kept. Then each control runs a new transfer there, which is the truth for what
``explain`` says that it would get. ``--others`` takes those of the paths that others use. A path that is in DIRECTORY
already is not run again. ``netns`` refuses paths whose parts this host's kernel lacks.

``convert`` makes captures of published traces, LINK/CONTROL.csv, as tshark printed them: times, numbers and lengths,
without SACK and timestamps. Of these only the control and the link's rate are known. The classifier of controls was
trained on these links; ``python -m fidelity.field labelled --left-out`` judges it.

``margins`` explains ``ss`` and iperf3 without the margins of ``replay.BY_TOTALS``, and prints those that would have
made their intervals hold, with the number of answers and of paths. It takes other paths than those that are judged.

``judge`` explains each file and prints tables as Markdown. Answers are kept beside the files, under the label, and read
from there if they exist: give each version of the code its own label, to judge both on the same paths.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import shutil
import struct
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from explain_corpus import counted, drawn, each, port
from train_explain import FEW, TRUTHS

from sawtooth import Run, Scenario
from sawtooth.capture import read_capture
from sawtooth.engines.kernel import Kernel, series
from sawtooth.engines.netns import Netns
from sawtooth.errors import SawtoothError
from sawtooth.explain import explain
from sawtooth.scenario import Span
from sawtooth.whatif.replay import BY_TOTALS, PART
from sawtooth.whatif.runs import DRAWS

LOOKS = "sleep 2; while :; do ss -tin state established; echo; sleep 1; done"
"""Slow start is over after two seconds on most paths; ss counts from the start all the same."""
CONTROLS = ("cubic", "reno", "bbr")
OTHER_SEED = 1_000_000
IPERF3, PUBLISHED, PORT = "iperf3.json", "published.pcap", 5301
FINISHING_S = 5.0
"""How long iperf3 may take to begin and to exchange the results."""
LONGEST_S = 12.0
WITHIN, FAR = 0.03, 0.9
"""How far above the link's nominal rate is near it, and the part of it that is far below."""
SLOW_S = 2.0
SOME = ("reno", "cubic", "bbr", "vegas", "westwood", "htcp")
"""Congestion controls whose published traces are converted."""


def measure(task: tuple[int, str, str, dict[str, Any]]) -> str:
    number, engine, directory, host = task
    target = Path(directory) / f"{number:06}"
    if target.exists():
        return ""
    case = drawn(number)
    fields, truth = case["scenario"], case["truth"]
    if truth["cc"] not in CONTROLS:
        truth["cc"] = fields["flows"][0]["cc"] = CONTROLS[number % len(CONTROLS)]
    seconds = round(min(Span.parse(fields["duration"]).seconds, LONGEST_S))
    fields |= {"duration": f"{seconds} s", "host": host}
    part = target.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    made = Kernel if engine == "kernel" else Netns
    looking = [{"host": "server", "name": "ss", "command": ["sh", "-c", LOOKS]}]
    try:
        run = made(capture=part).run(Scenario(**fields, programs=looking))
        (part / "ss.txt").write_bytes(_printed(run))
        (part / IPERF3).write_bytes(_printed(made().run(_by_iperf3(case, seconds))))
        truth |= counted(run)
        flows = {cc: [fields["flows"][0] | {"cc": cc}, *fields["flows"][1:]] for cc in CONTROLS}
        seed = fields["seed"] + OTHER_SEED
        again = [Scenario(**fields | {"flows": one, "seed": seed}) for one in flows.values()]
        runs = series(again) if engine == "kernel" else [made().run(one) for one in again]
        case["goodput_bps"] = {cc: _goodput(one) for cc, one in zip(CONTROLS, runs, strict=True)}
    except SawtoothError as error:
        shutil.rmtree(part)
        return f"{number}: {error}"
    (part / "path.json").write_text(json.dumps(case))
    part.rename(target)
    return ""


def _by_iperf3(case: dict[str, Any], seconds: int) -> Scenario:
    """iperf3 in the transfer's place."""
    fields = case["scenario"]
    server, client = f"iperf3 -p {PORT} -s -1", f"iperf3 -p {PORT} -c client -t {seconds} -C {case['truth']['cc']} -J"
    programs = [
        {"host": "client", "name": "receiver", "command": server.split(), "ready": f"port {PORT}"},
        {"host": "server", "name": "sender", "command": client.split()},
    ]
    asked = {"duration": f"{seconds + FINISHING_S} s", "flows": fields["flows"][1:], "programs": programs}
    return Scenario(**fields | asked)


def _printed(run: Run) -> bytes:
    """By the program at the sender."""
    programs = run.tables["programs"]
    return bytes(programs.loc[programs["host"] == "server", "stdout"].iloc[0])


def _goodput(run: Run | SawtoothError) -> float:
    if isinstance(run, SawtoothError):
        raise run
    table = run.tables["intervals"]
    own = run.meta["names"]["flow"].index("own")
    return float(table.loc[table["flow"] == own, "goodput_bps"].mean())


def convert(traces: Path, directory: Path) -> None:
    for file in sorted(traces.rglob("*.csv")):
        named = re.fullmatch(r"[0-9]+-ms-([0-9]+)-kbps", file.parent.name)
        if named is None or file.stem not in SOME:
            continue
        home = directory / f"{file.parent.name}-{file.stem}"
        home.mkdir(parents=True, exist_ok=True)
        (home / PUBLISHED).write_bytes(_capture(file))
        truth = {"kind": "unknown", "cross": "none", "cc": file.stem, "rate_bps": float(named[1]) * 1e3}
        (home / "path.json").write_text(json.dumps({"scenario": {}, "truth": truth, "goodput_bps": {}}))


def _capture(file: Path) -> bytes:
    """A pcap file of bare IP packets, without their payload."""
    written = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 101)]
    with file.open(newline="") as opened:
        for row in csv.DictReader(opened):
            if not row["tcp.seq"]:
                continue
            when, size = float(row["frame.time_relative"]), int(row["frame.len"])
            seq, ack, data = (int(row[name] or 0) for name in ("tcp.seq", "tcp.ack", "tcp.len"))
            ports = int(row["tcp.srcport"]), int(row["tcp.dstport"])
            out = ports[0] > ports[1]
            begins = data == 0 and seq == 0
            # A window scale of 14, so that no window limits; the rest is what pads.
            options = (b"\x03\x03\x0e" if begins else b"").ljust(size - 40 - data, b"\x01")
            flags = (0x02 if begins else 0) | (0 if begins and ack == 0 else 0x10)
            ends = (0x0A000001, 0x0A000005) if out else (0x0A000005, 0x0A000001)
            head = struct.pack(">BBHHHBBHII", 0x45, 0, size, 0, 0x4000, 64, 6, 0, *ends)
            words = (20 + len(options)) // 4 << 4
            packet = head + struct.pack(">HHIIBBHHH", *ports, seq, ack, words, flags, 65535, 0, 0) + options
            written.append(struct.pack("<IIII", int(when), round(when % 1 * 1e6), len(packet), size) + packet)
    return b"".join(written)


INPUTS = {
    "capture at the sender": "capture-sender.pcap",
    "capture at the receiver": "capture-receiver.pcap",
    "ss": "ss.txt",
    "iperf3": IPERF3,
    "published": PUBLISHED,
}


def explained(task: tuple[str, str, int, str]) -> dict[str, Any]:
    """What one input of a path says, beside the truth. It is kept under the label."""
    directory, file, draws, label = task
    home = Path(directory)
    kept = home / f"{file}.{label}.told"
    case = json.loads((home / "path.json").read_text())
    if kept.exists():
        return {"number": home.name, "case": case, **json.loads(kept.read_text())}
    connection = None if file in (IPERF3, PUBLISHED) else _which(home, file)
    begun = time.process_time()
    try:
        told = explain([str(home / file)], connection=connection, draws=draws).describe()
        found: dict[str, Any] = {"told": told, "cpu_s": time.process_time() - begun}
    except SawtoothError as error:
        found = {"refused": f"{error.code}: {error.message}"}
    kept.write_text(json.dumps(found))
    return {"number": home.name, "case": case, **found}


def _which(home: Path, file: str) -> str:
    """The connection of the transfer: its index in a capture, its client in the output of ss."""
    capture = file if file.endswith(".pcap") else "capture-sender.pcap"
    connections = read_capture(home / capture, 0).facts["connections"]
    at = min(range(len(connections)), key=lambda one: port(connections[one]))
    return str(at) if capture == file else str(connections[at]["client"])


def _having(directories: list[Path], file: str) -> list[Path]:
    """The paths that have such a file."""
    return sorted(one for home in directories for one in home.iterdir() if (one / file).exists())


def judge(directories: list[Path], draws: int, workers: int, label: str) -> None:
    for called, file in INPUTS.items():
        paths = _having(directories, file)
        if not paths:
            continue
        with ProcessPoolExecutor(workers) as pool:
            every = list(pool.map(explained, [(str(one), file, draws, label) for one in paths]))
        found = [one for one in every if "told" in one]
        print(f"\n**{called}**: {len(every)} paths, {len(every) - len(found)} without an answer")
        if not found:
            continue
        seconds = [one["cpu_s"] for one in found]
        slow = np.mean([one > SLOW_S for one in seconds])
        most = f"most {max(seconds):.1f} s, {slow:.0%} above {SLOW_S:g} s"
        print(f"CPU time of an answer: median {np.median(seconds):.1f} s, {most}\n")
        if file == PUBLISHED:
            _links(found)
        else:
            _quantities(found)
            _goodputs(found)
        _choices(found)


def _links(found: list[dict[str, Any]]) -> None:
    """The rate of each published trace beside the link's nominal one, which is all that is known of its path."""
    rows = [
        (one["told"]["path"]["rate"], one["case"]["truth"]["rate_bps"])
        for one in found
        if "rate" in one["told"]["path"]
    ]
    if not rows:
        return
    ratios = [value["value"] / true for value, true in rows]
    numbers = [value["low"] <= true <= value["high"] for value, true in rows if not value["bound"]]
    print(
        f"of {len(rows)} rates, {sum(one <= 1 + WITHIN for one in ratios)} are at most {WITHIN:.0%} above the link's, "
        f"{sum(one < FAR for one in ratios)} are below {FAR:g} of it; median {np.median(ratios):.2f} of it; "
        f"{len(numbers)} are numbers, and the intervals of {sum(numbers)} of these hold the link's\n"
    )


def _plain(truth: dict[str, Any]) -> bool:
    return truth["kind"] == "tail drop" and truth["cross"] == "none"


def _since_data(case: dict[str, Any]) -> float:
    """What makes a run's mean goodput that since its first data, as ``explain`` counts it: without the handshake."""
    lasted = Span.parse(case["scenario"]["duration"]).seconds
    return lasted / (lasted - case["truth"]["rtt_s"])


def _full(truth: dict[str, Any]) -> bool:
    return _plain(truth) and truth["drops"] > FEW


QUANTITIES: dict[str, tuple[str, Callable[[dict[str, Any]], bool]]] = {
    "rate": ("rate_bps", _full),
    "rtt": ("rtt_s", lambda truth: True),
    "queue": ("packets", _full),
    "loss": ("share", lambda truth: _plain(truth) and truth["lost"] > FEW),
}
"""Each with its truth, and where that is known: rate and queue where a tail-drop queue was full and nobody else used
it."""


def _quantities(found: list[dict[str, Any]]) -> None:
    print(
        "| quantity | a number | median error | 90th percentile | interval holds | bound holds |\n"
        "|---|---|---|---|---|---|"
    )
    for name, (field, counts) in QUANTITIES.items():
        rows = [
            (one["told"]["path"][name], one["case"]["truth"][field])
            for one in found
            if name in one["told"]["path"] and counts(one["case"]["truth"])
        ]
        told = [(value, true) for value, true in rows if not value["bound"]]
        bounds = [
            true >= value["low"] if value["bound"] == "at least" else true <= value["high"]
            for value, true in rows
            if value["bound"]
        ]
        holds = f"{np.mean(bounds):.0%} of {len(bounds)}" if bounds else ""
        if not told:
            print(f"| {name} | 0 of {len(rows)} | | | | {holds} |")
            continue
        errors = [abs(math.log(max(value["value"], 1e-9) / true)) for value, true in told]
        inside = [value["low"] <= true <= value["high"] for value, true in told]
        half, most = np.quantile(errors, (0.5, 0.9))
        print(f"| {name} | {len(told)} of {len(rows)} | {half:.1%} | {most:.1%} | {np.mean(inside):.0%} | {holds} |")
    print()


def _choices(found: list[dict[str, Any]]) -> None:
    """Kinds and the control: of what can be seen, what is answered, and how much of that is right."""
    print("| part | can be seen | answered | right of what is answered |\n|---|---|---|---|")
    parts = {name: (lambda told, name=name: told["path"][name], truth) for name, truth in TRUTHS.items()}
    for name, (told, truth) in (parts | {"control": (lambda told: told["control"], lambda truth: truth["cc"])}).items():
        if name != "control" and found[0]["case"]["truth"]["kind"] == "unknown":
            continue
        rows = [(told(one["told"])["answer"], truth(one["case"]["truth"])) for one in found]
        rows = [(answer, true) for answer, true in rows if true is not None]
        answered = [answer == true for answer, true in rows if answer is not None]
        right = f"{np.mean(answered):.1%} of {len(answered)}" if answered else ""
        print(f"| {name} | {len(rows)} | {len(answered) / max(1, len(rows)):.0%} | {right} |")
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
    answered = sum(len(rows) for (_, seen, _), rows in groups.items() if seen == "all")
    print(f"\nanswered: {answered} of {len(CONTROLS) * len(found)}\n")


def _without_margins() -> None:
    """In a worker: intervals of totals as the replays give them."""
    BY_TOTALS.update(dict.fromkeys(BY_TOTALS, (0.0, 0.0)))


def margins(directories: list[Path], draws: int, workers: int, label: str) -> None:
    files = [(home, file) for file in ("ss.txt", IPERF3) for home in _having(directories, file)]
    tasks = [(str(home), file, draws, f"{label}, without margins") for home, file in files]
    short: dict[str, list[tuple[float, float]]] = defaultdict(list)
    paths: dict[str, set[str]] = defaultdict(set)
    with ProcessPoolExecutor(workers, initializer=_without_margins) as pool:
        for one in pool.map(explained, tasks):
            for gain in one["told"]["would_give"] if "told" in one else []:
                if gain["change"] not in CONTROLS or not gain["goodput_bps"]:
                    continue
                true = one["case"]["goodput_bps"][gain["change"]] * _since_data(one["case"])
                relation = "the same" if gain["change"] == one["case"]["truth"]["cc"] else "another"
                short[relation].append((math.log(gain["low_bps"] / true), math.log(true / gain["high_bps"])))
                paths[relation].add(one["number"])
    least = [0.0, 0.0]
    # What another control gets is never known better than what the observed one gets.
    for relation in ("the same", "another"):
        ends = short[relation]
        rank = min(len(ends), math.ceil((1 - PART) * (len(ends) + 1))) - 1
        alone = [sorted(end)[rank] for end in zip(*ends, strict=True)]
        least = [max(pair) for pair in zip(least, alone, strict=True)]
        print(f"{relation}: {np.round(least, 3)} from {len(ends)} answers on {len(paths[relation])} paths")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("directory", type=Path)
    measuring.add_argument("--paths", type=int, default=100, help="how many numbers are drawn")
    measuring.add_argument("--first", type=int, default=300_000, help="number of the first path")
    measuring.add_argument("--engine", choices=("kernel", "netns"), default="kernel")
    measuring.add_argument("--kernel", help="a kernel of sawtooth kernel list, for the engine kernel")
    measuring.add_argument("--hz", type=int, help="its ticks per second (default: 250)")
    measuring.add_argument("--others", action="store_true", help="only paths that others use")
    measuring.add_argument("--workers", type=int, default=2, help="paths that run at a time")
    converting = commands.add_parser("convert")
    converting.add_argument("traces", type=Path, help="directory with LINK/CONTROL.csv")
    converting.add_argument("directory", type=Path, help="where the captures go")
    for name in ("judge", "margins"):
        judging = commands.add_parser(name)
        judging.add_argument("directories", type=Path, nargs="+")
        judging.add_argument("--draws", type=int, default=DRAWS, help="as of explain")
        judging.add_argument("--workers", type=int, default=2, help="answers that are made at a time")
        judging.add_argument("--label", required=True, help="name of this version of the code; its answers are kept")
    options = parser.parse_args()
    if options.command in ("judge", "margins"):
        {"judge": judge, "margins": margins}[options.command](
            options.directories, options.draws, options.workers, options.label
        )
        return
    if options.command == "convert":
        convert(options.traces, options.directory)
        return
    host: dict[str, Any] = {}
    if options.engine == "kernel":
        host = {"hz": options.hz or 250} | ({"kernel": options.kernel} if options.kernel else {})
    elif options.kernel or options.hz:
        parser.error("--kernel and --hz are of the engine kernel: leave them out, or give --engine kernel")
    options.directory.mkdir(parents=True, exist_ok=True)
    numbers = [options.first + at for at in range(options.paths)]
    if options.others:
        numbers = [one for one in numbers if drawn(one)["truth"]["cross"] != "none"]
    tasks = [(one, options.engine, str(options.directory), host) for one in numbers]
    each(measure, tasks, options.workers)


if __name__ == "__main__":
    main()
