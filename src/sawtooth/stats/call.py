"""Call quality: the E-model of ITU-T G.107 for G.711 speech, from a run's table ``datagrams``.

R = 93.2 - Id - Ie,eff, with all other parameters at their defaults. Id has the form of Cole and Rosenbluth (2001),
"Voice over IP performance monitoring". Ie,eff follows G.107 clause 3.5 for independent losses, with the values for
G.711 in G.113 appendix I.
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
"""Seconds of speech per datagram, which is how long it takes to speak it."""
CONCEALED, NOT_CONCEALED = 25.1, 4.3
"""G.711's robustness against loss (Bpl), with the concealment of its appendix I and without (G.113 appendix I)."""
_BIN = 1 / 32
"""Resolution of a delay: the simulator's percentiles are accurate to this."""


def rating(delay_s: ArrayLike, lost: ArrayLike, *, robustness: float = CONCEALED) -> NDArray[np.float64]:
    """R for mouth-to-ear delays and shares of lost datagrams (0 to 1)."""
    ms = np.asarray(delay_s, dtype=float) * 1e3
    percent = np.asarray(lost, dtype=float) * 100
    delayed = 0.024 * ms + 0.11 * np.maximum(ms - 177.3, 0)
    return np.asarray(93.2 - delayed - 95 * percent / (percent + robustness))


def mos(rating: ArrayLike) -> NDArray[np.float64]:
    """The mean opinion score, 1 to 4.5, for a rating R (G.107 annex B)."""
    r = np.clip(np.asarray(rating, dtype=float), 0, 100)
    # Below R = 6.5 the polynomial is less than 1.
    return np.asarray(np.maximum(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6))


def call(run: Run, flow: int, *, robustness: float = CONCEALED) -> DataFrame:
    """Call quality of a datagram flow in each interval: ``t_s``, ``delay_s`` (mouth to ear), ``lost`` (a share), ``r``,
    ``mos``. NaN if no datagram arrived in an interval that lost none.

    The receiver plays after the 99th percentile of the interval's delays, so later datagrams count as lost too. Raises
    InputError ``unknown-name`` for a flow that sends no datagrams.
    """
    table = run.tables.get("datagrams")
    if table is None or not (table["flow"] == flow).any():
        fix = 'name a flow with source = { kind = "udp" }'
        raise InputError("unknown-name", f"flow {flow} sends no datagrams", fix=fix)
    own = table[table["flow"] == flow]
    late = np.where(own["delay_max_s"] > own["delay_p99_s"] * (1 + _BIN), own["received"] // 100, 0)
    # A late datagram that was already counted as lost makes the count negative.
    missing = np.maximum(own["lost"] + late, 0)
    expected = own["received"] + np.maximum(own["lost"], 0)
    found = own[["t_s"]].reset_index(drop=True)
    found["delay_s"] = (own["delay_p99_s"] + FRAME_S).to_numpy()
    found["lost"] = (missing / expected.where(expected > 0)).to_numpy()
    # An interval that lost everything has no delay.
    found["r"] = rating(found["delay_s"].where(found["lost"] < 1, FRAME_S), found["lost"], robustness=robustness)
    found["mos"] = mos(found["r"])
    return found
