"""Text: patterns, format(), concat(), and what other types are as text."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.errors import SQLError
from ...catalog.type_kinds import TypeKind
from ..parser import position_of
from .arrays import element_texts
from .patterns import groups, in_all_alphabets, may_be_empty
from .styles import styled_text
from .templates import call, duckdb, plain, text
from .types import Types, untyped

ESCAPE = "\\"


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


def similar(tree: exp.SimilarTo, types: Types) -> exp.Expr:
    """SIMILAR TO a constant pattern, as a regular expression for the whole of the text."""
    pattern = tree.expression.unnest()
    if isinstance(pattern, exp.Null):
        return exp.Null()
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise SQLError(
            "0A000",
            "SIMILAR TO takes a constant pattern",
            position=position_of(tree),
            hint="Use ~ with a regular expression.",
        )
    return plain(
        "regexp_full_match",
        padded(tree.this, types) or tree.this,
        text(similar_as_regexp(pattern.this)),
    )


def similar_as_regexp(pattern: str) -> str:
    """The regular expression that a pattern of SIMILAR TO means."""
    made: list[str] = []
    letters = iter(pattern)
    for letter in letters:
        if letter == ESCAPE:
            following = next(letters, None)
            if following is None:
                raise SQLError("22025", "SIMILAR TO pattern must not end with escape character")
            made.append(f"\\{following}" if not following.isalnum() else following)
        else:
            made.append(_SIMILAR.get(letter, letter))
    return f"(?s:{''.join(made)})"


_SIMILAR = {"%": ".*", "_": ".", ".": "\\.", "^": "\\^", "$": "\\$"}


def substring(tree: exp.Substring, types: Types) -> exp.Expr:
    start, length = tree.args.get("start"), tree.args.get("length")
    if start is None:
        return call("substr", tree.this, exp.Literal.number(1), length or exp.Null())
    if types.kind(start) is TypeKind.STRING or (untyped(start) and length is None):
        return exp.paren(regexp_matched([tree.this, start], tree, only_first=True), copy=False)
    return call("substr", tree.this, start, *([length] if length is not None else []))


def padded(tree: exp.Expr, types: Types) -> exp.Expr | None:
    """A CHAR(n) with the blanks that patterns and concat() see at its end; None for others."""
    type = types.declared(tree)
    if type is None or type.kind is not TypeKind.CHAR:
        return None
    return plain("rpad", tree, exp.Literal.number(type.width or 1), text(" "))


def as_text(tree: exp.Expr, types: Types, *, short: bool = False) -> exp.Expr:
    """A value as text; `short` is what concat() makes of a truth (`t`)."""
    blanks = padded(tree, types) or styled_text(tree, types.kind(tree))
    if blanks is not None:
        return blanks
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


def formatted(arguments: list[exp.Expr], tree: exp.Expr, types: Types) -> exp.Expr:
    """format() with a constant format, as the concatenation that it means."""
    pattern = arguments[0].unnest() if arguments else exp.Null()
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise SQLError(
            "0A000",
            "format() takes a constant format",
            position=position_of(tree),
            hint="Use || or concat().",
        )
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


def _digits(pattern: str, at: int) -> str:
    end = at
    while end < len(pattern) and pattern[end].isdecimal():
        end += 1
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


_FLAGS = frozenset("gimnsc")


def regexp_replaced(arguments: list[exp.Expr], tree: exp.Expr) -> exp.Expr:
    """regexp_replace(), whose replacement may say `\\&` for the whole match."""
    if len(arguments) not in (3, 4):
        raise SQLError(
            "0A000",
            "regexp_replace() takes a text, a pattern, a replacement and flags",
            position=position_of(tree),
        )
    made = [argument.copy() for argument in arguments]
    replacement = made[2].unnest()
    if isinstance(replacement, exp.Literal) and replacement.is_string:
        made[2] = text(_replacement(replacement.this))
    if len(made) == 4:
        flags = made[3].unnest()
        if isinstance(flags, exp.Literal) and not set(flags.this) <= _FLAGS:
            raise SQLError("22023", f'invalid regular expression option: "{flags.this}"')
    flags = made[3].unnest() if len(made) == 4 else text("")
    if isinstance(flags, exp.Literal) and not set(flags.this) & _LINES:
        made[1] = any_letter(made[1])
    return plain("regexp_replace", *made)


def _replacement(written: str) -> str:
    """What DuckDB takes for it: `\\&` is the whole match, `\\0` no more than these two letters."""
    made: list[str] = []
    at = 0
    while at < len(written):
        both = written[at : at + 2]
        width = 2 if both.startswith("\\") else 1
        made.append({"\\&": "\\0", "\\0": "\\\\0"}.get(both, written[at : at + width]))
        at += width
    return "".join(made)


_LINES = frozenset("nm")
"""Flags with which a dot matches no end of a line."""


def any_letter(pattern: exp.Expr) -> exp.Expr:
    """A regular expression whose dot matches the end of a line too, which DuckDB's does not."""
    literal = pattern.unnest()
    if not isinstance(literal, exp.Literal):
        return duckdb("'(?s)' || :p", p=pattern)
    written = in_all_alphabets(literal.this)
    return text(f"(?s){written}") if "." in written else text(written)


def constant_pattern(arguments: list[exp.Expr]) -> None:
    """Puts a constant regular expression, the second argument, in RE2's words."""
    pattern = arguments[1].unnest() if len(arguments) > 1 else None
    if isinstance(pattern, exp.Literal) and pattern.is_string:
        arguments[1].replace(text(in_all_alphabets(pattern.this)))


def regexp_matched(
    arguments: list[exp.Expr], tree: exp.Expr, *, only_first: bool = False
) -> exp.Expr:
    """regexp_match() with a constant pattern: its groups as an array, or the whole where none."""
    pattern = arguments[1].unnest() if len(arguments) == 2 else exp.Null()
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise SQLError(
            "0A000", "a regular expression must be constant here", position=position_of(tree)
        )
    _refuse_doubtful_groups(pattern.this, tree)
    found = [
        f"nullif(regexp_extract(:s, :p, {number}), '')"
        if group.optional
        else f"regexp_extract(:s, :p, {number})"
        for number, group in enumerate(groups(pattern.this), start=1)
    ] or ["regexp_extract(:s, :p)"]
    result = found[0] if only_first else f"[{', '.join(found)}]"
    template = f"CASE WHEN regexp_matches(:s, :p) THEN {result} END"
    return duckdb(template, s=arguments[0], p=any_letter(pattern))


def _refuse_doubtful_groups(pattern: str, tree: exp.Expr) -> None:
    """DuckDB tells no group that is left out from one that is empty."""
    if any(group.optional and group.empty for group in groups(pattern)):
        raise SQLError(
            "0A000",
            "not supported: a group of a regular expression that may be both missing and empty",
            position=position_of(tree),
            hint="Write (…+)? instead of (…*)?, or (?:…) where the group is not asked for.",
        )


def regexp_searched(tree: exp.RegexpCount | exp.RegexpInstr) -> None:
    """Raises SQLError for regexp_count() and regexp_instr() of more than a text and a pattern."""
    name = "regexp_count" if isinstance(tree, exp.RegexpCount) else "regexp_instr"
    given = [key for key, value in tree.args.items() if value is not None]
    pattern = tree.expression.unnest()
    if len(given) > len(("this", "expression")):
        raise SQLError(
            "0A000",
            f"not supported: {name}() of more than a text and a pattern",
            position=position_of(tree),
            hint="Begin the pattern with (?i) for flags, and give it substr() of the text.",
        )
    if isinstance(pattern, exp.Literal) and may_be_empty(pattern.this):
        raise SQLError(
            "0A000",
            f"not supported: {name}() of a pattern that matches nothing at all",
            position=position_of(tree),
        )
    pattern.replace(any_letter(pattern))


def length(argument: exp.Expr, types: Types) -> exp.Expr:
    """length(): characters of text, bytes of BYTES."""
    name = "octet_length" if types.kind(argument) is TypeKind.BYTES else "length"
    return plain(name, argument)


def octet_length(argument: exp.Expr, types: Types) -> exp.Expr:
    if types.kind(argument) is TypeKind.BYTES:
        return plain("octet_length", argument)
    return duckdb("octet_length(encode(:x))", x=padded(argument, types) or argument)
