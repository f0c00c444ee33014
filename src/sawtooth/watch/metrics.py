"""Metrics: samples for Prometheus, on the loopback interface. Labels are congestion controls and limits only, so peers
cannot create new series."""

from __future__ import annotations

import numpy as np
from prometheus_client import CollectorRegistry, Gauge, start_http_server

from sawtooth.errors import SawtoothError
from sawtooth.io.closing import Closing
from sawtooth.watch.limit import LIMITS
from sawtooth.watch.watcher import LiveMoment

LOOPBACK = "127.0.0.1"
MOST_CONTROLS = 16
"""Number of congestion controls with their own series. All others are counted as "other"."""


class Metrics(Closing):
    """Serves the metrics until it is closed."""

    def __init__(self, port: int) -> None:
        """Raises SawtoothError ``port-taken``."""
        self._registry = CollectorRegistry()
        labels = ("cc", "limit")
        self._count = self._gauge("connections", "TCP connections", labels)
        self._goodput = self._gauge("goodput_bits_per_second", "Acknowledged since the previous sample", labels)
        self._segments = self._gauge("window_segments", "Data segments sent in the window", labels)
        self._lost = self._gauge("window_lost_segments", "Of these, lost", labels)
        self._total = self._gauge("connections_total", "All connections, before the filter", ())
        self._controls: list[str] = []
        try:
            self._server, self._thread = start_http_server(port, addr=LOOPBACK, registry=self._registry)
        except OSError as error:
            message = f"port {port} cannot be opened: {error.strerror}"
            raise SawtoothError("port-taken", message, field="--prometheus", fix="choose another port") from error

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        """The port in use."""
        return int(self._server.server_port)

    def add(self, seen: LiveMoment) -> None:
        """Add a sample's sums by congestion control and limit."""
        changes = seen.changes
        names = np.array([self._name(name) for name in np.unique(changes.sample.cc).tolist()] or ["none"])
        _, which = np.unique(changes.sample.cc, return_inverse=True)
        values = (np.ones(len(changes)), changes.goodput_bps, changes.segments, changes.lost)
        gauges = (self._count, self._goodput, self._segments, self._lost)
        for gauge in gauges:
            gauge.clear()
        for number, name in enumerate(names.tolist()):
            for limit, said in enumerate(LIMITS):
                of = (which == number) & (seen.limit == limit) if len(changes) else np.zeros(0, bool)
                if of.any():
                    for gauge, value in zip(gauges, values, strict=True):
                        gauge.labels(name, said).inc(float(np.nansum(value[of])))
        self._total.set(seen.total)

    def _gauge(self, name: str, meaning: str, labels: tuple[str, ...]) -> Gauge:
        return Gauge(f"sawtooth_{name}", meaning, labels, registry=self._registry)

    def _name(self, cc: bytes) -> str:
        name = cc.decode("ascii", "replace") or "none"
        if name not in self._controls and len(self._controls) < MOST_CONTROLS:
            self._controls.append(name)
        return name if name in self._controls else "other"
