"""Place: where a plan is to run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """What the kernel has that will run the plan: by default that of ``sawtooth kernel build``.

    ``virtual``: its time stands still while it computes. ``dualpi2`` of ``kernel`` is told by its version.
    """

    netem: bool = True
    vlan: bool = True
    macvlan: bool = False
    nftables: bool = True
    virtual: bool = True
    dualpi2: bool = True
