"""A worker of ``--cluster local``: one thread, for one scheduler; ends when its standard input does.

    python -m sawtooth.cluster tcp://127.0.0.1:PORT DIRECTORY

The first line of its standard input is where it finds modules, a JSON list.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading


def main() -> None:
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    address, place = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = sys.stdin.buffer.readline()
    if not line:
        return
    sys.path[:] = json.loads(line)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    asyncio.run(_work(address, place))


async def _work(address: str, place: str) -> None:
    from distributed import Worker

    async with Worker(address, nthreads=1, local_directory=place, memory_limit=0, dashboard=False) as worker:
        await worker.finished()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
