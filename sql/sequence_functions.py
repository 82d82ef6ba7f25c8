"""nextval, currval, setval and lastval: what a statement asks of sequences.

A statement is evaluated without waiting, and a sequence's next value is a write that must be
durable before anybody sees it. So the functions answer from what the statement has
*drawn* already; where that is not enough they raise `SequenceNeeded`, the values are drawn, and the
statement is evaluated anew, with the same answers as far as it came:

    INSERT INTO t SELECT of three rows     needs 1, draws it   needs 2, draws two   1, 2, 3

What was drawn too many is given back where nobody has drawn since.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar
from uuid import UUID

from ..catalog.errors import SQLError
from ..catalog.named_objects import SequenceDescriptor
from .scalars import Bindings, Generators
from .sequence_calls import SequenceNeeded

DRAWN_AT_ONCE_MAX = 4096
"""Values that one write draws: as many as a statement has drawn so far, up to here."""

T = TypeVar("T")


@dataclass(slots=True)
class SessionSequences:
    """What a session has been given: by sequence, and at last."""

    current: dict[int, int] = field(default_factory=dict)
    last: int | None = None


class SequenceStore(Protocol):
    """Sequences by name, and their values. Each method is a transaction of its own."""

    async def find(self, name: str) -> SequenceDescriptor:
        """Raises SQLError 42P01."""
        ...

    async def draw(self, sequence: SequenceDescriptor, count: int) -> list[int]:
        """The next values, one at least. Raises SQLError 2200H where there are no more."""
        ...

    async def give_back(self, sequence: SequenceDescriptor, values: Sequence[int]) -> None:
        """The values that were drawn last and not used; where others were drawn since, they are
        lost."""
        ...

    async def set_value(self, sequence: SequenceDescriptor, value: int, *, called: bool) -> None:
        """Raises SQLError 22003 for a value that the sequence never has."""
        ...


class DrawnValues:
    """The generators of one statement: those of the store, and the values it draws."""

    def __init__(
        self, base: Generators, store: SequenceStore, session: SessionSequences | None = None
    ) -> None:
        self._base = base
        self._store = store
        self._session = session or SessionSequences()
        self._known: dict[str, SequenceDescriptor] = {}
        self._drawn: dict[str, list[int]] = {}
        self._used: dict[str, int] = {}
        self._set: list[int] = []
        self._sets_used = 0

    def uuid(self) -> UUID:
        return self._base.uuid()

    def rowid(self) -> int:
        return self._base.rowid()

    def nextval(self, name: str) -> int:
        place, drawn = self._used.get(name, 0), self._drawn.get(name, ())
        if place >= len(drawn):
            raise SequenceNeeded(name, draws=True)
        self._used[name] = place + 1
        value = drawn[place]
        self._note(name, value)
        return value

    def setval(self, name: str, value: int, called: bool) -> int:
        if self._sets_used >= len(self._set):
            raise SequenceNeeded(name, set_to=(value, called))
        self._sets_used += 1
        if called:
            self._note(name, value)
        return value

    def currval(self, name: str) -> int:
        sequence = self._known.get(name)
        if sequence is None:
            raise SequenceNeeded(name)
        value = self._session.current.get(sequence.id)
        if value is None:
            raise SQLError(
                "55000", f'currval of sequence "{sequence.name}" is not yet defined in this session'
            )
        return value

    def lastval(self) -> int:
        if self._session.last is None:
            raise SQLError("55000", "lastval is not yet defined in this session")
        return self._session.last

    def _note(self, name: str, value: int) -> None:
        self._session.current[self._known[name].id] = value
        self._session.last = value

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` returns, evaluated as often as it takes to have drawn what it needs."""
        while True:
            self._used.clear()
            self._sets_used = 0
            try:
                result = await work()
            except SequenceNeeded as needed:
                await self._answer(needed)
                continue
            await self._give_back()
            return result

    async def _answer(self, needed: SequenceNeeded) -> None:
        if needed.name not in self._known:
            self._known[needed.name] = await self._store.find(needed.name)
        sequence = self._known[needed.name]
        if needed.set_to is not None:
            value, called = needed.set_to
            await self._store.set_value(sequence, value, called=called)
            self._set.append(value)
        elif needed.draws:
            drawn = self._drawn.setdefault(needed.name, [])
            drawn += await self._store.draw(sequence, min(max(len(drawn), 1), DRAWN_AT_ONCE_MAX))

    async def _give_back(self) -> None:
        for name, drawn in self._drawn.items():
            left = drawn[self._used.get(name, 0) :]
            sequence = self._known[name]
            if left:
                await self._store.give_back(sequence, _unbroken(left, sequence.options.increment))
        self._drawn.clear()


def _unbroken(values: list[int], increment: int) -> list[int]:
    """The end of the values between which nobody else has drawn."""
    start = len(values) - 1
    while start and values[start] - values[start - 1] == increment:
        start -= 1
    return values[start:]


class Drawing:
    """Work that needs no session: what it evaluates may draw from sequences."""

    def __init__(self, bindings: Bindings, store: SequenceStore) -> None:
        assert bindings.generators is not None, bindings
        self._bindings = bindings
        self._generators: Generators = bindings.generators
        self._store = store

    async def __call__(self, work: Callable[[Bindings], Awaitable[T]]) -> T:
        try:
            return await work(self._bindings)
        except SequenceNeeded:
            drawn = DrawnValues(self._generators, self._store)
            bindings = replace(self._bindings, generators=drawn)
            return await drawn.run(lambda: work(bindings))
