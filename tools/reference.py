"""Writes docs/reference/scenario.md from what the core declares. Run it after changing a field; a test compares."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from scenario_examples import EXAMPLES, VALUES

from sawtooth.scenario import Scenario

WIDTH = 100
PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "scenario.md"

INTRODUCTION = """# Scenario files

<!-- Written by tools/reference.py from the model; a test compares. Do not edit. -->

A scenario file describes one experiment in TOML. This page has every table and field. `sawtooth show FILE` explains a
file. `sawtooth schema scenario` prints its JSON Schema.

A quantity is text with a unit. A bare number where a unit belongs is an error that shows the fix. Upper and lower case
of units do not matter.

| kind | units | range | examples |
|---|---|---|---|
"""

RANGES = {
    "Rate": "1 bit/s … 10 Tbit/s",
    "Span": "0 s … 30 d, to 1 ns",
    "Size": "whole bytes",
    "Loss": "0% … 100%, to 1e-7 %",
    "Burst": "1 packet … 1000000 packets, to 0.001 packets",
    "Queue": "1 packet … 1000000000 packets, one full frame … 1 TiB, 1 ns … 3600 s, 1e-9 bdp … 1000000 bdp",
}

KINDS = (
    ("rate", "Rate"),
    ("time", "Span"),
    ("size", "Size"),
    ("loss", "Loss"),
    ("burst", "Burst"),
    ("queue", "Queue"),
)

NOTES = """
- One `bdp` is the rate times the base RTT of the first flow in the file that uses this transmitter, in whole full
  frames, at least one.
- A queue in time holds the bytes that its transmitter sends in that time, at least one full frame.
- tc's `50Mbit`, `1gbit`, `20ms` and `1000p` are accepted. `Mbps` is refused, because it means bytes to tc and bits to
  others.
"""

OVERRIDES = """
## Overrides

`--set K=V` and the axes of a study set fields by a dotted path:

| path | sets |
|---|---|
| `path.rtt` | a field of a table |
| `host.hz` | a setting of every host |
| `hosts.h1.hz` | a setting of one host |
| `flows.cc` | a field of every flow |
| `flows.0.cc` | a field of the first flow |
| `flows.NAME.cc` | a field of the flow with that name |
| `links.NAME.loss` | a field of a link (topology `custom`) |

A value is TOML or plain text: `--set path.rtt="140 ms"`, `--set 'path.loss={every=1000}'`. If the file has the rest of
the table, you can set one field of it: `--set path.loss.gilbert_elliott.p=2%`.

## Names

| what | name |
|---|---|
| a flow without a name | its congestion control's, numbered from the second on: `cubic`, `cubic-2` |
| the part of a flow between `s*` and `r*` of a dumbbell that uses the first pair | `cubic@s1` |
| one direction of a link | `a>b`, or `NAME:a>b` if two links join the same hosts |
| a card | its host's name |
"""

QUEUE = """Text sets the limit of a tail-drop queue. A table chooses another kind, with tc's names, parameters and
defaults; [what they do](../explanation/queues.md). A table of kind `pfifo` or `bfifo` drops the same packets as text.
It also records percentiles of the delay, like other kinds, and takes the simulator more time."""

TBF = """The transmitter's rate is that of the line. The token bucket holds packets back before it, and drops packets
that arrive at its full queue. For a lower rate without bursts, set `rate` of the link instead."""

QUEUES = {"pfifo": QUEUE, "tbf": TBF}

READER = """Data that the reader cannot read in time fills the receive buffer, up to `host.receive_buffer`. Then the
window closes, and the sender probes it. `goodput_bps` counts data that was read. Engines: `sim`; `kernel` and `netns`
with `traffic = "native"`."""

SOURCES = {
    "rate": """Data that a connection cannot send in time waits, and is sent as soon as possible. Engines: `sim`;
`kernel` and `netns` with `traffic = "native"`.""",
    "arrivals": """The table `flows` has the completion time of each transfer, and its number as `generation`. The same
seed gives the same transfers on every engine. A flow's `duration` is the time in which transfers arrive. `count` is 1,
or with `s*` the number of pairs, each with independent transfers.""",
    "udp": """`{ kind = "udp" }` is a call. A flow with datagrams has no `cc`. The table `datagrams` has what its
receivers count. `count` is the number of senders, which take turns.""",
    "requests": """The receiving host requests what this kind, `pages` and `video` send:
[how](../explanation/readers.md). Engines: `sim`; `kernel` and `netns` with `traffic = "native"`.""",
    "pages": """`count` is the number of readers. Each has separate connections.""",
    "video": "",
}

PROGRAMS = """Unmodified programs on hosts of the scenario: [how they run and what they see](exec.md). Without
`[[flows]]`, programs have the path for themselves, and the run ends with the last program that is no server. A number
of `measure` is a column of a study's table, and its name ends with its unit: `_s`, `_ms`, `_mbps`, `_bps`, `_bytes`,
`_percent`. `seconds` is the time from the program's start to its end, `status` its exit status. Engines: `kernel` and
`netns`."""

CDF = """The file has two numbers per line, as in simulators of data centers: bytes, and the share of transfers that are
no larger, 0 to 1 or 0 to 100, in increasing order. Sizes between two lines are uniformly distributed. The first line's
share has exactly its size. Text after `#` is ignored."""

POLICER = """Like tc-police with `action drop`: bytes are those of frames and the link's overhead. A shaper, which
queues packets instead, is a [queue](#queue-of-kind-tbf)."""

CHANGES = """Times count from the start of the run. Two values are the bounds of a random one, drawn uniformly from the
scenario's seed; every engine draws the same. A frame in transmission continues at the new rate. Among changes at the
same time, the last in the list counts. A change after the end of the run has no effect, and the run warns."""

TRACE = """The rate over time from a file beside the scenario, or from a shipped trace: `lte-like.down`, `lte-like.up`,
`starlink-like.csv`, `wifi-like.csv` (synthetic, by `tools/traces.py`). It replaces `rate`; `bdp` uses its mean. Two
formats:

- Mahimahi's packet-delivery times: one whole number per line, in order. Each is a time in ms at which 1,500 bytes of IP
  can leave. An opportunity without waiting packets is lost. A packet that does not fit continues in the next one. After
  the last line, the trace starts again.
- CSV: `t_s` from 0 on, and any of `rate_bps`, `delay_s` (one way) and `loss` (a share). A row holds until the next one,
  the last until the end.

```toml
[path]
trace = "lte-like.down"
```"""

SCHEMA = Scenario.json_schema()
DECLARED: dict[str, dict[str, Any]] = {"Scenario": SCHEMA, **SCHEMA["$defs"]}
"""The schema of each table and quantity, by name."""


def _named(schema: dict[str, Any]) -> str | None:
    """The table or quantity that a schema refers to."""
    return str(schema["$ref"]).rpartition("/")[2] if "$ref" in schema else None


def _leaves(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schemas inside choices, lists and tables by name."""
    inside = schema.get("anyOf") or [
        schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)
    ]
    if not inside:
        yield schema
    for one in inside:
        yield from _leaves(one)


def _kinds(table: str, field: str) -> dict[str, str]:
    """The tables that a field can be, by their `kind`."""
    names = filter(None, map(_named, _leaves(DECLARED[table]["properties"][field])))
    fields = {name: DECLARED[name].get("properties", {}) for name in names}
    return {inner["kind"]["const"]: name for name, inner in fields.items() if "kind" in inner}


TABLES: list[tuple[str, str | None, str]] = [
    ("top level", "Scenario", ""),
    ("[path]", "Path", ""),
    ("[chain]", "Chain", ""),
    ("[dumbbell]", "Dumbbell", ""),
    ("[home]", "Home", "By default, a flow goes from the server to the device."),
    (
        "[parking-lot]",
        "ParkingLot",
        "By default, a flow goes from a to b. A flow from c2 to d2 crosses only the second bottleneck.",
    ),
    (
        "[host] and [hosts.NAME]",
        "Host",
        "`[host]` is for every host. `[hosts.NAME]` overrides single fields for one host.",
    ),
    ("[[flows]]", "Flow", "`bytes` excludes `duration` and `replace`."),
    ("[flows.replace]", "Replace", ""),
    *((f"source of kind {kind}", table, SOURCES.get(kind, "")) for kind, table in _kinds("Flow", "source").items()),
    *(
        (f"sizes of kind {kind}", table, CDF if kind == "cdf" else "")
        for kind, table in _kinds("Pages", "sizes").items()
    ),
    ("reader", "Reader", READER),
    *((f"think of kind {kind}", table, "") for kind, table in _kinds("Pages", "think").items()),
    ("[[probes]]", "Probe", ""),
    ("[[programs]]", "Program", PROGRAMS),
    ("[cards.NAME]", "Card", ""),
    ("[[links]]", "Link", ""),
    ("[links.forward] and [links.backward]", "Direction", "Fields that are absent have the link's values."),
    ("changes", "Change", CHANGES),
    ("trace", None, TRACE),
    (
        "jitter",
        "Jitter",
        'Text is the deviation: `jitter = "2 ms"`. Jitter and the next three act after the transmitter (tc-netem).',
    ),
    (
        "reorder",
        "Reorder",
        'Text is the share: `reorder = "1%"`. Packets overtake only on a link with a delay; without one, a run warns.',
    ),
    (
        "duplicate and corrupt",
        "Share",
        "Text is the share. A packet with a wrong checksum uses the transmitter like any other.",
    ),
    ("policer", "Policer", POLICER),
    ("[[routes]]", "Route", ""),
    *((f"queue of kind {kind}", table, QUEUES.get(kind, "")) for kind, table in _kinds("Card", "queue").items()),
    (
        "loss",
        "LossPattern",
        'It takes the place of text like `"1%"`. Packets of every kind count: data, retransmissions, acknowledgements, '
        "probes. Each direction counts separately.\n\n"
        '`loss = { mean = "0.5%", burst = "5 packets" }` loses 0.5% of the packets, 5 in a row on average. It is the '
        "chain `gilbert_elliott` with r = 1 / burst, p = r * mean / (1 - mean), and a bad state that loses everything. "
        "The mean can be at most burst / (1 + burst). Independent losses have bursts of 1 / (1 - mean) packets.",
    ),
    (
        "loss.gilbert_elliott",
        "GilbertElliott",
        "As in Linux, a packet may change the state, but it is lost with the probability of the state before that. The "
        "first packet finds the good state. In the long run p / (p + r) of the packets find the bad one.",
    ),
]


def page() -> str:
    """The whole page."""
    kinds = [
        f"| {name} | {DECLARED[kind]['description'].partition(': ')[2]} | {RANGES[kind]} | "
        f"{_codes(DECLARED[kind]['examples'])} |"
        for name, kind in KINDS
    ]
    sections = [_section(*table) for table in TABLES]
    return _filled(INTRODUCTION + "\n".join(kinds) + "\n" + NOTES + "\n" + "\n".join(sections) + OVERRIDES)


def _filled(page: str) -> str:
    """The page with its prose wrapped to 100 columns; code, tables and headings stay as they are."""
    blocks = re.split(r"\n\n(?=\S)", page.rstrip("\n"))
    return "\n\n".join(block if re.match(r"```|\||#|<|\w+ =|\[", block) else _lines(block) for block in blocks) + "\n"


def _lines(block: str) -> str:
    parts = re.split(r"\n(?=- )", block)
    return "\n".join(
        textwrap.fill(
            " ".join(part.split()),
            WIDTH,
            subsequent_indent="  " if part.startswith("- ") else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for part in parts
    )


def _section(title: str, table: str | None, note: str) -> str:
    heading = (
        title
        if title in ("top level", "changes", "trace", "jitter", "reorder", "policer")
        else " and ".join(f"`{part}`" for part in title.split(" and "))
    )
    if table is None:
        return f"## {heading}\n\n{note}\n"
    lines = [f"## {heading}", "", DECLARED[table]["description"].splitlines()[0], ""]
    if note:
        lines += [note, ""]
    if title in EXAMPLES:
        lines += ["```toml", EXAMPLES[title].strip(), "```", ""]
    lines += ["| field | kind | default | meaning | example |", "|---|---|---|---|---|"]
    for name, schema in DECLARED[table]["properties"].items():
        cells = (f"`{name}`", _kind(schema), _default(table, name), schema["description"], _example(table, name))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _kind(schema: dict[str, Any]) -> str:
    names = {
        "Rate": "rate",
        "Exponential": "time, or a [table](#think-of-kind-exponential)",
        "Lognormal": "size, or a [table](#sizes-of-kind-lognormal)",
        "Size": "size",
        "LossPattern": "loss, or a [table](#loss)",
        "Burst": "burst",
        "Pfifo": "queue, or a [table](#queue-of-kind-pfifo)",
        "Queue": "queue",
    }
    leaves = list(_leaves(schema))
    found = [name for leaf in leaves if (name := _named(leaf))]
    limits = _limits(schema, leaves)
    for kind, name in names.items():
        if kind in found:
            return f"{name}, {limits}" if limits else name
    tables = [name for name in found if "properties" in DECLARED[name]]
    if tables and "Module" not in tables:
        is_several = any(key in one for one in (schema, *schema.get("anyOf", ())) for key in ("items", "propertyNames"))
        return "tables" if is_several else "table"
    for kind, name in (("Span", "time"), ("Loss", "loss")):
        if kind in found:
            return f"{name}, {limits}" if limits else name
    types = {one for leaf in leaves for one in _types(leaf)}
    for type_, name in (("integer", "whole number"), ("number", "number")):
        if type_ in types:
            several = "list of " if any("items" in one for one in schema.get("anyOf", ())) else ""
            return f"{several}{name}{'s' * bool(several)}, {limits}" if limits else name
    if "boolean" in types:
        return "true or false"
    words = [f"`{word}`" for word in _words(leaves)]
    return ", ".join(words) if words else "list of text" if "items" in schema else "text"


def example(table: str, name: str) -> str | None:
    """An example of the field in TOML; None if its table has its own example."""
    given = VALUES.get(f"{table}.{name}", VALUES.get(name))
    if given is not None:
        return given
    schema = DECLARED[table]["properties"][name]
    leaves = list(_leaves(schema))
    found = [name for leaf in leaves if (name := _named(leaf))]
    for kind, value in (
        ("Rate", '"50 Mbit/s"'),
        ("Span", '"100 ms"'),
        ("Size", '"64 KiB"'),
        ("Loss", '"1%"'),
        ("Queue", '"1 bdp"'),
    ):
        if kind in found:
            return value
    if found:
        return None
    default = schema.get("default")
    if any("boolean" in _types(leaf) for leaf in leaves):
        return "false" if default is True else "true"
    words = _words(leaves)
    if words:
        return f'"{words[-1]}"'
    return str(default) if isinstance(default, (int, float)) else "2"


def _example(table: str, name: str) -> str:
    value = example(table, name)
    return "see below" if value is None else f"`{name} = {value}`"


def _types(schema: dict[str, Any]) -> list[str]:
    """Names of the JSON types that a schema without choices accepts."""
    said = schema.get("type", [])
    return [said] if isinstance(said, str) else list(said)


def _words(leaves: list[dict[str, Any]]) -> list[str]:
    """The words that a field accepts."""
    choices = [one for leaf in leaves for one in (*leaf.get("enum", ()), leaf.get("const"))]
    return [one for one in choices if isinstance(one, str)]


def _limits(schema: dict[str, Any], leaves: list[dict[str, Any]]) -> str:
    """The range of the field, if it is narrower than its type's."""
    ends = [f"{_number(leaf['minimum'])} … {_number(leaf['maximum'])}" for leaf in leaves if "minimum" in leaf]
    return str(schema["limits"]) if "limits" in schema else ends[0] if ends else ""


def _number(number: float) -> str:
    return str(int(number) if number == int(number) else number)


def _default(table: str, name: str) -> str:
    if name in DECLARED[table]["required"]:
        return "needed"
    default = DECLARED[table]["properties"][name].get("default")
    if default is None or isinstance(default, dict) or default == []:
        return "–"
    if isinstance(default, list):
        return "one flow" if isinstance(default[0], dict) else f"{len(default)} of them"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f'`"{default}"`' if isinstance(default, str) else f"`{default}`"


def _codes(examples: Iterable[str]) -> str:
    return ", ".join(f'`"{example}"`' for example in examples)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
