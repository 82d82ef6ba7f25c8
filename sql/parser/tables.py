"""The grammar of databases and tables."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.errors import SQLError
from .cursor import Cursor, LexemeKind
from .queries import parse_tree
from .ranges import change_of_ranges
from .statements import (
    AlterTableSet,
    ColumnDefinition,
    CreateDatabase,
    CreateTable,
    DropTable,
    ObjectName,
    Option,
    RangesOf,
    SplitAt,
    TypeName,
    UnsplitAt,
)

TYPES_OF_SEVERAL_WORDS = {
    "double": ("precision",),
    "character": ("varying",),
}
# fmt: off
_COLUMN_CONSTRAINTS = frozenset({
    "not", "null", "primary", "default", "constraint", "unique", "check", "references",
    "generated", "collate",
})
# fmt: on
_REFUSED = {
    "unique": "UNIQUE constraints",
    "check": "CHECK constraints",
    "references": "foreign keys",
    "foreign": "foreign keys",
    "generated": "generated columns",
    "collate": "collations",
    "like": "LIKE clauses",
}


def create_database(cursor: Cursor) -> CreateDatabase:
    if_not_exists = cursor.accept_words("if", "not", "exists")
    name = cursor.identifier("a database's name")
    cursor.expect_end()
    return CreateDatabase(name=name, if_not_exists=if_not_exists)


def create_table(cursor: Cursor) -> CreateTable:
    """`[IF NOT EXISTS] name (element, …) [WITH (parameter = value, …)]`"""
    if_not_exists = cursor.accept_words("if", "not", "exists")
    table = cursor.object_name("a table's name")
    cursor.expect_symbol("(")
    columns: list[ColumnDefinition] = []
    primary_key: tuple[str, ...] = ()
    while True:
        position = cursor.position
        key = _table_constraint(cursor)
        if key is None:
            columns.append(_column(cursor))
        elif primary_key:
            raise _two_keys(table, position)
        else:
            primary_key = key
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    parameters = _parameters(cursor, with_values=True) if cursor.accept_words("with") else ()
    cursor.expect_end()
    return CreateTable(
        table=table,
        columns=tuple(columns),
        primary_key=primary_key,
        if_not_exists=if_not_exists,
        parameters=parameters,
    )


def drop_table(cursor: Cursor) -> DropTable:
    if_exists = cursor.accept_words("if", "exists")
    tables = [cursor.object_name("a table's name")]
    while cursor.accept_symbol(","):
        tables.append(cursor.object_name("a table's name"))
    if not cursor.accept_words("restrict") and cursor.at_words("cascade"):
        raise SQLError("0A000", "DROP TABLE … CASCADE is not supported", position=cursor.position)
    cursor.expect_end()
    return DropTable(tables=tuple(tables), if_exists=if_exists)


def alter_table(cursor: Cursor) -> AlterTableSet | SplitAt | UnsplitAt:
    """`[IF EXISTS] name SET (parameter = value, …)` or `RESET (parameter, …)`"""
    if_exists = cursor.accept_words("if", "exists")
    table = cursor.object_name("a table's name")
    of = RangesOf(table=table, index=None, if_exists=if_exists)
    change = change_of_ranges(cursor, of)
    if change is not None:
        return change
    for word in ("add", "drop", "rename", "alter", "owner", "inherit"):
        if cursor.at_words(word):
            raise SQLError(
                "0A000",
                f"ALTER TABLE … {word.upper()} is not supported",
                position=cursor.position,
                hint="ALTER TABLE takes SET (parameter = value) and RESET (parameter).",
            )
    reset = cursor.accept_words("reset")
    if not reset:
        cursor.expect_words("set")
    parameters = _parameters(cursor, with_values=not reset)
    cursor.expect_end()
    return AlterTableSet(table=table, parameters=parameters, if_exists=if_exists, reset=reset)


def _parameters(cursor: Cursor, *, with_values: bool) -> tuple[Option, ...]:
    cursor.expect_symbol("(")
    found: list[Option] = []
    while True:
        position = cursor.position
        name = cursor.dotted_name("a parameter")
        value = None
        if with_values:
            # A boolean parameter may stand alone, as in Postgres.
            value = cursor.option_value() if cursor.accept_symbol("=") else "true"
        found.append(Option(name, value, position))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return tuple(found)


def _table_constraint(cursor: Cursor) -> tuple[str, ...] | None:
    """The columns of `[CONSTRAINT name] PRIMARY KEY (…)`, or None before a column."""
    named = cursor.accept_words("constraint")
    if named:
        cursor.identifier("a constraint's name")
    if cursor.accept_words("primary", "key"):
        cursor.expect_symbol("(")
        names = [cursor.identifier("a column's name")]
        while cursor.accept_symbol(","):
            names.append(cursor.identifier("a column's name"))
        cursor.expect_symbol(")")
        return tuple(names)
    _refuse_unsupported(cursor)
    if named:
        cursor.fail(expected="PRIMARY KEY")
    return None


def _column(cursor: Cursor) -> ColumnDefinition:
    position = cursor.position
    name = cursor.identifier("a column's name")
    type_name = _type_name(cursor)
    nullable: bool | None = None
    default: exp.Expr | None = None
    primary_key = False
    while not (cursor.at_symbol(",") or cursor.at_symbol(")")):
        here = cursor.position
        if cursor.accept_words("constraint"):
            cursor.identifier("a constraint's name")
        if cursor.at_words("not", "null") or cursor.at_words("null"):
            wanted = not cursor.accept_words("not")
            cursor.expect_words("null")
            if nullable is not None and nullable != wanted:
                raise SQLError(
                    "42601",
                    f'conflicting NULL/NOT NULL declarations for column "{name}"',
                    position=here,
                )
            nullable = wanted
        elif cursor.accept_words("default"):
            if default is not None:
                raise SQLError(
                    "42601",
                    f'multiple default values specified for column "{name}"',
                    position=here,
                )
            default = _expression(cursor)
        elif cursor.accept_words("primary", "key"):
            primary_key = True
        else:
            _refuse_unsupported(cursor)
            cursor.fail(expected='NULL, NOT NULL, DEFAULT, PRIMARY KEY, "," or ")"')
    return ColumnDefinition(
        name=name,
        type=type_name,
        nullable=nullable,
        default=default,
        primary_key=primary_key,
        position=position,
    )


def _type_name(cursor: Cursor) -> TypeName:
    position = cursor.position
    if cursor.current.kind is not LexemeKind.WORD:
        cursor.fail(expected="a column's type")
    words = [cursor.advance().text]
    for following in TYPES_OF_SEVERAL_WORDS.get(words[0], ()):
        if cursor.accept_words(following):
            words.append(following)
    arguments: list[int] = []
    if cursor.accept_symbol("("):
        arguments.append(cursor.integer("a whole number"))
        while cursor.accept_symbol(","):
            arguments.append(cursor.integer("a whole number"))
        cursor.expect_symbol(")")
    if words[0] in ("timestamp", "time"):
        for zone in ("with", "without"):
            if cursor.accept_words(zone, "time", "zone"):
                words += [zone, "time", "zone"]
    if cursor.at_symbol("["):
        raise SQLError("0A000", "array types are not supported", position=cursor.position)
    return TypeName(" ".join(words), tuple(arguments), position)


def _expression(cursor: Cursor) -> exp.Expr:
    """The tokens up to the next constraint, comma or closing parenthesis, as an expression."""
    first = cursor.current.token_index
    depth = 0
    while not cursor.finished:
        started = cursor.current.token_index > first
        if depth == 0 and (cursor.at_symbol(",") or cursor.at_symbol(")")):
            break
        word = cursor.current.kind is LexemeKind.WORD
        if depth == 0 and started and word and cursor.current.text in _COLUMN_CONSTRAINTS:
            break
        depth += cursor.at_symbol("(") - cursor.at_symbol(")")
        cursor.advance()
    tokens = cursor.tokens[first : cursor.current.token_index]
    if not tokens:
        cursor.fail(expected="a constant")
    return parse_tree(cursor.text, tokens)


def _refuse_unsupported(cursor: Cursor) -> None:
    lexeme = cursor.current
    what = _REFUSED.get(lexeme.text) if lexeme.kind is LexemeKind.WORD else None
    if what is not None:
        raise SQLError("0A000", f"{what} are not supported", position=cursor.position)


def _two_keys(table: ObjectName, position: int) -> SQLError:
    return SQLError(
        "42P16",
        f'multiple primary keys for table "{table.parts[-1]}" are not allowed',
        position=position,
    )
