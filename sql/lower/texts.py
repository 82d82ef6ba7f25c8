"""Text: LIKE, COLLATE, format(), concat(), patterns, and what other types are as text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from ...catalog.values.column_types import STRING
from ...catalog.values.errors import SQLError
from ...catalog.values.type_kinds import TypeKind
from ..analyze.scalars import (
    Bindings,
    NotNative,
    Scalar,
    Values,
    adapt,
    compile_scalar,
    constant_datum,
)
from ..analyze.types.types import Types
from ..builtins.macros import call, duckdb, plain, text
from ..builtins.patterns import native_pattern
from ..builtins.signatures import COMPARISONS
from ..syntax.statement import at
from ..syntax.trees import error_at, position_of, unsupported
from .arrays import WRITTEN, Typed, element_texts

_BYTES = frozenset({"C", "POSIX"})
"""Collations in which letters beyond ASCII have no case and are of no class."""
ESCAPE = "\\"
_BY_BYTES = (
    *COMPARISONS, exp.In, exp.Between, exp.Like, exp.Ordered, exp.Group, exp.AggFunc, exp.Alias,
    exp.Select,
)  # fmt: skip


def escaped_like(tree: exp.Like | exp.ILike, types: Types) -> exp.Expr | None:
    """LIKE with the backslash as its escape, which DuckDB has only where it is asked for."""
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


# Regular expressions: a pattern is written in RE2's syntax here where it is a constant, and where
# it is a parameter when that is known.


def found(tree: exp.RegexpLike | exp.RegexpILike, types: Types, typed: Typed) -> exp.Expr | None:
    """`text ~ pattern` and `text ~* pattern`; None for those of an array, which are refused."""
    if isinstance(tree.expression, exp.Any | exp.All):
        return None
    any_case = isinstance(tree, exp.RegexpILike)
    pattern = _constant(tree.expression)

    def native(values: Values, bindings: Bindings) -> str | None:
        written = pattern.value(bindings)
        return None if written is None else native_pattern(str(written), any_case)

    try:
        written = constant_datum(pattern)
    except NotNative:
        said = (tree.key, tree.expression.sql())
        return plain("regexp_matches", tree.this, typed(Scalar(STRING, native, True), STRING, said))
    with at(position_of(tree)):
        given = exp.null() if written is None else text(native_pattern(str(written), any_case))
    return plain("regexp_matches", tree.this, exp.cast(given, "VARCHAR"))


def _constant(tree: exp.Expr) -> Scalar:
    while isinstance(tree, exp.Paren | exp.Collate):
        tree = tree.this
    try:
        return adapt(compile_scalar(tree, {}), STRING)
    except NotNative:
        raise unsupported(
            "a regular expression that is neither a constant nor a parameter",
            tree,
            "LIKE takes a pattern of each row, strpos() a text.",
        ) from None
