"""Control: which congestion control a flow has: by name, as a variant, or as a module from its C sources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, PlainValidator, StringConstraints, ValidationError, field_serializer

from sawtooth.errors import InputError, suggestion
from sawtooth.plain import plain
from sawtooth.scenario.names import one_line
from sawtooth.scenario.part import Part
from sawtooth.scenario.problems import first_problem

CongestionControl = Literal[
    "bbr",
    "bbr3",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "prague",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
]
"""All of Linux, as it names them, and BBR version 3 and Prague, which only patched kernels have; which of them an
engine has is the engine's to say. A kernel that is named may have others (``check_control``).
"""
CONGESTION_CONTROLS: tuple[str, ...] = get_args(CongestionControl)
LINUX_CONTROLS = tuple(name for name in CONGESTION_CONTROLS if name not in ("bbr3", "prague"))
"""Those that Linux itself has."""
Control = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,15}$")]
"""As long as Linux lets names of congestion controls be."""


def check_control(name: str, kernel: str | None) -> None:
    """Refuses what no congestion control is called; on a kernel that was named, names are that kernel's to know.

    Raises InputError ``unknown-name``.
    """
    if name not in CONGESTION_CONTROLS and kernel is None:
        fix = f"{suggestion(name, CONGESTION_CONTROLS)} or set host.kernel to a kernel that has it"
        raise InputError("unknown-name", f'no congestion control is named "{plain(name, 60)}"', fix=fix)


def _sources(value: object) -> object:
    names = value if isinstance(value, (list, tuple)) else [value]
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError("wrong-type", "a source is the name of a C file, or a list", fix='write source = "tcp_mine.c"')
    if not all(names):
        raise InputError("bad-name", "the name of a source file is empty", fix='write source = "tcp_mine.c"')
    return tuple(one_line(str(name)) for name in names)


def _parameter(value: object) -> object:
    if isinstance(value, str):
        if len(value) > 1000 or "\0" in value:
            raise InputError(
                "out-of-range", "a parameter has at most 1000 characters", fix="shorten it to 1000 characters"
            )
        return value
    if not isinstance(value, int):
        fix = "write a whole number, true or false, or text, as the module declares it"
        raise InputError("wrong-type", "a parameter of a module cannot have a value of this type", fix=fix)
    if not -(2**63) <= value < 2**64:
        raise InputError("out-of-range", "no type of parameter can hold this number", fix="choose a smaller number")
    return value


Parameter = Annotated[Any, PlainValidator(_parameter, json_schema_input_type=int | bool | str)]


class Module(Part):
    """A congestion control from its C source, as written for Linux; engine ``sim`` compiles and runs it. The file's own
    directory is where a scenario file looks for it.
    """

    source: Annotated[tuple[str, ...], BeforeValidator(_sources)] = Field(
        min_length=1, max_length=20, description="the C file, or several that belong together"
    )
    name: Control | None = Field(None, description="which one, where it registers several")
    parameters: dict[Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")], Parameter] = Field(
        {}, description="module parameters"
    )

    @field_serializer("source")
    def _as_given(self, source: tuple[str, ...]) -> str | list[str]:
        return source[0] if len(source) == 1 else list(source)

    @property
    def label(self) -> str:
        """What it is called here: by its name, if that was given, else by its file's."""
        stem = re.sub(r"[^A-Za-z0-9_+-]", "_", Path(self.source[0]).stem)[:40]
        return self.name or (stem if stem and not stem.isdigit() else "module")

    def __str__(self) -> str:
        return self.label


VARIANTS = {"bbr3": ("draft", "ecn"), "reno": ("abe",), "cubic": ("abe",)}
"""What else than Linux's behaviour the engine ``sim`` has under a control's name."""


class Variant(Part):
    """A congestion control as another text than Linux's has it: ``draft`` is draft-ietf-ccwg-bbr, ``ecn`` BBR v3
    with its tree's low-latency ECN, ``abe`` RFC 8511, by which an echoed mark takes less of the window than a loss;
    engine ``sim``.
    """

    name: Control = Field(description="the congestion control")
    variant: Control = Field(description="`bbr3` has `draft` and `ecn`, `reno` and `cubic` have `abe`")

    @property
    def label(self) -> str:
        """What it is called here."""
        return f"{self.name}-{self.variant}"

    def __str__(self) -> str:
        return self.label


def check_variant(given: Variant) -> None:
    """Raises InputError ``unknown-name``."""
    known = VARIANTS.get(given.name, ())
    if given.variant not in known:
        what = f'"{plain(given.name, 60)}" has no variant "{plain(given.variant, 60)}"'
        fix = suggestion(given.variant, known) if known else f"{', '.join(VARIANTS)} have some; leave it out"
        raise InputError("unknown-name", what, fix=fix)


def told_control(value: object) -> object:
    """A name, a variant or a module, told apart by what was written."""
    if isinstance(value, (Module, Variant)):
        return value
    if isinstance(value, Mapping):
        kind = Variant if "variant" in value and "source" not in value else Module
        try:
            return kind.model_validate(dict(value))
        except ValidationError as error:
            raise first_problem(error, kind, None) from None
    if not isinstance(value, str):
        fix = 'write it in quotes, cc = "cubic", or as a module: cc = { source = "tcp_mine.c" }'
        raise InputError("wrong-type", "text or a table is needed", fix=fix)
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,15}", value):
        fix = 'use letters, digits, "-" and "_", at most 15'
        raise InputError("bad-name", f'"{plain(value, 60)}" is not a name that can be used here', fix=fix)
    return value
