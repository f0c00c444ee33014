"""Expect: whether a study found what it was expected to find, by intervals: holds, fails, or these runs are "
"inconclusive."""

from __future__ import annotations

from sawtooth.assertions.judgement import ABSENT, FAILS, HOLDS, UNKNOWN, Judgement, Verdict, judge

__all__ = ["ABSENT", "FAILS", "HOLDS", "UNKNOWN", "Judgement", "Verdict", "judge"]
