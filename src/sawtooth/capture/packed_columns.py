"""Columns of numbers in compact form for a page: differences, by planes of bytes, deflated, as base64."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def pack(values: ArrayLike) -> dict[str, Any]:
    """Packs whole numbers up to 2^53; the page's script reads them in the same order.

    Each is stored as its difference from the previous one, zigzag-coded so that small differences stay small in both
    directions. Then come the lowest bytes of all, the second lowest, and so on. Numbers of a regular capture take 1 to
    3 bytes each.
    """
    numbers = np.asarray(values).astype(np.int64)
    steps = np.diff(numbers, prepend=0)
    coded = (steps << 1) ^ (steps >> 63)
    planes = max(1, (int(coded.max(initial=0)).bit_length() + 7) // 8)
    by_plane = coded.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :planes].T
    data = zlib.compress(np.ascontiguousarray(by_plane).tobytes(), level=6)
    return {"length": len(numbers), "planes": planes, "data": base64.b64encode(data).decode("ascii")}
