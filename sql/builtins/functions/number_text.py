"""to_char() of numbers: a number's digits laid under a pattern's, from the left.

The digits are prepared first (`_Digits`): rounded to the places of the pattern, without their sign,
or a row of `#` where there are more than it has room for. Then each word of the pattern writes what
it is for (`_Writer`), a sign where the first digit comes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from struct import pack, unpack

from .number_pattern import NumberPattern, Part, SignPlace, number_pattern

_EXACT = Context(prec=2000)
_END = "\0"
"""Ends what is written, where digits are asked for of which there are no more."""
_FLOAT_DIGITS = {"float4": 6, "float8": 15}
"""Digits that a float has for sure, and that are written of it."""


def decimal_text(text: str, pattern: str) -> str:
    """Of an integer or a decimal, as its text."""
    read = number_pattern(pattern)
    return _Writer(read, _fitted(Decimal(text), read)).written()


def float8_text(number: float, pattern: str) -> str:
    return _float_text(number, pattern, "float8")


def float4_text(number: float, pattern: str) -> str:
    return _float_text(number, pattern, "float4")


def _float_text(number: float, pattern: str, type: str) -> str:
    read = number_pattern(pattern)
    value = number
    if type == "float4" and math.isfinite(value):
        value = _single(value)
    whole = _fixed(abs(value), 0)
    behind = min(read.behind, max(_FLOAT_DIGITS[type] - len(whole), 0))
    return _Writer(read, _in_room(_fixed(value, behind), read, behind)).written()


def _single(value: float) -> float:
    try:
        return float(unpack("f", pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _fixed(value: float, digits: int) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.{digits}f}"


@dataclass(frozen=True, slots=True)
class _Digits:
    """What is to be written: digits and at most one point, the sign, and how many digits of the
    pattern stand before the first."""

    text: str
    sign: str
    missing: int
    behind: int = 0
    """Digits behind the point: those of the pattern, or as many as a float has."""


def _fitted(number: Decimal, read: NumberPattern) -> _Digits:
    rounded = number.quantize(Decimal(1).scaleb(-read.behind), ROUND_HALF_UP, _EXACT)
    text = f"{rounded:f}"
    text = text.removeprefix("-") if rounded == 0 else text
    return _in_room(text, read, read.behind)


def _in_room(text: str, read: NumberPattern, behind: int) -> _Digits:
    sign, text = ("-", text[1:]) if text.startswith("-") else ("+", text)
    room, length = read.before, len(text.partition(".")[0])
    if length > room:
        return _Digits("#" * room + "." + "#" * behind, sign, 0, behind)
    return _Digits(text, sign, room - length, behind)


class _Writer:
    """One number on its way through one pattern. `_place` counts the digits of the pattern that
    were met, the point among them, and `_at` those of the number that were written."""

    def __init__(self, read: NumberPattern, digits: _Digits) -> None:
        self._read, self._digits = read, digits
        self._made: list[str] = []
        self._place = self._at = 0
        self._digit_written = False
        self._said = read.said
        self._before = read.before
        self._behind = digits.behind
        self._sign_at = read.sign
        self._zeros_from = read.zeros_from - 1 if read.zeros_from else 0
        self._settle_sign()
        self._last = self._last_relevant()
        self._count = self._behind + self._before - 1
        if not self._sign_written and digits.missing == 0:
            self._count += 1

    def _settle_sign(self) -> None:
        said = self._said
        positive = self._digits.sign == "+"
        self._sign_written = "MI" in said or (positive and "FM" in said and "S" not in said)
        before = self._sign_at is SignPlace.BEFORE
        if before and self._before == self._read.digits_before_sign:
            self._sign_at = SignPlace.BEHIND

    def _last_relevant(self) -> int | None:
        """With FM, the place of the last digit behind the point that is no zero for filling."""
        text = self._digits.text
        if not {"FM", "."} <= self._said or "." not in text:
            return None
        last = max(len(text.rstrip("0")) - 1, text.index("."))
        if self._read.zeros_to > self._digits.missing:
            last = max(last, min(len(text) - 1, self._read.zeros_to - self._digits.missing))
        return last

    def written(self) -> str:
        for part in self._read.parts:
            self._write(part)
        return "".join(self._made).partition(_END)[0]

    def _write(self, part: Part) -> None:
        sign, fills = self._digits.sign, "FM" not in self._said
        match part.word:
            case "":
                self._made.append(part.text)
            case "9" | "0" | "." | "D":
                self._write_digit(part.word)
            case "," | "G":
                if self._digit_written:
                    self._made.append(",")
                elif fills:
                    self._made.append(" ")
            case "MI":
                self._made.append("-" if sign == "-" else " " if fills else "")

    def _write_digit(self, word: str) -> None:
        self._digit_written = False
        fills, missing = "FM" not in self._said, self._digits.missing
        zeros = "0" in self._said and self._zeros_from <= self._place
        self._write_sign_before()
        if self._place < missing and not zeros:
            self._made.append(" " if fills else "")
        elif self._place < missing:
            self._made.append("0")
            self._digit_written = True
        else:
            self._write_own_digit(word)
        self._write_sign_behind()
        self._place += 1

    def _ends_in_point(self) -> bool:
        return self._last is not None and self._digits.text[self._last] == "."

    def _blank_zero(self) -> bool:
        """Whether the zero before the point is not written: `9.9` shows 0.1 as ` .1`."""
        text = self._digits.text
        return "0" not in self._said and self._at == 0 and text[:1] == "0" and self._behind != 0

    def _write_sign_before(self) -> None:
        starts = self._place >= self._digits.missing or (
            "0" in self._said and self._zeros_from == self._place
        )
        if self._sign_written or not starts:
            return
        if self._blank_zero() and not self._ends_in_point():
            return
        sign, said = self._digits.sign, self._said
        if "S" in said:
            if self._sign_at is SignPlace.BEFORE:
                self._made.append(sign)
                self._sign_written = True
            return
        if sign == "-":
            self._made.append("-")
        elif "FM" not in said:
            self._made.append(" ")
        self._sign_written = True

    def _write_own_digit(self, word: str) -> None:
        text = self._digits.text
        letter = text[self._at : self._at + 1]
        if letter == ".":
            self._made.append(".")
        elif self._last is not None and self._at > self._last and word != "0":
            pass
        elif self._blank_zero():
            if "FM" not in self._said:
                self._made.append(" ")
            elif self._ends_in_point():
                self._made.append("0")
        else:
            self._made.append(letter or _END)
            self._digit_written = True
        self._at += bool(letter)

    def _write_sign_behind(self) -> None:
        end = self._count + bool(self._digits.missing) + ("." in self._said)
        if self._last is not None and self._last == self._at:
            end = self._place
        if self._place + 1 != end:
            return
        if "S" in self._said and self._sign_at is SignPlace.BEHIND:
            self._made.append(self._digits.sign)
