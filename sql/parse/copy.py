"""The grammar of COPY.

    COPY table [(column, …)] FROM STDIN [[WITH] (FORMAT csv, HEADER, …)]
    COPY table [(column, …)] TO STDOUT …
    COPY (SELECT …) TO STDOUT …

The older form of options, without parentheses and commas (`WITH CSV HEADER`), is read too.
"""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from ...catalog.values.errors import SQLError
from ..syntax.copy_options import CopyFormat, CopyOptions
from ..syntax.refusals import unsupported
from ..syntax.statements import CopyFrom, CopyTo, ObjectName, Query
from .cursor import Cursor, LexemeKind
from .queries import parse_query

Given = dict[str, str | bool]


def copy(cursor: Cursor) -> CopyFrom | CopyTo:
    """`{table [(column, …)] {FROM STDIN | TO STDOUT} | (query) TO STDOUT} [options]`.
    Raises SQLError 42601, and 0A000 for files and programs."""
    if cursor.at_symbol("("):
        query = _query(cursor)
        cursor.expect_words("to")
        _stdout(cursor)
        return CopyTo(query=query, options=_options(cursor))
    table = cursor.object_name("a table's name")
    columns = _names(cursor) if cursor.at_symbol("(") else None
    if cursor.accept_words("from"):
        if not cursor.accept_words("stdin"):
            _refuse_files(cursor)
        return CopyFrom(table=table, columns=columns, options=_options(cursor))
    cursor.expect_words("to")
    _stdout(cursor)
    options = _options(cursor)
    whole = table if columns is None else None
    return CopyTo(query=_whole(table, columns), options=options, whole=whole)


def _stdout(cursor: Cursor) -> None:
    if not cursor.accept_words("stdout"):
        _refuse_files(cursor)


def _refuse_files(cursor: Cursor) -> NoReturn:
    if cursor.current.kind is LexemeKind.STRING or cursor.at_words("program"):
        raise unsupported(
            "COPY with a file or a program of the server",
            cursor.position,
            "Use STDIN and STDOUT; psql's \\copy does, with files of the client.",
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


def _options(cursor: Cursor) -> CopyOptions:
    """The options that end the statement."""
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
    if cursor.at_words("where"):
        raise _unsupported("WHERE", cursor.position)
    cursor.expect_end()
    try:
        return build_options(given)
    except SQLError as error:
        error.position = error.position or position
        raise


def _unsupported(option: str, position: int) -> SQLError:
    return unsupported(
        f"{option} of COPY",
        position,
        "Read into a table of its own, and INSERT … SELECT what is wanted of it.",
    )


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
        case "header" | "freeze":  # pgbench asks for FREEZE, which means nothing here
            bare = cursor.at_symbol(",") or cursor.at_symbol(")")
            given[name] = True if bare else cursor.option_value()
        case "force_quote" | "force_not_null" | "force_null":
            raise _unsupported(name.upper(), position)
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
    elif cursor.at_words("force"):
        raise _unsupported(cursor.current.text.upper(), position)
    else:
        for name in ("delimiter", "null", "quote", "escape", "encoding"):
            if cursor.accept_words(name):
                cursor.accept_words("as")
                given[name] = cursor.string(name.upper())
                _check_encoding(given, position)
                return
        cursor.fail(expected="an option of COPY")


def _check_encoding(given: Given, position: int) -> None:
    wanted = str(given.get("encoding", "utf8")).lower().replace("-", "").replace("_", "")
    if wanted not in ("utf8", "unicode"):
        raise SQLError(
            "0A000", "COPY reads and writes UTF-8 only", position=position,
            hint="Convert the data, or leave ENCODING out.",
        )  # fmt: skip


def build_options(given: Given) -> CopyOptions:
    """The options that were written, with the defaults of their format. Raises SQLError."""
    name = str(given.get("format", "text")).lower()
    try:
        format = CopyFormat(name)
    except ValueError:
        raise SQLError(
            "22023", f'COPY format "{name}" not recognized', hint="Formats: text, csv, binary."
        ) from None
    csv = format is CopyFormat.CSV
    for option in ("quote", "escape"):
        if option in given and not csv:
            raise SQLError("0A000", f"COPY {option.upper()} available only in CSV mode")
    if format is CopyFormat.BINARY:
        for option in ("delimiter", "null", "header"):
            if given.get(option):
                raise SQLError("42601", f"cannot specify {option.upper()} in BINARY mode")
    quote = str(given.get("quote", '"'))
    options = CopyOptions(
        format=format,
        delimiter=str(given.get("delimiter", "," if csv else "\t")),
        null=str(given.get("null", "" if csv else "\\N")),
        header=_header(given.get("header", False)),
        quote=quote,
        escape=str(given.get("escape", quote)),
    )
    _check(options)
    return options


def _header(value: object) -> bool:
    written = str(value).lower()
    if written in ("true", "on", "1"):
        return True
    if written in ("false", "off", "0"):
        return False
    raise SQLError("42601", "header requires a Boolean value")


def _check(options: CopyOptions) -> None:
    for what, value in (
        ("delimiter", options.delimiter),
        ("quote", options.quote),
        ("escape", options.escape),
    ):
        if len(value) != 1 or not value.isascii():
            raise SQLError("0A000", f"COPY {what} must be a single one-byte character")
        if value in "\r\n":
            raise SQLError("22023", f"COPY {what} cannot be newline or carriage return")
    if "\n" in options.null or "\r" in options.null:
        raise SQLError("22023", "COPY null representation cannot use newline or carriage return")
    if options.delimiter in options.null:
        raise SQLError("0A000", "COPY delimiter must not appear in the NULL specification")
    if options.format is CopyFormat.CSV:
        if options.delimiter == options.quote:
            raise SQLError("0A000", "COPY delimiter and quote must be different")
        if options.quote in options.null:
            raise SQLError("0A000", "CSV quote character must not appear in the NULL specification")
    elif options.delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789":
        raise SQLError("22023", f'COPY delimiter cannot be "{options.delimiter}"')
