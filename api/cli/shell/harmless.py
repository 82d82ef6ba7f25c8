"""Texts of others on a terminal: made so that they move no cursor, and do no worse.

A value, a name, a message may hold escape sequences, which a terminal would obey: they clear the
screen, rename its window, and on some paste into its input. They are shown as what they are.
"""

from __future__ import annotations

from io import TextIOBase
from typing import TextIO

_LAYOUT = "\n\t"


class Harmless(TextIOBase):
    """A stream whose texts are made harmless."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(harmless(text))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()


def harmless(text: str) -> str:
    """Every character that is neither printable nor layout as its escape."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in _LAYOUT else c.encode("unicode_escape").decode() for c in text
    )
