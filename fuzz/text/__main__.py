"""Runs targets: ``python -m fuzz.text [--seconds N | --inputs N] [--seed S] [TARGET…]``.

Input number I of a seed is always the same: ``--only I`` runs it alone, with its traceback. What fails is kept in
``--keep``; with its mend it goes into the corpus. ``--replay`` runs the corpus itself.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from random import Random

from fuzz.text.mutate import mutated
from fuzz.text.targets import TARGETS, Target, seeds
from sawtooth.errors import SawtoothError
from sawtooth.sanitize import plain

MOST_S = 2.0
"""Processor time for one input, in seconds."""
MOST_BYTES = 1 << 30
"""Memory that a target may add to the process, over all its inputs."""
_LONGEST_MESSAGE = 8000
_DEFECTS = ("internal", "core-failed")


class _TooSlow(BaseException):
    """An input exceeded its time limit."""


def expired(_number: int, _frame: object) -> None:
    raise _TooSlow


def trouble(target: Target, data: bytes) -> str | None:
    """What is wrong with how a target handles an input, in a line; None: nothing."""
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_S)
    try:
        target(data)
    except SawtoothError as error:
        said = str(error)
        if error.code in _DEFECTS:
            return f"the error {said}"
        if len(said) > _LONGEST_MESSAGE or any(plain(line, len(line)) != line for line in said.split("\n")):
            return f"a message that is long or steers a terminal: {plain(said)}"
    except _TooSlow:
        return f"more than {MOST_S:g} s, in {_place(sys.exc_info()[2])}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {plain(error)}, in {_place(error.__traceback__)}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


def _place(trace: object) -> str:
    """The innermost line in sawtooth's code."""
    frames = traceback.extract_tb(trace)  # type: ignore[arg-type]
    ours = [frame for frame in frames if "sawtooth" in frame.filename and "fuzz" not in frame.filename] or frames
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"


def run(name: str, most: int | None, seconds: float, seed: int, keep: Path | None) -> tuple[int, dict[str, int]]:
    """The number of inputs tried, and of failures of each kind."""
    target, corpus = TARGETS[name], seeds(name)
    found: dict[str, int] = {}
    end, number = time.monotonic() + seconds, 0
    while number < most if most is not None else time.monotonic() < end:
        data = mutated(Random(f"{name} {seed} {number}"), corpus)
        said = trouble(target, data)
        if said is not None:
            # Failures at the same place are the same failure, whatever numbers the message has.
            kind = f"{said.partition(':')[0]} {said.rpartition(', in ')[2]}"
            if kind not in found:
                print(f"{name}, seed {seed}, input {number}: {said}", flush=True)
                if keep is not None:
                    (keep / name).mkdir(parents=True, exist_ok=True)
                    (keep / name / f"found-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)
            found[kind] = found.get(kind, 0) + 1
        number += 1
    return number, found


def main() -> int:
    """0: nothing found."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.text", description=__doc__)
    parser.add_argument("targets", nargs="*", help=f"all of them without it: {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together")
    parser.add_argument("--inputs", type=int, help="for each target, however long they take; instead of --seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="one input, with its traceback")
    parser.add_argument("--keep", type=Path, help="directory for inputs that fail")
    parser.add_argument("--replay", action="store_true", help="the corpus as it is")
    given = parser.parse_args()
    names = given.targets or list(TARGETS)
    signal.signal(signal.SIGVTALRM, expired)
    if given.only is not None:
        for name in names:
            data = mutated(Random(f"{name} {given.seed} {given.only}"), seeds(name))
            sys.stdout.buffer.write(data[:2000] + b"\n")
            TARGETS[name](data)
        return 0
    failed = 0
    for name in names:
        for data in seeds(name):
            said = trouble(TARGETS[name], data)
            if said is not None and not said.startswith("more than"):
                print(f"{name}, corpus: {said}")
                failed += 1
    if given.replay:
        return bool(failed)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MOST_BYTES, resource.RLIM_INFINITY))
    for name in names:
        tried, found = run(name, given.inputs, given.seconds / len(names), given.seed, given.keep)
        failed += len(found)
        print(f"{name}: {tried} inputs, {sum(found.values())} failed in {len(found)} ways", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
