"""Statements that change schemas, as the parser hands them on."""

from __future__ import annotations

from enum import Enum

from sqlglot import exp

from ...catalog.descriptors.elements import Identity
from .names import ObjectName, Option, TypeName
from .statement import NamedStatement, Statement, Syntax
from .type_statements import SequenceChange


class Check(Syntax):
    """`name` is None where the statement gives none."""

    name: str | None
    tree: exp.Expr
    position: int
    not_valid: bool = False


class Unique(Syntax):
    name: str | None
    columns: tuple[str, ...]
    position: int


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


TableConstraint = Check | Unique | Reference


class IndexDefinition(Syntax):
    """INDEX of CREATE TABLE, and what CREATE INDEX makes. `descending` are the columns that are
    asked for in another order than every index has."""

    name: str | None
    columns: tuple[str, ...]
    storing: tuple[str, ...]
    unique: bool
    position: int
    descending: tuple[str, ...] = ()


class ColumnDefinition(Syntax):
    """One column of CREATE TABLE or ADD COLUMN. `default` is None without a DEFAULT clause."""

    name: str
    type: TypeName
    nullable: bool | None
    default: exp.Expr | None
    primary_key: bool
    position: int
    computed: exp.Expr | None = None
    constraints: tuple[TableConstraint, ...] = ()
    hidden: bool = False
    identity: IdentityClause | None = None
    primary_name: str | None = None


class IdentityClause(Syntax):
    """`GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY [(options of its sequence)]`"""

    identity: Identity
    options: SequenceChange


# What ALTER TABLE takes.


class AlterCommand(Syntax):
    """A command of ALTER TABLE, and where it stands; zero where no error tells of it."""

    position: int = 0


class ElementCommand(AlterCommand):
    """A command about the column or the constraint of a name."""

    name: str


class AddColumn(AlterCommand):
    definition: ColumnDefinition
    if_not_exists: bool


class DropColumn(ElementCommand):
    if_exists: bool
    cascade: bool


class RenameColumn(ElementCommand):
    new_name: str


class RenameTable(AlterCommand):
    new_name: str


class SetSchema(AlterCommand):
    schema: str


class AlterType(ElementCommand):
    type: TypeName
    using: exp.Expr | None


class SetDefault(ElementCommand):
    """`default` is None to drop it."""

    default: exp.Expr | None


class AddIdentity(ElementCommand):
    clause: IdentityClause


class SetIdentity(ElementCommand):
    """SET GENERATED, and SET or RESTART of the sequence's options; what is None stays."""

    identity: Identity | None
    options: SequenceChange | None


class DropIdentity(ElementCommand):
    if_exists: bool


class IgnoredAlteration(AlterCommand):
    """An ALTER TABLE command about PostgreSQL's storage: ignored with a notice."""

    what: str
    column: str | None = None


class SetNotNull(ElementCommand):
    not_null: bool


class AddConstraint(AlterCommand):
    constraint: TableConstraint


class DropConstraint(ElementCommand):
    if_exists: bool


class ValidateConstraint(ElementCommand):
    pass


class RenameConstraint(ElementCommand):
    new_name: str


class AddPrimaryKey(AlterCommand):
    """ADD PRIMARY KEY: of a table that was made without one."""

    columns: tuple[str, ...]
    name: str | None = None


class AlterPrimaryKey(AlterCommand):
    columns: tuple[str, ...]


class SetParameters(AlterCommand):
    """SET (…) or RESET (…) among other clauses."""

    parameters: tuple[Option, ...]
    reset: bool


class AlterTable(Statement):
    """`text` is the statement as written."""

    table: ObjectName
    commands: tuple[AlterCommand, ...]
    if_exists: bool
    text: str


class CreateIndex(Statement):
    table: ObjectName
    index: IndexDefinition
    if_not_exists: bool
    text: str


class DropIndex(NamedStatement):
    """`table` is None where the statement names only the index."""

    table: ObjectName | None
    if_exists: bool
    cascade: bool
    text: str


class RenameIndex(NamedStatement):
    table: ObjectName | None
    new_name: str
    if_exists: bool
    text: str


class Truncate(Statement):
    """`within` says that it is part of a transaction that goes on, whose it then is whole."""

    tables: tuple[ObjectName, ...]
    cascade: bool
    restart_identity: bool
    text: str
    within: bool = False


class Commented(Enum):
    TABLE = "TABLE"
    VIEW = "VIEW"
    COLUMN = "COLUMN"


class CommentOn(Statement):
    """`text` is None to take the comment away."""

    what: Commented
    table: ObjectName
    column: str | None
    text: str | None


class CreateSchema(Statement):
    parts: tuple[str, ...]
    if_not_exists: bool
    position: int


class DropSchema(Statement):
    parts: tuple[str, ...]
    if_exists: bool
    cascade: bool
    position: int


class DropDatabase(NamedStatement):
    if_exists: bool
    cascade: bool


TableChange = AlterTable | CreateIndex | DropIndex | RenameIndex | Truncate
"""Statements that become targets of a schema change."""

SchemaStatement = TableChange | CommentOn | CreateSchema | DropSchema | DropDatabase
