"""The contents of a directory of results: named, counted, and each with its state."""

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from fake_engine import Failing, quick, study
from sawtooth.cli.program import status_of
from sawtooth.cli.results_commands import results as command
from sawtooth.compare.subject import Subject
from sawtooth.errors import SawtoothError
from sawtooth.io.atomic_io import write_description
from sawtooth.io.text_table import size
from sawtooth.results import listing, place
from sawtooth.study import StudyResult, store

EARLIER = Path(__file__).parents[1] / "earlier"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two results of one study, shared read-only by tests."""
    out = tmp_path_factory.mktemp("results")
    for _ in range(2):
        quick(out=out)
    return out


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """A copy of them, to damage."""
    return Path(shutil.copytree(made, tmp_path / "results", symlinks=True))


def only(home: Path, **options):
    (found,) = listing(home, latest=True, **options)
    return found


@pytest.mark.usefixtures("patience")
def test_a_finished_study_is_whole_with_its_points_engine_and_size(made: Path) -> None:
    found = only(made)
    assert (found.state, found.problem, found.kind, found.engine, found.older) == ("whole", "", "study", "fake", False)
    assert found.points == found.done == len(study().points())
    assert found.bytes == sum(path.stat().st_size for path in found.directory.rglob("*") if path.is_file())
    assert found.name == f"{found.directory.parent.name}/{found.directory.name}"


def test_the_newest_comes_first_and_only_the_newest_is_the_latest(made: Path) -> None:
    found = listing(made)
    assert [one.latest for one in sorted(found, key=lambda one: one.name)] == [False, True]
    assert listing(made, order="name") == sorted(found, key=lambda one: one.name)
    assert [one.started for one in found] == sorted((one.started for one in found), reverse=True)


@pytest.mark.parametrize(("pattern", "count"), [("*", 2), ("other", 0), ("{study}", 2), ("{study}/2*", 2), ("{s}*", 2)])
def test_a_pattern_chooses_by_name_or_study(made: Path, pattern: str, count: int) -> None:
    name = study().directory
    assert len(listing(made, names=[pattern.format(study=name, s=name[:2])])) == count


def test_links_hidden_directories_and_what_is_no_result_are_passed_over(home: Path) -> None:
    (home / "other").mkdir()
    (home / "other" / "notes.txt").write_text("none")
    (home / ".hidden").symlink_to(home)
    assert len(listing(home)) == 2


def test_a_study_that_was_stopped_is_interrupted_and_says_how_far_it_came(home: Path) -> None:
    where = only(home).directory
    path = where / "study.json"
    description = store.describe(where) | {"finished": None}
    write_description(path, description)
    shutil.rmtree(store.point_directory(where, description["points"][0]["id"]))
    (found,) = listing(home, states=["interrupted"])
    assert (found.done, found.points, found.finished) == (found.points - 1, len(description["points"]), None)


def test_a_study_that_a_process_works_on_is_running_and_looking_does_not_keep_it_from_its_lock(home: Path) -> None:
    import fcntl

    where = only(home).directory
    write_description(where / "study.json", store.describe(where) | {"finished": None})
    with (where / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert [one.state for one in listing(home, states=["running", "interrupted"])] == ["running"]
    assert [one.state for one in listing(home, states=["running", "interrupted"])] == ["interrupted"]


def test_a_finished_study_whose_points_are_gone_is_damaged(home: Path) -> None:
    where = only(home).directory
    shutil.rmtree(where / "points")
    found = only(home)
    assert found.state == "damaged"
    assert found.problem == f"{found.points} of {found.points} points are missing"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 1}', '{"format": 1, "study": {"name": "\\u001b[2J"}}'])
def test_a_description_that_cannot_be_read_is_damaged_and_hides_no_other_result(home: Path, content: str) -> None:
    (only(home).directory / "study.json").write_text(content)
    found = listing(home)
    assert sorted(one.state for one in found) == ["damaged", "whole"]
    assert "\x1b" not in json.dumps([one.describe() for one in found])


def test_a_description_that_was_changed_is_damaged(home: Path) -> None:
    path = only(home).directory / "study.json"
    path.write_text(path.read_text().replace('"fake"', '"sim"'))
    (found,) = listing(home, states=["damaged"])
    assert "SHA-256" in found.problem


@pytest.mark.parametrize("name", ["study.json", "points/{id}/run.json"])
def test_what_a_later_version_wrote_is_newer_or_its_point_damaged(home: Path, name: str) -> None:
    where = only(home).directory
    path = where / name.format(id=store.describe(where)["points"][0]["id"])
    content = json.loads(path.read_text())
    content.pop("sha256")
    write_description(path, content | {"format": 99})
    (found,) = [one for one in listing(home) if one.directory == where]
    assert found.state == ("newer" if name == "study.json" else "damaged")
    assert "99" in found.problem


def test_a_table_of_a_run_that_was_changed_is_found_only_when_tables_are_read(home: Path) -> None:
    path = next(only(home).directory.glob("points/*/intervals.parquet"))
    path.write_bytes(path.read_bytes() + b" ")
    assert only(home).state == "whole"
    found = only(home, verify=True)
    assert found.state == "damaged"
    assert str(path.relative_to(found.directory)) in found.problem


def test_verify_names_every_damaged_table_of_every_result_and_its_exit_status_is_5(
    home: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pytest-xdist sets it for its workers, and long lines would be folded.
    monkeypatch.delenv("COLUMNS", raising=False)
    assert status_of(["results", "--in", str(home), "--verify"]) == 0
    damaged = [
        path
        for one in listing(home)
        for point in sorted(one.directory.glob("points/*"))[:2]
        for path in sorted(point.glob("*.parquet"))[:2]
    ]
    assert len(damaged) > 4
    for path in damaged:
        path.write_bytes(path.read_bytes() + b" ")
    assert status_of(["results", "--in", str(home)]) == 0
    capsys.readouterr()
    assert status_of(["results", "--in", str(home), "--verify"]) == 5
    said = capsys.readouterr().out
    assert [path for path in damaged if f"{path.relative_to(path.parents[2])}: is damaged" not in said] == []
    assert status_of(["results", "--in", str(home), "--verify", "--json"]) == 5
    described = json.loads(capsys.readouterr().out)
    assert sum(len(one["problems"]) for one in described) == len(damaged)
    assert [one["problem"] for one in described] == [one["problems"][0] for one in described]


def test_a_damaged_description_is_still_the_latest(home: Path) -> None:
    (only(home).directory / "study.json").write_text("{")
    assert only(home).state == "damaged"


def test_a_saved_run_is_listed_by_its_directory(home: Path) -> None:
    run = next(only(home).directory.glob("points/*"))
    shutil.copytree(run, home / "mine")
    (found,) = listing(home, names=["mine"])
    assert (found.kind, found.state, found.points, found.engine) == ("run", "whole", 1, "fake")
    (itself,) = listing(home / "mine")
    assert itself.name == "mine"


@pytest.mark.parametrize("form", ["without-checksums", "without-seals"])
def test_results_of_earlier_formats_are_listed_verified_and_read(form: str) -> None:
    """Both were written by earlier versions: runs without SHA-256 of tables, descriptions without one."""
    found = only(EARLIER / form, verify=True)
    assert (found.state, found.older, found.points) == ("whole", True, 4)
    read = StudyResult.load(found.directory)
    assert [round(mean, 2) for mean in read.pooled["mean_mbps"]] == [22.43, 7.09, 21.96, 6.88]


def test_a_directory_that_is_not_there_and_a_state_that_is_none_are_reported(tmp_path: Path) -> None:
    with pytest.raises(SawtoothError, match="file-not-found"):
        listing(tmp_path / "nowhere")
    with pytest.raises(SawtoothError, match='did you mean "whole"'):
        listing(tmp_path, states=["hole"])
    assert listing(tmp_path) == []


def test_a_result_is_found_by_its_directory_its_name_and_its_studys_name(made: Path) -> None:
    newest = only(made)
    study_name = newest.name.partition("/")[0]
    for name in (newest.directory, newest.name, study_name, f"{study_name}/latest"):
        assert os.path.samefile(place(name, made), newest.directory)
    with pytest.raises(SawtoothError, match="list results: sawtooth results"):
        place("nothing-of-the-kind", made)
    with pytest.raises(SawtoothError, match="not-a-result"):
        place(made, made)


def test_a_study_of_which_nothing_is_finished_is_reported_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(SawtoothError):
        quick(out=tmp_path, engine=Failing())
    (begun,) = (tmp_path / "small").iterdir()
    assert place("small", tmp_path) == begun
    with pytest.raises(SawtoothError, match="the study is not finished") as told:
        Subject.load(tmp_path / "small")
    assert "same command again" in (told.value.fix or "")


def test_the_command_prints_a_line_a_result_and_json(made: Path) -> None:
    told = CliRunner().invoke(command, ["--in", str(made)]).output.splitlines()
    assert len(told) == 3
    assert [line.startswith("*") for line in told] == [False, True, False] or told[2].startswith("*")
    parsed = json.loads(CliRunner().invoke(command, ["--in", str(made), "--json"]).output)
    assert [one["state"] for one in parsed] == ["whole", "whole"]


def test_the_command_says_that_there_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(["results", "--in", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("no results below")
    assert status_of(["results", "--in", str(tmp_path / "absent")]) == 2


@pytest.mark.parametrize(
    ("count", "told"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (12_345_678, "12.3 MB"), (999_950, "1 MB")]
)
def test_sizes_have_three_digits(count: int, told: str) -> None:
    assert size(count) == told
