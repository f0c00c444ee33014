"""A stop, or a disk that refuses, at each thing that is written after the last point: tables, pictures, report, ending.

The command watches itself by an audit hook: what it opens to write, renames and links below its results, one after the
other, is a moment each. One run counts the moments; each further one is spoiled at one of them.
"""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from experiments.trials.command import STUDY, finished, is_finished, kept, tables

WATCHED = """
import os, re, sys
out, at, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
count = 0
def watch(event, arguments):
    global count
    if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
        return
    if event not in ("open", "os.rename", "os.symlink", "os.remove", "os.mkdir"):
        return
    path = str(arguments[1] if event in ("os.rename", "os.symlink") else arguments[0])
    if not path.startswith(out) or "/progress" in path or not os.path.basename(path) or main_process != os.getpid():
        return
    finds = [name for name in os.listdir(out + "/trial")] if os.path.isdir(out + "/trial") else []
    dated = [name for name in finds if name.startswith("2")]
    points = f"{out}/trial/{dated[0]}/points" if dated else ""
    if not os.path.isdir(points) or len(os.listdir(points)) < 4 or "/points/" in path:
        return
    count += 1
    if at < 0:
        os.write(2, f"moment {count} {event} {os.path.relpath(path, out)}\\n".encode())
    if count == at:
        os.write(2, f"moment {count} {event} {os.path.relpath(path, out)}\\n".encode())
        if what.startswith("SIG"):
            import signal
            os.kill(os.getpid(), getattr(signal, what))
        else:
            import errno
            raise OSError(getattr(errno, what), os.strerror(getattr(errno, what)), path)
main_process = os.getpid()
sys.addaudithook(watch)
from sawtooth.cli import main
main(sys.argv[4:])
"""
SPOILED = ("SIGKILL", "SIGTERM", "SIGINT", "ENOSPC", "EIO")
SMALL = STUDY.replace('["reno", "cubic", "bbr"]', '["reno"]').replace('"20 s"', '"2 s"')
_PHASES = (
    ("pictures", r"plots"),
    ("report", r"report\.html"),
    ("tables", r"\.csv"),
    ("ending", r"study\.json|latest"),
)


def phases(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """Interrupts at each moment, in a random order, by a signal to the command or an error of the disk."""
    study = home / "study.toml"
    study.write_text(SMALL)
    run: list[object] = ["run", study, "--quiet", "--jobs", "1", "--out"]
    _, told = _watched(home / "counted", -1, "", [*run, home / "counted"])
    moments = [line for line in told.splitlines() if line.startswith("moment ")]
    wanted, held = tables(home / "counted"), Counter({"moments": len(moments)})
    order = [(at, what) for at in range(1, len(moments) + 1) for what in SPOILED]
    rng.shuffle(order)
    for number, (at, what) in enumerate(order[:times]):
        out = home / f"out-{number}"
        status, told = _watched(out, at, what, [*run, out])
        before, was_finished = kept(out), is_finished(out)
        phase = _phase(told)
        held[f"{phase}: {'stopped' if what.startswith('SIG') else 'refused'}"] += 1
        held["WITH A TRACEBACK"] += "Traceback" in told
        expected = {"SIGKILL": -signal.SIGKILL, "SIGTERM": 130, "SIGINT": 130}.get(what, 1)
        # At the last moments, either all is done or the refused operation does not matter.
        right = status == expected or (status == 0 and was_finished)
        held["ended as it should"] += right
        coded = {"ENOSPC": "error[disk-full]", "EIO": "error[unwritable-output]"}.get(what, "error[interrupted]")
        held["said why, or was killed"] += what == "SIGKILL" or status == 0 or coded in told
        finished([*run, out])
        after = kept(out)
        results = [path for path in out.glob("trial/*") if not path.is_symlink()]
        held["computed twice"] += sum(after.get(name) != when for name, when in before.items())
        held["A RESULT THAT WAS NOT FINISHED WAS LEFT"] += len(results) > 1 and not was_finished
        newest = (out / "trial" / "latest").resolve()
        whole = "</html>" in (newest / "report.html").read_text() and (newest / "study.json").exists()
        held["then a whole report, by latest"] += whole
        held["LEFT HALF-WRITTEN"] += sum(path.name.endswith(".part") for path in newest.rglob("*"))
        if len(results) == 1:
            held["then the same tables"] += tables(out) == wanted
        if not (right and whole):
            print(f"{at} {what} {status} {told}", flush=True)
    return held


def _watched(out: Path, at: int, what: str, arguments: list[object]) -> tuple[int, str]:
    command = [sys.executable, "-c", WATCHED, str(out), str(at), what, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


def _phase(told: str) -> str:
    line = next((line for line in told.splitlines() if line.startswith("moment ")), "")
    return next((name for name, pattern in _PHASES if re.search(pattern, line)), "other files")
