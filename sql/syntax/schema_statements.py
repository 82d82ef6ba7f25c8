"""Statements about what schemas have in them, tables as they are altered, types, sequences, views
and relaxed logs, as the parser hands them on."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.descriptors.elements import Identity
from .statement import (
    DDL,
    DropObjects,
    NamedStatement,
    ObjectName,
    Option,
    Statement,
    Syntax,
    TypeName,
)

# Types and sequences.


class CreateEnum(DDL):
    grammar = (
        "CREATE TYPE if_not_exists:[IF NOT EXISTS] name:type [AS] "
        "ENUM '(' [labels:label_text,…] ')'"
    )
    name: ObjectName
    labels: tuple[str, ...]
    if_not_exists: bool


class AddEnumValue(DDL):
    """Behind all others unless a neighbour is named."""

    grammar = (
        "ALTER TYPE name:type ADD VALUE if_not_exists:[IF NOT EXISTS] label:label_text "
        "[BEFORE before:label_text | AFTER after:label_text]"
    )
    name: ObjectName
    label: str
    before: str | None
    after: str | None
    if_not_exists: bool


class DropType(DropObjects):
    grammar = "DROP TYPE if_exists:[IF EXISTS] names:type,… [cascade:CASCADE | RESTRICT]"


class SequenceChange(Syntax):
    """The options that are said of a sequence, None for the others.

    `owned_by` are the parts of a column's name, empty for NONE. `restarts` tells RESTART from none,
    `restart` is its value, if it has one. `bits` are those of AS type: the values are within them.
    """

    position: int
    bits: int | None = None
    start: int | None = None
    increment: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    cycle: bool | None = None
    cache: int | None = None
    owned_by: tuple[str, ...] | None = None
    restarts: bool = False
    restart: int | None = None
    name: ObjectName | None = None
    """SEQUENCE NAME, of a sequence that is made with its column."""


class CreateSequence(DDL):
    grammar = "CREATE SEQUENCE if_not_exists:[IF NOT EXISTS] name:sequence change:sequence_options"
    name: ObjectName
    change: SequenceChange
    if_not_exists: bool


class AlterSequence(DDL):
    grammar = "ALTER SEQUENCE if_exists:[IF EXISTS] name:sequence change:sequence_options"
    name: ObjectName
    change: SequenceChange
    if_exists: bool


class DropSequence(DropObjects):
    grammar = "DROP SEQUENCE if_exists:[IF EXISTS] names:sequence,… [cascade:CASCADE | RESTRICT]"


# Tables, and their constraints and indexes.

NULLS = "[NULLS [_:not_distinct] DISTINCT]"
CHECK = "CHECK tree:parenthesised [NO INHERIT] not_valid:[NOT VALID]"
_NAMED = "^ [CONSTRAINT name:constraint]"


class Check(Syntax):
    """`name` is None where the statement gives none."""

    grammar = f"{_NAMED} {CHECK}"
    name: str | None
    tree: exp.Expr
    position: int
    not_valid: bool = False


class Reference(Syntax):
    """A foreign key. `referenced_columns` is empty where the primary key is meant; actions are as
    written, in capitals."""

    name: str | None
    columns: tuple[str, ...]
    table: ObjectName
    referenced_columns: tuple[str, ...]
    on_delete: str
    on_update: str
    position: int
    not_valid: bool = False
    deferrable: bool = False
    initially_deferred: bool = False


class IndexDefinition(Syntax):
    """UNIQUE and INDEX of CREATE TABLE, and what CREATE INDEX makes. `descending` are the columns
    that are asked for in another order than every index has."""

    grammar = (
        (
            f"{_NAMED} UNIQUE {NULLS} columns:(column,…) _:not_deferrable",
            {"unique": True, "constraint": True},
        ),
    )
    name: str | None
    columns: tuple[str, ...]
    position: int
    unique: bool
    constraint: bool = False
    storing: tuple[str, ...] = ()
    descending: tuple[str, ...] = ()


TableConstraint = Check | IndexDefinition | Reference


class ColumnDefinition(Syntax):
    """One column of CREATE TABLE or ADD COLUMN. `default` is None without a DEFAULT clause."""

    name: str
    type: TypeName
    nullable: bool | None = None
    default: exp.Expr | None = None
    primary_key: bool = False
    position: int
    computed: exp.Expr | None = None
    constraints: tuple[TableConstraint, ...] = ()
    hidden: bool = False
    identity: IdentityClause | None = None
    primary_name: str | None = None


class IdentityClause(Syntax):
    """An identity, and the options of its sequence."""

    grammar = tuple(
        (
            f"GENERATED {words} AS IDENTITY ['(' options:sequence_options ')']",
            {"identity": identity},
        )
        for words, identity in (("ALWAYS", Identity.ALWAYS), ("BY DEFAULT", Identity.BY_DEFAULT))
    )
    identity: Identity
    options: SequenceChange


# What ALTER TABLE takes.

_COLUMN = "ALTER [COLUMN] ^ name:column"


class AlterCommand(Syntax):
    """A command of ALTER TABLE, and where it stands; zero where no error tells of it."""

    position: int = 0


class ElementCommand(AlterCommand):
    """A command about the column or the constraint of a name."""

    name: str


class IgnoredAlteration(AlterCommand):
    """A command of pg_dump's about PostgreSQL's storage: ignored with a notice."""

    grammar = (
        ("CLUSTER ON _:index", {"what": "CLUSTER ON"}),
        (
            "REPLICA IDENTITY ( DEFAULT | FULL | NOTHING | USING INDEX _:index )",
            {"what": "REPLICA IDENTITY"},
        ),
        (f"{_COLUMN} SET STATISTICS _:number", {"what": "SET STATISTICS"}),
        (f"{_COLUMN} SET STORAGE/COMPRESSION ( DEFAULT | _:word )", {"what": "SET STORAGE"}),
    )
    what: str
    name: str | None = None


class AddPrimaryKey(AlterCommand):
    """ADD PRIMARY KEY: of a table that was made without one."""

    grammar = "^ ADD [CONSTRAINT name:constraint] PRIMARY KEY columns:(column,…) _:not_deferrable"
    columns: tuple[str, ...]
    name: str | None = None


class AddConstraint(AlterCommand):
    grammar = "ADD ^ constraint:table_constraint"
    constraint: TableConstraint


class AddColumn(AlterCommand):
    grammar = "ADD [COLUMN] if_not_exists:[IF NOT EXISTS] ^ definition:column_definition"
    definition: ColumnDefinition
    if_not_exists: bool


class DropConstraint(ElementCommand):
    grammar = "^ DROP CONSTRAINT if_exists:[IF EXISTS] name:constraint [CASCADE/RESTRICT]"
    if_exists: bool


class DropColumn(ElementCommand):
    grammar = "DROP [COLUMN] if_exists:[IF EXISTS] ^ name:column [cascade:CASCADE | RESTRICT]"
    if_exists: bool
    cascade: bool


class RenameTable(AlterCommand):
    grammar = "^ RENAME TO new_name:table_word"
    new_name: str


class RenameColumn(ElementCommand):
    grammar = "RENAME [COLUMN] ^ name:name TO new_name:new_name"
    new_name: str


class AlterPrimaryKey(AlterCommand):
    grammar = "^ ALTER PRIMARY KEY USING COLUMNS columns:(column,…)"
    columns: tuple[str, ...]


class SetNotNull(ElementCommand):
    grammar = (
        (f"{_COLUMN} SET NOT NULL", {"not_null": True}),
        (f"{_COLUMN} DROP NOT NULL", {"not_null": False}),
    )
    not_null: bool


class SetDefault(ElementCommand):
    """`default` is None to drop it."""

    grammar = (f"{_COLUMN} SET DEFAULT default:expression", f"{_COLUMN} DROP DEFAULT")
    default: exp.Expr | None = None


class AddIdentity(ElementCommand):
    grammar = f"{_COLUMN} ADD clause:identity"
    clause: IdentityClause


class DropIdentity(ElementCommand):
    grammar = f"{_COLUMN} DROP IDENTITY if_exists:[IF EXISTS]"
    if_exists: bool


class AlterType(ElementCommand):
    grammar = f"{_COLUMN} [SET DATA] TYPE type:column_type [USING using:expression]"
    type: TypeName
    using: exp.Expr | None


class SetIdentity(ElementCommand):
    """SET GENERATED, and SET or RESTART of the sequence's options; what is None stays."""

    identity: Identity | None
    options: SequenceChange | None


class SetParameters(AlterCommand):
    """SET (…), or RESET (…), where every value is None."""

    grammar = (
        "^ SET parameters:(parameter,…)",
        ("^ RESET parameters:(reset_parameter,…)", {"reset": True}),
    )
    parameters: tuple[Option, ...]
    reset: bool = False


class ValidateConstraint(ElementCommand):
    grammar = "^ VALIDATE CONSTRAINT name:constraint"


class AlterTable(DDL):
    """`text` is the statement as written."""

    table: ObjectName
    commands: tuple[AlterCommand, ...]
    if_exists: bool
    text: str


class CreateIndex(DDL):
    table: ObjectName
    index: IndexDefinition
    if_not_exists: bool
    text: str


class IndexStatement(DDL, NamedStatement):
    """`table` is that of `table@index`; else `schema` are the parts before the index's name."""

    table: ObjectName | None = None
    schema: tuple[str, ...] = ()
    if_exists: bool
    text: str


class DropIndex(IndexStatement):
    """DROP INDEX."""


class RenameIndex(IndexStatement):
    new_name: str


class Truncate(DDL):
    """`within` says that it is part of a transaction that goes on, whose it then is whole."""

    grammar = (
        "TRUNCATE [TABLE] [ONLY] tables:table,… [restart_identity:RESTART IDENTITY | "
        "CONTINUE IDENTITY] [cascade:CASCADE | RESTRICT] text:whole_text"
    )
    tables: tuple[ObjectName, ...]
    cascade: bool
    restart_identity: bool
    text: str
    within: bool = False


class CommentOn(DDL):
    """A comment on a table or a view, or on a column of one. `text` is None to take it away."""

    grammar = "COMMENT ON TABLE/VIEW table:table IS ( NULL | text:text )"
    table: ObjectName
    column: str | None = None
    text: str | None


class CreateSchema(DDL, NamedStatement):
    grammar = "CREATE SCHEMA if_not_exists:[IF NOT EXISTS] ^ name:schema"
    if_not_exists: bool


class DropSchema(DDL, NamedStatement):
    grammar = "DROP SCHEMA if_exists:[IF EXISTS] ^ name:schema [cascade:CASCADE | RESTRICT]"
    if_exists: bool
    cascade: bool


class DropDatabase(DDL, NamedStatement):
    """DROP DATABASE, which drops what is in the database, as in PostgreSQL."""

    grammar = "DROP DATABASE if_exists:[IF EXISTS] ^ name:database [CASCADE]"
    if_exists: bool


TableChange = AlterTable | CreateIndex | DropIndex | RenameIndex | Truncate
"""Statements that become targets of a schema change."""


# Views.

_VIEW = "name:view AS text:view_query"


class CreateView(DDL):
    """`text` is the query, with blanks in front so that its positions are true."""

    grammar = (f"CREATE VIEW {_VIEW}", (f"CREATE OR REPLACE VIEW {_VIEW}", {"replaces": True}))
    name: ObjectName
    text: str
    replaces: bool = False


class DropView(DropObjects):
    grammar = "DROP VIEW if_exists:[IF EXISTS] names:view,… [cascade:CASCADE | RESTRICT]"


# Relaxed logs.


class CreateRelaxedLog(DDL, NamedStatement):
    grammar = (
        "CREATE RELAXED LOG ^ name:relaxed_log FOR TABLE/TABLES "
        "( tables:(table,…) | tables:table,… )"
    )
    tables: tuple[ObjectName, ...]


class DropRelaxedLog(DDL, NamedStatement):
    grammar = "DROP RELAXED LOG if_exists:[IF EXISTS] ^ name:relaxed_log"
    if_exists: bool


class ShowRelaxedLogs(Statement):
    grammar = "SHOW RELAXED LOGS"
