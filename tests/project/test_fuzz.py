"""Mutated inputs for every reader of text, the same on every machine: documented errors only, in bounded time and
memory.
"""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("patience")

ROOT = Path(__file__).parents[2]
TARGETS = {
    "series": 800,
    "measurement": 700,
    "explained": 700,
    "tshark": 100,
    "scenario": 3000,
    "trace": 1500,
    "deviations": 1500,
    "sizes": 1500,
    "transfers": 1500,
    "study": 900,
    "grid": 400,
    "override": 2500,
    "quantity": 2500,
    "wanted": 2500,
    "expectation": 300,
    "sql": 60,
    "published": 200,
    "result": 700,
    "pack": 400,
    "model": 150,
    "policy": 2500,
}
"""Inputs for each reader: about four seconds."""


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fuzz.text", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("target", TARGETS)
def test_mutated_inputs_of_a_reader_are_read_or_refused(target: str) -> None:
    told = fuzz(target, "--inputs", str(TARGETS[target]), "--seed", "1")
    assert told.returncode == 0, told.stdout + told.stderr
    assert f"{target}: {TARGETS[target]} inputs, 0 failed" in told.stdout


def test_every_input_of_the_corpus_is_read_or_refused() -> None:
    told = fuzz("--replay")
    assert told.returncode == 0, told.stdout + told.stderr


def test_every_target_is_fuzzed_here() -> None:
    told = fuzz("--help").stdout.replace("\n", " ")
    listed = told.partition("all of them without it: ")[2].partition("--")[0].replace(",", " ").split()
    assert listed[: len(TARGETS) + 1] == [*TARGETS, "options:"]


def test_an_input_is_the_same_each_time() -> None:
    first, second = (fuzz("quantity", "--only", "3", "--seed", "7") for _ in range(2))
    assert first.stdout == second.stdout


def test_a_defect_is_found_and_named(tmp_path: Path) -> None:
    code = (
        "import sys, fuzz.text.__main__ as run\n"
        "def broken(data):\n    raise KeyError('x')\n"
        "run.TARGETS['quantity'] = broken\n"
        f"sys.argv = ['fuzz', 'quantity', '--seconds', '0.5', '--keep', {str(tmp_path)!r}]\nsys.exit(run.main())"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert told.returncode == 1
    assert "KeyError: 'x'" in told.stdout
    assert list((tmp_path / "quantity").iterdir())


def test_an_input_that_takes_too_long_is_a_defect(tmp_path: Path) -> None:
    code = (
        "import sys, fuzz.text.__main__ as run\n"
        "def slow(data):\n    while True: pass\n"
        "run.MOST_S = 0.1\n"
        "run.TARGETS['quantity'] = slow\nsys.argv = ['fuzz', 'quantity', '--seconds', '0.5']\nsys.exit(run.main())"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert told.returncode == 1
    assert "more than 0.1 s" in told.stdout
