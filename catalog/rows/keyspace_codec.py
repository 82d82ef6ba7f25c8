"""Entries of a raw keyspace, as rows of the relation as which it shows itself.

    r 000068 "k"   "2" <expires at> 01      ->      t 000068 0001 "k"    (k, 2, expires at)
    r 000068 "k"   <expires at> 02          ->      t 000068 0001 "k"    deleted

The keys differ in their prefix alone: a user's key is memcomparable in both. So who follows,
exports or mirrors rows needs to know nothing of entries.
"""

from __future__ import annotations

import msgspec

from ...kvlayer.clock import Timestamp
from ...kvlayer.keys import KEYSPACE_LENGTH, index_prefix
from ...kvlayer.raw import EntryUnreadable, decode_entry, user_key
from ..descriptors.descriptor import EXPIRES_AT, TableDescriptor
from .row_codec import RowUnreadable

_encode = msgspec.msgpack.Encoder().encode


class KeyspaceCodec:
    """Turns the entries of one keyspace into keys and bodies that `codec_for` decodes."""

    def __init__(self, descriptor: TableDescriptor) -> None:
        assert descriptor.keyspace is not None, descriptor
        self._prefix = index_prefix(descriptor.id, descriptor.primary_index_id)
        self._key_id, self._value_id, self._ends_id = (
            descriptor.column(name).id for name in ("key", "value", EXPIRES_AT)
        )

    def row(self, key: bytes, body: bytes | None, at: Timestamp) -> tuple[bytes, bytes | None]:
        """Key and body of the row as a reader at `at` sees it; no body where it sees none.

        Raises RowUnreadable for what is no entry.
        """
        row_key = self._prefix + key[KEYSPACE_LENGTH:]
        if body is None:
            return row_key, None
        try:
            entry, name = decode_entry(body), user_key(key)
        except (EntryUnreadable, ValueError) as error:
            raise RowUnreadable(f"raw key {key.hex()}: {error}") from error
        value = entry.value_at(at)
        if value is None:
            return row_key, None
        columns = [
            self._key_id, name, self._value_id, value, self._ends_id, entry.expires_at,
        ]  # fmt: skip
        return row_key, _encode(columns)
