"""Replay: the control that sent the data is the nearest to it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sawtooth import _core
from sawtooth.capture import read_capture
from sawtooth.capture.identify.captured import captured
from sawtooth.capture.identify.classifier import Identification
from sawtooth.capture.identify.replay_fit import NOISE, Noise, columns, log_likelihood, replay_fits, starts
from sawtooth.capture.identify.rounds import rounds
from sawtooth.capture.identify.trace import Trace, trace
from sawtooth.engines.sim import Sim
from sawtooth.scenario import Scenario

CONTROLS = tuple(name for name in _core.congestion_controls() if name not in ("dctcp", "prague"))
"""Without marks, this behaves like Reno."""
PATH = {
    "name": "replayed",
    "topology": "path",
    "duration": "20 s",
    "path": {"rate": "12 Mbit/s", "rtt": "60 ms", "queue": "1 bdp", "loss": "0.02%"},
}


def sent_by(cc: str, directory: Path, at: str = "sender") -> Trace:
    flow = {"name": cc, "from": "sender", "to": "receiver", "cc": cc}
    run = Sim(capture=directory, capture_at=(at,)).run(Scenario.from_dict(PATH | {"flows": [flow]}))
    assert run is not None
    return trace(captured(read_capture(directory / f"capture-{at}.pcap", 0)))


@pytest.mark.parametrize("at", ["sender", "receiver"])
@pytest.mark.parametrize("cc", CONTROLS)
def test_what_a_control_sent_is_nearest_to_what_it_would_have_sent(cc: str, at: str, tmp_path: Path) -> None:
    own, *others = replay_fits(sent_by(cc, tmp_path, at))
    assert (own.control, own.fits) == (cc, True)
    assert own.off < 0.1
    assert all(one.off > 2 * own.off for one in others)
    assert {one.control for one in others} | {cc} == set(CONTROLS)
    assert [one.log_likelihood for one in others] == sorted((one.log_likelihood for one in others), reverse=True)


def test_what_is_captured_from_the_middle_is_replayed_from_the_window_found_there(tmp_path: Path) -> None:
    whole = sent_by("reno", tmp_path)
    lost = int(np.flatnonzero(whole.again)[0])
    later = np.flatnonzero(whole.known > whole.end[lost])[0] + 50
    end = int(whole.known[later])
    kept = slice(int(later), None)
    middle = replace(
        whole,
        t_s=whole.t_s[kept],
        end=whole.end[kept] - end,
        known=whole.known[kept] - end,
        known_s=whole.known_s[kept],
        again=whole.again[kept],
    )
    made = rounds(middle)
    calm = ~made.recovery & ~made.cut
    assert starts("reno", made, calm)[1] == (round(made.flight[calm][0]), round(made.flight[calm][0]))
    (own,) = (one for one in replay_fits(middle) if one.control == "reno")
    assert own.fits


def in_rounds(windows: list[int]) -> Trace:
    """Round trips of 100 ms without loss; the sender learns of each window a round trip later."""
    first = np.concatenate([[0], np.cumsum(windows)])[:-1]
    t_s = np.concatenate([0.1 * number + 0.09 * np.arange(size) / size for number, size in enumerate(windows)])
    end = 1000 * np.arange(1, sum(windows) + 1)
    known = 1000 * np.concatenate([np.arange(size) * 0 + at for at, size in zip(first, windows, strict=True)])
    known_s = np.repeat(0.1 * np.arange(len(windows)), windows)
    return Trace(t_s=t_s, end=end, known=known, known_s=known_s, again=end < 0, mss=1000, window=float("nan"))


def test_no_control_is_the_answer_for_windows_that_none_would_have_had() -> None:
    found = replay_fits(in_rounds([10, 100, 3, 60, 5] * 30))
    assert found
    assert not any(one.fits for one in found)
    said = Identification((), (), replayed=found).none
    assert said is not None
    assert said.startswith("each explains what was sent worse than ")
    assert Identification((), (), replayed=found).to_dict()["none_of_replayed"] == said


def test_of_what_fits_one_none_is_not_said_and_nothing_is_of_what_was_not_replayed() -> None:
    found = replay_fits(in_rounds([10, 20, 40, 80, 160, 320, 640, 1280]))
    assert next(one for one in found if one.control == "reno").fits
    assert Identification((), (), replayed=found).none is None
    assert Identification((), ()).none is None


def test_likelier_is_what_is_nearer_and_one_round_astray_costs_little() -> None:
    flight, epoch, noise = np.full(40, 50.0), np.zeros(40, dtype=np.intp), Noise(0.05, 0.0, 0.0)
    near, far = (log_likelihood(np.full(40, away), flight, epoch, noise) for away in (0.02, 0.5))
    astray = np.full(40, 0.02)
    astray[7] = 3.0
    assert near > log_likelihood(astray, flight, epoch, noise) > near - 0.6 > far
    # An error that lasts a whole epoch counts against the anchor, whose distribution is wider.
    anchored = Noise(0.05, 0.4, 0.0)
    assert log_likelihood(np.full(40, 0.5), flight, epoch, anchored) > far + 2


def test_a_replay_is_the_same_each_time_and_only_what_paces_has_a_rate(tmp_path: Path) -> None:
    seen = sent_by("bbr", tmp_path)
    for control in CONTROLS:
        windows, rates = _core.replay(control, *columns(seen), seen.mss)
        again, _ = _core.replay(control, *columns(seen), seen.mss)
        assert (windows == again).all()
        assert len(windows) == len(seen.t_s)
        assert np.isfinite(rates[len(rates) // 2 :]).all() == (control in ("bbr", "bbr3"))


def test_every_control_of_the_core_has_its_noise() -> None:
    assert set(NOISE) == set(CONTROLS)


def test_what_is_no_replay_is_refused(tmp_path: Path) -> None:
    none = np.zeros(0, dtype=np.uint64)
    with pytest.raises(ValueError, match="no congestion control"):
        _core.replay("tahoe", none, none, none, none, none > 0, 1448)
    with pytest.raises(ValueError, match="one length"):
        _core.replay("reno", none, none, none, none, np.zeros(1, dtype=bool), 1448)
    windows, rates = _core.replay("reno", none, none, none, none, none > 0, 1448)
    assert len(windows) == len(rates) == 0
