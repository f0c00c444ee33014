"""Words that people bring along from other tools, or write in another table: the field that does it."""

from __future__ import annotations

from collections.abc import Sequence

_SAME = {
    "rate": ("bandwidth", "bw", "capacity", "speed", "bitrate"),
    "queue": ("buffer", "buffer_size", "qdisc", "aqm", "queue_size"),
    "cc": ("congestion_control", "congestion", "ca", "algorithm", "tcp"),
    "loss": ("plr", "drop", "packet_loss"),
    "duration": ("time", "length"),
    "count": ("parallel", "connections", "streams"),
    "rtt": ("delay", "latency", "ping"),
    "delay": ("rtt", "latency"),
    "bytes": ("size", "transfer"),
}
"""iperf3's, tc's and netem's words for fields, where a table has those."""
_PATH = ("rate", "rtt", "queue", "loss", "ack_loss", "reverse_rate", "jitter", "reorder", "trace", "policer", "changes")
_HOST = {"mtu": "mss", "initcwnd": "initial_window"} | {
    name: name for name in ("mss", "hz", "ecn", "sack", "timestamps", "initial_window")
}


def elsewhere(location: Sequence[int | str], fields: Sequence[str]) -> str | None:
    """A fix for an unknown field, where another one does what it says. ``fields`` are those of its table."""
    word, table = str(location[-1]), str(location[0]) if len(location) > 1 else ""
    of_application = table == "flows" and word in ("rate", *_SAME["rate"])
    if of_application:
        return 'of the bottleneck: path.rate; of what an application writes: source = { kind = "rate", rate = "…" }'
    for meant, words in _SAME.items():
        if word in words and meant in fields:
            return f'it is called "{meant}" here'
    if word in _HOST:
        return f"hosts have it: host.{_HOST[word]}"
    if table in ("", "flows", "host", "hosts", "probes") and word in _PATH:
        return f"the topology's table has it: path.{word}"
    return None
