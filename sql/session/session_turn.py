"""The turns of a session's tasks: one at a time, each in the session's time zone and for its
user."""

from __future__ import annotations

import asyncio
from types import TracebackType

from ...catalog.descriptors import temporary_schema
from ...catalog.descriptors.temporary_schema import TemporarySchema
from ...catalog.values.session_zone import SessionZone, follow, forget
from ..runtime.analytic_lanes import Asking, ask_as
from ..variables.client_variables import TIME_ZONE
from ..variables.variables import SessionVariables


class SessionTurn(asyncio.Lock):
    """`async with turn:` waits for the tasks before. It is not entered twice by one."""

    def __init__(self, variables: SessionVariables, asker: Asking) -> None:
        super().__init__()
        self._asker = asker
        self._asked_before: Asking | None = None
        self.zone = SessionZone()
        self.temporary = TemporarySchema()
        self._temporary_before: TemporarySchema | None = None
        self._variables = variables
        self._before: SessionZone | None = None
        variables.watch(self._look)

    async def __aenter__(self) -> None:
        await self.acquire()
        self._before = follow(self.zone)
        self._temporary_before = temporary_schema.follow(self.temporary)
        self._asked_before = ask_as(self._asker)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        forget(self._before)
        temporary_schema.follow(self._temporary_before)
        ask_as(self._asked_before)
        self.release()

    def _look(self) -> None:
        self.zone.name = self._variables.get(TIME_ZONE)
