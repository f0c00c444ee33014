"""The RFC's average windows under deterministic loss: section 5.2, tables 1 and 2. tools/rfc9438.py runs longer."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import rfc9438


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    ("cc", "rtt_ms", "power"),
    [("reno", 100, 3), ("reno", 10, 4), ("cubic", 10, 4), ("cubic", 10, 5), ("cubic", 100, 5)],
)
def test_the_simulators_average_window_is_the_rfcs_within_10_percent(cc: str, rtt_ms: int, power: int) -> None:
    assert rfc9438.measure("sim", cc, rtt_ms, power) == pytest.approx(rfc9438.printed(cc, rtt_ms, power), rel=0.10)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize(
    ("rtt_ms", "power", "first_loss", "ratio"),
    [
        # Linux's curve is in whole segments: it reaches its plateau early, and stays at the window of the first loss.
        (100, 3, None, 1.23),
        (100, 4, 120, 0.84),
        # A window of ten: whole segments and the round trip of each recovery matter.
        (10, 2, None, 0.86),
    ],
)
def test_where_the_rfcs_formula_and_linux_part_the_simulator_is_with_linux(
    rtt_ms: int, power: int, first_loss: int | None, ratio: float
) -> None:
    kernel = rfc9438.measure("kernel", "cubic", rtt_ms, power, first_loss)
    assert kernel / rfc9438.printed("cubic", rtt_ms, power) == pytest.approx(ratio, abs=0.03)
    assert rfc9438.measure("sim", "cubic", rtt_ms, power, first_loss) == pytest.approx(kernel, rel=0.05)


def test_an_average_over_too_few_losses_is_refused() -> None:
    found = rfc9438.run(rfc9438.scenario("reno", 10, 2).set({"duration": "2 s"}), engine="sim")
    with pytest.raises(ValueError, match="losses only"):
        rfc9438.average_window(found)
