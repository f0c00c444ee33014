"""Runs a scenario with programs on the real kernel."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sawtooth.engines.kernel import Kernel
from sawtooth.engines.netns import Netns
from sawtooth.programs import Finished, finished
from sawtooth.run import Run
from sawtooth.scenario import Scenario
from sawtooth.testbed.program_output import Output

KERNEL = Kernel()


def program(host: str, command: str | Sequence[str], **fields: Any) -> dict[str, Any]:
    return {"host": host, "command": command, **fields}


@dataclass(frozen=True)
class Executed:
    run: Run

    @property
    def programs(self) -> list[Finished]:
        return finished(self.run)

    @property
    def connections(self) -> Any:
        return self.run.tables["connections"]

    @property
    def collected(self) -> dict[str, dict[str, bytes]]:
        found: dict[str, dict[str, bytes]] = {}
        if "collected" in self.run.tables:
            for one in self.run.tables["collected"].to_dict("records"):
                found.setdefault(one["host"], {})[one["file"]] = one["content"]
        return found


def execute(
    scenario: Scenario,
    programs: Sequence[dict[str, Any]],
    *,
    cc: str | None = None,
    engine: Kernel | Netns = KERNEL,
    output: Output | None = None,
) -> Executed:
    scenario = scenario.set({"programs": [*programs], **({} if cc is None else {"host.cc": cc})})
    return Executed(replace(engine, output=output).run(scenario))
