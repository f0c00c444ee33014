"""The harness for labelled traces of others: what it counts as answered and right."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from sawtooth.capture.identify import Identification

HARNESS = Path(__file__).parents[1] / "fidelity" / "field" / "labelled.py"
_spec = importlib.util.spec_from_file_location("field_labelled", HARNESS)
assert _spec is not None
assert _spec.loader is not None
labelled = importlib.util.module_from_spec(_spec)
sys.modules["field_labelled"] = labelled
_spec.loader.exec_module(labelled)

HEAD = "frame.time_relative,tcp.srcport,tcp.dstport,tcp.seq,tcp.ack,tcp.len\n"


def answer(
    *ranked: tuple[str, float], unknown: str | None = None, path: str = "no back-offs, large windows"
) -> Identification:
    groups = tuple((tuple(names.split()), share) for names, share in ranked)
    return Identification(groups, tuple((names.split()[0], share) for names, share in ranked), unknown, path)


@pytest.mark.parametrize(
    ("control", "said", "mark"),
    [
        ("reno", answer(("reno", 0.8), ("cubic", 0.2)), "="),
        ("dctcp", answer(("reno dctcp", 0.8)), "="),
        ("cubic", answer(("reno cubic", 0.8)), "g"),
        ("cubic", answer(("reno", 0.8), ("cubic", 0.2)), "x"),
        ("cubic", answer(("cubic", 0.8), unknown="it is too short"), "?"),
    ],
)
def test_a_trace_is_right_by_name_right_by_group_wrong_or_unknown(
    control: str, said: Identification, mark: str
) -> None:
    assert labelled.Trial("a", control, said).mark == mark


def test_shares_are_of_what_was_answered() -> None:
    found = [
        labelled.Trial("a", "reno", answer(("reno dctcp", 0.95))),
        labelled.Trial("a", "cubic", answer(("reno", 0.92))),
        labelled.Trial("b", "bbr", answer(("bbr", 0.5), path="many back-offs, small windows")),
        labelled.Trial("b", "vegas", answer(("vegas", 0.99), unknown="it is too short")),
    ]
    lines = labelled.table(found).splitlines()
    #                            traces answered name group three group large sure size
    assert lines[1].split() == ["a", "2", "2/2", "1/2", "1/2", "2/2", "1/2", "1/2", "1/2", "1.5"]
    assert lines[2].split() == ["b", "2", "1/2", "1/1", "1/1", "1/1", "1/1", "0/0", "0/0", "1.0"]
    assert lines[3].split() == ["all", "links", "4", "3/4", "2/3", "2/3", "3/3", "2/3", "1/2", "1/2", "1.3"]
    assert any(line.startswith("a") and "cubic" in line and "taken for reno 0.92" in line for line in lines)


def test_a_trace_is_labelled_by_its_name_and_its_folder(tmp_path: Path) -> None:
    (tmp_path / "slow").mkdir()
    for name in ("cubic.csv", "notes.csv", "reno.txt"):
        (tmp_path / "slow" / name).write_text(HEAD + "0.1,1,2,0,0,0\n0.2,2,1,0,1,0\n0.3,1,2,1,1,48\n")
    (one,) = labelled.trials(tmp_path)
    assert (one.link, one.control, one.mark) == ("slow", "cubic", "?")
    assert one.row()["unknown"]
