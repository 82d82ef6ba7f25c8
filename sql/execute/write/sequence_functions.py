"""nextval, currval, setval and lastval: what a statement asks of sequences.

A statement is evaluated without waiting, and a sequence's next value is a write that must be
durable before anybody sees it. So the functions answer from what the statement has
*drawn* already; where that is not enough they raise `SequenceNeeded`, the values are drawn, and the
statement is evaluated anew, with the same answers as far as it came:

    INSERT INTO t SELECT of three rows     needs 1, draws it   needs 2, draws two   1, 2, 3

What was drawn too many is given back where nobody has drawn since. Defaults that DuckDB computes
are drawn in the same way.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from msgspec.structs import replace

from ....catalog.descriptors.named_objects import SequenceDescriptor
from ....catalog.values.errors import SQLError
from ...analyze.calls.sequence_calls import ExpressionNeeded, SequenceNeeded, ValueNeeded
from ...analyze.scalars import Bindings
from .row_expressions import computed_values
from .stored_sequences import StoredSequences

DRAWN_AT_ONCE_MAX = 4096
"""Values that one write draws. A statement draws as many as it says that it needs, and at least as
many as it has drawn so far."""

T = TypeVar("T")


@dataclass(slots=True)
class SessionSequences:
    """The values that a session has drawn: the last of each sequence, and the last of all."""

    current: dict[int, int] = field(default_factory=dict)
    last: int | None = None
    _kept: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    """Values drawn in advance, by sequence, with the sequence's version. CACHE says how many."""

    def take(self, sequence: SequenceDescriptor) -> list[int]:
        """Returns a value drawn in advance; None where there is none, or the sequence was
        altered since."""
        version, values = self._kept.pop(sequence.id, (0, []))
        return values if version == sequence.version else []

    def keep(self, sequence: SequenceDescriptor, values: list[int]) -> None:
        self._kept[sequence.id] = (sequence.version, values)

    def forget(self) -> None:
        """As in a new session."""
        self.current.clear()
        self.last = None
        self._kept.clear()


class DrawnValues:
    """The generators of one statement: those of its bindings, and the values it draws."""

    def __init__(
        self,
        bindings: Bindings,
        store: StoredSequences,
        session: SessionSequences | None = None,
    ) -> None:
        assert bindings.generators is not None, bindings
        self._bindings = bindings
        self._base = bindings.generators
        self._store = store
        self._session = session or SessionSequences()
        self._computed: dict[str, list[object]] = {}
        self._computed_used: dict[str, int] = {}
        self._known: dict[str, SequenceDescriptor] = {}
        self._drawn: dict[str, list[int]] = {}
        self._used: dict[str, int] = {}
        self._set: list[int] = []
        self._sets_used = 0

    def uuid(self) -> UUID:
        return self._base.uuid()

    def rowid(self) -> int:
        return self._base.rowid()

    def random(self) -> float:
        return self._base.random()

    def computed(self, text: str) -> object:
        place, values = self._computed_used.get(text, 0), self._computed.get(text, ())
        if place >= len(values):
            raise ExpressionNeeded(text)
        self._computed_used[text] = place + 1
        return values[place]

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
        """Returns the result of `work`, evaluated again until all the values that it draws are
        there."""
        while True:
            self._used.clear()
            self._computed_used.clear()
            self._sets_used = 0
            try:
                result = await work()
            except ValueNeeded as needed:
                await self._answer(needed)
                continue
            await self._give_back()
            return result

    async def _answer(self, needed: ValueNeeded) -> None:
        if isinstance(needed, ExpressionNeeded):
            await self._compute(needed)
            return
        assert isinstance(needed, SequenceNeeded), needed
        if needed.name not in self._known:
            self._known[needed.name] = await self._store.find(needed.name)
        sequence = self._known[needed.name]
        await self._store.check(sequence, needed)
        if needed.set_to is not None:
            value, called = needed.set_to
            await self._store.set_value(sequence, value, called=called)
            self._session.take(sequence)
            self._set.append(value)
        elif needed.draws:
            drawn = self._drawn.setdefault(needed.name, [])
            if kept := self._session.take(sequence):
                drawn += kept
                return
            enough = len(drawn) + max(len(drawn), needed.wanted, sequence.options.cache)
            while len(drawn) < enough:
                count = min(enough - len(drawn), DRAWN_AT_ONCE_MAX)
                drawn += await self._store.draw(sequence, count)

    async def _compute(self, needed: ExpressionNeeded) -> None:
        """Computes more values of an expression, with draws of its own."""
        values = self._computed.setdefault(needed.text, [])
        count = max(len(values), needed.wanted)
        inner = DrawnValues(self._bindings, self._store, self._session)
        drawing = replace(self._bindings, generators=inner)
        values += await inner.run(lambda: computed_values(needed.text, count, drawing))

    async def _give_back(self) -> None:
        for name, drawn in self._drawn.items():
            left = drawn[self._used.get(name, 0) :]
            sequence = self._known[name]
            if left and sequence.options.cache > 1:
                self._session.keep(sequence, left)
            elif left:
                await self._store.give_back(sequence, _unbroken(left, sequence.options.increment))
        self._drawn.clear()


def _unbroken(values: list[int], increment: int) -> list[int]:
    """The end of the values between which nobody else has drawn."""
    start = len(values) - 1
    while start and values[start] - values[start - 1] == increment:
        start -= 1
    return values[start:]


async def with_draws_of(
    store: StoredSequences, bindings: Bindings, work: Callable[[Bindings], Awaitable[T]]
) -> T:
    """Returns the result of work that needs no session: what it evaluates may draw from
    sequences."""
    try:
        return await work(bindings)
    except ValueNeeded:
        drawn = DrawnValues(bindings, store)
        return await drawn.run(lambda: work(replace(bindings, generators=drawn)))
