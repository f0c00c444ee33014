"""Targets: each reader of text with all that its answer goes through, as a function of bytes.

A target returns, or raises SawtoothError with its own code. Anything else is a defect: another exception, the code
``internal`` or ``core-failed``, a message that would steer a terminal, more than two seconds or a gigabyte.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sawtooth.errors import SawtoothError
from sawtooth.whatif.inputs import CAPTURES

Target = Callable[[bytes], None]
CORPUS = Path(__file__).parent.parent / "corpus"

_here = tempfile.TemporaryDirectory(prefix="sawtooth-fuzz-")
_home = Path(_here.name)
_input = _home / "input"


def text_of(data: bytes) -> str:
    return data.decode(errors="replace")


def series(data: bytes) -> None:
    """RTT series: ping, scamper, RIPE Atlas, CSV; checked, and estimated if they are long enough."""
    from sawtooth.link_estimate.estimate import estimate
    from sawtooth.link_estimate.inputs import read_series
    from sawtooth.link_estimate.series import difference
    from sawtooth.link_estimate.series_checks import check

    _input.write_bytes(data)
    found = read_series(_input)
    for one in found[:5]:
        with contextlib.suppress(SawtoothError):
            estimate(check(one).part(slice(2000)), _shipped_model(), rtt_s=0.02)
    if len(found) > 1:
        difference(found[1], found[0])


@functools.cache
def _shipped_model() -> Any:
    from sawtooth.link_estimate.model import CongestionModel

    return CongestionModel.default()


def measurement(data: bytes) -> None:
    """iperf3's and ss's output for ``whatif``: up to the scenarios that it would replay."""
    from sawtooth.whatif.estimators import estimate
    from sawtooth.whatif.inputs import observe
    from sawtooth.whatif.runs import draw, middle, scenario
    from sawtooth.whatif.scenario_file import save_scenario

    _input.write_bytes(data)
    observed = observe(_input)
    path = estimate(observed)
    for drawn in [middle(path), *draw(path, 3, 1)]:
        for cc in ("cubic", "bbr"):
            scenario(observed, path, drawn, cc)
    save_scenario(_home / "scenario.toml", observed, path)


def explained(data: bytes) -> None:
    """What ``explain`` reads, of text: it recognizes each kind, and mtr's reports have a reader here."""
    from sawtooth.explain.inputs import read

    if not data.startswith(CAPTURES):
        _input.write_bytes(data)
        read([str(_input)])


def tshark(data: bytes) -> None:
    """tshark's per-packet CSV, identified."""
    from sawtooth.capture.csv import read_csv
    from sawtooth.capture.identify import identify

    _input.write_bytes(data)
    identify(read_csv(_input)).text()


def scenario(data: bytes) -> None:
    """A scenario file: read, compiled, displayed, written and read again."""
    from sawtooth.cli.scenario_text import describe
    from sawtooth.scenario import Scenario
    from sawtooth.scenario.toml import parse_toml

    asked = Scenario.from_dict(parse_toml(text_of(data)))
    describe(asked)
    assert Scenario.from_dict(asked.to_dict()).digest() == asked.digest()


def sizes(data: bytes) -> None:
    """The cumulative distribution of transfer sizes."""
    from sawtooth.scenario import Scenario
    from sawtooth.scenario.sizes import read_cdf

    _input.write_bytes(data)
    read_cdf(str(_input))
    source = {"kind": "arrivals", "load": "1 Mbit/s", "sizes": {"kind": "cdf", "file": str(_input)}}
    Scenario(flows=[{"source": source}]).compile().to_json()


def deviations(data: bytes) -> None:
    """A table of jitter's deviations."""
    from sawtooth.scenario import Scenario
    from sawtooth.scenario.jitter import read_deviations

    _input.write_bytes(data)
    read_deviations(str(_input))
    jitter = {"deviation": "1 ms", "distribution": "table", "table": str(_input)}
    Scenario(path={"jitter": jitter}).compile().to_json()


def transfers(data: bytes) -> None:
    """A list of transfers with their start times."""
    from sawtooth.scenario import Scenario
    from sawtooth.scenario.arrivals import read_transfers

    _input.write_bytes(data)
    read_transfers(str(_input))
    Scenario(flows=[{"source": {"kind": "arrivals", "times": str(_input)}}]).compile().to_json()


def trace(data: bytes) -> None:
    """Traces of a link: delivery times, CSV; compiled for a path."""
    from sawtooth.scenario import Scenario
    from sawtooth.scenario.traces import read_trace

    _input.write_bytes(data)
    read_trace(str(_input))
    Scenario(path={"trace": str(_input)}).compile().to_json()


def study(data: bytes) -> None:
    """A study file, and its points if there are few."""
    from sawtooth.scenario.toml import parse_toml
    from sawtooth.study import Study

    found = Study.from_dict(parse_toml(text_of(data)), source=str(_home / "study.toml"))
    found.roles()
    for full in (False, True):
        if math.prod(len(axis.values) for axis in found.axes()) * len(found.repeat.seeds) <= 20:
            found.points(full=full)


def grid(data: bytes) -> None:
    """A grid of scenarios, and the record of measured runs beside it."""
    from sawtooth.compare.fidelity.grid import Grid
    from sawtooth.compare.fidelity.measurements import Ledger

    _input.write_bytes(data)
    if data.startswith(b"point,"):
        Ledger.load(_input)
    else:
        Grid.load(_input)


def override(data: bytes) -> None:
    """The argument of --set: a field and its value, on two scenarios and a study."""
    from sawtooth.scenario import Scenario
    from sawtooth.scenario.overrides import parse_assignment
    from sawtooth.study import Study

    changes = dict(parse_assignment(line) for line in text_of(data).split("\n")[:20])
    for tables in _BASES:
        with contextlib.suppress(SawtoothError):
            Scenario.from_dict(tables).set(changes).compile()
    given = {"name": "x", "scenario": {"topology": "chain"}, "vary": {"chain.loss": ["0%", "1%"]}}
    Study.from_dict(given).points(overrides=changes)


_BASES = (
    {"flows": [{"cc": "bbr"}, {"name": "a", "cc": "cubic"}], "probes": [{}]},
    {
        "topology": "custom",
        "hosts": {"a": {}, "b": {}},
        "links": [{"from": "a", "to": "b", "rate": "1 Mbit/s"}],
        "flows": [{"from": "a", "to": "b"}],
    },
)


def quantity(data: bytes) -> None:
    """Text with a unit; its printed form is read as the same."""
    from sawtooth.compare import tolerance
    from sawtooth.scenario import Loss, Queue, Rate, Size, Span

    for line in text_of(data).split("\n")[:50]:
        for kind in (Rate, Span, Size, Loss, Queue):
            with contextlib.suppress(SawtoothError):
                found = kind.parse(line)
                assert kind.parse(str(found)) == found
        with contextlib.suppress(SawtoothError):
            tolerance(line)
    Rate.parse(text_of(data))


def wanted(data: bytes) -> None:
    """A comparison of --want and expectations: read, and evaluated."""
    from sawtooth.scenario.expressions import RATE, SHARE, Amount, parse

    for line in text_of(data).split("\n")[:50]:
        with contextlib.suppress(SawtoothError):
            found = parse(line)
            str([str(one) for one in found.measures])
            for dimension in (RATE, SHARE):
                with contextlib.suppress(SawtoothError):
                    found.margin(lambda _, of=dimension: Amount(np.array([1.0, 0.0]), of))
    parse(text_of(data))


def expectation(data: bytes) -> None:
    """A line of a study's [expect]: read, and matched with points."""
    from sawtooth.study import Study
    from sawtooth.study.expectation import Expectation, point_of

    study = Study.load(CORPUS / "study" / "small.toml")
    axes, scenario = study.axes(), study.points()[0].scenario
    for line in text_of(data).split("\n")[:20]:
        with contextlib.suppress(SawtoothError):
            found = Expectation.read("fuzz", line)
            found.check(axes, scenario)
            for case in found.cases(axes):
                for one in found.wanted.measures:
                    point_of(one, axes, case)
    Expectation.read("fuzz", text_of(data))


def sql(data: bytes) -> None:
    """A query over results, which must not write."""
    from sawtooth.results.query import query

    kept = _saved()
    before = sorted(kept.rglob("*"))
    try:
        query(text_of(data), kept.parent)
    finally:
        assert sorted(kept.rglob("*")) == before


def published(data: bytes) -> None:
    """A table of published figures."""
    from sawtooth.study.published import load

    (_home / "input.csv").write_bytes(data)
    found = load("input.csv", beside=_home)
    found.figure(dict.fromkeys(found.keys, 1))


def result(data: bytes) -> None:
    """study.json and run.json of saved results: whatever their content, the tables are checked against it."""
    from sawtooth.study import StudyResult

    kept = _saved()
    place = (
        next(kept.glob("points/*")) / "run.json"
        if b'"digest": "' in data and b'"points"' not in data
        else kept / "study.json"
    )
    before = place.read_bytes()
    try:
        place.write_bytes(data)
        StudyResult.load(kept)
    finally:
        place.write_bytes(before)


def _saved() -> Path:
    """A finished study of one point, made once."""
    target = _home / "results"
    if not target.exists():
        shutil.copytree(CORPUS / "result-study", target, ignore=shutil.ignore_patterns(".lock"))
    return target


def pack(data: bytes) -> None:
    """A file of a pack of short runs, with digests that fit: each run is refused, or has the rows that are its own."""
    import pandas as pd

    from sawtooth.io.atomic_io import checksum, write_json
    from sawtooth.run import Run, described, saved_points
    from sawtooth.run.pack import PLACE, forget, names

    where = _home / "packed" / "packs" / "0"
    shutil.copytree(CORPUS / "pack", where, dirs_exist_ok=True)
    changed = "intervals.parquet" if data.startswith(b"PAR1") else "pack.json" if b'"runs"' in data else "runs.jsonl"
    (where / changed).write_bytes(data)
    if changed != "pack.json":
        about = json.loads((where / "pack.json").read_text())
        about["files"][changed] = checksum(where / changed)
        write_json(where / "pack.json", about)
    forget()
    errors = []
    for point in saved_points(where.parent.parent):
        try:
            assert described(point)["format"] == 2
            found = Run.load(point).tables["intervals"]
            every = pd.read_parquet(where / "intervals.parquet")
            own = (
                every[every[PLACE] == names(where.parent.parent).index(point.name)]
                .drop(columns=PLACE)
                .reset_index(drop=True)
            )
            pd.testing.assert_frame_equal(found, own, check_dtype=False)
        except SawtoothError as error:
            errors.append(error)
    for error in errors:
        raise error


def model(data: bytes) -> None:
    """A model of persistent congestion, as ``calibrate`` saves it."""
    from sawtooth.link_estimate.model import CongestionModel

    _input.write_bytes(data)
    CongestionModel.load(_input)


def policy(data: bytes) -> None:
    """A policy of ``sawtooth.gym``: it is read, and decides once."""
    from sawtooth.engines.policy import OBSERVED, Policy

    _input.write_bytes(data)
    Policy.load(_input)(np.ones(len(OBSERVED)))


TARGETS: dict[str, Target] = {
    one.__name__: one
    for one in (
        series,
        measurement,
        explained,
        tshark,
        scenario,
        trace,
        deviations,
        sizes,
        transfers,
        study,
        grid,
        override,
        quantity,
        wanted,
        expectation,
        sql,
        published,
        result,
        pack,
        model,
        policy,
    )
}


def seeds(name: str) -> list[bytes]:
    """The committed corpus of a target."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


np.seterr(all="ignore")
