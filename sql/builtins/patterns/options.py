"""How a pattern is to be read: the letters of a flags argument and of a `(?…)` at its beginning."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import lru_cache

from ....catalog.values.errors import SQLError


class Syntax(Enum):
    ADVANCED = auto()
    EXTENDED = auto()  # of POSIX
    BASIC = auto()  # of POSIX
    LITERAL = auto()


@dataclass(frozen=True, slots=True)
class Options:
    """`stops`: `.` and `[^…]` match no newline. `lines`: `^` and `$` match beside one."""

    syntax: Syntax = Syntax.ADVANCED
    any_case: bool = False
    stops: bool = False
    lines: bool = False
    expanded: bool = False  # blanks and comments of the pattern mean nothing


_MEANT: dict[str, dict[str, bool | Syntax]] = {
    "b": {"syntax": Syntax.BASIC},
    "c": {"any_case": False},
    "e": {"syntax": Syntax.EXTENDED},
    "i": {"any_case": True},
    "m": {"stops": True, "lines": True},
    "n": {"stops": True, "lines": True},
    "p": {"stops": True, "lines": False},
    "q": {"syntax": Syntax.LITERAL},
    "s": {"stops": False, "lines": False},
    "t": {"expanded": False},
    "w": {"stops": False, "lines": True},
    "x": {"expanded": True},
}
GLOBAL = "g"


def with_letter(options: Options, letter: str) -> Options | None:
    """The options with one more letter said of them, or None for no letter of theirs."""
    meant = _MEANT.get(letter)
    return None if meant is None else replace(options, **meant)  # type: ignore[arg-type]


@lru_cache(maxsize=64)
def options_of(flags: str) -> tuple[Options, bool]:
    """Returns the options of a flags argument, and whether `g` is among them. Raises SQLError
    22023."""
    options, everywhere = Options(), False
    for letter in flags:
        if letter == GLOBAL:
            everywhere = True
            continue
        said = with_letter(options, letter)
        if said is None:
            raise SQLError("22023", f'invalid regular expression option: "{letter}"')
        options = said
    return options, everywhere
