"""Find: the search with a synthetic noisy margin, valid questions, answers, and how it ends."""

import json
import math
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import sawtooth
from expected_error import expected_error
from fake_engine import Fake, Fixed
from sawtooth.cli.program import status_of
from sawtooth.errors import InputError
from sawtooth.figures import embedded_figures
from sawtooth.scenario import Scenario
from sawtooth.search import find, save
from sawtooth.search.control_variate import PARTS, excess_losses
from sawtooth.search.samples import FIRST
from sawtooth.search.unknown import Unknown
from sawtooth.search.zero_crossing import SCAN, Search
from sawtooth.study import Study

RANGE = Unknown.parse("path.loss=0.0001%..5%")


def searched(margin: Any, *, noise: float = 0.0, seed: int = 1, unknown: Unknown = RANGE, **options: Any) -> Any:
    rng = random.Random(seed)
    search = Search(
        unknown,
        lambda tasks: [margin(value) + noise * rng.gauss(0, 1) for value, _ in tasks],
        **{"within": 0.1, "most": 400} | options,
    )
    return search, search.run()


def poisson(mean: float, rng: random.Random) -> int:
    """The number of packets lost out of very many."""
    if mean > 200:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    count, left = 0, rng.expovariate(1)
    while left < mean:
        count, left = count + 1, left + rng.expovariate(1)
    return count


def normal(value: float, rng: random.Random) -> float:
    """Noise that grows with the loss."""
    return rng.gauss(0, 1) * min(2, math.sqrt(value))


def skewed(_: float, rng: random.Random) -> float:
    return 1 - rng.expovariate(1)


def heavy(_: float, rng: random.Random) -> float:
    """Student's t of three degrees of freedom, of standard deviation 1."""
    return rng.gauss(0, 1) / math.sqrt(sum(rng.gauss(0, 1) ** 2 for _ in range(3)))


MARGINS: dict[str, Any] = {
    "straight": lambda value: -0.1 * math.log(value),
    "root": lambda value: min(1, 0.9 / math.sqrt(value)) - 0.9,
    "bent": lambda value: 0.955 / (1 + 0.0611 * value) - 0.9,
    "bent more": lambda value: 0.955 / (1 + 0.0611 * value**2) - 0.9,
    "knee": lambda value: min(0.955, 0.9 / math.sqrt(value)) - 0.9,
    "jump": lambda value: 0.05 if value < 1 else -0.1,
}
"""By the ratio of the loss to the crossing."""


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    ("shape", "noise", "size", "runs"),
    [
        ("root", normal, 0.03, 60),
        ("straight", heavy, 0.02, 100),
        ("bent", normal, 0.005, 55),
        ("bent", normal, 0.015, 160),
        ("bent more", normal, 0.015, 80),
        ("bent more", skewed, 0.015, 80),
        ("knee", normal, 0.03, 85),
        ("jump", normal, 0.03, 130),
    ],
)
def test_the_interval_holds_the_truth(shape: str, noise: Any, size: float, runs: int) -> None:
    """Of 100 searches with at most this many runs each, for a known loss, 95 less statistical error succeed."""
    margin, held, enough, asked, errors = MARGINS[shape], 0, 0, 0, []
    for number in range(100):
        rng = random.Random(number)
        truth = math.exp(rng.uniform(math.log(0.001), math.log(1)))

        def noisy(loss: float, truth: float = truth, rng: random.Random = rng) -> float:
            return margin(loss / truth) + size * noise(loss / truth, rng)

        search, found = searched(noisy)
        assert found.verdict == "found"
        enough += found.enough
        held += found.low <= truth <= found.high
        asked += search.sampled
        errors.append(math.log(found.value / truth))
    assert held >= 92
    assert enough >= 98
    assert asked <= runs * 100
    assert abs(math.fsum(errors)) / 100 <= 0.03


@pytest.mark.usefixtures("patience")
def test_few_losses_a_run_are_steadied_by_their_number() -> None:
    """Two losses per run at the crossing, each costing the same share, and noise of another kind: a skewed margin.
    Without counting losses it would take about 770 runs.
    """
    share = -math.log(1 - math.log(0.955 / 0.9) / 2)
    held, asked = 0, 0
    for number in range(60):
        rng = random.Random(number)
        truth = math.exp(rng.uniform(math.log(0.001), math.log(1)))
        lucks: dict[tuple[float, int], tuple[float]] = {}

        def ask(tasks: Any, truth: float = truth, rng: random.Random = rng, lucks: Any = lucks) -> list[float]:
            margins = []
            for value, seed in tasks:
                losses = poisson(2 * value / truth, rng)
                lucks[value, seed] = (losses - 2 * value / truth,)
                margins.append(0.955 * math.exp(-share * losses) - 0.9 + rng.gauss(0, 0.01))
            return margins

        search = Search(RANGE, ask, within=0.1, most=1000, excess_losses=lambda *at, lucks=lucks: lucks[at])
        found = search.run()
        held += found.low <= truth <= found.high
        asked += search.sampled
    assert held >= 55
    assert asked <= 100 * 60


def test_chance_counts_the_packets_that_come_to_a_loss_and_0_on_average() -> None:
    scenario = Scenario(duration="10 s", path={"rate": "20 Mbit/s", "loss": "0.1%"})
    lucks = [excess_losses(sawtooth.run(scenario.set({"seed": seed}))) for seed in range(1, 31)]
    assert {len(one) for one in lucks} == {PARTS}
    sums = [math.fsum(one) for one in lucks]
    spread = math.sqrt(math.fsum(one**2 for one in sums) / len(sums))
    # About 12 losses per run: their standard deviation is the root of that.
    assert 2.2 < spread < 4.8
    assert abs(math.fsum(sums)) / len(sums) < 3 * spread / math.sqrt(len(sums))


def test_losses_in_bursts_have_no_known_chance() -> None:
    pattern = {"gilbert_elliott": {"p": "0.1%", "r": "30%"}}
    scenario = Scenario(duration="5 s", path={"rate": "5 Mbit/s", "loss": pattern})
    assert excess_losses(sawtooth.run(scenario)) == ()
    assert excess_losses(sawtooth.run(Scenario(duration="5 s"))) == ()


@pytest.mark.parametrize("truth", [0.0002, 0.01, 3.0])
def test_without_noise_the_interval_is_as_short_as_was_asked_for(truth: float) -> None:
    search, found = searched(lambda loss: truth - loss, within=0.02)
    assert found.low <= truth <= found.high
    assert found.high / found.low <= 1.02**2 + 1e-9
    assert search.sampled < SCAN * FIRST + 20


def test_a_want_may_hold_at_the_high_end() -> None:
    _, found = searched(lambda loss: loss - 0.03)
    assert not found.holds_low
    assert found.low <= 0.03 <= found.high


@pytest.mark.parametrize(("margin", "verdict"), [(1.0, "always"), (-1.0, "never")])
def test_what_holds_everywhere_or_nowhere_is_reported_as_such(margin: float, verdict: str) -> None:
    search, found = searched(lambda _: margin, noise=0.01)
    assert found.verdict == verdict
    assert search.sampled <= 2 * SCAN * FIRST


def test_what_noise_hides_is_not_told() -> None:
    search, found = searched(lambda _: 0.0, noise=1.0)
    assert found.verdict == "unclear"
    assert not found.enough
    assert search.sampled <= 400


def test_the_budget_of_runs_is_kept_and_reported_as_too_small() -> None:
    search, found = searched(lambda loss: 0.1 * math.log(0.1 / loss), noise=1.0, most=100)
    assert search.sampled <= 100
    assert not found.enough


def test_what_holds_again_is_not_monotone_and_the_first_change_is_the_answer() -> None:
    _, found = searched(lambda loss: -1.0 if 0.01 < loss < 0.2 else 1.0)
    assert len(found.changes) == 2
    assert found.low <= 0.01 <= found.high


def test_between_one_flow_and_the_next_there_is_nothing() -> None:
    flows = Unknown.parse("flows.0.count=1..64")
    _, found = searched(lambda count: 6.5 - count, unknown=flows)
    # Six holds and seven does not: six is the last that holds, whatever is between.
    assert (found.value, found.low, found.high) == (6, 6, 6)
    _, found = searched(lambda count: count - 6.5, unknown=flows)
    assert (found.value, found.low, found.high) == (7, 7, 7)


@pytest.mark.parametrize("text", ["path.rtt=1ms..500ms", "path.loss=0.0001%..5%", "flows.0.count=1..640"])
@pytest.mark.parametrize("noise", [0.0, 0.002])
def test_each_end_of_the_interval_is_as_near_to_the_answer_as_was_asked_for(text: str, noise: float) -> None:
    """Even if the crossing is next to one of the two clear values."""
    unknown = Unknown.parse(text)
    low, high = unknown.place(unknown.low), unknown.place(unknown.high)
    for number in range(40):
        truth = low + (high - low) * (0.05 + 0.9 * number / 40)
        _, found = searched(
            lambda value, truth=truth: (truth - unknown.place(value)) / (high - low),
            noise=noise,
            seed=number,
            unknown=unknown,
        )
        reach = unknown.reach(unknown.place(found.value), 0.1) * 1.001 + (unknown.is_whole and 1)
        assert found.enough
        assert unknown.place(found.value) - unknown.place(found.low) <= reach
        assert unknown.place(found.high) - unknown.place(found.value) <= reach


@pytest.mark.parametrize(("holds_low", "told"), [(True, (12, 12, 13)), (False, (13, 13, 14))])
def test_an_interval_of_whole_numbers_ends_with_one_that_may_be_the_answer(holds_low: bool, told: Any) -> None:
    """12 and 14 can be distinguished. Between them, 12 or 13 is the last that holds, or 13 or 14 the first."""
    flows = Unknown.parse("flows.0.count=1..64")
    assert flows.ends(12.4, 12.0, 14.0, holds_low) == told
    packets = Unknown.parse("path.queue=10 packets..5000 packets")
    assert packets.ends(*map(math.log, (12.4, 12.0, 14.0)), holds_low) == told


@pytest.mark.parametrize(
    ("text", "low", "high", "unit", "scale", "whole"),
    [
        ("path.loss=0.0001%..5%", 0.0001, 5, "%", "log", False),
        ("path.loss=0%..5%", 0, 5, "%", "log", False),
        ("path.rate = 500 kbit/s .. 10 Mbit/s", 0.5, 10, "Mbit/s", "log", False),
        ("path.rtt=1..200 ms", 1, 200, "ms", "linear", False),
        ("path.queue=10 packets..5000 packets", 10, 5000, "packets", "log", True),
        ("path.queue=0.1..4 bdp", 0.1, 4, "bdp", "log", False),
        ("flows.0.count=1..64", 1, 64, "", "linear", True),
    ],
)
def test_ranges(text: str, low: float, high: float, unit: str, scale: str, whole: bool) -> None:
    found = Unknown.parse(text)
    assert (found.low, found.high, found.unit, found.scale, found.is_whole) == (low, high, unit, scale, whole)
    for share in (0, 0.3, 1):
        place = found.place(low) + share * (found.place(high) - found.place(low)) if low or scale != "log" else 0
        Scenario().set({found.field: found.setting(found.value(place))})


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("path.loss", "bad-override"),
        ("seed=1..5", "conflict"),
        ("path.loss=1%", "bad-override"),
        ("path.loss=x..5%", "bad-quantity"),
        ("path.loss=5%..1%", "empty-axis"),
        ("path.rtt=1 ms..1 Mbit/s", "bad-quantity"),
        ("path.queue=1 bdp..100 packets", "bad-quantity"),
        ("path.rtt=1 parsec..2 parsec", "unknown-unit"),
    ],
)
def test_what_is_no_range_is_reported(text: str, code: str) -> None:
    with expected_error(code=code, kind=InputError):
        Unknown.parse(text)


CHAIN = Scenario(topology="chain", duration="30 s", name="small")
VARY = "chain.loss=0.1%..10%"


@pytest.mark.usefixtures("patience")
def test_a_question_of_a_scenario() -> None:
    """The synthetic engine gives 905 - 7200 times the loss."""
    found: Any = find(CHAIN, vary=VARY, want="goodput >= 80% of chain.rate", engine=Fake(), within="2%")
    assert found.verdict == "found"
    assert found.interval[0] <= 100 * 105 / 7200 <= found.interval[1]
    assert found.value == pytest.approx(1.458, rel=0.02)
    assert found.monotone
    assert found.runs == len(found.samples) == found.table["seeds"].sum()
    assert found.table["left"].iloc[0] == pytest.approx(897.8e6, rel=0.01)
    assert "chain.loss up to 1.4" in repr(found)
    assert "data:image/png" in found._repr_html_()
    assert found.plot().axes
    assert json.loads(json.dumps(found.describe(), allow_nan=False))["unit"] == "%"


def test_two_controls_are_compared_with_the_same_seeds() -> None:
    want = "mean_mbps(cc='bbr') > 1.1 * mean_mbps(cc='cubic', loss=1%)"
    found: Any = find(CHAIN, vary=VARY, want=want, engine=Fake(), within="5%")
    # 1005 - 8000 x = 1.1 (905 - 72)
    assert found.interval[0] <= 100 * (1005 - 1.1 * 833) / 8000 <= found.interval[1]
    assert found.runs == 2 * len(found.samples)


def test_what_is_the_same_for_every_seed_takes_one_seed_after_the_first_sample() -> None:
    found: Any = find(CHAIN, vary=VARY, want="goodput >= 80% of chain.rate", engine=Fixed())
    assert set(found.table["seeds"]) == {FIRST, 1}
    assert found.enough


@pytest.mark.usefixtures("patience")
def test_a_study_has_one_answer_for_each_point(tmp_path: Path) -> None:
    content = {
        "name": "both",
        "scenario": {"topology": "chain", "duration": "30 s"},
        "vary": {"flows.cc": ["cubic", "bbr"]},
        "find": {"vary": VARY, "want": "goodput >= 80% of chain.rate"},
    }
    found: Any = find(Study.from_dict(content), engine=Fake())
    assert found.table["cc"].tolist() == ["cubic", "bbr"]
    assert found.table["value"].tolist() == pytest.approx([1.458, 2.563], rel=0.1)
    assert found.runs == sum(one.runs for one in found.found)
    assert "cubic" in repr(found)
    save(found, tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert [one["name"] for one in embedded_figures(page)] == ["find-0", "find-1"]
    assert all(one.answer in page for one in found.found)


def test_another_engine_is_asked_at_the_answer() -> None:
    want = "goodput >= 80% of chain.rate"
    found: Any = find(CHAIN, vary=VARY, want=want, engine=Fixed(), check=Fake(name="other"))
    assert [one.engine for one in found.checks] == ["other"] * 3
    assert (found.checks[0].holds, found.checks[-1].holds) == ("yes", "no")


class Lossier(Fixed):
    """As if twice as many packets were lost."""

    def run(self, scenario: Any, **options: Any) -> Any:
        return super().run(
            scenario.set({"chain.loss": f"{scenario.chain_table.loss.probability * 200:.9f}%"}), **options
        )


class Whole(Fixed):
    """Its loss in percent is the number of flows."""

    def run(self, scenario: Any, **options: Any) -> Any:
        return super().run(scenario.set({"flows.0.count": 1, "chain.loss": f"{scenario.flows[0].count}%"}), **options)


class Fewer(Whole):
    """And two more."""

    def run(self, scenario: Any, **options: Any) -> Any:
        return super().run(scenario.set({"flows.0.count": scenario.flows[0].count + 2}), **options)


def test_another_engine_that_says_otherwise_is_reported_in_a_sentence() -> None:
    want = "goodput >= 80% of chain.rate"
    other: Any = find(CHAIN, vary=VARY, want=want, engine=Fixed(), check=Lossier(name="other"))
    assert "other disagrees: there the condition does not hold at " in repr(other)
    assert other.describe()["contradicted"]
    more: Any = find(CHAIN, vary=VARY, want=want, engine=Lossier(), check=Fixed(name="other"))
    assert "other disagrees: there the condition holds at " in repr(more)
    same: Any = find(CHAIN, vary=VARY, want=want, engine=Fixed(), check=Fixed(name="other"))
    assert "otherwise" not in repr(same)
    assert not same.describe()["contradicted"]
    never: Any = find(CHAIN, vary=VARY, want="goodput >= 950 Mbit/s", engine=Fixed(), check=Fixed(name="other"))
    assert (never.verdict, never.contradictions) == ("never", ())


def test_of_whole_numbers_the_next_is_asked_that_does_not_hold() -> None:
    """905 Mbit/s less 72 a flow: 545 with five."""
    asked: dict[str, Any] = {"vary": "flows.0.count=1..10", "want": "goodput >= 500 Mbit/s", "engine": Whole()}
    same: Any = find(CHAIN, check=Whole(name="other"), **asked)
    assert (same.value, *same.interval) == (5, 5, 5)
    assert [(one.value, one.holds) for one in same.checks] == [(5, "yes"), (6, "no")]
    assert same.contradictions == ()
    other: Any = find(CHAIN, check=Fewer(name="other"), **asked)
    assert "other disagrees: there the condition does not hold at 5" in repr(other)


@pytest.mark.parametrize(
    ("vary", "want", "code", "field"),
    [
        (None, "goodput > 1 Mbit/s", "missing-field", "vary"),
        (VARY, None, "missing-field", "want"),
        (VARY, "godput > 1 Mbit/s", "unknown-name", "want"),
        (VARY, "goodput > 20 ms", "bad-expression", "want"),
        (VARY, "goodput > 90% of path.rate", "unknown-name", "want"),
        (VARY, "goodput(flow='x') > 1 Mbit/s", "unknown-name", "want"),
        (VARY, "chain.rate > 1 Mbit/s", "bad-expression", "want"),
        ("chain.lose=1%..2%", "goodput > 1 Mbit/s", "unknown-field", "chain.lose"),
        (VARY, "goodput(cc='bbbr') > 1 Mbit/s", "unknown-name", "flows.0.cc"),
        (VARY, "call_mos > 3", "unknown-name", "want"),
        (VARY, "fct_ms_p99 > 3 ms", "too-short", "want"),
        ("chain.loss=0.1%..60%", "goodput > 1 Mbit/s", "unsupported", "chain.loss"),
    ],
)
def test_what_cannot_be_asked_is_reported_with_its_place(
    vary: str | None, want: str | None, code: str, field: str
) -> None:
    with expected_error(code=code, field=field) as told:
        find(CHAIN, vary=vary, want=want, engine=Fake())
    assert told.value.fix


def test_ctrl_c_says_how_far_it_was() -> None:
    class Interrupted(Fake):
        count = 0

        def before(self, scenario: Any, stop: Any) -> None:
            Interrupted.count += 1
            if Interrupted.count > 40:
                raise KeyboardInterrupt

    with expected_error(code="interrupted") as told:
        find(CHAIN, vary=VARY, want="goodput >= 80% of chain.rate", engine=Interrupted(), within="0.2%", jobs=1)
    assert "the answer so far: between" in told.value.message


@pytest.mark.usefixtures("patience")
def test_the_command_answers_in_words_and_as_json(tmp_path: Any, capsys: Any) -> None:
    file = tmp_path / "office.toml"
    file.write_text('name = "office"\nduration = "5 s"\n[path]\nrate = "5 Mbit/s"\n')
    asked = ["find", str(file), "--vary", "path.queue=1..200 packets", "--want", "queue_delay_mean_ms <= 40 ms"]
    assert status_of([*asked, "--out", str(tmp_path / "out")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "answer: path.queue up to" in told
    assert "on a logarithmic scale" in told
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("find.json", "find.csv", "find.png", "find.svg", "report.html")
    }
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "queue_delay_mean_ms &lt;= 40 ms" in page
    assert "the unknown</li>" in page
    assert [one["name"] for one in embedded_figures(page)] == ["find"]
    answered = json.loads((tmp_path / "out" / "find.json").read_text("utf-8"))
    assert answered["scenario"]["path"]["rate"] == "5 Mbit/s"
    assert status_of([*asked, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["low"] <= answer["value"] <= answer["high"]
    assert status_of(["find", str(file), "--vary", "path.loss=1%..5%", "--want", "goodput >"]) == 2
    assert "want: at character 10" in capsys.readouterr().err


PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "find.md"
SHOWN = re.findall(r"^\$ (sawtooth find .*)\n(answer: .*)\n(cost: \d+ runs)$", PAGE.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("command", "answer", "cost"), SHOWN)
@pytest.mark.usefixtures("patience")
def test_the_page_shows_what_its_commands_answer(
    command: str, answer: str, cost: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(PAGE.with_suffix(""))
    assert status_of(shlex.split(command)[1:]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert answer in told
    assert cost in told


def test_the_page_shows_the_four_questions() -> None:
    assert len(SHOWN) == 4


@pytest.mark.usefixtures("patience")
def test_the_verb_is_public() -> None:
    found = sawtooth.find(
        Scenario(duration="5 s", path={"rate": "5 Mbit/s"}),
        vary="path.queue=1..200 packets",
        want="queue_delay_mean_ms <= 40 ms",
    )
    assert found.runs


@pytest.mark.parametrize(
    ("option", "values"),
    [("want", ("goodput > 1 Mbit/s", "goodput > 2 Mbit/s")), ("within", ("5%", "10%")), ("scale", ("log", "linear"))],
)
def test_a_question_is_one_whatever_is_given_twice_is_refused(
    option: str, values: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    twice = [word for value in values for word in (f"--{option}", value)]
    assert status_of(["find", "office.toml", "--vary", "path.loss=1%..5%", *twice]) == 2
    said = capsys.readouterr().err
    assert f"error[bad-usage]: --{option}: is given 2 times" in said
    assert "fix: give it once" in said


@pytest.mark.parametrize("text", ["0", "10", "none"])
def test_how_near_is_a_share_above_0_and_nothing_is_reported_of_losses(text: str) -> None:
    with expected_error(
        field="within", fix="write a percentage above 0, like 10%", match="is not a precision", kind=InputError
    ):
        find(CHAIN, vary=VARY, want="goodput > 1 Mbit/s", within=text, engine=Fake())


@pytest.mark.parametrize(
    ("measure", "lacks"),
    [
        ("call_mos", "kind udp"),
        ("page_ms_p99", "kind pages"),
        ("latency_p95_ms", "needs a probe"),
        ("rpm", "needs a probe"),
    ],
)
def test_what_the_scenario_has_nothing_to_measure_by_is_reported_before_a_run(measure: str, lacks: str) -> None:
    with expected_error(code="unknown-name", field="want", match=lacks, kind=InputError):
        find(CHAIN, vary=VARY, want=f"{measure} > {'1 ms' if 'ms' in measure else '1'}", engine=Fake())
