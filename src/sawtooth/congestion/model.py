"""CongestionModel: from the features of a series of RTTs to the throughput of a TCP flow on the link.

Used like an estimator of scikit-learn, which does the learning; a model that was learnt needs numpy only. It is a JSON
file: the series that it rests on, a line each, and a few numbers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from sawtooth.congestion.conformal import Quantiles
from sawtooth.congestion.features import FEATURES, UNSEEN_DEPTH, unscaled, vector
from sawtooth.congestion.gaussian import Floats, Gaussian, scikit, spread, squared_distances
from sawtooth.errors import InputError, SawtoothError
from sawtooth.foreign import json_value, read_bytes
from sawtooth.storage import write_bytes

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT = 2
_LARGEST = 256 * 1024 * 1024
COLUMNS = (*FEATURES, "rtt_s", "rate_bps")
"""Of ``X``: the features, then what is assumed: the TCP flows' base RTT, and the link's rate (NaN: not known)."""
STATES = ("idle", "busy", "congested")
"""No traffic; traffic without a standing queue; persistently congested."""

_USES = tuple(name for name in FEATURES if name not in UNSEEN_DEPTH)
_PLACES = [list(FEATURES).index(name) for name in _USES]
_FEWEST = 20
_NEAR = 0.5
"""Logarithm of the factor by which an RTT or a rate may differ from one that was seen: 1.65."""


class CongestionModel:
    """The mean throughput of a TCP flow, in bit/s, with an interval; the link's state; the distance to what it knows.

    ``level`` is the share of unseen series whose throughput the interval should hold (0 … 1). What was learnt ends in
    an underscore: ``known_`` and ``unknown_`` are the processes for a known and an unknown rate.
    """

    def __init__(self, level: float = 0.9) -> None:
        self.level = level

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """As scikit-learn's."""
        return {"level": self.level}

    def set_params(self, **parameters: Any) -> Self:
        """As scikit-learn's. Raises ValueError for a name that is no parameter."""
        for name, value in parameters.items():
            if name not in self.get_params():
                raise ValueError(f"no parameter {name!r}")
            setattr(self, name, value)
        return self

    def fit(
        self,
        X: DataFrame | Floats,
        y: Sequence[float] | Floats,
        state: Sequence[str] | None = None,
        control: Sequence[str] | None = None,
    ) -> Self:
        """Learns from series with known throughput ``y``, in bit/s a flow; ``state`` is that of each, without it all
        are congested. ``y`` is not looked at where they are not. ``control`` names the congestion control of the flows
        of each: nothing is learnt from it, ``trained`` tells it.

        Raises ValueError for fewer than 20 congested series, a ``level`` outside 0 … 1, a rate or throughput not above
        zero, other columns than ``COLUMNS``; SawtoothError ``tool-missing`` without scikit-learn.
        """
        if not 0 < self.level < 1:
            raise ValueError(f"a level of {self.level}: give a share between 0 and 1")
        table = _table(X)
        states = np.array(["congested"] * len(table) if state is None else list(state))
        if len(states) != len(table) or len(y) != len(table) or not set(states) <= set(STATES):
            raise ValueError(f"give one throughput and one state of {', '.join(STATES)} a series")
        congested = states == "congested"
        target = np.asarray(y, dtype=float)[congested]
        if control is not None and len(control) != len(table):
            raise ValueError("give one congestion control a series")
        self.control_ = [] if control is None else [name for name, one in zip(control, congested, strict=True) if one]
        if congested.sum() < _FEWEST:
            raise ValueError(f"{congested.sum()} congested series, at least {_FEWEST} are needed")
        if not (target > 0).all() or not (table[congested][:, -2:] > 0).all():
            raise ValueError("throughput, assumed RTT and rate are above zero")
        rows = _rows(table)
        log = np.log(target)
        self.known_ = Gaussian.learn(rows[congested], log)
        self.unknown_ = Gaussian.learn(rows[congested][:, :-1], log)
        # Throughputs that are near each other leave together: what is tested is a number of flows not seen before.
        groups = np.round(3 * log).astype(int)
        # Without the outermost nothing is known of what lies beyond the next.
        inner = (groups > groups.min()) & (groups < groups.max())
        self.held_out_ = {}
        self.quantile_ = {}
        for name in ("known", "unknown"):
            mean, deviation = getattr(self, f"{name}_").held_out(groups)
            links = rows[congested][inner][:, -2 : None if name == "known" else -1]
            scores = (np.abs(log - mean) / deviation)[inner]
            self.quantile_[name] = Quantiles.learn(links, scores, self.level)
            error = np.abs(np.exp(mean - log) - 1)[inner]
            self.held_out_[name] = {"median": float(np.median(error)), "p90": float(np.quantile(error, 0.9))}
        self._fit_space(rows[congested][:, : len(_USES)], log)
        self._fit_state(rows[:, : len(_USES)], states)
        self.trained_on_: dict[str, Any] = {
            "series": int(congested.sum()),
            "throughput_bps": _ends(target),
            "rtt_s": _ends(table[congested][:, -2]),
            "rate_bps": _ends(table[congested][:, -1]),
        }
        return self

    def _fit_space(self, rows: Floats, log: Floats) -> None:
        """What is far: a distance of 1 is that within which 99 of 100 series have one of another measurement."""
        self.spread_ = spread(rows)
        apart = np.sqrt(squared_distances(rows / self.spread_, rows / self.spread_))
        apart[log[:, None] == log[None, :]] = np.inf
        self.unit_ = float(np.quantile(apart.min(axis=1), 0.99))

    def _fit_state(self, rows: Floats, states: NDArray[Any]) -> None:
        self.states_ = [name for name in STATES if (states == name).any()]
        self.centre_, self.scale_ = rows.mean(axis=0), spread(rows)
        self.weights_ = np.zeros((len(self.states_), len(_USES)))
        self.offsets_ = np.zeros(len(self.states_))
        if len(self.states_) < 2:
            return
        numbers = np.array([self.states_.index(one) for one in states])
        learner = scikit("linear_model").LogisticRegression(max_iter=5000, class_weight="balanced")
        learner.fit((rows - self.centre_) / self.scale_, numbers)
        if len(self.states_) == 2:
            # scikit-learn keeps one row for two classes.
            self.weights_[1], self.offsets_[1] = learner.coef_[0], learner.intercept_[0]
        else:
            self.weights_, self.offsets_ = learner.coef_, learner.intercept_

    def predict(self, X: DataFrame | Floats) -> Floats:
        """Mean throughput of a flow, in bit/s, of each series, as if all were congested."""
        return np.asarray(np.exp(self._answers(_rows(_table(X)))[0]))

    def predict_interval(self, X: DataFrame | Floats) -> Floats:
        """Least and largest, in bit/s: two columns. They hold the share ``level`` of series like those learnt from."""
        mean, half = self._answers(_rows(_table(X)))
        return np.exp(np.column_stack([mean - half, mean + half]))

    def _answers(self, rows: Floats) -> tuple[Floats, Floats]:
        mean, half = np.empty(len(rows)), np.empty(len(rows))
        known = ~np.isnan(rows[:, -1])
        for chosen, name, end in ((known, "known", None), (~known, "unknown", -1)):
            if chosen.any():
                mean[chosen], deviation = getattr(self, f"{name}_").predict(rows[chosen][:, :end])
                half[chosen] = self.quantile_[name].of(rows[chosen][:, -2:end]) * deviation
        return mean, half

    def score(self, X: DataFrame | Floats, y: Sequence[float] | Floats) -> float:
        """Coefficient of determination (R²) of the logarithm of throughput: 1 at best."""
        log = np.log(np.asarray(y, dtype=float))
        wrong = ((log - np.log(self.predict(X))) ** 2).sum()
        return float(1 - wrong / ((log - log.mean()) ** 2).sum())

    def predict_state(self, X: DataFrame | Floats) -> list[str]:
        """The most probable of the states that it has seen."""
        rows = (_rows(_table(X))[:, : len(_USES)] - self.centre_) / self.scale_
        return [self.states_[best] for best in np.argmax(rows @ self.weights_.T + self.offsets_, axis=1)]

    def covers(self, rtt_s: float, rate_bps: float | None) -> bool:
        """Whether it has seen links of about that RTT and rate; without a rate, of about that RTT at all its rates."""
        if rate_bps is not None:
            return bool(self._near(rtt_s, rate_bps).any())
        rates = np.exp(self.known_.rows[:, -1])
        return all(bool(self._near(rtt_s, end).any()) for end in (rates.min(), rates.max()))

    def ends(self, rtt_s: float, rate_bps: float | None) -> tuple[float, float]:
        """Least and largest throughput, in bit/s, of the series that it has seen of links of about that RTT and rate.

        Beyond them its answers stay near them, whatever the truth. Raises ValueError where ``covers`` says no.
        """
        if not self.covers(rtt_s, rate_bps):
            raise ValueError(f"no link of about {rtt_s} s and {rate_bps} bit/s was learnt from")
        log = self.known_.targets[self._near(rtt_s, rate_bps)]
        return float(np.exp(log.min())), float(np.exp(log.max()))

    def _near(self, rtt_s: float, rate_bps: float | None) -> NDArray[np.bool_]:
        """Which series are of links of about that RTT and, where it is given, that rate."""
        seen = self.known_.rows[:, -2:]
        near: NDArray[np.bool_] = np.abs(seen[:, 0] - np.log(rtt_s)) < _NEAR
        return near if rate_bps is None else near & (np.abs(seen[:, 1] - np.log(rate_bps)) < _NEAR)

    def distance(self, X: DataFrame | Floats) -> Floats:
        """From each series to the nearest that throughput was learnt from; up to 1 is usual, far above 1 unlike any."""
        rows = _rows(_table(X))[:, : len(_USES)] / self.spread_
        learnt = self.known_.rows[:, : len(_USES)] / self.spread_
        return np.asarray(np.sqrt(squared_distances(rows, learnt).min(axis=1)) / self.unit_)

    def trained(self) -> DataFrame:
        """The congested series that it rests on: features, ``rtt_s``, ``rate_bps``, ``throughput_bps`` and ``control``
        ("": not said)."""
        import pandas as pd

        rows = self.known_.rows
        found = {name: unscaled(name, rows[:, at]) for at, name in enumerate(_USES)}
        last = {"rtt_s": np.exp(rows[:, -2]), "rate_bps": np.exp(rows[:, -1])}
        throughput_bps = np.exp(self.known_.targets)
        return pd.DataFrame({**found, **last, "throughput_bps": throughput_bps, "control": self.control_ or ""})

    def save(self, path: Path | str) -> Path:
        """Writes it as JSON, replaced in one step."""
        columns = [*_USES, "rtt_s", "rate_bps"]
        kept = {
            "format": FORMAT,
            "what": "sawtooth: throughput of TCP flows from RTT series; see docs/persistent-congestion.md",
            "level": self.level,
            "trained_on": self.trained_on_,
            "held_out": self.held_out_,
            "quantile": {name: quantiles.describe() for name, quantiles in self.quantile_.items()},
            "unit": self.unit_,
            "known": _kept(self.known_, columns),
            "unknown": _kept(self.unknown_, columns[:-1]),
            "states": {
                "names": self.states_,
                "centre": dict(zip(_USES, self.centre_.tolist(), strict=True)),
                "scale": dict(zip(_USES, self.scale_.tolist(), strict=True)),
                "weights": self.weights_.tolist(),
                "offsets": self.offsets_.tolist(),
            },
            "columns": [*columns, "throughput_bps"],
        }
        # A series a line, so that a difference can be read.
        series = np.column_stack([self.known_.rows, self.known_.targets])
        lines = ",\n  ".join(json.dumps([float(f"{value:.9g}") for value in row]) for row in series)
        head = json.dumps(kept, indent=1)[:-2]
        control = json.dumps(self.control_)
        write_bytes(Path(path), f'{head},\n "control": {control},\n "series": [\n  {lines}\n ]\n}}\n'.encode())
        return Path(path)

    @classmethod
    def load(cls, path: Path | str) -> CongestionModel:
        """Reads what ``save`` wrote.

        Raises SawtoothError ``file-not-found``, ``file-unreadable``, or ``not-a-result`` for anything else.
        """
        content = read_bytes(path, _LARGEST)
        if len(content) > _LARGEST:
            message = f"it is larger than {_LARGEST >> 20} MiB"
            raise InputError("not-a-result", message, file=path, fix="give a model")
        return cls._read(content.decode(errors="replace"), str(path))

    @classmethod
    def default(cls) -> CongestionModel:
        """The one that is shipped: docs/persistent-congestion.md says what it was trained on."""
        file = resources.files("sawtooth") / "data" / "congestion.json"
        return cls._read(file.read_text(encoding="utf-8"), "congestion.json")

    @classmethod
    def _read(cls, text: str, name: str) -> CongestionModel:
        fix = "make one with: sawtooth congestion calibrate"
        try:
            kept = json_value(text)
            if kept["format"] != FORMAT:
                message = f"it is of format {kept['format']}, this version reads {FORMAT}"
                raise InputError("not-a-result", message, file=name, fix=fix)
            model = cls(kept["level"])
            columns = [*_USES, "rtt_s", "rate_bps"]
            if kept["columns"] != [*columns, "throughput_bps"]:
                raise InputError("not-a-result", "its features are others", file=name, fix=fix)
            series = np.array(kept["series"], dtype=float)
            rows, log = series[:, :-1], series[:, -1]
            model.known_ = _gaussian(kept["known"], columns, rows, log)
            model.unknown_ = _gaussian(kept["unknown"], columns[:-1], rows[:, :-1], log)
            widths = {"known": 2, "unknown": 1}
            model.quantile_ = {name: Quantiles.read(kept["quantile"][name], width) for name, width in widths.items()}
            model.held_out_ = kept["held_out"]
            model.control_ = [str(name) for name in kept["control"]]
            if len(model.control_) not in (0, len(rows)):
                raise InputError("not-a-result", "its congestion controls are not one a series", file=name, fix=fix)
            model.trained_on_, model.unit_ = kept["trained_on"], float(kept["unit"])
            states = kept["states"]
            model.states_ = states["names"]
            model.centre_ = np.array([states["centre"][name] for name in _USES])
            model.scale_ = np.array([states["scale"][name] for name in _USES])
            model.weights_, model.offsets_ = np.array(states["weights"]), np.array(states["offsets"])
            model.spread_ = spread(rows[:, : len(_USES)])
            model._sound()
        except SawtoothError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, RecursionError, np.linalg.LinAlgError) as error:
            message = f"it is no model ({type(error).__name__}: {error})"
            raise InputError("not-a-result", message, file=name, fix=fix) from None
        return model

    def _sound(self) -> None:
        """Raises ValueError, KeyError or TypeError where what was read cannot answer."""
        rows = self.known_.rows
        if not (np.isfinite(rows).all() and np.isfinite(self.known_.targets).all()):
            raise ValueError("its series have values that are no numbers")
        if not 0 < self.level < 1 or not 0 < self.unit_ < np.inf:
            raise ValueError("its level or its unit is out of range")
        for name in ("throughput_bps", "rtt_s", "rate_bps"):
            low, high = self.trained_on_[name]
            if not 0 < low <= high < np.inf:
                raise ValueError(f"its ends of {name} are out of range")
        shapes = self.weights_.shape, self.offsets_.shape
        if not set(self.states_) <= set(STATES) or shapes != ((len(self.states_), len(_USES)), (len(self.states_),)):
            raise ValueError("its states do not fit their weights")
        self.predict(np.full((1, len(COLUMNS)), 0.1))


def _table(X: DataFrame | Floats) -> Floats:
    if not isinstance(X, np.ndarray):
        missing = [name for name in COLUMNS if name not in X.columns]
        if missing:
            raise ValueError(f"columns are missing: {', '.join(missing)}")
        X = X[list(COLUMNS)].to_numpy(dtype=float)
    found = np.asarray(X, dtype=float)
    if found.ndim != 2 or found.shape[1] != len(COLUMNS):
        raise ValueError(f"give {len(COLUMNS)} columns: {', '.join(COLUMNS)}")
    if not np.isfinite(found[:, :-1]).all():
        raise ValueError("only rate_bps may be NaN")
    return found


def _rows(table: Floats) -> Floats:
    """On the scales on which throughput is smooth."""
    scaled = np.array([vector(dict(zip(FEATURES, row, strict=False)))[_PLACES] for row in table])
    return np.column_stack([scaled.reshape(len(table), len(_USES)), np.log(table[:, -2:])])


def _kept(process: Gaussian, columns: list[str]) -> dict[str, Any]:
    lengths = {name: float(f"{length:.6g}") for name, length in zip(columns, process.lengths, strict=True)}
    return {"lengths": lengths, "signal": process.signal, "noise": process.noise}


def _gaussian(kept: dict[str, Any], columns: list[str], rows: Floats, log: Floats) -> Gaussian:
    lengths = np.array([kept["lengths"][name] for name in columns], dtype=float)
    return Gaussian(rows, log, lengths, float(kept["signal"]), float(kept["noise"]))


def _ends(values: Floats) -> list[float]:
    return [float(values.min()), float(values.max())]
