"""Escapes: a backslash and the letters behind it."""

from __future__ import annotations

from dataclasses import dataclass

from .alphabets import KIND_CLASSES, LAST, RANGE_CLASSES
from .letters import Letters, other_kinds, others
from .nodes import Anchor
from .scanner import BAD_ESCAPE, Scanner, invalid


@dataclass(frozen=True, slots=True)
class BackReference:
    number: int


Escape = int | Letters | Anchor | BackReference
"""A letter by its code, which may be none of Unicode, or one of the others."""

_LETTERS = {"a": 7, "b": 8, "B": 0x5C, "e": 0x1B, "f": 0xC, "n": 0xA, "r": 0xD, "t": 9, "v": 0xB}
_ANCHORS = {
    "A": Anchor.TEXT_START,
    "Z": Anchor.TEXT_END,
}
_CLASSES = {
    "d": Letters(kinds=KIND_CLASSES["digit"]),
    "D": Letters(kinds=other_kinds(KIND_CLASSES["digit"])),
    "w": Letters(kinds=KIND_CLASSES["word"]),
    "W": Letters(kinds=other_kinds(KIND_CLASSES["word"])),
    "s": Letters(ranges=RANGE_CLASSES["space"]),
    "S": Letters(ranges=others(RANGE_CLASSES["space"])),
}
_CODED = {"u": (4, 4), "U": (8, 8), "x": (1, 255)}
"""The least and the greatest number of hexadecimal digits."""
_CODE_BITS = 0xFFFFFFFF


def escape(scanner: Scanner) -> Escape:
    """Reads one, its backslash being read already. Raises SQLError 2201B."""
    if scanner.ended:
        raise invalid(BAD_ESCAPE)
    letter = scanner.take()
    if not (letter.isascii() and letter.isalnum()):
        return ord(letter)
    if letter in _LETTERS:
        return _LETTERS[letter]
    if letter in _ANCHORS:
        return _ANCHORS[letter]
    if letter in _CLASSES:
        return _CLASSES[letter]
    if letter in "mMyY":
        raise scanner.word_edge()
    if letter in _CODED:
        return _number(scanner, 16, *_CODED[letter])
    if letter == "c" and not scanner.ended:
        return ord(scanner.take()) & 0x1F
    if letter.isdigit():
        return _digits(scanner)
    raise invalid(BAD_ESCAPE)


def _digits(scanner: Scanner) -> Escape:
    """A back reference, or a letter by its octal number: what begins with 0, or has two digits
    and more than there are groups."""
    begin = scanner.at - 1
    if scanner.text[begin] != "0":
        scanner.at = begin
        number = _number(scanner, 10, 1, 255)
        if scanner.at == begin + 1 or 0 < number <= scanner.groups:
            return BackReference(number)
    scanner.at = begin
    code = _number(scanner, 8, 1, 3)
    if code > 0xFF:
        scanner.at -= 1
        code >>= 3
    return code


def _number(scanner: Scanner, base: int, least: int, most: int) -> int:
    allowed = "0123456789abcdef"[:base]
    digits = scanner.take_while(lambda letter: letter.lower() in allowed, most)
    if len(digits) < least:
        raise invalid(BAD_ESCAPE)
    return int(digits, base) & _CODE_BITS


def in_unicode(code: int) -> bool:
    """Whether there may be a letter of that code in a text."""
    return code <= LAST and not 0xD800 <= code <= 0xDFFF
