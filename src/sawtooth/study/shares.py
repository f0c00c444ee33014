"""Shares: what part of the sum each flow gets, and how evenly its connections share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sawtooth.run import Run
from sawtooth.stats import describe, harm, independent, jain, throughput_by_flow
from sawtooth.stats.summary import sampled_means, summary

if TYPE_CHECKING:
    from numpy import ndarray

    from sawtooth.scenario.compiled_form import Flow

ALL = "all"
"""In the column ``seed``: all seeds together."""
SHARE_COLUMNS = (
    "flow",
    "flow_cc",
    "connections",
    "share_percent",
    "share_low_percent",
    "share_high_percent",
    "jain",
    "jain_all",
    "harm",
    "mean_srtt_ms",
    "retransmits",
    "timeouts",
    "delivery_mbps",
)
"""Columns besides the key columns, ``seed``, ``mean_mbps`` and ``std_mbps``."""
_COUNTERS = ("mean_srtt_ms", "retransmits", "timeouts")


@dataclass(frozen=True)
class Shares:
    """The flows of one run, one per table [[flows]], in order: Mbit/s in each interval, and fairness indices."""

    names: tuple[str, ...]
    ccs: tuple[str, ...]
    counts: tuple[int, ...]
    samples: ndarray[Any, Any]
    """One row per interval, one column per flow."""
    fairness: tuple[float, ...]
    fairness_of_all: float
    counters: tuple[tuple[float, float, float], ...]
    """For each flow: the mean smoothed RTT in ms, retransmissions, timeouts (``stats.summary``)."""
    delivery_mbps: tuple[float, ...]
    """For each flow: the mean of the delivery rates that ``ss`` shows."""

    @classmethod
    def of(cls, run: Run) -> Shares:
        """From a run with the table ``intervals`` and, for the fairness, ``flows``."""
        import numpy as np

        compiled = run.scenario.compile().flows
        parts: dict[str, list[int]] = {}
        for index, flow in enumerate(compiled):
            # A flow spread over the pairs of a dumbbell is compiled into one flow per pair: NAME@s1 …
            parts.setdefault(flow.entry, []).append(index)
        each = throughput_by_flow(run).reindex(columns=range(len(compiled)), fill_value=0.0).to_numpy()
        rates = [_rates(run, compiled, indices) for indices in parts.values()]
        return cls(
            tuple(parts),
            tuple(compiled[indices[0]].cc for indices in parts.values()),
            tuple(sum(compiled[index].count for index in indices) for indices in parts.values()),
            np.stack([each[:, indices].sum(axis=1) for indices in parts.values()], axis=1),
            tuple(math.nan if one is None else jain(one) for one in rates),
            math.nan if None in rates else jain([rate for one in rates if one is not None for rate in one]),
            tuple(summary(run)[list(_COUNTERS)].itertuples(index=False, name=None)),
            tuple(rate / 1e6 for rate in sampled_means(run, "delivery_bps").values()),
        )

    @property
    def percent(self) -> list[float]:
        """Each flow's share of the sum of the means; NaN when nothing was delivered."""
        means = self.samples.mean(axis=0)
        whole = float(means.sum())
        return [float(mean) / whole * 100 if whole > 0 else math.nan for mean in means]


def rows(
    key: Mapping[str, Any], seed: int | str, seen: Sequence[Shares], alone_mbps: Mapping[str, float]
) -> list[dict[str, Any]]:
    """One row per flow, from one run or from several that differ only in their seeds.

    The share is the mean of the runs' shares. Its 95% interval is over independent runs, so a single run has none.
    ``alone_mbps`` is the goodput of the flows when alone, for the harm.
    """
    import numpy as np

    first = seen[0]
    samples = np.concatenate([one.samples for one in seen])
    found = []
    for at, name in enumerate(first.names):
        described = describe(samples[:, at])
        share = independent([one.percent[at] for one in seen]).within(0.0, 100.0)
        found.append(
            {
                **key,
                "seed": seed,
                "flow": name,
                "flow_cc": first.ccs[at],
                "connections": first.counts[at],
                "mean_mbps": described["mean_mbps"],
                "std_mbps": described["std_mbps"],
                "share_percent": share.mean,
                "share_low_percent": share.low,
                "share_high_percent": share.high,
                "jain": _mean([one.fairness[at] for one in seen]),
                "jain_all": _mean([one.fairness_of_all for one in seen]),
                "harm": harm(alone_mbps.get(name, math.nan), described["mean_mbps"]),
                "mean_srtt_ms": _mean([one.counters[at][0] for one in seen]),
                "retransmits": math.fsum(one.counters[at][1] for one in seen),
                "timeouts": math.fsum(one.counters[at][2] for one in seen),
                "delivery_mbps": _mean([one.delivery_mbps[at] for one in seen]),
            }
        )
    return found


def _rates(run: Run, compiled: Sequence[Flow], indices: Sequence[int]) -> list[float] | None:
    """Bytes per second of each connection over its life. None if that is unknown, or if connections replace each other:
    lives of different lengths at different times do not share one thing."""
    if "flows" not in run.tables or any(compiled[index].lifetime_ns for index in indices):
        return None
    ended = run.tables["flows"]
    own = ended[ended["flow"].isin(indices)]
    lives = own["end_s"] - own["start_s"]
    if len(own) != sum(compiled[index].count for index in indices) or not (lives > 0).all():
        return None
    return [float(rate) for rate in own["delivered_bytes"] / lives]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
