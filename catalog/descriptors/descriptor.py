"""Descriptors: what the store knows of a database, a schema or a table, version by version.

A descriptor is a value; changing one means publishing another with the next version number. Its
modification time is the commit timestamp of the transaction that published it, and so is not part
of the stored bytes. A table of two versions, the second adding a column, reads:

    TableDescriptor(id=104, version=1, columns=(k, v), ...)        modified at 120
    TableDescriptor(id=104, version=2, columns=(k, v, w), ...)     modified at 160

and a row at 140 is interpreted by the first, a row at 160 by the second. Ids of descriptors,
columns and indexes are never used again, so a value tagged with column id 3 can only ever mean
that one column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from ...cached import cached_property
from ...kvlayer.clock import ZERO, Timestamp
from ...kvlayer.keys import index_span, table_span
from ...kvlayer.raw import keyspace_span
from ...kvlayer.span import Span
from ..values.column_types import ColumnType, Datum
from ..values.errors import SQLError
from .elements import (
    CheckConstraint,
    Constraint,
    ElementState,
    ForeignKey,
    Identity,
    Index,
    IndexKind,
)
from .keyspace import Keyspace
from .named_descriptor import DescriptorState as DescriptorState
from .named_descriptor import NamedDescriptor, SchemaObject
from .named_objects import SequenceDescriptor, TypeDescriptor
from .view_query import ViewQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    `default` is what an INSERT that leaves the column out writes; `has_default` tells a default of
    NULL from none. `missing` is what the column reads as in a row that was written without it: the
    default it was added with, so that adding a column rewrites nothing. It never changes later,
    whatever becomes of the default. Columns of CREATE TABLE have none: every row holds them.

    `default_expression` is SQL for a default that is drawn anew for each row (`now()`), and
    `computed` SQL over other columns, whose value the row stores: nobody else writes the column.
    A column that is not public is no column to any statement (`visible_columns`); one that is
    write-only is written into every row (`written_columns`). One that is `hidden` (NOT VISIBLE) is
    a column like any other, but only to those who name it (`shown_columns`). The default of an
    `identity` column draws from a sequence that the column owns.
    """

    id: int
    name: str
    type: ColumnType
    nullable: bool = True
    default: Datum = None
    has_default: bool = False
    missing: Datum = None
    state: ElementState = ElementState.PUBLIC
    default_expression: str | None = None
    computed: str | None = None
    comment: str | None = None
    hidden: bool = False
    identity: Identity | None = None

    def __post_init__(self) -> None:
        assert self.id > 0, self
        assert self.has_default or self.default is None, self
        assert self.default_expression is None or not self.has_default, self
        assert self.computed is None or self.default_expression is None, self
        assert self.identity is None or self.default_expression is not None, self

    @property
    def public(self) -> bool:
        return self.state is ElementState.PUBLIC

    @property
    def written(self) -> bool:
        """Whether rows are written with a value of it."""
        return self.state is not ElementState.DELETE_ONLY


def check_indexable(column: Column) -> None:
    """Raises SQLError 0A000 where no key may hold the column."""
    if not column.type.ordered:
        raise SQLError(
            "0A000",
            f'column "{column.name}" is of type {column.type} and thus is not indexable',
            hint="Index a column that is computed from it.",
        )


EXPIRES_AT = "expires_at"
"""The column of a keyspace that says when a value ends."""


@dataclass(frozen=True, kw_only=True)
class TableDescriptor(SchemaObject):
    """One version of a table.

    `columns` holds those in every state; the public ones stand in the order of SELECT *.
    `primary_key` names column ids in key order, all of them public and NOT NULL. `locked` is the
    bit of the low-latency changefeed RFC: a locked version is logically equal to its predecessor
    and its successor, which `DescriptorStore.publish` enforces. `parameters` are the other storage
    parameters, as given.

    `new_primary` is a primary index that is being built: writers write whole rows to both. After
    the swap `old_primary` is the one that was primary, written for readers under the version
    before, until nobody reads it. `referenced_by` names the tables with foreign keys to this one.
    `schema_change_job` is the job that is changing the table, and `drop_time` when it was dropped,
    which a version that is dropped already says: of the first, that is its modification time.

    A view is a table without a key and without rows: `view` is the query that stands for them. It
    is leased and has versions as tables do, so that no statement uses one that was replaced.

    A raw keyspace is a table, too, of which `keyspace` says how long its values live. Leases,
    names, rights and feeds treat it as one; its rows are the entries in a span of its own (`span`).

    `primary_name` is the name that was given to the primary key; None means the table's. A
    `temporary` table is of one session (`temporary_schema`), and in no feed.
    """

    columns: tuple[Column, ...]
    primary_key: tuple[int, ...]
    next_column_id: int
    primary_index_id: int = 1
    next_index_id: int = 2
    locked: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    indexes: tuple[Index, ...] = ()
    new_primary: Index | None = None
    old_primary: Index | None = None
    constraints: tuple[Constraint, ...] = ()
    referenced_by: tuple[int, ...] = ()
    schema_change_job: int | None = None
    drop_time: Timestamp | None = None
    comment: str | None = None
    view: ViewQuery | None = None
    primary_name: str | None = None
    keyspace: Keyspace | None = None
    temporary: bool = False

    def __post_init__(self) -> None:
        ids = [column.id for column in self.columns]
        assert self.version >= 1, self.version
        assert len(set(ids)) == len(ids), ids
        assert all(column_id < self.next_column_id for column_id in ids), ids
        assert bool(self.primary_key) == (self.view is None), self.name
        assert set(self.primary_key) <= set(ids), (self.primary_key, ids)
        assert self.primary_index_id < self.next_index_id, self.primary_index_id
        assert not any(column.nullable for column in self.key_columns), self.primary_key
        for index in self.maintained_indexes:
            assert set(index.columns) | set(index.storing) <= set(ids), (index, ids)
            assert index.id < self.next_index_id, (index, self.next_index_id)

    def __getstate__(self) -> dict[str, object]:
        """Returns the fields, which a pickle holds; what was compiled of them stays here."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @cached_property
    def visible_columns(self) -> tuple[Column, ...]:
        """The columns that statements, readers and feeds know, in their order."""
        return tuple(column for column in self.columns if column.public)

    @cached_property
    def shown_columns(self) -> tuple[Column, ...]:
        """The columns of SELECT *, and of an INSERT or COPY that names none."""
        return tuple(column for column in self.visible_columns if not column.hidden)

    @property
    def keyless(self) -> bool:
        """Whether the table was made without a primary key: its key is a hidden column."""
        return self.view is None and all(column.hidden for column in self.key_columns)

    @cached_property
    def written_columns(self) -> tuple[Column, ...]:
        """The columns of every row that is written: the visible ones, then those write-only."""
        return self.visible_columns + tuple(
            column for column in self.columns if column.written and not column.public
        )

    @cached_property
    def writable(self) -> TableDescriptor:
        """This version as writers see it: `written_columns` are the visible ones."""
        written = self.written_columns
        if written == self.visible_columns:
            return self
        columns = tuple(replace(column, state=ElementState.PUBLIC) for column in written)
        left = tuple(column for column in self.columns if not column.written)
        return replace(self, columns=columns + left)

    @cached_property
    def maintained_indexes(self) -> tuple[Index, ...]:
        """Every index beside the primary one that writers maintain, in whatever state."""
        primaries = (self.new_primary, self.old_primary)
        return self.indexes + tuple(index for index in primaries if index is not None)

    @cached_property
    def compiled(self) -> dict[object, object]:
        """A cache of what callers compile for this version, each under a key of its own."""
        return {}

    @cached_property
    def primary_index(self) -> Index:
        """The primary index that rows are read from, as an index among others."""
        return Index(
            id=self.primary_index_id,
            name=self.primary_index_name,
            kind=IndexKind.PRIMARY,
            unique=True,
            columns=self.primary_key,
        )

    @property
    def primary_index_name(self) -> str:
        return self.primary_name or f"{self.name}_pkey"

    def named_key(self, name: str) -> bool:
        """Whether that is the name of the primary key, which is none where it is hidden."""
        return self.view is None and not self.keyless and name == self.primary_index_name

    @cached_property
    def checks(self) -> tuple[CheckConstraint, ...]:
        return tuple(c for c in self.constraints if isinstance(c, CheckConstraint))

    @cached_property
    def foreign_keys(self) -> tuple[ForeignKey, ...]:
        return tuple(c for c in self.constraints if isinstance(c, ForeignKey))

    def column_by_id(self, column_id: int) -> Column:
        return self._columns_by_id[column_id]

    @cached_property
    def _columns_by_id(self) -> dict[int, Column]:
        return {column.id: column for column in self.columns}

    def find_index(self, name: str) -> Index | None:
        """The secondary index of that name, in whatever state."""
        return next((index for index in self.indexes if index.name == name), None)

    def find_constraint(self, name: str) -> Constraint | None:
        return next((found for found in self.constraints if found.name == name), None)

    @cached_property
    def span(self) -> Span:
        """The span of all keys of the table."""
        return table_span(self.id) if self.keyspace is None else keyspace_span(self.id)

    @property
    def expiry_column(self) -> Column | None:
        """The column that says from which timestamp on a row is absent, if the rows of the table
        end by themselves. Who keeps a copy of the rows hides those that have ended."""
        return None if self.keyspace is None else self._columns_by_name[EXPIRES_AT]

    @cached_property
    def primary_span(self) -> Span:
        """The span of the table's rows."""
        if self.keyspace is not None:
            return self.span
        return index_span(self.id, self.primary_index_id)

    @cached_property
    def key_columns(self) -> tuple[Column, ...]:
        """The primary key's columns, in key order."""
        return tuple(self._columns_by_id[column_id] for column_id in self.primary_key)

    @cached_property
    def _columns_by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.visible_columns}

    def find_column(self, name: str) -> Column | None:
        return self._columns_by_name.get(name)

    def column(self, name: str) -> Column:
        """Raises SQLError 42703 where the table has no such column."""
        column = self._columns_by_name.get(name)
        if column is None:
            raise SQLError(
                "42703",
                f'column "{name}" of relation "{self.name}" does not exist',
                hint=f"Columns: {', '.join(self._columns_by_name)}.",
            )
        return column

    def __repr__(self) -> str:
        flags = " locked" * self.locked + " dropped" * self.dropped
        return f"<table {self.id} {self.name} v{self.version} @{self.modification_time}{flags}>"


@dataclass(frozen=True, kw_only=True)
class SchemaDescriptor(NamedDescriptor):
    """A namespace of tables within a database."""

    database_id: int

    @property
    def parent_id(self) -> int:
        return self.database_id


@dataclass(frozen=True, kw_only=True)
class DatabaseDescriptor(NamedDescriptor):
    """A namespace of schemas."""


Descriptor = (
    DatabaseDescriptor | SchemaDescriptor | TableDescriptor | TypeDescriptor | SequenceDescriptor
)


def logically_equal(first: Descriptor, second: Descriptor) -> bool:
    """Whether the two differ in nothing but version, modification time and lock.

    Which job is at work on a table is bookkeeping too, and so are comments and the tables that
    refer to it: no row is encoded or decoded by them.
    """
    return _without_bookkeeping(first) == _without_bookkeeping(second)


def _without_bookkeeping(descriptor: Descriptor) -> Descriptor:
    if isinstance(descriptor, TableDescriptor):
        return replace(
            descriptor,
            version=1,
            modification_time=ZERO,
            locked=False,
            schema_change_job=None,
            drop_time=None,
            comment=None,
            referenced_by=(),
            columns=tuple(replace(column, comment=None) for column in descriptor.columns),
        )
    return replace(descriptor, version=1, modification_time=ZERO)
