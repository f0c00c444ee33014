"""Kernel features: what this host's kernel offers a testbed, found by trying it in a separate namespace."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import socket
from collections.abc import Iterable
from pathlib import Path

from sawtooth.errors import SawtoothError
from sawtooth.testbed.names import prefix
from sawtooth.testbed.target_kernel import Place

_CONFIGURATIONS = ("/proc/config.gz", "/boot/config-{release}", "/lib/modules/{release}/config")


def place() -> Place:
    """Raises SawtoothError ``tool-missing`` without the privileges, namespaces or veth that everything needs."""
    from pyroute2 import IPRoute, NetlinkError, netns

    from sawtooth.testbed import qdisc
    from sawtooth.testbed.apply import entered, remove, try_qdisc

    if os.geteuid() != 0:
        fix = "run it as root, or use --engine kernel, which needs no privileges"
        raise SawtoothError("tool-missing", "the engine netns needs root: it makes network namespaces", fix=fix)
    name = prefix() + "survey"
    try:
        netns.create(name)
        with entered(name), IPRoute() as ip:
            ip.link("add", ifname="a", kind="veth", peer="b")
            index = ip.link_lookup(ifname="a")[0]
            sub = {"vlan": False, "macvlan": False}
            for kind in sub:
                with contextlib.suppress(NetlinkError):
                    about = {"vlan_id": 2} if kind == "vlan" else {"macvlan_mode": "private"}
                    ip.link("add", ifname=f"a{kind}", kind=kind, link=index, **about)
                    sub[kind] = True
            netem = try_qdisc(ip, index, "netem", qdisc.netem())
            if not netem and not try_qdisc(ip, index, "tbf", qdisc.tbf(rate_bps=10**9, burst_bytes=65536)):
                fix = "modprobe sch_netem sch_tbf, or use --engine kernel"
                raise SawtoothError("tool-missing", "this kernel has neither netem nor tbf", fix=fix)
            dualpi2 = try_qdisc(ip, index, "dualpi2", qdisc.any_dualpi2())
            return Place(netem=netem, nftables=_nftables(), virtual=False, dualpi2=dualpi2, **sub)
    except (OSError, NetlinkError) as error:
        fix = "run it as root on the host itself, not in a container without CAP_NET_ADMIN and CAP_SYS_ADMIN"
        raise SawtoothError(
            "tool-missing", f"namespaces and veth pairs cannot be made here: {error}", fix=fix
        ) from error
    finally:
        remove([name])


def lacking(kinds: Iterable[str]) -> set[str]:
    """The queueing disciplines that this host's kernel lacks. Has the same requirements as ``place``."""
    from pyroute2 import IPRoute, netns

    from sawtooth.testbed.apply import entered, knows_qdisc, remove

    name = prefix() + "kinds"
    try:
        netns.create(name)
        with entered(name), IPRoute() as ip:
            ip.link("add", ifname="a", kind="veth", peer="b")
            index = ip.link_lookup(ifname="a")[0]
            return {kind for kind in kinds if not knows_qdisc(ip, index, kind)}
    finally:
        remove([name])


def _nftables() -> bool:
    from sawtooth.testbed import nftables
    from sawtooth.testbed.ports import LossRule

    try:
        nftables.apply([LossRule(0, "100.64.0.0", "survey", 1)])
    except OSError:
        return False
    return True


def hz() -> int | None:
    """The timer tick with which this host's kernel was built; None if unknown."""
    for pattern in _CONFIGURATIONS:
        path = Path(pattern.format(release=os.uname().release))
        with contextlib.suppress(OSError):
            text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
            if found := re.search(r"^CONFIG_HZ=(\d+)$", text, re.MULTILINE):
                return int(found[1])
    return None


def has_congestion_control(name: str) -> bool:
    """Whether a socket can use it; the kernel loads its module if there is one."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        try:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError:
            return False
    return True
