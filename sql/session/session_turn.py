"""The turns of a session's tasks: one at a time, each in the session's time zone and for its
user."""

from __future__ import annotations

import asyncio
from contextvars import Context, copy_context

from ...catalog.descriptors import temporary_schema
from ...catalog.descriptors.temporary_schema import TemporarySchema
from ...catalog.values.session_zone import SessionZone, follow, forget
from ...kvlayer.write_shares import SessionShare, write_as
from ..runtime.analytic_lanes import Asking, ask_as
from ..variables.variables import INTERVAL_STYLE, TIME_ZONE, SessionVariables

Followed = tuple[SessionZone | None, TemporarySchema | None]


class SessionTurn(asyncio.Lock):
    """`async with turn:` waits for the tasks before. It is not entered twice by one."""

    def __init__(self, variables: SessionVariables, asker: Asking, share: SessionShare) -> None:
        super().__init__()
        self._asker = asker
        self._share = share
        self.zone = SessionZone()
        self.temporary = TemporarySchema()
        self._variables = variables
        self._before: Followed | None = None
        """The zone and schema of the task that has the turn, as they were before it; None where the
        task is the session's own."""
        self._asked_before: Asking | None = None
        self._wrote_before: SessionShare | None = None
        variables.watch(self._look)

    def follow(self) -> Followed:
        """From here on the context's time zone and temporary schema are this session's, which its
        turns then leave so. Returns what they were before."""
        return follow(self.zone), temporary_schema.follow(self.temporary)

    def context(self) -> Context:
        """A context of the session's own, for what it does outside of any task."""
        made = copy_context()
        made.run(self.follow)
        made.run(ask_as, self._asker)
        made.run(write_as, self._share)
        return made

    async def __aenter__(self) -> None:
        await self.acquire()
        if temporary_schema.session_schema() is not self.temporary:
            self._before = self.follow()
        self._asked_before = ask_as(self._asker)
        self._wrote_before = write_as(self._share)

    async def __aexit__(self, *raised: object) -> None:
        ask_as(self._asked_before)
        write_as(self._wrote_before)
        if self._before is not None:
            zone, temporary = self._before
            self._before = None
            forget(zone)
            temporary_schema.follow(temporary)
        self.release()

    def _look(self) -> None:
        self.zone.name = self._variables.get(TIME_ZONE)
        self.zone.iso_intervals = self._variables.get(INTERVAL_STYLE) == "iso_8601"
