"""The verdict on a transfer: a sentence each, before any figure."""

from __future__ import annotations

from typing import Any

import pytest

from sawtooth.capture.identify.classifier import Identification
from sawtooth.capture.summary import Judgement
from sawtooth.capture.verdict import verdict
from tests.capture.test_capture_pictures import transfer

CUBIC = Identification(((("cubic", "htcp"), 0.83),), (("cubic", 0.6),))
UNKNOWN = Identification(((("bbr",), 0.4),), (("bbr", 0.4),), unknown="it lasts less than 10 s")


def told(identified: Identification = CUBIC, **facts: Any) -> dict[str, str]:
    connection = transfer().facts["connections"][0]
    way = connection["directions"][1]
    loss = way["loss"] | facts.pop("loss", {})
    return dict(verdict(Judgement(1, way | facts | {"loss": loss}), identified))


def test_each_question_is_answered_in_a_sentence() -> None:
    found = told()
    assert list(found) == [
        *("What did it get?", "What limited it?", "What was lost, and where?", "Which congestion control?"),
    ]
    assert found["What limited it?"] == (
        "For 75% of the time the path was full: packets waited in the bottleneck's queue; nothing to send for 25%."
    )
    assert found["What was lost, and where?"] == (
        "7 of 400 segments, 1.75%, were lost between the capture point and the receiver (exact); "
        "7 of 400 segments were retransmitted, 2 of them after timeouts."
    )
    assert (
        found["Which congestion control?"] == "CUBIC or htcp with 83% probability, from the sender's window over time."
    )


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("sender", "the application had nothing to send"),
        ("receiver_window", "its application reads too slowly"),
        ("congestion_window", "congestion window was full while the bottleneck"),
        ("idle", "nothing was in flight"),
        ("unknown", "the limit is unknown"),
    ],
)
def test_what_limits_most_of_the_time_is_said_in_words(limit: str, words: str) -> None:
    found = told(limits={f"{limit}_s": 1.0, "path_s": 0.01})["What limited it?"]
    assert words in found
    assert "path" not in found


def test_what_is_not_known_is_said_to_be_not_known() -> None:
    found = told(UNKNOWN, limits={}, loss={"rate": None}, rtt={"whole": None})
    assert found["What did it get?"].endswith("no round trip was seen.")
    assert found["What limited it?"] == "All data was sent at once, so nothing limited it."
    assert found["What was lost, and where?"].startswith("Unknown")
    assert found["Which congestion control?"] == ("Unknown: it lasts less than 10 s. Best guess: BBR, 40%.")


def test_where_nothing_was_lost_that_is_said() -> None:
    nothing = told(loss={"rate": 0.0, "lost": 0}, retransmits=0)["What was lost, and where?"]
    assert nothing == "Nothing was lost or retransmitted."
