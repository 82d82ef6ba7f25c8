"""Sets of letters: what one place of a pattern may match."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .alphabets import EVERY, LAST, NOTHING, Kind, Ranges

CASED_END = 0x1E944
"""Behind it no letter has another case."""


@dataclass(frozen=True, slots=True)
class Letters:
    """The letters of `ranges` and of `kinds`; with `negated`, all others."""

    ranges: Ranges = ()
    kinds: Kind = NOTHING
    negated: bool = False


ANY = Letters(negated=True)
NO_NEWLINE = Letters(ranges=((0xA, 0xA),), negated=True)


def one(letter: str, *, any_case: bool = False) -> Letters:
    codes = {ord(each) for each in (cases(letter) if any_case else (letter,))}
    return Letters(merged((code, code) for code in codes))


def cases(letter: str) -> set[str]:
    """A letter and what it is in lower and in upper case, one step in each direction."""
    return {letter, *(each for each in (letter.lower(), letter.upper()) if len(each) == 1)}


def in_cases(low: int, high: int) -> Ranges:
    """A range with the other cases of its letters."""
    found = {
        ord(each) for code in range(low, min(high + 1, CASED_END)) for each in cases(chr(code))
    }
    return merged([(low, high), *((code, code) for code in found)])


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Returns the ranges in order, with adjacent ranges joined."""
    made: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if made and low <= made[-1][1] + 1:
            made[-1] = (made[-1][0], max(high, made[-1][1]))
        else:
            made.append((low, high))
    return tuple(made)


def others(ranges: Ranges) -> Ranges:
    """All code points that are in none of the ranges."""
    made: list[tuple[int, int]] = []
    begin = 0
    for low, high in ranges:
        if begin < low:
            made.append((begin, low - 1))
        begin = high + 1
    if begin <= LAST:
        made.append((begin, LAST))
    return tuple(made)


def other_kinds(kinds: Kind) -> Kind:
    return EVERY & ~kinds
