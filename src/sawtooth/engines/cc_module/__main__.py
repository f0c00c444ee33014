"""The process in which modules run, started by ``isolated_process``.

``python -m sawtooth.engines.cc_module PAGE IN OUT``, with three file descriptors.

Standard output and error are a pipe to the parent. Text that a module prints can therefore never become part of an
answer.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from sawtooth import _core
from sawtooth.engines.cc_module.protocol import packed


def main() -> None:
    page, questions, answers = (int(argument) for argument in sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Programs that a module starts do not inherit these descriptors.
    for own in (page, questions, answers):
        os.set_inheritable(own, False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _core.share_watch(page)
    requests = Connection(questions, writable=False)

    def send(*answer: Any) -> None:
        left = memoryview(packed(*answer))
        while left:
            left = left[os.write(answers, left) :]

    simulation: _core.Simulation | None = None
    patience_s = 0
    while True:
        try:
            question, *given = requests.recv()
        except EOFError:
            return
        try:
            if question == "open":
                scenario, captures, opened, places, patience_s = given
                _be_patient(patience_s)
                modules: list[_core.Module] = []
                for library, parameters, name in opened:
                    try:
                        modules.append(_core.Module(library, list(parameters), name))
                    except ValueError as error:
                        send("refused", (len(modules), *error.args))
                        return
                wanted = {flow: modules[place] for flow, place in places.items()}
                if scenario is not None:
                    simulation = _core.Simulation(scenario, captures, wanted)
                send("answer", [module.name for module in modules])
            else:
                assert simulation is not None
                _be_patient(patience_s)
                finished = simulation.advance(*given)
                tables = simulation.take()
                counted = finished, simulation.now_ns, simulation.events, simulation.delivered_packets
                send("answer", counted, tables)
        except ValueError as error:
            send("value", str(error))
        except OSError as error:
            send("system", (error.errno, error.strerror, error.filename))
        except BaseException as error:
            # A panic of the core. PyO3 raises it as a BaseException.
            send("overrun" if str(error) == _core.OVERRUN else "panic", str(error))
            return


def _be_patient(seconds: int) -> None:
    """Set a limit of processor time from now on, at which the kernel kills this process: Python cannot interrupt an
    endless loop in C."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    used = int(spent.ru_utime + spent.ru_stime)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = used + seconds + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


if __name__ == "__main__":
    main()
