"""What the laboratory's page says beside its figures: of each flow by itself, in its own time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sawtooth import Scenario, _core
from test_lab_language import ask

Question = dict[str, Any]


def question(
    *flows: dict[str, Any],
    alone: bool = False,
    host: dict[str, Any] | None = None,
    duration: str = "10 s",
    **path: Any,
) -> Question:
    asked = {"duration": duration, "path": {"rate": "100 Mbit/s", "rtt": "20 ms"} | path, "flows": list(flows)}
    return {"scenario": asked | ({} if host is None else {"host": host}), "alone": alone}


CUBIC, RENO, BBR = {"cc": "cubic"}, {"cc": "reno"}, {"cc": "bbr"}
TAKEN = "loss on the path, taken for congestion"
SHARED = r"the rate, which it shares: cubic takes \d+(\.\d+)? Mbit/s \(\d+(\.\d+)?%\)"
TBF = {"kind": "tbf", "rate": "5 Mbit/s", "burst": "20 kB", "latency": "50 ms"}
STEP = {"kind": "codel", "ecn": True, "ce_threshold": "0.1 ms"}
LIMITS: dict[str, tuple[Question, list[str]]] = {
    "each by itself": (question(CUBIC, BBR, alone=True, loss="1%"), [TAKEN, "the path's rate"]),
    "together, where the one makes room for the other by mistake": (
        question(CUBIC, BBR, loss="1%"),
        [TAKEN, SHARED],
    ),
    "one after the other: none is limited by what the other lost, or got": (
        question(CUBIC | {"bytes": "1 MB"}, BBR | {"start": "5 s"}),
        ["its window, which still grew", "the path's rate"],
    ),
    "for two of ten seconds": (
        question(RENO | {"duration": "2 s"}, CUBIC | {"start": "3 s"}),
        ["the path's rate", "the path's rate"],
    ),
    "drops of a short queue": (question(RENO, rtt="50 ms", queue="5 packets"), ["drops at the queue"]),
    "connections of one flow": (question(CUBIC | {"count": 5}), ["the rate, which its connections share"]),
    "a window of the receiver": (
        question(CUBIC, rtt="50 ms", host={"receive_buffer": "100 KiB"}),
        ["the receiver's window"],
    ),
    "a window that holds a fast path back for less than half of the time, beside loss that BBR ignores": (
        question(BBR, rate="10 Gbit/s", loss="1%", duration="4 s"),
        ["the receiver's window"],
    ),
    "the same with a buffer that is large enough": (
        question(BBR, rate="10 Gbit/s", loss="1%", duration="4 s", host={"receive_buffer": "256 MiB"}),
        ["the send buffer"],
    ),
    "acknowledgements": (
        question(CUBIC, reverse_rate="1 Mbit/s", queue="100 packets"),
        ["the way back, full of acknowledgements"],
    ),
    "a shaper below the line's rate": (question(CUBIC, queue=TBF), ["the path's rate"]),
    "marks": (question({"cc": "dctcp"}, rtt="50 ms", queue=STEP, host={"ecn": 1}), ["marks of the queue"]),
    "loss that BBR v1 passes on": (question(BBR, loss="15%"), ["loss on the path"]),
    "hardly begun": (
        question(CUBIC, BBR | {"start": "9.995 s"}, rtt="100 ms"),
        ["the path's rate", "its start: the handshake was not over"],
    ),
    "a handshake that takes longer than the run": (
        question(CUBIC, rtt="12 s"),
        ["its start: the handshake was not over"],
    ),
    "timers that do not wait for a round trip": (question(CUBIC, rtt="3 s"), ["its start: nothing was lost"]),
    "a path that nothing passes": (question(BBR, loss="100%"), ["loss on the path"]),
}


@pytest.fixture(scope="module")
def rows(lab: Path) -> dict[str, list[dict[str, Any]]]:
    answers = ask(lab, "summary", [asked for asked, _ in LIMITS.values()])
    return dict(zip(LIMITS, answers, strict=True))


@pytest.mark.parametrize("case", LIMITS)
def test_the_limit_is_the_flow_s_own(rows: dict[str, list[dict[str, Any]]], case: str) -> None:
    told = [row["limit"] for row in rows[case]]
    assert all(re.fullmatch(one, said) for one, said in zip(LIMITS[case][1], told, strict=True)), told


def test_a_mean_is_of_the_time_that_the_flow_was_there(rows: dict[str, list[dict[str, Any]]]) -> None:
    for row in rows["for two of ten seconds"]:
        assert row["share"] == pytest.approx(1, abs=0.08)
        assert row["partly"]
    assert [row["partly"] for row in rows["one after the other: none is limited by what the other lost, or got"]] == [
        True,
        True,
    ]
    assert not any(row["partly"] for row in rows["each by itself"])


def test_what_is_too_heavy_for_the_page_has_a_lighter_question(lab: Path) -> None:
    def asked(seconds: int, count: int, rate: str, alone: bool, start: str = "0 s") -> Question:
        flows = [{"cc": "cubic"}] * (count - 1) + [{"cc": "bbr", "start": start}]
        return {"scenario": {"duration": f"{seconds} s", "path": {"rate": rate}, "flows": flows}, "alone": alone}

    questions = [
        asked(60, 2, "10 Gbit/s", False),
        asked(60, 4, "500 Mbit/s", True),
        asked(60, 4, "500 Mbit/s", True, "30 s"),
        asked(10, 2, "100 Mbit/s", True),
    ]
    told = {"questions": questions, "ms": [40_000, 8_000, 8_000, 1_000]}
    answers = ask(lab, "heavy", told)
    most = 1448 / 1514 / 8 / 1448
    assert [one["packets"] for one in answers] == [
        pytest.approx(packets) for packets in (10e9 * 60 * most, *[500e6 * 60 * 4 * most] * 2, 100e6 * 10 * 2 * most)
    ]
    assert [(one.get("duration"), one.get("flows")) for one in answers[:3]] == [("6 s", None), ("30 s", 2), (None, 2)]


PATHS = {
    "two that share a gigabit": ("30 s", {"rate": "1 Gbit/s", "rtt": "20 ms"}, [CUBIC, BBR]),
    "a window that loss keeps small": ("3000 s", {"rate": "100 Mbit/s", "rtt": "20 ms", "loss": "2%"}, [CUBIC]),
    "a long, fat path": ("10 s", {"rate": "10 Gbit/s", "rtt": "140 ms"}, [BBR]),
    "forty flows": ("60 s", {"rate": "200 Mbit/s", "rtt": "30 ms"}, [CUBIC | {"count": 20}, BBR | {"count": 20}]),
    "one that comes late": ("120 s", {"rate": "500 Mbit/s", "loss": "0.5%"}, [CUBIC, BBR | {"start": "60 s"}]),
    "FQ-CoDel": ("30 s", {"rate": "1 Gbit/s", "queue": {"kind": "fq_codel"}}, [CUBIC | {"count": 10}]),
    "acknowledgements that are slow": ("600 s", {"rate": "100 Mbit/s", "reverse_rate": "1 Mbit/s"}, [CUBIC]),
    "a start that is much faster than what comes": (
        "60 s",
        {"rate": "10 Gbit/s", "rtt": "100 ms", "loss": "0.001%"},
        [{"cc": "reno"}],
    ),
}


def test_how_long_it_takes_is_known_from_its_beginning(lab: Path, patience: None) -> None:
    given = [{"duration": duration, "path": path, "flows": flows} for duration, path, flows in PATHS.values()]
    told = ask(lab, "pace", [json.loads(Scenario.from_dict(one).compile().to_json()) for one in given])
    off = {}
    for name, one in zip(PATHS, told, strict=True):
        if one["said"] is not None:
            off[name] = one["said"]["events"] / one["events"]
            assert one["said"]["ms"] == pytest.approx(one["said"]["events"] / 1e3)
    assert len(off) >= 6
    assert all(1 / 1.5 < ratio < 1.5 for ratio in off.values()), off


def test_questions_to_start_from_are_scenarios_that_a_page_can_run(lab: Path) -> None:
    presets = ask(lab, "presets", None)
    questions = [preset["question"] for preset in presets]
    assert len({preset["title"] for preset in presets}) == len({preset["name"] for preset in presets}) == len(presets)
    compiled = ask(lab, "compile", {"scenarios": [one["scenario"] for one in questions]})
    for preset, question, answer in zip(presets, questions, compiled, strict=True):
        assert question["scenario"]["name"] == preset["name"]
        expected = Scenario.from_dict(question["scenario"]).compile().to_json()
        assert _core.describe_compiled(answer["json"]) == _core.describe_compiled(expected)
    heavy = ask(lab, "heavy", {"questions": questions, "ms": [1] * len(questions)})
    assert max(one["packets"] for one in heavy) < 5e6


def test_numbers_have_digits_that_mean_something_and_no_exponent(lab: Path) -> None:
    given = [
        (0, 3),
        (0.0000001234, 3),
        (0.4701, 2),
        (9.996, 3),
        (99.96, 3),
        (947.2, 3),
        (2363.4, 3),
        (500.2, 2),
        (1e6, 2),
    ]
    told = [
        ("0", "0 µs"),
        ("0.000000123", "0.123 µs"),
        ("0.47", "470 ms"),
        ("10.0", "10.0 s"),
        ("100", "1.67 minutes"),
        ("947", "15.8 minutes"),
        ("2363", "39.4 minutes"),
        ("500", "8.3 minutes"),
        ("1000000", "12 days"),
    ]
    assert [tuple(one) for one in ask(lab, "amounts", given)] == told


def test_the_rate_is_the_shaper_s_where_that_is_slower(rows: dict[str, list[dict[str, Any]]]) -> None:
    assert rows["a shaper below the line's rate"][0]["share"] == pytest.approx(1, abs=0.03)
