"""Recording: the CSV file of a measurement in progress. It gets its name at the end, so a file with that name is
complete."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from sawtooth.errors import SawtoothError
from sawtooth.io.atomic_io import ASIDE, fresh, writing
from sawtooth.link_estimate.series import COLUMNS


class Recording:
    """Rows go at once to ``.NAME.PID.part`` next to the file; ``finish`` renames it.

    If the process is killed, that part remains, and nothing takes it for a result. Raises SawtoothError
    ``unwritable-output`` (also if the file exists: measurements are never overwritten) and ``disk-full``; rows written
    before are kept.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._aside = self.path.with_name(f".{self.path.name}.{os.getpid()}{ASIDE}")
        self._whole = 0
        with writing(self.path):
            if self.path.exists():
                raise FileExistsError(errno.EEXIST, "it exists, and measurements are never overwritten")
            self._file = os.fdopen(fresh(self._aside), "wb", buffering=0)
        self.add([COLUMNS])
        self._rows = False

    def add(self, rows: Iterable[tuple[str, ...]]) -> None:
        """Adds all rows or none."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        content = text.getvalue().encode()
        with writing(self.path):
            try:
                while content:
                    content = content[self._file.write(content) :]
            except OSError:
                with contextlib.suppress(OSError):
                    self._file.truncate(self._whole)
                raise
            self._whole = self._file.tell()
            self._rows = True

    def finish(self) -> None:
        """Gives the file its name."""
        with writing(self.path):
            os.fsync(self._file.fileno())
            self._file.close()
            # A link fails if the name is taken in the meantime, which a rename would not.
            os.link(self._aside, self.path)
            self._aside.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Removes a part that did not become the file, unless a full disk ended it."""
        if isinstance(error, SawtoothError) and error.code == "disk-full" and self._rows:
            with contextlib.suppress(SawtoothError):
                self.finish()
        self._file.close()
        self._aside.unlink(missing_ok=True)
