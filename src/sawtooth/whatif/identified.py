"""Which congestion control a capture shows, as far as a replay can use it."""

from __future__ import annotations

from sawtooth.capture.identify import Identification
from sawtooth.whatif.observed import CONTROLS

LIKELY = 0.8
"""Of the group that holds the control. Below it, one self-test in five or more would be of a wrong control."""


def identified(found: Identification) -> tuple[str | None, str]:
    """The control to replay, None where none of them is likely, and in words what was identified."""
    if found.unknown is not None:
        return None, f"not identified: {found.unknown}"
    group, probability = found.ranked[0]
    control = next((name for name in CONTROLS if name in group), None)
    if control is None or probability < LIKELY:
        return None, f"not identified: {_either(group)} is likeliest, {probability:.0%}"
    sure = "over 99%" if probability > 0.99 else f"{probability:.0%}"
    return control, f"identified{'' if len(group) == 1 else f' as {_either(group)}'}, {sure}"


def _either(group: tuple[str, ...]) -> str:
    *first, last = group
    return f"{', '.join(first)} or {last}" if first else last
