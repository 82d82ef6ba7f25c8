"""Elements of a table beside its columns: secondary indexes, constraints, and the states of all.

An element that comes or goes online passes through states, one version of the descriptor each, so
that two adjacent versions can be in use at once:

    absent -> delete-only -> write-only -> public

    delete-only    writers remove its entries and add none
    write-only     writers maintain it wholly; nobody reads it, for it may lack older entries
    public         it is complete

A writer under the version before never leaves behind what a writer under the version after does
not expect. A column has no entries of its own, so that delete-only means for it: neither written
nor read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Identity(Enum):
    """The source of an identity column's values. The value is SQL's word."""

    ALWAYS = "ALWAYS"
    BY_DEFAULT = "BY DEFAULT"


class ElementState(Enum):
    DELETE_ONLY = "delete-only"  # its entries are removed, none are added
    WRITE_ONLY = "write-only"  # written, and not read
    PUBLIC = "public"  # in use


class IndexKind(Enum):
    PRIMARY = "primary"  # holds whole rows
    SECONDARY = "secondary"  # holds its own columns, the primary key's and those stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index beside the primary one. `columns`, `storing` and `suffix` are column ids.

    `suffix` is the primary key that the entries of a secondary index carry; None means the
    table's. An index of before a change of the primary key goes on with the key of its time.

    A unique index admits no two rows with equal values in all of `columns`; rows with a NULL among
    them are never equal. `constraint` tells one that a UNIQUE clause made from one of CREATE UNIQUE
    INDEX: the catalogs list the first among constraints, and clients drop it as one.

    `empty` tells a primary index that is coming without the rows of before, because the table is
    being truncated, from one that is built from them.
    """

    id: int
    name: str
    columns: tuple[int, ...]
    kind: IndexKind = IndexKind.SECONDARY
    unique: bool = False
    constraint: bool = False
    storing: tuple[int, ...] = ()
    suffix: tuple[int, ...] | None = None
    state: ElementState = ElementState.PUBLIC
    empty: bool = False

    def __post_init__(self) -> None:
        assert self.id > 0, self
        assert self.columns, self
        assert len(set(self.columns)) == len(self.columns), self
        assert not set(self.columns) & set(self.storing), self
        assert self.unique or not self.constraint, self

    @property
    def written(self) -> bool:
        """Whether writers add entries."""
        return self.state is not ElementState.DELETE_ONLY


class Validity(Enum):
    """How far a constraint may be relied on. Writers enforce it in each of these states."""

    VALIDATING = "validating"  # rows from before it may violate it; a job is looking
    UNVALIDATED = "unvalidated"  # NOT VALID: nobody has looked
    VALIDATED = "validated"  # every row satisfies it


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckConstraint:
    """`expression` is SQL over the table's columns by name; it may be NULL, but not false.

    `not_null_column` is the column of a NOT NULL that is coming or going: while it is not proven,
    the column counts as nullable for readers, and writers refuse NULL.
    """

    name: str
    expression: str
    columns: tuple[int, ...]
    validity: Validity = Validity.VALIDATED
    not_null_column: int | None = None


class ReferentialAction(Enum):
    NO_ACTION = "NO ACTION"
    RESTRICT = "RESTRICT"
    CASCADE = "CASCADE"
    SET_NULL = "SET NULL"

    @classmethod
    def _missing_(cls, value: object) -> ReferentialAction | None:
        """The action of a key that an older version stored as SET DEFAULT: its rows refuse."""
        return cls.RESTRICT if value == "SET DEFAULT" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """Rows whose `columns` are all set refer to a row of table `referenced_id`.

    `referenced_columns` are the referenced table's primary key, or the columns of a unique index
    of it, in the order of `columns`. A key that is deferrable is looked at when its transaction
    commits, where the transaction says so, or where it is deferred initially.
    """

    name: str
    columns: tuple[int, ...]
    referenced_id: int
    referenced_columns: tuple[int, ...]
    on_delete: ReferentialAction = ReferentialAction.NO_ACTION
    on_update: ReferentialAction = ReferentialAction.NO_ACTION
    validity: Validity = Validity.VALIDATED
    deferrable: bool = False
    initially_deferred: bool = False

    def __post_init__(self) -> None:
        assert len(self.columns) == len(self.referenced_columns), self
        assert self.deferrable or not self.initially_deferred, self

    @property
    def deferral(self) -> str:
        """SQL's clause for the time of a key's check, with a space before it; empty for the
        default."""
        if not self.deferrable:
            return ""
        return " DEFERRABLE INITIALLY DEFERRED" if self.initially_deferred else " DEFERRABLE"


Constraint = CheckConstraint | ForeignKey
"""A UNIQUE constraint is its unique index, by name."""
