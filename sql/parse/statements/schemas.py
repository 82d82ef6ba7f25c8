"""Schemas and what is in them, created, altered and dropped; tables as they are created stand in
`tables`."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from ....catalog.descriptors.elements import Identity
from ....catalog.values.errors import SQLError
from ...syntax import schema_statements as s
from ...syntax.names import ObjectName
from ...syntax.refusals import unsupported
from ...syntax.statements import AlterTableSet, DropTable, RangesOf, SplitAt, UnsplitAt
from ...syntax.type_statements import (
    AddEnumValue,
    AlterSequence,
    CreateEnum,
    CreateSequence,
    DropSequence,
    DropType,
    RenameEnumValue,
    RenameType,
    SequenceChange,
)
from ...syntax.view_statements import CreateView, DropView, RenameView
from ..cursor import Cursor
from ..kinds import define, define_rules, itself, object_name, padded, refused, refuses
from ..kinds import query as read_query
from ..queries import parse_tree
from ..rules import Make, Row, Rules
from .tables import INDEX, index_definition

_CASCADE = "[cascade:CASCADE | RESTRICT]"
_IF = "if_exists:[IF EXISTS]"
_UNLESS = "if_not_exists:[IF NOT EXISTS]"


# Indexes.


def _create_index(
    table: ObjectName, if_not_exists: bool, text: str, **fields: object
) -> s.CreateIndex:
    index = index_definition(**fields)  # type: ignore[arg-type]
    return s.CreateIndex(table=table, index=index, if_not_exists=if_not_exists, text=text)


def _index_name(path: ObjectName, index: str | None) -> tuple[ObjectName | None, str]:
    """`index` or `table@index`: the table, if it is named, and the index."""
    if index is not None:
        return path, index
    *before, last = path.parts
    return (ObjectName(tuple(before), path.position) if before else None), last


define_rules("qualified_index", Rules(("path:index_path [@ index:index]", _index_name)))


def _of_index(make: Make) -> Make:
    return lambda index, **fields: make(table=index[0], name=index[1], **fields)


# Ranges.

refuses("expiration", "WITH", "WITH EXPIRATION", "UNSPLIT gives a border up.")
refuses("border_query", "SELECT", "SPLIT AT SELECT", "Write SPLIT AT VALUES (…), (…).")


def _borders(cursor: Cursor) -> tuple[tuple[exp.Expr, ...], ...]:
    """`VALUES (…), …`"""
    position = cursor.position
    if cursor.keys[cursor.index] != "values":
        cursor.fail("VALUES")
    tree = parse_tree(cursor.text, cursor.until(lambda: cursor.keys[cursor.index] == "with"))
    assert isinstance(tree, exp.Values), tree
    rows = tuple(
        tuple(row.expressions) if isinstance(row, exp.Tuple) else (row.unnest(),)
        for row in tree.expressions
    )
    if not all(rows):
        raise SQLError("42601", "a border needs a value", position=position)
    return rows


define("borders", _borders)
define_rules("ranges_of_table", Rules((f"{_IF} [ONLY] table:table", RangesOf, {"index": None})))
define_rules("ranges_of_index", Rules((f"{_IF} table:table @ index:index", RangesOf)))
_RANGES: tuple[Row, ...] = tuple(
    row
    for what in ("TABLE", "INDEX")
    for row in (
        (
            f"ALTER {what} of:ranges_of_{what.lower()} ^ SPLIT AT [_:border_query] rows:borders "
            "[_:expiration]",
            SplitAt,
        ),
        (
            f"ALTER {what} of:ranges_of_{what.lower()} ^ UNSPLIT ( ALL | AT rows:borders )",
            UnsplitAt,
        ),
    )
)


# ALTER TABLE.

_TRIGGERS = "There are no triggers; constraints always hold."
_RULES = "There are no rules."
_POLICIES = "GRANT gives rights on tables; a view shows some rows."
_PARENTS = "No table inherits from another."
_PARTITIONS = "There are no partitions; ranges split."
_REFUSED = {
    "INHERIT": _PARENTS,
    "NO INHERIT": _PARENTS,
    "ATTACH PARTITION": _PARTITIONS,
    "DETACH PARTITION": _PARTITIONS,
    "DISABLE TRIGGER": _TRIGGERS,
    "ENABLE TRIGGER": _TRIGGERS,
    "DISABLE RULE": _RULES,
    "ENABLE RULE": _RULES,
    "ENABLE ROW LEVEL SECURITY": _POLICIES,
    "DISABLE ROW LEVEL SECURITY": _POLICIES,
    "FORCE ROW LEVEL SECURITY": _POLICIES,
    "ALTER CONSTRAINT": "Drop the constraint, and add it anew as it is to be.",
    "SET UNLOGGED": "Every table is durable.",
    "SET TABLESPACE": "A store is one folder.",
    "OF": None,
}
_STORED = (
    "SET LOGGED", "SET WITHOUT OIDS", "SET WITHOUT CLUSTER",
    *(f"REPLICA IDENTITY {which}" for which in ("DEFAULT", "FULL", "NOTHING")),
)  # fmt: skip
"""Commands about PostgreSQL's storage, which have no effect here."""


def _by_index(name: str) -> s.IgnoredAlteration:
    return s.IgnoredAlteration(what=f"the order or identity by index {name}")


def _set_identity(name: str, position: int, said: dict[str, object]) -> s.SetIdentity:
    options = {field: value for field, value in said.items() if field != "identity"}
    return s.SetIdentity(
        name=name,
        position=position,
        identity=said.get("identity"),  # type: ignore[arg-type]
        options=SequenceChange(position=position, **options) if options else None,  # type: ignore[arg-type]
    )


_identity_change = Rules(
    ("SET GENERATED ALWAYS", dict, {"identity": Identity.ALWAYS}),
    ("SET GENERATED BY DEFAULT", dict, {"identity": Identity.BY_DEFAULT}),
    ("SET name:sequence_option", itself),
    ("RESTART [[WITH] restart:number]", dict, {"restarts": True}),
)


def _identity_changes(cursor: Cursor) -> dict[str, object]:
    found: dict[str, object] = {}
    while not found or _identity_change.begins(cursor):
        said = _identity_change.read(cursor)
        assert isinstance(said, dict), said
        found |= said
    return found


define("identity_changes", _identity_changes, _identity_change.begins)
_COLUMN = "ALTER [COLUMN] ^ name:column"
_STORED_COLUMN = {
    "SET STATISTICS": "_:number",
    "SET STORAGE": "( DEFAULT | _:word )",
    "SET COMPRESSION": "( DEFAULT | _:word )",
}
define_rules(
    "alteration",
    Rules(
        *((words, s.IgnoredAlteration, {"what": words}) for words in _STORED),
        ("CLUSTER ON name:index", _by_index),
        ("REPLICA IDENTITY USING INDEX name:index", _by_index),
        (
            "^ ADD [CONSTRAINT name:constraint] PRIMARY KEY columns:(column,…) _:not_deferrable",
            s.AddPrimaryKey,
        ),
        ("ADD constraint:table_constraint", s.AddConstraint),
        (f"ADD [COLUMN] {_UNLESS} definition:column_definition", s.AddColumn),
        (f"^ DROP CONSTRAINT {_IF} name:constraint [CASCADE/RESTRICT]", s.DropConstraint),
        (f"DROP [COLUMN] {_IF} ^ name:column {_CASCADE}", s.DropColumn),
        ("^ RENAME TO new_name:table_word", s.RenameTable),
        ("^ RENAME CONSTRAINT name:name TO new_name:new_name", s.RenameConstraint),
        ("RENAME [COLUMN] ^ name:name TO new_name:new_name", s.RenameColumn),
        ("^ ALTER PRIMARY KEY USING COLUMNS columns:(column,…)", s.AlterPrimaryKey),
        (f"{_COLUMN} SET NOT NULL", s.SetNotNull, {"not_null": True}),
        (f"{_COLUMN} DROP NOT NULL", s.SetNotNull, {"not_null": False}),
        (f"{_COLUMN} SET DEFAULT default:expression", s.SetDefault),
        (f"{_COLUMN} DROP DEFAULT", s.SetDefault, {"default": None}),
        (
            f"{_COLUMN} DROP EXPRESSION {_IF}",
            refused(
                "ALTER COLUMN … DROP EXPRESSION", "Add a column, fill it by UPDATE, drop this one."
            ),
        ),
        (f"{_COLUMN} ADD clause:identity", s.AddIdentity),
        (f"{_COLUMN} DROP IDENTITY {_IF}", s.DropIdentity),
        *(
            (f"ALTER [COLUMN] ^ column:column {what} {value}", s.IgnoredAlteration, {"what": what})
            for what, value in _STORED_COLUMN.items()
        ),
        (f"{_COLUMN} [SET DATA] TYPE type:column_type [USING using:expression]", s.AlterType),
        (f"{_COLUMN} said:identity_changes", _set_identity),
        ("^ SET SCHEMA schema:schema", s.SetSchema),
        ("^ SET parameters:(parameter,…)", s.SetParameters, {"reset": False}),
        ("^ RESET parameters:(reset_parameter,…)", s.SetParameters, {"reset": True}),
        ("^ VALIDATE CONSTRAINT name:constraint", s.ValidateConstraint),
        ("^ OWNER TO _:role _:rest", refused("ALTER TABLE … OWNER")),
        *(
            (f"^ {words} _:rest", refused(f"ALTER TABLE … {words}", hint))
            for words, hint in _REFUSED.items()
        ),
        expected="ADD, DROP, ALTER, RENAME, SET, RESET or VALIDATE",
    ),
)


def _alter_table(
    table: ObjectName, commands: tuple[s.AlterCommand, ...], if_exists: bool, text: str
) -> s.AlterTable | AlterTableSet:
    match commands:
        case [s.SetParameters(parameters=parameters, reset=reset)]:
            return AlterTableSet(
                table=table, parameters=parameters, if_exists=if_exists, reset=reset
            )
    return s.AlterTable(table=table, commands=commands, if_exists=if_exists, text=text)


# Comments and schemas.


def _comment_on_column(name: ObjectName, text: str | None, what: s.Commented) -> s.CommentOn:
    if len(name.parts) < 2:
        raise SQLError("42601", "write the column as table.column", position=name.position)
    table = replace(name, parts=name.parts[:-1])
    return s.CommentOn(what=what, table=table, column=name.parts[-1], text=text)


define("schema_parts", lambda cursor: object_name(cursor, "a schema's name").parts)
_SCHEMAS: tuple[Row, ...] = (
    *(
        (
            f"COMMENT ON {what.value} table:{what.value.lower()} IS ( NULL | text:text )",
            s.CommentOn,
            {"what": what, "column": None},
        )
        for what in (s.Commented.TABLE, s.Commented.VIEW)
    ),
    (
        "COMMENT ON COLUMN name:column_name IS ( NULL | text:text )",
        _comment_on_column,
        {"what": s.Commented.COLUMN},
    ),
    (f"CREATE SCHEMA {_UNLESS} ^ parts:schema_parts", s.CreateSchema),
    (f"DROP SCHEMA {_IF} ^ parts:schema_parts {_CASCADE}", s.DropSchema),
    (f"DROP DATABASE {_IF} ^ name:database {_CASCADE}", s.DropDatabase),
)


# Views.


def _view_query(cursor: Cursor) -> str:
    """The text of a view's query, with blanks in front so that its positions are true."""
    if [token.text.lower() for token in cursor.tokens[-2:]] == ["check", "option"]:
        raise unsupported(
            "WITH CHECK OPTION",
            cursor.tokens[-1].start + 1,
            "Views are only read: there is nothing to check.",
        )
    mark = cursor.index
    query = read_query(cursor)
    if query.as_of is not None:
        raise SQLError(
            "0A000",
            "a view does not read the past",
            hint="Write AS OF SYSTEM TIME where the view is read.",
            position=query.as_of.position,
        )
    if query.locks:
        raise SQLError("0A000", "a view cannot lock rows", hint="Leave FOR UPDATE out.")
    cursor.index = mark
    return padded(cursor, "a query")


define("view_query", _view_query)
_VIEW = "name:view [columns:(column,…)] AS text:view_query"
_VIEWS: tuple[Row, ...] = (
    (f"CREATE VIEW {_UNLESS} {_VIEW}", CreateView, {"replaces": False}),
    (f"CREATE OR REPLACE VIEW {_VIEW}", CreateView, {"replaces": True, "if_not_exists": False}),
    (f"ALTER VIEW {_IF} name:view RENAME TO ^ new_name:view_word", RenameView),
)


# Types and sequences.


def _no_enum(cursor: Cursor) -> None:
    if cursor.keys[cursor.index] == "enum":
        cursor.fail()


define("no_enum", _no_enum)
_COMPOSITE = "Write CREATE TYPE … AS ENUM ('a label', …); JSONB holds values of several parts."


_TYPES: tuple[Row, ...] = (
    (f"CREATE TYPE {_UNLESS} name:type [AS] ENUM '(' [labels:label_text,…] ')'", CreateEnum),
    (
        f"CREATE TYPE {_UNLESS} _:type ^ AS _:no_enum _:rest",
        refused("types other than enumerations", _COMPOSITE),
    ),
    (
        f"ALTER TYPE name:type ADD VALUE {_UNLESS} label:label_text "
        "[BEFORE before:label_text | AFTER after:label_text]",
        AddEnumValue,
    ),
    ("ALTER TYPE name:type RENAME VALUE label:label_text TO new_label:label_text", RenameEnumValue),
    ("ALTER TYPE name:type RENAME TO new_name:type_word", RenameType),
    (f"CREATE SEQUENCE {_UNLESS} name:sequence change:sequence_options", CreateSequence),
    (
        f"ALTER SEQUENCE {_IF} name:sequence [RENAME TO new_name:sequence_word] "
        "change:sequence_options",
        AlterSequence,
    ),
)

SCHEMAS: tuple[Row, ...] = (
    *(
        (f"DROP {what} {_IF} names:{what.lower()},… {_CASCADE}", make)
        for what, make in (
            ("TABLE", DropTable), ("SEQUENCE", DropSequence), ("VIEW", DropView), ("TYPE", DropType)
        )
    ),
    *_RANGES,
    (
        f"ALTER TABLE {_IF} [ONLY] table:table commands:alteration,… text:whole_text",
        _alter_table,
    ),
    (
        f"CREATE unique:[UNIQUE] INDEX [CONCURRENTLY] {_UNLESS} ^ {INDEX} text:whole_text",
        _create_index,
    ),
    (
        f"DROP INDEX [CONCURRENTLY] {_IF} ^ index:qualified_index {_CASCADE} text:whole_text",
        _of_index(s.DropIndex),
    ),
    (
        f"ALTER INDEX {_IF} ^ index:qualified_index RENAME TO new_name:index text:whole_text",
        _of_index(s.RenameIndex),
    ),
    (
        "TRUNCATE [TABLE] [ONLY] tables:table,… [restart_identity:RESTART IDENTITY | "
        f"CONTINUE IDENTITY] {_CASCADE} text:whole_text",
        s.Truncate,
    ),
    *_SCHEMAS,
    *_VIEWS,
    *_TYPES,
)  # fmt: skip
