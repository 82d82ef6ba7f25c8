"""Patterns of dates and times, as to_char() reads them.

A pattern is cut into words, each with what stands around it (`FMDDth`), and other letters. Words
are known in capitals and in small letters; those that write a name also with a capital first, as
the name is to be written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

_PLAIN = (
    "A.D. A.M. AD AM B.C. BC CC DDD DD D FF1 FF2 FF3 FF4 FF5 FF6 FX HH24 HH12 HH IDDD ID IW IYYY "
    "IYY IY I J MI MM MS OF P.M. PM Q RM SSSSS SSSS SS TZH TZM TZ US WW W Y,YYY YYYY YYY YY Y"
)
_NAMES = "DAY DY MONTH MON"
_WORDS = sorted(
    {
        form
        for word in _PLAIN.split() + _NAMES.split()
        for form in (word, word.lower(), *([word.capitalize()] if word in _NAMES.split() else []))
    },
    key=len,
    reverse=True,
)
_PREFIXES, _SUFFIXES = ("FM", "fm", "TM", "tm"), ("TH", "th", "SP")


@dataclass(frozen=True, slots=True)
class Piece:
    """A word, or a letter that is `literal`. `text` is as it is written; `prefix` and `suffix` are
    what stands around a word."""

    text: str
    literal: bool = False
    prefix: str = ""
    suffix: str = ""

    @property
    def word(self) -> str:
        return self.text.upper()

    @property
    def unfilled(self) -> bool:
        return self.prefix == "FM"

    @property
    def ordinal(self) -> bool:
        return self.suffix.upper() == "TH"


@lru_cache(maxsize=256)
def moment_pattern(text: str) -> tuple[Piece, ...]:
    """Cuts a pattern of to_char() into its pieces."""
    made: list[Piece] = []
    at = 0
    while at < len(text):
        prefix = next((each for each in _PREFIXES if text.startswith(each, at)), "")
        at += len(prefix)
        word = next((each for each in _WORDS if text.startswith(each, at)), None)
        if word is not None:
            at += len(word)
            suffix = next((each for each in _SUFFIXES if text.startswith(each, at)), "")
            at += len(suffix)
            made.append(Piece(word, prefix=prefix.upper(), suffix=suffix))
        elif text[at : at + 1] == '"':
            at = _quoted(text, at + 1, made)
        elif at < len(text):
            at += text.startswith('\\"', at)
            made.append(Piece(text[at], literal=True))
            at += 1
    return tuple(made)


def _quoted(text: str, at: int, made: list[Piece]) -> int:
    """Adds the letters up to a quote, and returns the place behind it."""
    while at < len(text) and text[at] != '"':
        at += text[at] == "\\" and at + 1 < len(text)
        made.append(Piece(text[at], literal=True))
        at += 1
    return at + 1
