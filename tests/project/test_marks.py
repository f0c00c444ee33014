"""How tests are selected, and when one counts as failed: marks follow from fixtures, and CI omits nothing."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import TAKEN

HERE = Path(__file__).parents[1]
TESTS = """
import pytest

@pytest.fixture
def machine(patience, namespaces): ...

def test_plain(): ...
def test_of_a_machine(machine): ...
@pytest.mark.timeout(7)
def test_with_a_limit(kernel): ...
def test_left_out(): pytest.skip("no such program")
@pytest.mark.skipif(True, reason="../shared is not there")
def test_of_data(): ...
@pytest.mark.xfail
def test_known_to_fail(): assert False
"""
CHOSEN = {
    "guest": ["test_with_a_limit"],
    "slow": ["test_of_a_machine"],
    "netns": ["test_of_a_machine"],
    "not (guest or slow)": ["test_plain", "test_left_out", "test_of_data", "test_known_to_fail"],
}


def run(place: Path, *arguments: str, ci: str = "") -> str:
    tests = place / "checkout" / "tests"
    tests.mkdir(parents=True)
    for name in ("conftest.py", "opened_lab.py"):
        shutil.copy(HERE / name, tests)
    (tests / "test_some.py").write_text(TESTS)
    environment = os.environ | {"CI": ci, "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull]
    done = subprocess.run([*command, *arguments, tests], env=environment, capture_output=True, text=True, timeout=120)
    return done.stdout


@pytest.mark.parametrize("chosen", CHOSEN)
@pytest.mark.usefixtures("patience")
def test_marks_follow_from_the_fixtures_that_a_test_uses(tmp_path: Path, chosen: str) -> None:
    told = run(tmp_path, "--collect-only", "-q", "-m", chosen)
    assert re.findall(r"::(\w+)", told) == CHOSEN[chosen]


def test_every_mark_is_of_a_fixture_that_some_test_uses() -> None:
    sources = "".join(path.read_text() for path in HERE.rglob("test_*.py") if path.name != Path(__file__).name)
    for fixture in TAKEN:
        assert re.search(rf"\(.*\b{fixture}\b.*\)", sources), fixture


@pytest.mark.parametrize(
    ("ci", "there", "counts"),
    [
        ("", False, "1 passed, 2 skipped, 2 deselected, 1 xfailed"),
        ("true", False, "1 failed, 1 passed, 1 skipped, 2 deselected, 1 xfailed"),
        ("true", True, "1 failed, 1 passed, 2 deselected, 1 xfailed, 1 error"),
    ],
)
@pytest.mark.usefixtures("patience")
def test_in_ci_a_skip_is_a_failure_but_for_data_that_no_checkout_brings_and_that_is_absent(
    tmp_path: Path, ci: str, there: bool, counts: str
) -> None:
    if there:
        (tmp_path / "shared").mkdir()
    told = run(tmp_path, "-k", "not machine and not limit", ci=ci)
    assert f" {counts}" in told.splitlines()[-1]
    assert ("in CI nothing may be left out: Skipped: no such program" in told) == bool(ci)
    assert ("in CI nothing may be left out: Skipped: ../shared is not there" in told) == there
