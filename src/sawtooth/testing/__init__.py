"""Testing: what a study is expected to find, as assertions of pytest or any other runner.

    from sawtooth.testing import assert_holds

    def test_bbr_keeps_its_rate():
        result = sawtooth.run("office.toml")
        assert_holds(result, "mean_mbps(cc='bbr', loss=1%) > 0.85 * mean_mbps(cc='bbr', loss=0%)")

With pytest, the marker ``sawtooth_study`` and the fixture ``sawtooth_result`` run each study once a session.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sawtooth.study import StudyResult

__all__ = ["assert_holds"]


def assert_holds(result: StudyResult | str | PathLike[str], *expectations: str) -> None:
    """Whether comparisons hold for a study's result, given itself, its directory or its name; without any, whether
    those of its study's ``[expect]`` do.

    Raises AssertionError where one fails or these runs can't tell, which shows both sides with their 95% intervals and
    how many seeds would tell; SawtoothError where a comparison cannot be asked of the study.
    """
    __tracebackhide__ = True
    from sawtooth.expect import HOLDS, judge
    from sawtooth.expect.text import counted, sides
    from sawtooth.results import place
    from sawtooth.study import StudyResult

    if isinstance(result, (str, PathLike)):
        result = StudyResult.load(place(Path(result)))
    found = judge(result, {text: text for text in expectations} or None)
    wrong = [one for one in found.verdicts if one.verdict != HOLDS]
    if wrong:
        lines = []
        for one in wrong:
            name = one.title if one.name == one.text else f"{one.title}: {one.text}"
            lines += [f"{one.verdict}: {name}", f"    {sides(one)}"]
        raise AssertionError("\n".join([*lines, counted(found), f"results: {result.directory}"]))
