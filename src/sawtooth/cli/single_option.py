"""Options that may be given only once. click itself would use the last value and silently ignore the others."""

from __future__ import annotations

from typing import Any

import click

from sawtooth.errors import InputError


class Once(click.Option):
    """An option that is refused with ``bad-usage`` if given twice."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "multiple": True})

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """The one value, or None."""
        found = super().process_value(ctx, value)
        if found and len(found) > 1:
            fix = "give it once"
            raise InputError("bad-usage", f"is given {len(found)} times", field=self.opts[0], fix=fix)
        return found[0] if found else None
