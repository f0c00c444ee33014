"""The commands. Each imports what it needs when it is called, so that --help does not wait for it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sawtooth.cli import complete
from sawtooth.cli.check_command import github_option, junit_option, report_checks
from sawtooth.cli.common_options import Program, engine_option, settings_option
from sawtooth.cli.output_format import form_options
from sawtooth.cli.terminal import is_quiet, say, say_folded, width
from sawtooth.cli.workers import ClusterOptions, cluster_options, workers
from sawtooth.errors import InputError
from sawtooth.io.text_table import aligned
from sawtooth.sanitize import plain, sentence, where

if TYPE_CHECKING:
    from pandas import DataFrame

    from sawtooth.assertions import Judgement
    from sawtooth.study import Dataset, Study, StudyResult

_ADD_EXPECT = 'add the table to its file: expect = { goodput = "mean_mbps > 1 Mbit/s" }'


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from sawtooth import __version__

        say(f"sawtooth {__version__}")
        context.exit()


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version and exit."
)
def sawtooth() -> None:
    """Find out what TCP gets out of a path with a given rate, delay, queue and loss.

    \b
    From closed forms, at once:
      sawtooth predict --rate "100 Mbit/s" --rtt "20 ms" --loss 1%
    Simulated, with a report:
      sawtooth run one-percent-loss
    """


_settings = settings_option('Set a field of the scenario, like path.rtt="140 ms"; repeatable.')


@sawtooth.command()
@click.argument("file", type=str, shell_complete=complete.studies)
@engine_option
@_settings
@click.option(
    "--out", type=str, default="results", show_default=True, help="Directory for results, or an address like s3://…."
)
@click.option("--jobs", type=click.IntRange(1), help="Worker processes (default: one per core).")
@cluster_options
@click.option(
    "--seeds", type=click.IntRange(1, 10_000), help="Repeat each point with seeds 1 … N (default: the file's)."
)
@click.option(
    "--omit",
    metavar="TIME",
    help='Discard the first part of each run from the statistics, like "5 s" (default: the file\'s warmup).',
)
@click.option("--full", is_flag=True, help="Run the whole study instead of the shortened one.")
@click.option(
    "--fast",
    is_flag=True,
    help='End each simulation once goodput is known to 1%, and repeat rows; as --set fast="1%" (engine sim).',
)
@click.option("--capture", is_flag=True, help="Save packet headers at both ends as pcap (not with model).")
@click.option(
    "--capture-at", multiple=True, metavar="HOST", help="Save packet headers at this host instead; repeatable."
)
@junit_option
@github_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def run(
    context: click.Context,
    file: str,
    engine: str,
    overrides: dict[str, Any],
    out: str,
    jobs: int | None,
    cluster: ClusterOptions | None,
    seeds: int | None,
    omit: str | None,
    full: bool,
    fast: bool,
    capture: bool,
    capture_at: tuple[str, ...],
    junit: str | None,
    github: bool,
    as_json: bool,
) -> None:
    """Run a scenario or study: tables, figures and a report.

    FILE is a scenario, a study, the name of a shipped study, or - for standard input. The same command continues an
    interrupted run. If the study has a table [expect], the exit status is that of sawtooth check.

    \b
      sawtooth run office.toml --seeds 5
      sawtooth run office.toml --set flows.0.cc=bbr --out bbr
      sawtooth run one-percent-loss --engine kernel
    """
    from sawtooth.assertions import judge
    from sawtooth.assertions.observations import refuse_parts
    from sawtooth.assertions.text import words
    from sawtooth.report import write_report
    from sawtooth.run.metadata import limit_lines
    from sawtooth.study import run_into, run_study

    if omit is not None:
        if "warmup" in overrides:
            raise InputError(
                "bad-usage", "--set warmup sets the same field", field="--omit", fix="remove --omit or --set warmup"
            )
        overrides["warmup"] = omit
    if fast:
        if engine != "sim":
            raise InputError("bad-usage", "only the engine sim repeats rows", field="--fast", fix="remove --fast")
        if "fast" in overrides:
            raise InputError(
                "bad-usage", "--set fast sets the same field", field="--fast", fix="remove --fast or --set fast"
            )
        overrides["fast"] = "1%"
    if seeds is not None and "seed" in overrides:
        message = "--set seed also sets the seed"
        raise InputError("bad-usage", message, field="--seeds", fix="remove --seeds or --set seed")
    study, overrides = _study(file, overrides)
    if not study.expect and (junit is not None or github):
        name = "--github" if junit is None else "--junit"
        raise InputError("bad-usage", "the study has no table [expect]", field=name, fix=_ADD_EXPECT)
    statuses: list[int] = []
    unread: list[BrokenPipeError] = []

    def answer(result: StudyResult) -> None:
        page = write_report(result)
        found = judge(result) if study.expect else None
        try:
            if found is not None:
                statuses.append(report_checks(found, junit, github))
            if as_json:
                expected = {} if found is None else {"expectations": found.describe()["expectations"]}
                about = result.describe() | expected | {"report": str(page)}
                say(json.dumps(about, indent=2, ensure_ascii=False))
                return
            # Warnings first: the reader must know them before reading figures that may be meaningless.
            for warning in result.warnings:
                say_folded(f"warning: {sentence(warning)}")
            say_folded(result.table(width()))
            if len(result.places) == 1:
                for line in limit_lines(result.limits):
                    say_folded(f"limit of {line}")
            if found is not None:
                say_folded(f"\n{words(found)}\n")
            say(f"results: {where(result.directory)}")
            say(f"report: {where(page)}")
        except BrokenPipeError as error:
            # The reader of our output has closed it; finish the study anyway.
            unread.append(error)

    options: dict[str, Any] = {"engine": engine, "jobs": jobs, "full": full, "overrides": overrides}
    options |= {"seeds": None if seeds is None else range(1, seeds + 1), "quiet": is_quiet()}
    if "://" in out:
        if capture or capture_at:
            fix = "remove --capture, or give --out a directory"
            raise InputError("bad-usage", "a dataset has no captures", field="--capture", fix=fix)
        if study.expect:
            refuse_parts(study.expect, study.points(full=full, seeds=options["seeds"], overrides=overrides))
        with workers(cluster, jobs) as executor:
            found = run_into(study, out, executor=executor, **options)
        judged = judge(found, source=study.origin) if study.expect else None
        status = 0 if judged is None else report_checks(judged, junit, github)
        _written(study, found, judged, as_json)
        if status:
            context.exit(status)
        return
    with workers(cluster, jobs) as executor:
        run_study(
            study,
            out=Path(out),
            executor=executor,
            capture=capture or bool(capture_at),
            capture_at=capture_at,
            ending=answer,
            **options,
        )
    if unread:
        raise unread[0]
    if any(statuses):
        context.exit(statuses[0])


@sawtooth.command()
@click.option("--rate", required=True, help='Rate of the bottleneck, like "2.5 Gbit/s".')
@click.option("--rtt", required=True, help='Base round-trip time, like "140 ms".')
@click.option("--loss", required=True, help="Random loss, like 1.5%.")
@click.option("--cc", shell_complete=complete.controls, help="Congestion control (default: all).")
@click.option("--queue", help='Buffer of the bottleneck, like "1 bdp" or "1000 packets".')
@form_options
def predict(rate: str, rtt: str, loss: str, cc: str | None, queue: str | None, form: str | None) -> None:
    """Estimate goodput from closed forms, at once.

    One row per congestion control and formula, with the formula's source.

    \b
      sawtooth predict --rate "100 Mbit/s" --rtt "20 ms" --loss 1%
    """
    from sawtooth.engines import model

    _print(model.predict(rate=rate, rtt=rtt, loss=loss, cc=cc, queue=queue), form)


@sawtooth.command()
@click.argument("directory", type=str)
def report(directory: str) -> None:
    """Write the report of the results in DIRECTORY again.

    \b
      sawtooth report results/office/latest
    """
    from sawtooth.api import report as write

    say(f"report: {where(write(directory))}")


@sawtooth.command(short_help="Show what a scenario or study describes.")
@click.argument("file", type=str, shell_complete=complete.studies)
@_settings
@click.option("--json", "as_json", is_flag=True, help="Print what the core reads.")
@click.option("--as", "form", type=click.Choice(["custom"]), help="Print it as a scenario of this topology.")
def show(file: str, overrides: dict[str, Any], as_json: bool, form: str | None) -> None:
    """Show what a scenario or study FILE describes: paths, rates, queues, base RTT, BDP.

    With --as custom, print the same scenario with its hosts and links drawn one by one, so that you can change what the
    ready topology has no field for.

    \b
      sawtooth show office.toml
    """
    from sawtooth.api import load
    from sawtooth.cli.scenario_text import describe
    from sawtooth.scenario import Scenario

    loaded = load(file)
    if isinstance(loaded, Scenario):
        scenario, points = loaded.set(overrides), 1
    else:
        all_points = loaded.points(overrides=overrides)
        scenario, points = all_points[0].scenario, len(all_points)
        if not as_json and form is None:
            say(f"study {loaded.name}: {points} points; the first one is")
    if form is not None:
        from sawtooth.scenario.toml import toml_text

        scenario = scenario.as_custom()
        if not as_json:
            say(toml_text(scenario.to_dict()), end="")
            return
    if as_json:
        say(json.dumps(scenario.compile().to_dict(), indent=2))
    else:
        say_folded(describe(scenario))


@sawtooth.command()
@click.argument("kind", type=str, shell_complete=complete.schemas)
def schema(kind: str) -> None:
    """Print the JSON Schema of a file: KIND is scenario or study.

    \b
      sawtooth schema scenario
    """
    from sawtooth.api import schema as of

    say(json.dumps(of(kind), indent=2))


@sawtooth.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def studies(as_json: bool) -> None:
    """List the studies that come with sawtooth.

    \b
      sawtooth studies
    """
    from sawtooth.study import Study
    from sawtooth.study.shipped import shipped

    found = {name: (Study.load(path), path) for name, path in shipped().items()}
    if as_json:
        descriptions = [
            {"name": name, "title": study.title, "question": study.question.strip(), "file": str(path)}
            | {"varies": list(study.vary), "points": len(study.points())}
            for name, (study, path) in found.items()
        ]
        say(json.dumps(descriptions, indent=2, ensure_ascii=False))
        return
    longest = max(map(len, found))
    for name, (study, _) in found.items():
        say_folded(f"{name:{longest}}  {plain(study.title)}")
    say(f"\nfiles: {where(next(iter(found.values()))[1].parent)}")


def _written(study: Study, found: Dataset, judged: Judgement | None, as_json: bool) -> None:
    """A study's rows as a dataset: its path, the means of its points, and the results of its expectations."""
    from sawtooth.assertions.text import words
    from sawtooth.study.terminal import ENDS, MOST

    rows = found.read()
    if as_json:
        expected = {} if judged is None else {"expectations": judged.describe()["expectations"]}
        about = {"dataset": found.url, "points": len(rows)} | expected
        say(json.dumps(about, indent=2, ensure_ascii=False))
        return
    keys = [axis.column for axis in study.axes()]
    if keys:
        means = rows.groupby(keys, sort=False, dropna=False)["mean_mbps"].agg(["count", "mean", "min", "max"])
        if len(means) > MOST:
            known = means.dropna(subset="mean").sort_values("mean", kind="stable")
            which = "these have the lowest and the highest mean" if len(known) else "none has a mean"
            say(f"{len(means):,} points; the dataset has all, {which}")
            means = known.iloc[sorted({*range(len(known))[:ENDS], *range(len(known))[-ENDS:]})]
        lines = [
            [*map(str, key if isinstance(key, tuple) else (key,)), str(count), *(f"{one:.2f}" for one in mbps)]
            for key, (count, *mbps) in zip(means.index, means.itertuples(index=False, name=None), strict=True)
        ]
        head = [*keys, "seeds", "mean Mbit/s", "least", "most"]
        if lines:
            say("\n".join(aligned([head, *lines], range(len(keys)), width(), keys=len(keys))))
    if judged is not None:
        say_folded(f"\n{words(judged)}\n")
    say(f"dataset: {plain(found.url, 400)} ({len(rows)} points; part-*.parquet)")


def _study(file: str, overrides: dict[str, Any]) -> tuple[Study, dict[str, Any]]:
    """The study of a file, and the overrides that still must be applied. A scenario becomes a study with one point."""
    from sawtooth.api import load
    from sawtooth.scenario import Scenario
    from sawtooth.study import Study

    loaded = load(file)
    if not isinstance(loaded, Scenario):
        return loaded, overrides
    loaded = loaded.set(overrides)
    content = {"name": loaded.name, "scenario": loaded.to_dict(), "repeat": {"seeds": [loaded.seed]}}
    return Study.from_dict(content, source=file), {}


def _print(table: DataFrame, form: str | None) -> None:
    if form == "json":
        say(table.to_json(orient="records", indent=2))
    elif form == "csv":
        say(table.to_csv(index=False), end="")
    else:
        goodput = ["unknown" if math.isnan(bps) else f"{bps / 1e6:.4g} Mbit/s" for bps in table["goodput_bps"]]
        names = ["cc", "goodput", "limit", "formula", "source"]
        rows = table.assign(goodput=goodput)[names].astype(str).to_numpy().tolist()
        say("\n".join(aligned([names, *rows], (0, 2, 3, 4), width())))
