"""The verbs of the package: values in, values out. The command line calls the same functions as these do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from sawtooth.errors import InputError, suggestion
from sawtooth.scenario import Scenario

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.doctor import Check
    from sawtooth.finding import Answers, Found, Frontier
    from sawtooth.run import Run
    from sawtooth.study import Runs, Study, StudyResult

SCHEMAS = ("scenario", "study")


def load(path: str | PathLike[str]) -> Scenario | Study:
    """The scenario or study of a TOML file, ``-`` for standard input, or a shipped study by its name.

    A study has a table ``scenario``. Raises SawtoothError with the file, the field and a fix.
    """
    from sawtooth.study.files import read_tables
    from sawtooth.study.shipped import found

    path = found(path)
    tables = read_tables(path)
    if "scenario" not in tables:
        return Scenario.from_file(tables, path)
    from sawtooth.study import Study

    return Study.from_dict(tables, source=os.fspath(path))


@overload
def run(
    what: Scenario,
    *,
    engine: str = "sim",
    overrides: Mapping[str, Any] | None = None,
    quiet: bool = True,
    seeds: None = None,
    jobs: int | None = None,
) -> Run: ...
@overload
def run(
    what: Scenario,
    *,
    engine: str = "sim",
    overrides: Mapping[str, Any] | None = None,
    quiet: bool = True,
    seeds: Sequence[int],
    jobs: int | None = None,
) -> Runs: ...
@overload
def run(
    what: Study,
    *,
    engine: str = "sim",
    overrides: Mapping[str, Any] | None = None,
    quiet: bool = True,
    seeds: Sequence[int] | None = None,
    jobs: int | None = None,
    **options: Any,
) -> StudyResult: ...
@overload
def run(
    what: str | PathLike[str],
    *,
    engine: str = "sim",
    overrides: Mapping[str, Any] | None = None,
    quiet: bool = True,
    seeds: Sequence[int] | None = None,
    jobs: int | None = None,
    **options: Any,
) -> Run | Runs | StudyResult: ...
def run(
    what: Scenario | Study | str | PathLike[str],
    *,
    engine: str = "sim",
    overrides: Mapping[str, Any] | None = None,
    quiet: bool = True,
    seeds: Sequence[int] | None = None,
    jobs: int | None = None,
    **options: Any,
) -> Run | Runs | StudyResult:
    """Runs a scenario (answer: a Run, with ``seeds`` Runs, both in memory) or a study (a StudyResult, on disk).

    Given itself, its file, or the name of a shipped study.

    ``seeds``, like ``[1, 2, 3]``, run it once for each instead of its own; ``jobs`` is how many at once (one a core).
    The answer has ``mean()``, over the seeds, and ``plot()``. ``overrides`` are fields by dotted path. ``quiet=False``
    shows a progress bar on what takes longer than two seconds.
    ``options``, for a study only: ``out``, the directory for results ("results"); ``executor``, anything with the
    interface of ``concurrent.futures`` whose workers see ``out``, instead of worker processes, which import nothing of
    the script that calls; ``full``, the whole study; ``capture`` and ``capture_at``, as on the command line.

    Raises SawtoothError.
    """
    if isinstance(what, (str, PathLike)):
        what = load(what)
    if not isinstance(what, Scenario):
        from sawtooth.study import Study, run_study

        if not isinstance(what, Study):
            raise _not_runnable(what)
        return run_study(what, engine=engine, overrides=overrides, quiet=quiet, seeds=seeds, jobs=jobs, **options)
    if options:
        fix = "remove it, or run a study"
        raise InputError("bad-usage", "a scenario does not take this option", field=next(iter(options)), fix=fix)
    from sawtooth import engines

    scenario = what.set(overrides or {})
    chosen = engines.get(engine)
    if seeds is not None:
        from sawtooth.study.runs import run_seeds

        if "seed" in (overrides or {}):
            message = "the override of seed also sets the seed"
            raise InputError("bad-usage", message, field="seeds", fix="remove seeds, or the override of seed")
        return run_seeds(scenario, seeds, chosen, jobs=jobs, quiet=quiet)
    from sawtooth.bar import Bar

    chosen.check(scenario)
    with Bar(scenario.name, 1, quiet=quiet) as bar:
        return chosen.run(scenario, progress=bar.show)


def _not_runnable(what: object) -> InputError:
    message = f"run takes a Scenario, a Study, a file or a study's name, not a {type(what).__name__}"
    fix = (
        "make a scenario of it first: Scenario.from_dict(tables)" if isinstance(what, Mapping) else "give one of these"
    )
    return InputError("wrong-type", message, fix=fix)


def find(
    what: Scenario | Study | str | PathLike[str],
    *,
    vary: str | Sequence[str] | None = None,
    want: str | None = None,
    scale: str | None = None,
    within: str | None = None,
    runs: int | None = None,
    minimize: str | None = None,
    engine: str = "sim",
    check: str | None = None,
    jobs: int | None = None,
    executor: Any = None,
    overrides: Mapping[str, Any] | None = None,
    quiet: bool = True,
) -> Found | Frontier | Answers:
    """The value of a field from which on, or up to which, something holds: ``vary="path.loss=0.0001%..5%"``,
    ``want="goodput >= 90% of path.rate"``.

    Of a scenario a ``Found``; for a list of two or three ranges a ``Frontier``: what the last field must be for values
    of the others, and where on it ``minimize`` is least, a field or a cost made of fields. Of a study that varies
    something ``Answers``, one for each point, where ``vary`` and ``want`` may be in its table ``[find]``. ``scale`` is
    "log" or "linear"; ``within`` how near the ends of the 95% interval are to be to the answer, "10%"; ``runs`` how
    many there may be for one answer, 400, or 1200 and 4000 of two and three unknowns; ``check`` another engine that is
    asked at the answer; ``executor`` a ``sawtooth.cluster.Cluster`` whose workers make the runs. Raises SawtoothError.
    """
    from sawtooth.finding import find as search

    if isinstance(what, (str, PathLike)):
        what = load(what)
    return search(
        what,
        vary=vary,
        want=want,
        scale=scale,
        within=within,
        most=runs,
        minimize=minimize,
        engine=engine,
        check=check,
        jobs=jobs,
        executor=executor,
        overrides=overrides,
        quiet=quiet,
    )


def predict(*, rate: str, rtt: str, loss: str, cc: str | None = None, **options: Any) -> DataFrame:
    """Closed-form estimates for a path, one row a congestion control; quantities are text with units.

    ``options`` are those of ``engines.model.predict``: queue, mss, hz. Raises SawtoothError.
    """
    from sawtooth.engines import model

    return model.predict(rate=rate, rtt=rtt, loss=loss, cc=cc, **options)


def report(result: StudyResult | str | PathLike[str]) -> Path:
    """Writes the HTML report of a study's result, given itself, its directory or its name, and returns its path.

    Raises SawtoothError: ``not-a-result``, ``file-not-found``, ``unwritable-output``, ``disk-full``.
    """
    from sawtooth.report import write_report
    from sawtooth.results import place
    from sawtooth.study import StudyResult

    if isinstance(result, (str, PathLike)):
        result = StudyResult.load(place(Path(result)))
    return write_report(result)


def schema(kind: str = "scenario") -> Mapping[str, Any]:
    """JSON Schema (2020-12) of a "scenario" or "study" file. Raises SawtoothError ``unknown-name``."""
    if kind not in SCHEMAS:
        raise InputError("unknown-name", f'there is no schema of "{kind}"', fix=suggestion(kind, SCHEMAS))
    if kind == "scenario":
        return Scenario.json_schema()
    from sawtooth.study import Study

    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Study.model_json_schema()}


def query(sql: str | None = None, *, directory: str | PathLike[str] = "results", latest: bool = False) -> DataFrame:
    """What ``sawtooth query`` answers: SQL over all results below ``directory``, as a table.

    Without ``sql`` the views that there are, a row a column: ``view``, ``column``. ``latest``: only the newest finished
    result of each study. Needs the extra ``query``. Raises SawtoothError ``tool-missing``, ``bad-query``,
    ``file-not-found``.
    """
    from sawtooth.results.query import query as ask
    from sawtooth.results.query import views

    if sql is not None:
        found: DataFrame = ask(sql, Path(directory), latest=latest).to_pandas()
        return found
    import pandas as pd

    rows = [(view, column) for view, columns in views(Path(directory)).items() for column in columns]
    return pd.DataFrame(rows, columns=["view", "column"])


def watch(
    filter: str = "",
    *,
    interval: float = 1.0,
    count: int | None = None,
    sort: str = "goodput",
    top: int | None = None,
    netns: str | None = None,
    replay: str | PathLike[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """What ``sawtooth watch --json`` prints: the TCP connections of this host, look after look, a dictionary each.

    ``pandas.DataFrame(look["connections"])`` is a table of them (docs/reference/watch.md). One look:
    ``next(sawtooth.watch())``. ``filter`` is in the words of ss, ``interval`` in seconds, ``count`` ends it after so
    many looks; ``top`` connections at most, first by ``sort``; ``netns`` is another network namespace, ``replay`` a
    file that ``sawtooth watch --record`` wrote, instead of this host. Raises SawtoothError ``out-of-range``,
    ``bad-usage``, ``unknown-name``, ``not-a-recording``, ``unsupported`` where the kernel does not tell.
    """
    from sawtooth.watch.looks import describing

    return describing(filter, interval_s=interval, count=count, sort=sort, top=top, netns=netns, replay=replay)


def doctor() -> list[Check]:
    """What ``sawtooth doctor`` finds on this machine, one check after the other: whether it works, and if not why.

    ``[one.name for one in sawtooth.doctor() if not one.works]``; the engines are "engine sim" and so on. It boots a
    guest to find out, which takes some seconds.
    """
    from sawtooth.doctor import checks, examine

    return checks(examine())
