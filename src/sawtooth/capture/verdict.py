"""The verdict on a transfer, one sentence each: the facts' own three, and the congestion control."""

from __future__ import annotations

from sawtooth.capture.identify.classifier import Identification
from sawtooth.capture.summary import Judgement
from sawtooth.figures.palette import shown


def verdict(judged: Judgement, identified: Identification) -> list[tuple[str, str]]:
    """Pairs of question and answer, in the order in which a reader asks."""
    answers = [(question, answer) for question, answer in judged.facts["verdict"]]
    return [*answers, ("Which congestion control?", _control(identified))]


def _control(identified: Identification) -> str:
    if identified.best is None:
        guess = identified.names[0] if identified.names else None
        likeliest = f" Best guess: {shown(guess[0])}, {guess[1]:.0%}." if guess else ""
        return f"Unknown: {identified.unknown}.{likeliest}"
    group, share = identified.ranked[0]
    return f"{' or '.join(map(shown, group))} with {share:.0%} probability, from the sender's window over time."
