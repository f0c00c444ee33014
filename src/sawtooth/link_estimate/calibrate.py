"""Makes series with known throughput on an engine, from which a CongestionModel learns.

A measurement is one link with a tail-drop queue and many TCP flows that last 1 to 5 s each and are replaced at once, as
in Marder and Smith: 1,000 probes at 100 ms, after 5 s in which the queue fills. Each measurement is one file; existing
ones are not repeated.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from sawtooth.errors import InputError, SawtoothError
from sawtooth.io.atomic_io import write_bytes, writing
from sawtooth.link_estimate.features import FEATURES, features
from sawtooth.link_estimate.model import COLUMNS, CongestionModel
from sawtooth.link_estimate.random_links import PACE_S, PROBES, Group, Link
from sawtooth.link_estimate.series import RttSeries
from sawtooth.link_estimate.surrogate import surrogates
from sawtooth.scenario.header_sizes import FULL_FRAME

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pandas import DataFrame

    from sawtooth.io.parallel import Workers

SETTLE_S = 5
OFF_TICKS_MS = 1
"""Probes are sent between the hosts' clock ticks: at a tick they would meet what every timeout sends at once, which
real probes meet by chance only."""
MOST = 2000
"""Most measurements of one corpus."""
LOADS = (0.1, 0.3, 0.5, 0.7, 0.85, 0.95)
"""Loads of a busy link without a standing queue: receive windows keep its flows to this share of the rate."""
_WINDOW_BYTES = 6000
"""The smallest window of a flow on such a link: endpoints accept no much smaller buffer."""
QUIET = 0.1
"""Series of an idle link, and equally many that no queue made, per congested one; at least ``_FEWEST``. They need no
engine."""
_FEWEST = 20
_FULL = 0.9
"""Share of a link's rate above which it does not count as busy, even if no flow is greedy."""
JITTER_S = (5e-6, 2e-4)
"""Mean jitter that a real machine and its path add to an RTT: small compared with any standing queue."""
_STOP = "stop"


@dataclass(frozen=True)
class Measurement:
    """``cubic`` and ``reno`` flows through ``rate_bps`` and ``queue_packets``, with a base RTT of ``rtt_s`` (whole ms).

    ``load``: None for greedy flows, else one of ``LOADS``. ``seed`` is the scenario's.
    """

    rate_bps: int
    queue_packets: int
    rtt_s: float
    cubic: int
    reno: int
    seed: int
    load: float | None = None
    engine: str = "sim"

    @property
    def flows(self) -> int:
        return self.cubic + self.reno

    @property
    def queue_s(self) -> float:
        return self.queue_packets * FULL_FRAME * 8 / self.rate_bps

    @property
    def control(self) -> str:
        """The congestion control of its flows, or ``mixed``."""
        return "cubic" if not self.reno else "mixed" if self.cubic else "reno"

    @property
    def name(self) -> str:
        """The name of its file, unique to the measurement."""
        load = "" if self.load is None else f"-load{self.load:g}"
        rtt = f"{self.rtt_s * 1e3:g}ms"
        link = f"{self.rate_bps / 1e6:g}M-{self.queue_packets}p-{rtt}"
        return f"{self.engine}-{link}-cubic{self.cubic}-reno{self.reno}{load}-seed{self.seed}"

    def scenario(self) -> dict[str, Any]:
        """The scenario as in a file."""
        counts = {"cubic": self.cubic, "reno": self.reno}
        flows = [
            {"name": cc, "cc": cc, "count": count, "replace": {"lifetime": ["1 s", "5 s"]}}
            for cc, count in counts.items()
            if count
        ]
        probes = {"name": "probe", "from": "sender", "to": "receiver", "start": f"{SETTLE_S * 1000 + OFF_TICKS_MS} ms"}
        made: dict[str, Any] = {
            "name": "persistent-congestion",
            "topology": "path",
            "duration": f"{SETTLE_S + round(PROBES * PACE_S)} s",
            "interval": "1 s",
            "seed": self.seed,
            "path": {
                "rate": f"{self.rate_bps} bit/s",
                "rtt": f"{round(self.rtt_s * 1e3)} ms",
                "queue": f"{self.queue_packets} packets",
            },
            "flows": flows,
            "probes": [{**probes, "interval": f"{round(PACE_S * 1e3)} ms", "count": PROBES}],
        }
        if self.load is not None:
            window = self.load * self.rate_bps / 8 * self.rtt_s / self.flows
            # Linux offers half of the buffer as a window.
            made["host"] = {"receive_buffer": f"{2 * round(window)} bytes"}
        if self.engine == "kernel":
            # Only the native traffic source replaces flows there.
            made["traffic"] = "native"
        return made


def grid(
    *,
    rates_bps: Sequence[int],
    queue_s: float,
    rtts_s: Sequence[float],
    cubic_shares: Sequence[float],
    flows: Sequence[int],
    seeds: Sequence[int],
    engine: str = "sim",
) -> list[Measurement]:
    """All combinations, and for each rate and seed a link that is only busy, at each of ``LOADS``.

    Raises SawtoothError ``too-many-points`` above ``MOST`` measurements.
    """
    made = []
    for seed in seeds:
        for rate_bps in rates_bps:
            packets = max(2, round(queue_s * rate_bps / 8 / FULL_FRAME))
            for rtt_s in rtts_s:
                for share in cubic_shares:
                    for count in flows:
                        cubic = round(share * count)
                        one = Measurement(rate_bps, packets, rtt_s, cubic, count - cubic, seed, engine=engine)
                        made.append(one)
            rtt_s = max(rtts_s)
            for load in LOADS:
                most = load * rate_bps * rtt_s / 8 / _WINDOW_BYTES
                counts = {max(1, int(most * share)) for share in (0.1, 0.3, 1.0)}
                made += [
                    Measurement(rate_bps, packets, rtt_s, count, 0, seed, load=load, engine=engine)
                    for count in sorted(counts)
                ]
    made = list(dict.fromkeys(made))
    if len(made) > MOST:
        fix = "give fewer rates, RTTs, numbers of flows or seeds"
        raise InputError("too-many-points", f"{len(made)} measurements, at most {MOST} are made", fix=fix)
    return made


def usual_flows(rate_bps: int) -> list[int]:
    """Numbers of flows that share a rate at 100 … 1 Mbit/s each, evenly on a logarithmic scale, at least 3."""
    counts = {max(3, round(rate_bps / 1e6 / per_flow)) for per_flow in np.geomspace(1, 100, 12)}
    return sorted(counts)


def make(
    directory: Path,
    measurements: Sequence[Measurement | Link],
    *,
    jobs: int | None = None,
    executor: Executor | Workers | None = None,
    quiet: bool = False,
) -> None:
    """Makes the measurements that ``directory`` lacks, in ``jobs`` processes (default: one per core), or with
    ``executor``, a ``sawtooth.dask.Cluster``, whose workers need not see the directory.

    Raises SawtoothError as the engine does, ``worker-died``, ``interrupted`` after Ctrl-C; finished measurements are
    kept.
    """
    from sawtooth.io.parallel import fan_out
    from sawtooth.io.progress_bar import Bar

    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        (directory / _STOP).unlink(missing_ok=True)
    left = [one for one in measurements if not _file(directory, one).exists()]
    if not left:
        return
    done = len(measurements) - len(left)

    def keep(number: int, made: bytes | None) -> None:
        nonlocal done
        if made is not None:
            write_bytes(_file(directory, left[number]), made)
            done += 1

    try:
        with Bar("calibrating", len(measurements), done=done, quiet=quiet) as bar:
            fan_out(
                partial(_measure, directory.resolve() / _STOP),
                left,
                done=keep,
                poll=lambda: bar.show(done),
                stop=lambda: _request_stop(directory),
                jobs=jobs,
                executor=executor,
            )
    except KeyboardInterrupt:
        message = f"interrupted; {done} of {len(measurements)} measurements are finished and kept in {directory}"
        fix = "run the same command again: it continues where this one stopped"
        raise SawtoothError("interrupted", message, fix=fix) from None
    except BrokenExecutor as error:
        fix = "run the same command again to continue, with fewer --jobs if memory is short"
        raise SawtoothError("worker-died", "a worker process died", file=directory, fix=fix) from error
    finally:
        with writing(directory):
            (directory / _STOP).unlink(missing_ok=True)


def _request_stop(directory: Path) -> None:
    # A full or missing disk cannot carry the request to stop; the workers are then killed.
    with contextlib.suppress(SawtoothError), writing(directory):
        (directory / _STOP).touch()


def _measure(stop_file: Path, one: Measurement | Link) -> bytes | None:
    """The file of a measurement; None if it was stopped, by the file ``stop_file`` or by a cluster."""
    from sawtooth.engines import get
    from sawtooth.io.parallel import stop_requested
    from sawtooth.scenario import Scenario

    def stop() -> bool:
        return stop_file.exists() or stop_requested()

    if stop():
        return None
    scenario = Scenario.from_dict(one.scenario(), source=one.name)
    run = get(one.engine).run(scenario, stop=stop)
    probes, intervals = run.tables["probes"], run.tables["intervals"]
    streams = [part for _, part in probes.groupby("probe")]
    during = intervals[intervals["t_s"] > float(probes["t_s"].min())]
    groups_bps = during.pivot(index="t_s", columns="flow", values="goodput_bps").mean(axis=0)
    free = [True] * len(groups_bps)
    if isinstance(one, Link) and one.kind != "bursts":
        free = [not group.window_bytes for group in one.groups]
    out = io.BytesIO()
    np.savez_compressed(
        out,
        sent_s=np.array([part["t_s"].to_numpy() for part in streams]),
        rtt_s=np.array([part["rtt_s"].to_numpy() for part in streams]),
        goodput_bps=np.array(groups_bps[free].sum()),
        link_bps=np.array(groups_bps.sum()),
        about=np.array(json.dumps(dataclasses.asdict(one))),
    )
    return out.getvalue()


@dataclass(frozen=True)
class Measured:
    """A measurement's result: ``streams`` of probes; ``throughput_bps`` of a greedy flow on average (NaN: there is
    none); ``link_bps`` of all flows together."""

    one: Measurement | Link
    streams: tuple[RttSeries, ...]
    throughput_bps: float
    link_bps: float

    @property
    def series(self) -> RttSeries:
        """The first stream."""
        return self.streams[0]

    @property
    def state(self) -> str | None:
        """The link's state; None if it is full of flows that are not greedy, which is neither busy nor congested."""
        if isinstance(self.one, Measurement):
            return "congested" if self.one.load is None else "busy"
        if self.one.kind == "congested":
            return "congested"
        return "busy" if self.link_bps < _FULL * self.one.rate_bps else None

    @property
    def rtt_s(self) -> float:
        """Geometric mean of the base RTTs of the flows."""
        if isinstance(self.one, Measurement):
            return self.one.rtt_s
        groups = [group for group in self.one.groups if not group.window_bytes] or self.one.groups
        count = sum(group.count for group in groups)
        return math.exp(sum(group.count * math.log(group.rtt_s) for group in groups) / count)

    @property
    def control(self) -> str:
        """The congestion control of its flows, or ``mixed``."""
        if isinstance(self.one, Measurement):
            return self.one.control
        found = {group.cc for group in self.one.groups if not group.window_bytes}
        return found.pop() if len(found) == 1 else "mixed"


def read(directory: Path) -> Iterator[Measured]:
    """Every measurement of a directory, by name."""
    for file in sorted(directory.glob("*.npz")):
        try:
            with np.load(file, allow_pickle=False) as kept:
                one = _described(json.loads(str(kept["about"])))
                sent_s, rtt_s = (np.atleast_2d(kept[name].astype(np.float64)) for name in ("sent_s", "rtt_s"))
                pairs = zip(sent_s, rtt_s, strict=True)
                streams = [RttSeries(*pair, PACE_S, str(file), label=one.name, clock="start") for pair in pairs]
                goodput_bps = float(kept["goodput_bps"])
                # Older measurements lack it, and do not need it.
                link_bps = float(kept["link_bps"]) if "link_bps" in kept else math.nan
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
            fix = "remove the file, and run the same command again"
            raise InputError("not-a-series", f"no measurement: {error}", file=file, fix=fix) from None
        yield Measured(one, tuple(streams), goodput_bps / one.flows if one.flows else math.nan, link_bps)


def _described(about: dict[str, Any]) -> Measurement | Link:
    if "groups" not in about:
        return Measurement(**about)
    groups = tuple(Group(**group) for group in about.pop("groups"))
    lists = {name: about.pop(name) for name in ("lifetime_s", "bursts")}
    bursts = tuple((start_s, size) for start_s, size in lists["bursts"])
    shortest_s, longest_s = lists["lifetime_s"]
    return Link(**about, groups=groups, lifetime_s=(shortest_s, longest_s), bursts=bursts)


def corpus(*directories: Path, exact: bool = False, seed: int = 1) -> DataFrame:
    """One row per series: its link, state and throughput, and the columns of a model.

    Every second series gets a jitter of ``JITTER_S``, so that a model does not rely on an engine's exactness
    (``jitter_s`` is its mean; ``exact``: none does). Idle series are jitter only; those with state ``none`` come from
    no queue. ``seed`` is that of the jitter. Series with too few answers for an estimate are left out.
    """
    import pandas as pd

    random = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    kept: list[RttSeries] = []
    for number, found in enumerate(one for directory in directories for one in read(directory)):
        if found.state is None or found.series.loss > 0.5:
            continue
        jitter_s = 0.0 if exact or number % 2 else _jitter(random)
        try:
            each = [features(jittered(series, jitter_s, random)) for series in found.streams]
        except ValueError:
            continue
        values = {name: float(np.mean([one[name] for one in each])) for name in FEATURES}
        one = found.one
        known = {name: getattr(one, name) for name in ("name", "engine", "rate_bps", "queue_s", "flows")}
        known |= {"rtt_s": found.rtt_s, "control": found.control, "throughput_bps": found.throughput_bps}
        rows.append({**known, "state": found.state, "jitter_s": jitter_s, **values})
        if found.state == "congested":
            kept.append(found.series)
    sent_s = np.asarray(np.arange(PROBES) * PACE_S, dtype=np.float64)
    still = RttSeries(sent_s, np.full(PROBES, 0.02), PACE_S, "idle", clock="start")
    known = {"rate_bps": 1e9, "rtt_s": 0.02, "throughput_bps": math.nan, "engine": "none", "control": ""}
    count = max(_FEWEST, round(QUIET * len(kept)))
    for number in range(count):
        jitter_s = _jitter(random)
        quiet = jittered(still, jitter_s, random)
        if number % 3 == 2:
            # A machine that sometimes answers slowly.
            late = random.random(PROBES) < random.uniform(0, 0.02)
            quiet = dataclasses.replace(quiet, rtt_s=quiet.rtt_s + late * random.exponential(0.01, PROBES))
        rows.append({**known, "name": f"idle-{number}", "state": "idle", "jitter_s": jitter_s, **features(quiet)})
    for number, one_series in enumerate(surrogates(kept, count, random, still)):
        rows.append({**known, "name": f"none-{number}", "state": "none", "jitter_s": 0.0, **features(one_series)})
    return pd.DataFrame(rows)


def jittered(series: RttSeries, jitter_s: float, random: np.random.Generator) -> RttSeries:
    """Adds to each RTT a draw from an exponential distribution with that mean."""
    if jitter_s == 0:
        return series
    return dataclasses.replace(series, rtt_s=series.rtt_s + random.exponential(jitter_s, len(series)))


def _jitter(random: np.random.Generator) -> float:
    low, high = np.log(JITTER_S)
    return float(np.exp(random.uniform(low, high)))


def learn(table: DataFrame, level: float = 0.9) -> CongestionModel:
    """Trains the model on a corpus."""
    control = table["control"].tolist() if "control" in table else None
    throughput_bps, states = table["throughput_bps"].to_numpy(), table["state"].tolist()
    return CongestionModel(level).fit(table[list(COLUMNS)], throughput_bps, states, control)


def _file(directory: Path, one: Measurement | Link) -> Path:
    return directory / f"{one.name}.npz"
