"""Hostile congestion controls in C, in each function that the core calls."""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import psutil

PROGRAM = "sawtooth.engines.cc_module"
"""The module in the command line of a module's process."""
_DECLARED = """
#include <linux/module.h>
#include <net/tcp.h>
extern int raise(int), usleep(unsigned), close(int), fork(void), setsid(void), pause(void), kill(int, int);
extern int dup2(int, int);
extern unsigned sleep(unsigned);
extern void _exit(int), abort(void), exit(int), *signal(int, void *);
extern long write(int, const void *, unsigned long);
static int harmed;
"""
ACTS = {
    "spins": "for (volatile int i = 0;;) i++;",
    "spins and ignores the limit": "signal(24, (void *)1); for (volatile int i = 0;;) i++;",
    "recurses without end": "deeper(1);",
    "sleeps": "sleep(600);",
    "naps without end": "for (;;) usleep(1000);",
    "stops itself": "raise(19);",
    "kills itself": "raise(9);",
    "aborts": "abort();",
    "exits with 0": "_exit(0);",
    "exits by exit": "exit(0);",
    "divides by zero": "{ volatile int zero = 0; harmed = 1 / zero; }",
    "writes to address 0": "*(volatile int *)0 = 1;",
    "closes all files": "if (!harmed++) for (int i = 0; i < 1024; i++) close(i);",
    "writes to all files": 'if (!harmed++) for (int i = 1; i < 64; i++) write(i, "\\033]52;c;eA==\\007", 12);',
    "joins all files": "if (!harmed++) for (int i = 3; i < 64; i++) dup2(0, i);",
    "forks": "if (!harmed++ && !fork()) pause();",
    "forks, in a session of its own": "if (!harmed++ && !fork()) { setsid(); pause(); }",
    "forks twice": "if (!harmed++ && !fork()) { setsid(); if (fork()) _exit(0); pause(); }",
    "forks at each call": "if (harmed++ < 50 && !fork()) pause();",
    "signals its parent's group": "kill(0, 15);",
    "prints without end": 'for (;;) pr_info("again\\n");',
}
HOOKS = {
    "init": "static void mine_init(struct sock *sk) { ACT }",
    "ssthresh": "static u32 mine_ssthresh(struct sock *sk) { ACT return tcp_reno_ssthresh(sk); }",
    "undo_cwnd": "static u32 mine_undo_cwnd(struct sock *sk) { ACT return tcp_reno_undo_cwnd(sk); }",
    "cong_avoid": "static void mine_cong_avoid(struct sock *sk, u32 ack, u32 acked) "
    "{ ACT tcp_reno_cong_avoid(sk, ack, acked); }",
    "pkts_acked": "static void mine_pkts_acked(struct sock *sk, const struct ack_sample *sample) { ACT }",
    "set_state": "static void mine_set_state(struct sock *sk, u8 state) { ACT }",
    "cwnd_event": "static void mine_cwnd_event(struct sock *sk, enum tcp_ca_event event) { ACT }",
    "in_ack_event": "static void mine_in_ack_event(struct sock *sk, u32 flags) { ACT }",
    "min_tso_segs": "static u32 mine_min_tso_segs(struct sock *sk) { ACT return 2; }",
    "sndbuf_expand": "static u32 mine_sndbuf_expand(struct sock *sk) { ACT return 2; }",
    "release": "static void mine_release(struct sock *sk) { ACT }",
    "cong_control": "static void mine_cong_control(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs) "
    "{ ACT tcp_sk(sk)->snd_cwnd = 10; }",
    "module_init": "",
}
_DEEPER = "static noinline int deeper(volatile int n) { return n > 0 ? deeper(n + 1) + n : 0; }\n"


def source(hook: str, act: str) -> str:
    """A module like Reno, except that one function does that first."""
    given = {"ssthresh": "tcp_reno_ssthresh", "cong_avoid": "tcp_reno_cong_avoid", "undo_cwnd": "tcp_reno_undo_cwnd"}
    given |= {hook: f"mine_{hook}"} if hook != "module_init" else {}
    lines = "".join(f"\t.{name} = {of},\n" for name, of in given.items())
    begins = ACTS[act] if hook == "module_init" else ""
    return (
        _DECLARED
        + _DEEPER
        + HOOKS[hook].replace("ACT", ACTS[act])
        + f'\nstatic struct tcp_congestion_ops mine = {{\n{lines}\t.owner = THIS_MODULE,\n\t.name = "mine",\n}};\n'
        + f"static int __init mine_register(void) {{ {begins} return tcp_register_congestion_control(&mine); }}\n"
        + "module_init(mine_register);\n"
    )


def modules(times: int, rng: random.Random, home: Path) -> Counter[str]:
    """Tries each act in each function, in a random order; hanging modules are ended after 1 s here, not after 10 or
    30.
    """
    import sawtooth.engines.cc_module.isolated_process
    import sawtooth.engines.cc_module.process_watch
    from sawtooth.engines.sim import Sim
    from sawtooth.errors import SawtoothError
    from sawtooth.scenario import Scenario

    sawtooth.engines.cc_module.isolated_process.PATIENCE_S = 1
    sawtooth.engines.cc_module.process_watch.IDLE_S = 1
    sawtooth.engines.cc_module.process_watch.MARGIN_S = 0.5
    os.environ["XDG_CACHE_HOME"] = str(home / "cache")
    held = Counter[str]()
    order = [(hook, act) for hook in HOOKS for act in ACTS]
    rng.shuffle(order)
    path = {"rate": "20 Mbit/s", "rtt": "10 ms", "loss": "1%"}
    for hook, act in order[:times]:
        file = home / "tcp_mine.c"
        file.write_text(source(hook, act))
        scenario = Scenario.from_dict({"duration": "3 s", "path": path, "flows": [{"cc": {"source": str(file)}}]})
        open_before = len(os.listdir("/proc/self/fd"))
        begun, before = time.monotonic(), {one.pid for one in psutil.process_iter()}
        held["tried"] += 1
        try:
            Sim().run(scenario)
            held["ran to its end"] += 1
        except SawtoothError as error:
            right = error.code in ("module-failed", "module-refused")
            held[f"ended: {error.code}" if right else f"OTHER ERROR: {error.code}"] += 1
            if not right:
                print(f"{hook} {act}: {error}", flush=True)
        took = time.monotonic() - begun
        held["within 20 s" if took < 20 else "TOOK LONGER"] += 1
        held["FILES LEFT OPEN"] += len(os.listdir("/proc/self/fd")) > open_before
        left = _left(before)
        held["PROCESSES LEFT"] += bool(left)
        if left or took >= 20:
            print(f"{hook} {act}: {took:.1f} s, left {left}", flush=True)
        for process in left:
            process.kill()
    return held


def _left(before: set[int]) -> list[psutil.Process]:
    """New processes that run modules, checked a moment later."""
    time.sleep(0.2)
    found = []
    for one in psutil.process_iter(["cmdline", "status"]):
        words, ended = one.info["cmdline"] or [], one.info["status"] == psutil.STATUS_ZOMBIE
        if one.pid not in before and not ended and words[:1] == [sys.executable] and PROGRAM in words:
            found.append(one)
    return found
