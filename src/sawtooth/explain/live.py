"""A connection of this host, sampled by ``sock_diag`` for some seconds, as one of ``explain``'s inputs."""

from __future__ import annotations

from collections.abc import Callable

from sawtooth.errors import InputError, SawtoothError
from sawtooth.explain.inputs import Transfer
from sawtooth.watch import Connection, Connections, Watcher
from sawtooth.watch.expected import HELD, observed
from sawtooth.watch.sampler import samples

SECONDS = 10
LEAST, MOST = 6, 600
_FIX = "run it while data is sent, on the host that sends; sawtooth watch lists the connections"


def live(
    connection: str | None = None,
    *,
    seconds: int = SECONDS,
    netns: str | None = None,
    progress: Callable[[float], None] | None = None,
) -> Transfer:
    """The connection with ``connection`` in its addresses, or the one that sends most, over that many seconds.

    Raises SawtoothError: ``not-a-measurement`` if none sends, ``unknown-name`` if ``connection`` is in the addresses of
    none, ``out-of-range``, and as ``Connections`` and ``Watcher.sample`` do.
    """
    if not LEAST <= seconds <= MOST:
        raise InputError("out-of-range", f"{seconds} s", field="--seconds", fix=f"choose {LEAST} to {MOST}")
    fastest: dict[str, float] = {}
    found: list[Connection] = []
    with Connections(netns) as source:
        for number, seen in enumerate(samples(Watcher(source, samples=seconds), 1.0, seconds), 1):
            found = [one for one in seen.first() if connection is None or connection in f"{one.begins} {one.ends}"]
            for one in found:
                fastest[one.cookie] = max(fastest.get(one.cookie, 0.0), one.delivery_bps or 0.0)
            if progress is not None:
                progress(number / seconds)
    if not found and connection is not None:
        message = f'"{connection}" is in the addresses of no open connection'
        fix = "give part of an address that sawtooth watch --once prints"
        raise InputError("unknown-name", message, field="--connection", fix=fix)
    found = [one for one in found if one.mean_bps]
    if not found:
        raise SawtoothError("not-a-measurement", f"no connection sent data in {seconds} s", fix=_FIX)
    best = max(found, key=lambda one: one.mean_bps or 0.0)
    name = f"live, {best.begins} → {best.ends}"
    refused = None
    seen_as = observed(best, fastest.get(best.cookie))
    try:
        if best.limit in HELD:
            raise InputError("application-limited", HELD[best.limit], fix=_FIX)
        seen_as.check()
    except InputError as error:
        refused = error
    return Transfer(name, None if refused else seen_as, refused, connection=best)
