"""Symbolic links that another user has placed where a command writes: nothing is written through them."""

import os
from pathlib import Path

import pytest

from expected_error import expected_error
from fake_engine import Fake, quick
from sawtooth.figures.saving import save, styled
from sawtooth.io.atomic_io import read_description, write_description
from sawtooth.lab.site import KINDS, Site
from sawtooth.study import StudyResult

LAID = ["a link", "a link to nothing", "a hard link"]


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_text("as it was")
    return path


def lay(kind: str, where: Path, victim: Path) -> None:
    if kind == "a hard link":
        os.link(victim, where)
    else:
        where.symlink_to(victim if kind == "a link" else victim.with_name("absent"))


def is_whole(victim: Path) -> bool:
    return victim.read_text() == "as it was" and not victim.with_name("absent").exists()


@pytest.mark.parametrize("kind", LAID)
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_is_not_written_through_a_link(tmp_path: Path, victim: Path, kind: str, ending: str) -> None:
    lay(kind, tmp_path / f"one.{ending}", victim)
    with styled():
        from matplotlib.figure import Figure

        if kind == "a hard link":
            save(Figure(), "one", tmp_path)
        else:
            with expected_error(code="unwritable-output"):
                save(Figure(), "one", tmp_path)
    assert is_whole(victim)


@pytest.mark.parametrize("kind", LAID)
def test_the_page_of_the_laboratory_is_not_written_through_a_link(tmp_path: Path, victim: Path, kind: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    lay(kind, out / "page.css", victim)
    site = Site(dict.fromkeys(KINDS, b"<title>sawtooth lab</title>"))
    if kind == "a hard link":
        site.export(out)
    else:
        with expected_error(code="unwritable-output"):
            site.export(out)
    assert is_whole(victim)


def unfinished(out: Path, marks: Path) -> Path:
    quick(out=out, engine=Fake(str(marks)))
    (directory,) = (path for path in out.glob("small/*") if not path.is_symlink())
    description = read_description(directory / "study.json", 1)
    write_description(directory / "study.json", description | {"finished": None})
    return directory


@pytest.mark.usefixtures("patience")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make another user's files")
def test_unfinished_results_of_another_user_are_not_taken_up(tmp_path: Path, marks: Path, victim: Path) -> None:
    directory = unfinished(tmp_path / "out", marks)
    (directory / ".lock").unlink()
    (directory / ".lock").symlink_to(victim.with_name("absent"))
    for path in [directory, *directory.rglob("*")]:
        os.chown(path, 65534, 65534, follow_symlinks=False)
    result = quick(out=tmp_path / "out", engine=Fake(str(marks)))
    assert isinstance(result, StudyResult)
    assert result.directory != directory
    assert is_whole(victim)


@pytest.mark.usefixtures("patience")
def test_a_lock_is_not_made_through_a_link(tmp_path: Path, marks: Path, victim: Path) -> None:
    directory = unfinished(tmp_path / "out", marks)
    (directory / ".lock").unlink()
    (directory / ".lock").symlink_to(victim.with_name("absent"))
    with expected_error(code="unwritable-output"):
        quick(out=tmp_path / "out", engine=Fake(str(marks)))
    assert is_whole(victim)
