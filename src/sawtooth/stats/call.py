"""How a call sounds: the E-model of ITU-T G.107 for speech by G.711, from a run's table ``datagrams``.

R = 93.2 - Id - Ie,eff, its other parameters at their defaults. Id in the form of Cole and Rosenbluth (2001), "Voice
over IP performance monitoring"; Ie,eff by G.107 clause 3.5 for losses that do not depend on each other, with what G.113
appendix I has for G.711.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sawtooth.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from pandas import DataFrame

    from sawtooth.run import Run

FRAME_S = 0.020
"""Of speech in a datagram: so long it takes to be spoken."""
CONCEALED, NOT_CONCEALED = 25.1, 4.3
"""G.711's robustness against loss (Bpl), with the concealment of its appendix I and without (G.113 appendix I)."""
_BIN = 1 / 32
"""Of a delay: so exactly the simulator knows percentiles."""


def rating(delay_s: ArrayLike, lost: ArrayLike, *, robustness: float = CONCEALED) -> NDArray[np.float64]:
    """R for delays from mouth to ear, and shares of lost datagrams, 0 to 1."""
    ms = np.asarray(delay_s, dtype=float) * 1e3
    percent = np.asarray(lost, dtype=float) * 100
    delayed = 0.024 * ms + 0.11 * np.maximum(ms - 177.3, 0)
    return np.asarray(93.2 - delayed - 95 * percent / (percent + robustness))


def mos(rating: ArrayLike) -> NDArray[np.float64]:
    """The mean opinion score, 1 to 4.5, that a rating R stands for (G.107 annex B)."""
    r = np.clip(np.asarray(rating, dtype=float), 0, 100)
    # Below R = 6.5 the polynomial is less than 1.
    return np.asarray(np.maximum(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6))


def call(run: Run, flow: int, *, robustness: float = CONCEALED) -> DataFrame:
    """Of a flow of datagrams in each interval: ``t_s``, ``delay_s`` from mouth to ear, ``lost`` (a share), ``r``,
    ``mos``; NaN where no datagram arrived in an interval that lost none.

    The receiver plays what it gets after the 99th percentile of the interval's delays: what comes later is lost, too.
    Raises InputError ``unknown-name`` for a flow that sends no datagrams.
    """
    table = run.tables.get("datagrams")
    if table is None or not (table["flow"] == flow).any():
        fix = 'name a flow with source = { kind = "udp" }'
        raise InputError("unknown-name", f"flow {flow} sends no datagrams", fix=fix)
    own = table[table["flow"] == flow]
    late = np.where(own["delay_max_s"] > own["delay_p99_s"] * (1 + _BIN), own["received"] // 100, 0)
    # A late one that was counted as lost before comes as one less than none.
    missing = np.maximum(own["lost"] + late, 0)
    expected = own["received"] + np.maximum(own["lost"], 0)
    found = own[["t_s"]].reset_index(drop=True)
    found["delay_s"] = (own["delay_p99_s"] + FRAME_S).to_numpy()
    found["lost"] = (missing / expected.where(expected > 0)).to_numpy()
    # What is lost as a whole has no delay.
    found["r"] = rating(found["delay_s"].where(found["lost"] < 1, FRAME_S), found["lost"], robustness=robustness)
    found["mos"] = mos(found["r"])
    return found
