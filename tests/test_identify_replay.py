"""Replay: of what was sent, the control that sent it is the nearest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sawtooth import _core
from sawtooth.capture import read_capture
from sawtooth.capture.identify.captured import captured
from sawtooth.capture.identify.replayed import columns, replayed
from sawtooth.capture.identify.trace import Trace, trace
from sawtooth.engines.sim import Sim
from sawtooth.scenario import Scenario

CONTROLS = tuple(_core.congestion_controls())
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
    (nearest, off), *others = replayed(sent_by(cc, tmp_path, at))
    assert nearest == cc
    assert off < 0.1
    assert all(share > 2 * off for _, share in others)


def test_a_replay_is_the_same_each_time_and_only_what_paces_has_a_rate(tmp_path: Path) -> None:
    seen = sent_by("bbr", tmp_path)
    for control in CONTROLS:
        windows, rates = _core.replay(control, *columns(seen), seen.mss)
        again, _ = _core.replay(control, *columns(seen), seen.mss)
        assert (windows == again).all()
        assert len(windows) == len(seen.t_s)
        assert np.isfinite(rates[len(rates) // 2 :]).all() == (control in ("bbr", "bbr3"))


def test_what_is_no_replay_is_refused(tmp_path: Path) -> None:
    none = np.zeros(0, dtype=np.uint64)
    with pytest.raises(ValueError, match="no congestion control"):
        _core.replay("tahoe", none, none, none, none, none > 0, 1448)
    with pytest.raises(ValueError, match="one length"):
        _core.replay("reno", none, none, none, none, np.zeros(1, dtype=bool), 1448)
    windows, rates = _core.replay("reno", none, none, none, none, none > 0, 1448)
    assert len(windows) == len(rates) == 0
