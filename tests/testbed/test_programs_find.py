"""``find`` over what programs measure."""

from typing import Any

import pytest

import sawtooth
from executed import program
from sawtooth.scenario import Scenario


def test_find_searches_by_what_programs_measure(kernel: object) -> None:
    """Each run of the search is one recorded run of the kernel, whose reply takes its scenario's round trip."""
    server = program("server", "echo ready; sleep 1000", ready="ready")
    ping = program("client", ["ping", "-c", "1", "server"], measure={"reply_ms": "stdout:time=([0-9.]+) ms"})
    scenario = Scenario.from_dict(
        {"path": {"rate": "20 Mbit/s", "rtt": "40 ms"}, "duration": "30 s", "programs": [server, ping]}
    )
    real = sawtooth.run(scenario, engine="kernel")
    assert real.meta["measured"]["reply_ms"] == pytest.approx(scenario.path.rtt.ns / 1e6, abs=0.5)

    class Replying:
        name = "kernel"

        def check(self, scenario: Scenario) -> None:
            pass

        def run(self, scenario: Scenario, **options: Any) -> sawtooth.Run:
            measured = {"reply_ms": scenario.path.rtt.ns / 1e6}
            return sawtooth.Run(scenario, "kernel", real.tables, real.meta | {"measured": measured})

    asked: dict[str, Any] = {"want": "reply_ms <= 60 ms", "vary": "path.rtt=10ms..400ms", "runs": 28, "within": "30%"}
    found = sawtooth.find(scenario, engine=Replying(), jobs=1, **asked)
    assert (found.verdict, found.holds) == ("found", "below")
    assert found.value == pytest.approx(60, rel=0.3)
