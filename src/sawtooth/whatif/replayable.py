"""Decides which congestion control of a capture can be replayed."""

from __future__ import annotations

from sawtooth.capture.identify import Identification
from sawtooth.capture.identify.classifier import like
from sawtooth.whatif.observation import CONTROLS

SURE = 0.8
"""Least probability of the control. Below it, one self-test in five or more would use a wrong control."""
COMMONER = 3.0
"""Prior: how much likelier each replayable control is than any other; ``identify`` takes all as equally likely."""


def identified(found: Identification) -> tuple[str | None, str]:
    """The control to replay (None if none is likely), and the identification in words."""
    if found.unknown is not None:
        return None, f"not identified: {found.unknown}"
    weighed = [(share * (COMMONER if name in CONTROLS else 1.0), name) for name, share in found.names]
    probability, control = max(weighed)
    probability /= 1.0 + sum(share for share, _ in weighed) - sum(share for _, share in found.names)
    alike = _either(like(control))
    if control not in CONTROLS or probability < SURE:
        return None, f"not identified; best guess: {alike}, {probability:.0%}"
    sure = "over 99%" if probability > 0.99 else f"{probability:.0%}"
    return control, f"identified{'' if alike == control else f' as {alike}'}, {sure}"


def _either(group: tuple[str, ...]) -> str:
    *first, last = group
    return f"{', '.join(first)} or {last}" if first else last
