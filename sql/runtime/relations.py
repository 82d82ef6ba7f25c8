"""Tables by name, under lease, for as long as a statement or a transaction needs them.

Sessions' temporary tables are in hidden schemas: made with the first table, dropped with the
session, and swept up where a node died before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.descriptors.named_objects import SequenceDescriptor, TypeDescriptor
from ...catalog.descriptors.names import TableName, quote_identifier
from ...catalog.descriptors.system_tables import FIRST_USER_ID
from ...catalog.descriptors.temporary_schema import TEMPORARY_PREFIX, session_schema
from ...catalog.descriptors.view_query import ViewQuery
from ...catalog.leases import (
    DescriptorMissing,
    DescriptorUnavailable,
    Lease,
    LeaseBeyondSession,
    LeaseManager,
)
from ...catalog.store.catalog import Catalog
from ...catalog.store.catalog_changes import CatalogChanges
from ...catalog.store.descriptor_store import DescriptorReader, DescriptorStore
from ...catalog.values.column_types import BOOL, INT8
from ...catalog.values.errors import SQLError
from ...kvlayer.access import Transaction
from ...kvlayer.clock import MAX_TIMESTAMP, Timestamp
from ...kvlayer.errors import RetryableTransaction
from ..analyze.binder import Relations
from ..analyze.views import names_in
from ..syntax.statement import ObjectName, at
from .services import Services


class LeaseScope:
    """The leases that one statement or transaction holds: one version per table.

    A commit that relies on them must lie below `deadline()`. A lease may be on the version before
    the canonical one, which is good for reading and writing rows, but is not what the table was:
    who reads AS OF SYSTEM TIME is shown that, and commits nothing.
    """

    def __init__(self, leases: LeaseManager) -> None:
        self._leases = leases
        self._held: dict[int, Lease] = {}
        self.settled: frozenset[int] = frozenset()
        """The tables that an earlier statement has used: they cannot become others any more."""
        self._let_go: dict[int, int] = {}
        """Versions that earlier statements have used of tables whose leases were dropped since."""
        self._past: tuple[DescriptorStore, DescriptorReader] | None = None

    def __enter__(self) -> LeaseScope:
        return self

    def __exit__(self, *raised: object) -> None:
        self.release()

    def look_back(self, descriptors: DescriptorStore, reader: DescriptorReader) -> None:
        """From here on tables are what they were to `reader`, which reads AS OF SYSTEM TIME."""
        self._past = descriptors, reader

    async def table(self, table_id: int, at: Timestamp) -> TableDescriptor:
        """The version of a table that is valid at `at`, leased. Raises SQLError 42P01."""
        if self._past is not None:
            descriptors, reader = self._past
            table = await descriptors.read(reader, table_id)
            if not isinstance(table, TableDescriptor) or table.dropped:
                raise DescriptorMissing(table_id)
            return table
        lease = self._held.get(table_id)
        if lease is None:
            lease = self._leases.try_acquire(table_id, at)
            if lease is None:
                lease = await self._leases.acquire(table_id, at)
            self._held[table_id] = lease
        return lease.descriptor

    def take(self, table: TableDescriptor, at: Timestamp) -> bool:
        """Leases this very version of a table at once; says whether the node had it, valid at `at`
        beside all that is held."""
        if self._past is not None:
            return False
        lease = self._held.get(table.id)
        if lease is None:
            lease = self._leases.try_acquire(table.id, at)
            if lease is None:
                return False
            self._held[table.id] = lease
        return lease.descriptor is table and self.known_together(at)

    async def settle(self, at: Timestamp) -> None:
        """Sees to it that all that is held was canonical at one timestamp, at or below `at`.

        A schema change of several tables is published at one timestamp T. Of two leases one may be
        on the version before T, because its node has not heard, and the other on the one from T on:
        a statement would see half of the change. So whatever is not known to have lasted up to the
        youngest of the versions is read anew. Raises RetryableTransaction where that is another
        version than an earlier statement of the transaction has used.
        """
        while behind := self._behind(at):
            for table_id in behind:
                held = self._held[table_id]
                fresh = await self._leases.acquire_canonical(table_id, at)
                if fresh.descriptor.version == held.descriptor.version:
                    held.prove_canonical(at)
                    fresh.release()
                elif table_id in self.settled:
                    fresh.release()
                    raise RetryableTransaction(
                        f"the schema of {held.descriptor.name} changed together with that of "
                        "another table while the transaction ran"
                    )
                else:
                    held.release()
                    fresh.prove_canonical(at)
                    self._held[table_id] = fresh
        self.settled = frozenset(self._held)

    def known_together(self, at: Timestamp) -> bool:
        """Whether `settle` has nothing to read."""
        if self._behind(at):
            return False
        self.settled = frozenset(self._held)
        return True

    def _behind(self, at: Timestamp) -> list[int]:
        """The tables that may have become others before the youngest version was published."""
        if len(self._held) < 2:
            return []
        since = max(lease.descriptor.modification_time for lease in self._held.values())
        since = min(since, at)
        return [id for id, lease in self._held.items() if lease.canonical_until < since]

    def deadline(self) -> Timestamp:
        deadlines = [lease.deadline() for lease in self._held.values()]
        return min(deadlines, default=MAX_TIMESTAMP)

    async def renew(self, at: Timestamp, changed: Collection[int]) -> None:
        """Sees to it that a commit has all leases that it relies on. The transaction itself has
        `changed` some tables.

        Takes those anew whose session ended at or before `at`, as after a long stall: a table that
        has another version by then keeps its old lease, and `deadline()` refuses the commit. One
        that has the same version had it all the while, so the commit may rely on it. Likewise for
        what `drop` let go of and the transaction did not change in the end. Raises
        RetryableTransaction where that is another version now.
        """
        for table_id, held in list(self._held.items()):
            if not held.lapsed(at):
                continue
            with suppress(DescriptorUnavailable, LeaseBeyondSession):
                fresh = await self._leases.acquire(table_id, at)
                if fresh.descriptor.version == held.descriptor.version:
                    self._held[table_id], fresh = fresh, held
                fresh.release()
        for table_id in self._let_go.keys() - set(changed):
            if table_id not in self._held:
                try:
                    self._held[table_id] = await self._leases.acquire_freshest(table_id)
                except DescriptorUnavailable as gone:
                    raise RetryableTransaction(
                        "a table that the transaction has used was dropped"
                    ) from gone
            self._check_used(self._held[table_id].descriptor)

    @property
    def holds_any(self) -> bool:
        return bool(self._held)

    def drop(self, table: TableDescriptor) -> None:
        """Lets go of a table that the transaction is about to change, and reads as `table`. Raises
        RetryableTransaction where an earlier statement has used another version of it."""
        lease = self._held.pop(table.id, None)
        if lease is not None:
            lease.release()
            if table.id in self.settled:
                self._let_go.setdefault(table.id, lease.descriptor.version)
        self._check_used(table)

    def _check_used(self, table: TableDescriptor) -> None:
        if self._let_go.get(table.id, table.version) != table.version:
            raise RetryableTransaction(
                f"the schema of {table.name} changed between statements of the transaction"
            )

    def release(self) -> None:
        for lease in self._held.values():
            lease.release()
        self._held.clear()
        self._let_go.clear()
        self.settled = frozenset()


def full_name(name: ObjectName, database: str) -> TableName:
    """`name` with what it leaves out filled in.

    A name of two parts is `schema.table`, and `database.table` where the first is no schema that
    we have: there is only `public`.
    """
    parts: Sequence[str] = name.parts
    if len(parts) == 2 and parts[0] != "public":
        parts = (parts[0], "public", parts[1])
    return TableName.resolve(parts, current_database=database)


async def name_in(
    catalog: Catalog, reader: DescriptorReader, name: ObjectName, database: str
) -> TableName:
    """`name` with what it leaves out filled in: the first of two parts is a schema of `database`,
    or else a database."""
    parts = name.parts
    if len(parts) != 2 or parts[0] == "public":
        return full_name(name, database)
    schemas = await catalog.list_schemas(reader, database)
    return TableName(database, *parts) if parts[0] in schemas else full_name(name, database)


async def find_table(
    services: Services,
    reader: DescriptorReader,
    name: ObjectName,
    database: str,
    *,
    views: bool = False,
    keyspaces: bool = False,
    if_exists: bool = False,
) -> TableDescriptor | None:
    """The table behind a name as `reader` sees it, if there is one. A view or a keyspace is
    SQLError 42809, where it is not asked for `views` or `keyspaces` too; a schema or database that
    is not there 3F000 or 3D000, unless it is asked for `if_exists`.

    The first of two parts is a schema of the current database, or else a database. The session's
    temporary tables come first.
    """
    own = session_schema()
    if len(name.parts) == 1 and own is not None and database in own.databases:
        with suppress(SQLError):  # it was made in a transaction that is rolled back
            mine = TableName(database, own.name, name.parts[0])
            found = await services.catalog.find(reader, mine, views=views)
            if found is not None:
                return found
    try:
        with at(name.position):
            wanted = await name_in(services.catalog, reader, name, database)
            return await services.catalog.find(reader, wanted, views=views, keyspaces=keyspaces)
    except SQLError as error:
        if if_exists and error.sqlstate in ("3D000", "3F000"):
            return None
        raise


K = TypeVar("K", SequenceDescriptor, TypeDescriptor)


async def find_object(
    kind: type[K], catalog: Catalog, reader: DescriptorReader, name: ObjectName, database: str
) -> K | None:
    """The sequence or the type behind a name as `reader` sees it, if there is one."""
    wanted = await name_in(catalog, reader, name, database)
    try:
        parents = await catalog.descriptors.resolve_schema(reader, wanted.database, wanted.schema)
    except SQLError:
        return None
    found_id = await catalog.descriptors.lookup(reader, *parents, wanted.name)
    found = None if found_id is None else await catalog.descriptors.read(reader, found_id)
    return found if isinstance(found, kind) else None


find_sequence = partial(find_object, SequenceDescriptor)
find_type = partial(find_object, TypeDescriptor)


def _sequence_relation(sequence: SequenceDescriptor, name: ObjectName) -> TableDescriptor:
    """A sequence as a relation of one row, as pg_dump reads it: a view of what is stored of it."""
    quoted = ".".join(quote_identifier(part) for part in name.parts[-2:]).replace("'", "''")
    return TableDescriptor(
        id=SEQUENCE_RELATIONS - sequence.id,
        name=sequence.name,
        database_id=sequence.database_id,
        schema_id=sequence.schema_id,
        columns=tuple(
            Column(id=place, name=column, type=type, nullable=True)
            for place, (column, type) in enumerate(_SEQUENCE_COLUMNS.items(), start=1)
        ),
        primary_key=(),
        next_column_id=len(_SEQUENCE_COLUMNS) + 1,
        view=ViewQuery(
            "SELECT last_value, 0::INT8 AS log_cnt, is_called FROM tailrace_internal.sequences "
            f"WHERE oid = '{quoted}'::regclass",
            reads=(),
        ),
    )


def is_sequence(table: TableDescriptor) -> bool:
    """Whether the table is a sequence as a relation."""
    return table.id < SEQUENCE_RELATIONS


SEQUENCE_RELATIONS = -(1 << 32)
"""Above the ids of sequences as relations: no virtual table has one of them."""

_SEQUENCE_COLUMNS = {"last_value": INT8, "log_cnt": INT8, "is_called": BOOL}


def not_a_view(name: ObjectName) -> SQLError:
    """Returns the error (42809) for a name that is no view."""
    return SQLError(
        "42809",
        f'"{name}" is not a view',
        hint="Use ALTER TABLE, DROP TABLE, COMMENT ON TABLE and SHOW CREATE TABLE for tables.",
        position=name.position,
    )


async def resolve(
    services: Services,
    reader: DescriptorReader,
    name: ObjectName,
    database: str,
    *,
    keyspaces: bool = False,
) -> TableDescriptor:
    """The table or view behind a name as `reader` sees it, or the keyspace where it is asked for
    `keyspaces` too. Raises SQLError with its position."""
    with at(name.position):
        virtual = services.find_virtual(name.parts)
    if virtual is not None:
        return virtual
    table = await find_table(services, reader, name, database, views=True, keyspaces=keyspaces)
    if table is None:
        sequence = await find_sequence(services.catalog, reader, name, database)
        if sequence is None:
            raise unknown_relation(name)
        return _sequence_relation(sequence, name)
    return table


def unknown_relation(name: ObjectName) -> SQLError:
    return SQLError("42P01", f'relation "{name}" does not exist', position=name.position)


@dataclass(frozen=True, slots=True)
class Resolver:
    """Finds the tables that a statement names, as `reader` sees them: leased at `at`, but for those
    that only the open `transaction` sees."""

    services: Services
    database: str
    reader: DescriptorReader
    scope: LeaseScope
    at: Timestamp
    transaction: Transaction | None

    async def relations(self, names: Sequence[ObjectName], *, keyspaces: bool = False) -> Relations:
        """The tables by their names; of views also what they read, by the names in their queries.
        Raises SQLError 42809 for a keyspace, where it is not asked for `keyspaces` too."""
        unpublished = changed_tables(self.transaction)
        scope, at = self.scope, self.at
        while True:
            relations: dict[tuple[str, ...], TableDescriptor] = {}
            leased: dict[tuple[str, ...], int] = {}
            wanted = list(names)
            while wanted:
                name = wanted.pop()
                if name.parts in relations:
                    continue
                found = await resolve(
                    self.services, self.reader, name, self.database, keyspaces=keyspaces
                )
                if found.id >= FIRST_USER_ID and found.id not in unpublished:
                    found = await scope.table(found.id, at)
                    leased[name.parts] = found.id
                relations[name.parts] = found
                if found.view is not None:
                    wanted += names_in(found)
            if not leased:
                return relations
            await scope.settle(at)
            settled = {parts: await scope.table(id, at) for parts, id in leased.items()}
            if all(settled[p].view == relations[p].view for p in leased):
                return {**relations, **settled}


def changed_tables(transaction: Transaction | None) -> frozenset[int]:
    """The tables that the transaction itself has created or changed."""
    if transaction is None or not transaction.commit_checks:
        return frozenset()
    published = CatalogChanges.of(transaction).published
    return frozenset(descriptor.id for descriptor in published)


async def make_temporary_schema(services: Services, transaction: Transaction, database: str) -> str:
    """The name of the schema in which the session's temporary tables of a database lie."""
    own = session_schema()
    assert own is not None, "only a session makes temporary tables"
    if not own.name:
        number = services.sessions.next_number()
        own.name = f"{node_prefix(services)}{number}_{transaction.read_timestamp}"
    own.databases.add(database)
    own.made += 1
    await services.catalog.create_schema(transaction, database, own.name, if_not_exists=True)
    return own.name


def node_prefix(services: Services) -> str:
    """The prefix of the schemas of this node's sessions. Those of each of its lives differ behind
    it: a timestamp is never drawn twice."""
    return f"{TEMPORARY_PREFIX}{services.leases.node_id}_"


async def orphans(services: Services) -> list[tuple[str, str]]:
    """The databases and schemas that sessions of this node left when it died. To be asked before
    the node has sessions."""
    catalog, found = services.catalog, []
    async with services.reading() as reader:
        for database in await catalog.list_databases(reader):
            schemas = await catalog.list_schemas(reader, database, all_sessions=True)
            prefix = node_prefix(services)
            found += [(database, name) for name in schemas if name.startswith(prefix)]
    return found
