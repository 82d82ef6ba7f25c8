"""to_number(): the digits that a pattern finds in a text.

The pattern goes through the text from left to right: 9, 0 and the point take a digit or the point
where there is one, and a sign before the first digit or behind the last; what else the pattern has
skips letters that are no digits and no signs.
"""

from __future__ import annotations

from decimal import Context, Decimal, InvalidOperation

from ....catalog.values.errors import SQLError
from .number_pattern import NumberPattern, Part, SignPlace, number_pattern

_DATA = frozenset("0123456789.,+-")
"""What words of the pattern that stand for other letters do not skip."""
_DIGITS = frozenset("0123456789")
_SIGNS = {"MI": "-", "PL": "+", "SG": "+-"}
_EXACT = Context(prec=2000)


def number_of(text: str, pattern: str) -> Decimal | None:
    """NULL for an empty pattern. Raises SQLError 22P02 where no digits are found."""
    if not pattern:
        return None
    read = number_pattern(pattern)
    for word in ("EEEE", "RN"):
        if word in read.said:
            raise SQLError("0A000", f'"{word}" not supported for input')
    found = _Reader(read, text).found()
    try:
        number = Decimal(found)
    except InvalidOperation:
        raise SQLError("22P02", f'invalid input syntax for type numeric: "{found}"') from None
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), number
    room = read.before + read.shifted
    if number and number.adjusted() >= room:
        raise SQLError("22003", "numeric field overflow")
    return number.scaleb(-read.shifted, _EXACT)


class _Reader:
    """One text under one pattern: `_at` is the next letter of it."""

    def __init__(self, read: NumberPattern, text: str) -> None:
        self._read, self._text = read, text
        self._at = 0
        self._sign = " "
        self._digits: list[str] = []
        self._point = False
        self._behind = 0

    def found(self) -> str:
        for part in self._read.parts:
            if self._ended():
                break
            self._take(part)
        return self._sign + "".join(self._digits).removesuffix(".")

    def _ended(self) -> bool:
        return self._at >= len(self._text)

    def _take(self, part: Part) -> None:
        match part.word:
            case "":
                self._at += 1  # whatever it is
            case "9" | "0" | "." | "D":
                self._take_digit(part.word)
                self._at += 1
            case "," | "G":
                skipped = not self._read.fills
                if not skipped and self._text[self._at] == ",":
                    self._at += 1
            case "MI" | "PL" | "SG":
                self._take_sign(part.word)
            case "L":
                self._skip(1)
            case "TH" if "." not in self._read.said:
                self._skip(2)

    def _take_sign(self, word: str) -> None:
        if self._text[self._at] in _SIGNS[word]:
            self._sign = self._text[self._at]
            self._at += 1
        else:
            self._skip(1)

    def _skip(self, count: int) -> None:
        while count and not self._ended() and self._text[self._at] not in _DATA:
            self._at += 1
            count -= 1

    def _take_digit(self, word: str) -> None:
        if self._text[self._at] == " ":
            self._at += 1
        if self._ended():
            return
        if self._sign == " " and word in ("0", "9") and not self._any_digit():
            self._take_sign_before()
        if self._ended():
            return
        letter, taken = self._text[self._at], False
        if letter in _DIGITS:
            if self._point and self._behind == self._read.behind:
                return
            self._digits.append(letter)
            self._behind += self._point
            taken = True
        elif "." in self._read.said and not self._point and letter == ".":
            self._digits.append(letter)
            self._point = taken = True
        if self._sign == " " and self._any_digit():
            self._take_sign_behind(taken=taken)

    def _any_digit(self) -> bool:
        return any(letter != "." for letter in self._digits)

    def _take_sign_before(self) -> None:
        letter = self._text[self._at]
        if "S" in self._read.said and self._read.sign is SignPlace.BEFORE:
            signs = {"-": "-", "+": "+"}
        else:
            signs = {"-": "-", "+": "+"} | ({"<": "-"} if "PR" in self._read.said else {})
        if letter in signs:
            self._sign = signs[letter]
            self._at += 1

    def _take_sign_behind(self, *, taken: bool) -> None:
        said = self._read.said
        following = self._text[self._at + 1 : self._at + 2]
        if "S" in said and taken and following and following not in _DIGITS:
            if following in "+-":
                self._sign = following
                self._at += 1
        elif not taken and "S" not in said and said & {"PL", "MI"} and self._text[self._at] in "+-":
            self._sign = self._text[self._at]
