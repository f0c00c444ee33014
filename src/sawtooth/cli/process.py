"""Sets up the process of the command line: its output streams and signals.

All output of the process goes through these streams, which replace control characters that a terminal would obey
(``sawtooth.sanitize.printable``). Only the sequences that update our progress bar are written unchanged, to the
stream's ``own``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from sawtooth.errors import SawtoothError
from sawtooth.io.atomic_io import FULL
from sawtooth.sanitize import printable


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """Within the block, failed writes to standard output raise, failed writes to standard error are ignored, and
    signals end the work.

    Raises SawtoothError ``unwritable-output`` if standard output is closed; writes raise as ``_Output`` describes.
    """
    # Otherwise the next opened file would get the number of a closed stream, and messages would be written into that
    # file.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    with prepared_messages():
        if sys.stdout is None:
            fix = "redirect it: add > /dev/null"
            raise SawtoothError("unwritable-output", "standard output is closed", fix=fix)
        output: Any = _Output(sys.stdout)
        with contextlib.redirect_stdout(output), _ended_by_signals():
            yield


@contextlib.contextmanager
def prepared_messages() -> Iterator[None]:
    """Within the block, text that cannot be written to standard error is dropped, so that the work continues."""
    with open(os.devnull, "w") as nowhere:
        messages: Any = _Messages(sys.stderr or nowhere)
        with contextlib.redirect_stderr(messages):
            yield


class _Messages:
    """A stream whose reader may close it, or whose disk may be full. Text that cannot be written is dropped."""

    def __init__(self, stream: Any, *, raw: bool = False) -> None:
        self._stream = stream
        self._raw = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def own(self) -> _Messages:
        """The same stream, for our own control characters."""
        return type(self)(self._stream, raw=True)

    def write(self, text: str) -> int:
        try:
            self._put(text)
        except OSError:
            self._drop()
        return len(text)

    def _put(self, text: str) -> None:
        text = text if self._raw else printable(text)
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            # For a terminal or file that only accepts ASCII.
            encoding = self._stream.encoding
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            self._drop()

    def _drop(self) -> None:
        """Redirect the stream to /dev/null, so that Python does not try to flush it at exit, fail again, and print an
        error."""
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


class _Output(_Messages):
    """A stream that reports failures: SawtoothError ``disk-full`` or ``unwritable-output``. BrokenPipeError is passed
    on, because it only means that the reader has closed the pipe."""

    def write(self, text: str) -> int:
        if text == "":
            # Click tests a stream with this write and ignores its errors.
            return 0
        try:
            self._put(text)
        except OSError as error:
            raise self._failure(error) from error
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> Exception:
        self._drop()
        if isinstance(error, BrokenPipeError):
            return error
        code = "disk-full" if error.errno in FULL else "unwritable-output"
        fix = "write to a disk with free space; finished work is kept"
        return SawtoothError(code, f"cannot write to standard output: {error.strerror}", fix=fix)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Within the block, SIGINT and SIGTERM end the work cleanly and keep finished results. An ignored signal stays
    ignored.

    Raises KeyboardInterrupt, even if a library has replaced it by its own error, as pydantic does during serialisation.
    """
    came = False

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal came
        came = True
        raise KeyboardInterrupt

    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    ours: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        ours = {number: handler for number, handler in usual.items() if signal.getsignal(number) == handler}
    for number in ours:
        signal.signal(number, interrupt)
    try:
        yield
    except SawtoothError:
        raise
    except Exception as error:
        if came:
            raise KeyboardInterrupt from error
        raise
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
