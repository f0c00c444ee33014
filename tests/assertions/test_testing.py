"""Expectations as assertions, and the how-to for continuous integration as written."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fake_engine import quick, study
from sawtooth.cli.program import status_of
from sawtooth.errors import SawtoothError
from sawtooth.testing import assert_holds

PAGE = (Path(__file__).parents[2] / "docs" / "regression-tests.md").read_text(encoding="utf-8")


def block(language: str, at: int = 0) -> str:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[at]


@pytest.mark.usefixtures("patience")
def test_what_holds_is_silent_and_what_does_not_shows_both_sides_with_intervals(tmp_path: Path) -> None:
    result = quick(out=tmp_path)
    assert_holds(result, "mean_mbps(loss=0%) > 800 Mbit/s")
    assert_holds(result.directory, "mean_mbps(loss=0%) > 800 Mbit/s")
    with pytest.raises(AssertionError) as caught:
        assert_holds(result, "mean_mbps(loss=0%) > 800 Mbit/s", "mean_mbps(loss=0%) < 800 Mbit/s", "rpm > 1")
    told = str(caught.value)
    assert re.search(r"fails: mean_mbps\(loss=0%\) < 800 Mbit/s\n    90\d\.?\d* Mbit/s \[.*\] against 800 Mbit/s", told)
    assert "inconclusive: rpm > 1" in told
    assert "holds:" not in told
    assert_holds(result, {"it is fast": "mean_mbps(loss=0%) > 800 Mbit/s"}, "mean_mbps(loss=0%) > 700 Mbit/s")
    with pytest.raises(AssertionError, match=r"fails: it is slow: mean_mbps\(loss=0%\) < 800 Mbit/s"):
        assert_holds(result, {"it is slow": "mean_mbps(loss=0%) < 800 Mbit/s"})
    with pytest.raises(SawtoothError, match="missing-unit"):
        assert_holds(result, "mean_mbps > 800")
    with pytest.raises(SawtoothError, match=r"has no table \[expect\]"):
        assert_holds(result)
    assert study().expect is None


@pytest.mark.usefixtures("patience")
def test_the_how_to_runs_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gate.toml").write_text(block("toml"), encoding="utf-8")
    for command in (block("sh"), block("sh", 1)):
        words = re.findall(r'"[^"]*"|\S+', command)
        assert words[0] == "sawtooth"
        assert status_of([*(word.strip('"') for word in words[1:]), "--quiet"]) == 0
    assert Path("expectations.xml").read_text().count("<testcase") == 4
    Path("test_gate.py").write_text(
        block("python") + "\n\n@pytest.mark.sawtooth_study('gate.toml')\ndef test_no(sawtooth_result):\n"
        "    assert_holds(sawtooth_result, 'mean_mbps(loss=0%) > 50 Mbit/s')\n"
        "\n\n@pytest.mark.sawtooth_study('gate.toml', seedz=3)\ndef test_marker(sawtooth_result):\n    pass\n",
        encoding="utf-8",
    )
    asked = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--strict-markers",
        "-p",
        "no:cacheprovider",
        "--sawtooth-out",
        "kept",
    ]
    told = subprocess.run(asked, capture_output=True, text=True, timeout=250)
    assert "1 failed, 2 passed, 1 error" in told.stdout, told.stdout + told.stderr
    assert "the marker sawtooth_study takes no seedz; did you mean" in told.stdout
    assert "TypeError" not in told.stdout
    assert "against 50 Mbit/s" in told.stdout
    assert len([one for one in Path("kept/gate").iterdir() if not one.is_symlink()]) == 1
