"""The examination: facts about the host, and which engines can run. All are plain JSON values."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sawtooth.doctor import host, probe, tracing
from sawtooth.errors import SawtoothError
from sawtooth.io.tempdirs import directory

MODULE = "module"
"""The value for a kernel module that is on disk but not loaded. The kernel loads it at first use; the examination does
not load it."""

_ENGINE_TOOLS = ("iperf3",)
"""Tools that the engines kernel and netns call. Everything else uses netlink."""

_ENABLE_BBR = (
    "sysctl -w net.core.default_qdisc=fq",
    "sysctl -w net.ipv4.tcp_congestion_control=bbr",
)
"""Commands as in the published study: BBR for all connections, and fq for network cards that are set up later."""


def examine() -> dict[str, Any]:
    """All results of ``sawtooth doctor`` as JSON values. Changes nothing outside a temporary network namespace."""
    tools = host.tools()
    capabilities = _capabilities(tools)
    control = host.congestion_control()
    found: dict[str, Any] = {
        "system": host.system(),
        "privileges": host.privileges(),
        "clock": host.clock(),
        "tracing": _tracing(),
        "tools": tools,
        "capabilities": capabilities,
        "congestion_control": control,
        "enable_bbr": _enable_bbr(control, capabilities),
        "buffers": host.buffers(),
        "offloads": host.offloads(),
    }
    lacks, found["netns_able"] = _netns(found)
    found["engines"] = {
        "model": {"works": True, "reasons": []},
        "sim": _engine(_sim()),
        "kernel": _engine(_kernel(tools)),
        "netns": _engine(lacks),
    }
    found["warnings"] = _warnings(found)
    return found


def _engine(reasons: list[str]) -> dict[str, Any]:
    return {"works": not reasons, "reasons": reasons}


def _capabilities(tools: dict[str, dict[str, str | None]]) -> dict[str, dict[str, bool | str]]:
    """Features of the host's kernel: true, ``module``, or the reason why a feature is missing."""
    waiting = host.modules() - host.loaded_modules()
    asleep = [name for name in probe.QDISCS if f"sch_{name}" in waiting]
    awake = [name for name in probe.QDISCS if name not in asleep]
    order = json.dumps([*(tools[name]["path"] for name in ("ip", "tc", "nft")), awake])
    command = [sys.executable, "-I", "-S", str(Path(probe.__file__)), order]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["the probe failed"]
        return {
            "links": dict.fromkeys(probe.LINKS, reason[0]),
            "qdiscs": dict.fromkeys(probe.QDISCS, reason[0]),
            "nftables": {"numgen": reason[0]},
        }
    found: dict[str, dict[str, bool | str]] = json.loads(done.stdout)
    found["qdiscs"] = {name: found["qdiscs"].get(name, MODULE) for name in probe.QDISCS}
    return found


def _tracing() -> dict[str, Any]:
    """What a guest's kernel needs from the host: ptrace, and a known length of the processor state."""
    command = [sys.executable, "-I", "-S", str(Path(tracing.__file__))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["unknown: it could not be tested"]
        return {"ptrace": reason[0], "xstate_bytes": None}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _sim() -> list[str]:
    return [] if find_spec("sawtooth._core") else ["the core is not built: maturin develop --release"]


def _kernel(tools: dict[str, dict[str, str | None]]) -> list[str]:
    """Boot a guest. Returns the reasons if this fails."""
    from sawtooth.kernel import Guest, find

    reasons = _absent(tools) + _source()
    try:
        kernel = find()
        with directory() as share:
            result = Guest(kernel).run(["true"], share=share, timeout_s=60)
        if result.exit_code:
            reasons.append(f"a guest boots, but runs no programs (status {result.exit_code})")
    except SawtoothError as error:
        reasons.append(_sentence(error))
    return reasons


def _absent(tools: dict[str, dict[str, str | None]]) -> list[str]:
    missing = [name for name in _ENGINE_TOOLS if tools[name]["path"] is None]
    return [f"{name} is missing: install {tools[name]['package']}" for name in missing]


def _source() -> list[str]:
    """Whether the testbed's traffic source is compiled or can be compiled; the reasons if not."""
    from sawtooth.testbed.compiler import source

    try:
        source()
    except SawtoothError as error:
        return [_sentence(error)]
    return []


def _netns(found: dict[str, Any]) -> tuple[list[str], dict[str, bool]]:
    """What the engine netns lacks on this machine, and the features that its own survey of the host's kernel found."""
    may = found["privileges"]
    reasons = _absent(found["tools"])
    if not (may["net_admin"] and may["sys_admin"]):
        reasons.insert(0, "privileges: run it as root (it needs CAP_NET_ADMIN and CAP_SYS_ADMIN)")
        return reasons, {}
    from sawtooth.testbed import kernel_features

    reasons += _source()
    try:
        return reasons, {name: bool(able) for name, able in vars(kernel_features.place()).items()}
    except SawtoothError as error:
        return [*reasons, _sentence(error)], {}


def _sentence(error: SawtoothError) -> str:
    return f"{error.message}: {error.fix}" if error.fix else error.message


def _enable_bbr(control: dict[str, Any], able: dict[str, dict[str, bool | str]]) -> dict[str, Any]:
    """The commands that enable BBR, to be run as root, and what prevents them on this machine."""
    commands, notes = list(_ENABLE_BBR), []
    if able["qdiscs"]["fq"] == MODULE:
        commands.insert(0, "modprobe sch_fq")
    elif str(able["qdiscs"]["fq"]).startswith(probe.NO_NAMESPACE):
        notes.append("it is unknown whether this kernel has fq; BBR paces without it from Linux 4.13 on")
    elif able["qdiscs"]["fq"] is not True:
        notes.append("this kernel has no fq; omit the line for it, since BBR paces without it from Linux 4.13 on")
    if "bbr" in control["modules"]:
        commands.insert(0, "modprobe tcp_bbr")
    elif "bbr" not in control["available"]:
        notes.append("this kernel has no BBR")
    return {"commands": commands, "notes": notes}


def _warnings(found: dict[str, Any]) -> list[str]:
    warnings = []
    large = [name for name, states in found["offloads"].items() if states.get("TSO") or states.get("GSO")]
    if large:
        warnings.append(
            f"segmentation offload is on for {', '.join(large)}: a sending host passes super-packets of up to 64 KiB "
            "to its qdisc, so netem on the sender drops whole super-packets. Put the loss on a forwarding host"
        )
    merging = [name for name, states in found["offloads"].items() if states.get("GRO")]
    if merging:
        warnings.append(
            f"GRO is on for {', '.join(merging)}: if this host forwards, its queues hold and drop merged frames of up "
            "to 64 KiB as one packet. In a scenario, host.offload = true does the same"
        )
    able = found["netns_able"]
    if able and not able["netem"]:
        loss = (
            "loss comes from nftables"
            if able["nftables"]
            else "it cannot drop them either, because there is no nftables"
        )
        warnings.append(f"this kernel has no netem: the engine netns cannot delay packets, and {loss}")
    hz = found["clock"]["hz"]
    if hz != 250:
        warnings.append(f"HZ is {hz} here, 250 in Debian and Ubuntu LTS: TCP's timers have a different resolution")
    maximum = found["buffers"]["tcp_rmem"]
    if isinstance(maximum, list) and maximum[-1] < 12 * 1024 * 1024:
        mib = maximum[-1] / 1024 / 1024
        warnings.append(f"the receive window stays below {mib:.1f} MiB (tcp_rmem): it limits long fat paths")
    return warnings
