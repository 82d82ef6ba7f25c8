"""Carries out the calls of `session_calls`: ends what other sessions run, or these themselves.

Who may: PostgreSQL's rule. One's own sessions, and those of roles that one is a member of; with
CANCELQUERY those of all who are no admins (as pg_signal_backend there); admins all of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from ...catalog.column_types import Datum
from ...catalog.errors import SQLError
from ...catalog.privileges import SYSTEM, Privilege
from ...catalog.rights import Rights
from ...kvlayer.txn import Transaction
from ..activity import SessionView
from ..authorization import current_rights
from ..results import Result
from ..services import Services


class CallingSession:
    """Implements `SessionCalls` for one session."""

    def __init__(
        self, services: Services, user: Callable[[], str], reader: Callable[[], Transaction | None]
    ) -> None:
        self._services = services
        self._user = user
        self._reader = reader
        self._warnings: list[str] = []

    def told(self, result: Result) -> Result:
        """The result, with what the statement's calls had to say beside what they returned."""
        if not self._warnings:
            return result
        warnings, self._warnings = self._warnings, []
        return replace(result, warnings=tuple(warnings))

    async def call(self, name: str, arguments: Sequence[int]) -> Datum:
        return await _CALLS[name](self, *arguments)

    async def _cancel(self, process_id: int) -> bool:
        session = self._found(process_id)
        if session is None:
            return False
        await self._check_may(session, "cancel query", "query is being canceled")
        session.activity.interrupt()
        return True

    async def _terminate(self, process_id: int, milliseconds: int = 0) -> bool:
        """Waits until the session has left, if it is given time for that."""
        if milliseconds < 0:
            raise SQLError("22003", '"timeout" must not be negative')
        session = self._found(process_id)
        if session is None:
            return False
        await self._check_may(session, "terminate process", "process is being terminated")
        session.terminate()
        if milliseconds == 0 or await self._services.sessions.left(session, milliseconds / 1000):
            return True
        self._warnings.append(
            f"backend with PID {process_id} did not terminate within {milliseconds} milliseconds"
        )
        return False

    def _found(self, process_id: int) -> SessionView | None:
        session = self._services.sessions.find_process(process_id)
        if session is None:
            self._warnings.append(f"PID {process_id} is not a PostgreSQL backend process")
        return session

    async def _check_may(self, session: SessionView, what: str, whose: str) -> None:
        rights = await current_rights(self._services, self._reader())
        if may_end(rights, self._user(), session.activity.user):
            return
        if rights.admin(session.activity.user):
            raise SQLError(
                "42501",
                f"permission denied to {what}",
                detail="Only admins may do that to the sessions of admins.",
            )
        raise SQLError(
            "42501",
            f"must be a member of the role whose {whose}, or have CANCELQUERY",
            hint="GRANT SYSTEM CANCELQUERY TO a role lets it end what others run.",
        )


def may_end(rights: Rights, user: str, owner: str) -> bool:
    """Whether a user may end the sessions of another, or what they run."""
    if rights.admin(user) or owner in rights.roles_of(user):
        return True
    return bool(rights.held(user, SYSTEM) & Privilege.CANCELQUERY) and not rights.admin(owner)


_CALLS: dict[str, Callable[..., Awaitable[Datum]]] = {
    "pg_cancel_backend": CallingSession._cancel,
    "pg_terminate_backend": CallingSession._terminate,
}
