"""COPY.

    COPY table [(column, …)] FROM STDIN [[WITH] (FORMAT csv, HEADER, …)]
    COPY table [(column, …)] TO STDOUT …
    COPY (SELECT …) TO STDOUT …

The older form of options, without parentheses and commas (`WITH CSV HEADER`), is read too.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...syntax.statement import ObjectName, at
from ...syntax.statements import CopyFormat, CopyOptions, CopyTo, Query
from ...syntax.trees import STORED, unsupported
from ..cursor import Cursor
from ..kinds import at_string, gathered, kind, refuses
from ..rules import Row, Rules

_TEXTS = ("delimiter", "null", "quote", "escape")
_FILES = "Use STDIN and STDOUT; psql's \\copy does, with files of the client."


def _at_file(cursor: Cursor) -> bool:
    return at_string(cursor) or cursor.key == "program"


@kind("server_file", _at_file)
def _file(cursor: Cursor) -> None:
    if not _at_file(cursor):
        cursor.fail()
    raise unsupported("COPY with a file or a program of the server", cursor.position, _FILES)


def _unknown(name: str, position: int) -> None:
    raise SQLError("42601", f'option "{name}" not recognized', position=position)


refuses(
    "condition",
    "WHERE",
    "WHERE of COPY",
    "Read into a table of its own, and INSERT … SELECT what is wanted of it.",
)
_options = Rules(
    ("FORMAT format:value", dict),
    *((f"{name.upper()} {name}:text", dict) for name in _TEXTS),
    ("HEADER [header:value]", dict, {"header": "true"}),
    ("FREEZE [_:value]", dict),  # pgbench asks for it, and it means nothing here
    ("^ name:option_word", _unknown),
)
_old_options = gathered(
    Rules(
        ("BINARY", dict, {"format": "binary"}),
        ("CSV", dict, {"format": "csv"}),
        ("HEADER", dict, {"header": "true"}),
        ("_:condition", dict),
        *((f"{name.upper()} [AS] {name}:text", dict) for name in _TEXTS),
    )
)


@kind("copy_options")
def _copy_options(cursor: Cursor) -> CopyOptions:
    """`[WITH] [(option, …) | option …]`, to the end of the statement"""
    position = cursor.position
    cursor.accept("with")
    given: dict[str, object] = {}
    if cursor.key == "(":
        for said in cursor.enclosed(_options.read):
            assert isinstance(said, dict), said
            if not given.keys().isdisjoint(said):
                raise SQLError("42601", "conflicting or redundant options", position=position)
            given |= said
    given |= _old_options(cursor)
    with at(position):
        return build_options(given)


def _whole(table: ObjectName, columns: tuple[str, ...] | None, options: CopyOptions) -> CopyTo:
    """`SELECT columns FROM table`; without columns those that COPY FROM takes."""
    parts = [exp.to_identifier(part, quoted=True) for part in table.parts]
    for part in parts:
        part.update_positions(start=table.position - 1, end=table.position - 1)
    names = dict(zip(("this", "db", "catalog"), reversed(parts), strict=False))
    items: list[exp.Expr] = [exp.Star()]
    if columns is not None:
        items = [exp.column(exp.to_identifier(name, quoted=True)) for name in columns]
    tree = exp.select(*items).from_(exp.Table(**names))
    tree.meta[STORED] = True
    return CopyTo(query=Query(tree=tree, as_of=None), options=options)


COPIES: tuple[Row, ...] = (
    (
        "COPY table:table [columns:columns] TO ( STDOUT | _:server_file ) options:copy_options",
        _whole,
    ),
)


def build_options(given: Mapping[str, object]) -> CopyOptions:
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
    """Raises SQLError 22023 for signs by which rows could not be read back."""
    csv = options.format is CopyFormat.CSV
    for what in ("delimiter", "quote", "escape"):
        sign: str = getattr(options, what)
        if len(sign) != 1 or not sign.isascii() or sign in "\r\n":
            message = f"COPY {what} must be a single one-byte character, and no end of a line"
            raise SQLError("22023", message)
    taken = ("\n", "\r", options.delimiter, *([options.quote] if csv else ()))
    if any(sign in options.null for sign in taken):
        message = (
            "the NULL specification of COPY holds an end of a line, the delimiter or the quote"
        )
        raise SQLError("22023", message)
    same = csv and options.delimiter == options.quote
    if same or (not csv and options.delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789"):
        raise SQLError("22023", f'COPY delimiter cannot be "{options.delimiter}"')
