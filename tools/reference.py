"""Writes docs/reference/scenario.md from the model. Run it after changing a field; a test compares."""

from __future__ import annotations

import typing
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from sawtooth.scenario import asks, parts, queue, reader, sizes, writer
from sawtooth.scenario.jitter import Jitter
from sawtooth.scenario.loss import GilbertElliott, LossPattern
from sawtooth.scenario.policer import Policer
from sawtooth.scenario.scenario import Scenario
from sawtooth.scenario.units import Burst, Loss, Quantity, Queue, Rate, Size, Span
from sawtooth.scenario.varying import Change, Reorder, Share

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "scenario.md"

INTRODUCTION = """# Scenario files

<!-- Written by tools/reference.py from the model; a test compares. Do not edit. -->

A scenario file is TOML. Quantities are text with a unit; a bare number where a unit belongs is an error that shows the
fix. Names of units are read in any case. `sawtooth show FILE` says what a file means, `sawtooth schema scenario` prints
its JSON Schema.

| kind | units | range | examples |
|---|---|---|---|
"""

RANGES = {
    Rate: "1 bit/s … 10 Tbit/s",
    Span: "0 s … 30 d, to 1 ns",
    Size: "whole bytes",
    Loss: "0% … 100%, to 1e-7 %",
    Burst: "1 packet … 1000000 packets, to 0.001 packets",
    Queue: "1 packet … 1000000000 packets, one full frame … 1 TiB, 1 ns … 3600 s, 1e-9 bdp … 1000000 bdp",
}

KINDS = (("rate", Rate), ("time", Span), ("size", Size), ("loss", Loss), ("burst", Burst), ("queue", Queue))

NOTES = """
`bdp` is rate × base RTT of the first flow of the file that crosses the transmitter, in whole full frames, at least one.
A queue in time is the bytes that its transmitter sends in that time, at least one full frame. `50Mbit`, `1gbit`, `20ms`
and `1000p`, as tc writes them, are read too; `Mbps` is refused, because tc means bytes by it and others mean bits.
"""

OVERRIDES = """
## Overrides

`--set K=V` and the axes of a study set fields by dotted path.

| path | sets |
|---|---|
| `path.rtt` | a field of a table |
| `host.hz` | a setting of every host |
| `hosts.h1.hz` | of one host |
| `flows.cc` | of every flow |
| `flows.0.cc` | of the first flow |
| `flows.NAME.cc` | of the flow of that name |
| `links.NAME.loss` | of a link (topology `custom`) |

A value is TOML, or the text itself: `--set path.rtt="140 ms"`, `--set 'path.loss={every=1000}'`,
`--set path.loss.gilbert_elliott.p=2%` where the file has the rest of that table.

## Names

A flow without a name has its congestion control's, numbered from the second on: `cubic`, `cubic-2`. A flow between
`s*` and `r*` of a dumbbell is spread over the pairs in turn, and each pair's part is called `cubic@s1`. One direction
of a link is called `a>b`, or `NAME:a>b` where two links join the same hosts; a card has its host's name.
"""

QUEUE = """Queues are text, the limit of a tail-drop queue, or a table, `queue = { kind = "codel", target = "5 ms" }`,
with tc's names, parameters and defaults; [what they do](../explanation/queues.md). A table of kind `pfifo` or `bfifo`
drops what the text drops, and tells percentiles of the delay as other kinds do, which takes the simulator more time."""

TBF = """The transmitter's rate is the line's; the token bucket holds packets back before it, and drops what comes when
its queue is full. Of a lower rate without a burst `rate` on the link is enough."""

QUEUES = {"pfifo": QUEUE, "tbf": TBF}

READER = """On a flow, `reader = { rate = "5 Mbit/s", read = "64 kB" }`. What could not be read in time is read as
soon as it has come, and what is not read yet fills the receive buffer, up to `host.receive_buffer`; then the window
closes, and the sender probes it. `goodput_bps` counts what was read. `sim`, and `kernel` and `netns` with `traffic =
"native"`."""

SOURCES = {
    "rate": """On a flow, `source = { kind = "rate", rate = "5 Mbit/s" }`. What a connection could not send in time
waits and is sent as soon as it can. `sim`, and `kernel` and `netns` with `traffic = "native"`.""",
    "arrivals": """On a flow, `source = { kind = "arrivals", load = "30%", sizes = "100 kB" }`. When one is over and how
long it took is in table `flows`, where `generation` is its number. The same seed gives the same transfers on every
engine. A flow's `duration` is how long they come; `count` is 1, or with `s*` the number of pairs, each with transfers
of its own.""",
    "udp": """On a flow, `source = { kind = "udp", rate = "5 Mbit/s", size = "1200 bytes" }`; `{ kind = "udp" }` is a
call. Such a flow has no `cc`. What its receivers count is in table `datagrams`; its `count` is of senders, who send by
turns.""",
    "requests": """On a flow, `source = { kind = "requests", sizes = "100 kB", think = "1 s" }`. What this kind,
`pages` and `video` send the receiving host asks for: [how](../explanation/readers.md). `sim`, and `kernel` and `netns`
with `traffic = "native"`.""",
    "pages": """On a flow, `source = { kind = "pages", objects = 30, sizes = "30 kB" }`. `count` is the number of
readers, each with connections of its own.""",
    "video": """On a flow, `source = { kind = "video", rates = ["1 Mbit/s", "3 Mbit/s", "6 Mbit/s"] }`.""",
}

SIZES = """On a source, `sizes = { kind = "lognormal", mean = "100 kB", sigma = 1.5 }`."""

CDF = """Lines of two numbers, as simulators of data centres have them: bytes, and the share of transfers that are no
larger, 0 to 1 or 0 to 100, in order. Between two lines sizes are even; the first line's share has exactly its size.
What follows `#` is not read."""

POLICER = """`policer = { rate = "10 Mbit/s", burst = "64 KiB" }`, as tc-police with `action drop`: bytes are those of
frames and the link's overhead. A shaper, which lets packets wait instead, is a [queue](#queue-of-kind-tbf)."""

CHANGES = """A list of tables, `changes = [{ at = "10 s", rate = "5 Mbit/s" }, …]`. Times are those of the run.
Two values, `rate = ["5 Mbit/s", "50 Mbit/s"]`, are the bounds of one that is drawn evenly, with the scenario's seed;
the same on every engine. A frame that is on its way out when the rate changes goes on at the new one. Of changes at
one time the last in the list holds. One whose time comes when the run is over does nothing, and the run warns."""

TRACE = """A file beside the scenario, or one that is shipped: `lte-like.down`, `lte-like.up`, `starlink-like.csv`,
`wifi-like.csv`, which `tools/traces.py` drew. It takes the place of `rate`; `bdp` goes by its mean. Two formats:

- Mahimahi's packet-delivery times: one whole number a line, in order, the ms at which 1,500 bytes of IP can leave. An
  opportunity that nothing waits for is lost; what does not fit goes on in the next. After the last line it begins anew.
- CSV: `t_s` from 0 on, and `rate_bps`, `delay_s` (one way), `loss` (a share), any of them; a row holds until the next,
  the last to the end."""

TABLES: list[tuple[str, type[BaseModel] | None, str]] = [
    ("top level", Scenario, ""),
    ("[path]", parts.Path, ""),
    ("[chain]", parts.Chain, ""),
    ("[dumbbell]", parts.Dumbbell, ""),
    ("[home]", parts.Home, "A flow goes from server to device where nothing else is said."),
    (
        "[parking-lot]",
        parts.ParkingLot,
        "A flow goes from a to b where nothing else is said; one from c2 to d2 crosses the second bottleneck only.",
    ),
    (
        "[host] and [hosts.NAME]",
        parts.Host,
        "`[host]` is for every host; `[hosts.NAME]` changes single fields for one.",
    ),
    ("[[flows]]", parts.Flow, "`duration` and `bytes` exclude each other, and so do `replace` and `bytes`."),
    ("[flows.replace]", parts.Replace, ""),
    *((f"source of kind {kind}", model, SOURCES.get(kind, "")) for kind, model in writer.KINDS.items()),
    *(
        (f"sizes of kind {kind}", model, SIZES if kind == "lognormal" else CDF if kind == "cdf" else "")
        for kind, model in sizes.KINDS.items()
    ),
    ("reader", reader.Reader, READER),
    *(
        (f"think of kind {kind}", model, 'On a source, `think = { kind = "exponential", mean = "1 s" }`.')
        for kind, model in asks.THINK_KINDS.items()
    ),
    ("[[probes]]", parts.Probe, ""),
    ("[cards.NAME]", parts.Card, ""),
    ("[[links]]", parts.Link, ""),
    ("[links.forward] and [links.backward]", parts.Direction, "Absent: what the link says."),
    ("changes", Change, CHANGES),
    ("trace", None, TRACE),
    (
        "jitter",
        Jitter,
        'Text is the deviation: `jitter = "2 ms"`. What follows the transmitter: jitter, and the three below, '
        "as tc-netem has them.",
    ),
    (
        "reorder",
        Reorder,
        'Text is the share: `reorder = "1%"`. It needs a delay to overtake: a run warns where there is none.',
    ),
    ("duplicate and corrupt", Share, "Text is the share. A packet with a wrong checksum takes the transmitter's time."),
    ("policer", Policer, POLICER),
    ("[[routes]]", parts.Route, ""),
    *((f"queue of kind {kind}", model, QUEUES.get(kind, "")) for kind, model in queue.KINDS.items()),
    (
        "loss",
        LossPattern,
        'Written in one line, `loss = { every = 1000 }`, wherever text like `"1%"` may stand. Packets of every kind '
        "count:\ndata, retransmissions, acknowledgements, probes. Each direction counts for itself.\n\n"
        '`loss = { mean = "0.5%", burst = "5 packets" }` loses 0.5% of the packets, 5 in a row on average. It is the\n'
        "chain `gilbert_elliott` with r = 1 / burst, p = r * mean / (1 - mean), and a bad state that loses all.\n"
        "A mean up to burst / (1 + burst) is possible. Independent losses come in bursts of 1 / (1 - mean) packets.",
    ),
    (
        "loss.gilbert_elliott",
        GilbertElliott,
        "As in Linux, a packet may change the state, but is lost with the chance of the state that it finds; the first "
        "one\nfinds the good state. In the long run p / (p + r) of the packets find the bad one.",
    ),
]


def page() -> str:
    """The whole page."""
    kinds = [
        f"| {name} | {kind.MEANING.partition(': ')[2]} | {RANGES[kind]} | {_codes(kind.EXAMPLES)} |"
        for name, kind in KINDS
    ]
    sections = [_section(*table) for table in TABLES]
    return INTRODUCTION + "\n".join(kinds) + "\n" + NOTES + "\n" + "\n".join(sections) + OVERRIDES


def _section(title: str, model: type[BaseModel] | None, note: str) -> str:
    heading = (
        title
        if title in ("top level", "changes", "trace", "jitter", "reorder", "policer")
        else " and ".join(f"`{part}`" for part in title.split(" and "))
    )
    if model is None:
        return f"## {heading}\n\n{note}\n"
    lines = [f"## {heading}", "", (model.__doc__ or "").strip().splitlines()[0].replace("``", "`"), ""]
    if note:
        lines += [note, ""]
    lines += ["| field | kind | default | meaning |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        lines.append(f"| `{field.alias or name}` | {_kind(field)} | {_default(field)} | {field.description} |")
    return "\n".join(lines) + "\n"


def _kind(field: FieldInfo) -> str:
    names = {
        Rate: "rate",
        asks.Exponential: "time, or a [table](#think-of-kind-exponential)",
        Span: "time",
        sizes.Lognormal: "size, or a [table](#sizes-of-kind-lognormal)",
        Size: "size",
        LossPattern: "loss, or a [table](#loss)",
        Loss: "loss",
        Burst: "burst",
        queue.Pfifo: "queue, or a [table](#queue-of-kind-pfifo)",
        Queue: "queue",
    }
    found = _leaves(field.annotation)
    for kind, name in names.items():
        if kind in found:
            return f"{name}, {limits}" if (limits := _limits(field)) else name
    if any(isinstance(leaf, type) and issubclass(leaf, BaseModel) for leaf in found):
        return "tables" if typing.get_origin(field.annotation) in (tuple, dict) else "table"
    if int in found:
        return f"whole number, {limits}" if (limits := _limits(field)) else "whole number"
    if float in found:
        return f"number, {limits}" if (limits := _limits(field)) else "number"
    if bool in found:
        return "true or false"
    texts = [f"`{leaf}`" for leaf in found if isinstance(leaf, str)]
    return ", ".join(texts) if texts else "list of text" if typing.get_origin(field.annotation) is tuple else "text"


def _leaves(annotation: object) -> list[object]:
    """The types, and the words of a Literal, inside an annotation."""
    arguments = typing.get_args(annotation)
    if not arguments:
        return [annotation]
    return [leaf for argument in arguments for leaf in _leaves(argument)]


def _limits(field: FieldInfo) -> str:
    """The range that the field narrows its kind to, from its validators."""
    ends: dict[str, int] = {}
    for extra in _metadata(field):
        narrowed = getattr(getattr(extra, "func", None), "limits", None)
        if narrowed is not None:
            return str(narrowed)
        ends |= {end: getattr(extra, end) for end in ("ge", "le") if hasattr(extra, end)}
    return f"{ends['ge']} … {ends['le']}" if len(ends) == 2 else ""


def _metadata(field: FieldInfo) -> list[typing.Any]:
    """Constraints of the field and of the annotated types inside it."""
    inside = [
        extra
        for argument in (field.annotation, *typing.get_args(field.annotation))
        for extra in getattr(argument, "__metadata__", ())
    ]
    return [*field.metadata, *inside]


def _default(field: FieldInfo) -> str:
    default = field.default
    if default is PydanticUndefined:
        return "needed"
    if default is None or isinstance(default, BaseModel) or default in ((), {}):
        return "–"
    if isinstance(default, tuple):
        if isinstance(default[0], parts.Flow):
            return "one flow"
        return f'`"{default[0]}"`' if len(default) == 1 else f"{len(default)} of them"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f'`"{default}"`' if isinstance(default, (Quantity, str)) else f"`{default}`"


def _codes(examples: typing.Iterable[str]) -> str:
    return ", ".join(f'`"{example}"`' for example in examples)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
