"""Statements that change schemas, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from ...catalog.descriptors.elements import Identity
from .names import ObjectName, Option, TypeName
from .type_statements import SequenceChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`name` is None where the statement gives none."""

    name: str | None
    tree: exp.Expr
    position: int
    not_valid: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unique:
    name: str | None
    columns: tuple[str, ...]
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexDefinition:
    """INDEX of CREATE TABLE, and what CREATE INDEX makes. `descending` are the columns that are
    asked for in another order than every index has."""

    name: str | None
    columns: tuple[str, ...]
    storing: tuple[str, ...]
    unique: bool
    position: int
    descending: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
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


@dataclass(frozen=True, slots=True)
class IdentityClause:
    """`GENERATED {ALWAYS | BY DEFAULT} AS IDENTITY [(options of its sequence)]`"""

    identity: Identity
    options: SequenceChange


# What ALTER TABLE takes.


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    definition: ColumnDefinition
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    name: str
    if_exists: bool
    cascade: bool
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    name: str
    new_name: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTable:
    new_name: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSchema:
    schema: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterType:
    name: str
    type: TypeName
    using: exp.Expr | None
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDefault:
    """`default` is None to drop it."""

    name: str
    default: exp.Expr | None
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddIdentity:
    name: str
    clause: IdentityClause
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetIdentity:
    """SET GENERATED, and SET or RESTART of the sequence's options; what is None stays."""

    name: str
    identity: Identity | None
    options: SequenceChange | None
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropIdentity:
    name: str
    if_exists: bool
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropExpression:
    """A computed column becomes one that is written, and keeps its values."""

    name: str
    if_exists: bool
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoredAlteration:
    """An ALTER TABLE command about PostgreSQL's storage: ignored with a notice."""

    what: str
    column: str | None = None
    position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SetNotNull:
    name: str
    not_null: bool
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddConstraint:
    constraint: TableConstraint


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConstraint:
    name: str
    if_exists: bool
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateConstraint:
    name: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameConstraint:
    name: str
    new_name: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPrimaryKey:
    """ADD PRIMARY KEY: of a table that was made without one."""

    columns: tuple[str, ...]
    position: int
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPrimaryKey:
    columns: tuple[str, ...]
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetParameters:
    """SET (…) or RESET (…) among other clauses."""

    parameters: tuple[Option, ...]
    reset: bool
    position: int


AlterCommand = (
    AddColumn
    | DropColumn
    | RenameColumn
    | RenameTable
    | SetSchema
    | AlterType
    | SetDefault
    | AddIdentity
    | SetIdentity
    | DropIdentity
    | DropExpression
    | IgnoredAlteration
    | SetNotNull
    | AddConstraint
    | DropConstraint
    | ValidateConstraint
    | RenameConstraint
    | AddPrimaryKey
    | AlterPrimaryKey
    | SetParameters
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """`text` is the statement as written."""

    table: ObjectName
    commands: tuple[AlterCommand, ...]
    if_exists: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateIndex:
    table: ObjectName
    index: IndexDefinition
    if_not_exists: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropIndex:
    """`table` is None where the statement names only the index."""

    table: ObjectName | None
    name: str
    if_exists: bool
    cascade: bool
    position: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameIndex:
    table: ObjectName | None
    name: str
    new_name: str
    if_exists: bool
    position: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOn:
    """`text` is None to take the comment away."""

    what: Commented
    table: ObjectName
    column: str | None
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSchema:
    parts: tuple[str, ...]
    if_not_exists: bool
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSchema:
    parts: tuple[str, ...]
    if_exists: bool
    cascade: bool
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase:
    name: str
    if_exists: bool
    cascade: bool
    position: int


TableChange = AlterTable | CreateIndex | DropIndex | RenameIndex | Truncate
"""Statements that become targets of a schema change."""

SchemaStatement = TableChange | CommentOn | CreateSchema | DropSchema | DropDatabase
