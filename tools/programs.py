"""Runs well-known servers and clients, unmodified, on a path in virtual time, several times each, and prints a table.

    python tools/programs.py [--times N] [--engine netns] [NAME ...]

Its scenarios are in studies/programs, one per file, which names what must be installed. It needs the user-mode
kernel. Programs that are not installed are named and skipped. Each round runs every scenario once, so that one can stop
at any time (Ctrl-C) with counts that mean something. Exit status 1 where one failed or differed from its first run.
"""

from __future__ import annotations

import argparse
import glob
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import sawtooth
from sawtooth.programs import finished
from sawtooth.run import Run
from sawtooth.scenario import Scenario

HOME = Path(__file__).parents[1] / "studies" / "programs"
_PATH = ":/usr/local/sbin:/usr/sbin:/sbin"


def files() -> dict[str, Path]:
    """The scenarios, by name."""
    return {path.stem: path for path in sorted(HOME.glob("*.toml"))}


def absent(path: Path) -> list[str]:
    """Programs that the scenario needs and that are missing here: its line "# needs: a b"."""
    (line,) = [one for one in path.read_text(encoding="utf-8").splitlines() if one.startswith("# needs: ")]
    return [one for one in line.split()[2:] if not _is_installed(one)]


def _is_installed(name: str) -> bool:
    return bool(glob.glob(name)) if "/" in name else shutil.which(name, path=os.environ["PATH"] + _PATH) is not None


@dataclass
class Counted:
    """The runs of one scenario: how many equal the first, and the first run."""

    first: Run
    same: int = 1
    tried: int = 1
    differ: set[str] = field(default_factory=set)
    """Columns and tables that differed between runs."""
    cpu_s: list[float] = field(default_factory=list)

    def add(self, run: Run) -> None:
        """Another run of the same scenario and seed."""
        found = set()
        for one, two in zip(finished(self.first), finished(run), strict=True):
            names = ("start_s", "end_s", "status", "stdout", "stderr")
            found |= {f"{name} of {one.name}" for name in names if getattr(one, name) != getattr(two, name)}
        tables = self.first.tables
        found |= {name for name in tables if name != "programs" and not tables[name].equals(run.tables[name])}
        self.tried += 1
        self.same += not found
        self.differ |= found


def main(arguments: Sequence[str]) -> int:
    """One line for each run that failed or differed, and a table at the end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="Scenarios of studies/programs (default: all).")
    parser.add_argument("--times", type=int, default=2, help="Rounds (default: 2).")
    parser.add_argument("--engine", default="kernel", help="Engine: kernel or netns (default: kernel).")
    given = parser.parse_args(arguments)
    known = files()
    counted: dict[str, Counted] = {}
    failed = False
    wanted = given.names or list(known)
    for name in [*wanted]:
        if missing := absent(known[name]):
            print(f"{name}: not tried, {', '.join(missing)} is not installed", flush=True)
            wanted.remove(name)
    try:
        for number in range(given.times):
            for name in wanted:
                run = sawtooth.run(Scenario.load(known[name]), engine=given.engine)
                last = finished(run)[-1]
                if last.status != 0:
                    print(f"{name}: {last.describe()}: {last.stderr.decode(errors='replace')[-200:]}", flush=True)
                    failed = True
                if name in counted:
                    counted[name].add(run)
                else:
                    counted[name] = Counted(run)
                counted[name].cpu_s.append(run.meta.get("cpu_s", 0.0))
            print(
                f"round {number + 1}", *(f"{name} {one.same}/{one.tried}" for name, one in counted.items()), flush=True
            )
    except KeyboardInterrupt:
        pass
    print("| scenario | virtual time | processor time | same as the first | what differed |\n|---|---|---|---|---|")
    for name, one in counted.items():
        end_s = one.first.end_s
        middle = sorted(one.cpu_s)[len(one.cpu_s) // 2]
        differed = ", ".join(sorted(one.differ)) or "-"
        print(f"| `{name}` | {end_s:.3f} s | {middle:.1f} s | {one.same} of {one.tried} | {differed} |")
        failed |= one.same != one.tried
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
