"""Explain: one answer from captures, ss, iperf3, ping, mtr and this host: what limits a connection, where data is lost,
what the path is like, what would help, and how certain each is."""

from sawtooth.explain.explain import explain
from sawtooth.explain.explanation import Explanation, Gain
from sawtooth.explain.live import live
from sawtooth.explain.page import page
from sawtooth.explain.text import words

__all__ = ["Explanation", "Gain", "explain", "live", "page", "words"]
