"""Text: LIKE, COLLATE, format(), concat(), and what other types are as text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from ...catalog.values.errors import SQLError
from ...catalog.values.type_kinds import TypeKind
from ..analyze.types.types import Types
from ..builtins.macros import call, duckdb, plain, text
from ..builtins.patterns import options_of, pattern_of
from ..builtins.signatures import COMPARISONS
from ..syntax.trees import error_at, position_of, unsupported
from .arrays import WRITTEN, element_texts

_BYTES = frozenset({"C", "POSIX"})
"""Collations in which letters beyond ASCII have no case and are of no class."""
ESCAPE = "\\"
_BY_BYTES = (
    *COMPARISONS, exp.In, exp.Between, exp.Like, exp.Ordered, exp.Group, exp.AggFunc, exp.Alias,
    exp.Select,
)  # fmt: skip


def escaped_like(tree: exp.Like | exp.ILike, types: Types) -> exp.Expr | None:
    """LIKE with the backslash as its escape, which DuckDB has only where it is asked for."""
    if TypeKind.BYTES in (types.kind(tree.this), types.kind(tree.expression)):
        raise unsupported("LIKE of BYTES", tree)
    pattern = tree.expression.unnest()
    if isinstance(tree.parent, exp.Escape) or isinstance(pattern, exp.Any | exp.All | exp.Null):
        return None
    if isinstance(pattern, exp.Literal) and ESCAPE not in pattern.this:
        return None
    return exp.Escape(this=tree.copy(), expression=text(ESCAPE))


def substring(tree: exp.Substring, types: Types) -> exp.Expr:
    start, length = tree.args.get("start"), tree.args.get("length")
    if start is None:
        return call("substr", tree.this, exp.Literal.number(1), length or exp.Null())
    return call("substr", tree.this, start, *([length] if length is not None else []))


def _as_text(tree: exp.Expr, types: Types) -> exp.Expr:
    """A value as what concat() makes of it."""
    found = types.of(tree)
    if found is not None and found.element is not None:
        return plain("array_text", element_texts(tree.copy(), found.element))
    template = None if found is None else WRITTEN.get(found.kind)
    return tree.copy() if template is None else duckdb(template.format(":x"), x=tree)


def concat(name: str, arguments: list[exp.Expr], types: Types) -> exp.Expr:
    """concat() or concat_ws()."""
    return plain(name, *[_as_text(argument, types) for argument in arguments])


def formatted(arguments: list[exp.Expr], types: Types) -> exp.Expr:
    """format() of a constant pattern: the concatenation that it means. Raises SQLError 0A000 for
    other patterns, and for places and widths in one."""
    pattern = arguments[0].unnest() if arguments else exp.Null()
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise _not_formatted("a pattern that is no constant", arguments[0])
    following = iter(arguments[1:])
    pieces = [text("")]
    begin, *parts = _DIRECTIVE.split(pattern.this)
    for letter, behind in zip(parts[::2], parts[1::2], strict=True):
        pieces += [_formatted_one(letter, following, types, pattern), text(behind)]
    return plain("concat", text(begin), *pieces)


_DIRECTIVE = re.compile("%(.?)", re.DOTALL)


def _formatted_one(
    letter: str, arguments: Iterator[exp.Expr], types: Types, pattern: exp.Expr
) -> exp.Expr:
    if letter == "%":
        return text("%")
    if letter not in ("s", "I", "L"):
        raise _not_formatted(f'"%{letter}"', pattern)
    argument = next(arguments, None)
    if argument is None:
        raise error_at(pattern, "22023", "too few arguments for format()")
    value = _as_text(argument, types)
    match letter:
        case "I":
            return call("quote_ident", value)
        case "L":
            return call("quote_nullable", value)
    return duckdb("coalesce(CAST(:x AS VARCHAR), '')", x=value)


def _not_formatted(what: str, tree: exp.Expr) -> SQLError:
    return unsupported(
        f"{what} in format()",
        tree,
        "%s, %I, %L and %% stand in a constant pattern; || puts texts together.",
    )


def length(argument: exp.Expr, types: Types) -> exp.Expr:
    """length(): characters of text, bytes of BYTES."""
    name = "octet_length" if types.kind(argument) is TypeKind.BYTES else "length"
    return plain(name, argument)


def octet_length(argument: exp.Expr, types: Types) -> exp.Expr:
    if types.kind(argument) is TypeKind.BYTES:
        return plain("octet_length", argument)
    return duckdb("octet_length(encode(:x))", x=argument)


def check_collation(node: exp.Collate, types: Types) -> None:
    """Raises SQLError 0A000 for COLLATE "C" but where texts are shown, compared or ordered, which
    is by their bytes anyway: functions and patterns would see letters of ASCII alone."""
    place = node.parent
    while isinstance(place, exp.Paren):
        place = place.parent
    if node.expression.name in _BYTES and not isinstance(place, _BY_BYTES):
        raise unsupported(
            'COLLATE "C" of a text whose letters may be asked for',
            node,
            "Leave it out, and write [A-Za-z] for letters of ASCII.",
        )


ANY_CASE = "i"


def like(subject: exp.Expr, pattern: exp.Expr, flags: str, *, tree: exp.Expr) -> exp.Expr:
    """`subject ~ pattern`. Raises SQLError 0A000 for a constant pattern that is not supported."""
    constant = pattern.unnest()
    if isinstance(constant, exp.Literal) and constant.is_string:
        try:
            native = pattern_of(constant.this, options_of(flags)[0]).native
            return plain("regexp_matches", subject, text(native))
        except SQLError as error:  # a pattern that is none is an error of the rows that have it
            if error.sqlstate == "0A000":
                error.position = position_of(tree)
                raise
    return plain("pattern_found", subject, pattern, text(flags))


def replaced(arguments: list[exp.Expr]) -> exp.Expr:
    """regexp_replace(text, pattern, replacement [, flags])"""
    return plain("pattern_replaced", *arguments, *[text("")] * (4 - len(arguments)))
