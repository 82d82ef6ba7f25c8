"""Letters in brackets: `[a-z]`, `[^\\s[:digit:]]`."""

from __future__ import annotations

from dataclasses import dataclass, field

from .alphabets import CLASSES, KIND_CLASSES, LAST, NOTHING, RANGE_CLASSES, Kind
from .escapes import escape
from .letters import Letters, in_cases, merged
from .scanner import (
    BAD_BRACKETS,
    BAD_CLASS,
    BAD_ELEMENT,
    BAD_ESCAPE,
    BAD_RANGE,
    Scanner,
    invalid,
)

_NEWLINE = (0xA, 0xA)
_CASED = ("upper", "lower")
"""Where case means nothing, a letter of either is one of any."""


@dataclass(slots=True)
class _Found:
    ranges: list[tuple[int, int]] = field(default_factory=list)
    kinds: Kind = NOTHING


def brackets(scanner: Scanner) -> Letters:
    """Reads them, the first bracket being read already. Raises SQLError 2201B."""
    negated = scanner.takes("^")
    found = _Found()
    first = True
    while first or not scanner.takes("]"):
        _part(scanner, found, first=first)
        first = False
    if negated and scanner.options.stops:
        found.ranges.append(_NEWLINE)
    return Letters(merged(found.ranges), found.kinds, negated)


def _part(scanner: Scanner, found: _Found, *, first: bool) -> None:
    """A letter, a range or a class."""
    if not first and scanner.sees("-") and not scanner.sees("-]"):
        raise invalid(BAD_RANGE)
    low = _element(scanner, found)
    if low is None:
        return
    high = low
    if scanner.sees("-") and not scanner.sees("-]"):
        scanner.at += 1
        end = _element(scanner, None)
        assert end is not None, scanner.text
        high = end
    if high < low:
        raise invalid(BAD_RANGE)
    high = min(high, LAST)
    if low <= LAST:
        found.ranges += in_cases(low, high) if scanner.options.any_case else [(low, high)]


def _element(scanner: Scanner, found: _Found | None) -> int | None:
    """A letter's code; None where it was a class, which is put into `found`."""
    if scanner.ended:
        raise invalid(BAD_BRACKETS)
    if scanner.takes("\\"):
        return _escaped(scanner, found)
    if scanner.takes("[:"):
        _add_class(_named(scanner, ":]", BAD_CLASS), found, any_case=scanner.options.any_case)
        return None
    for opening, closing in (("[.", ".]"), ("[=", "=]")):
        if scanner.takes(opening):
            name = _named(scanner, closing, BAD_ELEMENT)
            if len(name) != 1:
                raise scanner.unsupported("the name of a letter", "Write the letter.")
            return ord(name)
    letter = scanner.take()
    if letter == "[" and scanner.ended:
        raise invalid(BAD_BRACKETS)
    return ord(letter)


def _escaped(scanner: Scanner, found: _Found | None) -> int | None:
    if scanner.ended:
        raise invalid(BAD_ESCAPE)
    meant = escape(scanner)
    if isinstance(meant, int):
        return meant
    if not isinstance(meant, Letters):
        raise invalid(BAD_ESCAPE)
    if found is None:
        raise invalid(BAD_RANGE)
    found.ranges += meant.ranges
    found.kinds |= meant.kinds
    return None


def _named(scanner: Scanner, closing: str, reason: str) -> str:
    end = scanner.text.find(closing, scanner.at)
    if end < 0:
        raise invalid(BAD_BRACKETS)
    name = scanner.text[scanner.at : end]
    scanner.at = end + len(closing)
    if not name:
        raise invalid(reason)
    return name


def _add_class(name: str, found: _Found | None, *, any_case: bool) -> None:
    if name not in CLASSES:
        raise invalid(BAD_CLASS)
    if found is None:
        raise invalid(BAD_RANGE)
    name = "alpha" if any_case and name in _CASED else name
    found.ranges += RANGE_CLASSES.get(name, ())
    found.kinds |= KIND_CLASSES.get(name, NOTHING)
