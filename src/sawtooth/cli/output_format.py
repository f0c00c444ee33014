"""Options for the format of an answer: --json or --csv."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from sawtooth.errors import InputError


def form_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Both options, as the parameter ``form``: "json", "csv" or None. Giving both is refused with ``bad-usage``."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
    @functools.wraps(command)
    def called(*arguments: Any, as_json: bool, as_csv: bool, **options: Any) -> Any:
        if as_json and as_csv:
            raise InputError("bad-usage", "--json asks for another format", field="--csv", fix="remove --csv or --json")
        return command(*arguments, form="json" if as_json else "csv" if as_csv else None, **options)

    return called
