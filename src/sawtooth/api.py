"""The package's main functions. They take and return values, and the command line calls the same functions."""

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
    from sawtooth.run import Run
    from sawtooth.search import Answers, Frontier, Threshold, Worst
    from sawtooth.study import Runs, Study, StudyResult

SCHEMAS = ("scenario", "study")


def load(path: str | PathLike[str]) -> Scenario | Study:
    """Loads a scenario or study: a TOML file, ``-`` for standard input, or the name of a bundled study.

    A file with a table ``scenario`` is a study. Raises SawtoothError, which names the file, the field and a fix.
    """
    from sawtooth.scenario.toml import read_toml
    from sawtooth.study.shipped import found

    path = found(path)
    tables = read_toml(path)
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
    """Runs a scenario or a study, given as an object, as a file or as the name of a study that comes with Sawtooth.

    Returns a ``Run`` for a scenario (in memory), ``Runs`` for a scenario with ``seeds`` (in memory), and a
    ``StudyResult`` for a study (on disk).

    - ``engine``: "sim" (default), "kernel", "netns" or "model".
    - ``overrides``: fields to change, by dotted path: ``{"path.loss": "1%"}``.
    - ``seeds``: a list such as ``[1, 2, 3]``; each is run, instead of the file's own seed. ``mean()`` of the result
      averages over them; ``plot()`` draws it.
    - ``jobs``: how many runs at once (default: one per core).
    - ``quiet=False``: show a progress bar if it takes longer than two seconds.
    - ``options``, for studies only: ``out``, the directory for results (default "results"); ``executor``, an object
      with the interface of ``concurrent.futures`` whose workers see ``out``, instead of worker processes (which do not
      import the calling script); ``full=True``, the study's full version; ``capture`` and ``capture_at``, as on the
      command line.

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
    from sawtooth.io.progress_bar import Bar

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
) -> Threshold | Frontier | Answers:
    """Finds the value of a field at which a goal begins or ceases to hold: for example the highest loss at which
    ``goodput >= 90% of path.rate``.

    Returns a ``Threshold`` for a scenario; a ``Frontier`` if ``vary`` is a list of two or three ranges: which value the
    last field needs for given values of the others; ``Answers``, one per point, for a study that varies something.

    - ``vary``: the field and its range, "path.loss=0.0001%..5%". A study may have it in its table ``[find]``.
    - ``want``: the goal, "goodput >= 90% of path.rate". A study may have it in its table ``[find]``.
    - ``minimize``: a field, or a cost computed from fields; the answer says where on the frontier it is smallest.
    - ``scale``: "log" or "linear".
    - ``within``: target for the ends of the 95% interval, relative to the answer, "10%".
    - ``runs``: budget for one answer (default: 400; 1200 with two unknowns, 4000 with three).
    - ``check``: another engine, which is run at the answer.
    - ``executor``: a ``sawtooth.dask.Cluster`` whose workers do the runs.

    Raises SawtoothError.
    """
    from sawtooth.search import find as search

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


def worst(
    what: Scenario | Study | str | PathLike[str],
    measure: str,
    *,
    vary: str | Sequence[str],
    scale: str | None = None,
    runs: int | None = None,
    engine: str = "sim",
    check: str | None = None,
    jobs: int | None = None,
    executor: Any = None,
    overrides: Mapping[str, Any] | None = None,
    quiet: bool = True,
) -> Worst:
    """Finds the network within ranges on which an expression of measures is smallest, and the simplest that shows it.

    - ``measure``: "goodput / goodput(cc='reno')", in the language of ``find``'s goals.
    - ``vary``: fields and their ranges, like "path.loss=0%..5%"; fields with several values have their number:
      "path.loss.packets=8 of 500..10000", "path.changes.rate=6 of 1..50Mbit/s".
    - ``scale``: "log" or "linear".
    - ``runs``: budget of the search (default: 600). Confirming and simplifying take some more.
    - ``check``: another engine, which is run at the simplest network.
    - ``executor``: a ``sawtooth.dask.Cluster`` whose workers do the runs.

    Raises SawtoothError.
    """
    from sawtooth.search import worst as search
    from sawtooth.study import Study

    given = what if isinstance(what, (Scenario, Study)) else load(what)
    if not isinstance(given, Scenario):
        fix = "give a scenario: a file without a table [scenario]"
        file = None if isinstance(what, Study) else what
        raise InputError("unsupported", "the worst case of a study is not searched", file=file, fix=fix)
    return search(
        given.set(overrides or {}),
        measure,
        vary=vary,
        scale=scale,
        most=runs,
        engine=engine,
        check=check,
        jobs=jobs,
        executor=executor,
        quiet=quiet,
    )


def predict(*, rate: str, rtt: str, loss: str, cc: str | None = None, **options: Any) -> DataFrame:
    """Estimates goodput from closed forms, without a simulation. Returns a table with one row per congestion control.

    Quantities are strings with units. ``options`` are ``queue``, ``mss`` and ``hz``, as in ``engines.model.predict``.
    Raises SawtoothError.
    """
    from sawtooth.engines import model

    return model.predict(rate=rate, rtt=rtt, loss=loss, cc=cc, **options)


def report(result: StudyResult | str | PathLike[str]) -> Path:
    """Writes the HTML report of a study's result and returns its path. ``result`` is the object, its directory or its
    name.

    Raises SawtoothError: ``not-a-result``, ``file-not-found``, ``unwritable-output``, ``disk-full``.
    """
    from sawtooth.report import write_report
    from sawtooth.results import place
    from sawtooth.study import StudyResult

    if isinstance(result, (str, PathLike)):
        result = StudyResult.load(place(Path(result)))
    return write_report(result)


def schema(kind: str = "scenario") -> Mapping[str, Any]:
    """Returns the JSON Schema (2020-12) of a "scenario" or "study" file. Raises SawtoothError ``unknown-name``."""
    if kind not in SCHEMAS:
        raise InputError("unknown-name", f'there is no schema of "{kind}"', fix=suggestion(kind, SCHEMAS))
    if kind == "scenario":
        return Scenario.json_schema()
    from sawtooth.study import Study

    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Study.model_json_schema()}


def query(sql: str | None = None, *, directory: str | PathLike[str] = "results", latest: bool = False) -> DataFrame:
    """Runs an SQL query over all results below ``directory`` and returns a table.

    Without ``sql`` it lists the available views, one row per column: ``view``, ``column``. ``latest=True`` uses only
    the newest finished result of each study. Damaged results are left out, with a warning (``warnings.warn``) for each.
    Needs the extra ``query``. Raises SawtoothError ``tool-missing``, ``bad-query``, ``file-not-found``.
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
    """Samples this host's TCP connections and says what limits each. Yields one dictionary per sample.

    One sample: ``next(sawtooth.watch())``; ``pandas.DataFrame(sample["connections"])`` is its table (columns:
    docs/reference/watch.md).

    - ``filter``: which connections, in the syntax of ``ss``.
    - ``interval``: seconds between samples. ``count``: stop after this many.
    - ``top``: at most this many connections, ordered by ``sort``.
    - ``netns``: another network namespace instead of this host's.
    - ``replay``: a file that ``sawtooth watch --record`` wrote, instead of live data.

    Raises SawtoothError ``out-of-range``, ``bad-usage``, ``unknown-name``, ``not-a-recording``, or ``unsupported`` if
    the kernel does not provide this information.
    """
    from sawtooth.watch.sampler import describing

    return describing(filter, interval_s=interval, count=count, sort=sort, top=top, netns=netns, replay=replay)


def doctor() -> list[Check]:
    """Checks what works on this machine, and why something does not. Returns one ``Check`` per feature.

    ``[one.name for one in sawtooth.doctor() if not one.works]`` lists what fails. Engines are named "engine sim" and so
    on. It boots a guest, which takes a few seconds.
    """
    from sawtooth.doctor import checks, examine

    return checks(examine())
