"""Makes text safe for a terminal: characters that would move the cursor, change color or direction are escaped.

Names, keys and values from foreign files reach messages and tables. A control character could hide or forge output, and
a value of a million digits would bury it.
"""

from __future__ import annotations

import re
from typing import Any

LONGEST = 200
"""Most characters of a value or name in a sentence; the middle of a longer one is left out."""
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
    r"""One short line: line ends and other unprintable characters are escaped (``\u000a``), the middle is cut.

    The escapes are JSON's, so text that contains JSON stays valid.
    """
    text = value if isinstance(value, str) else str(value)
    if len(text) > most:
        # An escape takes at most six characters.
        text = text[: most // 2] + "…" + text[len(text) - (most - most // 2 - 1) :]
    return _HARMFUL.sub(_escape, text)


def where(path: object) -> str:
    """A file's full name on one line, unchanged if all its characters are printable."""
    return _HARMFUL.sub(_escape, str(path))


def is_plain(text: str) -> bool:
    """Whether a terminal shows every character in its place, on one line."""
    return _HARMFUL.search(text) is None


def sentence(text: str) -> str:
    """A message: further lines are indented, so that none can look like one of Sawtooth's."""
    lines = text.split("\n")
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES // 2], "…", *lines[-_MOST_LINES // 2 :]]
    return "\n    ".join(plain(line, _LONGEST_LINE) for line in lines)


def printable(text: str) -> str:
    """Complete output with line ends and tabs: the last check before a terminal."""
    return _HARMFUL_BUT_LAYOUT.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number > 0xFFFF:
        number -= 0x10000
        return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
    return f"\\u{number:04x}"
