"""Captures: pcap and pcapng files, the facts about their TCP connections, and pictures of them.

>>> import sawtooth
>>> capture = sawtooth.read_capture("slow.pcap")
>>> capture.connections[["client", "goodput_bps", "retransmits"]]
"""

from __future__ import annotations

from sawtooth.capture.capture import Capture, read_capture

__all__ = ["Capture", "read_capture"]
