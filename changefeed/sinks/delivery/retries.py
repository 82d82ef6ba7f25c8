"""Requests that are made again where they fail, and what is told of them meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ...contract.sink_config import RetryConfig
from ..protocol import NoteTrouble, SinkError

BACKOFF_SECONDS_MAX = 30.0


class Retries:
    """The requests of one sink, made again where they fail. `note_trouble` is told the latest
    failure, and None when no request is waiting to be made again. A receiver that asks to be left
    alone for some time gets no request until then, and no other attempt of the feed begins."""

    def __init__(self, retry: RetryConfig, note_trouble: NoteTrouble) -> None:
        self._retry = retry
        self._note_trouble = note_trouble
        self._failing = 0
        """Requests that have failed and are made again."""
        self._quiet_until = 0.0
        """The time of the loop until which the receiver asked to be left alone."""

    async def run(self, attempt: Callable[[], Awaitable[None]]) -> None:
        """Makes an attempt, and another after each SinkError until they are as many more as the
        feed allows; then raises the last one. Each call begins anew, with the shortest pause."""
        failures, pause = 0, self._retry.backoff
        try:
            while True:
                await self._quiet()
                try:
                    return await attempt()
                except SinkError as error:
                    self._failing += not failures
                    failures += 1
                    self._heed(error)
                    self._note_trouble(str(error))
                    if failures > self._retry.max:
                        await self._quiet()
                        raise
                await asyncio.sleep(min(pause, BACKOFF_SECONDS_MAX))
                pause = min(2 * pause, BACKOFF_SECONDS_MAX)
        finally:
            if failures:
                self._failing -= 1
                if not self._failing:
                    self._note_trouble(None)

    def _heed(self, error: SinkError) -> None:
        if error.retry_after:
            until = asyncio.get_running_loop().time() + error.retry_after
            self._quiet_until = max(self._quiet_until, until)

    async def _quiet(self) -> None:
        """Returns when the receiver may be asked. It may ask for more time meanwhile."""
        loop = asyncio.get_running_loop()
        while (left := self._quiet_until - loop.time()) > 0:
            await asyncio.sleep(left)
