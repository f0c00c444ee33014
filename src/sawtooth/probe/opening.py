"""Opens the right transport, or names the missing capability."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from sawtooth.errors import InputError, SawtoothError
from sawtooth.probe.icmp import Ping, Raw
from sawtooth.probe.transport import Target, Transport, failed
from sawtooth.probe.udp import Udp

PROTOCOLS = ("icmp", "udp")
_REFUSED = (errno.EACCES, errno.EPERM)


def open_transport(target: Target, protocol: str = "icmp", *, sockets: Sequence[str] = ("ping", "raw")) -> Transport:
    """For ICMP a ping socket if net.ipv4.ping_group_range allows it, else a raw one; UDP needs no privilege.

    ``sockets`` are the kinds to try for ICMP, in this order. Raises SawtoothError ``missing-capability``,
    ``probe-failed`` (the system has no such sockets, or no route), ``bad-usage``.
    """
    nonce = secrets.randbits(32)
    if protocol not in PROTOCOLS:
        fix = f"choose one of: {', '.join(PROTOCOLS)}"
        raise InputError("bad-usage", f"there is no protocol {protocol!r}", field="protocol", fix=fix)
    kinds: dict[str, type[Ping] | type[Raw] | type[Udp]] = {"ping": Ping, "raw": Raw, "udp": Udp}
    wanted = ("udp",) if protocol == "udp" else tuple(sockets)
    refusals = []
    for kind in wanted:
        try:
            return kinds[kind](target, nonce)
        except OSError as error:
            if error.errno not in (*_REFUSED, errno.EPROTONOSUPPORT):
                raise failed(error, target) from error
            refusals.append(f"{kind} socket: {error.strerror}")
    raise _missing(refusals)


def _missing(refusals: list[str]) -> SawtoothError:
    try:
        allowed = Path("/proc/sys/net/ipv4/ping_group_range").read_text().split()
    except OSError:
        allowed = ["?", "?"]
    message = (
        f"no ICMP socket may be opened ({'; '.join(refusals)}): the capability CAP_NET_RAW is missing, and "
        f"net.ipv4.ping_group_range is {' '.join(allowed)}, without the group {os.getegid()}"
    )
    fix = 'as root: sysctl -w net.ipv4.ping_group_range="0 2147483647"; or --protocol udp, '
    return SawtoothError("missing-capability", message, fix=fix + "which needs neither")
