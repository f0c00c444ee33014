"""Workers: which workers of a scheduler give the same results as this process, and why the others do not."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from sawtooth.errors import SawtoothError
from sawtooth.run import versions
from sawtooth.sanitize import plain

LOOK_S = 1.0
"""Seconds between checks of the scheduler's workers."""
PATIENCE_S = 10.0
"""Seconds without any worker before this is reported."""
MOST_BAD = 3
"""Invalid answers of a worker before it is no longer used."""
_FEW = 5

_log = logging.getLogger(__name__)


class Crew:
    """``alive`` maps the address of each usable worker to its number of threads; ``refused`` has the reasons for the
    others."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._next = 0.0
        self._since = time.monotonic()
        self._silent = False
        self.alive: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        self._bad: Counter[str] = Counter()

    @property
    def threads(self) -> int:
        return sum(self.alive.values())

    @property
    def only(self) -> list[str] | None:
        """The workers that may receive tasks; None: any."""
        return list(self.alive) if self.refused else None

    def refresh(self, *, at_once: bool = False) -> bool:
        """Checks the scheduler's workers; true if a new one was found. Raises SawtoothError ``no-workers`` if all were
        refused."""
        if not at_once and time.monotonic() < self._next:
            return False
        there: Mapping[str, int] = self._client.nthreads()
        new = [address for address in there if address not in self.alive and address not in self.refused]
        if new:
            self._ask(new)
        self._bad = Counter({address: count for address, count in self._bad.items() if address in there})
        self.refused = {address: why for address, why in self.refused.items() if address in there}
        self.alive = {address: there[address] for address in self.alive if address in there}
        if self.refused and not self.alive:
            message = f"none of {len(self.refused)} workers can be used: {self._reasons()}"
            fix = "install the same sawtooth with the same packages at the workers, and start them again"
            if set(self.refused) <= {address for address, count in self._bad.items() if count >= MOST_BAD}:
                fix = "look at the logs of the workers, and start them again; the same command continues"
            raise SawtoothError("no-workers", message, fix=fix)
        if there:
            self._since = time.monotonic()
        elif not self._silent and time.monotonic() - self._since > PATIENCE_S:
            self._silent = True
            _log.warning("the scheduler has no workers: waiting for them (Ctrl-C ends it)")
        self._next = time.monotonic() + LOOK_S
        return bool(new)

    def blame(self, address: str, why: str) -> None:
        """Counts an invalid answer of this worker. Raises SawtoothError ``no-workers`` if it was the last usable
        one."""
        self._bad[address] += 1
        if address in self.alive and self._bad[address] >= MOST_BAD:
            self._refuse({address: f"{MOST_BAD} of its answers were none; the last: {why}"})
            del self.alive[address]
            self.refresh(at_once=True)

    def _refuse(self, reasons: Mapping[str, str]) -> None:
        self.refused |= reasons
        for address, why in list(reasons.items())[:_FEW]:
            _log.warning("worker %s is not used: %s", address, why)

    def _ask(self, new: list[str]) -> None:
        own = versions()
        answers = self._client.run(versions, workers=new, on_error="return")
        refused = {}
        for address in new:
            found = answers.get(address)
            if found == own:
                self.alive[address] = 0
            elif isinstance(found, dict):
                refused[address] = _differing(own, found)
            elif isinstance(found, ImportError):
                refused[address] = f"it has no sawtooth of this kind ({plain(str(found), 100)})"
            # Otherwise it disappeared during the check; if it returns, it is checked again.
        self._refuse(refused)

    def _reasons(self) -> str:
        reasons = [f"{address}: {why}" for address, why in list(self.refused.items())[:_FEW]]
        return "; ".join(reasons) + ("; …" if len(self.refused) > _FEW else "")


def _differing(own: Mapping[str, str], found: Mapping[str, Any]) -> str:
    names = [name for name in {**own, **found} if own.get(name) != found.get(name)]
    return ", ".join(f"{name} {plain(str(found.get(name)), 40)} there, {own.get(name)} here" for name in names)
