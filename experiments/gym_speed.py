"""How many decisions a minute and core the environments take: step by ACK, round trip and time.

python experiments/gym_speed.py [--seconds 3]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from sawtooth.gym import Observations, SawtoothEnv, SawtoothVectorEnv, play
from sawtooth.gym.environment import PATH

SCENARIO = PATH | {"duration": "60 s"}
WINDOW = 60.0


def vector(every: str, count: int, seconds: float) -> float:
    env = SawtoothVectorEnv(SCENARIO, count, every=every)
    env.reset(seed=1)
    actions, begun, decisions = np.full((count, 1), WINDOW), time.process_time(), 0
    while time.process_time() - begun < seconds:
        env.step(actions)
        decisions += count
    return decisions / (time.process_time() - begun)


def single(every: str, seconds: float) -> float:
    env = SawtoothEnv(SCENARIO, every=every)
    env.reset(seed=1)
    action, begun, decisions = np.array([WINDOW]), time.process_time(), 0
    while time.process_time() - begun < seconds:
        if env.step(action)[3]:
            env.reset()
        decisions += 1
    return decisions / (time.process_time() - begun)


def function(every: str) -> float:
    decisions = 0

    def decide(_: Observations) -> float:
        nonlocal decisions
        decisions += 1
        return WINDOW

    begun = time.process_time()
    play(SCENARIO, lambda: decide, every=every)
    return decisions / (time.process_time() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    seconds = parser.parse_args().seconds
    print("| decisions | SawtoothEnv | 64 in SawtoothVectorEnv | play |\n|---|---|---|---|")
    for every in ("ack", "rtt", "10 ms"):
        rates = single(every, seconds), vector(every, 64, seconds), function(every)
        print(f"| {every} | " + " | ".join(f"{rate * 60 / 1e6:.1f} million" for rate in rates) + " |")


if __name__ == "__main__":
    main()
