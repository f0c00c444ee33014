"""What if: from one measurement to the path behind it and the goodput of other congestion controls."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from expected_error import expected_error
from sawtooth.capture.identify import Identification
from sawtooth.cli.whatif_command import whatif
from sawtooth.errors import SawtoothError
from sawtooth.scenario import LossPattern, Scenario
from sawtooth.whatif import Estimated, estimate, from_numbers, observe, replay, save_scenario, words
from sawtooth.whatif.estimate import poisson_interval
from sawtooth.whatif.observation import Observed
from sawtooth.whatif.replay import Answer, predicted, self_test
from sawtooth.whatif.replayable import identified
from sawtooth.whatif.runs import Drawn, Runs, draw, middle, scenario
from sawtooth.whatif.ss import from_ss
from sawtooth.whatif.text import rate, with_interval
from tests.whatif.test_whatif_totals import BBR, SS, iperf3, look


def identification(*ranked: tuple[str, float], unknown: str | None = None) -> Identification:
    return Identification(tuple(((name,), share) for name, share in ranked), ranked, unknown)


@pytest.mark.parametrize(
    ("found", "cc", "how"),
    [
        (identification(("cubic", 0.72), ("htcp", 0.28)), "cubic", "identified, 89%"),
        (identification(("bbr", 0.9999)), "bbr", "identified, over 99%"),
        (identification(("reno", 0.6)), "reno", "identified as dctcp, lp or reno, 82%"),
        (identification(("htcp", 0.4), ("cubic", 0.3)), None, "not identified; best guess: cubic, 56%"),
        (identification(("yeah", 0.95)), None, "not identified; best guess: yeah, 95%"),
        (identification(("cubic", 0.99), unknown="too short"), None, "not identified: too short"),
    ],
)
def test_a_control_is_replayed_where_it_is_likely_and_the_simulator_has_it(
    found: Identification, cc: str | None, how: str
) -> None:
    assert identified(found) == (cc, how)


def test_the_text_says_how_the_control_is_known_or_why_it_is_not() -> None:
    seen = from_ss(BBR)
    found, test = estimate(seen), self_test(seen, [])
    for cc, how, said in (
        ("bbr", "identified, 97%", "bbr (identified, 97%)"),
        (None, "not identified: too short", "unknown (not identified: too short)"),
    ):
        assert said in words(dataclasses.replace(seen, cc=cc, cc_how=how), found, test, [answer("reno", 9, 9, 9)])


def test_nothing_of_an_estimate_is_below_what_got_through() -> None:
    assert Estimated(10, 5, 20, "").above(12) == Estimated(12, 12, 20, "")
    assert Estimated(10, 5, 20, "").above(4) == Estimated(10, 5, 20, "")
    assert Estimated(10, 5, 20, "").above(30) == Estimated(30, 30, 30, "")


def test_plain_numbers_are_the_path() -> None:
    found = estimate(from_numbers(rate="50 Mbit/s", rtt="40 ms", loss="0.1%", queue="1 bdp"))
    assert (found.rate.value, found.rtt.value, found.loss.value, found.queue.value) == (50e6, 0.04, 0.001, 165)
    asked = scenario(from_numbers(rate="50 Mbit/s", rtt="40 ms", loss="0.1%"), found, middle(found), "reno")
    assert (
        asked.path_table
        == Scenario(path={"rate": "50 Mbit/s", "rtt": "40 ms", "loss": "0.1%"})
        .set({"path.queue": "165 packets"})
        .path_table
    )


@pytest.mark.parametrize(
    ("queue", "packets"), [("100 packets", 100), ("20 ms", 82), ("15140 bytes", 10), ("2 bdp", 330)]
)
def test_a_queue_in_any_unit_is_counted_in_packets(queue: str, packets: int) -> None:
    assert estimate(from_numbers(rate="50 Mbit/s", rtt="40 ms", loss="0%", queue=queue)).queue.value == packets


def test_the_interval_of_a_count_is_jeffreys() -> None:
    assert poisson_interval(0) == (0.0, pytest.approx(1.9207, abs=1e-3))
    low, high = poisson_interval(100)
    assert (low, high) == (pytest.approx(84.5, abs=1), pytest.approx(117.4, abs=1))


def test_draws_lie_in_their_interval_nine_times_of_ten() -> None:
    one = Estimated(10.0, 8.0, 20.0, "")
    rng = np.random.default_rng(1)
    drawn = np.array([one.draw(rng) for _ in range(4000)])
    assert ((drawn > 8) & (drawn < 20)).mean() == pytest.approx(0.9, abs=0.02)
    assert np.median(drawn) == pytest.approx(10, rel=0.03)


def test_a_bound_is_tried_up_to_its_other_end_and_a_share_never_below_nothing() -> None:
    rng = np.random.default_rng(1)
    bounded = [Estimated(10.0, 10.0, 50.0, "", "at least").draw(rng) for _ in range(1000)]
    assert 10 <= min(bounded) < 11
    assert 45 < max(bounded) <= 50
    none = [Estimated(0.0, 0.0, 1e-4, "").draw(rng) for _ in range(1000)]
    assert min(none) >= 0
    assert max(none) <= 1e-4
    assert min(Estimated(0.001, 0.0, 0.003, "").draw(rng) for _ in range(1000)) >= 0


def test_the_same_seed_draws_the_same_paths() -> None:
    found = estimate(from_ss(BBR))
    assert draw(found, 5, 3) == draw(found, 5, 3)
    assert draw(found, 5, 3) != draw(found, 5, 4)


def test_a_loss_of_which_only_the_high_end_is_known_is_rare_on_every_second_path() -> None:
    known = estimate(from_numbers(rate="50 Mbit/s", rtt="40 ms", loss="1%"))
    high = Estimated(0.01, 0.0, 0.02, "", "at most")
    losses = np.array([one.loss for one in draw(dataclasses.replace(known, loss=high), 400, 1)])
    assert losses.max() <= 0.02
    tenth = losses < 0.002
    assert tenth[::2].mean() == pytest.approx(0.1, abs=0.06)
    assert tenth[1::2].mean() == pytest.approx(2 / 3, abs=0.1)


def test_runs_of_losses_become_gilberts_model() -> None:
    found = estimate(from_numbers(rate="50 Mbit/s", rtt="40 ms", loss="1%"))
    bursty = dataclasses.replace(middle(found), burst=2.5)
    loss = scenario(from_numbers(rate="50 Mbit/s", rtt="40 ms", loss="1%"), found, bursty, "reno").path_table.loss
    assert isinstance(loss, LossPattern)
    assert loss.gilbert_elliott is not None
    p, r = loss.gilbert_elliott.p.probability, loss.gilbert_elliott.r.probability
    assert (r, p / (p + r)) == (pytest.approx(0.4), pytest.approx(0.01, rel=1e-4))


def test_replays_depend_on_the_seed_alone() -> None:
    seen = from_numbers(rate="10 Mbit/s", rtt="20 ms", loss="0.5%", duration="5 s", throughput="8 Mbit/s", cc="cubic")
    found = estimate(seen)
    first, second = (replay(seen, found, draws=3) for _ in range(2))
    assert (first.test, first.answers) == (second.test, second.answers)


def test_a_replay_of_numbers_gives_what_the_simulator_gives() -> None:
    seen = from_numbers(rate="20 Mbit/s", rtt="30 ms", loss="0%", queue="2 bdp", duration="10 s")
    replayed = replay(seen, estimate(seen), draws=2)
    test, answers = replayed.test, replayed.answers
    assert [one.cc for one in answers] == ["reno", "cubic", "bbr", "bbr3"]
    assert test.verdict == "none"
    for one in answers:
        assert 0.9 * 20e6 * 1448 / 1514 < one.median_bps < 20e6 * 1448 / 1514
        assert one.low_bps <= one.median_bps <= one.high_bps


def test_losses_that_only_the_replay_can_place_are_fitted_and_called_so() -> None:
    seen = dataclasses.replace(from_ss(SS), duration_s=6.0)
    replayed = replay(seen, estimate(seen), draws=3)
    test, answers = replayed.test, replayed.answers
    assert test.verdict == "fitted"
    assert len(answers[1].draws) == 3


def test_a_fit_that_does_not_come_near_fails() -> None:
    seen = look()
    for median, verdict in ((5.2e6, "fitted"), (7.4e6, "fails")):
        got = [answer("cubic", median, median * 0.98, median * 1.02)]
        assert self_test(seen, got, fitted=True).verdict == verdict


def answer(cc: str, median: float, low: float, high: float) -> Answer:
    return Answer(cc, median, low, high, 0.0, (low, median, high))


@pytest.mark.parametrize(
    ("seen", "verdict"), [(100.0, "agrees"), (93.0, "agrees"), (80.0, "roughly"), (40.0, "fails"), (170.0, "fails")]
)
def test_the_self_test_says_how_far_the_replay_is_off(seen: float, verdict: str) -> None:
    observed = Observed("ss", "", goodput_bps=seen, cc="cubic")
    found = self_test(observed, [answer("cubic", 100, 95, 105)])
    assert found.verdict == verdict
    assert found.ratio == pytest.approx(100 / seen)


def test_without_the_control_the_self_test_names_those_that_explain_the_throughput() -> None:
    answers = [answer("reno", 10, 9, 11), answer("cubic", 11, 9, 12), answer("bbr", 90, 80, 95)]
    unknown = Observed("capture", "", goodput_bps=10)
    assert "reno and cubic would explain" in self_test(unknown, answers).words
    assert self_test(dataclasses.replace(unknown, goodput_bps=500), answers).verdict == "fails"
    assert math.isnan(self_test(dataclasses.replace(unknown, cc="vegas"), answers).ratio)


def test_the_saved_scenario_is_the_estimates_middle(tmp_path: Path) -> None:
    seen = from_ss(BBR)
    found = estimate(seen)
    asked = save_scenario(tmp_path / "path.toml", seen, found)
    loaded = Scenario.load(tmp_path / "path.toml")
    assert loaded == asked
    assert loaded.flows[0].cc == "bbr"
    assert loaded.path_table.rate.bps == round(found.rate.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((11.08e6, 3.808e6, 31.31e6), ("11 Mbit/s", "3.8 Mbit/s … 31 Mbit/s")),
        ((844.9e6, 836.2e6, 849.1e6), ("845 Mbit/s", "836 Mbit/s … 849 Mbit/s")),
        ((48.13e6, 48.11e6, 48.21e6), ("48.13 Mbit/s", "48.11 Mbit/s … 48.21 Mbit/s")),
        ((1e3, 0, 5e3), ("1 kbit/s", "0 bit/s … 5 kbit/s")),
    ],
)
def test_a_value_has_no_more_digits_than_its_interval_leaves(
    given: tuple[float, float, float], told: tuple[str, str]
) -> None:
    assert with_interval(*given, rate) == told


def test_the_text_has_the_observation_first_then_the_estimate_the_test_and_the_controls() -> None:
    seen = from_ss(BBR)
    found = estimate(seen)
    said = words(seen, found, self_test(seen, []), [answer("reno", 10e6, 9e6, 11e6)])
    order = [said.index(part) for part in ("observed", "estimate of the path", "self-test", "expected goodput")]
    assert order == sorted(order)
    assert "48.1 Mbit/s" in said
    assert "9 Mbit/s … 11 Mbit/s" in said


def test_the_command_answers_from_numbers(tmp_path: Path) -> None:
    arguments = ["--rate", "5 Mbit/s", "--rtt", "20 ms", "--loss", "0.5%", "--queue", "1 bdp", "--duration", "4 s"]
    arguments += ["--throughput", "4 Mbit/s", "--cc", "reno", "--draws", "2", "--scenario", str(tmp_path / "s.toml")]
    done = CliRunner().invoke(whatif, [*arguments, "--json"], catch_exceptions=False)
    told = json.loads(done.output)
    assert told["observed"]["goodput_bps"] == 4e6
    assert told["estimate"]["rate"]["value"] == 5e6
    assert told["self_test"]["verdict"] in ("agrees", "roughly", "fails")
    assert [one["cc"] for one in told["answers"]] == ["reno", "cubic", "bbr", "bbr3"]
    assert Scenario.load(tmp_path / "s.toml").flows[0].cc == "reno"


@pytest.mark.parametrize(
    "arguments",
    [[], ["--rate", "5 Mbit/s"], ["FILE", "--rate", "5 Mbit/s"], ["--connection", "1", "--rate", "1 Mbit/s"]],
)
def test_the_command_takes_an_input_or_the_numbers(arguments: list[str], tmp_path: Path) -> None:
    file = tmp_path / "ss.txt"
    file.write_text(SS)
    given = [str(file) if one == "FILE" else one for one in arguments]
    done = CliRunner().invoke(whatif, given)
    assert isinstance(done.exception, SawtoothError)
    assert done.exception.code == "bad-usage"


def test_inputs_are_distinguished_by_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(json.dumps(iperf3([94.0] * 10)))
    (tmp_path / "b").write_text(SS)
    assert observe(tmp_path / "a").source == "iperf3"
    assert observe(tmp_path / "b").source == "ss"
    for content in ("{", "neither"):
        (tmp_path / "c").write_text(content)
        with expected_error(code="not-a-measurement", file=str(tmp_path / "c")):
            observe(tmp_path / "c")
    with expected_error(code="file-not-found"):
        observe(tmp_path / "absent")


def test_standard_input_is_read_whole(tmp_path: Path) -> None:
    done = CliRunner().invoke(whatif, ["-", "--draws", "2", "--json"], input=BBR, catch_exceptions=False)
    assert json.loads(done.output)["observed"]["cc"] == "bbr"


def test_round_trips_that_contradict_each_other_are_refused() -> None:
    observed = Observed(source="capture", what="", duration_s=20.0, segments=5000, rtt_min_s=0.422, rtt_mean_s=0.266)
    with expected_error(code="not-a-measurement", match="contradict"):
        observed.check()


def test_a_replay_whose_handshake_never_ends_gets_nothing() -> None:
    seen = look()
    lossy = Drawn(seed=1, rate_bps=5e6, rtt_s=0.02, queue=20, loss=0.0, burst=1.0, ack_loss=1.0)
    (one,) = Runs(seen, estimate(seen)).of([lossy], "reno")
    assert (one.goodput_bps, one.rtt_mean_s) == (0.0, 0.02)
    assert predicted("reno", [one] * 24).low_bps == 0.0
