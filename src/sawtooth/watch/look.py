"""Look: all connections at one moment, in columns, out of the bytes that sock_diag sends."""

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
"""Of a congestion control (TCP_CA_NAME_MAX), and of an upper protocol."""


@dataclass(frozen=True)
class Look:
    """Each array has one entry a socket. ``at_s`` is of a clock that only goes forward. ``info_bytes`` is how much of
    ``tcp_info`` the kernel told: what is beyond is 0 in ``info`` and NaN in ``field``. ``partly``: sockets changed
    while they were told, so one may be missing or be there twice. ``damaged`` counts messages that made no sense.
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
        """A socket's own number, never used again while the kernel runs."""
        return np.ascontiguousarray(self.sockets["cookie"])

    def field(self, name: str) -> NDArray[np.float64]:
        """A field of ``tcp_info``; NaN where the kernel did not tell it."""
        values = self.info[name].astype(np.float64)
        values[self.info_bytes < layout.offset(layout.TCP_INFO, name) + layout.TCP_INFO[name].itemsize] = np.nan
        return values

    @cached_property
    def bbr_bps(self) -> NDArray[np.float64]:
        """What BBR takes for the bottleneck's rate, in bit/s; NaN of other controls."""
        rate = (self.bbr["bw_hi"].astype(np.float64) * 2**32 + self.bbr["bw_lo"]) * 8
        return np.where(self.bbr_known, rate, np.nan)

    def chosen(self, which: NDArray[np.bool_] | NDArray[np.intp]) -> Look:
        """The same of some sockets."""
        columns = ["sockets", "info", "info_bytes", "cc", "bbr", "bbr_known", "memory", "memory_known", "ulp"]
        return Look(
            self.at_s,
            **{name: getattr(self, name)[which] for name in columns},
            partly=self.partly,
            damaged=self.damaged,
        )

    def addresses(self, at: int) -> tuple[str, int, str, int]:
        """Of a socket: its own address and port, its peer's; IPv4 in IPv6 as IPv4."""
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


def parse(content: Iterable[bytes], at_s: float) -> Look:
    """Sockets out of datagrams of netlink messages, in the order of their cookies; what is cut or contradicts itself is
    left out and counted.
    """
    parts = list(content)
    return parse_buffer(bytearray().join(parts), list(accumulate(map(len, parts))), at_s)


def parse_buffer(content: bytearray, ends: Sequence[int], at_s: float) -> Look:
    """The same of datagrams one behind the other, that end at ``ends``. Nothing of ``content`` is kept."""
    if len(content) < (ends[-1] if ends else 0) + layout.TCP_INFO.itemsize:
        content = content + bytes(layout.TCP_INFO.itemsize)
    starts, lengths, partly, damaged = _messages(content, ends)
    told = np.frombuffer(content, np.uint8)
    begin = np.array(starts, np.int64)
    end = begin + np.array(lengths, np.int64)
    # A kernel tells the same socket twice at times, when its table moves meanwhile.
    _, order = np.unique(_every(told, "<u8")[begin + layout.HEADER + _COOKIE], return_index=True)
    begin, end = begin[order], end[order]
    known = np.isin(told[begin + layout.HEADER], (socket.AF_INET, socket.AF_INET6))
    damaged += int((~known).sum())
    begin, end = begin[known], end[known]
    sockets = _rows(told, begin + layout.HEADER, np.full(len(begin), layout.MESSAGE), layout.SOCKET)
    places, broken = _attributes(told, begin + layout.HEADER + layout.MESSAGE, end)
    none = _nowhere(len(begin))
    info, info_bytes = _structure(told, places.get(layout.INFO, none), layout.TCP_INFO)
    bbr, bbr_bytes = _structure(told, places.get(layout.BBRINFO, none), layout.BBR_INFO)
    memory, memory_bytes = _structure(told, places.get(layout.SKMEMINFO, none), layout.SOCKET_MEMORY)
    cc = _names(told, *places.get(layout.CONG, none))
    ulp_at, ulp_bytes = places.get(layout.ULP, none)
    # The name is an attribute within: its header first.
    ulp = _names(told, ulp_at + 4, np.maximum(ulp_bytes - 4, 0))
    look = Look(
        at_s,
        sockets,
        info,
        info_bytes,
        cc,
        bbr,
        bbr_bytes >= layout.BBR_INFO.itemsize,
        memory,
        memory_bytes >= 16,
        ulp,
        partly,
        damaged + int(broken.sum()),
    )
    return look.chosen(~broken) if broken.any() else look


def _messages(content: bytearray, ends: Sequence[int]) -> tuple[list[int], list[int], bool, int]:
    """Where each socket's message begins and how long it is."""
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
                # Most are as long as the one before: all of a run at once.
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


def _every(told: NDArray[np.uint8], form: str | np.dtype[np.void]) -> NDArray[Any]:
    """One entry a byte, so that a place is an index."""
    kind = np.dtype(form)
    return np.ndarray((told.size - kind.itemsize + 1,), kind, told, 0, (1,))


Places = tuple["NDArray[np.int64]", "NDArray[np.int64]"]
"""Of a kind of attribute, for each socket: where its content is, and how long; 0 where there is none."""


def _nowhere(count: int) -> Places:
    return np.zeros(count, np.int64), np.zeros(count, np.int64)


def _attributes(
    told: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[dict[int, Places], NDArray[np.bool_]]:
    """The attributes of all sockets, one after the other, of all at once. Also which sockets' are broken off."""
    wanted = (layout.INFO, layout.CONG, layout.BBRINFO, layout.SKMEMINFO, layout.ULP)
    places: dict[int, Places] = {}
    broken = np.zeros(len(begin), bool)
    at, rows = begin.copy(), np.flatnonzero(end - begin >= 4)
    headers = _every(told, "<u4")
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
    told: NDArray[np.uint8], places: Places, form: np.dtype[np.void]
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    where, size = places
    return _rows(told, where, size, form), size


def _rows(
    told: NDArray[np.uint8], where: NDArray[np.int64], size: NDArray[np.int64], form: np.dtype[np.void]
) -> NDArray[np.void]:
    """Structures from places of their own, filled up with 0 where they are shorter. ``told`` has room behind."""
    if not where.size:
        return np.zeros(0, form)
    # A structure is copied at once.
    rows = _every(told, f"V{form.itemsize}")[where]
    if size.min() < form.itemsize:
        rows.view(np.uint8).reshape(-1, form.itemsize)[np.arange(form.itemsize) >= size[:, None]] = 0
    found: NDArray[np.void] = rows.view(form)
    return found


def _names(told: NDArray[np.uint8], where: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.bytes_]:
    """Words that end with a zero byte, whatever follows it."""
    if not size.any():
        return np.zeros(size.size, f"S{_LONGEST_NAME}")
    whole = _rows(told, where, size, np.dtype([("letters", "u1", _LONGEST_NAME)]))
    letters = np.ascontiguousarray(whole["letters"])
    letters[np.logical_or.accumulate(letters == 0, axis=1)] = 0
    found: NDArray[np.bytes_] = letters.view(f"S{_LONGEST_NAME}").reshape(-1)
    return found
