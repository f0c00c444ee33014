"""What Understand cites: for each event of a sender, the section that specifies it."""

from pathlib import Path

from sawtooth import _core
from tests.lab.test_lab_language import ask

CONTROLS = ("cubic", "reno", "dctcp", "prague", "bbr", "bbr3")
BBR = "draft-cardwell-iccrg-bbr-congestion-control-00 section "
BBR3 = "draft-ietf-ccwg-bbr, "
PRAGUE = "draft-briscoe-iccrg-prague-congestion-control"
ALIKE = {
    "start": "RFC 6928 section 2",  # TCP Modification
    "data-lost": "",
    "ack-lost": "RFC 9293 section 3.4",  # Sequence Numbers: acknowledgments are cumulative
    "data-dropped": "RFC 7567 section 2",  # The Need for Active Queue Management
    "ack-dropped": "RFC 7567 section 2",
    "data-refused": "",
    "ack-refused": "",
    "lost-by-sack": "RFC 8985 section 6.2",  # Upon Receiving an ACK
    "lost-by-duplicates": "RFC 5681 section 3.2",  # Fast Retransmit/Fast Recovery
    "recovery-amid-reduction": "RFC 3168 section 6.1.2",  # The TCP Sender: once in a window of data
    "reduced-by-probe": "RFC 8985 section 7.4.2",  # Special Case: Detecting a Single Loss Repaired by the Loss Probe
    "timeout": "RFC 6298 section 5",  # Managing the RTO Timer
    "undone": "RFC 4015 section 3",  # The Eifel Response Algorithm
    "hystart": "no RFC: HyStart, Ha and Rhee 2011; RFC 9406 has its successor",
    "tail-probe": "RFC 8985 section 7.3",  # Sending a Loss Probe upon PTO Expiration
    "window-probe": "RFC 9293 section 3.8.6.1",  # Zero-Window Probing
}
"""Whatever the control is."""
BY_CONTROL = {
    "recovery": (
        "RFC 9438 section 4.6",  # Multiplicative Decrease
        "RFC 5681 section 3.2",
        "RFC 8257 section 3.5",  # Handling of Packet Loss
        PRAGUE,
        f"{BBR}4.2.3.4",  # Modulating cwnd in Loss Recovery
        f'{BBR3}"Updating the Model Upon Packet Loss"',
    ),
    "reduced-by-mark": (
        "RFC 3168 section 6.1.2",
        "RFC 3168 section 6.1.2",
        "RFC 8257 section 3.3",  # Processing Echoed Congestion Indications on the Sender
        PRAGUE,
        "",
        f'{BBR3}"ECN"',
    ),
    "recovered": (
        *4 * ("RFC 6675 section 5",),  # Algorithm Details: RecoveryPoint
        f"{BBR}4.2.3.4",
        f'{BBR3}"Updating the Model Upon Packet Loss"',
    ),
    "slow-start-over": ("RFC 9438 section 4.10", *5 * ("RFC 5681 section 3.1",)),
}
BBRS = {
    "bbr-startup": (f"{BBR}4.3.2", f'{BBR3}"Startup"'),
    "bbr-drain": (f"{BBR}4.3.3", f'{BBR3}"Drain"'),
    "bbr-up": (f"{BBR}4.3.4", f'{BBR3}"ProbeBW_UP"'),
    "bbr-down": (f"{BBR}4.3.4", f'{BBR3}"ProbeBW_DOWN"'),
    "bbr-cruise": (f"{BBR}4.3.4", f'{BBR3}"ProbeBW_CRUISE"'),
    "bbr-refill": (f'{BBR3}"ProbeBW_REFILL"', f'{BBR3}"ProbeBW_REFILL"'),
    "bbr-probe-rtt": (f"{BBR}4.3.5", f'{BBR3}"ProbeRTT"'),
}
"""Version 1 and version 3."""


def test_each_thing_that_happens_is_reported_with_its_section(lab: Path) -> None:
    found = ask(lab, "sources", CONTROLS)
    known = {kind: [source] * len(CONTROLS) for kind, source in ALIKE.items()}
    known |= {kind: list(sources) for kind, sources in BY_CONTROL.items()}
    assert {kind: sources for kind, sources in found.items() if kind not in BBRS} == known
    assert {kind: tuple(found[kind][-2:]) for kind in BBRS} == BBRS


def test_whatever_the_core_reports_has_a_sentence(lab: Path) -> None:
    assert set(_core.event_names()) == set(ask(lab, "sources", CONTROLS))
