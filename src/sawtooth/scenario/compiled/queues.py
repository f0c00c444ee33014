"""Queues: which packet leaves next, and which are dropped or marked; parameters as in tc."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Fifo:
    """Drops what arrives at a full queue; the rest waits until requested."""

    kind: ClassVar[str] = "fifo"


@dataclass(frozen=True, slots=True)
class Codel:
    kind: ClassVar[str] = "codel"
    target_ns: int
    interval_ns: int
    ecn: bool = False
    ce_threshold_ns: int | None = None


@dataclass(frozen=True, slots=True)
class FqCodel:
    """``quantum_bytes`` None: one full frame."""

    kind: ClassVar[str] = "fq_codel"
    target_ns: int
    interval_ns: int
    flows: int
    quantum_bytes: int | None
    ecn: bool = False
    ce_threshold_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Red:
    """``weight_log``: weight of the average, as a power of one half. ``probability_ppb``: of a drop at
    ``max_bytes``."""

    kind: ClassVar[str] = "red"
    min_bytes: int
    max_bytes: int
    weight_log: int
    probability_ppb: int
    adaptive: bool
    ecn: bool = False
    harddrop: bool = False


@dataclass(frozen=True, slots=True)
class Pie:
    """``alpha`` and ``beta`` in sixteenths."""

    kind: ClassVar[str] = "pie"
    target_ns: int
    tupdate_ns: int
    alpha: int
    beta: int
    bytemode: bool
    ecn: bool = False


@dataclass(frozen=True, slots=True)
class FqPie:
    """``quantum_bytes`` None: one full frame."""

    kind: ClassVar[str] = "fq_pie"
    target_ns: int
    tupdate_ns: int
    alpha: int
    beta: int
    bytemode: bool
    flows: int
    quantum_bytes: int | None
    ecn: bool = False


@dataclass(frozen=True, slots=True)
class Fq:
    """``quantum_bytes`` None: two full frames; ``initial_quantum_bytes``: ten."""

    kind: ClassVar[str] = "fq"
    flow_limit: int
    quantum_bytes: int | None
    initial_quantum_bytes: int | None
    orphan_mask: int
    refill_delay_ns: int


@dataclass(frozen=True, slots=True)
class Sfq:
    """``quantum_bytes`` None: one full frame; ``perturb_ns`` 0: never."""

    kind: ClassVar[str] = "sfq"
    quantum_bytes: int | None
    perturb_ns: int
    flows: int
    divisor: int
    depth: int
    headdrop: bool


@dataclass(frozen=True, slots=True)
class Tbf:
    """``peakrate_bps`` None: a burst leaves at the transmitter's rate."""

    kind: ClassVar[str] = "tbf"
    rate_bps: int
    burst_bytes: int
    peakrate_bps: int | None = None
    minburst_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Cake:
    """``bandwidth_bps`` None: no shaper. ``memory_bytes``: kernel memory that packets may use."""

    kind: ClassVar[str] = "cake"
    bandwidth_bps: int | None
    interval_ns: int
    target_ns: int
    isolation: str
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class DualPi2:
    """Gains in 1/256 per second, ``classic_protection`` in percent; one of the two ``step_thresh`` is set."""

    kind: ClassVar[str] = "dualpi2"
    target_ns: int
    tupdate_ns: int
    alpha_256: int
    beta_256: int
    coupling_factor: int
    step_thresh_ns: int | None
    step_thresh_packets: int | None
    min_qlen_step: int
    classic_protection: int
    drop_on_overload: bool
    drop_enqueue: bool
    any_ect: bool


Discipline = Fifo | Codel | FqCodel | Red | Pie | FqPie | Fq | Sfq | Tbf | Cake | DualPi2
_KINDS = {one.kind: one for one in (Fifo, Codel, FqCodel, Red, Pie, FqPie, Fq, Sfq, Tbf, Cake, DualPi2)}


def discipline(told: Mapping[str, Mapping[str, Any]] | None) -> Discipline | None:
    """From the core's JSON."""
    for kind, given in (told or {}).items():
        return _KINDS[kind](**given)
    return None
