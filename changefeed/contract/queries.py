"""Queries of changefeeds: what a feed AS SELECT … FROM t WHERE … shows of each change.

    CREATE CHANGEFEED AS SELECT id, total FROM orders WHERE total > 10

    insert 7, total 12      {"id": 7, "total": 12}
    insert 8, total 3       no message

What computes queries stands above this package: it is a `QueryCompiler`, which is handed in. A
query is compiled for each version of its table, so that `*` is what it is in that version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
import pyarrow as pa

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.clock import Timestamp
from .changes import ChangeBatch


class FeedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query as a feed's job stores it: its text, and what of its table it reads.

    `columns` are the ids of the columns that it names, as the row's or as those of `cdc_prev`; with
    `star` it shows all columns. With `previous` it reads the rows that changes replaced, with
    `versions` when each row was written. `tells_op` is whether it calls event_op(), and
    `tells_event` whether it asks anything of a change beside its rows.
    """

    text: str
    columns: tuple[int, ...]
    star: bool = False
    previous: bool = False
    versions: bool = False
    tells_op: bool = False
    tells_event: bool = False

    @property
    def read_columns(self) -> frozenset[int] | None:
        """The ids of all columns that it reads; None for those that its table has."""
        return None if self.star else frozenset(self.columns)

    @property
    def passes_over_same(self) -> bool:
        """Whether an update is no change to it where the columns that it reads stay the same."""
        return not (self.star or self.previous or self.tells_event)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnswer:
    """The result of a query for a batch: `rows[i]`, in the columns of the query's result, is of the
    change at `places[i]`. Changes that do not match have no row. Places ascend."""

    places: Sequence[int]
    rows: pa.RecordBatch


class CompiledQuery(Protocol):
    """A query compiled for changes of its table under one version."""

    @property
    def result(self) -> TableDescriptor:
        """The table of that version with the columns of the result in the place of its own.

        It has the table's id, version and primary key. A column that is one of the table's has its
        id; columns of the key that the query does not show are there and hidden.
        """
        ...

    async def evaluate(
        self, changes: ChangeBatch, *, created_at: Timestamp, knows_previous: bool
    ) -> QueryAnswer:
        """Evaluates the query over changes under that version, over deletions as rows that have
        values in the key's columns alone. `created_at` is when the feed was created;
        `knows_previous` says that the feed reads what changes replace. Raises SQLError."""
        ...


class QueryCompiler(Protocol):
    """Compiles queries."""

    async def compile(
        self, text: str, table: TableDescriptor, before: TableDescriptor
    ) -> CompiledQuery:
        """The query for changes under `table`, of which the rows before are under `before`.

        Raises SQLError for a column that the table does not have, and for what no query can be.
        """
        ...
