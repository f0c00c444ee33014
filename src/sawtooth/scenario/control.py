"""Which congestion controls a scenario may name."""

from sawtooth._core import CONGESTION_CONTROLS as _CONTROLS
from sawtooth._core import VARIANTS

__all__ = ["CONGESTION_CONTROLS", "LINUX_CONTROLS", "VARIANTS"]

CONGESTION_CONTROLS: tuple[str, ...] = tuple(_CONTROLS)
"""All of Linux, as it names them, and BBR version 3 and Prague, which only patched kernels have; which of them an
engine has is the engine's to say. A kernel that is named may have others.
"""
LINUX_CONTROLS = tuple(name for name in CONGESTION_CONTROLS if name not in ("bbr3", "prague"))
"""Those that Linux itself has."""
