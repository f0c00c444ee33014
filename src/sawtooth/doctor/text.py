"""The examination in words, for a terminal."""

from __future__ import annotations

from typing import Any

from sawtooth.doctor.examination import MODULE

_FIXED = 2696
"""Bytes of processor state that user-mode Linux up to 6.12 sets, without our edit."""


def words(found: dict[str, Any]) -> str:
    """One section per topic, the most important first."""
    system, may, clock = found["system"], found["privileges"], found["clock"]
    who = "root" if may["uid"] == 0 else f"user {may['uid']}"
    rights = [name for name in ("net_admin", "sys_admin") if may[name]]
    lines = ["engines"]
    for name, state in found["engines"].items():
        lines.append(f"  {name:8} {'works' if state['works'] else 'does not work'}")
        lines += [f"           - {reason}" for reason in state["reasons"]]
    lines += ["", "host"]
    lines.append(f"  kernel   {system['kernel']} ({system['machine']}), HZ {clock['hz']}")
    lines.append(f"  machine  {system['cpus']} processors, {system['memory_bytes'] / 2**30:.1f} GiB of memory")
    lines.append(f"  clock    {clock['source'] or 'unknown'}, resolution {clock['resolution_ns']} ns")
    lines.append(f"  guests   {_tracing(found['tracing'])}")
    lines.append(f"  you      {who}; capabilities: {', '.join(rights) or 'neither net_admin nor sys_admin'}")
    lines += ["", "tools"]
    for name, tool in found["tools"].items():
        version = (
            f"missing (package {tool['package']})" if tool["path"] is None else tool["version"] or "version unknown"
        )
        lines.append(f"  {name:8} {version}")
    lines += ["", "this host's kernel"]
    for topic, states in found["capabilities"].items():
        lines += _states(topic, states)
    control = found["congestion_control"]
    lines += ["", "congestion control"]
    lines.append(f"  in use     {control['in_use']}, default qdisc {control['default_qdisc']}")
    lines.append(f"  available  {' '.join(control['available'])}")
    if control["modules"]:
        lines.append(f"  modules    {' '.join(control['modules'])} (not loaded)")
    lines.append("  to enable BBR with fq, as root:")
    lines += [f"    {command}" for command in found["enable_bbr"]["commands"]]
    lines += [f"    note: {note}" for note in found["enable_bbr"]["notes"]]
    lines += ["", "socket buffers"]
    for name, value in found["buffers"].items():
        shown = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        lines.append(f"  {name:9} {shown} bytes" + (" (minimum, default, maximum)" if isinstance(value, list) else ""))
    lines += ["", "offloads"]
    for interface, states in found["offloads"].items():
        shown = ", ".join(f"{name} {'on' if on else 'off'}" for name, on in states.items())
        lines.append(f"  {interface:9} {shown or 'not told'}")
    if not found["offloads"]:
        lines.append("  no interface but lo")
    if found["warnings"]:
        lines += ["", *(f"warning: {warning}" for warning in found["warnings"])]
    return "\n".join(lines)


def _tracing(found: dict[str, Any]) -> str:
    allowed = "ptrace works" if found["ptrace"] is True else f"need ptrace, which does not work: {found['ptrace']}"
    length = found["xstate_bytes"]
    if length is None:
        return f"{allowed}; the size of the processor's state is unknown"
    wide = ", more than Linux up to 6.12 expects; kernels built here allow for it" if length > _FIXED else ""
    return f"{allowed}; the processor's state (XSAVE) is {length:,} bytes{wide}"


def _states(topic: str, states: dict[str, bool | str]) -> list[str]:
    there = [name for name, state in states.items() if state is True]
    asleep = [name for name, state in states.items() if state == MODULE]
    reasons: dict[str, list[str]] = {}
    for name, state in states.items():
        if state is not True and state != MODULE:
            reasons.setdefault(str(state), []).append(name)
    lines = [f"  {topic:9} {' '.join(there) or 'none'}"]
    if asleep:
        lines.append(f"            modules, loaded at first use: {' '.join(asleep)}")
    lines += [f"            not {' '.join(names)}: {reason}" for reason, names in reasons.items()]
    return lines
