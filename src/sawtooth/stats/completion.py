"""Flow completion times: how long transfers of a size take, and how much longer than on the empty path.

A transfer's slowdown is its completion time divided by that of a sender who knows the path and has it alone
(``stats.path.transfers_s``). This is the *normalized FCT* of Alizadeh et al., pFabric, SIGCOMM 2013, section 5.1, plus
the handshake, which is part of a connection's time here.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from sawtooth.io.table_store import Rows, whole
from sawtooth.run import Run
from sawtooth.stats.path import transfers_s

if TYPE_CHECKING:
    from numpy import ndarray
    from pandas import DataFrame

QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
"""Quantiles of completion times and slowdowns."""
MOST_SIZES = 12
"""Up to this many different sizes have one row each; more are grouped into three bins per factor of ten."""


def completions(run: Run) -> DataFrame:
    """Transfers that started after the warm-up and are complete: ``flow`` (its name), ``bytes``, ``start_s``,
    ``fct_s``, ``slowdown``. Empty if no flow ends or the engine has no table ``flows``.

    A transfer still running at the end has no completion time, so long ones are missing most. Connections that carry
    requests, as for pages, are excluded: they stay open while nothing is requested.
    """
    return transfers(run).frame()


def transfers(run: Run) -> Rows:
    """The rows of ``completions``."""
    import numpy as np

    compiled = run.scenario.compile()
    table = ended(run)
    none = {name: np.empty(0) for name in ("start_s", "fct_s", "slowdown")}
    parts = [Rows({"flow": np.empty(0, object), "bytes": np.empty(0, int), **none})]
    sending = [index for index, flow in enumerate(compiled.flows) if flow.asks is None]
    for index in sorted(set(table["flow"].tolist()) & set(sending)):
        own, flow = table[table["flow"] == index], compiled.flows[index]
        sizes = own["delivered_bytes"].astype(int)
        fct_s = own["end_s"] - own["start_s"]
        about = {"flow": np.full(len(own), flow.entry, dtype=object), "bytes": sizes, "start_s": own["start_s"]}
        parts.append(Rows({**about, "fct_s": fct_s, "slowdown": fct_s / transfers_s(compiled, flow, sizes)}))
    return Rows.joined(parts)


def ended(run: Run) -> Rows:
    """Rows of the table ``flows`` for connections that started after the warm-up and ended on their own."""
    import numpy as np

    columns = ("flow", "start_s", "end_s", "delivered_bytes", "completed")
    table = whole(run.tables, "flows", columns).only(columns) if "flows" in run.tables else Rows({})
    if "completed" not in table:
        return Rows({name: np.empty(0) for name in columns})
    begun = (table["completed"] > 0) & (table["start_s"] >= run.scenario.warmup.seconds)
    return table[begun & (table["delivered_bytes"] > 0)]


def bins(sizes: ndarray[Any, Any]) -> list[tuple[int, int]]:
    """Size ranges in bytes, both bounds included, by which transfers are grouped."""
    import numpy as np

    different = np.unique(sizes)
    if different.size <= MOST_SIZES:
        return [(int(size), int(size)) for size in different]
    first, last = math.floor(3 * math.log10(different[0])), math.floor(3 * math.log10(different[-1]))
    edges = [math.ceil(10 ** (at / 3)) for at in range(first, last + 2)]
    found = [(low, high - 1) for low, high in itertools.pairwise(edges)]
    return [(low, high) for low, high in found if ((sizes >= low) & (sizes <= high)).any()]


def quantile(samples: ndarray[Any, Any], share: float) -> float:
    """A quantile. Above the median it is NaN if fewer than one sample is above it on average: it would only be the
    largest."""
    import numpy as np

    known = share <= 0.5 or samples.size * (1 - share) >= 1 - 1e-9
    return float(np.quantile(samples, share)) if known else math.nan
