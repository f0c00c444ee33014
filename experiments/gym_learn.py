"""Learns a congestion control: an evolution strategy on three networks, judged on these and on others.

    python experiments/gym_learn.py                     # learns, writes learned.npz, prints both tables
    python experiments/gym_learn.py --load learned.npz  # only the tables

A policy is a network with one hidden layer. It sees five ratios and changes the window once a round trip. Its score on
a network is Remy's: the logarithm of goodput less that of the mean round-trip time (Winstein and Balakrishnan 2013),
both relative to the path's own. All policies of a generation run together in one vectorised environment.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from sawtooth.engines.sim import Sim
from sawtooth.gym import OBSERVED, Policy, SawtoothVectorEnv
from sawtooth.scenario import Scenario

INPUTS = ("rtt_ratio", "loss_share", "full", "log2_cwnd", "cwnd_limited")
SCALES = np.array([1.0, 20.0, 1.0, 0.1, 1.0])
"""By which inputs are multiplied so that all are of the order of 1; part of the first layer's weights in the file."""
HIDDEN = 8
SIZE = len(INPUTS) * HIDDEN + HIDDEN + HIDDEN + 1
PAIRS, GENERATIONS, SIGMA, STEP = 16, 60, 0.15, 0.25
"""Each generation tries pairs of opposite steps around the present weights (Salimans et al. 2017)."""
TRAINING_S, TEST_S = 8.0, 30.0
TRAINING_BUFFER = "1 MiB"
"""The receiver's, so that a bad policy does not send without end."""

TRAINED = {
    "deep queue": {"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "4 bdp"},
    "1% loss": {"rate": "20 Mbit/s", "rtt": "40 ms", "queue": "1 bdp", "loss": "1%"},
    "shallow queue": {"rate": "50 Mbit/s", "rtt": "80 ms", "queue": "0.25 bdp"},
}
OTHERS = {
    "slow line": {"rate": "5 Mbit/s", "rtt": "20 ms", "queue": "2 bdp"},
    "fast, long line": {"rate": "200 Mbit/s", "rtt": "100 ms", "queue": "1 bdp"},
    "3% loss": {"rate": "10 Mbit/s", "rtt": "60 ms", "queue": "1 bdp", "loss": "3%"},
    "satellite": {"rate": "10 Mbit/s", "rtt": "600 ms", "queue": "1 bdp"},
    "short path": {"rate": "100 Mbit/s", "rtt": "2 ms", "queue": "2 bdp"},
}


def scenario(
    path: dict[str, str], duration_s: float, cc: Any = "reno", rivals: int = 0, seed: int = 1, host: str = "64 MiB"
) -> Scenario:
    flows = [{"name": "own", "cc": cc}, *({"name": f"rival{one}", "cc": "reno"} for one in range(rivals))]
    tables = {"duration": f"{duration_s:g} s", "interval": "100 ms", "seed": seed, "path": path}
    return Scenario.from_dict(tables | {"host": {"receive_buffer": host}, "flows": flows})


def split(weights: np.ndarray) -> list[np.ndarray]:
    """The layers of many policies: weights and biases of the hidden one and of the last."""
    sizes = [len(INPUTS) * HIDDEN, HIDDEN, HIDDEN, 1]
    first, biases, last, bias = np.split(weights, np.cumsum(sizes)[:-1], axis=-1)
    return [first.reshape(*first.shape[:-1], HIDDEN, len(INPUTS)), biases, last, bias]


def actions(layers: list[np.ndarray], seen: np.ndarray) -> np.ndarray:
    """Of each policy for its own observation."""
    first, biases, last, bias = layers
    hidden = np.tanh(np.einsum("nhi,ni->nh", first, seen * SCALES) + biases)
    return np.clip(np.einsum("nh,nh->n", last, hidden)[:, None] + bias, -1.0, 1.0)


def scores(weights: np.ndarray, seed: int) -> np.ndarray:
    """Of each policy, the mean over the training networks."""
    paths = list(TRAINED.values())
    whole = np.repeat(weights, len(paths), axis=0)
    env = SawtoothVectorEnv(
        [scenario(path, TRAINING_S, host=TRAINING_BUFFER) for path in paths], len(whole), action="change"
    )
    layers, places = split(whole), [list(OBSERVED).index(name) for name in INPUTS]
    column = {name: list(OBSERVED).index(name) for name in ("acked", "rtt", "min_rtt")}
    seen, _ = env.reset(seed=seed)
    packets, waited, running = np.zeros(len(whole)), np.zeros(len(whole)), np.ones(len(whole), dtype=bool)
    while running.any():
        seen, acked, _, over, _ = env.step(actions(layers, seen[:, places]))
        packets += np.where(running, acked, 0.0)
        waited += np.where(running, acked * seen[:, column["rtt"]], 0.0)
        running &= ~over
    bits = np.array([Scenario.from_dict({"path": path}).path_table.rate.bps for path in paths] * len(weights))
    rtts = np.array([Scenario.from_dict({"path": path}).path_table.rtt.seconds for path in paths] * len(weights))
    goodput = np.maximum(packets, 1.0) * 1448 * 8 / TRAINING_S / bits
    delay = waited / np.maximum(packets, 1.0) / rtts
    return (np.log(goodput) - np.log(np.maximum(delay, 1.0))).reshape(len(weights), len(paths)).mean(axis=1)


def learn(seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    weights = random.normal(0.0, 0.3, SIZE)
    weights[-HIDDEN - 1 :] = 0.0
    velocity = np.zeros(SIZE)
    for generation in range(GENERATIONS):
        steps = random.normal(0.0, 1.0, (PAIRS, SIZE))
        tried = scores(
            np.concatenate([weights + SIGMA * steps, weights - SIGMA * steps]), int(random.integers(1 << 30))
        )
        ranks = np.argsort(np.argsort(tried)) / (len(tried) - 1) - 0.5
        slope = (ranks[:PAIRS] - ranks[PAIRS:]) @ steps / PAIRS
        velocity = 0.8 * velocity + STEP * slope
        weights = weights + velocity * SIGMA
        if generation % 10 == 9:
            print(f"generation {generation + 1}: mean score {tried.mean():.3f}, best {tried.max():.3f}", flush=True)
    return weights


def policy(weights: np.ndarray) -> Policy:
    first, biases, last, bias = split(weights)
    return Policy(INPUTS, ((first * SCALES, biases), (last[None, :], bias)), every="rtt", action="change")


def measured(path: dict[str, str], cc: Any, rivals: int = 0) -> tuple[float, float]:
    """Goodput in Mbit/s of the first flow, and its mean round-trip time in ms, over three seeds."""
    found = []
    for seed in (1001, 1002, 1003):
        tables = Sim().run(scenario(path, TEST_S, cc, rivals, seed)).tables
        own, sender = (tables[name][tables[name]["flow"] == 0] for name in ("intervals", "tcp_info"))
        found.append((own["goodput_bps"].mean() / 1e6, sender["srtt_s"].mean() * 1e3))
    goodput, rtt = np.mean(found, axis=0)
    return float(goodput), float(rtt)


def judge(file: Path) -> None:
    learned = {"source": str(file.absolute())}
    print(f"{'network':18} {'reno':>22} {'cubic':>22} {'bbr':>22} {'learned':>22}   learned against reno")
    for title, paths in (("trained on", TRAINED), ("not trained on", OTHERS)):
        print(title)
        for name, path in paths.items():
            row = [measured(path, cc) for cc in ("reno", "cubic", "bbr", learned)]
            values = [np.log(goodput / rtt) for goodput, rtt in row]
            cells = " ".join(f"{goodput:7.2f} Mbit/s {rtt:5.0f} ms" for goodput, rtt in row)
            print(f"  {name:16} {cells}   {values[3] - values[0]:+.2f}")
    print("beside a flow of reno, share of the line")
    for name, path in (TRAINED | OTHERS).items():
        own = {cc: measured(path, value, 1)[0] for cc, value in (("reno", "reno"), ("learned", learned))}
        rate = Scenario.from_dict({"path": path}).path_table.rate.bps / 1e6
        print(f"  {name:16} reno {own['reno'] / rate:5.0%}, learned {own['learned'] / rate:5.0%} of the line")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load", type=Path)
    parser.add_argument("--out", type=Path, default=Path("learned.npz"))
    given = parser.parse_args()
    file = given.load or given.out
    if given.load is None:
        begun = time.perf_counter()
        policy(learn(given.seed)).save(file)
        print(f"learned in {time.perf_counter() - begun:.0f} s: {file}")
    judge(file)


if __name__ == "__main__":
    main()
