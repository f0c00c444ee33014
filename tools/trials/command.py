"""The command that is tried, the study that it runs, and what is kept of it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

STUDY = """
name = "trial"
[scenario]
topology = "path"
duration = "20 s"
[scenario.path]
rate = "200 Mbit/s"
loss = "0.1%"
[vary]
flows.cc = ["reno", "cubic", "bbr"]
path.rtt = ["10 ms", "20 ms"]
[repeat]
seeds = [1, 2]
"""
POINTS = 12


def sawtooth(*arguments: object, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from sawtooth.cli import main; main()", *map(str, arguments)]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **{**streams, **options})  # type: ignore[call-overload, no-any-return]


def finished(arguments: list[object]) -> str:
    """Runs a command to its end, which must be a good one."""
    program = sawtooth(*arguments, start_new_session=True)
    _, told = program.communicate()
    if program.returncode:
        raise SystemExit(f"{arguments}: status {program.returncode}: {told}")
    return told


def tables(out: Path) -> str:
    """A digest of all tables below a study's results, by name."""
    (directory,) = (path for path in out.glob("trial/*") if not path.is_symlink())
    digest = hashlib.sha256()
    for path in sorted([*directory.glob("*.csv"), *directory.glob("points/*/*.parquet")]):
        digest.update(f"{path.relative_to(directory)} ".encode() + path.read_bytes())
    return digest.hexdigest()


def kept(out: Path) -> dict[str, int]:
    return {str(path.relative_to(out)): path.stat().st_mtime_ns for path in out.glob("trial/2*/points/*/run.json")}


def is_finished(out: Path) -> bool:
    found = [json.loads(path.read_text())["finished"] for path in out.glob("trial/2*/study.json")]
    return bool(found) and found[0] is not None
