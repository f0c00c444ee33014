"""Bundled studies are found by name, from anywhere, on the command line and in Python alike."""

from pathlib import Path

import pytest

import sawtooth
from expected_error import expected_error
from sawtooth.study.published import load as load_published
from sawtooth.study.shipped import found, shipped


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_they_lie_in_the_package_and_a_name_is_enough() -> None:
    package = Path(sawtooth.__file__).parent
    assert all(package in path.parents for path in shipped().values())
    study = sawtooth.load("one-percent-loss")
    assert isinstance(study, sawtooth.Study)
    assert study.name == "one-percent-loss"


@pytest.mark.parametrize("name", shipped())
def test_each_makes_its_points_and_finds_the_figures_that_it_is_compared_with(name: str) -> None:
    study = sawtooth.load(name)
    assert isinstance(study, sawtooth.Study)
    assert study.points()
    if study.published is not None:
        beside = Path(study.origin).parent if study.origin else None
        assert not load_published(study.published.file, beside=beside, source=study.published.source).figures.empty


def test_a_directory_of_that_name_does_not_go_before_a_shipped_study(tmp_path, monkeypatch) -> None:
    (tmp_path / "web").mkdir()
    monkeypatch.chdir(tmp_path)
    assert found("web") == shipped()["web"]
    assert found("./web/") == "./web/"


def test_a_file_of_that_name_goes_before_a_shipped_study() -> None:
    Path("one-percent-loss").write_text('name = "mine"')
    assert isinstance(sawtooth.load("one-percent-loss"), sawtooth.Scenario)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with expected_error(code="file-not-found", match='did you mean "one-percent-loss"'):
        sawtooth.load("one-percent-los")


def test_a_search_for_the_file_of_a_shipped_study_gets_its_name() -> None:
    with expected_error(code="file-not-found", match="give its name alone, one-percent-loss"):
        found("studies/one-percent-loss.toml")


def test_a_name_that_no_file_system_takes_is_not_found() -> None:
    for name in ("x" * 5000, "a\0b"):
        with expected_error(code="file-not-found"):
            sawtooth.load(name)
