"""What hosts of older Linux do differently: ``host.adv_win_scale`` before 6.6, ``host.pacing`` before 4.13."""

from typing import Any

import pytest

from expected_error import expected_error
from sawtooth import engines
from sawtooth.scenario import Scenario
from sawtooth.testbed.plan import build
from sawtooth.testbed.target_kernel import Place
from sawtooth.testbed.unsupported import check, check_version

FAT = {"rate": "1 Gbit/s", "rtt": "100 ms", "queue": "10000 packets"}
LOSSY = {"rate": "50 Mbit/s", "rtt": "40 ms", "queue": "10000 packets", "loss": "30%"}


def path(link: dict[str, Any], cc: str, **host: Any) -> Scenario:
    return Scenario(duration="10 s", warmup="5 s", traffic="native", path=link, host=host, flows=[{"cc": cc}])


def mbps(scenario: Scenario, engine: str = "sim") -> float:
    return float(engines.get(engine).run(scenario).tables["intervals"]["goodput_bps"].iloc[5:].mean() / 1e6)


@pytest.mark.parametrize(("scale", "share"), [(1, 1 / 2), (2, 3 / 4), (None, 162 / 256)])
def test_a_long_path_is_filled_as_far_as_the_share_of_the_buffer_that_is_window(
    scale: int | None, share: float
) -> None:
    host: dict[str, Any] = {} if scale is None else {"adv_win_scale": scale}
    window_mbps = share * (4 << 20) * 8 / 0.1 / 1e6
    assert mbps(path(FAT, "cubic", receive_buffer="4 MiB", **host)) == pytest.approx(window_mbps, rel=0.02)


def test_closed_forms_take_the_share_that_is_set_or_half() -> None:
    windows = [
        mbps(path(FAT, "reno", receive_buffer="4 MiB", **host), "model")
        for host in ({}, {"adv_win_scale": 1}, {"adv_win_scale": 2}, {"adv_win_scale": 0})
    ]
    assert windows == pytest.approx([windows[0] * factor for factor in (1, 1, 1.5, 2)])


def test_bbr_that_nothing_paces_sends_its_window_through_heavy_loss() -> None:
    # Its window of two delivery rates times round trips is delivered to 70%, and the pacing gain of 1.25 only to 88%.
    paced, unpaced = (mbps(path(LOSSY, "bbr", pacing=pacing)) for pacing in (True, False))
    assert paced < 5
    assert unpaced > 20


def test_cubic_is_never_paced() -> None:
    lossy = LOSSY | {"loss": "0.1%"}
    assert mbps(path(lossy, "cubic", pacing=False)) == mbps(path(lossy, "cubic"))


def test_an_older_kernel_gets_the_setting_and_newer_ones_refuse_it() -> None:
    compiled = path(FAT, "cubic", adv_win_scale=1).compile()
    assert build(compiled, Place(), "st-").namespaces[0].sysctls["net/ipv4/tcp_adv_win_scale"] == "1"
    check_version(compiled, "6.1.158-um", where="the guest")
    check_version(path(FAT, "cubic").compile(), "6.12.117", where="the guest")
    with expected_error(
        code="unsupported", field="host.adv_win_scale", match=r"Linux 6\.12\.117, which ignores tcp_adv_win_scale"
    ):
        check_version(compiled, "6.12.117", where="the guest")
    assert "net/ipv4/tcp_adv_win_scale" not in build(path(FAT, "cubic").compile(), Place(), "").namespaces[0].sysctls


def test_no_kernel_of_a_testbed_leaves_out_the_pacing() -> None:
    compiled = path(FAT, "bbr", pacing=False).compile()
    with expected_error(code="unsupported", field="host.pacing", match="paces by itself"):
        check(compiled, "native", Place(), where="the guest")
    with expected_error(field="host.pacing", match="does not pace"):
        engines.get("model").check(path(FAT, "bbr", pacing=False))


@pytest.mark.parametrize("scale", [-1, 32, "half"])
def test_a_scale_that_linux_would_not_take_is_reported(scale: Any) -> None:
    with expected_error(field="host.adv_win_scale"):
        path(FAT, "cubic", adv_win_scale=scale)
