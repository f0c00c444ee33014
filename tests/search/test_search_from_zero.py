"""Find: ranges from 0 are answered as well as others, and an interval that is too wide is reported."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

import sawtooth
from fake_engine import Fake, Fixed
from sawtooth.cli.program import status_of
from sawtooth.errors import InputError
from sawtooth.figures.static import canvas
from sawtooth.scenario import Scenario
from sawtooth.search import find
from sawtooth.search.page import figure
from sawtooth.search.unknown import Unknown
from sawtooth.search.zero_crossing import Search

OFFICE = Scenario(
    name="office", duration="30 s", warmup="5 s", path={"rate": "10 Mbit/s", "rtt": "30 ms", "queue": "1 bdp"}
)


def parse(text: str, scale: str | None = None) -> Unknown:
    return Unknown.parse(text, scale, OFFICE)


@pytest.mark.parametrize(
    ("text", "low", "least", "scale"),
    [
        # 10 Mbit/s over 30 s are 25,000 packets of 1500 bytes, each of 1.2 ms; 1 bdp is 25 of them.
        ("path.loss=0%..5%", 0, 0.004, "log"),
        ("path.ack_loss=0%..5%", 0, 0.004, "log"),
        ("path.rtt=0 ms..500 ms", 0, 1.2, "linear"),
        ("path.jitter=0..20 ms", 0, 1.2, "linear"),
        ("path.queue=0..4 bdp", 0.04, 0, "log"),
        ("path.queue=0..200 ms", 1.2, 0, "log"),
        ("path.queue=0..200 packets", 1, 0, "log"),
        ("path.queue=0..200 KiB", 1.5, 0, "log"),
        ("path.rate=0..10 Mbit/s", 0.004, 0, "log"),
    ],
)
def test_the_smallest_value_is_that_of_the_scenario(text: str, low: float, least: float, scale: str) -> None:
    """If the field cannot be 0, the range begins at its minimum."""
    found = parse(text)
    assert found.scale == scale
    assert [found.low, found.least] == pytest.approx([low, least], rel=0.03)
    assert found.from_zero == (low > 0)


@pytest.mark.parametrize(
    "text", ["path.loss=0%..5%", "path.rtt=0..500 ms", "path.queue=0..4 bdp", "path.loss=0.001%..5%"]
)
def test_a_place_and_its_value_are_one(text: str) -> None:
    unknown = parse(text)
    places = [unknown.place(value) for value in unknown.evenly(9)]
    assert places == sorted(places)
    for place in places:
        assert unknown.place(unknown.value(place)) == pytest.approx(place, rel=1e-3, abs=1e-3)
        # Converts the relative distance to values.
        further = unknown.ends(place + unknown.reach(place, 0.1), 0, 0, True)[0]
        value = unknown.ends(place, 0, 0, True)[0]
        assert further - value == pytest.approx(0.1 * max(value, unknown.least))


def test_below_0_a_logarithmic_scale_has_no_place() -> None:
    with pytest.raises(InputError, match="cannot go below 0"):
        parse("path.loss=-1%..5%", "log")


def test_the_scale_says_where_it_turns() -> None:
    assert parse("path.loss=0%..5%").describe() == (
        "path.loss, 0% … 5%, on a logarithmic scale above 0.004%, which is one packet of the run"
    )
    assert parse("path.queue=0..4 bdp").describe().endswith("0 cannot be run, so the range begins at one packet")
    assert parse("path.rtt=0..500 ms").describe().endswith("on a linear scale")


@pytest.mark.parametrize(
    ("text", "least", "noise", "runs"),
    [
        ("path.loss=0%..5%", 0.005, 0.0, 50),
        ("path.loss=0%..5%", 0.005, 0.03, 110),
        ("path.rtt=0 ms..500 ms", 2, 0.0, 50),
        ("path.rtt=0 ms..500 ms", 2, 0.03, 130),
        ("path.queue=0..4 bdp", 0.06, 0.03, 110),
    ],
)
def test_the_interval_holds_the_truth_and_is_as_short_as_from_above_0(
    text: str, least: float, noise: float, runs: int
) -> None:
    """Of 60 searches for a crossing anywhere, evenly by factors, 95% less statistical error succeed."""
    unknown = parse(text)
    held, asked = 0, 0
    for number in range(60):
        rng = random.Random(number)
        truth = math.exp(rng.uniform(math.log(least), math.log(unknown.high / 2)))

        def margins(tasks: Any, truth: float = truth, rng: random.Random = rng) -> list[float]:
            ratios = [value / truth for value, _ in tasks]
            return [0.9 / math.sqrt(max(one, 0.4)) - 0.9 + noise * rng.gauss(0, 1) for one in ratios]

        search = Search(unknown, margins, within=0.1, most=400)
        found = search.run()
        assert (found.verdict, found.enough) == ("found", True)
        held += found.low <= truth <= found.high
        asked += search.sampled
        assert found.value - found.low <= 0.101 * found.value
        assert found.high - found.value <= 0.101 * found.value
        assert found.value == pytest.approx(truth, rel=0.2)
    assert held >= 54
    assert asked <= runs * 60


@pytest.mark.parametrize(
    ("scenario", "zero", "above", "want"),
    [
        (OFFICE, "path.loss=0%..5%", "path.loss=0.001%..5%", "goodput >= 90% of path.rate"),
        (OFFICE, "path.queue=0..4 bdp", "path.queue=0.05..4 bdp", "goodput >= 93% of path.rate"),
        (
            OFFICE.set({"path.loss": "1%", "path.rate": "20 Mbit/s", "path.queue": "30 packets"}),
            "path.rtt=0 ms..800 ms",
            "path.rtt=1 ms..40 ms",
            "goodput >= 80% of path.rate",
        ),
    ],
)
@pytest.mark.usefixtures("patience")
def test_a_range_from_0_has_the_answer_of_one_from_above(scenario: Scenario, zero: str, above: str, want: str) -> None:
    answers: Any = (sawtooth.find(scenario, vary=vary, want=want) for vary in (zero, above))
    one, other = answers
    assert one.verdict == other.verdict == "found"
    assert one.enough
    assert one.reached <= 0.1
    assert one.value == pytest.approx(other.value, rel=0.15)
    assert max(one.interval[0], other.interval[0]) <= min(one.interval[1], other.interval[1])


def test_pictures_have_0_on_their_scale() -> None:
    found: Any = find(
        Scenario(topology="chain", duration="30 s", name="small"),
        vary="chain.loss=0%..10%",
        want="goodput >= 80% of chain.rate",
        engine=Fake(),
    )
    shape = figure(found)
    axis = shape.json()["panels"][0]["x"]
    assert (axis["scale"], axis["bend"]) == ("asinh", found.unknown.least)
    axes = canvas(shape).axes[0]
    assert axes.get_xscale() == "asinh"
    assert axes.get_xticks()[0] == 0


@pytest.fixture
def office(tmp_path: Path) -> Path:
    file = tmp_path / "office.toml"
    file.write_text(
        'name = "office"\nduration = "10 s"\nwarmup = "2 s"\n'
        '[path]\nrate = "10 Mbit/s"\nrtt = "30 ms"\nqueue = "1 bdp"\n'
    )
    return file


@pytest.mark.usefixtures("patience")
def test_an_interval_that_is_too_wide_is_reported_everywhere(office: Path, tmp_path: Path, capsys: Any) -> None:
    """The text, the page, JSON and the exit status report it, the reason, and what to do."""
    asked = ["find", str(office), "--vary", "path.loss=0%..5%", "--want", "goodput >= 90% of path.rate"]
    asked += ["--within", "1%", "--runs", "60"]
    assert status_of([*asked, "--out", str(tmp_path / "out")]) == 4
    told = " ".join(capsys.readouterr().out.split())
    assert "the confidence interval is wider than --within" in told
    assert "from the answer, not 1% (after 60 of at most 60 runs); give --runs " in told
    assert "wider than --within" in (tmp_path / "out" / "report.html").read_text("utf-8")
    assert status_of([*asked, "--json"]) == 4
    answer = json.loads(capsys.readouterr().out)
    assert not answer["enough"]
    assert answer["reached"] > 0.01
    assert answer["most_runs"] == 60
    assert "wider than --within" in " ".join(answer["remarks"])


def test_an_interval_as_short_as_was_asked_for_says_nothing(office: Path, capsys: Any) -> None:
    asked = ["find", str(office), "--vary", "path.queue=0..4bdp", "--want", "goodput >= 80% of path.rate", "--json"]
    assert status_of(asked) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["reached"] <= answer["within"]
    assert answer["remarks"] == []


@pytest.mark.usefixtures("patience")
def test_what_is_followed_literally_makes_it_enough(office: Path, capsys: Any) -> None:
    """The same runs satisfy the advised --within."""
    asked = ["find", str(office), "--vary", "path.loss=0%..5%", "--want", "goodput >= 80% of path.rate", "--runs", "90"]
    assert status_of([*asked, "--within", "3%"]) == 4
    told = " ".join(capsys.readouterr().out.split())
    advised = told.partition(", or --within ")[2].split()[0]
    assert status_of([*asked, "--within", advised]) == 0


def test_an_answer_that_cannot_be_distinguished_from_0_is_reported() -> None:
    """The synthetic engine loses 72 Mbit/s per percent: 0.03 Mbit/s is half of one packet of 83,000."""
    small = Scenario(topology="chain", duration="1 s", name="small")
    asked: dict[str, Any] = {"vary": "chain.loss=0%..10%", "engine": Fixed()}
    first: Any = find(small, want="goodput >= 800 Mbit/s", **asked)
    lossless = first.table["left"].iloc[0] / 1e6
    found: Any = find(small, want=f"goodput >= {lossless - 0.03:.9f} Mbit/s", **asked)
    assert found.enough
    assert found.value < found.unknown.least
    assert any("hardly distinguishable from 0" in one for one in found.remarks)
