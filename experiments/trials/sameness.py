"""The same study elsewhere, in parallel, and with a clock that jumps: the same bytes."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

from experiments.trials.command import STUDY, finished, sawtooth, tables, tables_of


def determinism(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """Runs the same study with other numbers of workers."""
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


JUMPS = {
    "an hour forward": (3600, 0, 0),
    "a day back": (-86400, 0, 0),
    "ten years forward": (315_360_000, 0, 0),
    "to 1970": (-1_790_000_000, 0, 0),
    "back and forth, ten times a second": (7200, 1, 0),
    "a second forward at each look": (0, 0, 1),
    "a second back at each look": (0, 0, -1),
}
CLOCK = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static double begun;
static double monotonic(void) {
    struct timespec t; syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9;
}
static long number(const char *name) { const char *text = getenv(name); return text ? atol(text) : 0; }
static long jump(void) {
    static long looks;
    double now = monotonic();
    if (begun == 0) begun = now;
    if ((now - begun) * 1000 < number("JUMP_AFTER_MS")) return 0;
    long by = number("JUMP_S") + number("JUMP_EACH") * __sync_add_and_fetch(&looks, 1);
    return number("JUMP_BACK") && (long)(now * 10) % 2 ? -by : by;
}
int clock_gettime(clockid_t id, struct timespec *t) {
    int failed = syscall(SYS_clock_gettime, id, t);
    if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += jump();
    return failed;
}
int gettimeofday(struct timeval *t, void *zone) {
    struct timespec now; clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec; t->tv_usec = now.tv_nsec / 1000; return 0;
}
time_t time(time_t *t) {
    struct timespec now; clock_gettime(CLOCK_REALTIME, &now);
    if (t) *t = now.tv_sec;
    return now.tv_sec;
}
"""


def clocks(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """The system clock jumps a while after the start of each process, or at each reading, by a library loaded before
    the C library. The command runs alone, with two workers, or with a cluster's; every fourth is also killed once.
    """
    library = home / "clock.so"
    (home / "clock.c").write_text(CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, home / "clock.c"], check=True)
    study = home / "study.toml"
    study.write_text(STUDY.replace('"20 s"', '"5 s"'))
    finished(["run", study, "--quiet", "--jobs", "2", "--out", home / "whole"])
    wanted, held = tables(home / "whole"), Counter[str]()
    for number in range(times):
        name = list(JUMPS)[number % len(JUMPS)]
        by, back, each = JUMPS[name]
        jumps = {"JUMP_S": by, "JUMP_BACK": back, "JUMP_EACH": each, "JUMP_AFTER_MS": rng.choice((0, 500, 1500))}
        environment = {**os.environ, "LD_PRELOAD": str(library), **{key: str(value) for key, value in jumps.items()}}
        where = rng.choice((["--jobs", "1"], ["--jobs", "2"], ["--cluster", "local:2"]))
        run: list[object] = ["run", study, "--quiet", *where, "--out", home / f"out-{number}"]
        if number % 4 == 3:
            program = sawtooth(*run, env=environment, start_new_session=True)
            time.sleep(rng.uniform(0.5, 4))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.communicate()
            held["killed once"] += 1
        program = sawtooth(*run, env=environment)
        _, told = program.communicate(timeout=300)
        held["tried"] += 1
        good = program.returncode == 0 and tables(home / f"out-{number}") == wanted
        held["same tables" if good else "OTHER TABLES, OR NONE"] += 1
        if not good:
            print(f"{name} {where}: {program.returncode} {told[:500]}", flush=True)
    return held


def at_once(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """Ten copies of a command at the same time, into the same directory; some are killed and all are run again."""
    study = home / "study.toml"
    study.write_text(STUDY.replace('"20 s"', '"2 s"'))
    finished(["run", study, "--quiet", "--out", home / "whole"])
    wanted, held = tables(home / "whole"), Counter[str]()
    for number in range(times):
        out = home / f"out-{number}"
        run: list[object] = ["run", study, "--quiet", "--jobs", "1", "--out", out]
        programs = [sawtooth(*run, start_new_session=True) for _ in range(10)]
        killed = rng.randrange(0, 4)
        time.sleep(rng.uniform(1, 4))
        for program in programs[:killed]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
        ended = [program.communicate(timeout=580)[1] for program in programs]
        held["commands"] += len(programs)
        held["killed"] += sum(program.returncode == -signal.SIGKILL for program in programs)
        held["ended well"] += sum(program.returncode == 0 for program in programs)
        held["WITH AN ERROR"] += sum(program.returncode > 0 for program in programs)
        for program, told in zip(programs, ended, strict=True):
            if program.returncode > 0:
                print(told[:400], flush=True)
        results = [path for path in out.glob("trial/2*") if not path.is_symlink()]
        whole = [path for path in results if json.loads((path / "study.json").read_text())["finished"]]
        held["results"] += len(results)
        held["finished results"] += len(whole)
        held["latest is a finished one"] += (out / "trial" / "latest").resolve() in whole
        for path in whole:
            held["same tables" if tables_of(path) == wanted else "OTHER TABLES"] += 1
    return held


def elsewhere(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """Runs the same study in turn with one job and two, on a cluster of two workers, with other seeds of Python's
    hashes, in another directory, another language and another time zone; and a scenario on the kernel, each time
    again.
    """
    from sawtooth.engines import get
    from sawtooth.scenario import Scenario

    study = home / "study.toml"
    study.write_text(STUDY.replace('"20 s"', '"5 s"'))
    finished(["run", study, "--quiet", "--out", home / "whole"])
    wanted, held = tables(home / "whole"), Counter[str]()
    path = {"rate": "20 Mbit/s", "rtt": "20 ms", "loss": "1%"}
    scenario = Scenario.from_dict({"topology": "path", "duration": "3 s", "path": path})
    first = None
    for number in range(times):
        where = [["--jobs", "1"], ["--jobs", "2"], ["--cluster", "local:2"]][number % 3]
        place = home / f"place-{number}"
        place.mkdir()
        zone = rng.choice(("UTC", "Asia/Kathmandu", "America/St_Johns"))
        environment = {**os.environ, "PYTHONHASHSEED": str(rng.randrange(1 << 30)), "TZ": zone}
        environment["LC_ALL"] = rng.choice(("C", "C.UTF-8", "de_DE.UTF-8"))
        program = sawtooth("run", study, "--quiet", *where, "--out", "out", cwd=place, env=environment)
        program.communicate(timeout=300)
        held[f"sim, {' '.join(where)}"] += 1
        same = program.returncode == 0 and tables(place / "out") == wanted
        held["sim: same bytes" if same else "SIM: OTHER BYTES"] += 1
        if number % 3 == 0:
            run = get("kernel").run(scenario)
            first = first or run
            same = all(table.equals(run.tables[name]) for name, table in first.tables.items())
            held["kernel: same tables" if same else "KERNEL: OTHER TABLES"] += 1
    return held
