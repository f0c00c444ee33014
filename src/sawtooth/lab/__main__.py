"""The worker process of the server: ``python -m sawtooth.lab``.

It reads a request from standard input, one line of JSON, and writes frames to standard output. It ends when the server
does, because its standard input then closes.

A frame consists of the length of its head and of its body (four bytes each, little-endian), the head (JSON), and the
body. The body of a ``rows`` frame has the columns that its head names, one after the other. The body of ``answer`` is
JSON. ``error`` has no body.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import struct
import sys
import threading
from pathlib import Path
from typing import Any

from sawtooth.errors import SawtoothError, unforeseen

MEMORY = 6 << 30
"""Limit of the address space in bytes, against hostile files."""
_REPORT_IT = "this is a defect of sawtooth: please report it"


def main() -> None:
    frames = os.dup(1)
    # Send anything printed by accident to standard error, because it is not a frame.
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    line = sys.stdin.buffer.readline()
    threading.Thread(target=_end_with_the_server, daemon=True).start()

    def send(head: dict[str, Any], body: bytes = b"") -> None:
        content = json.dumps(head, allow_nan=False).encode()
        unsent = memoryview(struct.pack("<II", len(content), len(body)) + content + body)
        while unsent:
            unsent = unsent[os.write(frames, unsent) :]

    with contextlib.suppress(BrokenPipeError):
        try:
            _answer(json.loads(line), send)
        except SawtoothError as error:
            send({"kind": "error", **described(error)})
        except BrokenPipeError:
            raise
        except BaseException as error:
            if type(error).__name__ == "PanicException":
                error = SawtoothError("core-failed", f"the core failed: {error}", fix=_REPORT_IT)
            send({"kind": "error", **described(error if isinstance(error, SawtoothError) else unforeseen(error))})


def described(error: SawtoothError) -> dict[str, Any]:
    """An error as JSON values."""
    return {name: getattr(error, name) for name in ("code", "message", "file", "field", "fix")}


def _answer(question: dict[str, Any], send: Any) -> None:
    if question["do"] == "run":
        from sawtooth.lab import native_run, requests

        native_run.run(requests.read(question["text"], question["type"]), question["every_ms"], send)
        return
    if question["do"] == "open":
        from sawtooth.lab import result_page

        page = result_page.page_data(Path(question["directory"]))
    else:
        from sawtooth.lab import comparison_page

        directories = [Path(one) for one in question["directories"]]
        page = comparison_page.page_data(directories, question["within"], question["omit"])
    send({"kind": "answer"}, json.dumps(page, allow_nan=False).encode())


def _end_with_the_server() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main()
