"""Bisect: the commit of a git repository that changed a behavior of TCP, or an expectation's verdict.

As in ``git bisect``, the commit that halves the suspects best is tried next. One that cannot be judged is skipped: it
does not build, its runs fail, or they are inconclusive.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sawtooth.behaviors.catalogue import Catalogue
from sawtooth.behaviors.changes import INCONCLUSIVE, Comparison, compared
from sawtooth.behaviors.measurements import Measured, Show, is_measured, measure
from sawtooth.behaviors.text import effect, number
from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.atomic_io import read_json, write_json, writing
from sawtooth.kernel import Kernel
from sawtooth.kernel.history import Commit, History
from sawtooth.kernel.kernel import recipe

if TYPE_CHECKING:
    from sawtooth.study import Study

GOOD, BAD, SKIPPED = "good", "bad", "skipped"
_UNBUILDABLE = ("build-failed", "bad-source", "patch-failed")
_UNRUNNABLE = ("guest-failed", "guest-timeout", "testbed-failed", "unsupported")
_MORE = "use more seeds"
_FORMAT = 3
"""The format of the verdicts' files."""
_LONGEST, _PATIENCE_S = 20, 600.0
"""A guest that takes this many times as long as the good commit's, and more than these seconds, has hung."""


class Judge(Protocol):
    """Tells good kernels from bad ones. What it ran is kept in files, by the kernel's digest."""

    def compare(self, good: Kernel, bad: Kernel) -> None:
        """Takes the ends of the search. Raises InputError ``conflict`` if they do not differ."""

    def has_verdict(self, kernel: Kernel) -> bool:
        """Whether ``verdict`` has nothing to run."""

    def verdict(self, kernel: Kernel) -> tuple[str, str]:
        """GOOD, BAD or SKIPPED, and its values or why it was skipped."""

    def report(self, before: Kernel, after: Kernel) -> tuple[list[dict[str, Any]], list[list[str]]]:
        """What differs between two kernels that it knows: as JSON values, and as rows."""


@dataclass(frozen=True)
class Step:
    """A commit that was tried. ``detail``: its values, or why it was skipped."""

    commit: Commit
    verdict: str
    detail: str
    kernel: Kernel | None = None

    def describe(self) -> dict[str, Any]:
        """As JSON values."""
        return {**self.commit.describe(), "verdict": self.verdict, "detail": self.detail}


@dataclass(frozen=True)
class Bisected:
    """``suspects``: the first bad commit alone. With skipped ones between the last good and the first bad, these and
    the first bad; with paths, it may then be a commit off them, too. ``before``: the good kernel next to it."""

    steps: tuple[Step, ...]
    suspects: tuple[Commit, ...]
    before: Step
    after: Step


@dataclass
class Bisection:
    """A search in ``history``. ``build``: makes a commit's kernel, with ticks of ``hz``. ``directory``: for what was
    tried, so that the same call continues. ``remove``: whether kernels are removed from the cache when they were
    judged. ``show``: called with each step."""

    history: History
    judge: Judge
    build: Callable[[str], Kernel]
    directory: Path
    hz: int
    paths: Sequence[str] = ()
    remove: bool = True
    show: Callable[[Step], None] = lambda step: None

    kept: list[Kernel] = field(default_factory=list)
    """Kernels that were built and not removed: none at the end, and some after an interruption."""

    def find(self, good: str, bad: str) -> Bisected:
        """``good`` and ``bad``: hashes. Raises SawtoothError: ``conflict`` if ``bad`` does not descend from ``good``,
        if both have the same behavior, or if no commit on ``paths`` changed it; as ``build`` does for these two, and
        as the judge does; ``not-a-result`` for a damaged file in ``directory``."""
        self._check(good, bad)
        self._journal()
        with writing(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
        try:
            found = self._searched(good, bad)
        except SawtoothError as error:
            # The same command continues an interrupted search.
            if error.code != "interrupted":
                self._clear()
            raise
        self._clear()
        return found

    def _searched(self, good: str, bad: str) -> Bisected:
        ends = []
        for hash_, name in ((good, "--good"), (bad, "--bad")):
            with _end(name):
                ends.append(self._built(hash_))
        self.judge.compare(*ends)
        steps = {one: self._judged(one, kernel) for one, kernel in zip((good, bad), ends, strict=True)}
        for one in steps.values():
            self.show(one)
        left, right = {good}, bad
        while True:
            suspects = self.history.suspects(left, right, self.paths)
            hidden: list[str] = []
            if self.paths and right in suspects:
                # A commit before it that is not on the paths may be the first bad one.
                hidden = [one for one in self.history.parents(right) if self.history.count(left, one)]
            open_ = [one for one in suspects if one not in steps] or [one for one in hidden if one not in steps]
            if not open_:
                break
            step = steps[open_[0]] = self._tried(open_[0])
            self.show(step)
            if step.verdict == GOOD:
                left.add(step.commit.hash)
            elif step.verdict == BAD:
                right = step.commit.hash
        if not suspects:
            message = f"no commit that changes {', '.join(self.paths)} is the first bad one"
            raise InputError("conflict", message, field="--path", fix="remove --path, or name more paths")
        nearest = [steps[one] for one in self.history.parents(right) if one in left and one in steps]
        first_bad = dict.fromkeys((right, *suspects, *hidden))
        return Bisected(
            tuple(steps.values()),
            tuple(self.history.commit(one) for one in first_bad),
            (nearest or [steps[good]])[0],
            steps[right],
        )

    def _check(self, good: str, bad: str) -> None:
        if good == bad:
            fix = "name a commit before the change, and one after it: sawtooth kernel bisect --help"
            raise InputError("conflict", "both ends are the same commit", field="--bad", fix=fix)
        common = self.history.common(good, bad)
        if common == good:
            if self.paths and not self.history.count([good], bad, self.paths):
                message = f"no commit between the two changes {', '.join(self.paths)}"
                raise InputError("conflict", message, field="--path", fix="remove --path, or correct it")
            return
        if common == bad:
            message = "the bad commit is not younger than the good one"
            fix = f"exchange them: --good {bad} --bad {good}; the search is for what changed, better or worse"
        else:
            message = "the bad commit does not descend from the good one"
            fix = f"name the one from which both descend: --good {common}" if common else "name other commits"
            fix = self.history.deepening or fix
        raise InputError("conflict", message, field="--good", fix=fix)

    def _tried(self, hash_: str) -> Step:
        known = self._journal().get(hash_)
        if known is not None and self.judge.has_verdict(known):
            return self._judged(hash_, known)
        try:
            kernel = self._built(hash_)
        except SawtoothError as error:
            if error.code not in _UNBUILDABLE:
                raise
            return Step(self.history.commit(hash_), SKIPPED, f"does not build: {error.message}")
        step = self._judged(hash_, kernel)
        if self.judge.has_verdict(kernel):
            kernels = {one: each.describe() for one, each in (self._journal() | {hash_: kernel}).items()}
            write_json(self._file, {"recipe": recipe(), "hz": self.hz, "kernels": kernels})
        if self.remove:
            _remove(kernel)
            self.kept.remove(kernel)
        return step

    def _built(self, hash_: str) -> Kernel:
        kernel = self.build(hash_)
        self.kept.append(kernel)
        return kernel

    def _clear(self) -> None:
        if self.remove:
            for kernel in self.kept:
                _remove(kernel)
            self.kept.clear()

    def _judged(self, hash_: str, kernel: Kernel) -> Step:
        commit = self.history.commit(hash_)
        try:
            return Step(commit, *self.judge.verdict(kernel), kernel)
        except SawtoothError as error:
            if error.code not in _UNRUNNABLE:
                raise
            return Step(commit, SKIPPED, f"does not run: {error.message}", kernel)

    @property
    def _file(self) -> Path:
        return self.directory / "kernels.json"

    def _journal(self) -> dict[str, Kernel]:
        """The kernels that were judged, by commit. Raises SawtoothError ``not-a-result``."""
        if not self._file.is_file():
            return {}
        try:
            about = read_json(self._file)
            if (about["recipe"], about["hz"]) != (recipe(), self.hz):
                return {}
            return {one: Kernel.described(kernel) for one, kernel in about["kernels"].items()}
        except (SawtoothError, AttributeError, KeyError, TypeError) as error:
            fix = "remove this file; the commits are then built again"
            raise SawtoothError("not-a-result", "is damaged", file=self._file, fix=fix) from error


@contextmanager
def _end(name: str) -> Iterator[None]:
    """Errors of an end's kernel name the option."""
    try:
        yield
    except SawtoothError as error:
        if error.code not in (*_UNBUILDABLE, *_UNRUNNABLE):
            raise
        named = error.at(field=name)
        named.fix = "name another commit" + (f", or: {error.fix}" if error.fix else "")
        raise named from error


def _remove(kernel: Kernel) -> None:
    if kernel.path.is_file():
        kernel.remove()


class ByBehavior:
    """A kernel is bad if a behavior that differs between the ends has changed from the good end. ``within``: the
    tolerance, as ``compared`` has it."""

    def __init__(
        self,
        catalogue: Catalogue,
        directory: Path,
        *,
        seeds: Sequence[int],
        within: float,
        jobs: int | None = None,
        show: Show | None = None,
    ) -> None:
        self._catalogue, self._judged = catalogue, catalogue
        self._directory, self._seeds, self._within = directory, seeds, within
        self._jobs, self._show = jobs, show
        self._ends: list[Measured] = []
        self._known: dict[str, Measured] = {}
        self._limit_s = math.inf

    def compare(self, good: Kernel, bad: Kernel) -> None:
        self._ends = []
        for kernel, name in ((good, "--good"), (bad, "--bad")):
            with _end(name):
                self._ends.append(self._measured(kernel))
            self._limit_s = max(_PATIENCE_S, _LONGEST * self._ends[0].wall_s)
        found = compared(self._ends[0], self._ends[1], self._catalogue, self._within)
        if not found.changed:
            for one, name in zip(self._ends, ("--good", "--bad"), strict=True):
                if one.failures:
                    message = f"a run failed on this commit: {one.failures[0]['why']}"
                    raise InputError("conflict", message, field=name, fix="name another commit")
            undecided = found.count(INCONCLUSIVE)
            message = f"none of the {len(found.changes)} behaviors changed between the two commits"
            fix = f"{_MORE}: {undecided} are inconclusive" if undecided else "name a behavior that kernel compare shows"
            raise InputError("conflict", message, field="--behavior", fix=fix)
        names = {one.name for one in found.changed}
        some = [
            replace(one, measures=tuple(measure for measure in one.measures if f"{one.name}:{measure}" in names))
            for one in self._catalogue.situations
        ]
        self._judged = replace(self._catalogue, situations=tuple(one for one in some if one.measures))

    def has_verdict(self, kernel: Kernel) -> bool:
        return is_measured(kernel, self._catalogue, self._directory, self._seeds)

    def verdict(self, kernel: Kernel) -> tuple[str, str]:
        own = self._measured(kernel)
        from_good, from_bad = (self._compared(end, own) for end in self._ends)
        values = ", ".join(f"{one.name} {number(one.after)}" for one in from_good.changes[:3])
        if from_good.changed:
            return BAD, values
        if not from_good.count(INCONCLUSIVE):
            return GOOD, values
        if own.failures:
            return SKIPPED, f"a run failed: {own.failures[0]['why']}"
        if not from_bad.changed and not from_bad.count(INCONCLUSIVE):
            return BAD, values
        return SKIPPED, f"inconclusive ({values}): {_MORE}"

    def report(self, before: Kernel, after: Kernel) -> tuple[list[dict[str, Any]], list[list[str]]]:
        found = self._compared(self._measured(before), self._measured(after))
        rows = [[one.name, number(one.before), number(one.after), effect(one)] for one in found.changes]
        behaviors: list[dict[str, Any]] = found.describe()["behaviors"]
        return behaviors, rows

    def _measured(self, kernel: Kernel) -> Measured:
        # A failed run is not run again in this search: its kernel may be removed.
        if kernel.digest not in self._known:
            (self._known[kernel.digest],) = measure(
                [kernel],
                self._catalogue,
                self._directory,
                seeds=self._seeds,
                jobs=self._jobs,
                show=self._show,
                limit_s=self._limit_s,
            )
        return self._known[kernel.digest]

    def _compared(self, reference: Measured, other: Measured) -> Comparison:
        return compared(reference, other, self._judged, self._within)


class ByExpectation:
    """A kernel is bad if an expectation of a scenario or study fails on it, and good if all hold."""

    def __init__(
        self,
        study: Study,
        expectations: Sequence[str],
        directory: Path,
        *,
        overrides: Mapping[str, Any],
        seeds: Sequence[int] | None,
        jobs: int | None = None,
    ) -> None:
        from sawtooth.study.expectation import read

        self._study, self._wanted = study, {one: one for one in expectations}
        read(self._wanted)
        self._directory, self._overrides, self._seeds, self._jobs = directory, overrides, seeds, jobs
        self._limit_s = math.inf

    def compare(self, good: Kernel, bad: Kernel) -> None:
        for kernel, wanted, name in ((good, GOOD, "--good"), (bad, BAD, "--bad")):
            with _end(name):
                verdict, values = self.verdict(kernel)
            if wanted == GOOD:
                self._limit_s = max(_PATIENCE_S, _LONGEST * self._stored(kernel)["wall_s"])
            if verdict != wanted:
                fix = "name another commit or expectation" if verdict != SKIPPED else _MORE
                raise InputError("conflict", f"this commit is {verdict}: {values}", field=name, fix=fix)

    def has_verdict(self, kernel: Kernel) -> bool:
        return self._file(kernel).is_file()

    def verdict(self, kernel: Kernel) -> tuple[str, str]:
        from sawtooth.assertions import FAILS, HOLDS

        judged = self._verdicts(kernel)
        values = "; ".join(f"{one['verdict']}: {one['detail']}" for one in judged)
        verdicts = {one["verdict"] for one in judged}
        return BAD if FAILS in verdicts else GOOD if verdicts == {HOLDS} else SKIPPED, values

    def report(self, before: Kernel, after: Kernel) -> tuple[list[dict[str, Any]], list[list[str]]]:
        both = list(zip(*(self._verdicts(one) for one in (before, after)), strict=True))
        rows = [[old["title"], old["detail"], new["detail"], new["verdict"]] for old, new in both]
        return [{"expectation": old["title"], "before": old, "after": new} for old, new in both], rows

    def _verdicts(self, kernel: Kernel) -> list[dict[str, Any]]:
        from sawtooth.assertions import judge
        from sawtooth.assertions.text import sides
        from sawtooth.engines import kernel as engine
        from sawtooth.study import run_study

        if not self.has_verdict(kernel):
            begun = time.monotonic()
            result = run_study(
                self._study,
                engine=engine.Kernel(limit_s=min(self._limit_s, engine.TIMEOUT_S)),
                out=self._directory / "runs",
                overrides={**self._overrides, "host.kernel": kernel.name},
                seeds=self._seeds,
                jobs=self._jobs,
                quiet=True,
            )
            judged = [
                {"title": one.title, "detail": sides(one), **one.describe()}
                for one in judge(result, self._wanted).verdicts
            ]
            with writing(self._directory):
                self._file(kernel).parent.mkdir(parents=True, exist_ok=True)
            write_json(self._file(kernel), {"wall_s": time.monotonic() - begun, "verdicts": judged})
        verdicts: list[dict[str, Any]] = self._stored(kernel)["verdicts"]
        return verdicts

    def _stored(self, kernel: Kernel) -> dict[str, Any]:
        found: dict[str, Any] = read_json(self._file(kernel))
        return found

    def _file(self, kernel: Kernel) -> Path:
        about = [self._wanted, dict(self._overrides), list(self._seeds or ())]
        question = [_FORMAT, self._study.model_dump(mode="json"), *about]
        digest = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:12]
        return self._directory / "judged" / f"{kernel.digest}-{digest}.json"
