"""Patterns of numbers, as to_char() reads them: `FM9G999D00S`.

    9 0         a digit; 0 shows that it is one where 9 shows a blank, or nothing with FM
    . D , G     the point, and the sign between thousands
    S MI        where a sign stands
    FM          no blanks, and no zeros behind the last digit
    "text"      itself, as any other letter is

There is no locale but C: G is a comma and D a point. PostgreSQL's other words are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache

from ....catalog.values.errors import SQLError

WORDS = ("EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH",
         ",", ".", "0", "9", "B", "C", "D", "G", "L", "S", "V")  # fmt: skip
"""The longer ones before those that begin alike; each is also known in small letters."""
_KNOWN = frozenset({"FM", "MI", ",", ".", "0", "9", "D", "G", "S"})


class SignPlace(Enum):
    """Where S puts the sign."""

    NONE = auto()
    BEFORE = auto()
    BEHIND = auto()


@dataclass(frozen=True, slots=True)
class Part:
    """A word of the pattern as it is written, or a letter that stands for itself."""

    text: str
    is_word: bool

    @property
    def word(self) -> str:
        return self.text.upper() if self.is_word else ""


@dataclass(slots=True)
class NumberPattern:
    """What the words of a pattern say together. `before` and `behind` count the digits on both
    sides of the point; `zeros_from` is the first digit that 0 asks for, from 1 on (0 for none), and
    `zeros_to` the last."""

    parts: tuple[Part, ...]
    before: int = 0
    behind: int = 0
    zeros_from: int = 0
    zeros_to: int = 0
    sign: SignPlace = SignPlace.NONE
    digits_before_sign: int = 0
    said: set[str] = field(default_factory=set)
    """The words that it has; a point is `.`, however it is written."""


@lru_cache(maxsize=256)
def number_pattern(text: str) -> NumberPattern:
    """Raises SQLError 42601 for words that do not go together."""
    made = NumberPattern(tuple(_parts(text)))
    for part in made.parts:
        if part.is_word:
            _note(made, part.word)
    return made


def _parts(text: str) -> Iterator[Part]:
    at = 0
    while at < len(text):
        if text[at] == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += text[at] == "\\" and at + 1 < len(text)
                yield Part(text[at], is_word=False)
                at += 1
            at += 1
            continue
        word = next((w for w in WORDS if text.startswith((w, w.lower()), at)), None)
        if word is not None:
            yield Part(text[at : at + len(word)], is_word=True)
            at += len(word)
            continue
        at += text.startswith('\\"', at)
        yield Part(text[at], is_word=False)
        at += 1


def _note(made: NumberPattern, word: str) -> None:
    said = made.said
    if word not in _KNOWN:
        raise SQLError(
            "0A000",
            f'not supported: "{word}" in a pattern of a number',
            hint="Patterns of numbers have 9, 0, a point or D, a comma or G, S, MI and FM.",
        )
    match word:
        case "9" | "0":
            _note_digit(made, word)
        case "." | "D":
            if "." in said:
                raise _wrong("multiple decimal points")
            said.add(".")
        case "S":
            _note_sign(made)
        case "MI":
            if "S" in said:
                raise _wrong('cannot use "S" and "MI" together')
            said.add("MI")
        case "FM":
            said.add("FM")


def _note_digit(made: NumberPattern, word: str) -> None:
    said = made.said
    if word == "0" and "0" not in said and "." not in said:
        said.add("0")
        made.zeros_from = made.before + 1
    if "." in said:
        made.behind += 1
    else:
        made.before += 1
    if word == "0":
        made.zeros_to = made.before + made.behind


def _note_sign(made: NumberPattern) -> None:
    said = made.said
    if "S" in said:
        raise _wrong('cannot use "S" twice')
    if "MI" in said:
        raise _wrong('cannot use "S" and "MI" together')
    said.add("S")
    made.sign = SignPlace.BEHIND if "." in said else SignPlace.BEFORE
    if made.sign is SignPlace.BEFORE:
        made.digits_before_sign = made.before


def _wrong(message: str) -> SQLError:
    return SQLError("42601", message)
