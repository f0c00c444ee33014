"""Target kernel: the kernel on which a plan will run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """What the kernel that runs the plan supports (default: that of ``sawtooth kernel build``).

    ``virtual``: its time does not advance while it computes. On ``kernel``, the version decides about ``dualpi2``.
    """

    netem: bool = True
    vlan: bool = True
    macvlan: bool = False
    nftables: bool = True
    virtual: bool = True
    dualpi2: bool = True
