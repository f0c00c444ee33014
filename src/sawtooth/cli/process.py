"""What the command line makes of its process: streams that may fail, and signals that end it.

All that any part of the process prints goes through these streams, and they let nothing through that a terminal would
obey: ``sawtooth.plain.printable``. Only what moves a bar of our own is written as it is, to the stream's ``own``.
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
from sawtooth.plain import printable
from sawtooth.storage import FULL


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """Standard output tells when it cannot be written, standard error never stops the work, signals end it.

    Raises SawtoothError ``unwritable-output`` when standard output is closed; what is written inside raises as
    ``_Output`` says.
    """
    # A closed stream's number would go to the next file that is opened, and messages into that file.
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
    """Standard error never stops the work: what cannot be written there is dropped."""
    with open(os.devnull, "w") as nowhere:
        messages: Any = _Messages(sys.stderr or nowhere)
        with contextlib.redirect_stderr(messages):
            yield


class _Messages:
    """A stream whose reader may go away, or whose disk may be full: what cannot be written is dropped."""

    def __init__(self, stream: Any, *, raw: bool = False) -> None:
        self._stream = stream
        self._raw = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def own(self) -> _Messages:
        """The same, for control characters of our own."""
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
            # A terminal or file that takes ASCII only.
            encoding = self._stream.encoding
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            self._drop()

    def _drop(self) -> None:
        """Leaves Python nothing to flush at its end: that would fail once more, and say so."""
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


class _Output(_Messages):
    """A stream whose failure is told: SawtoothError ``disk-full`` or ``unwritable-output``; BrokenPipeError as it is,
    since whoever read it has seen enough.
    """

    def write(self, text: str) -> int:
        if text == "":
            # Click tries a stream with it, and passes over what that raises.
            return 0
        try:
            self._put(text)
        except OSError as error:
            raise self._told(error) from error
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise self._told(error) from error

    def _told(self, error: OSError) -> Exception:
        self._drop()
        if isinstance(error, BrokenPipeError):
            return error
        code = "disk-full" if error.errno in FULL else "unwritable-output"
        fix = "write to a disk with free space; finished work is kept"
        return SawtoothError(code, f"cannot write to standard output: {error.strerror}", fix=fix)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGINT and SIGTERM end the work cleanly, with what is finished kept. Where one is ignored it stays so.

    Raises KeyboardInterrupt, also where a library made an error of its own of it, as pydantic does while it serialises.
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
