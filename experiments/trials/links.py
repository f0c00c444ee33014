"""A stranger's links, pipes and directories in the places where root's command writes."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from experiments.trials.command import STUDY, finished, sawtooth

STRANGER = 65534
KINDS = ("a link", "a link to nothing", "a hard link", "a pipe", "a directory")
SMALL = STUDY.replace('["reno", "cubic", "bbr"]', '["reno"]').replace('"20 s"', '"1 s"')
COMMANDS = {
    "compare": ["compare", "RUN", "RUN", "--out", "OUT"],
    "capture": ["capture", "CAPTURE", "--html", "OUT/page.html"],
    "find": [
        "find",
        "SCENARIO",
        "--vary",
        "path.loss=0.001%..5%",
        "--want",
        "goodput >= 50% of path.rate",
        "--engine",
        "model",
        "--out",
        "OUT",
    ],
    "query": ["query", "SELECT 1 AS a", "--in", "RESULTS", "--out", "OUT/a.csv"],
    "check": ["check", "RUN", "--expect", "mean_mbps > 1 Mbit/s", "--junit", "OUT/junit.xml"],
    "lab": ["lab", "--export", "OUT"],
    "cc": ["cc", "show", "reno", "--engine", "model", "--out", "OUT"],
    "report": ["report", "RUN"],
}


class Victim:
    """Files that nobody may change, and a directory in which nobody may create one."""

    def __init__(self, home: Path) -> None:
        self.home = home / "victim"
        self.home.mkdir()
        self.file, self.absent = self.home / "file", self.home / "absent"
        self.file.write_text("as it was")

    def lay(self, kind: str, where: Path) -> None:
        """Creates one of KINDS under that name, owned by the stranger."""
        match kind:
            case "a link":
                where.symlink_to(self.file)
            case "a link to nothing":
                where.symlink_to(self.absent)
            case "a hard link":
                os.link(self.file, where)
            case "a pipe":
                os.mkfifo(where)
            case _:
                where.mkdir()
        if kind != "a hard link":
            os.chown(where, STRANGER, STRANGER, follow_symlinks=False)

    def is_whole(self) -> bool:
        return self.file.read_text() == "as it was" and sorted(self.home.iterdir()) == [self.file]


def links(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """Puts each kind in the place of each file that a command writes, one after the other; then in a directory for
    results, and for temporary files. ``times``: places tried for each command.
    """
    held, victim = Counter[str](), Victim(home)
    given = _given(home)
    for name, words in COMMANDS.items():
        places = [(place, kind) for place in _written(words, given, home / f"{name}-clean") for kind in KINDS]
        rng.shuffle(places)
        for number, (place, kind) in enumerate(places[:times]):
            out = _open_directory(home / f"{name}-{number}")
            shutil.copytree(given["RUN"], out, dirs_exist_ok=True, symlinks=True) if name == "report" else None
            where = out / place
            where.parent.mkdir(parents=True, exist_ok=True)
            if where.exists():
                where.unlink()
            victim.lay(kind, where)
            _try(held, name, _command(words, given, out), victim, f"{place} {kind}")
    for number, (name, lay) in enumerate(RESULTS.items()):
        out = _open_directory(home / f"results-{number}")
        lay(out, victim, given)
        _try(held, "run", ["run", given["STUDY"], "--quiet", "--jobs", "1", "--out", out], victim, name)
    _races(times, held, given, home, victim)
    return held


def _given(home: Path) -> dict[str, object]:
    from sawtooth.engines.sim import Sim
    from sawtooth.scenario import Scenario

    study, scenario = home / "study.toml", home / "scenario.toml"
    study.write_text(SMALL)
    scenario.write_text('duration = "2 s"\ntopology = "path"\n[path]\nrate = "10 Mbit/s"\nrtt = "20 ms"\n')
    finished(["run", study, "--quiet", "--jobs", "1", "--out", home / "results"])
    Sim(capture=home).run(Scenario.load(scenario))
    run = (home / "results" / "trial" / "latest").resolve()
    found = {"RUN": run, "RESULTS": home / "results", "STUDY": study, "SCENARIO": scenario}
    return {**found, "CAPTURE": home / "capture-sender.pcap"}


def _command(words: list[str], given: dict[str, object], out: Path) -> list[object]:
    if words[0] == "report":
        return ["report", out]
    return [given.get(word, word.replace("OUT", str(out))) for word in words]


def _written(words: list[str], given: dict[str, object], out: Path) -> list[str]:
    """The files that the command writes without interference."""
    out.mkdir()
    if words[0] == "report":
        shutil.copytree(given["RUN"], out, dirs_exist_ok=True, symlinks=True)  # type: ignore[call-overload]
        return ["report.html", "plots/mean.png", "plots/mean.svg", "plots/mean.csv", "plots/distribution.png"]
    program = sawtooth(*_command(words, given, out))
    _, told = program.communicate(timeout=300)
    found = [str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()]
    if not found:
        print(f"left out: {words[0]}: {told}", flush=True)
    return sorted(found)


def _open_directory(path: Path) -> Path:
    """A directory of the stranger's like /tmp: everybody may write, only owners remove."""
    path.mkdir()
    os.chown(path, STRANGER, STRANGER)
    path.chmod(0o1777)
    return path


def _try(held: Counter[str], name: str, command: list[object], victim: Victim, what: str) -> None:
    program = sawtooth(*command)
    try:
        _, told = program.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        program.kill()
        program.communicate()
        told = "HUNG"
    held[f"{name}: tried"] += 1
    whole = victim.is_whole()
    held["nothing of the victim changed" if whole else "THE VICTIM'S FILES CHANGED"] += 1
    ended = (
        "went on, and wrote its own file" if program.returncode in (0, 3, 4) else "ended with an error that has a code"
    )
    coded = program.returncode in (0, 3, 4) or ("error[" in told and "error[internal]" not in told)
    held[ended if coded else "ENDED OTHERWISE"] += 1
    if not (whole and coded):
        print(f"{name} {what}: {told[:600]}", flush=True)
        for path in victim.home.iterdir():
            path.unlink() if path != victim.file else None
        victim.file.write_text("as it was")


def _unfinished(out: Path, victim: Victim, given: dict[str, object], changed: Callable[[Path], object]) -> None:
    """Results that look like root's own, to be resumed, in which the stranger has changed something."""
    shutil.copytree(given["RESULTS"], out, dirs_exist_ok=True, symlinks=True)  # type: ignore[call-overload]
    from sawtooth.io.atomic_io import read_description, write_description

    (directory,) = (path for path in out.glob("trial/2*"))
    description = read_description(directory / "study.json", 1)
    write_description(directory / "study.json", description | {"finished": None})
    for top, directories, files in os.walk(out / "trial"):
        for name in (".", *directories, *files):
            os.chown(Path(top, name), STRANGER, STRANGER, follow_symlinks=False)
    changed(directory)


def _replaced(name: str) -> Callable[[Path, Victim, dict[str, object]], None]:
    def lay(out: Path, victim: Victim, given: dict[str, object]) -> None:
        def change(directory: Path) -> None:
            where = directory / name
            if where.is_dir() and not where.is_symlink():
                shutil.rmtree(where)
            else:
                where.unlink(missing_ok=True)
            target = victim.home if name in ("plots", "points", "progress", "captures") else victim.absent
            where.symlink_to(target)

        _unfinished(out, victim, given, change)

    return lay


def _laid(name: str, kind: str) -> Callable[[Path, Victim, dict[str, object]], None]:
    def lay(out: Path, victim: Victim, _: dict[str, object]) -> None:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        victim.lay(kind, out / name)

    return lay


RESULTS = {
    **{
        f"unfinished results of the stranger with a link for {name}": _replaced(name)
        for name in (
            ".lock",
            ".seal",
            "plots",
            "points",
            "progress",
            "study.json",
            "summary.csv",
            "report.html",
            "stop",
        )
    },
    **{f"{kind} for latest": _laid("trial/latest", kind) for kind in KINDS},
    **{f"{kind} for the study's directory": _laid("trial", kind) for kind in KINDS if kind != "a link to nothing"},
}

STRANGERS = f"""
import os, sys, time
where, victim, process = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.setgid({STRANGER}); os.setuid({STRANGER})
until = time.monotonic() + 120
count = 0
while time.monotonic() < until and os.path.exists(f"/proc/{{process}}"):
    for name in os.listdir(where):
        full = os.path.join(where, name)
        for act in (lambda: os.rename(full, full + ".mine"), lambda: os.symlink(victim, full),
                    lambda: os.symlink(victim, full + "/x"), lambda: os.unlink(full),
                    lambda: os.symlink(victim, os.path.join(where, f".{{name}}.{{process}}.part")),
                    lambda: os.listdir(full)):
            try:
                act()
                count += 1
            except OSError:
                pass
print(count)
"""


def _races(times: int, held: Counter[str], given: dict[str, object], home: Path, victim: Victim) -> None:
    """A stranger who renames, links and removes whatever appears in a shared directory, all the time."""
    for number in range(max(1, times // 4)):
        shared = home / f"shared-{number}"
        shared.mkdir()
        shared.chmod(0o1777)
        home.chmod(0o755)
        os.environ["TMPDIR"], before = str(shared), os.environ.get("TMPDIR")
        tempfile.tempdir = None
        try:
            program = sawtooth("run", given["STUDY"], "--quiet", "--jobs", "2", "--out", shared / "out")
            command = [sys.executable, "-c", STRANGERS, str(shared), str(victim.absent), str(program.pid)]
            stranger = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            ended = threading.Timer(250, program.kill)
            ended.start()
            _, told = program.communicate()
            ended.cancel()
            acts, _ = stranger.communicate()
        finally:
            if before is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before
            tempfile.tempdir = None
        held["races: runs"] += 1
        held["races: acts of the stranger that the system allowed"] += int(acts or 0)
        good = program.returncode == 0 or ("error[" in told and "error[internal]" not in told)
        held["races: ended well, or with a code" if good else "RACES: ENDED OTHERWISE"] += 1
        held["races: nothing of the victim changed" if victim.is_whole() else "RACES: THE VICTIM'S FILES CHANGED"] += 1
        if not good:
            print(told[:600], flush=True)
