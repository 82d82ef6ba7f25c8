"""Reads at a timestamp of a distant store."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ..access import Row, Version
from ..clock import Timestamp
from ..span import Span
from .connection import Connection
from .messages import PointRead, ScanSlices, VersionsRead, wire

_Point = tuple[bytes, Timestamp] | None


class RemoteSnapshot:
    """Implements `access.Snapshot`. A read that a lost connection cut short raises."""

    def __init__(
        self, connection: Connection, at: Timestamp, *, lock_timeout: float | None
    ) -> None:
        self._connection = connection
        self._lock_timeout = lock_timeout
        self.at = at

    async def get(self, key: bytes) -> bytes | None:
        found = await self.get_with_timestamp(key)
        return None if found is None else found[0]

    async def get_with_timestamp(self, key: bytes) -> tuple[bytes, Timestamp] | None:
        question = PointRead(await self._connection.ready(), key, self.at, self._lock_timeout)
        found: tuple[bytes, Timestamp] | None
        found = await self._connection.read("point", question, _Point)  # type: ignore[arg-type]
        return found

    async def scan_slices(self, span: Span) -> AsyncGenerator[list[Row], None]:
        question = ScanSlices(
            connection=await self._connection.ready(),
            span=wire(span),
            at=self.at,
            lock_timeout=self._lock_timeout,
        )
        slices = self._connection.stream("scan", question, list[tuple[bytes, bytes]])
        async with aclosing(slices):
            async for rows in slices:
                yield rows

    async def scan(self, span: Span) -> list[Row]:
        return [row async for rows in self.scan_slices(span) for row in rows]


async def remote_versions(
    connection: Connection, span: Span, after: Timestamp, upto: Timestamp
) -> AsyncGenerator[list[Version], None]:
    """As `Store.versions`."""
    question = VersionsRead(await connection.ready(), wire(span), after, upto)
    slices = connection.stream("versions", question, list[tuple[bytes, Timestamp, bytes | None]])
    async with aclosing(slices):
        async for versions in slices:
            yield versions
