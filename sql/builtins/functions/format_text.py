"""format() by a pattern that is no constant: `%[n$][-][width | *[m$]](s | I | L | %)`."""

from __future__ import annotations

from dataclasses import dataclass

from ....catalog.values.errors import SQLError
from ..keywords import QUOTED_WORDS

_QUOTED_WORDS = frozenset(QUOTED_WORDS)


def format_text(pattern: str | None, *arguments: str | None) -> str | None:
    """Arguments are texts already. Raises SQLError 22023, 22004."""
    if pattern is None:
        return None
    made: list[str] = []
    at = following = 0
    while at < len(pattern):
        if pattern[at] != "%":
            made.append(pattern[at])
            at += 1
            continue
        if pattern[at + 1 : at + 2] == "%":
            made.append("%")
            at += 2
            continue
        read = _Directive(pattern, at + 1)
        width = read.width
        if read.width_place is not None:
            place = read.width_place - 1 if read.width_place else following
            told = _argument(arguments, place)
            following, width = place + 1, 0 if told is None else _width(told)
        place = read.place - 1 if read.place is not None else following
        following = place + 1
        made.append(_padded(_shown(read.letter, _argument(arguments, place)), width, read.left))
        at = read.end
    return "".join(made)


@dataclass(slots=True, init=False)
class _Directive:
    """A directive of format(), behind its per cent sign. Places count from 1; a `width_place` of 0
    takes the next argument."""

    place: int | None
    width: int
    width_place: int | None
    left: bool
    letter: str
    end: int

    def __init__(self, pattern: str, at: int) -> None:
        self.place = self.width_place = None
        self.width, self.left = 0, False
        number, at = _number(pattern, at)
        if number is not None and _letter(pattern, at) != "$":
            self.width = number
        else:
            if number is not None:
                self.place, at = _place(number), at + 1
                _letter(pattern, at)
            at = self._read_width(pattern, at)
        self.letter, self.end = _letter(pattern, at), at + 1
        if self.letter not in "sIL":
            raise SQLError(
                "22023",
                f'unrecognized format() type specifier "{self.letter}"',
                hint='For a single "%" use "%%".',
            )

    def _read_width(self, pattern: str, at: int) -> int:
        while _letter(pattern, at) == "-":
            self.left, at = True, at + 1
        if _letter(pattern, at) != "*":
            number, at = _number(pattern, at)
            self.width = number or 0
            return at
        number, at = _number(pattern, at + 1)
        if number is None:
            self.width_place = 0
            return at
        if _letter(pattern, at) != "$":
            raise SQLError("22023", 'width argument position must be ended by "$"')
        self.width_place = _place(number)
        return at + 1


def _letter(pattern: str, at: int) -> str:
    if at >= len(pattern):
        raise SQLError(
            "22023",
            "unterminated format() type specifier",
            hint='For a single "%" use "%%".',
        )
    return pattern[at]


def _number(pattern: str, at: int) -> tuple[int | None, int]:
    end = at
    while end < len(pattern) and pattern[end] in "0123456789":
        end += 1
    digits = pattern[at:end].lstrip("0")
    if len(digits) > 10 or int(digits or 0) >= 2**31:
        raise SQLError("22003", "number is out of range")
    return int(digits or 0) if end > at else None, end


def _place(number: int) -> int:
    if number == 0:
        raise SQLError("22023", "format specifies argument 0, but arguments are numbered from 1")
    return number


def _argument(arguments: tuple[str | None, ...], place: int) -> str | None:
    if place >= len(arguments):
        raise SQLError("22023", "too few arguments for format()")
    return arguments[place]


def _width(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SQLError("22P02", f'invalid input syntax for type integer: "{text}"') from None


def _shown(letter: str, value: str | None) -> str:
    match letter, value:
        case "I", None:
            raise SQLError("22004", "null values cannot be formatted as an SQL identifier")
        case "L", None:
            return "NULL"
        case _, None:
            return ""
        case "I", str():
            return quoted_name(value)
        case "L", str():
            return _quoted_text(value)
    assert value is not None
    return value


def quoted_name(name: str) -> str:
    """Returns a name as quote_ident() writes it."""
    plain = name[:1].isascii() and (name[:1].islower() or name[:1] == "_")
    letters = all(c.isascii() and (c.islower() or c.isdigit() or c == "_") for c in name)
    if plain and letters and name not in _QUOTED_WORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def _quoted_text(text: str) -> str:
    quoted = "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
    return f"E{quoted}" if "\\" in text else quoted


def _padded(text: str, width: int, left: bool) -> str:
    return f"{text:<{abs(width)}}" if left or width < 0 else f"{text:>{width}}"
