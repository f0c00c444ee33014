"""Derives the seeds of netem's generators from the scenario's."""

from __future__ import annotations

_64_BITS = 2**64 - 1


def mixed(value: int) -> int:
    """One step of splitmix64. netem's generator has no warm-up: small seeds would lose the same early packets each
    time."""
    z = (value + 0x9E3779B97F4A7C15) & _64_BITS
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & _64_BITS
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & _64_BITS
    return z ^ z >> 31


def link_seed(seed: int, link: int) -> int:
    """64 bits for one link's loss, unrelated to other links and seeds."""
    return mixed(mixed(seed) ^ mixed(2**32 + link))
