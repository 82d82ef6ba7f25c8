"""The grammar of COPY.

    COPY table [(column, …)] FROM STDIN [[WITH] (FORMAT csv, HEADER, …)] [WHERE condition]
    COPY table [(column, …)] TO STDOUT …
    COPY (SELECT …) TO STDOUT …

The older form of options, without parentheses and commas (`WITH CSV HEADER`), is read too.
"""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from ...catalog.values.errors import SQLError
from ..syntax.copy_options import CopyOptions
from ..syntax.statements import CopyFrom, CopyTo, ObjectName, Query
from .copy_options import build_options
from .cursor import Cursor, LexemeKind
from .queries import parse_query, parse_tree

Given = dict[str, "str | bool | tuple[str, ...] | None"]


def copy(cursor: Cursor) -> CopyFrom | CopyTo:
    """`{table [(column, …)] {FROM STDIN | TO STDOUT} | (query) TO STDOUT} [options] [WHERE …]`.
    Raises SQLError 42601, and 0A000 for files and programs."""
    if cursor.at_symbol("("):
        query = _query(cursor)
        cursor.expect_words("to")
        _stdout(cursor)
        return CopyTo(query=query, options=_ended_options(cursor))
    table = cursor.object_name("a table's name")
    columns = _names(cursor) if cursor.at_symbol("(") else None
    if cursor.accept_words("from"):
        if not cursor.accept_words("stdin"):
            _refuse_files(cursor)
        options, where = _options(cursor, reads=True), _where(cursor)
        return CopyFrom(table=table, columns=columns, options=options, where=where)
    cursor.expect_words("to")
    _stdout(cursor)
    options = _ended_options(cursor)
    whole = table if columns is None else None
    return CopyTo(query=_whole(table, columns), options=options, whole=whole)


def _where(cursor: Cursor) -> exp.Expr | None:
    """`[WHERE condition]`, to the end of the statement."""
    tree = None
    if cursor.accept_words("where"):
        first = cursor.current.token_index
        while not cursor.finished:
            cursor.advance()
        tokens = cursor.tokens[first : cursor.current.token_index]
        if not tokens:
            cursor.fail(expected="a condition")
        tree = parse_tree(cursor.text, tokens)
    cursor.expect_end()
    return tree


def _stdout(cursor: Cursor) -> None:
    if not cursor.accept_words("stdout"):
        _refuse_files(cursor)


def _refuse_files(cursor: Cursor) -> NoReturn:
    if cursor.current.kind is LexemeKind.STRING or cursor.at_words("program"):
        raise SQLError(
            "0A000",
            "COPY with a file or a program of the server is not supported",
            position=cursor.position,
            hint="Use STDIN and STDOUT; psql's \\copy does, with files of the client.",
        )
    cursor.fail(expected="STDIN or STDOUT")


def _query(cursor: Cursor) -> Query:
    """The query in parentheses that the cursor is at, moving behind them."""
    first = cursor.current.token_index
    depth = 0
    for index in range(first, len(cursor.tokens)):
        kind = cursor.tokens[index].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth == 0:
            inner = cursor.tokens[first + 1 : index]
            cursor.skip_to_token(index + 1)
            if not inner:
                cursor.fail(expected="a query")
            return parse_query(cursor.text, inner)
    cursor.fail(expected="a closing parenthesis")


def _whole(table: ObjectName, columns: tuple[str, ...] | None) -> Query:
    """`SELECT columns FROM table`"""
    parts = [exp.to_identifier(part, quoted=True) for part in table.parts]
    for part in parts:
        part.update_positions(start=table.position - 1, end=table.position - 1)
    names = dict(zip(("this", "db", "catalog"), reversed(parts), strict=False))
    items: list[exp.Expr] = [exp.Star()]
    if columns is not None:
        items = [exp.column(exp.to_identifier(name, quoted=True)) for name in columns]
    return Query(tree=exp.select(*items).from_(exp.Table(**names)), as_of=None)


def _names(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect_symbol("(")
    names = [cursor.identifier("a column's name")]
    while cursor.accept_symbol(","):
        names.append(cursor.identifier("a column's name"))
    cursor.expect_symbol(")")
    return tuple(names)


def _ended_options(cursor: Cursor) -> CopyOptions:
    """The options of COPY TO, with which it ends."""
    options = _options(cursor, reads=False)
    cursor.expect_end()
    return options


def _options(cursor: Cursor, *, reads: bool) -> CopyOptions:
    position = cursor.position
    cursor.accept_words("with")
    given: Given = {}
    if cursor.accept_symbol("("):
        _option(cursor, given)
        while cursor.accept_symbol(","):
            _option(cursor, given)
        cursor.expect_symbol(")")
    else:
        while not cursor.finished and not cursor.at_words("where"):
            _old_option(cursor, given)
    try:
        return build_options(given, reads=reads)
    except SQLError as error:
        error.position = error.position or position
        raise


def _option(cursor: Cursor, given: Given) -> None:
    position = cursor.position
    name = "null" if cursor.accept_words("null") else cursor.identifier("an option")
    if name in given:
        raise SQLError("42601", "conflicting or redundant options", position=position)
    match name:
        case "format" | "encoding":
            given[name] = cursor.option_value()
        case "delimiter" | "null" | "quote" | "escape":
            given[name] = cursor.string(name.upper())
        case "header" | "freeze":
            bare = cursor.at_symbol(",") or cursor.at_symbol(")")
            given[name] = True if bare else cursor.option_value()
        case "force_quote":
            given[name] = None if cursor.accept_symbol("*") else _names(cursor)
        case "force_not_null" | "force_null":
            given[name] = _names(cursor)
        case _:
            raise SQLError("42601", f'option "{name}" not recognized', position=position)
    _check_encoding(given, position)


def _old_option(cursor: Cursor, given: Given) -> None:
    position = cursor.position
    if cursor.accept_words("binary"):
        given["format"] = "binary"
    elif cursor.accept_words("csv"):
        given["format"] = "csv"
    elif cursor.accept_words("header"):
        given["header"] = True
    elif cursor.accept_words("freeze"):
        given["freeze"] = True
    elif cursor.accept_words("force", "quote"):
        given["force_quote"] = None if cursor.accept_symbol("*") else _bare_names(cursor)
    elif cursor.accept_words("force", "not", "null"):
        given["force_not_null"] = _bare_names(cursor)
    elif cursor.accept_words("force", "null"):
        given["force_null"] = _bare_names(cursor)
    else:
        for name in ("delimiter", "null", "quote", "escape", "encoding"):
            if cursor.accept_words(name):
                cursor.accept_words("as")
                given[name] = cursor.string(name.upper())
                _check_encoding(given, position)
                return
        cursor.fail(expected="an option of COPY")


def _bare_names(cursor: Cursor) -> tuple[str, ...]:
    names = [cursor.identifier("a column's name")]
    while cursor.accept_symbol(","):
        names.append(cursor.identifier("a column's name"))
    return tuple(names)


def _check_encoding(given: Given, position: int) -> None:
    wanted = str(given.get("encoding", "utf8")).lower().replace("-", "").replace("_", "")
    if wanted not in ("utf8", "unicode"):
        raise SQLError(
            "0A000", "COPY reads and writes UTF-8 only", position=position,
            hint="Convert the data, or leave ENCODING out.",
        )  # fmt: skip
