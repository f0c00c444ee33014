"""The trial of ``explain``: paths that nothing was trained on, what an engineer has of each, and the truth.

    python experiments/explain_trial.py measure DIRECTORY --paths 73 --first 900000                   # kernel
    python experiments/explain_trial.py measure DIRECTORY --paths 30 --first 950000 --kernel v6.1     # another kernel
    python experiments/explain_trial.py measure DIRECTORY --paths 60 --first 970000 --engine netns    # this host's
    python experiments/explain_trial.py convert TRACES DIRECTORY                                      # published
    python experiments/explain_trial.py margins DIRECTORY [DIRECTORY …] --label NAME
    python experiments/explain_trial.py judge DIRECTORY [DIRECTORY …] --label NAME [--beside EARLIER]

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

``judge`` explains each file and prints a table as Markdown. Answers are kept beside the files, under the label, and
read from there if they exist: give each version of the code its own label, to judge both on the same paths.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import shutil
import struct
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from explain_corpus import counted, drawn, each, port
from train_explain import FEW, TRUTHS
from train_explain import PART as PART_OF

from sawtooth import Run, Scenario
from sawtooth.capture import read_capture
from sawtooth.engines.kernel import Kernel, series
from sawtooth.engines.netns import Netns
from sawtooth.engines.sim import Sim
from sawtooth.errors import SawtoothError
from sawtooth.explain import explain
from sawtooth.scenario import Span
from sawtooth.whatif.replay import BY_TOTALS, PART
from sawtooth.whatif.runs import DRAWS

LOOKS = "sleep 2; while :; do ss -tin state established; echo; sleep 1; done"
"""Slow start is over after two seconds on most paths; ss counts from the start all the same."""
CONTROLS = ("cubic", "reno", "bbr")
ENGINES: dict[str, Any] = {"kernel": Kernel, "netns": Netns, "sim": Sim}
OTHER_SEED = 1_000_000
IPERF3, PUBLISHED, PORT = "iperf3.json", "published.pcap", 5301
FINISHING_S = 5.0
"""How long iperf3 may take to begin and to exchange the results."""
LONGEST_S = 12.0
Row = dict[str, Any]


def short_case(number: int) -> tuple[dict[str, Any], int]:
    """A drawn path with one of ``CONTROLS``, and its duration in s, at most ``LONGEST_S``."""
    case = drawn(number)
    fields, truth = case["scenario"], case["truth"]
    if truth["cc"] not in CONTROLS:
        truth["cc"] = fields["flows"][0]["cc"] = CONTROLS[number % len(CONTROLS)]
    seconds = round(min(Span.parse(fields["duration"]).seconds, LONGEST_S))
    fields["duration"] = f"{seconds} s"
    return case, seconds


def measure(task: tuple[int, str, str, dict[str, Any]]) -> str:
    number, engine, directory, host = task
    target = Path(directory) / f"{number:06}"
    if target.exists():
        return ""
    case, seconds = short_case(number)
    fields, truth = case["scenario"], case["truth"]
    fields["host"] = host
    part = target.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    made = ENGINES[engine]
    looking = [{"host": "server", "name": "ss", "command": ["sh", "-c", LOOKS]}]
    try:
        # The simulator runs no programs.
        run = made(capture=part).run(Scenario(**fields, programs=[] if made is Sim else looking))
        if made is not Sim:
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
        if named is None:
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


def judge(directories: list[Path], draws: int, workers: int, label: str, beside: str) -> None:
    """Prints a table; each cell has what ``label`` says, after what ``beside`` says, if that is given and different."""
    columns: dict[str, list[list[Row]]] = {}
    for called, file in INPUTS.items():
        paths = _having(directories, file)
        if not paths:
            continue
        with ProcessPoolExecutor(workers) as pool:
            made = list(pool.map(explained, [(str(one), file, draws, label) for one in paths]))
        kept = [one for one in paths if beside and (one / f"{file}.{beside}.told").exists()]
        versions = [made, [explained((str(one), file, draws, beside)) for one in kept]]
        columns[called] = [[one for one in found if "told" in one] for found in versions if found][::-1]
        refused = len(made) - len(columns[called][-1])
        print(f"{called}: {len(made)} paths, {refused} without an answer", file=sys.stderr)
    print(f"| part | {' | '.join(columns)} |\n|{'---|' * (1 + len(columns))}")
    for name, measure in PARTS.items():
        cells = [" → ".join(dict.fromkeys(measure(version) for version in versions)) for versions in columns.values()]
        if any(cells):
            print(f"| {name} | {' | '.join(cells)} |")


def _plain(truth: dict[str, Any]) -> bool:
    return bool(truth["kind"] == "tail drop" and truth["cross"] == "none")


def _since_data(case: dict[str, Any]) -> float:
    """What makes a run's mean goodput that since its first data, as ``explain`` counts it: without the handshake."""
    lasted = Span.parse(case["scenario"]["duration"]).seconds
    return float(lasted / (lasted - case["truth"]["rtt_s"]))


def _full(truth: dict[str, Any]) -> bool:
    """Whether the rate and the queue can be seen: a tail-drop queue was full, and nobody else used it."""
    return _plain(truth) and truth["drops"] > FEW


def _values(
    rows: list[Row], name: str, field: str, counts: Callable[[dict[str, Any]], bool]
) -> list[tuple[Row, float]]:
    """What is said of a quantity, beside its truth where that is known."""
    of = [one for one in rows if name in one["told"]["path"] and counts(one["case"]["truth"])]
    return [(one["told"]["path"][name], one["case"]["truth"][field]) for one in of]


def _near(rows: list[Row], name: str, field: str, within: float) -> str:
    """How many of the numbers are near the truth, and the median error."""
    told = [(value, true) for value, true in _values(rows, name, field, _full) if not value["bound"]]
    errors = [abs(math.log(max(value["value"], 1e-9) / true)) for value, true in told]
    return f"{_share([one <= math.log1p(within) for one in errors])}, {np.median(errors):.1%}" if errors else ""


def _inside(rows: list[Row], name: str, field: str, counts: Callable[[dict[str, Any]], bool]) -> str:
    told = [(value, true) for value, true in _values(rows, name, field, counts) if not value["bound"]]
    return _share([value["low"] <= true <= value["high"] for value, true in told])


def _bounded(rows: list[Row], name: str, field: str, counts: Callable[[dict[str, Any]], bool]) -> str:
    told = [(value, true) for value, true in _values(rows, name, field, counts) if value["bound"]]
    return _share(
        [true >= value["low"] if value["bound"] == "at least" else true <= value["high"] for value, true in told]
    )


def _right(rows: list[Row], answer: Callable[[Row], Any], truth: Callable[[dict[str, Any]], Any]) -> str:
    """How many of the answers are right, and how many there are of what can be seen."""
    pairs = [(answer(one["told"]), truth(one["case"]["truth"])) for one in rows]
    pairs = [(told, true) for told, true in pairs if true is not None]
    right = _share([told == true for told, true in pairs if told is not None])
    return f"{right}/{len(pairs)}" if right else ""


def lost_by(truth: dict[str, Any]) -> tuple[bool, str] | None:
    """Whether the queue or a policer dropped, and how the path lost. A cause with few losses is not counted."""
    dropped, lost = truth["drops"] + truth["policed"], truth["lost"]
    queue, path = (one > FEW and one > PART_OF * (dropped + lost) for one in (dropped, lost))
    return (queue, truth["loss"] if path else "") if dropped + lost > FEW else None


def _lost_by(told: Row) -> tuple[bool, str] | None:
    answer = told["lost"]["kind"]["answer"]
    if answer in (None, "none", "reordering") or "the path or" in answer:
        return None
    path = next((one for one in ("random", "bursts") if one in answer), "")
    return any(one in answer for one in ("queue", "policer")), path


def _goodputs(rows: list[Row], group: str) -> str:
    """How many intervals hold the new transfers, the median error, and the median width ln(high/low)."""
    holds, errors, widths = [], [], []
    for one in rows:
        truth = one["case"]["truth"]
        kind = (
            "nobody else, tail drop"
            if _plain(truth)
            else "others"
            if truth["cross"] != "none"
            else "nobody else, managed or policed"
        )
        for gain in one["told"]["would_give"]:
            if (
                gain["change"] not in one["case"]["goodput_bps"]
                or not gain["goodput_bps"]
                or group not in (kind, "all")
            ):
                continue
            true = one["case"]["goodput_bps"][gain["change"]] * _since_data(one["case"])
            holds.append(gain["low_bps"] <= true <= gain["high_bps"])
            errors.append(abs(math.log(gain["goodput_bps"] / true)))
            widths.append(math.log(gain["high_bps"] / gain["low_bps"]))
    return f"{_share(holds)}, {np.median(errors):.1%}, {np.median(widths):.0%}" if holds else ""


def _share(holds: list[bool]) -> str:
    return f"{np.mean(holds):.0%} of {len(holds)}" if holds else ""


def _kind(name: str) -> Callable[[list[Row]], str]:
    return lambda rows: _right(_measured(rows), lambda told: told["path"][name]["answer"], TRUTHS[name])


def _measured(rows: list[Row]) -> list[Row]:
    """Of a published trace, only the control and the link's nominal rate are known."""
    return [one for one in rows if one["case"]["truth"]["kind"] != "unknown"]


def _published(truth: dict[str, Any]) -> bool:
    return bool(truth["kind"] == "unknown")


PARTS: dict[str, Callable[[list[Row]], str]] = {
    "rate within 3%, median error": lambda rows: _near(rows, "rate", "rate_bps", 0.03),
    "rate's interval holds": lambda rows: _inside(rows, "rate", "rate_bps", _full),
    "rate's bound holds": lambda rows: _bounded(rows, "rate", "rate_bps", _full),
    "queue within 15%, median error": lambda rows: _near(rows, "queue", "packets", 0.15),
    "queue's interval holds": lambda rows: _inside(rows, "queue", "packets", _full),
    "queue's bound holds": lambda rows: _bounded(rows, "queue", "packets", _full),
    "base RTT's interval holds": lambda rows: _inside(rows, "rtt", "rtt_s", lambda truth: "rtt_s" in truth),
    "base RTT's bound holds": lambda rows: _bounded(rows, "rtt", "rtt_s", lambda truth: "rtt_s" in truth),
    "queue kind (bar 90%)": _kind("queue_kind"),
    "loss process (bar 95%)": _kind("loss_process"),
    "lost by": lambda rows: _right(_measured(rows), _lost_by, lost_by),
    "other traffic (bar 85%)": _kind("cross_traffic"),
    "control": lambda rows: _right(rows, lambda told: told["control"]["answer"], lambda truth: truth["cc"]),
    **{
        f"goodput (bar 86 to 94%), {group}": lambda rows, group=group: _goodputs(rows, group)
        for group in ("nobody else, tail drop", "nobody else, managed or policed", "others", "all")
    },
    "interval holds a published link's rate": lambda rows: _inside(rows, "rate", "rate_bps", _published),
    "bound holds a published link's rate": lambda rows: _bounded(rows, "rate", "rate_bps", _published),
    "CPU time: median, most": lambda rows: (
        f"{np.median([one['cpu_s'] for one in rows]):.1f} s, {max(one['cpu_s'] for one in rows):.1f} s" if rows else ""
    ),
}
"""Each row of the table. Shares are of the answers; "/N" says how many paths could be answered."""


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
    measuring.add_argument("--engine", choices=tuple(ENGINES), default="kernel")
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
        judging.add_argument("--beside", default="", help="label of another version, whose kept answers are shown, too")
    options = parser.parse_args()
    if options.command == "judge":
        judge(options.directories, options.draws, options.workers, options.label, options.beside)
        return
    if options.command == "margins":
        margins(options.directories, options.draws, options.workers, options.label)
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
