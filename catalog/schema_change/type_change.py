"""Changes of types as jobs: what a type has become is brought to the tables that use it.

    ALTER TYPE mood ADD VALUE 'fine'
        type mood v2      … fine, not yet writable          the statement's transaction
        table t v5        … fine, not yet writable          once nobody uses v3
        table t v6        … fine                            once nobody uses v4
        type mood v3      … fine

Each table takes two versions, and each table's are a schema change of its own: a locked table is
unlocked and locked again around it. A job that dies goes on where the descriptors say it is, for it
has no other state.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import msgspec

from ...kvlayer.access import StoreAccess, committed
from ...kvlayer.errors import RetryableTransaction
from ..descriptors.descriptor import TableDescriptor
from ..descriptors.enum_columns import (
    all_writable,
    columns_of,
    enum_in,
    next_copy,
    users_of,
    with_enum,
)
from ..descriptors.named_objects import TypeDescriptor
from ..jobs.resumer import JobContext
from ..leases import LeaseManager, LeaseWaitTimeout
from ..store.descriptor_store import DescriptorStore
from ..values.enum_type import EnumType
from ..values.errors import SQLError
from .jobs import SchemaChanges
from .planner import plan
from .targets import FactsElement, Target

JOB_KIND = "TYPEDESC SCHEMA CHANGE"

PAUSE_SECONDS = 0.02
"""Between two attempts at a table that somebody else is at."""

PAUSED_SECONDS = 1.0
"""Between two looks at a table whose own change is paused, until somebody resumes that."""

LEASE_WAIT_SECONDS = 60.0
"""After which the tables are looked at anew; the job itself waits for as long as it takes."""


def payload_of(type_id: int) -> bytes:
    return msgspec.msgpack.encode({"type_id": type_id})


def type_of_payload(payload: bytes) -> int:
    return int(msgspec.msgpack.decode(payload, type=dict[str, int])["type_id"])


class TypeChanger:
    """Runs changes of types: the resumer of their jobs."""

    def __init__(
        self, store: StoreAccess, descriptors: DescriptorStore, leases: LeaseManager
    ) -> None:
        self._store = store
        self._descriptors = descriptors
        self._leases = leases
        self._changes = SchemaChanges(store, descriptors)

    async def resume(self, context: JobContext) -> None:
        type_id = type_of_payload(context.job.payload)
        while True:
            try:
                if await self._step(type_id):
                    return
            except (RetryableTransaction, LeaseWaitTimeout):
                await asyncio.sleep(PAUSE_SECONDS)

    async def on_cancel(self, context: JobContext) -> None:
        """Half a change stays: what some tables know already others may come to know later."""

    async def _step(self, type_id: int) -> bool:
        """Takes one table, or in the end the type, one step further; whether there was none."""
        found = await self._descriptors.all_at(await self._store.now())
        type = next((one for one in found if one.id == type_id), None)
        if not isinstance(type, TypeDescriptor):
            return True
        whole = all_writable(type.enum)
        tables = users_of([one for one in found if isinstance(one, TableDescriptor)], type_id)
        behind = [table for table in tables if _behind(table, whole)]
        if behind:
            await self._change_table(behind[0], whole)
            return False
        if type.enum != whole:
            await self._change_type(type_id)
            return False
        return True

    async def _change_table(self, table: TableDescriptor, whole: EnumType) -> None:
        if table.schema_change_job is not None:
            try:
                await self._changes.wait_for_turn(table)
            except SQLError:  # that job is paused: this one waits for as long
                await asyncio.sleep(PAUSED_SECONDS)
            return
        await self._leases.wait_for_one_version(table.id, timeout=LEASE_WAIT_SECONDS)
        async with committed(self._store) as transaction:
            await transaction.started()
            current = await self._descriptors.read(transaction, table.id)
            if not isinstance(current, TableDescriptor) or current.version != table.version:
                raise RetryableTransaction(f"{table.name} has just been changed")
            targets = [Target(_next_facts(current, whole))]
            stages = plan(targets, locked=current.locked)
            job = await self._changes.begin(
                transaction, current, targets, stages, f"ALTER TYPE {whole.name}"
            )
        if job is not None:
            await self._changes.wait(job.id)

    async def _change_type(self, type_id: int) -> None:
        """Makes the members writable that every table knows."""
        async with committed(self._store) as transaction:
            await transaction.started()
            type = await self._descriptors.read(transaction, type_id)
            assert isinstance(type, TypeDescriptor), type
            if not type.dropped:
                version = self._descriptors.next_version(transaction, type)
                changed = replace(type, enum=all_writable(type.enum), version=version)
                await self._descriptors.publish(transaction, changed)


def _behind(table: TableDescriptor, whole: EnumType) -> bool:
    return any(enum_in(column.type) != whole for column in columns_of(table, whole.id))


def _next_facts(table: TableDescriptor, whole: EnumType) -> FactsElement:
    """The columns of the enumeration with the next version of it."""
    columns = []
    for column in columns_of(table, whole.id):
        copy = enum_in(column.type)
        assert copy is not None, column
        columns.append(with_enum(column, next_copy(copy, whole)))
    return FactsElement(label=f"type {whole.name}", columns=tuple(columns))
