"""The congestion controls that a scenario may name."""

from sawtooth._core import CONGESTION_CONTROLS as _CONTROLS
from sawtooth._core import VARIANTS

__all__ = ["CONGESTION_CONTROLS", "LINUX_CONTROLS", "VARIANTS"]

CONGESTION_CONTROLS: tuple[str, ...] = tuple(_CONTROLS)
"""All of Linux, by Linux's names, and BBR version 3 and Prague, which only patched kernels have. Each engine decides
which ones it has. A named kernel may have others."""
LINUX_CONTROLS = tuple(name for name in CONGESTION_CONTROLS if name not in ("bbr3", "prague"))
"""The controls of unpatched Linux."""
