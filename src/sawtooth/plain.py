"""Text that a terminal may show: what would move its cursor, colour it or turn its direction is written out instead.

Names, keys and values of other people's files reach messages and tables. A control character in one could hide or forge
what is printed, and a value of a million digits would bury it.
"""

from __future__ import annotations

import re
from typing import Any

LONGEST = 200
"""Characters of a value or name in a sentence; of what is longer the middle is left out."""
_LONGEST_LINE = 1000
_MOST_LINES = 60

# C0 and C1 controls and DEL; marks, embeddings, overrides and isolates of direction; separators of lines and
# paragraphs; deprecated format characters; interlinear annotations; halves of surrogate pairs; tags.
_RANGES = (
    r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f"
)
_HARMFUL = re.compile(f"[{_RANGES}]")
_HARMFUL_BUT_LAYOUT = re.compile(f"(?![\n\t])[{_RANGES}]")


def plain(value: Any, most: int = LONGEST) -> str:
    """One short line: line ends and whatever else is no letter are written out (``\\u000a``), the middle is cut.

    The escapes are JSON's, so that text which holds JSON stays it.
    """
    text = value if isinstance(value, str) else str(value)
    if len(text) > most:
        # An escape takes six characters at most of what follows.
        text = text[: most // 2] + "…" + text[len(text) - (most - most // 2 - 1) :]
    return _HARMFUL.sub(_escape, text)


def where(path: object) -> str:
    """A file's whole name on one line: as it is, if it has only letters in it."""
    return _HARMFUL.sub(_escape, str(path))


def is_plain(text: str) -> bool:
    """Whether a terminal shows every character as a letter in its place, on one line."""
    return _HARMFUL.search(text) is None


def sentence(text: str) -> str:
    """A message: further lines are indented, so that none can pass for one of ours."""
    lines = text.split("\n")
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES // 2], "…", *lines[-_MOST_LINES // 2 :]]
    return "\n    ".join(plain(line, _LONGEST_LINE) for line in lines)


def printable(text: str) -> str:
    """Whole output, line ends and tabs as they are: the last look at what goes to a terminal."""
    return _HARMFUL_BUT_LAYOUT.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number > 0xFFFF:
        number -= 0x10000
        return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
    return f"\\u{number:04x}"
