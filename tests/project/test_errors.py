"""Errors: codes are listed, documented and used; a message has its file, field and fix."""

import ast
import errno
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sawtooth.errors import CODES, InputError, SawtoothError, nearest, suggestion, unforeseen

ROOT = Path(__file__).parents[2]


def test_every_code_is_documented_under_its_exit_status_and_nothing_else_is() -> None:
    documented: dict[str, int] = {}
    status = 0
    for line in (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(r"## .*exit status (\d+)", line):
            status = int(found[1])
        elif found := re.fullmatch(r"### ([a-z-]+)", line):
            documented[found[1]] = status
    assert documented == CODES


def test_every_code_is_used_in_the_sources_and_every_code_in_the_sources_is_listed() -> None:
    used: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        calls = re.findall(r'(?:SawtoothError|InputError|\bsay)\(\s*"([a-z]+(?:-[a-z]+)*)"', path.read_text())
        used.update(calls)
    for path in (ROOT / "crates" / "capture" / "src").rglob("*.rs"):
        used.update(re.findall(r'Refused::new\(\s*"([a-z]+(?:-[a-z]+)*)"', path.read_text()))
    for path in (ROOT / "crates" / "scenario" / "src").rglob("*.rs"):
        used.update(re.findall(r'(?:Problem::new|\brefused)\(\s*"([a-z]+(?:-[a-z]+)*)"', path.read_text()))
    assert used == CODES.keys()


@pytest.mark.usefixtures("patience")
def test_every_error_has_a_fix() -> None:
    found = 0
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("SawtoothError", "InputError"):
                assert "fix" in [keyword.arg for keyword in node.keywords], f"{path.name}, line {node.lineno}"
                found += 1
    assert found > len(CODES)


def test_an_unlisted_code_cannot_be_raised() -> None:
    with pytest.raises(ValueError, match="unknown error code"):
        SawtoothError("no-such-code", "…")


def test_the_message_names_file_field_and_fix() -> None:
    error = SawtoothError("missing-unit", "20 has no unit", file="a.toml", field="path.rtt", fix='write "20 ms"')
    assert str(error) == 'error[missing-unit]: a.toml: path.rtt: 20 has no unit\nfix: write "20 ms"'
    assert str(SawtoothError("interrupted", "interrupted")) == "error[interrupted]: interrupted"


def test_where_is_filled_in_only_where_it_is_not_known() -> None:
    error = InputError("missing-unit", "no unit", field="path.rtt").at(file="a.toml", field="x")
    assert (error.file, error.field) == ("a.toml", "path.rtt")
    assert isinstance(error, InputError)


def test_errors_come_back_whole_from_other_processes() -> None:
    error = InputError("missing-unit", "no unit", file="a.toml", field="path.rtt", fix="add one")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is InputError
    assert (str(again), again.code) == (str(error), error.code)


def test_bad_input_is_also_a_value_error() -> None:
    assert issubclass(InputError, ValueError)
    assert not issubclass(SawtoothError, ValueError)


@pytest.mark.parametrize(
    ("code", "status"), [("missing-unit", 2), ("disk-full", 1), ("worker-died", 1), ("interrupted", 130)]
)
def test_the_exit_status_follows_from_the_code(code: str, status: int) -> None:
    assert SawtoothError(code, "…").exit_status == status


def test_the_nearest_name_is_found_whatever_its_case() -> None:
    assert nearest("CUBIK", ["reno", "cubic", "bbr"]) == "cubic"
    assert nearest("zzz", ["reno", "cubic", "bbr"]) is None


def test_a_suggestion_lists_the_names_when_none_is_near() -> None:
    assert suggestion("zzz", ["reno", "cubic"]) == "choose one of: reno, cubic"
    assert suggestion("zzz", []) == "there is none to choose from"


def test_the_tree_of_exceptions_is_drawn_in_the_docstring() -> None:
    import sawtooth.errors as module

    assert module.__doc__ is not None
    for kind in (SawtoothError, InputError):
        assert kind.__name__ in module.__doc__


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), "out-of-memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "out-of-memory"),
        (ImportError("x.so: failed to map segment from shared object"), "out-of-memory"),
        (ImportError("No module named x"), "internal"),
        (OSError(errno.EIO, "Input/output error"), "internal"),
    ],
)
def test_what_wants_memory_is_no_defect(error: Exception, code: str) -> None:
    told = unforeseen(error)
    assert (told.code, told.exit_status) == (code, 1)
    assert told.fix


@pytest.mark.usefixtures("patience")
def test_under_a_limit_of_memory_the_fix_works(tmp_path: Path) -> None:
    """Values below the minimum ended in the libraries' own words, or never: OpenBLAS tries forever."""
    (tmp_path / "a.toml").write_text('duration = "5 s"\n[path]\nrate = "5 Mbit/s"\nrtt = "10 ms"\n')
    answers = {}
    for kib in (100_000, 600_000, 4_194_304):
        run = f"ulimit -v {kib}; exec {sys.executable} -c 'from sawtooth.cli import main; main()' run a.toml --quiet"
        answers[kib] = subprocess.run(["sh", "-c", run], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    for kib, limit in ((100_000, 97), (600_000, 585)):
        said = f"error[out-of-memory]: the limit on memory is {limit} MiB, and sawtooth needs 1024\n"
        assert answers[kib].returncode == 1
        assert answers[kib].stderr == said + "fix: raise it: ulimit -v 4194304, or ulimit -v unlimited\n"
    assert answers[4_194_304].returncode == 0, answers[4_194_304].stderr
