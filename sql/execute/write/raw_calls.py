"""`raw_get`, `raw_put`, `raw_delete`, `raw_delete_range` and `raw_cas`, as statements call them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal

from ....catalog.rights.privileges import Privilege
from ....catalog.values.column_types import Datum
from ....catalog.values.errors import SQLError
from ....kvlayer.clock import Timestamp, format_timestamp
from ..ddl.keyspaces import whole_seconds
from .keyspaces import OpenedKeyspace, RawKeyspaces


class RawCalls:
    """The calls of one user in one database. Raises SQLError as `RawKeyspaces.opened` does.

    A call is no part of the statement's transaction: it is durable when it returns, and stays where
    the statement fails behind it.
    """

    def __init__(self, keyspaces: RawKeyspaces, *, user: str, database: str) -> None:
        self._keyspaces = keyspaces
        self._user = user
        self._database = database

    async def get(self, name: str, key: bytes) -> Datum:
        async with self._opened(name, Privilege.SELECT) as keyspace:
            return await keyspace.get(key)

    async def put(self, name: str, key: bytes, value: bytes, ttl: str | None = None) -> Datum:
        seconds = None if ttl is None else whole_seconds(ttl)
        async with self._opened(name, Privilege.INSERT) as keyspace:
            return _shown(await keyspace.put(key, value, ttl_seconds=seconds))

    async def delete(self, name: str, key: bytes) -> Datum:
        async with self._opened(name, Privilege.DELETE) as keyspace:
            return _shown(await keyspace.delete(key))

    async def delete_range(self, name: str, start: bytes | None, end: bytes | None) -> Datum:
        """How many keys were deleted of `[start, end)`; NULL is the first key, and behind the
        last."""
        async with self._opened(name, Privilege.SELECT | Privilege.DELETE) as keyspace:
            return (await keyspace.delete_range(start or b"", end)).count

    async def cas(
        self, name: str, key: bytes | None, expected: bytes | None, value: bytes | None
    ) -> Datum:
        """Whether the key had the value that was expected, and now has the new one; NULL is to be
        absent."""
        if key is None:
            raise SQLError("22004", "raw_cas: the key must not be NULL")
        needs = Privilege.SELECT | (Privilege.DELETE if value is None else Privilege.INSERT)
        async with self._opened(name, needs) as keyspace:
            return (await keyspace.compare_and_swap(key, expected=expected, value=value)).swapped

    def _opened(self, name: str, needs: Privilege) -> OpenedKeyspace:
        return self._keyspaces.opened(name, needs=needs, user=self._user, database=self._database)


def _shown(at: Timestamp) -> Decimal:
    return Decimal(format_timestamp(at))


CALLS: dict[str, Callable[..., Awaitable[Datum]]] = {
    "raw_get": RawCalls.get,
    "raw_put": RawCalls.put,
    "raw_delete": RawCalls.delete,
    "raw_delete_range": RawCalls.delete_range,
    "raw_cas": RawCalls.cas,
}
