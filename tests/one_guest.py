"""Runs of the engine ``kernel`` that share a guest: a boot takes two seconds of processor time, a short run 0.2."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pytest

from sawtooth.engines.kernel import series
from sawtooth.errors import SawtoothError
from sawtooth.run import Run
from sawtooth.scenario import Scenario

Key = TypeVar("Key")
Test = TypeVar("Test", bound=Callable[..., None])


class _Runs(dict[Key, Run]):
    """Raises the error of a failed run when it is read."""

    def __init__(self, made: Mapping[Key, Run | SawtoothError]) -> None:
        super().__init__({key: one for key, one in made.items() if isinstance(one, Run)})
        self._failed = {key: one for key, one in made.items() if isinstance(one, SawtoothError)}

    def __missing__(self, key: Key) -> Run:
        raise self._failed[key]


def run_each(scenarios: Mapping[Key, Scenario]) -> dict[Key, Run]:
    """The runs, by the scenarios' keys. All have one HZ and one kernel. Reading a run that failed raises its
    SawtoothError.
    """
    compiled = [scenario.compile() for scenario in scenarios.values()]
    assert len({(one.kernel, one.hosts[0].hz) for one in compiled}) == 1
    return _Runs(dict(zip(scenarios, series(list(scenarios.values()), limit_s=900), strict=True)))


class OneGuest:
    """The scenarios of a module's tests, by the test's name. The module calls it ``GUEST``; the fixture ``measured`` is
    then a test's run."""

    def __init__(self) -> None:
        self.scenarios: dict[str, Scenario] = {}

    def scenario(self, **tables: Any) -> Callable[[Test], Test]:
        """Gives a test its scenario."""

        def registered(test: Test) -> Test:
            self.scenarios[test.__name__] = Scenario(**{"traffic": "native", **tables})
            return test

        return registered

    def cases(self, **cases: dict[str, Any]) -> Callable[[Test], Any]:
        """Gives a test a scenario for each of its cases."""

        def registered(test: Test) -> Any:
            for case, tables in cases.items():
                self.scenario(**tables)(test)
                self.scenarios[f"{test.__name__}[{case}]"] = self.scenarios.pop(test.__name__)
            return pytest.mark.parametrize("measured", list(cases), indirect=True)(test)

        return registered
