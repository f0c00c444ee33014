"""The verdict on a transfer: the facts' sentences (tested in crates/capture) and the control's."""

from sawtooth.capture.identify.classifier import Identification
from sawtooth.capture.summary import Judgement
from sawtooth.capture.verdict import verdict
from tests.capture.test_capture_pictures import transfer

CUBIC = Identification(((("cubic", "htcp"), 0.83),), (("cubic", 0.6),))
UNKNOWN = Identification(((("bbr",), 0.4),), (("bbr", 0.4),), unknown="it lasts less than 10 s")


def told(identified: Identification) -> list[tuple[str, str]]:
    return verdict(Judgement(1, transfer().facts["connections"][0]["directions"][1]), identified)


def test_the_facts_sentences_come_first_and_then_the_control() -> None:
    found = told(CUBIC)
    assert [question for question, _ in found] == [
        *("What did it get?", "What limited it?", "What was lost, and where?", "Which congestion control?"),
    ]
    control = "CUBIC or htcp with 83% probability, from the sender's window over time."
    assert found[-1][1] == control


def test_an_unknown_control_is_reported_as_unknown() -> None:
    assert told(UNKNOWN)[-1][1] == "Unknown: it lasts less than 10 s. Best guess: BBR, 40%."
