"""The page and the command line share one estimator: the same path from a capture, equal to the simulated one."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from expected_error import expected_error
from sawtooth import Scenario
from sawtooth.engines.sim import Sim
from sawtooth.errors import SawtoothError
from sawtooth.whatif import Estimate, Observed, estimate, observe, replay
from sawtooth.whatif.runs import middle, scenario
from sawtooth.whatif.shared import learned
from tests.lab.test_lab_language import ask


def case(cc: str, rate: str, rtt: str, side: str, **more: Any) -> dict[str, Any]:
    """A path whose queue is one bandwidth-delay product, unless given."""
    path = {"rate": rate, "rtt": rtt} | {name: more.pop(name) for name in ("queue", "loss") if name in more}
    flow = {"cc": cc} | {name: more.pop(name) for name in ("bytes",) if name in more}
    return {"side": side, "given": {"duration": "12 s", "seed": 3, "path": path, "flows": [flow]} | more}


WINDOW = {"host": {"receive_buffer": "128 KiB"}}
CASES: dict[str, dict[str, Any]] = {
    "random loss, CUBIC": case("cubic", "20 Mbit/s", "30 ms", "sender", loss="0.5%"),
    "random loss, NewReno": case("reno", "20 Mbit/s", "30 ms", "receiver", loss="0.2%"),
    "random loss, fast": case("cubic", "50 Mbit/s", "20 ms", "receiver", loss="1%"),
    "random loss, BBR": case("bbr", "20 Mbit/s", "40 ms", "sender", loss="1%"),
    "queue drops, CUBIC": case("cubic", "10 Mbit/s", "40 ms", "sender"),
    "queue drops, NewReno": case("reno", "10 Mbit/s", "40 ms", "receiver"),
    "a short queue": case("cubic", "20 Mbit/s", "30 ms", "sender", queue="0.5 bdp"),
    "a long queue": case("cubic", "20 Mbit/s", "30 ms", "receiver", queue="3 bdp"),
    "both, CUBIC": case("cubic", "20 Mbit/s", "20 ms", "sender", loss="0.02%"),
    "both, NewReno": case("reno", "10 Mbit/s", "30 ms", "receiver", loss="0.05%"),
    "both, a short queue": case("cubic", "10 Mbit/s", "30 ms", "sender", queue="0.5 bdp", loss="0.05%"),
    "window, CUBIC": case("cubic", "50 Mbit/s", "40 ms", "sender", **WINDOW),
    "window, BBR": case("bbr", "50 Mbit/s", "40 ms", "receiver", **WINDOW),
    "window and loss": case("cubic", "50 Mbit/s", "40 ms", "sender", loss="0.05%", **WINDOW),
    "few bytes": case("cubic", "20 Mbit/s", "30 ms", "sender", bytes="100 kB"),
    "a short time": case("cubic", "20 Mbit/s", "30 ms", "receiver", duration="1.5 s"),
    "BBR": case("bbr", "20 Mbit/s", "30 ms", "sender"),
    "BBR at its receiver": case("bbr", "20 Mbit/s", "30 ms", "receiver"),
    "BBR, a short queue": case("bbr", "20 Mbit/s", "30 ms", "sender", queue="0.5 bdp"),
    "BBR, much loss": case("bbr", "20 Mbit/s", "30 ms", "receiver", loss="3%"),
}
REFUSED = ("few bytes", "a short time")


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for name, one in CASES.items():
        directory = tmp_path_factory.mktemp("captures")
        Sim(capture=directory, capture_at=(one["side"],)).run(Scenario.from_dict(one["given"]))
        found[name] = directory / f"capture-{one['side']}.pcap"
    return found


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("name", CASES)
def test_each_quantity_is_within_its_interval_of_the_truth(captures: dict[str, Path], name: str) -> None:
    seen = observe(captures[name])
    if name in REFUSED:
        with expected_error(code="too-short"):
            estimate(seen)
        return
    found, truth = estimate(seen), Scenario.from_dict(CASES[name]["given"])
    path = truth.path_table
    compiled = truth.compile().transmitters[0]
    assert compiled.queue_packets is not None
    for quantity, value in (
        (found.rate, path.rate.bps),
        (found.rtt, path.rtt.seconds),
        (found.queue, compiled.queue_packets),
        (found.loss, path.loss.probability),
    ):
        # It is a 90% interval; with only about ten losses, the estimate is sometimes further off.
        slack = 0.5 if quantity is found.loss else 0.05
        assert quantity.low * (1 - slack) <= value <= quantity.high * (1 + slack), (quantity, value)


def as_the_page(found: Estimate, seen: Observed) -> Estimate:
    """An estimate as the page has it, which does not know whether others use the path."""
    if learned().knows(seen) and seen.path is not None:
        return replace(found, rate=seen.path.rate, queue=seen.path.queue)
    return found


def test_the_page_says_the_same_path_and_puts_it_into_its_fields(lab: Path, captures: dict[str, Path]) -> None:
    told = ask(lab, "paths", [str(file) for file in captures.values()])
    for (name, file), page in zip(captures.items(), told, strict=True):
        seen = observe(file)
        if name in REFUSED:
            with pytest.raises(SawtoothError) as caught:
                estimate(seen)
            assert "path" not in page["told"]
            assert caught.value.message in page["told"]["how"]
            continue
        found = estimate(seen)
        alone = as_the_page(found, seen)
        shown = page["shown"]["Ok"]["path"]["Ok"]
        for quantity, value in alone.quantities.items():
            assert shown[quantity] == value.describe()
            assert quantity == "burst" or value.how in page["told"]["how"]
        assert shown["cannot_tell"] == list(found.cannot_tell)
        # As in the command line's scenario: its answer is the page's answer.
        asked = scenario(seen, found, middle(found), "cubic")
        fields = page["told"]["path"]
        ours = Scenario(path=fields["path"])
        assert ours.path_table == asked.path_table
        buffer = fields.get("receiveBuffer")
        assert (buffer is None) == (found.window is None)
        if buffer is not None:
            assert Scenario(host={"receive_buffer": buffer}).host.receive_buffer == asked.host.receive_buffer


@pytest.mark.parametrize("name", ["random loss, CUBIC", "queue drops, CUBIC", "BBR"])
def test_what_the_page_s_path_gives_is_within_the_command_line_s_interval(
    lab: Path, captures: dict[str, Path], name: str
) -> None:
    (page,) = ask(lab, "paths", [str(captures[name])])
    seen = observe(captures[name])
    answers = replay(seen, estimate(seen), controls=("cubic", "bbr"), draws=8).answers
    for one in answers:
        asked = Scenario(path=page["told"]["path"]["path"], duration="12 s", flows=[{"cc": one.cc}])
        table = Sim().run(asked).tables["intervals"]
        goodput = float(table["goodput_bps"].mean())
        assert one.low_bps * 0.9 <= goodput <= one.high_bps * 1.1, json.dumps(one.describe())
