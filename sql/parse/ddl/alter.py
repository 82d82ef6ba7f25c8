"""The grammar of schema changes: ALTER TABLE, indexes, TRUNCATE, comments, schemas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ....catalog.values.errors import SQLError
from ...syntax.names import ObjectName
from ...syntax.schema_statements import (
    AddColumn,
    AddConstraint,
    AddPrimaryKey,
    AlterCommand,
    AlterPrimaryKey,
    AlterTable,
    AlterType,
    Commented,
    CommentOn,
    CreateIndex,
    CreateSchema,
    DropColumn,
    DropConstraint,
    DropDatabase,
    DropExpression,
    DropIndex,
    DropSchema,
    RenameColumn,
    RenameConstraint,
    RenameIndex,
    RenameTable,
    SetDefault,
    SetNotNull,
    SetParameters,
    SetSchema,
    Truncate,
    ValidateConstraint,
)
from ...syntax.statements import AlterTableSet, RangesOf, SplitAt, UnsplitAt
from ..cursor import Cursor, LexemeKind
from .alterations import ignored_alteration, ignored_of_column, refuse_alteration
from .deferrable import not_deferrable
from .drops import drop_behaviour
from .identity import alter_identity
from .index_columns import column_names, index_columns, index_method, refuse_partial
from .ranges import change_of_ranges
from .tables import (
    column_definition,
    constraint_of,
    expression,
    parameter_list,
    type_name,
)


def alter_table(cursor: Cursor) -> AlterTable | AlterTableSet | SplitAt | UnsplitAt:
    """`[IF EXISTS] [ONLY] name command, …`: no table inherits from another."""
    if_exists = cursor.accept_words("if", "exists")
    cursor.accept_words("only")
    table = cursor.object_name("a table's name")
    ranges = change_of_ranges(cursor, RangesOf(table=table, index=None, if_exists=if_exists))
    if ranges is not None:
        return ranges
    commands = cursor.listed(lambda: _command(cursor))
    match commands:
        case [SetParameters(parameters=parameters, reset=reset)]:
            return AlterTableSet(
                table=table, parameters=parameters, if_exists=if_exists, reset=reset
            )
    return AlterTable(
        table=table,
        commands=commands,
        if_exists=if_exists,
        text=cursor.statement_text,
    )


def _command(cursor: Cursor) -> AlterCommand:
    ignored = ignored_alteration(cursor)
    if ignored is not None:
        return ignored
    for word, grammar in _COMMANDS.items():
        position = cursor.position
        if cursor.accept_words(word):
            return grammar(cursor, position)
    refuse_alteration(cursor)
    cursor.fail(expected="ADD, DROP, ALTER, RENAME, SET, RESET or VALIDATE")


def _add(cursor: Cursor, position: int) -> AlterCommand:
    name = None
    if cursor.accept_words("constraint"):
        name = cursor.identifier("a constraint's name")
    constraint = constraint_of(cursor, name, position)
    if constraint is not None:
        return AddConstraint(constraint=constraint)
    if cursor.accept_words("primary", "key"):
        if cursor.at_words("using", "index"):
            cursor.fail(expected="the columns of the key")
        columns = column_names(cursor)
        not_deferrable(cursor)
        return AddPrimaryKey(columns=columns, position=position, name=name)
    if name is not None:
        cursor.fail(expected="UNIQUE, CHECK, PRIMARY KEY or FOREIGN KEY")
    cursor.accept_words("column")
    if_not_exists = cursor.accept_words("if", "not", "exists")
    return AddColumn(definition=column_definition(cursor), if_not_exists=if_not_exists)


def _drop(cursor: Cursor, position: int) -> AlterCommand:
    if cursor.accept_words("constraint"):
        if_exists = cursor.accept_words("if", "exists")
        name = cursor.identifier("a constraint's name")
        drop_behaviour(cursor)
        return DropConstraint(name=name, if_exists=if_exists, position=position)
    cursor.accept_words("column")
    if_exists = cursor.accept_words("if", "exists")
    position = cursor.position
    name = cursor.identifier("a column's name")
    return DropColumn(
        name=name, if_exists=if_exists, cascade=drop_behaviour(cursor), position=position
    )


def _rename(cursor: Cursor, position: int) -> AlterCommand:
    if cursor.accept_words("to"):
        return RenameTable(new_name=cursor.identifier("a table's name"), position=position)
    if cursor.accept_words("constraint"):
        name, new_name = _renaming(cursor)
        return RenameConstraint(name=name, new_name=new_name, position=position)
    cursor.accept_words("column")
    position = cursor.position
    name, new_name = _renaming(cursor)
    return RenameColumn(name=name, new_name=new_name, position=position)


def _renaming(cursor: Cursor) -> tuple[str, str]:
    name = cursor.identifier("a name")
    cursor.expect_words("to")
    return name, cursor.identifier("a new name")


def _alter(cursor: Cursor, position: int) -> AlterCommand:
    if cursor.accept_words("primary", "key"):
        cursor.expect_words("using", "columns")
        return AlterPrimaryKey(columns=column_names(cursor), position=position)
    cursor.accept_words("column")
    position = cursor.position
    name = cursor.identifier("a column's name")
    if cursor.accept_words("set", "not", "null"):
        return SetNotNull(name=name, not_null=True, position=position)
    if cursor.accept_words("drop", "not", "null"):
        return SetNotNull(name=name, not_null=False, position=position)
    if cursor.accept_words("drop", "default"):
        return SetDefault(name=name, default=None, position=position)
    if cursor.accept_words("set", "default"):
        return SetDefault(name=name, default=expression(cursor), position=position)
    ignored = ignored_of_column(cursor)
    if ignored is not None:
        return replace(ignored, column=name, position=position)
    if cursor.accept_words("drop", "expression"):
        if_exists = cursor.accept_words("if", "exists")
        return DropExpression(name=name, if_exists=if_exists, position=position)
    identity = alter_identity(cursor, name, position)
    if identity is not None:
        return identity
    if not cursor.accept_words("set", "data", "type"):
        cursor.expect_words("type")
    type = type_name(cursor)
    using = expression(cursor) if cursor.accept_words("using") else None
    return AlterType(name=name, type=type, using=using, position=position)


def _set(cursor: Cursor, position: int) -> AlterCommand:
    if cursor.accept_words("schema"):
        return SetSchema(schema=cursor.identifier("a schema's name"), position=position)
    parameters = parameter_list(cursor, with_values=True)
    return SetParameters(parameters=parameters, reset=False, position=position)


def _reset(cursor: Cursor, position: int) -> AlterCommand:
    parameters = parameter_list(cursor, with_values=False)
    return SetParameters(parameters=parameters, reset=True, position=position)


def _validate(cursor: Cursor, position: int) -> AlterCommand:
    cursor.expect_words("constraint")
    name = cursor.identifier("a constraint's name")
    return ValidateConstraint(name=name, position=position)


_COMMANDS: dict[str, Callable[[Cursor, int], AlterCommand]] = {
    "add": _add,
    "drop": _drop,
    "rename": _rename,
    "alter": _alter,
    "set": _set,
    "reset": _reset,
    "validate": _validate,
}


# Indexes.


def create_index(cursor: Cursor, *, unique: bool) -> CreateIndex:
    """`[CONCURRENTLY] [IF NOT EXISTS] [name] ON t [USING btree] (columns) [STORING (columns)]`"""
    cursor.accept_words("concurrently")
    if_not_exists = cursor.accept_words("if", "not", "exists")
    position = cursor.position
    name = None if cursor.at_words("on") else cursor.identifier("an index's name")
    cursor.expect_words("on")
    table = cursor.object_name("a table's name")
    index_method(cursor)
    index = index_columns(cursor, name, unique=unique, position=position)
    refuse_partial(cursor)
    return CreateIndex(
        table=table, index=index, if_not_exists=if_not_exists, text=cursor.statement_text
    )


def _index_name(cursor: Cursor) -> tuple[ObjectName | None, str]:
    """`index` or `table@index`."""
    name = cursor.object_name("an index's name")
    if cursor.accept_symbol("@"):
        return name, cursor.identifier("an index's name")
    table = ObjectName(name.parts[:-1], name.position) if len(name.parts) > 1 else None
    return table, name.parts[-1]


def drop_index(cursor: Cursor) -> DropIndex:
    """`[CONCURRENTLY] [IF EXISTS] [table@]index [CASCADE | RESTRICT]`"""
    cursor.accept_words("concurrently")
    if_exists = cursor.accept_words("if", "exists")
    position = cursor.position
    table, name = _index_name(cursor)
    cascade = drop_behaviour(cursor)
    return DropIndex(
        table=table,
        name=name,
        if_exists=if_exists,
        cascade=cascade,
        position=position,
        text=cursor.statement_text,
    )


def alter_index(cursor: Cursor) -> RenameIndex | SplitAt | UnsplitAt:
    """`[IF EXISTS] [table@]index {RENAME TO name | SPLIT AT … | UNSPLIT …}`"""
    if_exists = cursor.accept_words("if", "exists")
    position = cursor.position
    table, name = _index_name(cursor)
    if table is not None:
        of = RangesOf(table=table, index=name, if_exists=if_exists)
        ranges = change_of_ranges(cursor, of)
        if ranges is not None:
            return ranges
    cursor.expect_words("rename", "to")
    new_name = cursor.identifier("an index's name")
    return RenameIndex(
        table=table,
        name=name,
        new_name=new_name,
        if_exists=if_exists,
        position=position,
        text=cursor.statement_text,
    )


def truncate(cursor: Cursor) -> Truncate:
    """`[TABLE] name, … [RESTART IDENTITY | CONTINUE IDENTITY] [CASCADE | RESTRICT]`"""
    cursor.accept_words("table")
    cursor.accept_words("only")
    tables = cursor.names("a table's name")
    restarts = cursor.accept_words("restart", "identity")
    if not restarts:
        cursor.accept_words("continue", "identity")
    cascade = drop_behaviour(cursor)
    return Truncate(
        tables=tables,
        cascade=cascade,
        restart_identity=restarts,
        text=cursor.statement_text,
    )


# Comments, schemas and databases.


def comment_on(cursor: Cursor) -> CommentOn:
    """`TABLE name IS …`, `VIEW name IS …` and `COLUMN table.column IS …`"""
    column = None
    if cursor.accept_words("table"):
        what, table = Commented.TABLE, cursor.object_name("a table's name")
    elif cursor.accept_words("view"):
        what, table = Commented.VIEW, cursor.object_name("a view's name")
    elif cursor.accept_words("column"):
        what, name = Commented.COLUMN, cursor.object_name("a column's name")
        if len(name.parts) < 2:
            raise SQLError("42601", "write the column as table.column", position=name.position)
        table, column = replace(name, parts=name.parts[:-1]), name.parts[-1]
    else:
        cursor.fail(expected="TABLE, VIEW or COLUMN")
    cursor.expect_words("is")
    text = None
    if not cursor.accept_words("null"):
        if cursor.current.kind is not LexemeKind.STRING:
            cursor.fail(expected="a text in single quotes, or NULL")
        text = cursor.advance().text
    return CommentOn(what=what, table=table, column=column, text=text)


def create_schema(cursor: Cursor) -> CreateSchema:
    """`[IF NOT EXISTS] schema`"""
    if_not_exists = cursor.accept_words("if", "not", "exists")
    name = cursor.object_name("a schema's name")
    return CreateSchema(parts=name.parts, if_not_exists=if_not_exists, position=name.position)


def drop_schema(cursor: Cursor) -> DropSchema:
    """`[IF EXISTS] schema [CASCADE | RESTRICT]`"""
    if_exists = cursor.accept_words("if", "exists")
    name = cursor.object_name("a schema's name")
    cascade = drop_behaviour(cursor)
    return DropSchema(
        parts=name.parts, if_exists=if_exists, cascade=cascade, position=name.position
    )


def drop_database(cursor: Cursor) -> DropDatabase:
    """`[IF EXISTS] database [CASCADE | RESTRICT]`"""
    if_exists = cursor.accept_words("if", "exists")
    position = cursor.position
    name = cursor.identifier("a database's name")
    cascade = drop_behaviour(cursor)
    return DropDatabase(name=name, if_exists=if_exists, cascade=cascade, position=position)
