"""The tree of a pattern from its text.

The grammar is that of PostgreSQL's "advanced regular expressions" (section 9.7.3), with the words
of its errors. A quantifier behind an anchor or behind another quantifier is one.
"""

from __future__ import annotations

from dataclasses import replace

from .brackets import brackets
from .escapes import BackReference, escape, in_unicode
from .letters import ANY, NO_NEWLINE, Letters, one
from .nodes import (
    Anchor,
    Branch,
    Choice,
    Group,
    Item,
    Preference,
    Repeat,
    Tree,
)
from .options import Options, Syntax, with_letter
from .scanner import (
    BAD_ARGUMENT,
    BAD_BRACES,
    BAD_COUNT,
    BAD_OPERAND,
    BAD_OPTION,
    BAD_PARENTHESES,
    BAD_REFERENCE,
    TOO_COMPLEX,
    Scanner,
    invalid,
)

COUNT_MAX = 255
"""PostgreSQL's limit of a quantifier in braces."""
DEPTH_MAX = 50
"""Parentheses in parentheses: each takes a few frames of Python's stack."""
LENGTH_MAX = 1 << 16
"""Letters of a pattern. What is longer is a list of words, for which there are joins."""

_AROUND = ("(?=", "(?!", "(?<=", "(?<!")
_WORD_EDGES = ("[[:<:]]", "[[:>:]]")
_BOUNDS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def read(text: str, options: Options) -> Tree:
    """Raises SQLError 2201B for what is no pattern, and 0A000 for what is not supported."""
    if len(text) > LENGTH_MAX:
        raise invalid(TOO_COMPLEX)
    scanner = Scanner(text, options)
    if options.syntax is Syntax.LITERAL:
        if options.expanded or options.stops or options.lines:
            raise invalid(BAD_ARGUMENT)
    elif options.syntax is Syntax.ADVANCED or scanner.sees("***"):
        _read_prefix(scanner)
    if scanner.options.syntax is Syntax.LITERAL:
        return Tree(Choice((_literal(scanner),)), 0)
    if scanner.options.syntax is not Syntax.ADVANCED:
        raise scanner.unsupported(
            "the syntax of POSIX", "Write it without the options b and e, as section 9.7.3 has it."
        )
    choice = _choice(scanner, 0)
    return Tree(choice, scanner.groups)


def _read_prefix(scanner: Scanner) -> None:
    """`***=`, `***:` and `(?…)` at the very beginning."""
    if scanner.sees("***") and len(scanner.text) > 3:
        if scanner.takes("***="):
            plain = Options(Syntax.LITERAL, any_case=scanner.options.any_case)
            scanner.options = plain
            return
        if not scanner.takes("***:"):
            raise invalid(
                "invalid regexp (reg version 0.8)" if scanner.sees("***?") else BAD_OPERAND
            )
        scanner.options = replace(scanner.options, syntax=Syntax.ADVANCED)
    following = scanner.text[scanner.at + 2 : scanner.at + 3]
    if not (scanner.sees("(?") and following.isascii() and following.isalpha()):
        return
    scanner.at += len("(?")
    while scanner.letter.isascii() and scanner.letter.isalpha():
        said = with_letter(scanner.options, scanner.take())
        if said is None:
            raise invalid(BAD_OPTION)
        scanner.options = said
    if not scanner.takes(")"):
        raise invalid(BAD_OPTION)
    if scanner.options.syntax is Syntax.LITERAL:
        scanner.options = Options(Syntax.LITERAL, any_case=scanner.options.any_case)


def _literal(scanner: Scanner) -> Branch:
    rest = scanner.text[scanner.at :]
    return tuple(Repeat(one(letter, any_case=scanner.options.any_case)) for letter in rest)


def _choice(scanner: Scanner, depth: int) -> Choice:
    if depth > DEPTH_MAX:
        raise invalid(TOO_COMPLEX)
    branches = [_branch(scanner, depth)]
    while scanner.takes("|"):
        branches.append(_branch(scanner, depth))
    return Choice(tuple(branches))


def _branch(scanner: Scanner, depth: int) -> Branch:
    items: list[Item] = []
    scanner.skip_comments()
    while not scanner.ended and scanner.letter != "|":
        if scanner.letter == ")":
            if depth == 0:
                raise invalid(BAD_PARENTHESES)
            break
        items.append(_item(scanner, depth))
        scanner.skip_comments()
    return tuple(items)


def _item(scanner: Scanner, depth: int) -> Item:
    atom = _atom(scanner, depth)
    if isinstance(atom, Anchor):
        return atom
    scanner.skip_comments()
    if scanner.letter and scanner.letter in _BOUNDS:
        least, most = _BOUNDS[scanner.take()]
        return Repeat(atom, least, most, _preference(scanner))
    if _bound_begins(scanner):
        return _bounded(scanner, atom)
    return Repeat(atom)


def _atom(scanner: Scanner, depth: int) -> Letters | Group | Anchor:
    options = scanner.options
    if scanner.letter in _BOUNDS or _bound_begins(scanner):
        raise invalid(BAD_OPERAND)
    if any(map(scanner.sees, _WORD_EDGES)):
        raise scanner.word_edge()
    if scanner.letter == "(":
        return _group(scanner, depth)
    match letter := scanner.take():
        case "^":
            return Anchor.LINE_START if options.lines else Anchor.TEXT_START
        case "$":
            return Anchor.LINE_END if options.lines else Anchor.TEXT_END
        case ".":
            return NO_NEWLINE if options.stops else ANY
        case "[":
            return brackets(scanner)
        case "\\":
            return _escaped(scanner)
    return one(letter, any_case=options.any_case)


def _escaped(scanner: Scanner) -> Letters | Anchor:
    meant = escape(scanner)
    if isinstance(meant, BackReference):
        if meant.number > scanner.groups:
            raise invalid(BAD_REFERENCE)
        raise scanner.unsupported(
            "a back reference",
            "Take the groups with regexp_match(), and compare its elements.",
        )
    if isinstance(meant, int):
        any_case = scanner.options.any_case
        return one(chr(meant), any_case=any_case) if in_unicode(meant) else Letters()
    return meant


def _group(scanner: Scanner, depth: int) -> Group:
    if any(map(scanner.sees, _AROUND)):
        raise scanner.unsupported(
            "lookaround", "Match what is around as well, and take a group or a second condition."
        )
    number: int | None = None
    if not scanner.takes("(?:"):
        if scanner.takes("(?"):
            raise invalid(BAD_OPERAND)
        scanner.at += 1
        scanner.groups += 1
        number = scanner.groups
    body = _choice(scanner, depth + 1)
    if not scanner.takes(")"):
        raise invalid(BAD_PARENTHESES)
    return Group(number, body)


def _preference(scanner: Scanner) -> Preference:
    return Preference.SHORTER if scanner.takes("?") else Preference.LONGER


def _bound_begins(scanner: Scanner) -> bool:
    """Whether a brace here is no letter: a digit follows it."""
    if scanner.letter != "{":
        return False
    begin = scanner.at
    scanner.at += 1
    scanner.skip_blanks()
    found = scanner.letter.isascii() and scanner.letter.isdigit()
    scanner.at = begin
    return found


def _bounded(scanner: Scanner, atom: Letters | Group) -> Repeat:
    """`{m}`, `{m,}` and `{m,n}`. The first prefers what its atom does."""
    scanner.at += 1
    least = _count(scanner)
    most: int | None = least
    ranged = scanner.takes(",")
    if ranged:
        scanner.skip_blanks()
        most = _count(scanner) if scanner.letter.isdigit() else None
    if scanner.ended:
        raise invalid(BAD_BRACES)
    if not scanner.takes("}") or (most is not None and most < least):
        raise invalid(BAD_COUNT)
    preference = _preference(scanner)
    return Repeat(atom, least, most, preference if ranged else Preference.NONE)


def _count(scanner: Scanner) -> int:
    digits = ""
    scanner.skip_blanks()
    while scanner.letter.isascii() and scanner.letter.isdigit():
        digits += scanner.take()
        scanner.skip_blanks()
    if len(digits.lstrip("0")) > len(f"{COUNT_MAX}") or int(digits) > COUNT_MAX:
        raise invalid(BAD_COUNT)
    return int(digits)
