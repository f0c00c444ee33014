"""An error that a test expects."""

import contextlib
from collections.abc import Iterator

import pytest

from sawtooth.errors import SawtoothError


@contextlib.contextmanager
def expected_error(
    *, match: str | None = None, kind: type[SawtoothError] = SawtoothError, **facts: str | None
) -> Iterator[pytest.ExceptionInfo[SawtoothError]]:
    """Like ``pytest.raises``, for an error with exactly these ``facts``: ``code``, ``field``, ``file`` or ``fix``."""
    with pytest.raises(kind, match=match) as caught:
        yield caught
    found = {name: getattr(caught.value, name) for name in facts}
    assert found == facts, found
