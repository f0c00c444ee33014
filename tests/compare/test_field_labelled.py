"""The trial of labeled traces in fidelity/field: which answers count, and which are correct."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from fidelity.field.__main__ import field
from fidelity.field.labelled import Trial, counts, table, trials
from sawtooth.capture.identify import Identification

HEAD = "frame.time_relative,tcp.srcport,tcp.dstport,tcp.seq,tcp.ack,tcp.len\n"
LARGE, SMALL = "no back-offs, large windows", "many back-offs, small windows"


def answer(*ranked: tuple[str, float], unknown: str | None = None, path: str = LARGE) -> Identification:
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
    assert Trial("a", control, said).mark == mark


FOUND = [
    Trial("a", "reno", answer(("reno dctcp", 0.95))),
    Trial("a", "cubic", answer(("reno", 0.92))),
    Trial("b", "bbr", answer(("bbr", 0.5), path=SMALL)),
    Trial("b", "vegas", answer(("vegas", 0.99), unknown="it is too short")),
]


def test_shares_are_of_what_was_answered_and_held_against_the_bars() -> None:
    made = {one.name: (one.right, one.of, one.missed) for one in counts(FOUND)}
    assert made == {
        "answered": (3, 4, False),
        "by name": (2, 3, False),
        "by group": (2, 3, True),
        "reno, cubic, bbr": (2, 3, True),
        "… by name": (2, 3, False),
        "… large windows": (1, 2, True),
        "p > 0.9": (1, 2, True),
    }
    assert not any(one.missed for one in counts(FOUND[:1]))


def test_the_table_has_a_row_a_link_and_names_what_was_taken_for_what() -> None:
    lines = table(FOUND).splitlines()
    assert "| a | 2 | 2/2 | 1/2 | 1/2 | 1/2 | 1/2 | 1/2 | 1/2 | 1.5 |" in lines
    assert "| b | 2 | 1/2 | 1/1 | 1/1 | 1/1 | 1/1 | 0/0 | 0/0 | 1.0 |" in lines
    assert "| bar |  | 60% |  | 80%, missed | 95%, missed |  | 95%, missed | 97%, missed |  |" in lines
    assert lines[-1] == "- a cubic: taken for reno 0.92"


def test_a_trace_is_labelled_by_its_name_and_its_folder(tmp_path: Path) -> None:
    (tmp_path / "slow").mkdir()
    for name in ("cubic.csv", "notes.csv", "reno.txt"):
        (tmp_path / "slow" / name).write_text(HEAD + "0.1,1,2,0,0,0\n0.2,2,1,0,1,0\n0.3,1,2,1,1,48\n")
    (one,) = trials(tmp_path)
    assert (one.link, one.control, one.mark) == ("slow", "cubic", "?")
    rows = tmp_path / "rows.json"
    called = CliRunner().invoke(field, ["labelled", str(tmp_path), "--json", str(rows)])
    assert called.exit_code == 1
    assert "| slow | 1 | 0/1 |" in called.output
    assert [(made["link"], made["control"]) for made in json.loads(rows.read_text())] == [("slow", "cubic")]


def test_a_folder_without_a_labelled_trace_is_refused(tmp_path: Path) -> None:
    assert CliRunner().invoke(field, ["labelled", str(tmp_path)]).exit_code == 2


SHARED = Path(__file__).parents[3] / "shared" / "captures" / "nebby-labelled-2.tar.zst"


shared = pytest.mark.skipif(not SHARED.exists(), reason="the labelled traces of ../shared are not there")


def unpack(names: list[str], to: Path) -> None:
    subprocess.run(["tar", "--zstd", "-xf", str(SHARED), "-C", str(to), *names], check=True)


@shared
def test_files_that_begin_at_the_syn_ack_are_identified(tmp_path: Path) -> None:
    # The model was trained on these; the next test measures unseen links.
    unpack([f"nebby-labelled-2/15-ms-400-kbps/{control}.csv" for control in ("cubic", "reno")], tmp_path)
    called = CliRunner().invoke(field, ["labelled", str(tmp_path)])
    assert called.exit_code == 0, called.output
    assert "| all | 2 | 2/2 |" in called.output


@shared
@pytest.mark.usefixtures("patience")
def test_a_shared_link_is_answered_by_a_classifier_that_had_not_seen_it_as_documented(tmp_path: Path) -> None:
    unpack(["nebby-labelled-2/25-ms-100-kbps"], tmp_path)
    called = CliRunner().invoke(field, ["labelled", "--left-out", str(tmp_path)])
    assert "| all | 17 | 11/17 | 6/11 | 9/11 | 1/1 | 1/1 | 0/0 | 1/1 | 4.0 |" in called.output
    assert called.exit_code == 0
