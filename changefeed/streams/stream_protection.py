"""The protected timestamp of a sinkless feed: it lives as long as the stream does.

A stream has no job whose end releases what it protected, and its node may die. So its record has a
maximum age, and is renewed while the stream lives, however slowly the client reads: what a dead
node's stream protected is given back to garbage collection that much later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from ...catalog.values.errors import SQLError
from ...kvlayer.access import committed
from ...kvlayer.clock import Timestamp
from ...kvlayer.errors import KVError
from ...kvlayer.protected_timestamp import ProtectionRefused
from ...kvlayer.span import Span
from ..jobs.services import ChangefeedServices

MAX_AGE_SECONDS = 600.0
"""How long a stream whose node has died holds garbage collection back."""

RENEWAL_SECONDS = 60.0
"""A store that is away for nine minutes costs no stream its protection."""


class StreamProtection:
    """Keeps what one stream has still to read from garbage collection."""

    def __init__(self, services: ChangefeedServices, record_id: bytes) -> None:
        self._services = services
        self._record_id = record_id

    async def keep(self, needed_from: Callable[[], Timestamp]) -> None:
        """Renews the record for ever, at what the stream needs by then.

        Returns when the record has expired and was overtaken: a feed that still needed it is told
        so by what it reads.
        """
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            try:
                async with committed(self._services.store) as transaction:
                    await self._services.protections.renew(
                        transaction, self._record_id, needed_from()
                    )
            except ProtectionRefused:
                return
            except KVError:
                self._services.store.metrics.add("changefeed_protection_failures_total")

    async def release(self) -> None:
        """The stream has ended. Where the store cannot be asked, the record ends by its age."""
        with suppress(KVError):
            async with committed(self._services.store) as transaction:
                await self._services.protections.release(transaction, self._record_id)


async def protect_stream(
    services: ChangefeedServices, spans: Sequence[Span], start_at: Timestamp
) -> StreamProtection:
    """Protects the spans from `start_at` on. Raises SQLError where that is collected already."""
    try:
        async with committed(services.store) as transaction:
            record_id = await services.protections.protect(
                transaction,
                owner="sinkless changefeed",
                spans=spans,
                timestamp=start_at,
                max_age_seconds=MAX_AGE_SECONDS,
            )
    except ProtectionRefused as refused:
        raise SQLError("22023", f"changefeed cannot start: {refused}") from refused
    return StreamProtection(services, record_id)
