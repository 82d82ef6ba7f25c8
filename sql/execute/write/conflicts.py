"""INSERT … ON CONFLICT: of the rows proposed, which are new, and which rows are there already.

Row by row, as if they were inserted in turn. A row that is there, or was written by the same
statement, is in the way where it has an entry that the proposed one needs in an arbiter: its key
in the primary index, its values in a unique one. DO NOTHING passes over the proposed row then; DO
UPDATE changes the row that is there, unless this statement has touched it (21000).

The entries that the proposed rows need are read together, and then the rows that have those: in
a one-phase commit and in a transaction alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....catalog.descriptors.elements import IndexKind
from ....catalog.rows.index_codec import IndexCodec, index_codec_for
from ....catalog.rows.row_codec import codec_for
from ....catalog.values.column_types import Datum
from ....catalog.values.errors import SQLError
from ....kvlayer.access import Evaluation, Transaction
from ....kvlayer.process.fibre import in_slices_where
from ...analyze.given_tables import filled, with_given
from ...analyze.predicates import bind_predicates
from ...analyze.scalars import Bindings
from ...plan.plans import ConflictPlan, InsertPlan
from ...results.results import Row
from ...syntax.trees import stepping
from ..query.reading import KeyedRow, run_analytic
from .mutations import KEYS_PER_STEP, POINTS_MAX, Mutation, lock_first
from .row_rules import RowRules, encoded
from .steps import in_steps, long_bodies, read_bounded, read_each, refuse_wide

Outcome = tuple[Mutation, Sequence[Row], int]
"""The writes of the statement, and the rows that it wrote, in the order of the proposals, if it
returns them; and how many they are."""

_Effect = int | KeyedRow
"""The fate of a proposed row: the number of one to be inserted, or the key of a row that is there,
and the values that its visible columns get."""


class Collisions:
    """The rows that an INSERT proposes, and those that are in their way."""

    def __init__(self, plan: InsertPlan, proposed: Mutation) -> None:
        assert plan.conflict is not None, plan
        self._plan = plan
        self._conflict: ConflictPlan = plan.conflict
        self._rules = RowRules.of(plan.descriptor)
        self._decode = codec_for(plan.descriptor).decode_row
        self._keys, self._bodies = proposed.keys, proposed.bodies
        self._wanted: dict[bytes, _Arbiter] = {}  # the entries that the proposed rows need
        self._entries: list[list[bytes]] = []  # those of each
        arbiters = [_Arbiter(plan, index.id) for index in self._conflict.arbiters]
        for key, body in in_steps(list(zip(self._keys, self._bodies, strict=True))):
            needed = {each.entry(key, body): each for each in arbiters}
            entries = {entry: each for entry, each in needed.items() if entry is not None}
            self._wanted.update(entries)
            self._entries.append(list(entries))
        self._occupied: dict[bytes, bytes] = {}  # entry -> key of the row that has it
        self._there: dict[bytes, bytes | None] = {}  # key -> body of a row that is there

    def apply(self, evaluation: Evaluation, bindings: Bindings) -> Outcome:
        """In one phase. Only where nothing takes DuckDB. Raises TooWide."""
        if keys := self._note(read_bounded(evaluation, list(self._wanted))):
            self._there.update(zip(keys, read_bounded(evaluation, keys), strict=True))
        refuse_wide(list(self._there.values()))
        decided = self._decide(bindings, {})
        changed = self._rules.complete([values for _, values in _changes(decided)], bindings)
        outcome = self._outcome(decided, changed)
        outcome[0].apply(evaluation)
        return outcome

    async def settle_in(self, transaction: Transaction, bindings: Bindings) -> Outcome:
        """The writes, not yet carried out."""
        await self._read_in(transaction)
        answers = await self._ask(transaction, bindings)
        many = long_bodies([*self._bodies, *self._there.values()], KEYS_PER_STEP)
        decided = await in_slices_where(many, lambda: self._decide(bindings, answers))
        changed = await self._rules.complete_all(
            [values for _, values in _changes(decided)], bindings
        )
        return await in_slices_where(many, lambda: self._outcome(decided, changed))

    async def _read_in(self, transaction: Transaction) -> None:
        wanted = list(self._wanted)
        await lock_first(transaction, wanted)
        if len(wanted) > POINTS_MAX and await transaction.first_existing(wanted) is None:
            return
        keys = self._note(await read_each(transaction, wanted, KEYS_PER_STEP))
        bodies = await read_each(transaction, keys, KEYS_PER_STEP)
        self._there.update(zip(keys, bodies, strict=True))

    def _note(self, found: Sequence[bytes | None]) -> list[bytes]:
        """Notes which of the wanted entries are taken, and by which rows. Returns the keys of the
        rows that are still to be read."""
        for (entry, arbiter), body in zip(self._wanted.items(), found, strict=True):
            if body is not None:
                row_key = self._occupied[entry] = arbiter.row_key(entry, body)
                if arbiter.primary and self._conflict.updates:
                    self._there[row_key] = body
        taken = dict.fromkeys(self._occupied.values()) if self._conflict.updates else ()
        return [row_key for row_key in taken if row_key not in self._there]

    async def _ask(self, transaction: Transaction, bindings: Bindings) -> Mapping[int, Row]:
        """By the number of each proposal that is in conflict: whether to update, and the values."""
        conflict = self._conflict
        if conflict.analytic is None:
            return {}
        assert conflict.pairs is not None, conflict
        numbers = [number for number in range(len(self._keys)) if self._in_the_way(number)]
        if not numbers:
            return {}
        pairs = [self._pair(number) for number in numbers]
        given = with_given(bindings, {conflict.pairs.id: filled(conflict.pairs, pairs)})
        answer = await run_analytic(conflict.analytic, transaction, given)
        columns = [column.to_pylist() for column in answer.table.columns]
        return {numbers[place]: values for place, *values in zip(*columns, strict=True)}

    def _in_the_way(self, number: int) -> bytes | None:
        """The key of the row that the proposal collides with, if any is there."""
        for entry in self._entries[number]:
            if entry in self._occupied:
                return self._occupied[entry]
        return None

    def _pair(self, number: int) -> Row:
        """The row in the way, and the proposed one behind it."""
        there = self._in_the_way(number)
        assert there is not None, number
        decode, body = self._decode, self._there[there]
        assert body is not None, "an entry of an index has no row"
        proposed = decode(self._keys[number], self._bodies[number])
        return (*decode(there, body), *proposed)

    def _decide(self, bindings: Bindings, answers: Mapping[int, Row]) -> list[_Effect]:
        decided: list[_Effect] = []
        claimed: set[bytes] = set()  # entries of rows that this statement has written
        conflict = self._conflict
        passes = bind_predicates(conflict.predicates, bindings)
        for number, entries in enumerate(stepping(self._entries)):
            mine = not claimed.isdisjoint(entries)
            there = self._in_the_way(number)
            if not mine and there is None:
                decided.append(number)
                claimed.update(entries)
                continue
            if not conflict.updates:
                continue
            if mine:
                raise SQLError(
                    "21000",
                    "ON CONFLICT DO UPDATE command cannot affect row a second time",
                    hint="Ensure that no rows proposed for insertion within the same command have "
                    "duplicate constrained values.",
                )
            assert there is not None, number
            pair = self._pair(number)
            answer = answers.get(number, (True,))
            if answer[0] is not True or not passes(pair):
                continue
            decided.append((there, self._changed(pair, answer[1:], bindings)))
            claimed.update(entries)
        return decided

    def _changed(self, pair: Row, computed: Row, bindings: Bindings) -> Row:
        """The row in the way as DO UPDATE leaves its visible columns."""
        values: list[Datum] = list(pair[: len(pair) // 2])
        for assignment in self._conflict.assignments:
            if assignment.scalar is not None:
                values[assignment.place] = assignment.scalar.evaluate(pair, bindings)  # type: ignore[call-overload]
            else:
                assert assignment.computed is not None, assignment
                values[assignment.place] = computed[assignment.computed]
        return tuple(values)

    def _outcome(self, decided: Sequence[_Effect], changed: Sequence[Row]) -> Outcome:
        mutation = encoded(self._rules, changed)
        updated = zip(tuple(mutation.keys), tuple(mutation.bodies), strict=True)
        if self._conflict.moves_keys:
            mutation.move_from([key for key, _ in _changes(decided)])
        new = [number for number in decided if isinstance(number, int)]
        mutation.keys = mutation.keys + [self._keys[number] for number in new]
        mutation.bodies = mutation.bodies + [self._bodies[number] for number in new]
        mutation.absent = mutation.absent + [self._keys[number] for number in new]
        mutation.check_distinct()
        rows: list[Row] = []
        if self._plan.returning.columns:
            decode = self._decode
            for effect in decided:
                if isinstance(effect, int):
                    rows.append(decode(self._keys[effect], self._bodies[effect]))
                else:
                    rows.append(decode(*next(updated)))
        return mutation, rows, len(decided)


class _Arbiter:
    """A unique index, the primary one or another, as it decides of conflicts."""

    def __init__(self, plan: InsertPlan, index_id: int) -> None:
        table = plan.descriptor.writable
        self.primary = index_id == table.primary_index_id
        self._rows = index_codec_for(table, table.primary_index)
        self._codec: IndexCodec | None = None
        if not self.primary:
            index = next(index for index in table.indexes if index.id == index_id)
            assert index.kind is IndexKind.SECONDARY, index
            self._codec = index_codec_for(table, index)

    def entry(self, key: bytes, body: bytes) -> bytes | None:
        """The entry that a row needs; None where a NULL makes it differ from all others."""
        return key if self._codec is None else self._codec.prefix_of(body)

    def row_key(self, entry: bytes, found: bytes) -> bytes:
        """The key of the row to which an entry that was found belongs."""
        return entry if self.primary else self._rows.entry(found)[0]


def _changes(decided: Sequence[_Effect]) -> list[KeyedRow]:
    return [effect for effect in decided if not isinstance(effect, int)]
