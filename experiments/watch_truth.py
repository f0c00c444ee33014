"""How near `sawtooth watch` is to the truth: transfers between namespaces, a path of known delay, rate and loss.

    sudo .venv/bin/python experiments/watch_truth.py --out samples.csv  # this host's kernel, real time
    .venv/bin/python experiments/watch_truth.py --guest --out samples.csv --whatif whatif.csv   # Linux 6.12, virtual
    time .venv/bin/python experiments/watch_truth.py --guest --draw 20 --seed 7 --out unseen.csv --whatif unseen-
    whatif.csv

The path is a process that carries packets (watch_path.py): it knows what it dropped, when each segment left and
when its acknowledgement came. ``watch`` samples every second with a window of ten, from the eighth second on.
``--whatif`` also asks what each connection that the network holds back would get, and lets it happen on the engine
kernel: the other controls, and the same one without the random loss, on the same path. Real time needs root.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import json
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from watch_path import PORT, Carrier, Situation, carried, transfer
from watch_situations import ANY, drawn, known

from sawtooth import Scenario
from sawtooth.engines.kernel import Kernel
from sawtooth.kernel import Guest, build
from sawtooth.stats.throughput import after_warmup
from sawtooth.watch import Connection, Connections, Watcher
from sawtooth.watch.expected import expect, observed
from sawtooth.whatif.from_totals import MILLISECOND, in_milliseconds

BEFORE_S, SAMPLES = 8, 10
"""The start is over then, as in the replays of what-ifs."""
STEADY_S, MEASURED_S = 8, 20
"""Duration of a transfer that is the truth of a what-if: after its start, like the replays'."""
CONTROLS = ("reno", "cubic", "bbr")
FULL, FREE = 0.95, 0.85
"""Shares of the time that a bottleneck is busy: above the first, the path limits a connection; below the second, it
does not.
"""
Row = dict[str, Any]


@contextlib.contextmanager
def transferred(one: Situation) -> Iterator[tuple[str, Carrier]]:
    """A running transfer; yields the sender's namespace."""
    with carried(one) as (names, path):
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            try:
                transfer(one, names)
            finally:
                os._exit(0)
        try:
            yield names[0], path
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def sample(one: Situation) -> Row:
    """What watch reports, and what the path did meanwhile."""
    with transferred(one) as (namespace, path), Connections(namespace) as source:
        watcher = Watcher(source, filter=f"dport = :{PORT}", samples=SAMPLES)
        time.sleep(BEFORE_S)
        before = path.sent, path.dropped, path.overflowed, path.busy_s
        begun, fastest = time.monotonic(), 0.0
        told: list[Row] = []
        for at in range(SAMPLES + 1):
            time.sleep(max(0.0, begun + at - time.monotonic()))
            (found,) = watcher.sample().first()
            fastest = max(fastest, found.delivery_bps or 0, found.mean_bps or 0)
            told.append(found.describe())
        ended = time.monotonic()
        after = path.sent, path.dropped, path.overflowed, path.busy_s
    sent, dropped, overflowed, busy_s = (now - then for now, then in zip(after, before, strict=True))
    busy = busy_s / (ended - begun)
    right = one.limit
    if right == ANY:
        right = ("path",) if busy >= FULL else ("congestion window",) if busy < FREE else ANY
    truth = (dropped + overflowed) / max(1, sent)
    low, high = found.loss_low or 0, found.loss_high or 0
    least, kept = min(newest for _, _, newest in path.trips.samples), found.rtt_min_s or 0
    # RTTs of whole milliseconds come from timestamps.
    at_most = kept + (MILLISECOND if in_milliseconds(kept) else 0)
    smoothed = path.trips.smoothed(ended)
    mean = path.trips.mean_smoothed(begun, ended)
    return {
        "situation": one.name,
        "limit": found.limit,
        "limit_true": " or ".join(right),
        "limit_right": int(found.limit in right),
        "busy": round(busy, 3),
        "rtt_s": round(found.rtt_s or 0, 6),
        "rtt_true_s": round(smoothed, 6),
        "rtt_error": round((found.rtt_s or 0) / smoothed - 1, 4),
        "rtt_mean_s": round(found.rtt_mean_s or 0, 6),
        "rtt_mean_true_s": round(mean, 6),
        "rtt_mean_error": round((found.rtt_mean_s or 0) / mean - 1, 4),
        "rtt_min_s": round(kept, 6),
        "rtt_min_true_s": round(least, 6),
        "rtt_min_error": round(kept / least - 1, 4),
        "rtt_min_right": int(abs(kept / least - 1) <= 0.02 or kept <= least <= at_most),
        "loss": round(found.loss or 0, 6),
        "loss_low": round(low, 6),
        "loss_high": round(high, 6),
        "loss_true": round(truth, 6),
        "loss_right": int(abs((found.loss or 0) - truth) <= 0.2 * truth or low <= truth <= high),
        "segments": found.segments,
        "goodput_bps": round(found.mean_bps or 0),
        "why": found.why,
        "fastest_bps": fastest,
        "samples": told,
    }


def goodput(one: Situation, seed: int) -> float:
    """The goodput of a transfer on Linux, in bit/s, after its start."""
    scenario = Scenario(
        topology="path",
        duration=f"{STEADY_S + MEASURED_S} s",
        warmup=f"{STEADY_S} s",
        seed=seed,
        traffic="native",
        path={
            "rate": f"{round(one.rate_bps)} bit/s",
            "rtt": f"{round(one.rtt_s * 1e6)} us",
            "queue": f"{one.queue_packets} packets",
            "loss": f"{one.loss:.6%}",
        },
        flows=[{"cc": one.cc}],
    )
    run = Kernel().run(scenario)
    table = after_warmup(run, run.tables["intervals"])
    return float(table["goodput_bps"].mean())


def truths(one: Situation) -> dict[str, list[float]]:
    """What the other controls got there, and the same control without the random loss; twice if chance matters."""
    asked = {cc: dataclasses.replace(one, cc=cc) for cc in CONTROLS}
    if one.loss:
        asked["lossless"] = dataclasses.replace(one, loss=0.0)
    return {
        name: [goodput(other, one.seed + at) for at in ((1, 2) if other.loss else (1,))]
        for name, other in asked.items()
    }


def looked(one: Situation, guest: bool) -> Row:
    """Calls ``sample``, here or in a separate guest."""
    if not guest:
        return sample(one)
    with tempfile.TemporaryDirectory(prefix="sawtooth-watch-truth-") as share:
        command = [sys.executable, str(Path(__file__).resolve()), "--inside", json.dumps(dataclasses.asdict(one))]
        told = Guest(build(), seed=one.seed).run(command, share=Path(share), timeout_s=900)
        if told.exit_code:
            raise SystemExit(Path(share, "stderr").read_text(encoding="utf-8")[-2000:])
        found: Row = json.loads(Path(share, "stdout").read_text(encoding="utf-8"))
        return found


def whatif(one: Situation, seen: Row, truth: dict[str, list[float]]) -> list[Row]:
    """Expected values beside measured ones; without a number, one row with the reason."""
    connection = Connection(**seen["samples"][-1])
    told = expect(observed(connection, seen["fastest_bps"]))
    of = {each.cc: each for each in told.controls}
    if told.lossless is not None:
        of["lossless"] = told.lossless
    if told.reason is not None:
        return [{"situation": one.name, "asked": "", "reason": told.reason}]
    rows = []
    for name, got in truth.items():
        each = of[name]
        most = math.inf if each.high_bps is None else each.high_bps
        rows.append(
            {
                "situation": one.name,
                "asked": name,
                "reason": "",
                "expected_bps": "" if each.goodput_bps is None else round(each.goodput_bps),
                "low_bps": round(each.low_bps),
                "high_bps": "" if each.high_bps is None else round(each.high_bps),
                "true_bps": " ".join(str(round(value)) for value in got),
                "error": "" if each.goodput_bps is None else round(each.goodput_bps / fmean(got) - 1, 4),
                "held": sum(each.low_bps <= value <= most for value in got),
                "of": len(got),
            }
        )
    return rows


def write(path: Path, rows: Sequence[Row], without: Sequence[str] = ()) -> None:
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in without]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def summary(rows: Sequence[Row], answers: Sequence[Row]) -> Iterator[str]:
    """Counts beside the thresholds."""
    limits, losses = (sum(row[f"{name}_right"] for row in rows) for name in ("limit", "loss"))
    least = sum(row["rtt_min_right"] for row in rows)
    yield f"limit right {limits} of {len(rows)}, loss {losses}, least round trip within 2% or its millisecond {least}"
    for name in ("rtt", "rtt_min", "rtt_mean"):
        errors = [abs(row[f"{name}_error"]) for row in rows]
        yield f"{name} within 2%: {sum(error <= 0.02 for error in errors)}, largest {max(errors):.1%}"
    told = [row for row in answers if row["asked"]]
    if answers:
        yield f"what-if: {len(told)} answers, {len(answers) - len(told)} situations with a reason instead"
    for words, of in (
        ("with both ends", [row for row in told if row["high_bps"] != ""]),
        ("at least so much", [row for row in told if row["high_bps"] == ""]),
    ):
        if of:
            held, truths = (sum(row[name] for row in of) for name in ("held", "of"))
            errors = [abs(row["error"]) for row in of if row["error"] != ""]
            off = f"median error {median(errors):.1%}, largest {max(errors):.1%}; " if errors else ""
            yield f"{len(of)} {words}: {off}{held} of {truths} truths inside"


def main() -> None:
    """The tables."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--out", type=Path)
    asked.add_argument("--whatif", type=Path, help="also what each would get, and what it got")
    asked.add_argument("--guest", action="store_true", help="in a guest of the user-mode kernel, in virtual time")
    asked.add_argument("--draw", type=int, default=0, help="so many situations by --seed, not those that are known")
    asked.add_argument("--seed", type=int, default=7)
    asked.add_argument("--only", default="", help="situations with this in their name")
    asked.add_argument("--inside", metavar="SITUATION", help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.inside:
        told = json.loads(given.inside)
        print(json.dumps(sample(Situation(**told | {"limit": tuple(told["limit"])}))))
        return
    if given.out is None:
        asked.error("--out is missing")
    rows: list[Row] = []
    answers: list[Row] = []
    for one in drawn(given.seed, given.draw) if given.draw else known():
        if given.only not in one.name:
            continue
        row = looked(one, given.guest)
        rows.append(row)
        print({name: row[name] for name in list(row)[:21]}, file=sys.stderr, flush=True)
        write(given.out, rows, ("samples", "fastest_bps"))
        if given.whatif and one.rate_bps and row["limit"] in ANY:
            answers += whatif(one, row, truths(one))
            write(given.whatif, answers)
    print("\n".join(summary(rows, answers)))


if __name__ == "__main__":
    main()
