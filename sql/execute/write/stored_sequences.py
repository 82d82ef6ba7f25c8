"""The values of sequences: drawn, given back and set, each in a transaction, by who may.

    nextval     USAGE or UPDATE        currval     USAGE or SELECT        setval     UPDATE

Drawing and setting are writing: a transaction that reads only does neither (25006). The sequence of
an identity column is part of its table: whoever may INSERT there draws from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.named_objects import SequenceDescriptor
from ....catalog.descriptors.sequence_value import decode_value, encode_value
from ....catalog.rights.privileges import Privilege, SecurableKind, securable
from ....catalog.rights.users import ROOT
from ....catalog.store.catalog import Catalog
from ....catalog.store.catalog_changes import CatalogChanges
from ....catalog.values.errors import SQLError
from ....kvlayer.access import StoreAccess, Transaction
from ....kvlayer.errors import RetryableTransaction
from ...analyze.calls.sequence_calls import SequenceNeeded
from ...plan.needs import refused
from ...runtime.authorization import current_rights
from ...runtime.relations import find_sequence
from ...runtime.services import Services
from ...syntax.names import ObjectName


class StoredSequences:
    """The sequences of one database, as the store itself draws from them. Each method is a
    transaction of its own, unless the open one has made or altered the sequence."""

    def __init__(
        self,
        store: StoreAccess,
        catalog: Catalog,
        database: str,
        opened: Transaction | None = None,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._database = database
        self._opened = opened

    async def find(self, name: str) -> SequenceDescriptor:
        """Raises SQLError 42P01."""
        given = ObjectName(tuple(part.strip('"') for part in name.split(".")), 1)
        reader = self._opened or self._store.snapshot(await self._store.now())
        found = await find_sequence(self._catalog, reader, given, self._database)
        if found is None:
            raise SQLError("42P01", f'relation "{name}" does not exist')
        return found

    async def check(self, sequence: SequenceDescriptor, needed: SequenceNeeded) -> None:
        """Raises SQLError where the values are not for who asks: the store may have all."""

    async def draw(self, sequence: SequenceDescriptor, count: int) -> list[int]:
        """The next values, one at least. Raises SQLError 2200H where there are no more."""
        options = sequence.options

        async def work(transaction: Transaction) -> list[int]:
            last, called = await _value(transaction, sequence)
            values: list[int] = []
            for _ in range(count):
                following = last + options.increment if called else last
                if not options.minimum <= following <= options.maximum:
                    if values:
                        break
                    following = _wrapped(sequence)
                values.append(following)
                last, called = following, True
            await transaction.put([sequence.key], [encode_value((last, True))])
            return values

        return await self._write(sequence, work)

    async def give_back(self, sequence: SequenceDescriptor, values: Sequence[int]) -> None:
        """The values that were drawn last and not used; where others were drawn since, they are
        lost."""

        async def work(transaction: Transaction) -> None:
            last, called = await _value(transaction, sequence)
            if called and last == values[-1]:
                before = values[0] - sequence.options.increment
                inside = sequence.options.minimum <= before <= sequence.options.maximum
                state = (before, True) if inside else (values[0], False)
                await transaction.put([sequence.key], [encode_value(state)])

        await self._write(sequence, work)

    async def set_value(self, sequence: SequenceDescriptor, value: int, *, called: bool) -> None:
        """Raises SQLError 22003 for a value that the sequence never has."""
        options = sequence.options
        if not options.minimum <= value <= options.maximum:
            raise SQLError(
                "22003",
                f'setval: value {value} is out of bounds for sequence "{sequence.name}" '
                f"({options.minimum}..{options.maximum})",
            )

        async def work(transaction: Transaction) -> None:
            await _value(transaction, sequence)
            await transaction.put([sequence.key], [encode_value((value, called))])

        await self._write(sequence, work)

    async def _write(
        self, sequence: SequenceDescriptor, work: Callable[[Transaction], Awaitable[T]]
    ) -> T:
        if self._opened is not None and self._mine(sequence):
            return await work(self._opened)
        for attempt in range(1, ATTEMPTS_MAX + 1):
            transaction = self._store.begin()
            try:
                await transaction.started()
                result = await work(transaction)
                await transaction.commit()
            except RetryableTransaction:
                await transaction.rollback()
                if attempt == ATTEMPTS_MAX:
                    raise
                await asyncio.sleep(0.001 * attempt * self._store.random.random())
            except BaseException:
                await transaction.rollback()
                raise
            else:
                return result
        raise AssertionError("the last attempt returns or raises")

    def _mine(self, sequence: SequenceDescriptor) -> bool:
        """Whether the open transaction has made the sequence, or has altered it: it has locked the
        value, and draws are undone with it."""
        if self._opened is None or not self._opened.commit_checks:
            return False
        published = CatalogChanges.of(self._opened).published
        return any(changed.id == sequence.id for changed in published)


async def _value(transaction: Transaction, sequence: SequenceDescriptor) -> tuple[int, bool]:
    body = await transaction.get(sequence.key, for_update=True)
    return (sequence.options.start, False) if body is None else decode_value(body)


def _wrapped(sequence: SequenceDescriptor) -> int:
    options = sequence.options
    rising = options.increment > 0
    if options.cycle:
        return options.minimum if rising else options.maximum
    what, bound = ("maximum", options.maximum) if rising else ("minimum", options.minimum)
    raise SQLError(
        "2200H", f'nextval: reached {what} value of sequence "{sequence.name}" ({bound})'
    )


ATTEMPTS_MAX = 100
"""Draws of one sequence conflict with each other alone, and each is short."""


T = TypeVar("T")


class SequencesOfUser(StoredSequences):
    """The sequences as a user's statements draw from them, by the rights that the open transaction
    sees."""

    def __init__(
        self,
        services: Services,
        user: str,
        database: str,
        opened: Transaction | None,
        *,
        reads_only: bool = False,
    ) -> None:
        super().__init__(services.store, services.catalog, database, opened)
        self._services = services
        self._user = user
        self._reads_only = reads_only

    async def check(self, sequence: SequenceDescriptor, needed: SequenceNeeded) -> None:
        """Raises SQLError 42501, and 25006 for what writes where nothing may."""
        if self._reads_only and (needed.draws or needed.set_to is not None):
            what = "nextval()" if needed.draws else "setval()"
            raise SQLError("25006", f"cannot execute {what} in a read-only transaction")
        if self._user == ROOT:
            return
        any_of = Privilege.UPDATE  # one of these is enough
        if needed.set_to is None:
            any_of = Privilege.USAGE | (Privilege.UPDATE if needed.draws else Privilege.SELECT)
        rights = await current_rights(self._services, self._opened)
        if rights.held(self._user, securable(sequence)) & any_of:
            return
        if needed.draws and sequence.owner is not None:
            table = await self._identity_table(*sequence.owner)
            if table and rights.held(self._user, securable(table)) & Privilege.INSERT:
                return
        told = any_of & Privilege.USAGE or any_of
        raise refused(self._user, told, SecurableKind.SEQUENCE, sequence.name)

    async def _identity_table(self, table_id: int, column_id: int) -> TableDescriptor | None:
        """The table of an identity column."""
        descriptors = self._catalog.descriptors
        if self._opened is not None:
            table = await descriptors.read(self._opened, table_id)
        else:
            table = await descriptors.read_at(table_id, await self._store.now())
        assert isinstance(table, TableDescriptor), table
        columns = [column for column in table.columns if column.id == column_id]
        return table if any(column.identity is not None for column in columns) else None
