"""What a store holds of a table, read as bytes with their timestamps: what its oracle is told.

Read when everything rests, below all layers: versions of descriptors, of rows, of leases and of
sessions. No lease manager, no schema feed and no cache has a part in it.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.store.descriptor_store import decode_stored, descriptor_key
from tailrace.catalog.store.lease_rows import LEASES, SESSIONS, LeaseRow, SessionRow
from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.keys import index_prefix, table_span
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tests.simulation.schema_model import KEY_GAP
from tests.simulation.schema_steps import SeenStep, Shape

TOKEN_ID = 3
"""The column id of `w`: the third of CREATE TABLE."""

Found = tuple[bytes, Timestamp, bytes | None]


async def read_versions(store: Store, span: Span) -> list[Found]:
    found: list[Found] = []
    async for versions in store.versions(span, ZERO, store.clock.now()):
        found += versions
    return found


def shape_of(table: TableDescriptor) -> Shape:
    """What a client sees of a version."""
    columns = tuple((c.name, c.type.kind.name) for c in table.visible_columns)
    [key] = table.key_columns
    return Shape(columns, key.name)


class TableHistory:
    """The versions of one table's descriptor, and its rows by timestamp."""

    def __init__(self, descriptors: Sequence[TableDescriptor], rows: Sequence[Found]) -> None:
        self.descriptors = descriptors
        self._of_index: dict[bytes, list[tuple[Timestamp, int, int | None]]] = {}
        prefixes = {index_prefix(d.id, d.primary_index_id): d for d in descriptors}
        for key, at, body in rows:
            table = prefixes.get(key[: len(next(iter(prefixes)))])
            if table is not None:
                prefix = index_prefix(table.id, table.primary_index_id)
                name = codec_for(table).decode_key(key)[0]
                assert isinstance(name, int)
                number = name if table.key_columns[0].name == "k" else name - KEY_GAP
                self._of_index.setdefault(prefix, []).append((at, number, _token(body)))
        for versions in self._of_index.values():
            versions.sort(key=lambda version: version[0])

    @classmethod
    async def read(cls, store: Store, table_id: int) -> TableHistory:
        stored = await read_versions(store, Span.prefix(descriptor_key(table_id)))
        tables = [decode_stored(key, body, at) for key, at, body in stored if body is not None]
        descriptors = [table for table in tables if isinstance(table, TableDescriptor)]
        assert [table.version for table in descriptors] == list(range(1, len(descriptors) + 1))
        return cls(descriptors, await read_versions(store, table_span(table_id)))

    def canonical_at(self, at: Timestamp) -> TableDescriptor:
        place = bisect_right(self.descriptors, at, key=lambda table: table.modification_time)
        return self.descriptors[place - 1]

    def steps(self) -> list[SeenStep]:
        seen: list[SeenStep] = []
        for before, after in itertools.pairwise(self.descriptors):
            swapped = before.primary_index_id != after.primary_index_id
            if shape_of(before) == shape_of(after) and not swapped:
                continue
            building = before.new_primary
            seen.append(
                SeenStep(
                    at=after.modification_time,
                    shape=shape_of(after),
                    emptied=swapped and (building is None or building.empty),
                    kept=self._alive(after) if swapped else None,
                )
            )
        return seen

    def _alive(self, table: TableDescriptor) -> dict[int, int]:
        """What the primary index of a version held just below it."""
        alive: dict[int, int | None] = {}
        prefix = index_prefix(table.id, table.primary_index_id)
        for at, key, token in self._of_index.get(prefix, ()):
            if at < table.modification_time:
                alive[key] = token
        return {key: token for key, token in alive.items() if token is not None}

    def writes(self) -> dict[Timestamp, dict[int, int | None]]:
        """Tokens by timestamp and key, in the primary index that was canonical then."""
        found: dict[Timestamp, dict[int, int | None]] = {}
        for prefix, versions in self._of_index.items():
            for at, key, token in versions:
                table = self.canonical_at(at)
                if index_prefix(table.id, table.primary_index_id) == prefix:
                    found.setdefault(at, {})[key] = token
        return found


def _token(body: bytes | None) -> int | None:
    if body is None:
        return None
    flat = msgspec.msgpack.decode(body, type=list)
    token = dict(zip(flat[::2], flat[1::2], strict=True))[TOKEN_ID]
    assert isinstance(token, int)
    return token


async def check_two_versions(store: Store, histories: Sequence[TableHistory]) -> int:
    """No version was published while a live lease stood on the one before the last.

    Returns how many publications were looked at.
    """
    leases = [
        (at, LeaseRow.decode(key, body) if body else None, key)
        for key, at, body in await read_versions(store, LEASES)
    ]
    sessions = await read_versions(store, SESSIONS)
    ends: dict[str, list[tuple[Timestamp, Timestamp]]] = {}
    ids: dict[bytes, str] = {}
    for key, at, body in sorted(sessions, key=lambda found: found[1]):
        if body is not None:
            row = SessionRow.decode(key, body)
            ids[key] = row.session_id
            ends.setdefault(row.session_id, []).append((at, row.expiration))
        elif key in ids:
            ends[ids[key]].append((at, ZERO))
    checked = 0
    for history in histories:
        for table in history.descriptors:
            checked += 1
            _check_published(table, leases, ends)
    return checked


def _check_published(
    table: TableDescriptor,
    leases: Sequence[tuple[Timestamp, LeaseRow | None, bytes]],
    ends: dict[str, list[tuple[Timestamp, Timestamp]]],
) -> None:
    at = table.modification_time
    standing: dict[bytes, LeaseRow | None] = {}
    for written_at, row, key in leases:
        if written_at < at:
            standing[key] = row  # versions of a key come from oldest to newest
    for row in standing.values():
        if row is None or row.descriptor_id != table.id or row.version > table.version - 2:
            continue
        expirations = [end for known_at, end in ends.get(row.session_id, ()) if known_at < at]
        alive = bool(expirations) and expirations[-1] > at and row.expiration > at
        assert not alive, f"v{table.version} was published at {at}, while {row} stood"
