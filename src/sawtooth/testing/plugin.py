"""The pytest plugin, which pytest finds where the package is installed: a marker that names a study, and its result as
a fixture.

@pytest.mark.sawtooth_study("office.toml", seeds=5)
def test_bbr_keeps_its_rate(sawtooth_result):
    assert_holds(sawtooth_result)
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sawtooth.study import StudyResult

MARKER = "sawtooth_study"
OPTIONS = ("engine", "seeds", "overrides", "full", "jobs")
"""Keyword arguments of the marker."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds Sawtooth's options to pytest's command line."""
    group = parser.getgroup("sawtooth", "studies of TCP")
    group.addoption("--sawtooth-engine", metavar="NAME", help="Who answers studies that name no engine: sim.")
    group.addoption("--sawtooth-seeds", type=int, metavar="N", help="Repeat their points with seeds 1 … N.")
    group.addoption("--sawtooth-out", metavar="DIR", help="Keep results there: by default a temporary directory.")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker."""
    line = f"{MARKER}(file, {', '.join(f'{name}=' for name in OPTIONS)}): the study that sawtooth_result is of"
    config.addinivalue_line("markers", line)


@pytest.fixture(scope="session")
def sawtooth_run(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., StudyResult]:
    """``sawtooth.run``, quiet, with the options of the command line. It computes each question once per session."""
    known: dict[str, StudyResult] = {}
    out = pytestconfig.getoption("--sawtooth-out")
    home = Path(out) if out else None

    def run(file: Any, **options: Any) -> StudyResult:
        nonlocal home
        import sawtooth

        given: dict[str, Any] = {"engine": pytestconfig.getoption("--sawtooth-engine") or "sim", "quiet": True}
        seeds = pytestconfig.getoption("--sawtooth-seeds")
        given |= {} if seeds is None else {"seeds": seeds}
        given |= options
        if isinstance(given.get("seeds"), int):
            given["seeds"] = list(range(1, given["seeds"] + 1))
        question = json.dumps([str(file), given], sort_keys=True, default=repr)
        if question not in known:
            home = home or tmp_path_factory.mktemp("results")
            verb: Any = sawtooth.run
            known[question] = verb(file, **{"out": home, **given})
        return known[question]

    return run


@pytest.fixture
def sawtooth_result(request: pytest.FixtureRequest, sawtooth_run: Callable[..., StudyResult]) -> StudyResult:
    """The result of the study named by the test's marker: a file beside the test, or a study that comes with
    Sawtooth."""
    marker = request.node.get_closest_marker(MARKER)
    if marker is None or len(marker.args) != 1:
        pytest.fail(f'name the study: @pytest.mark.{MARKER}("office.toml")', pytrace=False)
    for name in marker.kwargs:
        if name not in OPTIONS:
            from sawtooth.errors import suggestion

            pytest.fail(f"the marker {MARKER} takes no {name}; {suggestion(name, OPTIONS)}", pytrace=False)
    beside = request.path.parent / str(marker.args[0])
    return sawtooth_run(beside if beside.is_file() else marker.args[0], **marker.kwargs)
