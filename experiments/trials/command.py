"""The command under trial, the study that it runs, and what is kept of its results."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

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


def sawtooth(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from sawtooth.cli import main; main()", *map(str, arguments)]
    return subprocess.Popen(command, text=True, **{"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **options})


def connection_row(number: int, **words: str) -> dict[str, Any]:
    """A row of a recording by ``sawtooth watch --record``: its numbers are ``number``, its texts ``words`` or
    plausible ones.
    """
    import pyarrow as pa

    from sawtooth.watch.record import schema

    usual = {"local": "10.0.0.1", "peer": "10.0.0.2", "state": "established", "cc": "cubic", "limit": "path"}
    usual |= {"why": "", "recovery": "open", "time": "2026-01-01T00:00:00Z", "process": "x", **words}
    row: dict[str, Any] = {}
    for field in schema():
        if pa.types.is_string(field.type):
            row[field.name] = usual.get(field.name)
        elif pa.types.is_list(field.type):
            row[field.name] = []
        else:
            row[field.name] = pa.scalar(number).cast(field.type).as_py()
    return row


def ends(command: list[str], prepare: Callable[[], object]) -> NoReturn:
    """Runs a command in this process, a fork, and exits with the command's status, or 70 if it has none."""
    status = 70
    try:
        prepare()
        from sawtooth.cli.program import status_of

        status = status_of(command)
    except SystemExit as ended:
        status = int(ended.code or 0)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def finished(arguments: list[object]) -> str:
    """Runs a command, which must succeed."""
    program = sawtooth(*arguments, start_new_session=True)
    _, told = program.communicate()
    if program.returncode:
        raise SystemExit(f"{arguments}: status {program.returncode}: {told}")
    return told


_RUNS = ("points/*/*.parquet", "packs/*/*.parquet")


def tables(out: Path) -> str:
    """A digest of all tables below a study's results, by name."""
    (directory,) = (path for path in out.glob("trial/*") if not path.is_symlink())
    return tables_of(directory)


def tables_of(directory: Path) -> str:
    """Like ``tables``, for one of several results."""
    digest = hashlib.sha256()
    for path in sorted(one for kind in ("*.csv", *_RUNS) for one in directory.glob(kind)):
        digest.update(f"{path.relative_to(directory)} ".encode() + path.read_bytes())
    return digest.hexdigest()


def kept(out: Path) -> dict[str, int]:
    """When each saved run or pack of runs was written, by its description."""
    found = [path for kind in ("points/*/run.json", "packs/*/pack.json") for path in out.glob(f"trial/2*/{kind}")]
    return {str(path.relative_to(out)): path.stat().st_mtime_ns for path in found}


def is_finished(out: Path) -> bool:
    found = [json.loads(path.read_text())["finished"] for path in out.glob("trial/2*/study.json")]
    return bool(found) and found[0] is not None
