"""Marks: bytes before each letter of a text, and at its end, that say what is true of that place.

RE2 cannot look around. So what a pattern asks of places (is there a word's beginning, does `ab`
follow) is found out beforehand, for each place of a text, and written into it; to ask is to match
a mark then:

    pattern  (?=ab)\\w+     text  'cab'   →   0c 1a 0b 0       [1](?:[01]*\\w)+

A pattern may ask several things of one place, one behind the other, so that there are `copies` of
each mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .alphabets import WORD, kind
from .nodes import Anchor, Choice, Group, Place, Repeat, places_in
from .scanner import TOO_COMPLEX, invalid

Truths = Sequence[bool]
"""Of each place of a text: one more than there are letters."""

PLACES_MAX = 6
"""Different things that a pattern asks of places: each combination is a byte."""
COPIES_MAX = 100
"""Bytes of marks before a letter: so many times longer is what RE2 reads."""


class Marks:
    """Raises SQLError 2201B for more than PLACES_MAX, COPIES_MAX or the bytes that are `free`."""

    __slots__ = ("_bytes", "any", "copies", "places")

    def __init__(self, choice: Choice, free: Sequence[int]) -> None:
        places = tuple(dict.fromkeys(places_in(choice)))
        self.copies = _copies(choice)
        if len(places) > PLACES_MAX or self.copies > COPIES_MAX or 1 << len(places) > len(free):
            raise invalid(TOO_COMPLEX)
        self.places = places
        self._bytes = bytes(free[: 1 << len(places)])
        self.any = _class(self._bytes)

    def written(self, place: Place) -> str:
        """The marks of places of which it is true, as RE2 writes them."""
        bit = 1 << self.places.index(place)
        return _class(byte for signs, byte in enumerate(self._bytes) if signs & bit)

    def into(self, coloured: bytes, truths: Sequence[Truths]) -> bytes:
        """The colours of a text with marks before each, and at the end, by what is true of the
        places that are asked of."""
        signs = [0] * (len(coloured) + 1)
        for number, of_places in enumerate(truths):
            for at, truth in enumerate(of_places):
                signs[at] |= truth << number
        stride = self.copies + 1
        made = bytearray(stride * len(coloured) + self.copies)
        marks = bytes(self._bytes[sign] for sign in signs)
        for copy in range(self.copies):
            made[copy::stride] = marks
        made[self.copies :: stride] = coloured
        return bytes(made)


def _class(found: Iterable[int]) -> str:
    return "[" + "".join(f"\\x{byte:02x}" for byte in found) + "]"


def _copies(choice: Choice) -> int:
    """How many places one behind the other a match may ask of, with no letter between them.

    Of a part that is repeated, no more repetitions are without a letter than it must have, beside
    the one that ends there and the one that begins.
    """
    total = 0
    for branch in choice.branches:
        for item in branch:
            if not isinstance(item, Repeat):
                total += 1
            elif isinstance(item.atom, Group):
                times = 1 if item.most in (0, 1) else item.least + 2
                total += times * _copies(item.atom.body)
    return total


def anchored(anchor: Anchor, text: str) -> Truths:
    """Of which places of a text an anchor is true."""
    count = len(text) + 1
    match anchor:
        case Anchor.TEXT_START:
            return [at == 0 for at in range(count)]
        case Anchor.TEXT_END:
            return [at == len(text) for at in range(count)]
        case Anchor.LINE_START:
            return [True, *(letter == "\n" for letter in text)]
        case Anchor.LINE_END:
            return [*(letter == "\n" for letter in text), True]
    words = [bool(kind(letter) & WORD) for letter in text]
    edges = list(zip([False, *words], [*words, False], strict=True))
    match anchor:
        case Anchor.WORD_START:
            return [behind and not before for before, behind in edges]
        case Anchor.WORD_END:
            return [before and not behind for before, behind in edges]
        case Anchor.WORD_EDGE:
            return [before is not behind for before, behind in edges]
    return [before is behind for before, behind in edges]
