"""Changes of lease rows, each in one serializable transaction."""

from __future__ import annotations

from collections.abc import Collection

from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import MAX_TIMESTAMP, ZERO, Timestamp
from ...kvlayer.txn import Evaluation
from ..descriptors.descriptor import Descriptor, TableDescriptor
from ..store.descriptor_store import DescriptorStore, decode_stored, descriptor_key
from ..store.lease_rows import LEASES, SESSIONS, LeaseRow, SessionRow, leases_of
from .errors import DescriptorDropped, DescriptorMissing
from .incarnation import Incarnation
from .liveness import SessionLost, read_session

SWEEP_ROWS_MAX = 500
"""Rows deleted in one step: about a millisecond's worth."""


class LeaseStore:
    """The lease rows of one node."""

    def __init__(self, store: StoreAccess, descriptors: DescriptorStore, node_id: int) -> None:
        self._store = store
        self._descriptors = descriptors
        self._node_id = node_id

    async def take(
        self,
        table_id: int,
        incarnation: Incarnation,
        *,
        keep: Collection[int] | None = None,
    ) -> tuple[TableDescriptor, Timestamp]:
        """Leases the newest version of a table, and says when that was.

        With `keep`, other rows of this session on the table go, but for those on these versions:
        nobody remembers what they are for.

        The descriptor is read and the row written in one step, and publishing reads the rows in its
        transaction: whichever of the two comes second sees the other. The session is read there as
        well, for a row under a dead session would protect nothing. Raises SessionLost,
        DescriptorUnavailable.
        """

        def evaluate(evaluation: Evaluation) -> Descriptor | None:
            session = read_session(evaluation, incarnation.session_id)
            if session is None or not evaluation.before(session.expiration):
                raise SessionLost(incarnation.session_id)
            if keep is not None:
                evaluation.delete(_forgotten(evaluation, table_id, incarnation, keep))
            descriptor = _read_newest(evaluation, table_id)
            if isinstance(descriptor, TableDescriptor) and not descriptor.dropped:
                row = self._row(table_id, descriptor.version, incarnation, MAX_TIMESTAMP)
                key, body = row.encode()
                if evaluation.get(key) != body:  # a row that stands is not in a publisher's way
                    evaluation.put((key,), (body,))
            return descriptor

        newest, taken_at = await self._store.one_phase(evaluate)
        descriptor = await self._descriptors.read_at(table_id, taken_at)
        if not isinstance(descriptor, TableDescriptor):
            raise DescriptorMissing(table_id)
        assert newest is not None, table_id
        assert newest.version == descriptor.version, (newest, descriptor)
        if descriptor.dropped:
            raise DescriptorDropped(table_id, descriptor.name, descriptor.modification_time)
        return descriptor, taken_at

    async def drop(self, table_id: int, version: int, incarnation: Incarnation) -> Timestamp:
        """Deletes the row that this session holds on this version; says when it went."""
        key = self._row(table_id, version, incarnation, ZERO).key
        _, deleted_at = await self._store.one_phase(lambda evaluation: evaluation.delete((key,)))
        return deleted_at

    async def drop_all(self, incarnation: Incarnation) -> None:
        """Deletes every row of this session."""

        def evaluate(evaluation: Evaluation) -> int:
            rows = [(key, LeaseRow.decode(key, body)) for key, body in evaluation.scan(LEASES)]
            own = [key for key, row in rows if row.session_id == incarnation.session_id]
            evaluation.delete(own[:SWEEP_ROWS_MAX])
            return len(own[:SWEEP_ROWS_MAX])

        while (await self._store.one_phase(evaluate))[0]:
            pass

    async def limit(
        self, table_id: int, version: int, incarnation: Incarnation, expires_at: Timestamp
    ) -> None:
        """Writes a fixed expiration into the row, if it is still there."""
        key, body = self._row(table_id, version, incarnation, expires_at).encode()

        def evaluate(evaluation: Evaluation) -> None:
            if evaluation.get(key) is not None:
                evaluation.put((key,), (body,))

        await self._store.one_phase(evaluate)

    async def sweep(self) -> int:
        """Deletes rows whose session is dead, and counts them. They protected nothing."""
        swept = 0
        while removed := (await self._store.one_phase(_sweep))[0]:
            swept += removed
        return swept

    async def read_history(
        self, table_id: int, at: Timestamp
    ) -> tuple[TableDescriptor, Timestamp] | None:
        """The version that was canonical at `at`, and where its successor begins.

        Without a successor it is only known to hold at `at` itself.
        """
        now = await self._store.now()
        descriptor = await self._descriptors.read_at(table_id, at)
        if not isinstance(descriptor, TableDescriptor):
            return None
        successors = await self._descriptors.versions([table_id], at, now) if at < now else ()
        ends = [successor.modification_time for successor in successors]
        return descriptor, min(ends, default=Timestamp(at + 1))

    def _row(
        self, table_id: int, version: int, incarnation: Incarnation, expiration: Timestamp
    ) -> LeaseRow:
        return LeaseRow(
            descriptor_id=table_id,
            version=version,
            node_id=self._node_id,
            session_id=incarnation.session_id,
            expiration=expiration,
        )


def _read_newest(evaluation: Evaluation, table_id: int) -> Descriptor | None:
    """The newest version; its modification time is not among what a step can read."""
    key = descriptor_key(table_id)
    body = evaluation.get(key)
    return None if body is None else decode_stored(key, body, ZERO)


def _forgotten(
    evaluation: Evaluation, table_id: int, incarnation: Incarnation, known: Collection[int]
) -> list[bytes]:
    """The session's rows on a table, but for those on the versions that it knows of."""
    rows = [LeaseRow.decode(key, body) for key, body in evaluation.scan(leases_of(table_id))]
    own = [row for row in rows if row.session_id == incarnation.session_id]
    return [row.key for row in own if row.version not in known]


def _sweep(evaluation: Evaluation) -> int:
    sessions = [SessionRow.decode(key, body) for key, body in evaluation.scan(SESSIONS)]
    alive = {row.session_id for row in sessions if evaluation.before(row.expiration)}
    rows = [(key, LeaseRow.decode(key, body)) for key, body in evaluation.scan(LEASES)]
    orphans = [key for key, row in rows if row.session_id not in alive][:SWEEP_ROWS_MAX]
    if orphans:
        evaluation.delete(orphans)
    return len(orphans)
