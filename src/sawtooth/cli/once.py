"""Options that are given once: click takes the last of several, and says nothing of the others."""

from __future__ import annotations

from typing import Any

import click

from sawtooth.errors import InputError


class Once(click.Option):
    """Given twice it is refused: ``bad-usage``."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "multiple": True})

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """The one value, or None."""
        found = super().process_value(ctx, value)
        if found and len(found) > 1:
            fix = "give it once"
            raise InputError("bad-usage", f"is given {len(found)} times", field=self.opts[0], fix=fix)
        return found[0] if found else None
