"""Files are written completely or not at all, and a refusal by the system is one clear message."""

import contextlib
import errno
import json
import os
import stat
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from expected_error import expected_error
from fake_engine import quick
from sawtooth.errors import SawtoothError
from sawtooth.io.atomic_io import (
    new_directory,
    read_description,
    read_json,
    write_bytes,
    write_description,
    write_json,
    writing,
)
from sawtooth.io.untrusted import regular


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named_and_says_that_finished_points_are_kept(tmp_path, number):
    with pytest.raises(SawtoothError) as caught, writing(tmp_path):
        raise OSError(number, os.strerror(number))
    assert caught.value.code == "disk-full"
    assert caught.value.file == str(tmp_path)
    assert "finished points are kept" in caught.value.fix


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EIO])
def test_any_other_refusal_is_an_unwritable_output(tmp_path, number):
    with pytest.raises(SawtoothError) as caught, writing(tmp_path):
        raise OSError(number, os.strerror(number))
    assert caught.value.code == "unwritable-output"


def test_a_directory_appears_only_when_it_is_whole(tmp_path):
    target = tmp_path / "whole"
    with new_directory(target) as aside:
        (aside / "a").write_text("1")
        assert not target.exists()
    assert (target / "a").read_text() == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]


def test_a_directory_that_fails_leaves_nothing(tmp_path):
    def fill():
        with new_directory(tmp_path / "above" / "below" / "whole") as aside:
            (aside / "a").write_text("1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fill()
    assert list(tmp_path.iterdir()) == []


def test_an_existing_directory_is_never_overwritten(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine").write_text("keep")
    with pytest.raises(SawtoothError, match="never overwritten"), new_directory(tmp_path / "there"):
        pytest.fail("entered")
    assert (tmp_path / "there" / "mine").read_text() == "keep"


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_directory_without_a_name_is_there_already(name):
    with pytest.raises(SawtoothError, match="never overwritten"), new_directory(Path(name)):
        pytest.fail("entered")


def test_a_file_is_replaced_in_one_step_and_keeps_its_content_on_failure(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})

    def full(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(SawtoothError, match="disk-full"):
        write_bytes(path, b"other")
    assert json.loads(path.read_text()) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_json_is_indented_except_the_entries_of_a_very_long_list(tmp_path):
    short = {"a": 1, "points": [{"id": "0"}], "deep": {"points": []}}
    write_json(tmp_path / "short.json", short)
    assert (tmp_path / "short.json").read_text() == json.dumps(short, indent=2) + "\n"
    long = short | {"points": [{"id": "é\n"}] * 1001}
    write_json(tmp_path / "long.json", long)
    text = (tmp_path / "long.json").read_text()
    assert json.loads(text) == long
    assert text.count('\n    {"id": "é\\n"},\n') + text.count('\n    {"id": "é\\n"}\n  ],\n') == 501
    assert len(text.splitlines()) == 1001 + len(json.dumps(short | {"points": [1]}, indent=2).splitlines()) - 1


def test_a_very_long_list_under_a_number_is_written_whole(tmp_path):
    write_json(tmp_path / "a.json", {1: list(range(1001))})
    assert json.loads((tmp_path / "a.json").read_text()) == {"1": list(range(1001))}


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff"])
def test_json_that_cannot_be_read_is_not_a_result(tmp_path, content):
    path = tmp_path / "a.json"
    if content is not None:
        path.write_bytes(content)
    with expected_error(code="not-a-result"):
        read_json(path)


@pytest.mark.parametrize("content", ["[]", "7", "{}", '{"format": "1"}', '{"format": 2}'])
def test_a_description_has_a_format_that_is_known(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_text(content)
    with expected_error(code="not-a-result") as caught:
        read_description(path, 1)
    assert caught.value.fix


@pytest.mark.parametrize(("kind", "says"), [("pipe", "a pipe"), ("directory", "a directory"), ("device", "a device")])
def test_what_is_no_regular_file_is_refused_before_it_is_read(tmp_path, kind, says):
    path = tmp_path / "it"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with expected_error(code="file-unreadable", file=str(path), match=says):
        regular(path)
    with expected_error(code="not-a-result", match=says):
        read_json(path)


def test_a_file_that_is_absent_is_for_its_reader_to_tell(tmp_path):
    regular(tmp_path / "absent")
    regular("a\x00b")


@pytest.mark.parametrize("kind", ["link", "link to nothing", "pipe", "device"])
def test_what_is_no_file_is_not_replaced_by_one(tmp_path, kind):
    path, target = tmp_path / "there", tmp_path / "target"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        # A user who may not create one gets a device open to everybody, in a directory where they may not write
        # either.
        path = path if os.geteuid() == 0 else Path("/dev/null")
        if os.geteuid() == 0:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    else:
        path.symlink_to(target)
        if kind == "link":
            target.write_text("kept")
    before = os.lstat(path)
    with expected_error(code="unwritable-output", file=str(path)):
        write_bytes(path, b"new")
    assert (os.lstat(path).st_ino, os.lstat(path).st_mode) == (before.st_ino, before.st_mode)
    assert not target.exists() or target.read_text() == "kept"
    assert {one.name for one in tmp_path.iterdir()} <= {"there", "target"}


@pytest.mark.parametrize("content", [{"a": [1, 2.5, None, "ä"]}, {"b": {"2": 1, "10": 2}, "a": (1, 2)}, {3: 4}])
def test_a_description_has_a_digest_of_itself_by_which_a_change_is_detected(tmp_path, content):
    path = tmp_path / "x.json"
    write_description(path, {"format": 1} | content)
    assert read_description(path, 1) == json.loads(json.dumps({"format": 1} | content))
    write_json(path, json.loads(path.read_text()) | {"more": 1})
    with expected_error(code="not-a-result", match="SHA-256"):
        read_description(path, 1)


@dataclass
class Disk:
    """Calls to the disk in order: (call, name), and the state of each file that is certain to be on disk."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    has: dict[tuple[int, int], int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    """What was not on disk when a study was marked as finished."""

    def synced(self, fsync, opened):
        fsync(opened)
        about = os.fstat(opened)
        self.has[about.st_dev, about.st_ino] = about.st_mtime_ns
        self.calls.append(("fsync", Path(f"/proc/self/fd/{opened}").readlink().name))

    def renamed(self, rename, old, new):
        if Path(new).name == "study.json" and json.loads(Path(old).read_text())["finished"]:
            for path in Path(new).parent.rglob("*"):
                about = path.stat()
                lost = path.name not in (".lock", Path(old).name) and not path.is_symlink()
                if lost and self.has.get((about.st_dev, about.st_ino)) != about.st_mtime_ns:
                    self.missing.append(path.name)
            self.calls.append(("finished", ""))
        rename(old, new)
        self.calls.append(("rename", Path(new).name))


@pytest.fixture
def disk(monkeypatch):
    found = Disk()
    monkeypatch.setattr(os, "fsync", partial(found.synced, os.fsync))
    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, partial(found.renamed, getattr(os, name)))
    return found


def test_the_disk_has_a_file_before_it_has_its_name(tmp_path, disk):
    write_bytes(tmp_path / "a", b"1")
    written, *others = disk.calls
    assert written[0] == "fsync"
    assert written[1].startswith(".a.")
    assert others == [("rename", "a"), ("fsync", tmp_path.name)]


def test_the_disk_has_a_directory_and_its_files_before_it_has_its_name(tmp_path, disk):
    with new_directory(tmp_path / "above" / "whole") as aside:
        (aside / "a").write_text("1")
        (aside / "in").mkdir()
        write_bytes(aside / "in" / "b", b"2")
        aside_name = aside.name
    at = disk.calls.index(("rename", "whole"))
    assert {name for call, name in disk.calls[:at] if call == "fsync"} == {aside_name, "a", "in", "b"}
    assert sorted(disk.calls[at + 1 :]) == sorted([("fsync", "above"), ("fsync", tmp_path.name)])


@pytest.mark.usefixtures("patience")
def test_a_study_counts_as_finished_when_the_disk_has_all_of_it(tmp_path, disk):
    def ending(result):
        (result.directory / "plots").mkdir()
        (result.directory / "plots" / "a.png").write_bytes(b"3")

    result = quick(out=tmp_path / "results", ending=ending)
    assert disk.missing == []
    assert len(disk.has) > 3 * len(result.places)
    names = [name for _, name in disk.calls[: disk.calls.index(("finished", ""))]]
    above = names[names.index("latest") - 30 :]
    assert {"a.png", "plots", tmp_path.name, "results", "small"} <= set(above)


@pytest.mark.parametrize(("number", "passes"), [(errno.EINVAL, True), (errno.EIO, False), (errno.ENOSPC, False)])
def test_a_disk_that_refuses_to_keep_a_file_is_an_error_and_one_that_knows_no_way_is_not(
    tmp_path, monkeypatch, number, passes
):
    def refuse(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with contextlib.nullcontext() if passes else pytest.raises(SawtoothError):
        write_bytes(tmp_path / "a", b"1")
    with (
        contextlib.nullcontext() if passes else pytest.raises(SawtoothError),
        new_directory(tmp_path / "whole") as aside,
    ):
        (aside / "a").write_text("1")
    assert sorted(path.name for path in tmp_path.iterdir()) == (["a", "whole"] if passes else [])
