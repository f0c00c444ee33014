"""Trials of docs/reliability.md: ``tools/trials.py TRIAL [--times N] [--seed S]``.

Each begins with what a user would do, spoils it at random (the same seed spoils in the same way, but for what the clock
decides), and counts what held. ``full-disk`` needs root, for a small file system of its own in memory.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

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


def kills(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """A study is ended at random by a signal to all its processes, again and again, until it finishes."""
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
    What it had finished by then is written down before the same command is given again, at once.
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
        # From the first start on, or between two points, or while the report is drawn.
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
        was_finished, before = _is_finished(out), kept(out)
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
    """Places as ``tables`` takes them, of one result each."""
    found = []
    for at, directory in enumerate(sorted(path for path in out.glob("trial/*") if not path.is_symlink())):
        place = out / f"only-{at}" / "trial"
        place.mkdir(parents=True)
        directory.rename(place / directory.name)
        found.append(place.parent)
    return found


def _is_finished(out: Path) -> bool:
    found = [json.loads(path.read_text())["finished"] for path in out.glob("trial/2*/study.json")]
    return bool(found) and found[0] is not None


def _below(process: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(process).children(recursive=True)
    return []


def _workers(process: int) -> list[psutil.Process]:
    """Of a local cluster: grandchildren, forks of a process that has loaded what they need."""
    return [one for one in _below(process) if one.ppid() != process]


def full_disk(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """A study on a file system that fills at random, then has room again."""
    study = home / "study.toml"
    study.write_text(STUDY)
    finished(["run", study, "--quiet", "--out", home / "whole"])
    needs = sum(path.stat().st_blocks * 512 for path in (home / "whole").rglob("*") if path.is_file())
    held = Counter[str]()
    for number in range(times):
        disk = home / f"disk-{number}"
        disk.mkdir()
        size = int(needs * rng.uniform(0.05, 1.05))
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], check=True)
        try:
            program = sawtooth("run", study, "--quiet", "--out", disk / "out")
            _, told = program.communicate()
            held["tried"] += 1
            held["said so"] += program.returncode == 1 and "error[disk-full]" in told
            held["fitted"] += program.returncode == 0
            before = kept(disk / "out")
            subprocess.run(["mount", "-o", f"remount,size={4 * needs}", disk], check=True)
            finished(["run", study, "--quiet", "--out", disk / "out"])
            after = kept(disk / "out")
            held["points computed twice"] += sum(after.get(name) != when for name, when in before.items())
            if program.returncode:
                held["same tables as with room"] += tables(disk / "out") == tables(home / "whole")
        finally:
            subprocess.run(["umount", disk], check=True)
    return held


def damage(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """A capture is damaged at random: bits, bytes, parts."""
    from sawtooth import SawtoothError, read_capture
    from sawtooth.engines.sim import Sim
    from sawtooth.scenario import Scenario

    path = {"rate": "5 Mbit/s", "rtt": "40 ms", "loss": "1%", "queue": "50 packets"}
    Sim(capture=home).run(Scenario(topology="path", duration="5 s", path=path))
    whole = (home / "capture-sender.pcap").read_bytes()
    held = Counter[str]()
    for number in range(times):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 8, 64))):
            at = rng.randrange(len(data)) if data else 0
            match rng.randrange(4):
                case 0 if data:
                    data[at] ^= 1 << rng.randrange(8)
                case 1:
                    del data[at : at + rng.choice((1, 16, 500))]
                case 2:
                    data[at:at] = rng.randbytes(rng.choice((1, 16, 500)))
                case _ if number % 3 == 0:
                    del data[at:]
        (home / "damaged.pcap").write_bytes(data)
        try:
            told = read_capture(home / "damaged.pcap", 0)
            held[
                "read with a problem named" if told.problems else "read whole, the damage is in what packets hold"
            ] += 1
        except SawtoothError as error:
            held[f"refused: {error.code}"] += 1
    return held


def determinism(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """The same study with other numbers of workers."""
    study = home / "study.toml"
    study.write_text(STUDY)
    held: Counter[str] = Counter()
    first = ""
    for number in range(times):
        jobs = rng.choice((1, 2, 3, 5))
        finished(["run", study, "--quiet", "--jobs", jobs, "--out", home / f"out-{number}"])
        first = first or tables(home / f"out-{number}")
        held["same bytes" if tables(home / f"out-{number}") == first else "OTHER BYTES"] += 1
    return held


TRIALS = {
    "kills": kills,
    "cluster-kills": cluster_kills,
    "full-disk": full_disk,
    "damage": damage,
    "determinism": determinism,
}


def main() -> None:
    """Prints what was counted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trial", choices=list(TRIALS))
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sawtooth-trial-") as directory:
        held = TRIALS[given.trial](given.times, random.Random(given.seed), Path(directory))
    print(f"{given.trial}, {given.times} times, seed {given.seed}")
    for what, count in held.items():
        print(f"  {count:6} {what}")


if __name__ == "__main__":
    main()
