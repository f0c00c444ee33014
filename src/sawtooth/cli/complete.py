"""What a shell completes words to: names of shipped studies, engines, congestion controls, fields of --set."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def studies(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Shipped studies, and files."""
    from sawtooth.study.shipped import shipped

    names = [CompletionItem(name) for name in shipped() if name.startswith(typed)]
    return names or [CompletionItem(typed, type="file")]


def engines(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of engines."""
    from sawtooth.engines import NAMES

    return [CompletionItem(name) for name in NAMES if name.startswith(typed)]


def controls(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of congestion controls."""
    from sawtooth.scenario import CONGESTION_CONTROLS

    return [CompletionItem(name) for name in CONGESTION_CONTROLS if name.startswith(typed)]


def assignments(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
    """Fields by dotted path, with what comes after ``=`` where that is one of a few words."""
    from sawtooth.scenario import CONGESTION_CONTROLS
    from sawtooth.scenario.fields import fields

    if typed.startswith("flows.cc="):
        words = [f"flows.cc={name}" for name in CONGESTION_CONTROLS]
    else:
        words = [f"{name}=" for name in fields()]
    return [CompletionItem(word) for word in words if word.startswith(typed)]
