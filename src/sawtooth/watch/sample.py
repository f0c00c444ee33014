"""Sample: all connections at one moment, in columns, parsed from the bytes of sock_diag."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from sawtooth.watch import layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAPPED = bytes(10) + b"\xff\xff"
_COOKIE = layout.offset(layout.SOCKET, "cookie")
_LONGEST_NAME = 16
"""Longest name of a congestion control (TCP_CA_NAME_MAX) and of an upper layer protocol (ULP)."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One sample. Arrays have one entry per socket. ``at_s``: time of a monotonic clock. ``info_bytes``: how many bytes
    of ``tcp_info`` the kernel sent; the rest is 0 in ``info`` and NaN in ``field``. ``partly``: sockets changed during
    the dump, so a socket may be missing or duplicated. ``damaged``: number of invalid messages.
    """

    at_s: float
    sockets: NDArray[np.void]
    info: NDArray[np.void]
    info_bytes: NDArray[np.int64]
    cc: NDArray[np.bytes_]
    bbr: NDArray[np.void]
    bbr_known: NDArray[np.bool_]
    memory: NDArray[np.void]
    memory_known: NDArray[np.bool_]
    ulp: NDArray[np.bytes_]
    partly: bool = False
    damaged: int = 0

    def __len__(self) -> int:
        return len(self.sockets)

    @cached_property
    def cookie(self) -> NDArray[np.uint64]:
        """The kernel's unique number of each socket, never reused until reboot."""
        return np.ascontiguousarray(self.sockets["cookie"])

    def field(self, name: str) -> NDArray[np.float64]:
        """A field of ``tcp_info``; NaN where the kernel did not send it."""
        values = self.info[name].astype(np.float64)
        values[self.info_bytes < layout.offset(layout.TCP_INFO, name) + layout.TCP_INFO[name].itemsize] = np.nan
        return values

    @cached_property
    def bbr_bps(self) -> NDArray[np.float64]:
        """BBR's bandwidth estimate in bit/s; NaN for other congestion controls."""
        rate = (self.bbr["bw_hi"].astype(np.float64) * 2**32 + self.bbr["bw_lo"]) * 8
        return np.where(self.bbr_known, rate, np.nan)

    def chosen(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> Sample:
        """The selected sockets only."""
        columns = ["sockets", "info", "info_bytes", "cc", "bbr", "bbr_known", "memory", "memory_known", "ulp"]
        return Sample(
            at_s=self.at_s,
            **{name: getattr(self, name)[which] for name in columns},
            partly=self.partly,
            damaged=self.damaged,
        )

    def addresses(self, at: int) -> tuple[str, int, str, int]:
        """A socket's own address and port, and its peer's. IPv4-mapped addresses are shown as IPv4."""
        one = self.sockets[at]
        family = int(one["family"])
        return (
            _address(family, one["src"].tobytes()),
            int(one["sport"]),
            _address(family, one["dst"].tobytes()),
            int(one["dport"]),
        )


def _address(family: int, packed: bytes) -> str:
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, packed[:4])
    if packed.startswith(_MAPPED):
        return socket.inet_ntop(socket.AF_INET, packed[12:])
    return socket.inet_ntop(socket.AF_INET6, packed)


def parse(content: Iterable[bytes], at_s: float) -> Sample:
    """Parse sockets from datagrams with netlink messages, sorted by cookie. Truncated or inconsistent messages are
    skipped and counted."""
    parts = list(content)
    return parse_buffer(bytearray().join(parts), list(accumulate(map(len, parts))), at_s)


def parse_buffer(content: bytearray, ends: Sequence[int], at_s: float) -> Sample:
    """The same for datagrams stored one after the other, ending at ``ends``. No reference to ``content`` is kept."""
    if len(content) < (ends[-1] if ends else 0) + layout.TCP_INFO.itemsize:
        content = content + bytes(layout.TCP_INFO.itemsize)
    starts, lengths, partly, damaged = _messages(content, ends)
    content_bytes = np.frombuffer(content, np.uint8)
    begin = np.array(starts, np.int64)
    end = begin + np.array(lengths, np.int64)
    # The kernel may report a socket twice if its table changes during the dump.
    _, order = np.unique(_every(content_bytes, "<u8")[begin + layout.HEADER + _COOKIE], return_index=True)
    begin, end = begin[order], end[order]
    internet = np.isin(content_bytes[begin + layout.HEADER], (socket.AF_INET, socket.AF_INET6))
    damaged += int((~internet).sum())
    begin, end = begin[internet], end[internet]
    sockets = _rows(content_bytes, begin + layout.HEADER, np.full(len(begin), layout.MESSAGE), layout.SOCKET)
    places, broken = _attributes(content_bytes, begin + layout.HEADER + layout.MESSAGE, end)
    none = _nowhere(len(begin))
    info, info_bytes = _structure(content_bytes, places.get(layout.INFO, none), layout.TCP_INFO)
    bbr, bbr_bytes = _structure(content_bytes, places.get(layout.BBRINFO, none), layout.BBR_INFO)
    memory, memory_bytes = _structure(content_bytes, places.get(layout.SKMEMINFO, none), layout.SOCKET_MEMORY)
    cc = _names(content_bytes, *places.get(layout.CONG, none))
    ulp_at, ulp_bytes = places.get(layout.ULP, none)
    # The ULP's name is a nested attribute, so its header comes first.
    ulp = _names(content_bytes, ulp_at + 4, np.maximum(ulp_bytes - 4, 0))
    sample = Sample(
        at_s=at_s,
        sockets=sockets,
        info=info,
        info_bytes=info_bytes,
        cc=cc,
        bbr=bbr,
        bbr_known=bbr_bytes >= layout.BBR_INFO.itemsize,
        memory=memory,
        memory_known=memory_bytes >= 16,
        ulp=ulp,
        partly=partly,
        damaged=damaged + int(broken.sum()),
    )
    return sample.chosen(~broken) if broken.any() else sample


def _messages(content: bytearray, ends: Sequence[int]) -> tuple[list[int], list[int], bool, int]:
    """The start and length of each socket's message."""
    starts: list[int] = []
    lengths: list[int] = []
    at, partly, damaged = 0, False, 0
    header = struct.Struct("=IHH")
    for until in ends:
        while until - at >= layout.HEADER:
            length, kind, flags = header.unpack_from(content, at)
            if length < layout.HEADER or length > until - at:
                damaged += 1
                break
            partly = partly or bool(flags & layout.INTERRUPTED)
            aligned = (length + 3) & ~3
            count = 1
            if kind == layout.BY_FAMILY and length >= layout.HEADER + layout.MESSAGE:
                # Most messages are as long as the previous one: handle a run of equal lengths in one step.
                if until - at >= 2 * aligned and content[at : at + 8] == content[at + aligned : at + aligned + 8]:
                    alike = np.ndarray(((until - at) // aligned,), "<u8", content, at, (aligned,))
                    other = np.flatnonzero(alike != alike[0])
                    count = int(other[0]) if other.size else alike.size
                starts.extend(range(at, at + count * aligned, aligned))
                lengths.extend([length] * count)
            elif kind == layout.BY_FAMILY:
                damaged += 1
            at += aligned * count
        at = until
    return starts, lengths, partly, damaged


def _every(content: NDArray[np.uint8], form: str | np.dtype[np.void]) -> NDArray[Any]:
    """A view with one entry per byte offset, so that an offset is an index."""
    kind = np.dtype(form)
    return np.ndarray((content.size - kind.itemsize + 1,), kind, content, 0, (1,))


Places = tuple["NDArray[np.int64]", "NDArray[np.int64]"]
"""For one kind of attribute, per socket: position and length of its content; 0 if it is missing."""


def _nowhere(count: int) -> Places:
    return np.zeros(count, np.int64), np.zeros(count, np.int64)


def _attributes(
    content: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[dict[int, Places], NDArray[np.bool_]]:
    """Find the attributes of all sockets, in parallel: first attribute of each, then the second, and so on. Also
    returns which sockets have truncated attributes."""
    wanted = (layout.INFO, layout.CONG, layout.BBRINFO, layout.SKMEMINFO, layout.ULP)
    places: dict[int, Places] = {}
    broken = np.zeros(len(begin), bool)
    at, rows = begin.copy(), np.flatnonzero(end - begin >= 4)
    headers = _every(content, "<u4")
    while rows.size:
        place = at[rows]
        header = headers[place].astype(np.int64)
        length, kind = header & 0xFFFF, header >> 16 & 0x3FFF
        good = (length >= 4) & (place + length <= end[rows])
        if not good.all():
            broken[rows[~good]] = True
            rows, place, length, kind = rows[good], place[good], length[good], kind[good]
        for one in np.unique(kind).tolist():
            if one in wanted:
                having = kind == one
                where, size = places.setdefault(one, _nowhere(len(begin)))
                where[rows[having]], size[rows[having]] = place[having] + 4, length[having] - 4
        at[rows] = place + ((length + 3) & ~3)
        rows = rows[end[rows] - at[rows] >= 4]
    return places, broken


def _structure(
    content: NDArray[np.uint8], places: Places, form: np.dtype[np.void]
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    where, size = places
    return _rows(content, where, size, form), size


def _rows(
    content: NDArray[np.uint8], where: NDArray[np.int64], size: NDArray[np.int64], form: np.dtype[np.void]
) -> NDArray[np.void]:
    """Read structures at the given positions, filling shorter ones with 0. ``content`` must have padding at the end."""
    if not where.size:
        return np.zeros(0, form)
    # Copies all structures in one operation.
    rows = _every(content, f"V{form.itemsize}")[where]
    if size.min() < form.itemsize:
        rows.view(np.uint8).reshape(-1, form.itemsize)[np.arange(form.itemsize) >= size[:, None]] = 0
    structures: NDArray[np.void] = rows.view(form)
    return structures


def _names(content: NDArray[np.uint8], where: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.bytes_]:
    """Read zero-terminated names, ignoring the bytes after the zero."""
    if not size.any():
        return np.zeros(size.size, f"S{_LONGEST_NAME}")
    whole = _rows(content, where, size, np.dtype([("letters", "u1", _LONGEST_NAME)]))
    letters = np.ascontiguousarray(whole["letters"])
    letters[np.logical_or.accumulate(letters == 0, axis=1)] = 0
    names: NDArray[np.bytes_] = letters.view(f"S{_LONGEST_NAME}").reshape(-1)
    return names
