"""Heartbeats: how a store knows that a transaction's client is still there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from ..settings import declare_duration
from .host import TransactionHost
from .record import TransactionRecord, TransactionStatus
from .resolution import abort

HEARTBEAT_INTERVAL = declare_duration(
    "kv.transaction.heartbeat_interval", 1.0, "how often a transaction's coordinator heartbeats"
)
HEARTBEAT_TIMEOUT = declare_duration(
    "kv.transaction.heartbeat_timeout",
    5.0,
    "how long a transaction without a heartbeat keeps its locks",
)


class Heartbeats:
    """One task that heartbeats every transaction whose client still holds it, and aborts those
    without a heartbeat for too long. It runs only while there are any."""

    def __init__(
        self, host: TransactionHost, running: Callable[[], Iterable[TransactionRecord]]
    ) -> None:
        self._host = host
        self._running = running
        self._task: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """A transaction begins."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._beat())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _beat(self) -> None:
        loop, settings = asyncio.get_running_loop(), self._host.settings
        while running := list(self._running()):
            now = loop.time()
            for record in running:
                if record.held is not None and record.held() is not None:
                    record.heartbeat_at = now
                silent = now - record.heartbeat_at
                if silent > settings.get(HEARTBEAT_TIMEOUT):
                    assert record.status is TransactionStatus.PENDING, record
                    self._host.metrics.add("kv_transactions_abandoned_total")
                    abort(
                        self._host,
                        record,
                        f"transaction {record.id.hex()} was abandoned: no heartbeat for "
                        f"{silent:.1f} s",
                    )
            del running  # else the last one would be held over the sleep
            await asyncio.sleep(settings.get(HEARTBEAT_INTERVAL))
