"""How many of a model's deviations an interval reaches: split conformal prediction with scaled residuals (Lei et al.
2018), for each link by itself ("Mondrian", Vovk et al. 2005), since a model is surer of some links than it should be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sawtooth.congestion.gaussian import Floats

_FEWEST = 10
"""Series of a link by itself; a link with fewer takes the quantile of all."""


@dataclass(frozen=True, eq=False)
class Quantiles:
    """``links`` has a row a link: logarithms of the RTT in s and, where it is known, of the rate in bit/s."""

    links: Floats
    deviations: Floats

    @classmethod
    def learn(cls, links: Floats, scores: Floats, level: float) -> Self:
        """``scores`` are errors of held-out series in deviations, ``links`` the link of each; at least one."""
        rounded = np.round(links, 4)
        found = np.unique(rounded, axis=0)
        members = [scores[(rounded == link).all(axis=1)] for link in found]
        deviations = [_quantile(some if len(some) >= _FEWEST else scores, level) for some in members]
        return cls(found, np.array(deviations))

    def of(self, links: Floats) -> Floats:
        """Those of the nearest link, for each row."""
        apart = ((links[:, None, :] - self.links[None, :, :]) ** 2).sum(axis=-1)
        return np.asarray(self.deviations[apart.argmin(axis=1)])

    def describe(self) -> list[dict[str, float]]:
        """For JSON: a dictionary a link."""
        names = ("rtt_s", "rate_bps")[: self.links.shape[1]]
        told = zip(np.exp(self.links), self.deviations, strict=True)
        return [
            {name: float(f"{value:.6g}") for name, value in zip((*names, "deviations"), (*link, one), strict=True)}
            for link, one in told
        ]

    @classmethod
    def read(cls, described: list[dict[str, Any]], columns: int) -> Self:
        """Of ``describe``. Raises ValueError, KeyError or TypeError for anything else."""
        names = ("rtt_s", "rate_bps")[:columns]
        links = np.array([[float(one[name]) for name in names] for one in described])
        deviations = np.array([float(one["deviations"]) for one in described])
        if not len(links) or not (links > 0).all() or not (deviations > 0).all():
            raise ValueError("its quantiles are not above zero")
        return cls(np.log(links), deviations)


def _quantile(scores: Floats, level: float) -> float:
    share = min(1.0, np.ceil((len(scores) + 1) * level) / len(scores))
    return float(np.quantile(scores, share))
