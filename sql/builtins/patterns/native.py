"""The tree of a pattern in RE2's syntax: letters in UTF-8, every class and anchor written in full.

No option of RE2 changes what the text means.
"""

from __future__ import annotations

import re2

from ...syntax.refusals import unsupported
from .alphabets import LAST, Kind, Ranges, re2_class
from .letters import Letters, merged, other_kinds
from .nodes import Anchor, Choice, Group, Item, Preference, Repeat
from .scanner import TOO_COMPLEX, invalid

LENGTH_MAX = 1 << 14
"""A longer text takes RE2 milliseconds to compile."""
AUTOMATON_BYTES_MAX = 1 << 20
"""For one pattern: a larger automaton takes milliseconds to make."""

_ANCHORS = {
    Anchor.TEXT_START: r"\A",
    Anchor.TEXT_END: r"\z",
    Anchor.LINE_START: "(?m:^)",
    Anchor.LINE_END: "(?m:$)",
}
_UNDERSCORE = (ord("_"), ord("_"))
_NONE_OF_ALL = r"[^\x{0}-\x{10ffff}]"


def native_text(choice: Choice) -> str:
    """Writes a tree in RE2's syntax; groups keep their numbers. Raises SQLError 2201B for a
    pattern that is too large, and 0A000 for a set of letters that RE2's classes cannot express."""
    written = _choice(choice)
    if len(written) > LENGTH_MAX:
        raise invalid(TOO_COMPLEX)
    return written


def compiled(written: str, *, longest: bool = False) -> re2._Regexp:
    """RE2's automaton over UTF-8 bytes. `longest` makes the leftmost-longest match the match.

    Raises SQLError 2201B where it would take more than AUTOMATON_BYTES_MAX.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = AUTOMATON_BYTES_MAX
    options.longest_match = longest
    try:
        return re2.compile(written.encode(), options)
    except re2.error as error:
        raise invalid(TOO_COMPLEX) from error


def _choice(choice: Choice) -> str:
    return "|".join("".join(map(_item, branch)) for branch in choice.branches)


def _item(item: Item) -> str:
    if not isinstance(item, Repeat):
        return _ANCHORS[item]
    if isinstance(item.atom, Group):
        opening = "(?:" if item.atom.number is None else "("
        written = f"{opening}{_choice(item.atom.body)})"
    else:
        written = _letters(item.atom)
    counted = _quantifier(item.least, item.most)
    return f"{written}{counted}{'?' if counted and item.preference is Preference.SHORTER else ''}"


def _quantifier(least: int, most: int | None) -> str:
    match least, most:
        case 1, 1:
            return ""
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case 0, 1:
            return "?"
    return f"{{{least},{'' if most is None else most}}}"


def _letters(letters: Letters) -> str:
    """A set of letters as one class, or as a class beside a negated one.

    [\\w-] = [\\pL…\\-]    [\\W_] = [^\\pL…]    [\\W-] = (?:[\\-]|[^\\pL…_])
    """
    ranges, kinds = letters.ranges, letters.kinds
    if kinds and _UNDERSCORE in ranges:
        ranges = tuple(each for each in ranges if each != _UNDERSCORE)
        kinds |= Kind.UNDERSCORE
    found = re2_class(kinds)
    if found is not None:
        return _class(found[0], _encoded((*ranges, *found[1])), negated=letters.negated)
    found = re2_class(other_kinds(kinds))
    if found is None or (letters.negated and ranges):
        raise unsupported(
            "such classes of letters in one pair of brackets",
            hint="Write them one beside the other, with | between them.",
        )
    others = _class(found[0], _encoded(found[1]), negated=not letters.negated)
    return f"(?:{_class('', _encoded(ranges), negated=False)}|{others})" if ranges else others


def _class(categories: str, ranges: Ranges, *, negated: bool) -> str:
    if not categories and not ranges:
        return "(?s:.)" if negated else _NONE_OF_ALL
    if not categories and not negated and len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _code(ranges[0][0])
    return f"[{'^' if negated else ''}{categories}{''.join(map(_range, ranges))}]"


def _encoded(ranges: Ranges) -> Ranges:
    """Ranges without surrogates, which UTF-8 does not have."""
    made: list[tuple[int, int]] = []
    for low, high in ranges:
        made += ((low, min(high, 0xD7FF)), (max(low, 0xE000), min(high, LAST)))
    return merged((low, high) for low, high in made if low <= high)


def _range(of: tuple[int, int]) -> str:
    low, high = of
    return _code(low) if low == high else f"{_code(low)}-{_code(high)}"


def _code(code: int) -> str:
    """A letter, within or outside of brackets."""
    letter = chr(code)
    if letter.isalnum() and letter.isascii():
        return letter
    if code < 0x20 or code == 0x7F:
        return f"\\x{{{code:x}}}"
    return f"\\{letter}" if letter.isascii() and letter != " " else letter
