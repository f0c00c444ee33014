"""Traces a child process as a guest's kernel does, to test whether this is allowed and how long the processor state is.

Run as a program. It prints JSON: ``ptrace``, true or the reason why not, and ``xstate_bytes``, the length of the host's
processor state (null if unknown). Standard library only: it runs without site packages.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
from typing import Any

_TRACEME, _GETREGSET = 0, 0x4204
_NT_X86_XSTATE = 0x202
_ROOM = 1 << 20


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def trace() -> dict[str, Any]:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    libc.ptrace.restype = ctypes.c_long
    child = os.fork()
    if child == 0:
        refused = libc.ptrace(_TRACEME, 0, None, None)
        if not refused:
            os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(min(ctypes.get_errno(), 255))
    _, status = os.waitpid(child, 0)
    if not os.WIFSTOPPED(status):
        return {"ptrace": os.strerror(os.waitstatus_to_exitcode(status)), "xstate_bytes": None}
    room = ctypes.create_string_buffer(_ROOM)
    vector = _Vector(ctypes.addressof(room), _ROOM)
    refused = libc.ptrace(_GETREGSET, child, _NT_X86_XSTATE, ctypes.byref(vector))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return {"ptrace": True, "xstate_bytes": None if refused else vector.length}


if __name__ == "__main__":
    print(json.dumps(trace()))
