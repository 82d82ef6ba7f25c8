"""Patterns in the words of RE2 as DuckDB has it: letters in UTF-8, the first alternative first.

Every letter, class and anchor is written out, so that no option of DuckDB's says what they mean.
"""

from __future__ import annotations

from functools import lru_cache

import re2

from ....catalog.values.errors import SQLError
from .alphabets import LAST, Ranges, re2_class
from .letters import Letters, other_kinds
from .nodes import Anchor, Choice, Group, Item, Preference, Repeat
from .options import Options
from .reader import read
from .spelling import quantifier

LENGTH_MAX = 1 << 14
"""What is longer takes longer to be planned than the registered functions take for some rows."""

AUTOMATON_BYTES_MAX = 1 << 20
"""An eighth of what DuckDB would let it take: to make a larger one takes milliseconds."""

_ANCHORS = {
    Anchor.TEXT_START: r"\A",
    Anchor.TEXT_END: r"\z",
    Anchor.LINE_START: "(?m:^)",
    Anchor.LINE_END: "(?m:$)",
}


@lru_cache(maxsize=64)
def native_of(pattern: str, options: Options) -> str | None:
    """A pattern in RE2's words. None for what is not supported, too."""
    try:
        return native_text(read(pattern, options).choice)
    except SQLError:
        return None


def native_text(choice: Choice) -> str | None:
    """A tree in RE2's words; None where it has none, or too many. Groups keep their numbers."""
    parts: list[str] = []
    if not _write(choice, parts) or sum(map(len, parts)) > LENGTH_MAX:
        return None
    written = "".join(parts)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = AUTOMATON_BYTES_MAX
    try:
        re2.compile(written, options)
    except re2.error:
        return None
    return written


def _write(choice: Choice, parts: list[str]) -> bool:
    """Whether all of a choice can be said."""
    for number, branch in enumerate(choice.branches):
        if number:
            parts.append("|")
        if not all(_write_item(item, parts) for item in branch):
            return False
    return True


def _write_item(item: Item, parts: list[str]) -> bool:
    if not isinstance(item, Repeat):
        written = _ANCHORS.get(item) if isinstance(item, Anchor) else None
        parts.append(written or "")
        return written is not None
    if item.most == 0:
        return not isinstance(item.atom, Group)
    if isinstance(item.atom, Group):
        parts.append("(?:" if item.atom.number is None else "(")
        if not _write(item.atom.body, parts):
            return False
        parts.append(")")
    else:
        letters = _letters(item.atom)
        if letters is None:
            return False
        parts.append(letters)
    counted = quantifier(item.least, item.most)
    parts.append(f"{counted}?" if counted and item.preference is Preference.SHORTER else counted)
    return True


def _letters(letters: Letters) -> str | None:
    negated, kinds, ranges = letters.negated, letters.kinds, letters.ranges
    found = re2_class(kinds)
    if found is None and not ranges:
        negated, found = not negated, re2_class(other_kinds(kinds))
    if found is None:
        return None
    categories, beside = found
    if not categories and not beside:
        if not ranges:
            return "(?s:.)" if negated else None
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1] and not negated:
            return _code(ranges[0][0])
    written = "".join(map(_range, _encoded((*ranges, *beside))))
    return f"[{'^' if negated else ''}{categories}{written}]"


def _encoded(ranges: Ranges) -> Ranges:
    """Without surrogates, of which UTF-8 knows none."""
    made: list[tuple[int, int]] = []
    for low, high in ranges:
        made += ((low, min(high, 0xD7FF)), (max(low, 0xE000), min(high, LAST)))
    return tuple((low, high) for low, high in made if low <= high)


def _range(of: tuple[int, int]) -> str:
    low, high = of
    return _code(low) if low == high else f"{_code(low)}-{_code(high)}"


def _code(code: int) -> str:
    """A letter, in or outside of brackets."""
    letter = chr(code)
    if letter.isalnum() and letter.isascii():
        return letter
    if code < 0x20 or code == 0x7F:
        return f"\\x{{{code:x}}}"
    return f"\\{letter}" if letter.isascii() and letter != " " else letter
