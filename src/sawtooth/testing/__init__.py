"""Testing: what a study is expected to find, as assertions of pytest or any other runner.

    from sawtooth.testing import assert_holds

    def test_bbr_keeps_its_rate():
        result = sawtooth.run("office.toml")
        assert_holds(result, "mean_mbps(cc='bbr', loss=1%) > 0.85 * mean_mbps(cc='bbr', loss=0%)")

``network`` runs programs of any language on a path, in virtual time.

With pytest, the marker ``sawtooth_study`` and the fixture ``sawtooth_result`` run each study once a session.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from sawtooth.testing.network import network

if TYPE_CHECKING:
    from sawtooth.study import StudyResult

__all__ = ["assert_holds", "network"]

_SEVERAL = "seeds=5 in the marker, or --sawtooth-seeds 5"


def assert_holds(result: StudyResult | str | PathLike[str], *expectations: str | Mapping[str, str]) -> None:
    """Asserts that comparisons hold for a study's result, given as an object, its directory or its name.

    Each expectation is a comparison as text, or a mapping from names to comparisons. Without any, those in the study's
    ``[expect]`` are checked.

    Raises AssertionError if one fails or is inconclusive; the message shows both sides with their 95% intervals and how
    many seeds would decide. Raises SawtoothError if a comparison does not fit the study.
    """
    __tracebackhide__ = True
    from sawtooth.assertions import HOLDS, judge
    from sawtooth.assertions.text import counted, sides
    from sawtooth.results import place
    from sawtooth.study import StudyResult

    if isinstance(result, (str, PathLike)):
        result = StudyResult.load(place(Path(result)))
    wanted: dict[str, str] = {}
    for one in expectations:
        wanted |= {one: one} if isinstance(one, str) else one
    found = judge(result, wanted or None)
    wrong = [one for one in found.verdicts if one.verdict != HOLDS]
    if wrong:
        lines = []
        for case in wrong:
            name = case.title if case.name == case.text else f"{case.title}: {case.text}"
            lines += [f"{case.verdict}: {name}", f"    {sides(case, _SEVERAL)}"]
        raise AssertionError("\n".join([*lines, counted(found), f"results: {result.directory}"]))
