"""CongestionModel: predicts the throughput of a TCP flow on a link from the features of a series of RTTs. One
file: an estimator, its training and its stored form share all their state.

It has the interface of a scikit-learn estimator. Training needs scikit-learn; a trained model needs numpy only. It is
stored as a JSON file: the series behind it, one per line, and a few numbers.
"""

from __future__ import annotations

import copy
import functools
import json
import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.atomic_io import write_bytes
from sawtooth.io.untrusted import json_value, read_bytes
from sawtooth.link_estimate.conformal import Reach
from sawtooth.link_estimate.features import FEATURES, OF_LOSS, unscaled, vector
from sawtooth.link_estimate.forest import Forest
from sawtooth.link_estimate.gaussian import Floats, Gaussian, spread, squared_distances

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT = 3
_LARGEST = 256 * 1024 * 1024
COLUMNS = (*FEATURES, "rtt_s", "rate_bps")
"""Columns of ``X``: the features, then the mean base RTT of the link's TCP flows and the link's rate. NaN: unknown. The
features in ``OF_LOSS`` are all NaN if the source does not record lost probes."""
STATES = ("idle", "busy", "congested", "none")
"""No traffic; traffic without a standing queue; persistently congested; and not made by a queue."""

QUIET = ("idle", "busy")

_PARTS = {"loss": tuple(COLUMNS.index(name) for name in OF_LOSS), "rtt": (-2,), "rate": (-1,)}
"""Columns that are known together or not at all."""
_FEWEST = 20
_NEAR = 0.5
"""Logarithm of the factor by which an RTT or a rate may differ from a trained one: 1.65."""
_ALIKE = 20
"""Similar series that define what is usual."""
_WRONG = 0.01
"""Largest share of wrong states among held-out series whose state is reported."""


class CongestionModel:
    """Predicts the mean throughput of a TCP flow in bit/s with an interval, the link's state, and the distance to the
    training data.

    ``level`` is the share of unseen series whose throughput the interval should contain (0 … 1). Trained attributes end
    in an underscore: ``processes_`` has a process for each set of unknown parts, ``states_`` the trees that vote on the
    state, with and without losses. ``chance_`` is the share of the squared error that differs between windows of one
    link, by the unknown parts; empty if that was not measured.
    """

    def __init__(self, level: float = 0.9) -> None:
        self.level = level

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """As in scikit-learn."""
        return {"level": self.level}

    def set_params(self, **parameters: Any) -> Self:
        """As in scikit-learn. Raises ValueError for an unknown parameter."""
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
        """Trains on series with known throughput ``y`` in bit/s per flow. ``state`` is the state of each (default: all
        congested); ``y`` is ignored for other states. ``control`` names the congestion control of each series' flows,
        for ``trained`` only.

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
        if congested.sum() < _FEWEST:
            raise ValueError(f"{congested.sum()} congested series, at least {_FEWEST} are needed")
        if not (target > 0).all() or not (table[congested][:, -2:] > 0).all():
            raise ValueError("throughput, assumed RTT and rate are above zero")
        self.control_ = [] if control is None else [name for name, one in zip(control, congested, strict=True) if one]
        rows, log = _rows(table), np.log(target)
        self._keep(rows[congested], log, rows[~congested], states[~congested].tolist())
        self.processes_, self.reach_, self.held_out_ = {}, {}, {}
        self.chance_: dict[str, float] = {}
        # Similar throughputs are held out together, so that the test is on an unseen number of flows.
        groups = np.round(30 * log).astype(int)
        # Without the outermost series, nothing is known beyond the next ones.
        inner = (log > log.min() + 0.1) & (log < log.max() - 0.1)
        same = log[:, None] == log[None, :]
        lengths: Floats | None = None
        for unknown in _unknowns(("loss", "rtt", "rate")):
            # The remaining columns matter about as much as in the full set.
            start = None if lengths is None else lengths[_known(unknown)]
            process = Gaussian.learn(self.rows_[:, _known(unknown)], log, start)
            lengths = process.lengths if lengths is None else lengths
            mean, deviation = process.held_out(groups)
            apart = process.apart(process.rows)
            apart[same] = np.inf
            name = _name(unknown)
            self.processes_[name] = process
            self.reach_[name] = Reach.learn(apart, np.abs(log - mean) / deviation, inner, self.level)
            error = np.abs(np.exp(mean - log) - 1)[inner]
            self.held_out_[name] = {"median": float(np.median(error)), "p90": float(np.quantile(error, 0.9))}
        self._fit_space(same)
        self._fit_states(np.array([*(["congested"] * len(log)), *self.other_states_]))
        self.trained_on_: dict[str, Any] = {
            "series": int(congested.sum()),
            "throughput_bps": _ends(target),
            "rtt_s": _ends(table[congested][:, -2]),
            "rate_bps": _ends(table[congested][:, -1]),
        }
        return self

    def _keep(self, rows: Floats, log: Floats, others: Floats, states: list[str]) -> None:
        self.rows_, self.log_ = rows, log
        self.others_, self.other_states_ = others[:, :-2], states
        self.spread_ = spread(rows[:, :-2])

    def _fit_space(self, same: NDArray[np.bool_]) -> None:
        """Scales distances: 1 is the distance within which 99 of 100 series have one from another measurement."""
        self.unit_ = {}
        for unknown in _unknowns(("loss",)):
            apart = self._apart(self.rows_[:, :-2], unknown)
            apart[same] = np.inf
            self.unit_[_name(unknown)] = float(np.quantile(apart.min(axis=1), 0.99))

    def _apart(self, rows: Floats, unknown: Sequence[str]) -> Floats:
        places = _features(unknown)
        scaled = self.rows_[:, :-2] / self.spread_
        return np.asarray(np.sqrt(squared_distances((rows / self.spread_)[:, places], scaled[:, places])))

    def _fit_states(self, states: NDArray[Any]) -> None:
        self.names_ = [name for name in STATES if (states == name).any()]
        self.states_: dict[str, Forest] = {}
        if len(self.names_) < 2:
            return
        rows = np.concatenate([self.rows_[:, :-2], self.others_])
        numbers = np.array([self.names_.index(one) for one in states])
        for unknown in _unknowns(("loss",)):
            self.states_[_name(unknown)] = Forest.learn(rows[:, _features(unknown)], numbers, _WRONG)

    def predict(self, X: DataFrame | Floats) -> Floats:
        """Mean throughput of a flow in bit/s for each series, assuming that all are congested."""
        return np.asarray(np.exp(self._answers(_rows(_table(X)))[0]))

    def predict_interval(self, X: DataFrame | Floats) -> Floats:
        """Lower and upper end in bit/s: two columns. They contain the share ``level`` of series like the training
        data."""
        mean, half = self._answers(_rows(_table(X)))
        return np.exp(np.column_stack([mean - half, mean + half]))

    def _answers(self, rows: Floats) -> tuple[Floats, Floats]:
        mean, half = np.empty(len(rows)), np.empty(len(rows))
        for chosen, unknown in _alike(rows):
            process, reach = self.processes_[_name(unknown)], self.reach_[_name(unknown)]
            inputs = rows[chosen][:, _known(unknown)]
            mean[chosen], deviation = process.predict(inputs)
            half[chosen] = reach.deviations(process.apart(inputs)) * deviation
        return mean, half

    def score(self, X: DataFrame | Floats, y: Sequence[float] | Floats) -> float:
        """Coefficient of determination (R²) of the logarithm of throughput: 1 at best."""
        log = np.log(np.asarray(y, dtype=float))
        wrong = ((log - np.log(self.predict(X))) ** 2).sum()
        return float(1 - wrong / ((log - log.mean()) ** 2).sum())

    def predict_state(self, X: DataFrame | Floats) -> list[str]:
        """The most probable state."""
        return [name for name, _ in self.states(X)]

    def states(self, X: DataFrame | Floats) -> list[tuple[str, float]]:
        """For each series the most probable state, with its certainty: below 1 it is inconclusive.

        Whether a link that is not congested is idle or busy is a matter of degree and needs no certainty.
        """
        rows = _rows(_table(X))
        found = [(self.names_[0], math.inf)] * len(rows)
        if not self.states_:
            return found
        for chosen, unknown in _alike(rows, ("loss",)):
            forest = self.states_[_name(unknown)]
            chances = forest.predict(rows[chosen][:, _features(unknown)])
            quiet = [place for place, name in enumerate(self.names_) if name in QUIET]
            for at, chance in zip(np.flatnonzero(chosen), chances, strict=True):
                name = self.names_[int(chance.argmax())]
                sure = chance[quiet].sum() if name in QUIET else chance.max()
                found[at] = name, float(sure / max(forest.sure, 1e-6))
        return found

    def usual_loss(self, X: DataFrame | Floats) -> Floats:
        """The losses of the most similar congested series, similarity without losses: the level that nine in ten reach,
        and the median. Two columns of shares."""
        rows = _rows(_table(X))[:, :-2]
        apart = self._apart(rows, ("loss",))
        nearest = np.argsort(apart, axis=1)[:, :_ALIKE]
        lost = unscaled("loss", self.rows_[:, list(FEATURES).index("loss")])[nearest]
        return np.column_stack([np.quantile(lost, 0.1, axis=1), np.median(lost, axis=1)])

    def alike(self, X: DataFrame | Floats, count: int = 30) -> Floats:
        """For one series, the links of the most similar congested ones: RTT in s and rate in bit/s, two columns. Only
        links of about the series' RTT and rate count, as far as these are known.

        Raises ValueError if ``covers`` is false.
        """
        row = _table(X)
        rtt_s, rate_bps = (None if np.isnan(value) else float(value) for value in row[0, -2:])
        if not self.covers(rtt_s, rate_bps):
            raise ValueError(f"no link of about {rtt_s} s and {rate_bps} bit/s was learnt from")
        unknown = ("loss",) if np.isnan(row[0, _PARTS["loss"][0]]) else ()
        apart = self._apart(_rows(row)[:, :-2], unknown)[0]
        apart[~self._near(rtt_s, rate_bps)] = np.inf
        nearest = np.argsort(apart, kind="stable")[:count]
        return np.asarray(np.exp(self.rows_[nearest[np.isfinite(apart[nearest])], -2:]))

    def shrinks(self, windows: int, *, rtt: bool, rate: bool) -> float:
        """Half the width of an interval for that many windows of one link, as a multiple of that for one, on the
        logarithmic scale. ``rtt``, ``rate``: whether they are known. Raises KeyError if ``chance_`` is empty."""
        unknown = [part for part, known in (("rtt", rtt), ("rate", rate)) if not known]
        return math.sqrt(1 - self.chance_[_name(unknown)] * (1 - 1 / windows))

    def covers(self, rtt_s: float | None, rate_bps: float | None) -> bool:
        """Whether it was trained on links of about that RTT and rate (None: any)."""
        return bool(self._near(rtt_s, rate_bps).any())

    def ends(self, rtt_s: float | None, rate_bps: float | None) -> tuple[float, float]:
        """Lowest and highest throughput in bit/s among the training series of links with about that RTT and rate.

        Beyond them its answers stay near them, whatever the truth. Raises ValueError if ``covers`` is false.
        """
        if not self.covers(rtt_s, rate_bps):
            raise ValueError(f"no link of about {rtt_s} s and {rate_bps} bit/s was learnt from")
        log = self.log_[self._near(rtt_s, rate_bps)]
        return float(np.exp(log.min())), float(np.exp(log.max()))

    def _near(self, rtt_s: float | None, rate_bps: float | None) -> NDArray[np.bool_]:
        """Which series are from links with about that RTT and rate, as far as given."""
        near = np.full(len(self.rows_), True)
        for value, column in ((rtt_s, -2), (rate_bps, -1)):
            if value is not None:
                near &= np.abs(self.rows_[:, column] - np.log(value)) < _NEAR
        return near

    def distance(self, X: DataFrame | Floats) -> Floats:
        """From each series to the nearest one behind the throughput; up to 1 is usual, far above 1 is unlike any."""
        rows = _rows(_table(X))
        found = np.empty(len(rows))
        for chosen, unknown in _alike(rows, ("loss",)):
            found[chosen] = self._apart(rows[chosen][:, :-2], unknown).min(axis=1) / self.unit_[_name(unknown)]
        return found

    def trained(self) -> DataFrame:
        """The congested series behind the model: features, ``rtt_s``, ``rate_bps``, ``throughput_bps`` and ``control``
        ("": unknown)."""
        import pandas as pd

        found = {name: unscaled(name, self.rows_[:, at]) for at, name in enumerate(FEATURES)}
        last = {"rtt_s": np.exp(self.rows_[:, -2]), "rate_bps": np.exp(self.rows_[:, -1])}
        throughput_bps = np.exp(self.log_)
        return pd.DataFrame({**found, **last, "throughput_bps": throughput_bps, "control": self.control_ or ""})

    def save(self, path: Path | str) -> Path:
        """Writes it as JSON, replacing the file in one step."""
        kept = {
            "format": FORMAT,
            "what": "sawtooth: throughput of TCP flows from RTT series; see docs/persistent-congestion.md",
            "level": self.level,
            "trained_on": self.trained_on_,
            "held_out": self.held_out_,
            "unit": self.unit_,
            "chance": self.chance_,
            "processes": {name: _kept(process) for name, process in self.processes_.items()},
            "factors": {name: _short(reach.factor) for name, reach in self.reach_.items()},
            "names": self.names_,
            "columns": [*COLUMNS, "throughput_bps", *(f"score {name}" for name in self.reach_)],
        }
        # One series per line, so that differences are readable.
        scores = np.column_stack([reach.scores for reach in self.reach_.values()])
        series = _lines(np.column_stack([self.rows_, self.log_, scores]))
        states = {name: forest.describe() for name, forest in self.states_.items()}
        lists = {"control": self.control_, "other_states": self.other_states_, "states": states}
        head = json.dumps(kept, indent=1)[:-2] + "".join(
            f',\n "{name}": {json.dumps(one)}' for name, one in lists.items()
        )
        text = f'{head},\n "series": {series},\n "others": {_lines(self.others_)}\n}}\n'
        write_bytes(Path(path), text.encode())
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
        """The bundled model; docs/persistent-congestion.md describes its training."""
        return copy.copy(cls._shipped())

    @classmethod
    @functools.cache
    def _shipped(cls) -> CongestionModel:
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
            keys = [_name(unknown) for unknown in _unknowns(("loss", "rtt", "rate"))]
            if kept["columns"] != [*COLUMNS, "throughput_bps", *(f"score {key}" for key in keys)]:
                raise InputError("not-a-result", "it was trained on other features", file=name, fix=fix)
            series, others = np.array(kept["series"], dtype=float), np.array(kept["others"], dtype=float)
            width = len(COLUMNS)
            padded = np.zeros((len(others), width))
            padded[:, :-2] = others.reshape(len(others), width - 2)
            model._keep(series[:, :width], series[:, width], padded, [str(one) for one in kept["other_states"]])
            model.control_ = [str(one) for one in kept["control"]]
            if len(model.control_) not in (0, len(series)) or len(model.other_states_) != len(others):
                raise InputError("not-a-result", "its lists have different lengths", file=name, fix=fix)
            model._read_processes(kept, series[:, width + 1 :], keys)
            model.held_out_, model.trained_on_ = kept["held_out"], kept["trained_on"]
            model.unit_ = {str(key): float(one) for key, one in kept["unit"].items()}
            model.chance_ = {str(key): float(one) for key, one in kept.get("chance", {}).items()}
            model._sound()
        except SawtoothError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
            message = f"it is no model ({type(error).__name__}: {error})"
            raise InputError("not-a-result", message, file=name, fix=fix) from None
        except np.linalg.LinAlgError as error:
            raise InputError("not-a-result", f"it is no model ({error})", file=name, fix=fix) from None
        return model

    def _read_processes(self, kept: dict[str, Any], scores: Floats, keys: list[str]) -> None:
        self.processes_, self.reach_, self.states_ = {}, {}, {}
        for at, (key, unknown) in enumerate(zip(keys, _unknowns(("loss", "rtt", "rate")), strict=True)):
            rows = self.rows_[:, _known(unknown)]
            self.processes_[key] = _gaussian(kept["processes"][key], rows, self.log_)
            self.reach_[key] = Reach(scores[:, at], float(kept["factors"][key]))
        self.names_ = [str(one) for one in kept["names"]]
        states = ["congested"] * len(self.log_) + self.other_states_
        if self.names_ != [one for one in STATES if one in states]:
            raise ValueError("its states do not fit its series")
        if len(self.names_) > 1:
            for unknown in _unknowns(("loss",)):
                described = kept["states"][_name(unknown)]
                forest = Forest.read(described, len(_features(unknown)), len(self.names_))
                self.states_[_name(unknown)] = forest

    def _sound(self) -> None:
        """Raises ValueError, KeyError or TypeError if the data cannot give answers."""
        if not (np.isfinite(self.rows_).all() and np.isfinite(self.log_).all() and np.isfinite(self.others_).all()):
            raise ValueError("its series have values that are no numbers")
        if len(self.log_) < _FEWEST:
            raise ValueError("it has too few series")
        if not all(np.isfinite(reach.scores).all() and 0 < reach.factor < np.inf for reach in self.reach_.values()):
            raise ValueError("its errors are out of range")
        if not 0 < self.level < 1 or not all(0 < one < np.inf for one in self.unit_.values()):
            raise ValueError("its level or its units are out of range")
        if self.chance_ and set(self.chance_) != {_name(one) for one in _unknowns(("rtt", "rate"))}:
            raise ValueError("its shares of chance are not those of its processes")
        if not all(0 <= one < 1 for one in self.chance_.values()):
            raise ValueError("its shares of chance are out of range")
        for name in ("throughput_bps", "rtt_s", "rate_bps"):
            low, high = self.trained_on_[name]
            if not 0 < low <= high < np.inf:
                raise ValueError(f"its ends of {name} are out of range")
        if set(self.unit_) != {_name(one) for one in _unknowns(("loss",))}:
            raise ValueError("its units are not those of its processes")


def _table(X: DataFrame | Floats) -> Floats:
    if not isinstance(X, np.ndarray):
        missing = [name for name in COLUMNS if name not in X.columns]
        if missing:
            raise ValueError(f"columns are missing: {', '.join(missing)}")
        X = X[list(COLUMNS)].to_numpy(dtype=float)
    found = np.asarray(X, dtype=float)
    if found.ndim != 2 or found.shape[1] != len(COLUMNS):
        raise ValueError(f"give {len(COLUMNS)} columns: {', '.join(COLUMNS)}")
    losses = np.isnan(found[:, _PARTS["loss"]])
    seen = [place for place in range(len(FEATURES)) if place not in _PARTS["loss"]]
    if not np.isfinite(found[:, seen]).all() or (losses.any(axis=1) != losses.all(axis=1)).any():
        raise ValueError(f"only rtt_s, rate_bps, and all of {', '.join(OF_LOSS)} may be NaN")
    return found


def _rows(table: Floats) -> Floats:
    """Values on the scales on which throughput is smooth."""
    scaled = np.array([vector(dict(zip(FEATURES, row, strict=False))) for row in table])
    return np.column_stack([scaled.reshape(len(table), len(FEATURES)), np.log(table[:, -2:])])


def _unknowns(parts: Sequence[str]) -> list[tuple[str, ...]]:
    """All subsets of the parts."""
    return [tuple(part for at, part in enumerate(parts) if number >> at & 1) for number in range(1 << len(parts))]


def _name(unknown: Sequence[str]) -> str:
    return f"without {', '.join(unknown)}" if unknown else "all"


def _known(unknown: Sequence[str]) -> list[int]:
    """The remaining columns."""
    gone = {place % len(COLUMNS) for part in unknown for place in _PARTS[part]}
    return [place for place in range(len(COLUMNS)) if place not in gone]


def _features(unknown: Sequence[str]) -> list[int]:
    """The remaining features."""
    return [place for place in _known(unknown) if place < len(FEATURES)]


def _alike(
    rows: Floats, parts: Sequence[str] = ("loss", "rtt", "rate")
) -> list[tuple[NDArray[np.bool_], tuple[str, ...]]]:
    """Groups rows in which the same parts are unknown."""
    found = []
    for unknown in _unknowns(parts):
        chosen = np.full(len(rows), True)
        for part in parts:
            chosen &= np.isnan(rows[:, _PARTS[part][0]]) == (part in unknown)
        if chosen.any():
            found.append((chosen, unknown))
    return found


def _kept(process: Gaussian) -> dict[str, Any]:
    return {
        "lengths": [_short(length) for length in process.lengths],
        "signal": process.signal,
        "noise": process.noise,
    }


def _gaussian(kept: dict[str, Any], rows: Floats, targets: Floats) -> Gaussian:
    lengths = np.array(kept["lengths"], dtype=float)
    if lengths.shape != (rows.shape[1],) or not (lengths > 0).all():
        raise ValueError("its lengths do not fit its columns")
    return Gaussian(rows, targets, lengths, float(kept["signal"]), float(kept["noise"]))


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _lines(rows: Floats) -> str:
    found = ",\n  ".join(json.dumps([_short(value) for value in row]) for row in rows)
    return f"[\n  {found}\n ]"


def _ends(values: Floats) -> list[float]:
    return [float(values.min()), float(values.max())]
