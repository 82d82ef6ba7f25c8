"""Foreign keys: which row a row refers to, and whether it is there."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...kvlayer.access import StoreAccess
from ..descriptors.descriptor import TableDescriptor
from ..descriptors.elements import ForeignKey, Index, IndexKind
from ..rows.index_codec import index_codec_for
from ..store.descriptor_store import DescriptorStore
from ..values.column_types import Datum
from ..values.physical import Physical, datum_reader, physical_of
from .validate import ReferenceReader

_decode = msgspec.msgpack.Decoder(list).decode
_encode = msgspec.msgpack.Encoder().encode


def referenced_index(table: TableDescriptor, key: ForeignKey) -> Index | None:
    """The index in which a referenced row is found: primary or unique, of just those columns."""
    wanted = set(key.referenced_columns)
    if set(table.primary_key) == wanted:
        return table.primary_index
    for index in table.indexes:
        if index.unique and index.written and set(index.columns) == wanted:
            return index
    return None


def referenced_key(
    table: TableDescriptor, key: ForeignKey, body: bytes, index: Index, referrer: TableDescriptor
) -> bytes | None:
    """The key of the entry that the row with this body refers to; None if it refers to none."""
    return key_of_values(table, key, physicals_of(referrer, key.columns, body), index)


def key_of_values(
    table: TableDescriptor, key: ForeignKey, values: Sequence[Physical], index: Index
) -> bytes | None:
    """The key of the entry that values of the foreign key refer to; None if they refer to none."""
    if None in values:
        return None
    codec = index_codec_for(table, index)
    pairs = sorted(zip(key.referenced_columns, values, strict=True), key=lambda pair: pair[0])
    flat = [part for pair in pairs for part in pair]
    if index.kind is IndexKind.PRIMARY:
        return codec.entry(_encode(flat))[0]
    return codec.prefix_of(_encode(flat))


def _missing(table: TableDescriptor, column_id: int) -> Physical:
    column = table.column_by_id(column_id)
    return physical_of(column.type, column.missing)


def find_orphan(store: StoreAccess, descriptors: DescriptorStore) -> ReferenceReader:
    """Looks each referenced row up, as of now."""

    async def find(table: TableDescriptor, key: ForeignKey, bodies: Sequence[bytes]) -> int | None:
        at = await store.now()
        referenced = await descriptors.read_at(key.referenced_id, at)
        assert isinstance(referenced, TableDescriptor), (key, referenced)
        index = referenced_index(referenced, key)
        assert index is not None, (key, referenced)
        reader = store.snapshot(at)
        for place, body in enumerate(bodies):
            wanted = referenced_key(referenced, key, body, index, table)
            if wanted is not None and await reader.get(wanted) is None:
                return place
        return None

    return find


def physicals_of(
    table: TableDescriptor, column_ids: Sequence[int], body: bytes
) -> tuple[Physical, ...]:
    """The values of some columns in the row with this body, as bodies hold them."""
    row = _decode(body)
    found = dict(zip(row[::2], row[1::2], strict=True))
    return tuple(found.get(column_id, _missing(table, column_id)) for column_id in column_ids)


def datums_of(table: TableDescriptor, column_ids: Sequence[int], body: bytes) -> tuple[Datum, ...]:
    """The values of some columns in the row with this body."""
    return read_datums(table, column_ids, physicals_of(table, column_ids, body))


def read_datums(
    table: TableDescriptor, column_ids: Sequence[int], physicals: Sequence[Physical]
) -> tuple[Datum, ...]:
    """Values of some columns, from what bodies hold."""
    values: list[Datum] = []
    for column_id, value in zip(column_ids, physicals, strict=True):
        read = datum_reader(table.column_by_id(column_id).type)
        values.append(value if value is None or read is None else read(value))
    return tuple(values)
