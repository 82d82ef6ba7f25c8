"""Text: LIKE, COLLATE, format(), concat(), and what other types are as text."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.values.errors import SQLError
from ...catalog.values.type_kinds import TypeKind
from ..analyze.types.types import Types, untyped
from ..builtins.macros import PREFIX
from ..builtins.templates import call, duckdb, plain, text
from ..parse import position_of
from . import patterns
from .arrays import element_texts
from .numbers import trimmed_text

_BYTES = frozenset({"C", "POSIX"})
"""Collations in which letters beyond ASCII have no case and are of no class."""
ESCAPE = "\\"
_OF_LETTERS = (
    exp.Lower, exp.Upper, exp.Initcap, exp.ILike, exp.RegexpLike, exp.RegexpILike,
)  # fmt: skip
_CALLS_OF_LETTERS = frozenset({"upper", "lower", "initcap"})


def escaped_like(tree: exp.Like | exp.ILike, types: Types) -> exp.Expr | None:
    """LIKE with the backslash as its escape, which DuckDB has only where it is asked for."""
    if TypeKind.BYTES in (types.kind(tree.this), types.kind(tree.expression)):
        raise SQLError("0A000", "not supported: LIKE of BYTES", position=position_of(tree))
    pattern = tree.expression.unnest()
    if isinstance(tree.parent, exp.Escape) or isinstance(pattern, exp.Any | exp.All | exp.Null):
        return None
    if isinstance(pattern, exp.Literal) and ESCAPE not in pattern.this:
        return None
    return exp.Escape(this=tree.copy(), expression=text(ESCAPE))


def substring(tree: exp.Substring, types: Types) -> exp.Expr:
    """Lowers substring() by places, or by a regular expression. Raises SQLError 0A000 for a
    pattern of SIMILAR."""
    start, length = tree.args.get("start"), tree.args.get("length")
    if start is None:
        return call("substr", tree.this, exp.Literal.number(1), length or exp.Null())
    if types.kind(start) is TypeKind.STRING or untyped(start):
        if length is not None:
            raise SQLError(
                "0A000",
                "not supported: substring() by a pattern of SIMILAR",
                hint="Use substring(text FROM pattern), with a regular expression.",
                position=position_of(tree),
            )
        return exp.paren(patterns.substring(tree.this, start, tree), copy=False)
    return call("substr", tree.this, start, *([length] if length is not None else []))


def padded(tree: exp.Expr, types: Types) -> exp.Expr | None:
    """A CHAR(n) with the blanks that patterns and concat() see at its end; None for others."""
    type = types.declared(tree)
    if type is None or type.kind is not TypeKind.CHAR:
        return None
    return plain("rpad", tree, exp.Literal.number(type.width or 1), text(" "))


def as_text(tree: exp.Expr, types: Types, *, short: bool = False) -> exp.Expr:
    """A value as text; `short` is what concat() makes of a truth (`t`)."""
    blanks = padded(tree, types)
    if blanks is not None:
        return blanks
    trimmed = trimmed_text(tree)
    if trimmed is not None:
        return trimmed
    match types.kind(tree):
        case TypeKind.FLOAT8:
            return call("float_text", tree)
        case TypeKind.FLOAT4:
            return call("single_text", tree)
        case TypeKind.INTERVAL:
            return plain("interval_text", tree)
        case TypeKind.BYTES if short:
            return duckdb("'\\x' || lower(hex(:x))", x=tree)
        case TypeKind.ARRAY:
            found = types.of(tree)
            assert found is not None, tree
            assert found.element is not None, tree
            return plain("array_text", element_texts(tree.copy(), found.element))
        case TypeKind.BOOL if short:
            return duckdb("CASE WHEN :x THEN 't' WHEN NOT :x THEN 'f' END", x=tree)
    return tree.copy()


def concat(arguments: list[exp.Expr], types: Types) -> exp.Expr:
    return plain("concat", *[as_text(argument, types, short=True) for argument in arguments])


def concat_ws(tree: exp.ConcatWs, types: Types) -> exp.Expr:
    return plain("concat_ws", *[as_text(each, types, short=True) for each in tree.expressions])


def formatted(arguments: list[exp.Expr], types: Types) -> exp.Expr:
    """format(): of a constant format the concatenation that it means."""
    pattern = arguments[0].unnest() if arguments else exp.Null()
    if not isinstance(pattern, exp.Literal) or not pattern.is_string or "*" in pattern.this:
        texts = [exp.cast(as_text(each, types, short=True), "VARCHAR") for each in arguments[1:]]
        return call("formatted", arguments[0], *texts)
    return plain("concat", text(""), *_pieces(pattern.this, arguments[1:], types))


def _pieces(pattern: str, arguments: list[exp.Expr], types: Types) -> list[exp.Expr]:
    pieces: list[exp.Expr] = []
    at = following = 0
    while at < len(pattern):
        percent = pattern.find("%", at)
        if percent < 0:
            pieces.append(text(pattern[at:]))
            break
        pieces.append(text(pattern[at:percent]))
        at = percent + 1
        if pattern[at : at + 1] == "%":
            pieces.append(text("%"))
            at += 1
            continue
        place, width, left, at = _directive(pattern, at)
        place = following if place is None else place
        following = place + 1
        if place >= len(arguments):
            raise SQLError("22023", "too few arguments for format()")
        piece = _formatted_one(pattern[at : at + 1], arguments[place], types)
        if width:
            piece = call("rpad" if left else "lpad", duckdb(_WIDE.format(width=width), s=piece),
                         duckdb(f"greatest(length(:s), {width})", s=piece))  # fmt: skip
        pieces.append(piece)
        at += 1
    return pieces


_WIDE = "CASE WHEN length(:s) > {width} THEN :s ELSE :s END"


def _directive(pattern: str, at: int) -> tuple[int | None, int, bool, int]:
    """The argument's place, the width, whether it is to the left, and where the letter stands."""
    digits = _digits(pattern, at)
    place: int | None = None
    if digits and pattern[at + len(digits) : at + len(digits) + 1] == "$":
        place, at = int(digits) - 1, at + len(digits) + 1
        if place < 0:
            raise SQLError("22023", "format specifies argument 0, but arguments start at 1")
    left = pattern[at : at + 1] == "-"
    at += left
    digits = _digits(pattern, at)
    return place, int(digits or 0), left, at + len(digits)


_DIGITS_MAX = 10
"""Digits of a place or a width, which is an INT4."""


def _digits(pattern: str, at: int) -> str:
    end = at
    while end < len(pattern) and pattern[end].isdecimal():
        end += 1
    if len(pattern[at:end].lstrip("0")) > _DIGITS_MAX:
        raise SQLError("22003", "number is out of range")
    return pattern[at:end]


def _formatted_one(letter: str, argument: exp.Expr, types: Types) -> exp.Expr:
    value = as_text(argument, types, short=True)
    match letter:
        case "s":
            return duckdb("coalesce(CAST(:x AS VARCHAR), '')", x=value)
        case "I":
            return call("quote_ident", value)
        case "L":
            return call("quote_nullable", value)
        case "":
            raise SQLError("22023", "unterminated format() type specifier")
    raise SQLError("22023", f'unrecognized format() type specifier "{letter}"')


def length(argument: exp.Expr, types: Types) -> exp.Expr:
    """length(): characters of text, bytes of BYTES."""
    name = "octet_length" if types.kind(argument) is TypeKind.BYTES else "length"
    return plain(name, argument)


def octet_length(argument: exp.Expr, types: Types) -> exp.Expr:
    if types.kind(argument) is TypeKind.BYTES:
        return plain("octet_length", argument)
    return duckdb("octet_length(encode(:x))", x=padded(argument, types) or argument)


def check_letters(node: exp.Collate) -> None:
    """Raises SQLError 0A000 for COLLATE "C" where PostgreSQL would see letters of ASCII alone.

    Texts are ordered by their bytes anyway, so elsewhere it says what is.
    """
    if node.expression.name not in _BYTES:
        return
    above = node.parent
    while isinstance(above, exp.Expr) and not isinstance(above, exp.Select):
        if isinstance(above, _OF_LETTERS) or _asks_for_letters(above):
            raise SQLError(
                "0A000",
                'not supported: COLLATE "C" of a text whose letters are asked for',
                position=position_of(above),
                hint="Leave it out, and write [A-Za-z] for letters of ASCII.",
            )
        above = above.parent


def _asks_for_letters(node: exp.Expr) -> bool:
    name = node.name.lower().removeprefix(PREFIX) if isinstance(node, exp.Anonymous) else ""
    return name in _CALLS_OF_LETTERS or name.startswith("regexp_")
