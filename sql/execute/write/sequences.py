"""Sequences: what a statement asks of them, and the values that they have, by who may draw them.

    nextval     USAGE or UPDATE        currval     USAGE or SELECT        setval     UPDATE

Drawing and setting are writing: a transaction that reads only does neither (25006). The sequence of
an identity column is part of its table: whoever may INSERT there draws from it.

A statement is evaluated without waiting, and a sequence's next value is a write that must be
durable before anybody sees it. So the functions answer from what the statement has
*drawn* already; where that is not enough they raise `ValueNeeded`, the values are drawn, and the
statement is evaluated anew, with the same answers as far as it came:

    INSERT INTO t SELECT of three rows     needs three, draws them   1, 2, 3

What was drawn too many is a gap. Defaults that DuckDB computes are drawn in the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.named_objects import SequenceDescriptor
from ....catalog.descriptors.sequence_value import decode_value, encode_value
from ....catalog.rights.privileges import Privilege, SecurableKind, securable
from ....catalog.rights.users import ROOT
from ....catalog.store.catalog import Catalog
from ....catalog.store.catalog_changes import CatalogChanges
from ....catalog.values.errors import SQLError
from ....kvlayer.access import StoreAccess, Transaction, committed
from ....kvlayer.errors import RetryableTransaction
from ...analyze.calls.row_calls import COMPUTED, Request, ValueNeeded
from ...analyze.scalars import Bindings
from ...plan.needs import refused
from ...runtime.authorization import current_rights
from ...runtime.relations import find_sequence
from ...runtime.services import Services
from ...syntax.statement import ObjectName
from .row_rules import computed_values

DRAWN_AT_ONCE_MAX = 4096
"""Values that one write draws. A statement draws as many as it says that it needs, and at least an
eighth of what it has drawn so far."""

ATTEMPTS_MAX = 100
"""Draws of one sequence conflict with each other alone, and each is short."""

T = TypeVar("T")


@dataclass
class StoredSequences:
    """The sequences of one database, as the store itself draws from them. Each method is a
    transaction of its own, unless the open one has made or altered the sequence."""

    store: StoreAccess
    catalog: Catalog
    database: str
    opened: Transaction | None = None

    async def find(self, name: str) -> SequenceDescriptor:
        """The sequence as it is spelt, or, as PostgreSQL reads a text, in small letters where it is
        not quoted: Hibernate writes the name as its entity has it. Raises SQLError 42P01."""
        reader = self.opened or self.store.snapshot(await self.store.now())
        parts = name.split(".")
        spelt = tuple(part.strip('"') for part in parts)
        small = tuple(part.strip('"') if '"' in part else part.lower() for part in parts)
        for spelling in dict.fromkeys((spelt, small)):
            found = await find_sequence(
                self.catalog, reader, ObjectName(spelling, 1), self.database
            )
            if found is not None:
                return found
        raise SQLError("42P01", f'relation "{name}" does not exist')

    async def check(self, sequence: SequenceDescriptor, function: str) -> None:
        """Raises SQLError where who asks may not call the function: the store may call all."""

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
        if self.opened is not None and self._mine(sequence):
            return await work(self.opened)
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                async with committed(self.store) as transaction:
                    await transaction.started()
                    return await work(transaction)
            except RetryableTransaction:
                if attempt == ATTEMPTS_MAX:
                    raise
            await asyncio.sleep(0.001 * attempt * self.store.random.random())
        raise AssertionError("the last attempt returns or raises")

    def _mine(self, sequence: SequenceDescriptor) -> bool:
        """Whether the open transaction has made the sequence, or has altered it: it has locked the
        value, and draws are undone with it."""
        if self.opened is None or not self.opened.commit_checks:
            return False
        published = CatalogChanges.of(self.opened).published
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


_ANY_OF = {
    "nextval": Privilege.USAGE | Privilege.UPDATE,
    "currval": Privilege.USAGE | Privilege.SELECT,
    "setval": Privilege.UPDATE,
}
"""The rights of which one is enough to call a function."""


class SequencesOfUser(StoredSequences):
    """The sequences of a user's statements, by the rights that the open transaction sees."""

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

    async def check(self, sequence: SequenceDescriptor, function: str) -> None:
        """Raises SQLError 42501, and 25006 for what writes where nothing may."""
        if self._reads_only and function != "currval":
            raise SQLError("25006", f"cannot execute {function}() in a read-only transaction")
        if self._user == ROOT:
            return
        any_of = _ANY_OF[function]
        rights = await current_rights(self._services, self.opened)
        if rights.held(self._user, securable(sequence)) & any_of:
            return
        if function == "nextval" and sequence.owner is not None:
            table = await self._identity_table(*sequence.owner)
            if table and rights.held(self._user, securable(table)) & Privilege.INSERT:
                return
        told = any_of & Privilege.USAGE or any_of
        raise refused(self._user, told, SecurableKind.SEQUENCE, sequence.name)

    async def _identity_table(self, table_id: int, column_id: int) -> TableDescriptor | None:
        """The table of an identity column."""
        reader = self.opened or self.store.snapshot(await self.store.now())
        table = await self.catalog.descriptors.read(reader, table_id)
        assert isinstance(table, TableDescriptor), table
        columns = [column for column in table.columns if column.id == column_id]
        return table if any(column.identity is not None for column in columns) else None


class DrawnValues:
    """The generators of one statement: those of its bindings, and the values it draws. `current`
    are the values that its session has drawn last, by the ids of their sequences."""

    def __init__(
        self, bindings: Bindings, store: StoredSequences, current: dict[int, int] | None = None
    ) -> None:
        assert bindings.generators is not None, bindings
        self._bindings = bindings
        base = bindings.generators  # which draws what no sequence does
        self.uuid, self.rowid, self.random = base.uuid, base.rowid, base.random
        self._store = store
        self._current = {} if current is None else current
        self._known: dict[str, SequenceDescriptor] = {}
        self._answers: dict[Request, list[object]] = {}
        self._left: dict[Request, Iterator[object]] = {}
        """The answers that this evaluation has not asked for yet."""

    def ask(self, request: Request) -> object:
        function, name, given = request
        if function == "currval":
            return self._drawn_last(request)
        for answer in self._left.get(request, ()):
            if function == "nextval" or (given is not None and given[1]):
                assert isinstance(answer, int), request
                self._current[self._known[name].id] = answer
            return answer
        raise ValueNeeded(request)

    def _drawn_last(self, request: Request) -> int:
        sequence = self._known.get(request[1])
        if sequence is None:
            raise ValueNeeded(request)
        value = self._current.get(sequence.id)
        if value is None:
            raise SQLError(
                "55000", f'currval of sequence "{sequence.name}" is not yet defined in this session'
            )
        return value

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`, evaluated again until all the values that it draws are there."""
        while True:
            self._left = {request: iter(found) for request, found in self._answers.items()}
            try:
                return await work()
            except ValueNeeded as needed:
                await self._answer(needed)

    async def _answer(self, needed: ValueNeeded) -> None:
        function, name, given = needed.request
        answers = self._answers.setdefault(needed.request, [])
        enough = max(len(answers) // 8 + 1, needed.wanted)
        if function == COMPUTED:
            answers += await self._computed(name, enough)
            return
        if name not in self._known:
            self._known[name] = await self._store.find(name)
        sequence = self._known[name]
        await self._store.check(sequence, function)
        if given is not None:
            value, called = given
            await self._store.set_value(sequence, value, called=called)
            answers.append(value)
        elif function == "nextval":
            enough += len(answers)
            while len(answers) < enough:
                count = min(enough - len(answers), DRAWN_AT_ONCE_MAX)
                answers += await self._store.draw(sequence, count)

    async def _computed(self, text: str, count: int) -> Sequence[object]:
        """More values of an expression, with draws of its own."""
        inner = DrawnValues(self._bindings, self._store, self._current)
        drawing = replace(self._bindings, generators=inner)
        return await inner.run(lambda: computed_values(text, count, drawing))


async def with_draws_of(
    store: StoredSequences, bindings: Bindings, work: Callable[[Bindings], Awaitable[T]]
) -> T:
    """The result of work that needs no session: what it evaluates may draw from sequences."""
    try:
        return await work(bindings)
    except ValueNeeded:
        drawn = DrawnValues(bindings, store)
        return await drawn.run(lambda: work(replace(bindings, generators=drawn)))
