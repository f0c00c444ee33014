"""Reads the host's properties: congestion control, buffers, offloads, HZ, clock, privileges, tools. Changes nothing."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import re
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

TOOLS = {
    "ip": (["ip", "-V"], "iproute2"),
    "tc": (["tc", "-V"], "iproute2"),
    "ss": (["ss", "-V"], "iproute2"),
    "iperf3": (["iperf3", "--version"], "iperf3"),
    "ping": (["ping", "-V"], "iputils-ping"),
    "tcpdump": (["tcpdump", "--version"], "tcpdump"),
    "nft": (["nft", "--version"], "nftables"),
}
"""Each tool, the command that shows its version, and its Debian package."""

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH of ordinary users often lacks sbin, where ip and tc are."""

_CAP_NET_ADMIN = 12
_CAP_SYS_ADMIN = 21

_SIOCETHTOOL = 0x8946
_OFFLOADS = {"TSO": 0x1E, "GSO": 0x23, "GRO": 0x2B}
"""ETHTOOL_GTSO, ETHTOOL_GGSO and ETHTOOL_GGRO of linux/ethtool.h."""


def privileges() -> dict[str, Any]:
    """The current user, and whether it may create and change network namespaces."""
    effective = int(re.findall(r"(?m)^CapEff:\s*(\w+)$", _read("/proc/self/status"))[0], 16)
    return {
        "uid": os.geteuid(),
        "net_admin": bool(effective >> _CAP_NET_ADMIN & 1),
        "sys_admin": bool(effective >> _CAP_SYS_ADMIN & 1),
    }


def tools() -> dict[str, dict[str, str | None]]:
    """Path, version and Debian package of each tool; path and version are None if it is missing."""
    return {name: _tool(name, command, package) for name, (command, package) in TOOLS.items()}


def _tool(name: str, command: list[str], package: str) -> dict[str, str | None]:
    path = shutil.which(name) or shutil.which(name, path=_SYSTEM_PATH)
    if path is None:
        return {"path": None, "version": None, "package": package}
    try:
        ran = subprocess.run(
            [path, *command[1:]], capture_output=True, text=True, errors="replace", timeout=10, stdin=subprocess.DEVNULL
        )
        lines = (ran.stdout + ran.stderr).strip().splitlines()
    except (OSError, subprocess.TimeoutExpired):
        lines = []
    found = re.search(r"\d{8}|\d+(?:\.\d+)+\S*", lines[0]) if lines else None
    return {"path": path, "version": found[0].rstrip(",") if found else None, "package": package}


def congestion_control() -> dict[str, Any]:
    """The congestion control in use, the loaded ones, and those available as modules."""
    loaded = _read("/proc/sys/net/ipv4/tcp_available_congestion_control").split()
    files = {re.sub(r"^tcp_", "", name) for name in modules() if re.fullmatch(r"tcp_[a-z]+", name)}
    return {
        "in_use": _read("/proc/sys/net/ipv4/tcp_congestion_control").strip() or None,
        "available": sorted(loaded),
        "modules": sorted((files - {"diag"}) - set(loaded)),
        "default_qdisc": _read("/proc/sys/net/core/default_qdisc").strip() or None,
    }


def modules() -> frozenset[str]:
    """Names of the modules on disk for the running kernel."""
    listed = _read(f"/lib/modules/{platform.release()}/modules.dep")
    files = re.findall(r"(?m)^([^:\n]+):", listed)
    return frozenset(Path(file).name.partition(".ko")[0].replace("-", "_") for file in files)


def loaded_modules() -> frozenset[str]:
    """Names of the loaded modules."""
    return frozenset(line.partition(" ")[0] for line in _read("/proc/modules").splitlines())


def buffers() -> dict[str, list[int] | int | None]:
    """Limits of socket buffers in bytes; tcp_rmem and tcp_wmem are minimum, default and maximum."""
    found: dict[str, list[int] | int | None] = {}
    for name in ("ipv4/tcp_rmem", "ipv4/tcp_wmem", "core/rmem_max", "core/wmem_max"):
        numbers = [int(word) for word in _read(f"/proc/sys/net/{name}").split()]
        short = name.partition("/")[2]
        found[short] = numbers if len(numbers) > 1 else numbers[0] if numbers else None
    return found


def offloads() -> dict[str, dict[str, bool]]:
    """Segmentation offloads of each network interface except lo."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        for _, interface in socket.if_nameindex():
            if interface != "lo":
                states = {name: _offload(asker, interface, command) for name, command in _OFFLOADS.items()}
                found[interface] = {name: state for name, state in states.items() if state is not None}
    return found


def _offload(asker: socket.socket, interface: str, command: int) -> bool | None:
    value = ctypes.create_string_buffer(struct.pack("II", command, 0))
    request = struct.pack("16sP", interface.encode(), ctypes.addressof(value)).ljust(40, b"\0")
    try:
        fcntl.ioctl(asker, _SIOCETHTOOL, request)
    except OSError:
        return None
    return bool(struct.unpack("II", value.raw[:8])[1])


def clock() -> dict[str, Any]:
    """HZ, from the resolution of the coarse clock (one tick); the clock source and its resolution."""
    coarse = getattr(time, "CLOCK_MONOTONIC_COARSE", 6)
    return {
        "hz": round(1 / time.clock_getres(coarse)),
        "source": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource").strip() or None,
        "resolution_ns": round(time.clock_getres(time.CLOCK_MONOTONIC) * 1e9),
    }


def system() -> dict[str, Any]:
    """Kernel, architecture, processors and memory."""
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
    }


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
