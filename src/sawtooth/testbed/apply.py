"""Sets up a plan and removes it, over netlink (pyroute2) and two system calls. Needs root in its place."""

from __future__ import annotations

import array
import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyroute2 import IPRoute, NetlinkError, netns
from pyroute2.netlink import NLA_F_NESTED
from pyroute2.netlink.rtnl import RTM_NEWQDISC, RTM_NEWTCLASS, RTM_NEWTFILTER
from pyroute2.netlink.rtnl.tcmsg import tcmsg

from sawtooth.testbed import qdisc
from sawtooth.testbed.names import NAMESPACES
from sawtooth.testbed.plan import Plan
from sawtooth.testbed.ports import ROOT, Merging

_LOOPBACK = 1
_CREATE = 0x1 | 0x4 | 0x200 | 0x400
"""NLM_F_REQUEST, ACK, EXCL, CREATE."""
_CLONE_NEWNET = 0x40000000
_CLONE_NEWNS = 0x20000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_SIOCETHTOOL = 0x8946
_OFFLOADS = {"tso": 0x1F, "gso": 0x24, "gro": 0x2C}
"""ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO."""
_ETH_P_ALL = 3

_libc = ctypes.CDLL(None, use_errno=True)


class _Raw(tcmsg):  # type: ignore[misc]
    """A traffic control message whose options are already bytes. They are marked as nested, which fq_pie requires."""

    nla_map = tuple(
        (name, "cdata", NLA_F_NESTED) if name in ("TCA_OPTIONS", "TCA_STAB") else (name, kind)
        for name, kind in tcmsg.nla_map
    )


def apply(plan: Plan, *, forks: bool = True) -> dict[tuple[int, str], int]:
    """Makes namespaces, devices, addresses, routes and queueing disciplines. Raises OSError; ``remove`` cleans up.

    ``forks``: each namespace is made in a separate process. In a guest that costs six times as much as all else, but
    a run's random numbers depend on it. Returns the devices' indices by namespace and name.
    """
    sockets: dict[int, IPRoute] = {}
    try:
        for index, namespace in enumerate(plan.namespaces):
            netns.create(namespace.name) if forks else _create(namespace.name)
            with entered(namespace.name):
                sockets[index] = IPRoute()
                _sysctls(namespace.sysctls)
        for index, ip in sockets.items():
            ip.link("set", index=_LOOPBACK, state="up")
            ip.addr("add", index=_LOOPBACK, address=plan.namespaces[index].address, prefixlen=32)
        indices = _devices(plan, sockets)
        for rule in plan.ports.qdiscs:
            index = indices[rule.namespace, rule.device]
            ip, leaf = sockets[rule.namespace], rule.handle | 1
            sizes = qdisc.shorter(rule.tags) if rule.tags else b""
            _traffic_control(ip, RTM_NEWQDISC, index, rule.handle, rule.parent, rule.kind, rule.options, sizes=sizes)
            if rule.leaf:
                _traffic_control(ip, RTM_NEWTCLASS, index, leaf, rule.handle, rule.kind, rule.leaf)
        for choice in plan.ports.filters:
            index, info = indices[choice.namespace, choice.device], 1 << 16 | socket.htons(_ETH_P_ALL)
            _traffic_control(
                sockets[choice.namespace], RTM_NEWTFILTER, index, 0, choice.parent, choice.kind, choice.options, info
            )
        for near in plan.ports.neighbours:
            ip, index = sockets[near.namespace], indices[near.namespace, near.device]
            ip.neigh("replace", dst=near.address, lladdr=near.mac, ifindex=index, state="permanent")
        _routes(plan, sockets, indices)
    finally:
        for ip in sockets.values():
            ip.close()
    if plan.ports.rules:
        from sawtooth.testbed import nftables

        for host in {rule.namespace for rule in plan.ports.rules}:
            with entered(plan.namespace_of(host)):
                nftables.apply([rule for rule in plan.ports.rules if rule.namespace == host])
    return indices


def addressed(plan: Plan, host: int, devices: Sequence[int]) -> None:
    """Also gives the host's address to these of its devices (indices). Programs like dnsmasq answer only where the
    device that a packet came by has one. Raises OSError."""
    with entered(plan.namespace_of(host)), IPRoute() as ip:
        for index in devices:
            if index != _LOOPBACK:
                ip.addr("add", index=index, address=plan.namespaces[host].address, prefixlen=32)


def remove(names: list[str]) -> None:
    """Removes namespaces with all their devices; missing ones are not an error.

    Raises PermissionError without the privilege.
    """
    for name in names:
        if (NAMESPACES / name).exists():
            netns.remove(name)


def try_qdisc(ip: IPRoute, index: int, kind: str, options: bytes) -> bool:
    """Whether the kernel has this discipline with these options: adds it to a device and removes it."""
    try:
        _traffic_control(ip, RTM_NEWQDISC, index, 1 << 16, ROOT, kind, options)
    except NetlinkError:
        return False
    ip.tc("del", index=index, parent=ROOT)
    return True


def knows_qdisc(ip: IPRoute, index: int, kind: str) -> bool:
    """Whether the kernel has a queueing discipline of that name; it may refuse it without options."""
    try:
        _traffic_control(ip, RTM_NEWQDISC, index, 1 << 16, ROOT, kind, b"")
    except NetlinkError as error:
        return bool(error.code != errno.ENOENT)
    ip.tc("del", index=index, parent=ROOT)
    return True


@contextlib.contextmanager
def entered(namespace: str) -> Iterator[None]:
    """Moves this thread into the namespace for the duration of the block; sockets opened there stay there."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        there = os.open(NAMESPACES / namespace, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _setns(there)
        finally:
            os.close(there)
        try:
            yield
        finally:
            _setns(before)
    finally:
        os.close(before)


def _create(namespace: str) -> None:
    """Makes a namespace in this thread, and returns to the one before."""
    path = NAMESPACES / namespace
    path.parent.mkdir(exist_ok=True)
    path.touch(exist_ok=False)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if _libc.unshare(_CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "unshare")
        try:
            if _libc.mount(b"/proc/thread-self/ns/net", str(path).encode(), b"none", _MS_BIND, None):
                raise OSError(ctypes.get_errno(), "mount")
        finally:
            _setns(before)
    finally:
        os.close(before)


def _setns(fd: int) -> None:
    if _libc.setns(fd, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def _sysctls(settings: dict[str, str]) -> None:
    for name, value in settings.items():
        path = Path("/proc/sys") / name
        # A kernel without IPv6 has nothing to disable.
        if "ipv6" not in name or path.exists():
            path.write_text(value)


def _devices(plan: Plan, sockets: dict[int, IPRoute]) -> dict[tuple[int, str], int]:
    """Makes all devices, with offloads off except where super-packets stay whole, and brings them up. Returns their
    indices by namespace and name."""
    ports = plan.ports
    for veth in ports.veths:
        mtu = ports.mtu + veth.tags
        peer = {"ifname": veth.far, "mtu": mtu, "address": veth.far_mac}
        peer["net_ns_fd"] = plan.namespace_of(veth.far_namespace)
        sockets[veth.near_namespace].link("add", ifname=veth.near, kind="veth", mtu=mtu, peer=peer)
    indices: dict[tuple[int, str], int] = {}
    for host, ip in sockets.items():
        indices |= {(host, link.get_attr("IFLA_IFNAME")): link["index"] for link in ip.get_links()}
    for sub in ports.subs:
        ip, parent = sockets[sub.namespace], indices[sub.namespace, sub.parent]
        kind: dict[str, Any] = {"vlan_id": sub.tag} if sub.kind == "vlan" else {"macvlan_mode": "private"}
        if sub.mac:
            kind["address"] = sub.mac
        ip.link("add", ifname=sub.name, kind=sub.kind, link=parent, mtu=ports.mtu, **kind)
        made = ip.link_lookup(ifname=sub.name)[0]
        if sub.target != sub.namespace:
            ip.link("set", index=made, net_ns_fd=plan.namespace_of(sub.target))
            made = sockets[sub.target].link_lookup(ifname=sub.name)[0]
        indices[sub.target, sub.name] = made
    by_host: dict[int, list[str]] = {}
    for host, name in ports.devices():
        if (host, name) in ports.whole:
            continue
        by_host.setdefault(host, []).append(name)
    for host, names in by_host.items():
        with entered(plan.namespace_of(host)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for name in names:
                _offloads_off(control, name)
    for one in ports.merging:
        _merge(plan.namespace_of(one.namespace), one)
    # A sub-interface can come up only after its parent, which may be in another namespace.
    for host, name in ports.devices():
        sockets[host].link("set", index=indices[host, name], state="up")
    return indices


def _offloads_off(control: socket.socket, device: str) -> None:
    """Uses SIOCETHTOOL, an ioctl that never changes. An offload that the device lacks counts as off."""
    for command in _OFFLOADS.values():
        with contextlib.suppress(OSError):
            _offload(control, device, command, 0)


def _merge(namespace: str, one: Merging) -> None:
    """Enables GRO. Its waiting time is set in the namespace's /sys, which a separate process mounts."""
    with entered(namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        _offload(control, one.device, _OFFLOADS["gro"], 1)
        if not one.wait_ns:
            return
        child = os.fork()
        if child == 0:
            try:
                done = _libc.unshare(_CLONE_NEWNS) or _libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)
                done = done or _libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None)
                Path(f"/sys/class/net/{one.device}/gro_flush_timeout").write_text(str(one.wait_ns))
                os._exit(1 if done else 0)
            finally:
                os._exit(1)
    if os.waitpid(child, 0)[1]:
        raise OSError(f"the device {one.device} cannot be told how long GRO waits")


def _offload(control: socket.socket, device: str, command: int, value: int) -> None:
    wanted = array.array("B", struct.pack("=II", command, value))
    request = struct.pack("16sP16x", device.encode(), wanted.buffer_info()[0])
    fcntl.ioctl(control, _SIOCETHTOOL, request)


def _traffic_control(
    ip: IPRoute,
    kind_of: int,
    index: int,
    handle: int,
    parent: int,
    kind: str,
    options: bytes,
    info: int = 0,
    sizes: bytes = b"",
) -> None:
    message = _Raw()
    message["index"], message["handle"], message["parent"], message["info"] = index, handle, parent, info
    message["attrs"] = [["TCA_KIND", kind], ["TCA_OPTIONS", options]]
    if sizes:
        message["attrs"].append(["TCA_STAB", sizes])
    message["header"]["type"], message["header"]["flags"] = kind_of, _CREATE
    ip.nlm_request_batch([message])


def _routes(plan: Plan, sockets: dict[int, IPRoute], indices: dict[tuple[int, str], int]) -> None:
    for route in plan.routes:
        about: dict[str, Any] = {}
        if route.source:
            about["prefsrc"] = route.source
        if route.metrics:
            about["metrics"] = route.metrics
        sockets[route.namespace].route(
            "add",
            dst=f"{route.destination}/32",
            gateway=route.gateway,
            oif=indices[route.namespace, route.device],
            flags=["onlink"],
            table=route.table,
            **about,
        )
    for rule in plan.rules:
        sockets[rule.namespace].rule(
            "add", src=f"{rule.source}/32", dst=f"{rule.destination}/32", table=rule.table, priority=1000
        )
