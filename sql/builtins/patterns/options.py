"""How a pattern is to be read: the letters of a flags argument and of a `(?…)` at its beginning."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from ....catalog.values.errors import SQLError
from ...syntax.refusals import unsupported


@dataclass(frozen=True, slots=True)
class Options:
    """`stops`: `.` and `[^…]` match no newline. `lines`: `^` and `$` match beside one."""

    any_case: bool = False
    stops: bool = False
    lines: bool = False


_MEANT: dict[str, dict[str, bool]] = {
    "c": {"any_case": False},
    "i": {"any_case": True},
    "m": {"stops": True, "lines": True},
    "n": {"stops": True, "lines": True},
    "p": {"stops": True, "lines": False},
    "s": {"stops": False, "lines": False},
    "w": {"stops": False, "lines": True},
}
_REFUSED = {
    "b": "Leave it out, and write the pattern as section 9.7.3 of PostgreSQL's manual has it.",
    "e": "Leave it out: what an extended pattern means, an advanced one does, too.",
    "q": "Leave it out, and write a backslash before what is neither letter nor digit.",
    "t": "Leave it out: a pattern is read so.",
    "x": "Leave it out, and the pattern's blanks and comments.",
}
"""Hints for patterns in the syntaxes of POSIX, literal texts and expanded patterns."""
GLOBAL = "g"


def with_letter(options: Options, letter: str) -> Options | None:
    """The options with one more letter said of them, or None for no letter of theirs. Raises
    SQLError 0A000 for those of `_REFUSED`."""
    if letter in _REFUSED:
        what = f'the option "{letter}" of a regular expression'
        raise unsupported(what, hint=_REFUSED[letter])
    meant = _MEANT.get(letter)
    return None if meant is None else replace(options, **meant)


@lru_cache(maxsize=64)
def options_of(flags: str) -> tuple[Options, bool]:
    """Returns the options of a flags argument, and whether `g` is among them. Raises SQLError
    22023 and 0A000."""
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
