"""Signals at random moments: to the command, its process group, its workers."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import psutil

from experiments.trials.command import POINTS, STUDY, finished, is_finished, kept, sawtooth, tables


def kills(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """Ends a study at random by a signal to all its processes, again and again, until it finishes."""
    study = home / "study.toml"
    study.write_text(STUDY)
    run: list[object] = ["run", study, "--quiet", "--jobs", "2", "--out"]
    start = time.monotonic()
    finished([*run, home / "whole"])
    took = time.monotonic() - start
    wanted, held = tables(home / "whole"), Counter[str]()
    for number in range(times):
        out = home / f"out-{number}"
        by = rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        program = sawtooth(*run, out, start_new_session=True)
        time.sleep(rng.uniform(0.0, 1.1 * took))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, by)
        _, told = program.communicate()
        before = kept(out)
        held[f"{by.name}: ended"] += 1
        held["with a traceback"] += "Traceback" in told
        held["stopped before its end"] += program.returncode != 0
        held["points kept"] += len(before)
        finished([*run, out])
        after = kept(out)
        fresh = len([path for path in out.glob("trial/*") if not path.is_symlink()]) > 1
        held["finished before the signal, and begun anew"] += fresh
        held["points computed twice"] += sum(after.get(name) != when for name, when in before.items())
        if not fresh:
            held["same tables as without a signal"] += tables(out) == wanted
    return held


def cluster_kills(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """A study on ``--cluster local:1`` or ``local:2``: a signal to the command, to its whole group, or to one worker.
    Records what it had finished before running the same command again, at once.
    """
    study = home / "study.toml"
    study.write_text(STUDY.replace('"20 s"', '"5 s"'))
    finished(["run", study, "--quiet", "--out", home / "whole"])
    wanted, held = tables(home / "whole"), Counter[str]()
    for number in range(times):
        out, workers = home / f"out-{number}", rng.choice((1, 2))
        by = rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        victim = rng.choice(("command", "group", "worker"))
        run: list[object] = ["run", study, "--quiet", "--cluster", f"local:{workers}", "--out", out]
        program = sawtooth(*run, start_new_session=True)
        # After the first start, or between two points, or while the report is drawn.
        after, more_s = rng.randrange(-1, POINTS + 1), rng.uniform(0.0, 1.0)
        while program.poll() is None and after >= 0 and len(kept(out)) < after:
            time.sleep(0.01)
        while program.poll() is None and victim == "worker" and not _workers(program.pid):
            time.sleep(0.01)
        time.sleep(more_s)
        started = _below(program.pid)
        alive = program.poll() is None
        with contextlib.suppress(ProcessLookupError, IndexError):
            match victim:
                case "command":
                    os.kill(program.pid, by)
                case "group":
                    os.killpg(program.pid, by)
                case "worker":
                    os.kill(rng.choice(_workers(program.pid)).pid, by)
        _, told = program.communicate()
        was_finished, before = is_finished(out), kept(out)
        held[f"{by.name} to the {victim}"] += 1
        held["ended before the signal"] += not alive
        held["with a traceback"] += "Traceback" in told
        if victim == "worker":
            held["a worker's end: the command went on to its end"] += program.returncode == 0 and was_finished
        held["finished when the command had ended"] += was_finished
        held["points kept"] += len(before)
        finished(run)
        fresh = len([path for path in out.glob("trial/*") if not path.is_symlink()]) > 1
        held["had finished, and a new result was begun"] += fresh and was_finished
        held["HAD NOT FINISHED, AND A NEW RESULT WAS BEGUN"] += fresh and not was_finished
        after_that = kept(out)
        held["points computed twice"] += sum(after_that.get(name) != when for name, when in before.items())
        digests = [tables(place) for place in _each(out)]
        held["results with the tables of a run that nobody stopped"] += digests.count(wanted)
        held["RESULTS WITH OTHER TABLES"] += len(digests) - digests.count(wanted)
        _, left = psutil.wait_procs(started, timeout=10)
        held["PROCESSES LEFT"] += len(left)
        print(f"{number} {by.name} {victim} local:{workers}: {len(before)} points, finished {was_finished}", flush=True)
    return held


def _each(out: Path) -> list[Path]:
    """Places for ``tables``, one result each."""
    found = []
    for at, directory in enumerate(sorted(path for path in out.glob("trial/*") if not path.is_symlink())):
        place = out / f"only-{at}" / "trial"
        place.mkdir(parents=True)
        directory.rename(place / directory.name)
        found.append(place.parent)
    return found


def _below(process: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(process).children(recursive=True)
    return []


def _workers(process: int) -> list[psutil.Process]:
    """Workers of a local cluster: grandchildren, forks of a process that has already imported everything."""
    return [one for one in _below(process) if one.ppid() != process]


def suspensions(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """SIGSTOP, 1 to 8 s later SIGCONT: to the command, to its whole group, or to one process below it; with two
    workers, or a cluster's.
    """
    study = home / "study.toml"
    study.write_text(STUDY)
    start = time.monotonic()
    finished(["run", study, "--quiet", "--jobs", "2", "--out", home / "whole"])
    took = time.monotonic() - start
    wanted, held = tables(home / "whole"), Counter[str]()
    for number in range(times):
        out, where = home / f"out-{number}", rng.choice((["--jobs", "2"], ["--cluster", "local:2"]))
        program = sawtooth("run", study, "--quiet", *where, "--out", out, start_new_session=True)
        victim = rng.choice(("command", "group", "one below"))
        for _ in range(rng.choice((1, 1, 3))):
            time.sleep(rng.uniform(0.0, 0.6 * took))
            below = _below(program.pid)
            at = rng.choice(below).pid if victim == "one below" and below else program.pid
            send = os.killpg if victim == "group" else os.kill
            with contextlib.suppress(ProcessLookupError):
                send(at, signal.SIGSTOP)
                held[f"stopped: {victim}"] += 1
                time.sleep(rng.uniform(1, 8))
                send(at, signal.SIGCONT)
        try:
            _, told = program.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            _, told = program.communicate()
        good = program.returncode == 0 and tables(out) == wanted
        held["went on to the same tables" if good else "DID NOT"] += 1
        if not good:
            print(f"{victim} {where}: {program.returncode} {told[:400]}", flush=True)
    return held
