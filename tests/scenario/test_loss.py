"""Losses in a pattern: every n-th packet, single packets, and bursts; in scenario files and on the engines."""

import re
from typing import Any

import jsonschema
import pandas as pd
import pytest

from expected_error import expected_error
from sawtooth import engines
from sawtooth.errors import InputError, SawtoothError
from sawtooth.run import Run
from sawtooth.scenario import GilbertElliott, LossPattern, Scenario
from sawtooth.scenario.overrides import parse_assignment
from sawtooth.testbed import kernel_features
from tests.one_guest import run_each

EVERY = {"every": 100}
PACKETS = {"packets": [700, 3, 5000, 3]}
BURSTS = {"gilbert_elliott": {"p": "1%", "r": "30%"}}
NOISY = {"gilbert_elliott": {"p": "1%", "r": "20%", "bad": "50%", "good": "0.1%"}}
BY_MEAN = {"mean": "0.5%", "burst": "5 packets"}
COMPILED = {
    "gilbert_elliott": {"p_ppb": 10_000_000, "r_ppb": 300_000_000, "bad_ppb": 1_000_000_000, "good_ppb": 0},
}
CUSTOM: dict[str, Any] = {
    "topology": "custom",
    "hosts": {"a": {}, "b": {}, "c": {}},
    "links": [{"from": "a", "to": "b"}, {"from": "b", "to": "c", "rate": "10 Mbit/s", "delay": "5 ms"}],
    "flows": [{"from": "a", "to": "c"}],
}


def patterns(**tables: Any) -> dict[str, Any]:
    """The loss patterns of a compiled scenario's links, by name."""
    links = Scenario(**tables).compile().to_dict()["links"]
    return {link["name"]: link["loss_pattern"] for link in links if link["loss_pattern"]}


def custom(**link: Any) -> dict[str, Any]:
    return {**CUSTOM, "links": [CUSTOM["links"][0], {**CUSTOM["links"][1], **link}]}


def mean(loss: dict[str, Any]) -> float:
    return Scenario(path={"loss": loss}).compile().to_dict()["links"][2]["loss_ppb"] / 1e9


@pytest.mark.parametrize(
    ("tables", "links"),
    [
        ({"path": {"loss": BURSTS}}, ["loss>delay"]),
        ({"path": {"ack_loss": BURSTS}}, ["delay>loss"]),
        ({"topology": "chain", "chain": {"loss": BURSTS}}, ["h3>h4"]),
        ({"topology": "chain-asymmetric", "chain": {"loss": BURSTS}}, ["h3>h4"]),
        ({"topology": "dumbbell", "dumbbell": {"loss": BURSTS}}, ["left>right"]),
        (custom(loss=BURSTS), ["b>c", "c>b"]),
        (custom(loss="1%", backward={"loss": BURSTS}), ["c>b"]),
    ],
)
def test_a_table_is_allowed_wherever_a_share_may(tables: dict[str, Any], links: list[str]) -> None:
    assert patterns(**tables) == dict.fromkeys(links, COMPILED)


def test_one_direction_may_take_the_share_back() -> None:
    scenario = Scenario(**custom(loss=EVERY, forward={"loss": "1%"}))
    links = scenario.compile().to_dict()["links"]
    found = {link["name"]: (link["loss_ppb"], link["loss_pattern"]) for link in links[2:]}
    assert found == {"b>c": (10_000_000, None), "c>b": (10_000_000, EVERY)}


def test_a_table_from_the_command_line_sets_a_loss_whole_or_one_field_of_it() -> None:
    whole = Scenario(path={"loss": "1%"}).set(dict([parse_assignment("path.loss={every = 100}")]))
    assert whole == Scenario(path={"loss": EVERY})
    changed = Scenario(path={"loss": BURSTS}).set(dict([parse_assignment("path.loss.gilbert_elliott.p=2%")]))
    assert changed == Scenario(path={"loss": {"gilbert_elliott": {"p": "2%", "r": "30%"}}})
    assert Scenario().set({"path.loss.every": 100}) == whole
    assert Scenario(path={"loss": EVERY}).set({"path.loss": "1%"}) == Scenario(path={"loss": "1%"})


def test_a_table_is_written_and_read_back_with_what_it_leaves_out() -> None:
    scenario = Scenario(path={"loss": BURSTS, "ack_loss": EVERY})
    written = scenario.to_dict()["path"]
    assert written["loss"] == {"gilbert_elliott": {"p": "1%", "r": "30%", "bad": "100%", "good": "0%"}}
    assert written["ack_loss"] == EVERY
    assert Scenario(**scenario.to_dict()) == scenario
    assert Scenario(path={"loss": written["loss"]}).digest() == Scenario(path={"loss": BURSTS}).digest()


def test_numbers_of_packets_are_compiled_in_ascending_order() -> None:
    assert patterns(path={"loss": PACKETS}) == {"loss>delay": {"packets": [3, 700, 5000]}}
    assert Scenario().set({"path.loss.packets": [700, 3, 5000, 3]}).to_dict()["path"]["loss"] == PACKETS


@pytest.mark.parametrize("numbers", [[], list(range(1, 102))])
def test_no_number_and_too_many_are_refused(numbers: list[int]) -> None:
    with expected_error(
        code="out-of-range", fix="give 1 to 100 numbers", match=f"{len(numbers)} packets are given", kind=InputError
    ):
        Scenario(path={"loss": {"packets": numbers}})


def test_the_values_may_be_objects() -> None:
    loss = LossPattern(gilbert_elliott=GilbertElliott(p="1%", r="30%"))
    assert patterns(path={"loss": loss}) == {"loss>delay": COMPILED}


def test_a_mean_and_a_burst_are_the_chain_that_has_them() -> None:
    chain = patterns(path={"loss": BY_MEAN})["loss>delay"]["gilbert_elliott"]
    assert chain == {"p_ppb": 1_005_025, "r_ppb": 200_000_000, "bad_ppb": 10**9, "good_ppb": 0}
    # p / (p + r) is the mean, 1 / r the burst.
    assert patterns(path={"loss": {"mean": "50%", "burst": "1 packet"}})["loss>delay"]["gilbert_elliott"] == {
        "p_ppb": 10**9,
        "r_ppb": 10**9,
        "bad_ppb": 10**9,
        "good_ppb": 0,
    }


@pytest.mark.parametrize("burst", ["1 packet", "1.001 packets", "2.5 packets", "17 packets", "1000 packets"])
@pytest.mark.parametrize("share", ["0.0002%", "0.03%", "1%", "12.3456789%", "49%"])
def test_a_mean_is_kept_to_half_a_percent_of_itself(share: str, burst: str) -> None:
    try:
        scenario = Scenario(path={"loss": {"mean": share, "burst": burst}})
    except InputError as error:
        assert error.code == "out-of-range"
        least = re.search(r'"([0-9.]+%)" or more', error.fix)
        assert least is not None
        scenario = Scenario(path={"loss": {"mean": least[1], "burst": burst}})
        share = least[1]
    link = scenario.compile().to_dict()["links"][2]
    chain, wanted = link["loss_pattern"]["gilbert_elliott"], float(share[:-1]) / 100
    assert chain["p_ppb"] / (chain["p_ppb"] + chain["r_ppb"]) == pytest.approx(wanted, rel=0.005)
    assert link["loss_ppb"] == pytest.approx(wanted * 1e9, abs=0.5)


@pytest.mark.parametrize(("share", "burst"), [("100%", "5 packets"), ("60%", "1 packet"), ("99%", "17.5 packets")])
def test_the_fix_of_an_impossible_mean_works(share: str, burst: str) -> None:
    with pytest.raises(InputError) as caught:
        Scenario(path={"loss": {"mean": share, "burst": burst}})
    most = re.search(r'"([0-9.]+%)" or less', caught.value.fix)
    assert most is not None
    Scenario(path={"loss": {"mean": most[1], "burst": burst}}).compile()


def test_a_mean_of_nothing_loses_nothing() -> None:
    link = Scenario(path={"loss": {"mean": "0%", "burst": "5 packets"}}).compile().to_dict()["links"][2]
    assert link["loss_ppb"] == 0
    assert link["loss_pattern"]["gilbert_elliott"]["p_ppb"] == 0


def test_a_mean_and_a_burst_are_set_and_written_like_other_fields() -> None:
    changes = dict(parse_assignment(one) for one in ("path.loss.mean=0.5%", "path.loss.burst=5 packets"))
    changed = Scenario().set(changes)
    assert changed == Scenario(path={"loss": BY_MEAN})
    assert changed.to_dict()["path"]["loss"] == BY_MEAN
    assert changed.set({"path.loss.burst": "2 packets"}) == Scenario(path={"loss": {**BY_MEAN, "burst": "2 packets"}})
    assert Scenario(path={"loss": LossPattern(mean="0.5%", burst="5.0 p")}) == changed


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (EVERY, 0.01),
        (BY_MEAN, 0.005),
        ({"every": 1}, 1.0),
        (BURSTS, 1 / 31),
        (NOISY, 1 / 21 * 0.5 + 20 / 21 * 0.001),
        ({"gilbert_elliott": {"p": "0%", "r": "0%", "good": "2%"}}, 0.02),
        ({"gilbert_elliott": {"p": "1%", "r": "0%", "bad": "40%"}}, 0.4),
    ],
)
def test_the_mean_is_the_share_that_is_lost_in_the_long_run(loss: dict[str, Any], expected: float) -> None:
    assert mean(loss) == pytest.approx(expected, abs=1e-9)


def test_a_mean_too_small_to_be_printed_is_not_no_loss() -> None:
    assert mean({"gilbert_elliott": {"p": "0.0000001%", "r": "100%", "bad": "1%"}}) == 1e-9


def test_the_json_schema_takes_text_and_tables_and_refuses_others() -> None:
    check = jsonschema.Draft202012Validator(Scenario.json_schema())
    for loss in ("1%", EVERY, PACKETS, NOISY, BY_MEAN):
        assert check.is_valid({"path": {"loss": loss}}), loss
        assert check.is_valid({"links": [{"from": "a", "to": "b", "forward": {"loss": loss}}]}), loss
    for wrong in (1, {"every": 0}, {"packets": [0]}, {"often": 3}, {"gilbert_elliott": {"p": "1%"}}):
        assert not check.is_valid({"path": {"loss": wrong}}), wrong


def scenario(loss: Any, **tables: Any) -> Scenario:
    # BBR sends at the line rate despite losses, so a few seconds have many packets.
    path = {"rate": "100 Mbit/s", "rtt": "10 ms", "queue": "200 packets", "loss": loss}
    return Scenario(**{"path": path, "traffic": "native", "duration": "10 s", "flows": [{"cc": "bbr"}], **tables})


def run(engine: str, loss: Any, **tables: Any) -> Run:
    return engines.get(engine).run(scenario(loss, **tables))


def lost(found: Run, link: str = "loss>delay") -> int:
    losses = found.tables["links"]
    return int(losses[losses["link"] == found.meta["names"]["link"].index(link)]["lost"].sum())


def entered(found: Run) -> int:
    """Packets that left the bottleneck and reached the loss."""
    return int(found.tables["queues"]["sent_packets"].sum())


COMPARED = {
    "every": scenario(EVERY),
    "packets": scenario(PACKETS, duration="2 s"),
    "first": scenario({"packets": [1]}, duration="2 s"),
    "all": scenario(BURSTS, duration="20 s"),
    "some": scenario(NOISY, duration="20 s"),
    "mean": scenario({"mean": "3%", "burst": "4 packets"}, duration="20 s"),
    "acknowledgements": scenario(
        None,
        path={"rate": "20 Mbit/s", "rtt": "10 ms", "ack_loss": {"every": 50}},
        duration="5 s",
        flows=[{"cc": "cubic"}],
    ),
}


@pytest.fixture(scope="module", params=["sim", "kernel"])
def found(request: pytest.FixtureRequest, kernel: Any) -> dict[str, Run]:
    """Each run, on either engine."""
    if request.param == "kernel":
        return run_each(COMPARED)
    return {name: engines.get("sim").run(one) for name, one in COMPARED.items()}


def test_of_every_hundred_packets_one_is_lost(found: dict[str, Run]) -> None:
    made = found["every"]
    assert entered(made) > 50_000
    # A packet may be between the bottleneck and the loss when the run ends.
    assert lost(made) == pytest.approx(entered(made) / 100, abs=1)


def test_packets_are_lost_by_their_numbers(found: dict[str, Run]) -> None:
    assert lost(found["packets"]) == 3
    # The SYN is the first packet: it is sent again after a second.
    assert lost(found["first"]) == 1
    assert found["first"].tables["intervals"]["goodput_bps"].tolist()[0] == 0


@pytest.mark.parametrize("name", ["all", "some", "mean"])
def test_bursts_lose_their_mean(name: str, found: dict[str, Run]) -> None:
    expected = {"all": mean(BURSTS), "some": mean(NOISY), "mean": 0.03}[name]
    # Bursts of 3 to 5 packets: about four standard deviations of 4,000 losses that come together.
    assert lost(found[name]) / entered(found[name]) == pytest.approx(expected, rel=0.12)


def test_acknowledgements_are_counted_like_data(found: dict[str, Run]) -> None:
    made = found["acknowledgements"]
    acknowledgements = made.tables["flows"]["delivered_bytes"].sum() / 1448 / 2
    assert lost(made, "delay>loss") == pytest.approx(acknowledgements / 50, rel=0.2)


@pytest.mark.usefixtures("kernel")
def test_the_kernel_draws_bursts_from_the_seed() -> None:
    first, second, other = (run("kernel", BURSTS, duration="2 s", seed=seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first.tables["links"], second.tables["links"], check_exact=True)
    assert not first.tables["links"].equals(other.tables["links"])


def test_the_model_takes_the_mean_and_says_so_of_bursts() -> None:
    bursts, same = run("model", BURSTS), run("model", "3.2258065%")
    assert bursts.tables["intervals"].equals(same.tables["intervals"])
    assert any("bursts" in warning and "3.2258065%" in warning for warning in bursts.warnings)
    assert not any("bursts" in warning for warning in run("model", EVERY).warnings)
    with pytest.raises(SawtoothError, match="single packets"):
        run("model", PACKETS)


@pytest.mark.usefixtures("namespaces")
def test_this_hosts_kernel_loses_every_nth_packet() -> None:
    tables: dict[str, Any] = {
        "topology": "chain",
        "chain": {"rate": "100 Mbit/s", "rtt": "0 s", "loss": {"every": 200}},
        "host": {"hz": kernel_features.hz() or 250},
        "duration": "2 s",
        "traffic": "native",
    }
    found = engines.get("netns").run(Scenario(**tables))
    sent = found.tables["intervals"]["segments_out"].sum()
    assert sent > 2_000
    assert lost(found, "h3>h4") == pytest.approx(sent / 200, abs=2)
