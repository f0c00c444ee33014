"""The core's reading of scenarios (crates/scenario) beside the package's: the same compiled form, the same errors."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sawtooth import _core
from sawtooth.errors import InputError
from sawtooth.scenario import Scenario
from sawtooth.scenario.arrivals import read_transfers
from sawtooth.scenario.control import VARIANTS
from sawtooth.scenario.jitter import read_deviations
from sawtooth.scenario.sizes import read_cdf
from sawtooth.scenario.sources import anchored
from sawtooth.scenario.toml import parse_toml
from sawtooth.scenario.traces import read_trace
from test_scenario_bad_input import BAD

ROOT = Path(__file__).parents[1]


class Files:
    """What a scenario names."""

    trace, deviations = staticmethod(read_trace), staticmethod(read_deviations)
    distribution, transfers = staticmethod(read_cdf), staticmethod(read_transfers)


def by_package(tables: Any) -> Any:
    """What the package makes of a scenario's tables: the compiled form as text, kernel, modules; or what is wrong."""
    try:
        compiled = Scenario.from_dict(tables).compile()
    except InputError as error:
        return error.code, error.message, error.fix, error.field, error.file
    modules = [
        None if (one := flow.module) is None else (list(one.sources), list(one.parameters), one.name)
        for flow in compiled.flows
    ]
    return _core.describe_compiled(compiled.to_json()), compiled.kernel, modules


def by_core(tables: Any) -> Any:
    """The same of the core."""
    compiled, wrong = _core.compile_scenario(tables, Files())
    return compiled if wrong is None else wrong


def differences(all_tables: Iterator[Any] | list[Any]) -> list[Any]:
    """Tables that the two do not read the same, with the answers."""
    found = []
    for tables in all_tables:
        package, core = by_package(copy.deepcopy(tables)), by_core(tables)
        if package != core:
            found.append((tables, package, core))
    return found


def files() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Every scenario and every study's scenario in the repository, as tables."""
    for directory in ("src/sawtooth/data/studies", "fidelity", "fuzz/corpus", "docs"):
        for path in sorted((ROOT / directory).rglob("*.toml")):
            try:
                tables = parse_toml(path.read_text(encoding="utf-8"))
            except (InputError, UnicodeDecodeError):
                continue
            inner = tables.get("scenario", tables)
            if isinstance(inner, dict):
                yield path, anchored(inner, path.parent)


FOUND = list(files())


@pytest.mark.parametrize("tables", [one for _, one in FOUND], ids=[path.stem for path, _ in FOUND])
def test_a_scenario_of_the_repository_compiles_to_the_same(tables: dict[str, Any]) -> None:
    assert by_core(tables) == by_package(tables)


def test_what_is_wrong_is_told_in_the_same_words() -> None:
    tables = [parse_toml(text) for text, code, *_ in BAD if code != "not-toml"]
    assert len(tables) > 80
    assert differences(tables) == []


_WORDS: list[Any] = [
    *(
        "20 ms",
        "1 bdp",
        "0%",
        "1%",
        "50 Mbit/s",
        "0 s",
        "64 KiB",
        "1000 packets",
        "x",
        "",
        "s*",
        "r*",
        "s1",
        "r1",
        "h1",
    ),
    *("cubic", "bbr3", "udp", "poisson", "on-off", "custom", "dumbbell", "chain", "home", "parking-lot", "reno", "0.5"),
    *(None, True, False, 0, 1, 2, -1, 4, 6, 7, 0.5, 1e300, 10**40, 1e16, 2**63, 3.0, float("inf"), float("nan")),
    *([], {}, [{}], ["1 ms"], ["1 ms", "2 ms"], ["5 s", "1 s"], {"kind": "codel"}, {"kind": "x"}, {"kind": "red"}),
    *({"kind": "arrivals", "load": "30%", "sizes": "10 kB"}, {"kind": "udp"}, {"kind": "video"}, {"every": 3}, "a\x1b"),
    *({"kind": "pages", "objects": 3, "sizes": {"kind": "pareto", "least": "1 kB", "most": "1 MB", "shape": 1.2}},),
    *({"source": "mine.c", "parameters": {"a": 1, "b": True}}, {"name": "bbr3", "variant": "ecn"}, {"variant": "x"}),
    *(
        {"deviation": "2 ms", "distribution": "normal"},
        {"share": "1%", "gap": 5},
        {"rate": "1 Mbit/s"},
        "rat",
        "40 Mbps",
    ),
    *({"lifetime": ["1 s", "2 s"]}, [{"at": "1 s", "rate": ["1 Mbit/s", "9 Mbit/s"], "every": "3 s"}], "0 bit/s"),
]
_NAMES = (
    *("rate", "rtt", "queue", "loss", "ack_loss", "reverse_rate", "jitter", "reorder", "trace", "policer", "changes"),
    *(
        "kind",
        "limit",
        "target",
        "ecn",
        "flows",
        "cc",
        "count",
        "start",
        "duration",
        "bytes",
        "replace",
        "source",
        "name",
    ),
    *(
        "reader",
        "from",
        "to",
        "via",
        "host",
        "hosts",
        "cards",
        "links",
        "routes",
        "probes",
        "interval",
        "warmup",
        "seed",
    ),
    *("topology", "mss", "kernel", "gro", "bandwidth", "delay", "buffer", "rat", "mtu", "ip", "forward", "backward"),
    *("path", "chain", "dumbbell", "home", "parking-lot", "sizes", "load", "every", "think", "burst", "overhead"),
    *("opportunity", "aggregation", "duplicate", "corrupt", "variant", "parameters", "timestamps", "hz"),
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each table and list below a value, with each of its keys or positions."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = [(value, key) for key in value]
    elif isinstance(value, list):
        inner = [(value, index) for index in range(len(value))]
    for holder, key in inner:
        yield holder, key
        yield from places(holder[key])


def mutated(drawn: random.Random, seeds: list[dict[str, Any]]) -> dict[str, Any]:
    """One of the seeds with a few fields changed, removed, renamed or added."""
    tables = copy.deepcopy(drawn.choice(seeds))
    for _ in range(drawn.choice((1, 1, 1, 2, 3))):
        known = list(places(tables))
        holder, key = drawn.choice(known) if known else (tables, None)
        turn = drawn.random()
        if key is not None and turn < 0.4:
            holder[key] = copy.deepcopy(drawn.choice(_WORDS))
        elif isinstance(holder, dict) and key is not None and turn < 0.5:
            del holder[key]
        elif isinstance(holder, dict) and key is not None and turn < 0.6:
            holder[drawn.choice(_NAMES)] = holder.pop(key)
        else:
            table = holder if isinstance(holder, dict) else tables
            table[drawn.choice(_NAMES)] = copy.deepcopy(drawn.choice(_WORDS))
    return tables


def drawn_tables(count: int, seed: int) -> list[dict[str, Any]]:
    """Mutations of what the repository has; small ones, so that a thousand take seconds."""
    seeds = [tables for _, tables in FOUND if len(str(tables)) < 4000]
    drawn = random.Random(seed)
    return [mutated(drawn, seeds) for _ in range(count)]


def test_thousands_of_mutated_scenarios_are_read_the_same() -> None:
    tables = drawn_tables(3000, 1)
    assert differences(tables) == []
    compiled = sum(_core.compile_scenario(one, Files())[1] is None for one in tables)
    assert compiled > 100


def test_every_variant_and_control_is_known_to_both() -> None:
    flows = [{"cc": {"name": name, "variant": one}} for name, variants in VARIANTS.items() for one in variants]
    assert differences([{"flows": [flow]} for flow in flows]) == []
