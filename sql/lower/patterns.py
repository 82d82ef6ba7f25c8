"""Regular expressions: by DuckDB's own functions where those answer what PostgreSQL does.

A constant pattern is read when the statement is planned. DuckDB is asked whether a text matches it,
and for what it matches if a text has but one match from a place (`Pattern.extractable`). All else,
and every pattern that is no constant, is for the functions of `sql.builtins.pattern_functions`,
which take some microseconds for each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from ...catalog.values.errors import SQLError
from ..analyze.types.types import Types
from ..builtins.patterns.options import GLOBAL, options_of
from ..builtins.patterns.pattern import Pattern, pattern_of
from ..builtins.patterns.searches import replacement_pieces
from ..builtins.templates import duckdb, plain, text
from ..parse import position_of

_NO_FLAGS = ""
ANY_CASE = "i"


@dataclass(frozen=True, slots=True)
class _Constant:
    """A constant pattern, and whether its flags say `g`."""

    pattern: Pattern
    everywhere: bool

    @property
    def native(self) -> exp.Expr:
        """The pattern in RE2's syntax."""
        return text(self.pattern.native)

    @property
    def splits(self) -> bool:
        """Whether DuckDB finds all the matches that PostgreSQL does: of empty ones behind others
        they differ."""
        return self.pattern.extractable and not self.pattern.matches("")


def _constant(pattern: exp.Expr, flags: exp.Expr, *, tree: exp.Expr) -> _Constant | None:
    """Returns a constant's text; None for others, and for constants whose error is raised later.

    Raises SQLError 0A000 for a constant that is not supported.
    """
    written, options = _literal(pattern), _literal(flags)
    if written is None or options is None:
        return None
    try:
        how, everywhere = options_of(options)
        return _Constant(pattern_of(written, how), everywhere)
    except SQLError as error:
        if error.sqlstate != "0A000":
            return None
        error.position = position_of(tree)
        raise


def _literal(tree: exp.Expr) -> str | None:
    tree = tree.unnest()
    return tree.this if isinstance(tree, exp.Literal) and tree.is_string else None


def like(subject: exp.Expr, pattern: exp.Expr, flags: str, *, tree: exp.Expr) -> exp.Expr:
    """`subject ~ pattern`."""
    return _found(subject, pattern, text(flags), tree)


def _found(subject: exp.Expr, pattern: exp.Expr, flags: exp.Expr, tree: exp.Expr) -> exp.Expr:
    known = _constant(pattern, flags, tree=tree)
    if known is None or known.everywhere:
        return plain("pattern_found", subject, pattern, flags)
    return plain("regexp_matches", subject, known.native)


def _matched(arguments: list[exp.Expr], types: Types, tree: exp.Expr) -> exp.Expr:
    """regexp_match(text, pattern [, flags]): the groups of the first match as an array."""
    subject, pattern, flags = _with_flags(arguments)
    known = _constant(pattern, flags, tree=tree)
    if known is None or known.everywhere or not known.pattern.extractable:
        return plain("pattern_first", subject, pattern, flags)
    numbers = range(1, known.pattern.groups + 1) if known.pattern.groups else (0,)
    groups = ", ".join(f"regexp_extract(:s, :p, {number})" for number in numbers)
    return _where_matched(f"[{groups}]", subject, known)


def substring(subject: exp.Expr, pattern: exp.Expr, tree: exp.Expr) -> exp.Expr:
    """substring(text FROM pattern): the first group, or the whole match where there is none."""
    known = _constant(pattern, text(_NO_FLAGS), tree=tree)
    if known is None or not known.pattern.extractable:
        return plain("pattern_substring", subject, pattern)
    group = min(known.pattern.groups, 1)
    return _where_matched(f"regexp_extract(:s, :p, {group})", subject, known)


def _where_matched(template: str, subject: exp.Expr, known: _Constant) -> exp.Expr:
    return duckdb(
        f"CASE WHEN regexp_matches(:s, :p) THEN {template} END", s=subject, p=known.native
    )


def _split(arguments: list[exp.Expr], name: str, tree: exp.Expr) -> exp.Expr:
    """regexp_split_to_array(text, pattern [, flags]), and …_to_table() as an array."""
    subject, pattern, flags = _with_flags(arguments)
    known = _constant(pattern, flags, tree=tree)
    if known is None or known.everywhere or not known.splits:
        return plain("pattern_split", subject, pattern, flags, text(name))
    return plain("string_split_regex", subject, known.native)


def _every(arguments: list[exp.Expr], types: Types, tree: exp.Expr) -> exp.Expr:
    """The matches of regexp_matches(text, pattern [, flags]) as an array of arrays."""
    given = _with_flags(arguments)
    _constant(given[1], given[2], tree=tree)
    return plain("pattern_every", *given)


def _replaced(arguments: list[exp.Expr], types: Types, tree: exp.Expr) -> exp.Expr:
    """regexp_replace(text, pattern, replacement [, flags])"""
    subject, pattern, replacement, *more = arguments
    (flags,) = more or (text(_NO_FLAGS),)
    known = _constant(pattern, flags, tree=tree)
    new = _literal(replacement)
    if (
        known is None
        or new is None
        or not (known.splits if known.everywhere else known.pattern.extractable)
    ):
        return plain("pattern_replaced", subject, pattern, replacement, flags)
    options = [text(GLOBAL)] if known.everywhere else []
    written = _rewritten(new, known.pattern.groups)
    return plain("regexp_replace", subject, known.native, text(written), *options)


def _rewritten(replacement: str, groups: int) -> str:
    """A replacement as RE2 writes it, for a pattern of so many groups."""
    made: list[str] = []
    for piece in replacement_pieces(replacement):
        if isinstance(piece, str):
            made.append(piece.replace("\\", "\\\\"))
        elif piece <= groups:
            made.append(f"\\{piece}")
    return "".join(made)


def _with_flags(arguments: list[exp.Expr]) -> list[exp.Expr]:
    """Text, pattern and flags of a call, no flags where none are given."""
    return arguments if len(arguments) > 2 else [*arguments, text(_NO_FLAGS)]


FUNCTIONS: dict[str, Callable[[list[exp.Expr], Types, exp.Expr], exp.Expr]] = {
    "regexp_replace": _replaced,
    "regexp_match": _matched,
    "regexp_every": _every,
    "regexp_split_to_array": lambda given, types, tree: _split(
        given, "regexp_split_to_array", tree
    ),
    "regexp_split_rows": lambda given, types, tree: _split(given, "regexp_split_to_table", tree),
}
"""Lowering of each function, by name, for calls whose arguments fit a signature. regexp_every() and
regexp_split_rows() stand for functions that return rows (`sql.parse.expansions`)."""
