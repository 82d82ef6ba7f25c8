"""Texts as a pattern sees them: one byte for each letter, equal for letters it does not tell apart.

    pattern  [a-c]+\\d     text  'cab7 é'  →  b'111022' (1 for a to c, 0 for digits, 2 for others)

So RE2 works on bytes, its classes are small whatever alphabets a pattern speaks of, and a place in
what it finds is a place in the text. (Spencer's engine, which is PostgreSQL's, does the same and
calls them colours.) RE2 knows the edges of words of ASCII alone: where a pattern asks for them,
letters of words get bytes that are letters of ASCII, and the others get others.
"""

from __future__ import annotations

from collections.abc import Iterable

from .alphabets import LAST, WORD, Kind, kind
from .letters import Letters
from .scanner import TOO_COMPLEX, invalid

_NEWLINE = 0xA
_WORDS = tuple(byte for byte in range(128) if chr(byte).isalnum() or byte == ord("_"))
_ELSE = tuple(byte for byte in range(256) if byte not in (*_WORDS, _NEWLINE))
_SHORT = 64
"""Letters of a range that are looked at one by one. Longer ones may have letters of every kind."""
TABLE_MAX = 1 << 14
"""Letters whose colours are remembered; where there are more, it begins anew."""

_Signature = tuple[bool, ...]
"""Which of the sets have the letter, whether it is of words, and whether it is a newline."""


class Colours(dict[int, int]):
    """The colour of each letter by its code, as `str.translate` asks for it.

    `sets` are what the pattern asks for; `words`, whether it asks for the edges of words. Raises
    SQLError 2201B where it tells more letters apart than there are bytes.
    """

    def __init__(self, sets: Iterable[Letters], *, words: bool) -> None:
        super().__init__()
        self._sets = tuple(sets)
        self._words = words
        self._bounds = sorted({0, LAST + 1, *_ends(self._sets)})
        self._bytes: dict[_Signature, int] = {}
        self._give_bytes()
        self._classes = [self._class(place) for place in range(len(self._sets))]

    def __missing__(self, code: int) -> int:
        if len(self) >= TABLE_MAX:
            self.clear()
        colour = self._bytes[self._signature(code, kind(chr(code)))]
        self[code] = colour
        return colour

    def of(self, text: str) -> bytes:
        return text.translate(self).encode("latin-1")

    def free(self) -> list[int]:
        """The bytes that are no colours."""
        return sorted(set(range(256)) - set(self._bytes.values()))

    def written(self, letters: Letters) -> str:
        """One of the sets as RE2 writes a class of bytes."""
        return self._classes[self._sets.index(letters)]

    def _class(self, place: int) -> str:
        found = sorted({byte for signed, byte in self._bytes.items() if signed[place]})
        if not found:
            return r"[^\x00-\xff]"
        return "[" + "".join(f"\\x{byte:02x}" for byte in found) + "]"

    def _give_bytes(self) -> None:
        left = {True: iter(_WORDS), False: iter(_ELSE if self._words else (*_WORDS, *_ELSE))}
        for signature in self._signatures():
            if signature in self._bytes:
                continue
            if signature[-1]:
                self._bytes[signature] = _NEWLINE
                continue
            byte = next(left[signature[-2]], None)
            if byte is None:
                raise invalid(TOO_COMPLEX)
            self._bytes[signature] = byte

    def _signatures(self) -> Iterable[_Signature]:
        """Those of all letters, and perhaps of some that there are not."""
        telling = self._words or any(letters.kinds for letters in self._sets)
        for low, end in zip(self._bounds, self._bounds[1:], strict=False):
            if end - low <= _SHORT:
                yield from (self._signature(code, kind(chr(code))) for code in range(low, end))
                continue
            yield self._signature(low, kind(chr(low)))
            for each in Kind if telling else ():
                yield self._signature(low, each)
        yield self._signature(_NEWLINE, Kind.NONE)

    def _signature(self, code: int, of: Kind) -> _Signature:
        found = [
            (bool(letters.kinds & of) or any(low <= code <= high for low, high in letters.ranges))
            is not letters.negated
            for letters in self._sets
        ]
        return (*found, self._words and bool(of & WORD), code == _NEWLINE)


def _ends(sets: Iterable[Letters]) -> set[int]:
    """Where the ranges of sets begin and end, and the newline does."""
    ends = {_NEWLINE, _NEWLINE + 1}
    for letters in sets:
        for low, high in letters.ranges:
            ends |= {low, high + 1}
    return ends
