"""Find with several unknowns: the frontier of synthetic noisy surfaces, valid questions, and answers."""

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from expected_error import expected_error
from fake_engine import Fake
from sawtooth.cli.program import status_of
from sawtooth.figures import embedded_figures
from sawtooth.scenario import Scenario
from sawtooth.search import find, save
from sawtooth.search.frontier_search import Tracing
from sawtooth.search.noise import Noise
from sawtooth.search.samples import FIRST
from sawtooth.search.space import Space
from sawtooth.search.surface import Surface
from sawtooth.study import Study

SPACE = Space.parse(["path.queue=0.1..4 bdp", "path.loss=0.0001%..1%"])


def traced(margin: Any, *, space: Space = SPACE, within: float = 0.1, most: int = 2000) -> Any:
    tracing = Tracing(space, lambda tasks: [margin(*values) for values, _ in tasks], within=within, most=most)
    return tracing, tracing.run()


FRONTIERS: dict[str, Any] = {
    "rising": lambda queue: queue**0.7,
    "bent": lambda queue: 3 * queue / (1 + queue),
    "kink": lambda queue: min(1, queue) ** 1.2,
    "wavy": lambda queue: math.exp(0.5 * math.sin(6 * math.log(queue / 0.1) / math.log(40))),
}
"""For a queue, the loss on the frontier, as a multiple."""


def root(times: float) -> float:
    return min(1, 0.9 / math.sqrt(times)) - 0.9


def bent(times: float) -> float:
    return 0.955 / (1 + 0.0611 * times) - 0.9


@pytest.mark.parametrize(
    ("frontier", "margin", "noise", "runs"),
    [
        ("rising", root, "normal", 250),
        ("bent", bent, "skewed", 800),
        ("kink", root, "normal", 330),
        ("wavy", root, "normal", 430),
    ],
)
@pytest.mark.usefixtures("patience")
def test_the_intervals_hold_the_truth(frontier: str, margin: Any, noise: str, runs: int) -> None:
    """Of 6 frontiers with at most this many runs on average, 95% less statistical error hold, by rows."""
    held, asked, errors = [], 0, []
    for number in range(6):
        rng = random.Random(number)
        scale = math.exp(rng.uniform(math.log(0.002), math.log(0.05)))

        def truth(queue: float, scale: float = scale) -> float:
            return scale * FRONTIERS[frontier](queue)

        def noisy(queue: float, loss: float, truth: Any = truth, rng: random.Random = rng) -> float:
            times = loss / truth(queue)
            by = (
                rng.gauss(0, 0.03) * min(2, math.sqrt(times)) if noise == "normal" else 0.015 * (1 - rng.expovariate(1))
            )
            return margin(times) + by

        tracing, found = traced(noisy)
        asked += tracing.sampled
        for row in found.rows:
            assert row.verdict == "found"
            place = math.log(truth(row.given[0]))
            held.append(row.low <= place <= row.high)
            errors.append(row.place - place)
    assert sum(held) >= 0.9 * len(held)
    assert asked <= 6 * runs
    assert abs(math.fsum(errors)) / len(errors) <= 0.03


def test_without_noise_a_frontier_is_exact() -> None:
    tracing, found = traced(lambda queue, loss: math.log(0.01 * queue / loss), within=0.05)
    for row in found.rows:
        assert row.low - 1e-4 <= math.log(0.01 * row.given[0]) <= row.high + 1e-4
        assert row.high - row.low <= 2.2 * math.log1p(0.05)
    assert tracing.sampled <= 3 * 7 * FIRST + 100


def test_where_margins_jump_rows_are_searched_for_by_themselves_all_of_them_if_need_be() -> None:
    rng = random.Random(52)
    scale = math.exp(rng.uniform(math.log(0.002), math.log(0.05)))
    tracing, found = traced(
        lambda queue, loss: (
            (0.05 if loss < scale * queue**0.7 else -0.1)
            + rng.gauss(0, 0.03) * min(2, math.sqrt(loss / (scale * queue**0.7)))
        )
    )
    assert len(tracing.aside) == 9
    assert all(row.low <= math.log(scale * row.given[0] ** 0.7) <= row.high for row in found.rows)


@pytest.mark.usefixtures("patience")
def test_three_unknowns() -> None:
    space = Space.parse(["path.queue=0.1..4 bdp", "path.rtt=10..100 ms", "path.loss=0.0001%..1%"])
    rng = random.Random(1)

    def truth(queue: float, rtt: float) -> float:
        return 0.02 * queue**0.5 * (20 / rtt)

    tracing, found = traced(
        lambda queue, rtt, loss: root(loss / truth(queue, rtt)) + rng.gauss(0, 0.02), space=space, most=4000
    )
    assert len(found.rows) == 25
    held = [row.low <= math.log(truth(*row.given)) <= row.high for row in found.rows]
    assert sum(held) >= 22
    assert tracing.sampled <= 900


def test_where_nothing_is_enough_is_reported_beside_what_is() -> None:
    """Below half a queue no loss is small enough."""
    rng = random.Random(1)
    _, found = traced(lambda queue, loss: (root(loss / 0.01) if queue > 0.5 else -0.3) + rng.gauss(0, 0.01))
    for row in found.rows:
        assert row.verdict == ("found" if row.given[0] > 0.5 else "never")
    assert all(row.low <= math.log(0.01) <= row.high for row in found.rows if row.verdict == "found")


@pytest.mark.parametrize(("margin", "verdict"), [(1.0, "always"), (-1.0, "never")])
def test_what_holds_everywhere_or_nowhere_has_no_frontier(margin: float, verdict: str) -> None:
    rng = random.Random(1)
    _, found = traced(lambda *_: margin + rng.gauss(0, 0.01))
    assert {row.verdict for row in found.rows} == {verdict}


def test_the_budget_of_runs_is_kept_and_reported_as_too_small() -> None:
    rng = random.Random(1)
    tracing, found = traced(lambda queue, loss: 0.1 * math.log(0.01 * queue / loss) + rng.gauss(0, 1), most=300)
    assert tracing.sampled <= 300
    assert not all(row.enough for row in found.rows)


def test_a_surface_says_when_it_does_not_carry_the_means() -> None:
    rng = np.random.default_rng(1)
    places = rng.uniform(-1, 1, (80, 2))
    errors = np.full(80, 0.05)
    smooth = np.sin(2 * places[:, 0]) + places[:, 1]
    fits = Surface.through(places, smooth + rng.normal(0, errors), errors**2)
    assert fits.misfit < 1.4
    mean, error = fits.at(np.array([[0.3, 0.1]]))
    assert abs(mean[0] - math.sin(0.6) - 0.1) < 3 * error[0] < 0.15
    rough = smooth + 0.5 * np.sign(np.sin(40 * places[:, 0]))
    assert Surface.through(places, rough + rng.normal(0, errors), errors**2).misfit > 1.5


def test_noise_that_grows_along_a_coordinate_is_known_from_few_seeds() -> None:
    rng = np.random.default_rng(1)
    places = np.column_stack([np.linspace(-1, 1, 30), np.zeros(30)])
    variances = np.exp(2 * places[:, 0]) * rng.chisquare(3, 30) / 3
    found = Noise.of(places, variances, np.full(30, 3.0)).at(np.array([[-1.0, 0.0], [1.0, 0.0]]))
    assert np.log(found) == pytest.approx([-2, 2], abs=0.7)


CHAIN = Scenario(topology="chain", duration="30 s", name="small")
VARY = ["chain.rate=600 Mbit/s..1000 Mbit/s", "chain.loss=0.1%..10%"]
WANT = "goodput >= 80% of chain.rate"


def loss(rate: float) -> float:
    """The loss in percent at which the synthetic engine, 905 - 7200 times the loss, has this share of a rate in
    Mbit/s.
    """
    return (905 - 0.8 * rate) / 72


@pytest.mark.usefixtures("patience")
def test_a_question_with_two_unknowns() -> None:
    found: Any = find(CHAIN, vary=VARY, want=WANT, engine=Fake(), check=Fake(name="other"))
    assert found.verdict == "found"
    assert (found.holds, found.enough, found.carries) == ("below", True, True)
    for row in found.frontier.to_dict("records"):
        assert row["low"] <= loss(row["chain.rate"]) <= row["high"]
    assert found.runs == len(found.samples) == found.table["seeds"].sum() < found.grid_runs / 10
    assert [one.holds for one in found.checks[::3]] == ["yes"] * 3
    assert "chain.loss up to" in repr(found)
    assert "data:image/png" in found._repr_html_()
    assert found.plot().axes
    told = json.loads(json.dumps(found.describe(), allow_nan=False))
    assert [one["field"] for one in told["unknowns"]] == ["chain.rate", "chain.loss"]
    assert told["frontier"][0]["at"] == {"chain.rate": 600}


@pytest.mark.usefixtures("patience")
def test_the_least_of_a_cost_along_the_frontier() -> None:
    """4 (1 - loss in tenths) + the rate in 100 Mbit/s, a straight line on the frontier: least at the smallest rate."""
    found: Any = find(CHAIN, vary=VARY, want=WANT, engine=Fake(), minimize="chain.rate / 100 Mbit/s - chain.loss / 1%")
    least = found.minimum
    assert least.values[0] == 600
    assert least.low <= 6 - loss(600) <= least.high
    assert least.as_good[0][0] == 600
    assert found.answer.startswith("chain.rate / 100 Mbit/s - chain.loss / 1% is lowest at chain.rate = 600 Mbit/s")


@pytest.mark.parametrize(
    ("vary", "minimize", "code", "field"),
    [
        ([*VARY, "chain.rtt=1..2 ms", "chain.queue=1..2 bdp"], None, "out-of-range", "vary"),
        ([VARY[0], VARY[0]], None, "duplicate-name", "vary"),
        (VARY[1], "chain.loss", "bad-usage", "minimize"),
        (VARY, "goodput", "bad-expression", "minimize"),
        (VARY, "chain.rtt", "bad-expression", "minimize"),
        (VARY, "chain.loss +", "bad-expression", "minimize"),
        (VARY, "chain.loss + chain.rate", "missing-unit", "minimize"),
    ],
)
def test_what_cannot_be_asked_is_reported_with_its_place(
    vary: Any, minimize: str | None, code: str, field: str
) -> None:
    with expected_error(code=code, field=field) as told:
        find(CHAIN, vary=vary, want=WANT, minimize=minimize, engine=Fake())
    assert told.value.fix


@pytest.mark.usefixtures("patience")
def test_a_study_has_a_frontier_for_each_point(tmp_path: Path) -> None:
    content = {
        "name": "both",
        "scenario": {"topology": "chain", "duration": "30 s"},
        "vary": {"flows.cc": ["cubic", "bbr"]},
        "find": {"vary": VARY, "want": WANT, "minimize": "chain.rate"},
    }
    found: Any = find(Study.from_dict(content), engine=Fake())
    assert found.table["cc"].unique().tolist() == ["cubic", "bbr"]
    assert len(found.table) == 18
    save(found, tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert [one["name"] for one in embedded_figures(page)] == ["find-0", "find-1"]
    assert "cubic" in repr(found)


@pytest.mark.usefixtures("patience")
def test_the_command_answers_in_words_and_as_files(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "office.toml"
    file.write_text('name = "office"\nduration = "5 s"\n[path]\nrate = "5 Mbit/s"\n')
    asked = ["find", str(file), "--vary", "path.rtt=10..80 ms", "--vary", "path.queue=1..400 packets"]
    asked += ["--want", "queue_delay_mean_ms <= 40 ms", "--minimize", "path.rtt", "--out", str(tmp_path / "out")]
    assert status_of(asked) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "unknown: path.queue" in told
    assert "a grid with the same rows, steps of 10% and 8 seeds" in told
    names = {"find.json", "find.csv", "points.csv", "find.png", "find.svg", "report.html"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert page.count("the unknown</li>") == 2
    answer = json.loads((tmp_path / "out" / "find.json").read_text("utf-8"))
    assert len(answer["frontier"]) == 9
