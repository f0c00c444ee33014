"""Validates ``sawtooth whatif``: a capture of one control on the real kernel predicts what another gets there.

    python experiments/validate_whatif.py measure DIRECTORY     # runs the paths on the engine kernel, with captures
    python experiments/validate_whatif.py table DIRECTORY  # the predictions beside what the kernel gave, as Markdown

``--paths unseen`` takes paths on which the method was not developed. A run that is in DIRECTORY already is not made
again. The kernel's figure is the mean over its seeds; captures are of seed 1. The predictions know the control of the
capture; how often it would have been identified is counted besides. Errors in the summary are |ln(predicted / kernel)|.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from sawtooth import Run, Scenario
from sawtooth.engines.kernel import Kernel
from sawtooth.whatif import Answer, SelfTest, estimate, observe, replay

DEVELOPED = {
    "a": ("10 Mbit/s", "20 ms", "1 bdp", "0%"),
    "b": ("10 Mbit/s", "100 ms", "1 bdp", "0.5%"),
    "c": ("20 Mbit/s", "50 ms", "4 bdp", "0%"),
    "d": ("50 Mbit/s", "40 ms", "1 bdp", "0.1%"),
    "e": ("50 Mbit/s", "10 ms", "2 bdp", "1%"),
    "f": ("100 Mbit/s", "20 ms", "0.3 bdp", "0%"),
    "g": ("100 Mbit/s", "20 ms", "1 bdp", "1%"),
    "h": ("100 Mbit/s", "80 ms", "1 bdp", "0.01%"),
    "i": ("200 Mbit/s", "10 ms", "1 bdp", "0%"),
    "j": ("200 Mbit/s", "50 ms", "0.5 bdp", "0.1%"),
    "k": ("30 Mbit/s", "100 ms", "1 bdp", "2%"),
    "l": ("150 Mbit/s", "30 ms", "2 bdp", "0%"),
}
"""Rate, base RTT, queue, loss, and loss of acknowledgements if there is any."""
UNSEEN = {
    "m": ("8 Mbit/s", "35 ms", "1 bdp", "0%"),
    "n": ("12 Mbit/s", "150 ms", "0.6 bdp", "0.2%"),
    "o": ("15 Mbit/s", "25 ms", "3 bdp", "0.5%"),
    "p": ("25 Mbit/s", "60 ms", "1.5 bdp", "0.05%", "5%"),
    "q": ("40 Mbit/s", "30 ms", "0.7 bdp", "0%", "20%"),
    "r": ("30 Mbit/s", "45 ms", "1 bdp", "runs 0.05% 30%"),
    "s": ("20 Mbit/s", "80 ms", "2 bdp", "runs 0.2% 40%"),
    "t": ("35 Mbit/s", "15 ms", "5 bdp", "1.5%"),
}
"""Chosen after the method was finished, before any prediction was made on them. "runs": Gilbert's p and r."""
PATHS = DEVELOPED | UNSEEN
SETS: dict[str, Iterable[str]] = {"developed": DEVELOPED, "unseen": UNSEEN, "all": PATHS}
CONTROLS = ("cubic", "bbr", "reno")
DURATION = "30 s"
SIDES = ("sender", "receiver")


def scenario(path: str, cc: str, seed: int) -> Scenario:
    rate, rtt, queue, loss, *ack_loss = PATHS[path]
    return Scenario(
        name=f"{path}-{cc}",
        duration=DURATION,
        traffic="native",
        seed=seed,
        path={"rate": rate, "rtt": rtt, "queue": queue, "loss": _loss(loss), "ack_loss": "".join(ack_loss) or "0%"},
        flows=[{"cc": cc}],
    )


def _loss(loss: str) -> Any:
    kind, *values = loss.split()
    return {"gilbert_elliott": dict(zip("pr", values, strict=True))} if kind == "runs" else loss


def measure(directory: Path, paths: Iterable[str], seeds: int) -> None:
    for seed in range(1, seeds + 1):
        for path in paths:
            for cc in CONTROLS:
                target = directory / f"{path}-{cc}-{seed}"
                if target.exists():
                    continue
                engine = Kernel(capture=directory / f"cap-{path}-{cc}" if seed == 1 else None)
                engine.run(scenario(path, cc, seed)).save(target)
                print(f"{target.name}: {goodput(target) / 1e6:.2f} Mbit/s", file=sys.stderr, flush=True)


def goodput(run: Path) -> float:
    return float(Run.load(run, tables=["intervals"]).tables["intervals"]["goodput_bps"].mean())


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The prediction for ``answer`` from the capture of ``seen`` at ``side``, identified as ``identified``;
    ``kernel_bps`` has one value per seed.
    """

    path: str
    side: str
    seen: str
    identified: str | None
    test: SelfTest
    answer: Answer
    kernel_bps: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return self.answer.median_bps / fmean(self.kernel_bps)

    @property
    def inside(self) -> bool:
        return self.answer.low_bps <= fmean(self.kernel_bps) <= self.answer.high_bps


def predictions(directory: Path, paths: Iterable[str], sides: Sequence[str]) -> Iterator[Prediction]:
    for path in paths:
        for seen in CONTROLS:
            for side in sides:
                capture = directory / f"cap-{path}-{seen}" / f"capture-{side}.pcap"
                if not capture.exists():
                    continue
                told = observe(capture)
                observed = dataclasses.replace(told, cc=seen, cc_how="given")
                replayed = replay(observed, estimate(observed))
                test, answers = replayed.test, replayed.answers
                for answer in answers:
                    runs = sorted(directory.glob(f"{path}-{answer.cc}-[0-9]*"))
                    if runs:
                        yield Prediction(path, side, seen, told.cc, test, answer, tuple(map(goodput, runs)))
                print(f"{path} {seen} {side}: {test.words}", file=sys.stderr, flush=True)


def table(found: list[Prediction]) -> str:
    lines = [
        "| path | capture of | at the | self-test | predicts | Mbit/s (90%) | kernel (runs) | error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        if one.answer.cc == one.seen:
            continue
        answer = one.answer
        low, high = answer.low_bps / 1e6, answer.high_bps / 1e6
        kernel = f"{fmean(one.kernel_bps) / 1e6:.4g} ({len(one.kernel_bps)})"
        about = ", ".join(PATHS[one.path])
        lines.append(
            f"| {about} | {one.seen} | {one.side} | {one.test.verdict} {one.test.ratio - 1:+.1%} | {answer.cc} "
            f"| {answer.median_bps / 1e6:.4g} ({low:.4g} … {high:.4g}) | {kernel} | {one.ratio - 1:+.1%} |"
        )
    return "\n".join(lines)


def summary(found: list[Prediction]) -> str:
    lines = [
        "| capture of | predicts | n | median | 90% | worst | mean of the kernel inside |",
        "|---|---|---|---|---|---|---|",
    ]
    for seen in CONTROLS:
        for cc in dict.fromkeys(one.answer.cc for one in found):
            of = [one for one in found if one.seen == seen and one.answer.cc == cc]
            if not of:
                continue
            errors = [abs(math.log(one.ratio)) for one in of]
            inside = sum(one.inside for one in of)
            q90, worst = float(np.quantile(errors, 0.9)), max(errors)
            spread = f"{median(errors):.1%} | {q90:.1%} | {worst:.1%}"
            lines.append(f"| {seen} | {cc} | {len(of)} | {spread} | {inside} of {len(of)} |")
    return "\n".join([*lines, "", identifications(found)])


def identifications(found: list[Prediction]) -> str:
    """How often the control would have been identified without being given."""
    of = list({(one.path, one.side, one.seen): one for one in found}.values())
    right = sum(one.identified == one.seen for one in of)
    unknown = sum(one.identified is None for one in of)
    return f"controls identified: {right} of {len(of)} right, {len(of) - right - unknown} wrong, {unknown} unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "table"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--paths", choices=SETS, default="developed", help="which set of them")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each path and control (measure)")
    parser.add_argument("--side", choices=SIDES, action="append", help="captures of one end only (table)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all predictions there (table)")
    options = parser.parse_args()
    if options.what == "measure":
        measure(options.directory, SETS[options.paths], options.seeds)
        return
    found = list(predictions(options.directory, SETS[options.paths], options.side or SIDES))
    if options.json is not None:
        rows = [
            {
                "path": PATHS[one.path],
                "capture_of": one.seen,
                "side": one.side,
                "identified": one.identified,
                "self_test": one.test.describe(),
                "answer": one.answer.describe(),
                "kernel_bps": one.kernel_bps,
            }
            for one in found
        ]
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    print(f"{summary(found)}\n\n{table(found)}")


if __name__ == "__main__":
    main()
