"""The table beside the figures of the laboratory's page: each flow by itself, over its own time."""

import re
from pathlib import Path
from typing import Any

import pytest

from sawtooth import Scenario, _core
from sawtooth.engines.sim import Sim
from tests.lab.test_lab_language import ask

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
        ["the return path, full of acknowledgements"],
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
    answers = ask(lab, "heavy", questions)
    most = 1448 / 1514 / 8 / 1448
    assert [one["packets"] for one in answers] == [
        pytest.approx(seconds * most) for seconds in (10e9 * 60, 500e6 * 60 * 4, 500e6 * (60 * 3 + 30), 100e6 * 10 * 2)
    ]
    assert [(one.get("duration"), one.get("flows")) for one in answers[:3]] == [("6 s", None), ("30 s", 2), (None, 2)]


RENO = {"cc": "reno"}
HEAVY: dict[str, tuple[str, dict[str, str | dict[str, str]], list[dict[str, Any]]]] = {
    "a hundred on 10 Mbit/s": ("1000 s", {"rate": "10 Mbit/s"}, [CUBIC | {"count": 50}, BBR | {"count": 50}]),
    "2% of loss": ("3000 s", {"rate": "100 Mbit/s", "loss": "2%"}, [CUBIC]),
    "two controls that loss parts": ("300 s", {"rate": "100 Mbit/s", "rtt": "40 ms", "loss": "0.1%"}, [RENO, BBR]),
    "forty on 200 Mbit/s": (
        "60 s",
        {"rate": "200 Mbit/s", "rtt": "30 ms"},
        [CUBIC | {"count": 20}, BBR | {"count": 20}],
    ),
    "1% of loss on 1 Gbit/s": ("900 s", {"rate": "1 Gbit/s", "loss": "1%"}, [CUBIC]),
    "two on 1 Gbit/s": ("20 s", {"rate": "1 Gbit/s"}, [CUBIC, BBR]),
    "ten in FQ-CoDel": ("20 s", {"rate": "1 Gbit/s", "queue": {"kind": "fq_codel"}}, [CUBIC | {"count": 10}]),
    "a hundred with loss": ("30 s", {"rate": "1 Gbit/s", "rtt": "50 ms", "loss": "0.1%"}, [RENO | {"count": 100}]),
    "a receive window": ("20 s", {"rate": "10 Gbit/s", "rtt": "140 ms"}, [BBR]),
    "a start that is faster than what comes": (
        "60 s",
        {"rate": "10 Gbit/s", "rtt": "100 ms", "loss": "0.001%"},
        [RENO],
    ),
    "1% of loss on 10 Gbit/s": ("4 s", {"rate": "10 Gbit/s", "loss": "1%"}, [CUBIC, BBR]),
    "one that comes late": ("240 s", {"rate": "500 Mbit/s", "loss": "0.5%"}, [CUBIC, BBR | {"start": "200 s"}]),
    "a hundred on 10 Gbit/s": ("3 s", {"rate": "10 Gbit/s"}, [CUBIC | {"count": 100}]),
    "BBR version 3 and 3% of loss": ("600 s", {"rate": "500 Mbit/s", "loss": "3%"}, [{"cc": "bbr3"}]),
    "slow acknowledgements": ("200 s", {"rate": "100 Mbit/s", "reverse_rate": "1 Mbit/s"}, [CUBIC]),
    "one that is soon done": ("60 s", {"rate": "1 Gbit/s"}, [CUBIC | {"bytes": "100 MB"}]),
}


def test_the_packets_of_a_heavy_question_are_known_before_it_runs_within_a_factor_of_2(
    lab: Path, patience: None
) -> None:
    given = [
        {"duration": duration, "path": {"rtt": "20 ms"} | path, "flows": flows}
        for duration, path, flows in HEAVY.values()
    ]
    said = ask(lab, "heavy", [{"scenario": one, "alone": False} for one in given])
    off = {}
    for name, one, heavy in zip(HEAVY, given, said, strict=True):
        simulated = Sim().run(Scenario.from_dict(one)).tables["intervals"]["segments_out"].sum()
        off[name] = round(float(heavy["packets"] / simulated), 2)
    assert all(0.5 < ratio < 2 for ratio in off.values()), off


def test_questions_to_start_from_are_scenarios_that_a_page_can_run(lab: Path) -> None:
    presets = ask(lab, "presets", None)
    questions = [preset["question"] for preset in presets]
    assert len({preset["title"] for preset in presets}) == len({preset["name"] for preset in presets}) == len(presets)
    compiled = ask(lab, "compile", {"scenarios": [one["scenario"] for one in questions]})
    for preset, question, answer in zip(presets, questions, compiled, strict=True):
        assert question["scenario"]["name"] == preset["name"]
        expected = Scenario.from_dict(question["scenario"]).compile().to_json()
        assert _core.describe_compiled(answer["json"]) == _core.describe_compiled(expected)
    heavy = ask(lab, "heavy", questions)
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
