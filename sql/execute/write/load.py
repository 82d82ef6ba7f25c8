"""Bulk load: Arrow into a table, in transactions of a thousand rows, or fewer wide ones.

The next transaction is evaluated while the log makes the last ones durable, so the load costs what
encoding and applying cost, not what syncing does. A transaction that fails leaves those before it
committed, and the error says how many rows they are.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from ....catalog.descriptors.names import TableName
from ....catalog.descriptors.relaxed_tables import refuse_other_writers
from ....catalog.descriptors.system_tables import DEFAULT_DATABASE, FIRST_USER_ID
from ....catalog.rights.key_errors import told_to
from ....catalog.rights.users import ROOT
from ....catalog.store.catalog import unknown_table
from ....catalog.values.errors import SQLError
from ....kvlayer.access import StoreAccess
from ....kvlayer.clock import ZERO, Timestamp
from ....kvlayer.errors import DeadlineExceeded, KVError
from ....kvlayer.txn import Pending
from ...analyze.scalars import Bindings
from ...results.errors import from_kv
from ...runtime.relations import LeaseScope
from ...runtime.services import Services
from .mutations import Mutation, has_references
from .row_rules import RowRules, encode_batch
from .sequences import StoredSequences, with_draws_of
from .steps import batches_of

ROWS_PER_TRANSACTION = 1000
PENDING_MAX = 8
"""Transactions that are applied and not yet durable. More would only make a failure larger."""

Batches = pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch] | AsyncIterable[pa.RecordBatch]


class LoadMode(Enum):
    """The treatment of a row whose key exists."""

    ERROR = "error"  # 23505, and its transaction is not committed
    UPSERT = "upsert"  # it replaces the row


@dataclass(frozen=True, slots=True)
class LoadReport:
    """Rows that are in, and the last commit timestamp (ZERO when there was no row)."""

    row_count: int
    commit_timestamp: Timestamp


async def load(
    services: Services,
    name: TableName,
    data: Batches,
    *,
    mode: LoadMode = LoadMode.ERROR,
    rows_per_transaction: int = ROWS_PER_TRANSACTION,
    user: str = ROOT,
) -> LoadReport:
    """Loads rows into a table, for a user who may. Columns are matched by name; those missing take
    their defaults.

    Raises SQLError, which names the column where a value does not fit, and says in its detail how
    many rows are in.
    """
    assert rows_per_transaction >= 1, rows_per_transaction
    loading = _Load(services, mode, user)
    try:
        table_id = await _find(services, name)
        async for batch in _batches(data):
            for part in batches_of(batch, rows_per_transaction):
                await loading.write(table_id, part)
        await loading.drain(0)
    except (KVError, SQLError) as error:
        raise await loading.failed(error) from error
    finally:
        loading.scope.release()
    return LoadReport(loading.row_count, loading.last)


class _Load:
    """A load under way: what is applied and not yet durable, and what is."""

    def __init__(self, services: Services, mode: LoadMode, user: str) -> None:
        self._user = user
        self.scope = LeaseScope(services.leases)
        self.row_count = 0
        self.last = ZERO
        self._store: StoreAccess = services.store
        self._services = services
        self._mode = mode
        self._pending: deque[tuple[Pending[None], int]] = deque()

    async def write(self, table_id: int, batch: pa.RecordBatch) -> None:
        """Applies one transaction. Returns when few enough are pending."""
        called_ns = self._store.clock.wall.monotonic_ns()
        try:
            pending = await self._submit(table_id, batch, called_ns)
        except DeadlineExceeded:
            # The lease ran out since the last transaction: take the version that is valid now.
            self.scope.release()
            pending = await self._submit(table_id, batch, called_ns)
        self._pending.append((pending, batch.num_rows))
        await self.drain(PENDING_MAX - 1)
        await asyncio.sleep(0)

    async def _submit(self, table_id: int, batch: pa.RecordBatch, called_ns: int) -> Pending[None]:
        at = await self._store.now()
        self.scope.release()  # a new version is taken as soon as the old one is superseded
        descriptor = await self.scope.table(table_id, at)
        mutation = await self._mutation(RowRules.of(descriptor), batch, at)
        return await self._store.submit_one_phase(
            mutation.apply, deadline=self.scope.deadline, commit_called_ns=called_ns
        )

    async def _mutation(self, rules: RowRules, batch: pa.RecordBatch, at: Timestamp) -> Mutation:
        if has_references(rules.table):
            raise SQLError(
                "0A000",
                f'table "{rules.table.name}" has foreign keys, which a bulk load does not check',
                hint="Use INSERT, or drop the foreign keys and add them again behind the load.",
            )
        services = self._services
        bindings = Bindings((), at, generators=services.generators, analytics=services.analytics)
        sequences = StoredSequences(services.store, services.catalog, DEFAULT_DATABASE)
        mutation = await with_draws_of(
            sequences, bindings, lambda bindings: encode_batch(rules, batch, bindings)
        )
        if self._mode is LoadMode.UPSERT:
            mutation.keep_last()
        else:
            mutation.insert_only()
        return mutation

    async def drain(self, left: int) -> None:
        """Waits until at most `left` transactions are pending."""
        while len(self._pending) > left:
            pending, rows = self._pending.popleft()
            _, self.last = await pending.wait()
            self.row_count += rows

    async def failed(self, error: KVError | SQLError) -> SQLError:
        """The error to raise, when what was applied before it has become durable."""
        try:
            await self.drain(0)
        except KVError:
            pass  # the store has failed, and said so already
        told = from_kv(error) if isinstance(error, KVError) else error
        told = told_to(told, self._services.rights.current, self._user)
        committed = f"{self.row_count} rows before this transaction are committed."
        detail = f"{told.detail} {committed}" if told.detail else committed
        return SQLError(
            told.sqlstate, told.message, detail=detail, hint=told.hint, position=told.position
        )


async def _find(services: Services, name: TableName) -> int:
    reader = services.store.snapshot(await services.store.now())
    table = await services.catalog.find(reader, name)
    if table is None:
        raise unknown_table(name)
    refuse_other_writers(table)
    if table.id < FIRST_USER_ID:
        raise SQLError("42501", f'permission denied for table "{table.name}"')
    return table.id


async def _batches(data: Batches) -> AsyncIterator[pa.RecordBatch]:
    if isinstance(data, AsyncIterable):
        async for batch in data:
            yield batch
        return
    if isinstance(data, pa.Table):
        data = data.to_batches()
    for batch in [data] if isinstance(data, pa.RecordBatch) else data:
        yield batch
